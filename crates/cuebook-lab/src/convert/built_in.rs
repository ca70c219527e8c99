//! The dialects that prompts are converted between.

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::prompt::{DIRECTIVE, DOTPROMPT, PROMPTY, Prompt, SECTIONS, SKILL, TEMPLATE, Traits};

/// A dialect that prompts are converted from and to. One that a program adds to its book is not among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BuiltIn {
    /// A folder with `template.md`, `prompt.py` or both.
    Template,
    /// A `.prompty` file.
    Prompty,
    /// A tree of sections.
    Sections,
    /// A directive.
    Directive,
    /// A `.prompt` file. Prompts are converted from it; [`export`](super::export) writes one.
    Dotprompt,
    /// A folder with `SKILL.md`, as `Dotprompt`.
    Skill,
}

impl BuiltIn {
    /// All that prompts are converted to.
    pub const ALL: [BuiltIn; 4] =
        [BuiltIn::Template, BuiltIn::Prompty, BuiltIn::Sections, BuiltIn::Directive];

    /// What is known of it.
    pub fn traits(self) -> &'static Traits {
        match self {
            BuiltIn::Template => &TEMPLATE,
            BuiltIn::Prompty => &PROMPTY,
            BuiltIn::Sections => &SECTIONS,
            BuiltIn::Directive => &DIRECTIVE,
            BuiltIn::Dotprompt => &DOTPROMPT,
            BuiltIn::Skill => &SKILL,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
        self.traits().name
    }

    /// The dialect of a prompt that is to be converted.
    pub(super) fn of(prompt: &Prompt) -> Result<BuiltIn> {
        let all = BuiltIn::ALL.into_iter().chain([BuiltIn::Dotprompt, BuiltIn::Skill]);
        let found = { all }.find(|dialect| dialect.traits() == prompt.dialect);
        found.ok_or_else(|| {
            let message = format!(
                "`{}` is written in the dialect `{}`, which cannot be converted",
                prompt.id, prompt.dialect.name
            );
            let hint = format!(
                "convert a prompt of another dialect: {}",
                BuiltIn::ALL.map(BuiltIn::as_str).join(", ")
            );
            let diagnostic = Diagnostic::new(Code::CannotConvert, message).file(&prompt.source).hint(hint);
            Error::new(ErrorKind::Usage, diagnostic)
        })
    }
}
