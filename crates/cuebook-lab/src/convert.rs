//! Convert: a prompt of one notation in another.
//!
//! A prompt becomes a draft (`source.rs`, `draft.rs`): its text as words and names, and everything else that notations share. Each
//! target writes drafts as files (`template.rs`, `prompty.rs`, `sections.rs`, `directive.rs`), and the files are read and rendered
//! before they are given out (`verify.rs`), without what the report says to be different (`reported_differences.rs`). What was lost or is different is in the [`Report`]; nothing is lost in silence.
//!
//! Nothing here decides where files go: the caller writes them.

mod built_in;
mod cases;
mod directive;
mod draft;
mod export;
mod langfuse;
mod migrate;
mod mustache;
mod notation;
mod prompty;
mod report;
mod reported_differences;
mod sections;
mod shape;
mod source;
mod target_limits;
mod target_text;
mod template;
mod verify;

use serde_json::{Value as Json, json};

pub use built_in::BuiltIn;
pub use export::{Export, Exported, Origin, export, origin_of};
pub(crate) use export::{closure, tag_in};
pub use langfuse::{LANGFUSE_FILE, LangfuseContent, LangfuseMessage, LangfusePrompt};
pub use report::{Entry, EntryKind, Report};

use crate::book::Book;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::variables::{Context, UnknownVariables};
use verify::Bench;

/// What a prompt is to become.
#[derive(Debug, Clone)]
pub struct Target {
    /// The notation.
    pub dialect: BuiltIn,
    /// The name of its file or folder, without the ending; that of the prompt if it is missing.
    pub name: Option<String>,
    /// The folder below `.ai/directives` that a directive is to lie in; empty if it is that folder itself.
    pub category: String,
}

impl Target {
    /// A notation, and the name that the prompt has.
    pub fn new(dialect: BuiltIn) -> Target {
        Target { dialect, name: None, category: String::new() }
    }
}

/// A prompt in another notation.
#[derive(Debug)]
#[non_exhaustive]
pub struct Conversion {
    /// The id of the prompt.
    pub prompt: String,
    /// The name that the result goes by.
    pub name: String,
    /// The notation that it is written in.
    pub from: BuiltIn,
    /// The notation that it was converted to.
    pub to: BuiltIn,
    /// The files of the result.
    pub files: Vec<OutFile>,
    /// The cases of the prompt, as a file beside the result.
    pub cases: Option<OutFile>,
    /// What was lost or is different.
    pub report: Report,
    /// How many renders of both were compared, and were the same.
    pub compared: usize,
    /// What did not count in that comparison because the report tells of it, in words: `hooks and providers did not run`.
    pub compared_without: Vec<String>,
    /// Why no renders are said to be the same, if none are.
    pub uncompared: Option<String>,
    /// Whether the result renders another text, and nothing in the report explains that.
    pub differs: bool,
}

/// A file of a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutFile {
    /// Its name. Those of a template lie in a folder of the prompt's name.
    pub path: String,
    /// What is in it.
    pub text: String,
}

impl Conversion {
    /// The result as scripts see it.
    pub fn to_json(&self) -> Json {
        let file = |file: &OutFile| json!({"path": file.path, "text": file.text});
        let files = self.files.iter().map(file);
        json!({
            "prompt": self.prompt,
            "from": self.from.as_str(),
            "to": self.to.as_str(),
            "files": files.collect::<Vec<_>>(),
            "cases": self.cases.as_ref().map(file),
            "lossless": self.report.is_lossless(),
            "compared": self.compared,
            "compared_without": self.compared_without,
            "uncompared": self.uncompared,
            "differs": self.differs,
            "report": self.report.to_json(),
        })
    }

    /// An error if anything was lost or changed: everything that was.
    pub fn strictly(&self) -> Result<()> {
        self.report.strictly(&self.prompt)
    }
}

/// A prompt in another notation, with a report of everything that is lost or different there. A `.prompty` file of an
/// older version becomes one of Prompty 2.
///
/// ```
/// # use cuebook::Book;
/// # use cuebook_lab::{BookExt, convert::{BuiltIn, Target}};
/// let target = Target::new(BuiltIn::Prompty);
/// let conversion = Book::open(".").convert("history_compression", &target)?;
/// assert_eq!(conversion.files[0].path, "history_compression.prompty");
/// # Ok::<(), cuebook::Error>(())
/// ```
///
/// # Errors
///
/// `CB517` if the text says something that the other notation has no way to say, as a directive has none for a loop.
/// `CB221` and its like for a directive that was changed after it was signed, as for a render.
pub fn convert(book: &Book, prompt_id: &str, target: &Target) -> Result<Conversion> {
    let (to, category) = (target.dialect, target.category.as_str());
    let context = Context { without_hooks: true, unknown: UnknownVariables::Ignore, ..Context::default() };
    let context = book.complete(&context)?;
    let prepared = book.prepare(prompt_id, &context)?;
    // Converting takes over signed files: files that a render refuses are refused here.
    prepared.verify()?;
    let prompt = prepared.prompt();
    let from = BuiltIn::of(prompt)?;
    let mut report = Report::default();
    let config = book.library().config()?;
    let defaults = book.library().defaults()?;
    let drafting = source::Drafting {
        prepared: &prepared,
        from,
        target: to,
        config: &config,
        defaults: &defaults,
        report: &mut report,
    };
    let bench = Bench { book, source: &prepared, target: to, category, context };
    if from == to {
        if to == BuiltIn::Prompty
            && let Some(migrated) = migrate::write(&bench, drafting, target.name.as_deref())?
        {
            return Ok(migrated);
        }
        let message = format!("`{}` is a {} already", prompt.id, target_text::noun(to));
        let others: Vec<&str> =
            BuiltIn::ALL.into_iter().filter(|other| *other != to).map(BuiltIn::as_str).collect();
        let hint = Hint::option("convert it to another dialect", format!("--to {}", others.join(", --to ")));
        let diagnostic = Diagnostic::new(Code::CannotConvert, message).file(&prompt.source).hint(hint);
        return Err(Error::new(ErrorKind::Usage, diagnostic));
    }
    let mut draft = drafting.draft()?;
    if let Some(name) = &target.name {
        draft.id.clone_from(name);
    }
    let mut prefix = String::new();
    let files = match to {
        BuiltIn::Template => template::write(&mut draft, &config, &mut report)?,
        BuiltIn::Prompty => prompty::write(&mut draft, &mut report)?,
        BuiltIn::Sections => {
            let (files, heading) = sections::write(&mut draft, &bench, &mut report)?;
            prefix = heading;
            files
        }
        BuiltIn::Directive => directive::write(&mut draft, category, &mut report)?,
        BuiltIn::Dotprompt | BuiltIn::Skill => {
            let message = format!("a {} is written by `convert::export`", target_text::noun(to));
            return Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::CannotConvert, message)));
        }
    };
    let compared = bench.check(&draft, &files, &prefix, &mut report)?;
    let cases = cases::carry(&bench, &draft, &files, &mut report)?;
    report.entries.sort_by_key(|entry| entry.fate);
    Ok(Conversion {
        prompt: prompt.id.clone(),
        name: draft.id,
        from,
        to,
        files,
        cases,
        report,
        compared: compared.renders,
        compared_without: compared.without,
        uncompared: compared.why_not,
        differs: compared.differs,
    })
}
