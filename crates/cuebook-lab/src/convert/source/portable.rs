//! What the formats of others say: a `.prompt` file that is text and names, and a skill.

use std::sync::Arc;

use super::Drafting;
use crate::by_name::ByName;
use crate::chat::Role;
use crate::convert::BuiltIn;
use crate::convert::draft::{Chunk, Input, Print, UnsupportedPart};
use crate::dialect::skill::{SKILL_FILE, SkillFolder};
use crate::error::Result;
use crate::prompt::Prompt;
use crate::source::Source;

/// Tags with which a `.prompt` file begins its one message.
const ROLES: [(&str, Role); 2] = [("{{role \"system\"}}", Role::System), ("{{role \"user\"}}", Role::User)];

/// The most bytes of a `SKILL.md`.
const MAX_BYTES: u64 = 16 << 20;

impl Drafting<'_> {
    /// Who says the text.
    pub(super) fn role(&self, prompt: &Prompt) -> Role {
        let opens = |(tag, _): &&(&str, Role)| prompt.template.text().trim_start().starts_with(tag);
        match self.from {
            BuiltIn::Directive => Role::User,
            BuiltIn::Dotprompt => ROLES.iter().find(opens).map_or(Role::User, |(_, role)| role.clone()),
            _ => Role::System,
        }
    }

    /// The text of a `.prompt` file, if it is text and names: then it is Mustache as well.
    pub(super) fn dotprompt_text(&mut self, prompt: &Prompt, inputs: &ByName<Input>) -> Result<Chunk> {
        let source = &prompt.template;
        let text = source.text();
        let begin = text.len() - text.trim_start().len();
        let opened = ROLES.iter().find(|(tag, _)| text[begin..].starts_with(tag));
        let start = opened.map_or(0, |(tag, _)| begin + tag.len());
        let start = start + usize::from(opened.is_some() && text[start..].starts_with('\n'));
        match unsupported(source, start) {
            None => self.mustache(&Source::inside(source, start..text.len()), false, inputs),
            Some(part) => Ok(Chunk {
                pieces: Err(part),
                written: None,
                jinja: None,
                print: Print::Mustache,
                names: self.names(),
                comments: Vec::new(),
            }),
        }
    }

    /// A skill's other files stay where they are.
    pub(super) fn own_of_skill(&mut self) {
        let candidate = &self.prepared.found().candidate;
        let Ok(Some(skill)) = SkillFolder::of(candidate, MAX_BYTES) else { return };
        let mut others = skill.paths().unwrap_or_default();
        others.retain(|path| path != SKILL_FILE);
        if !others.is_empty() {
            let message = format!("the other files of the skill are left out: {}", others.join(", "));
            self.report.lost("files", message).hint("copy what the text refers to");
        }
    }
}

/// The first tag that is not the name of a value.
fn unsupported(source: &Arc<Source>, from: usize) -> Option<UnsupportedPart> {
    let text = source.text();
    let mut at = from;
    while let Some(found) = text[at..].find("{{") {
        let start = at + found;
        let is_escaped = text[..start].ends_with('\\');
        let end = text[start..].find("}}").map_or(text.len(), |end| start + end + 2);
        let inner = text[start..end].trim_matches(['{', '}']).trim();
        let is_name = inner.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && inner.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_escaped || !is_name || inner == "else" {
            let shown: String = text[start..end].chars().take(40).collect();
            return Some(UnsupportedPart { what: format!("`{shown}`"), place: source.place(start..end) });
        }
        at = end;
    }
    None
}
