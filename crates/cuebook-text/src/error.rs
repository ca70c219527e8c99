//! Typed errors with stable codes.
//!
//! ```text
//! Error
//! ├── PromptNotFoundError       no place offers this id; carries the nearest names
//! ├── PromptConflictError       several places offer it and no choice is recorded; carries the candidates
//! ├── PromptReadError           a prompt's files cannot be understood
//! ├── PromptValidationError     variables are missing or of the wrong type; carries all of them
//! ├── PromptRenderError         the template failed while it ran
//! ├── PromptHookError           a hook or a variable provider failed, or cannot run here
//! ├── PromptApprovalRequired    code of a pack has not been approved, or has changed since
//! ├── StrictViolation           the value of a strict input looks like a role marker
//! ├── InvokerError              the engine, parser or provider that is named is unknown
//! ├── WireError                 a provider cannot take what a prompt says
//! ├── ReplyError                a provider's reply cannot be understood, or says that it failed
//! ├── PromptOverridesError      overrides cannot be understood, or do not fit the prompt that they are for
//! ├── OutputParseError          a reply does not hold what a prompt's outputs ask for
//! ├── VisibilityExpansionRequired   a model wants to see more of the prompt; carries what to open
//! ├── PackError                 a pack's manifest, archive or folder is not acceptable
//! ├── ConfigError               one of Cuebook's own files (cuebook.toml, resolution.json, …) is wrong
//! ├── LimitError                a limit was reached
//! ├── IoError                   the file system said no
//! └── UsageError                the request itself is not well formed
//! ```
//!
//! Every error has one [`Diagnostic`] (more where several things are wrong at once) with a [`Code`], a place and a
//! hint, a Rust type to match on, and a JSON form. Errors are made where they are noticed; no stage rewrites another's.

mod code;
pub mod details;
mod diagnostic;
mod hint;
mod masked;
mod panic;
mod printable;
mod report;

use std::fmt;
use std::sync::Arc;

use serde_json::{Map, Value, json};

pub use code::Code;
pub use diagnostic::{Diagnostic, Severity};
pub use hint::Hint;
pub use masked::without_secrets;
pub use panic::catch_panic;
pub use printable::is_hidden;
pub use printable::{escaped_line, escaped_lines, printable, printable_lines, shell_word};
pub use report::report;

/// The result of nearly everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What kind of error it is: the name under `type` in its JSON form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No place offers this id.
    PromptNotFound,
    /// Several places offer this id without a recorded choice.
    PromptConflict,
    /// A prompt's files cannot be understood.
    PromptRead,
    /// Variables are missing or of the wrong type.
    PromptValidation,
    /// The template failed while it ran.
    PromptRender,
    /// A hook or a variable provider failed, or cannot run here.
    Hook,
    /// Code of a pack has not been approved.
    PromptApprovalRequired,
    /// The value of a strict input looks like a role marker.
    StrictViolation,
    /// The engine, parser or provider that is named is not registered.
    Invoker,
    /// A provider cannot take what a prompt says.
    Wire,
    /// A provider's reply cannot be understood, or says that it failed.
    Reply,
    /// Overrides cannot be understood, or do not fit the prompt that they are for.
    Overrides,
    /// A reply does not hold what a prompt's outputs ask for.
    OutputParse,
    /// A model wants to see more of the prompt.
    VisibilityExpansionRequired,
    /// No space has this item.
    ItemNotFound,
    /// An item differs from what was signed.
    Integrity,
    /// An item cannot be run, or failed.
    Execute,
    /// A pack is not acceptable.
    Pack,
    /// One of Cuebook's own files is wrong.
    Config,
    /// A limit was reached.
    Limit,
    /// The file system said no.
    Io,
    /// The request itself is not well formed.
    Usage,
}

impl ErrorKind {
    /// The name that scripts and other languages know it by.
    pub fn name(self) -> &'static str {
        match self {
            ErrorKind::PromptNotFound => "PromptNotFoundError",
            ErrorKind::PromptConflict => "PromptConflictError",
            ErrorKind::PromptRead => "PromptReadError",
            ErrorKind::PromptValidation => "PromptValidationError",
            ErrorKind::PromptRender => "PromptRenderError",
            ErrorKind::Hook => "PromptHookError",
            ErrorKind::PromptApprovalRequired => "PromptApprovalRequired",
            ErrorKind::StrictViolation => "StrictViolation",
            ErrorKind::Invoker => "InvokerError",
            ErrorKind::Wire => "WireError",
            ErrorKind::Reply => "ReplyError",
            ErrorKind::Overrides => "PromptOverridesError",
            ErrorKind::OutputParse => "OutputParseError",
            ErrorKind::VisibilityExpansionRequired => "VisibilityExpansionRequired",
            ErrorKind::ItemNotFound => "ItemNotFoundError",
            ErrorKind::Integrity => "IntegrityError",
            ErrorKind::Execute => "ExecuteError",
            ErrorKind::Pack => "PackError",
            ErrorKind::Config => "ConfigError",
            ErrorKind::Limit => "LimitError",
            ErrorKind::Io => "IoError",
            ErrorKind::Usage => "UsageError",
        }
    }
}

/// An error of any stage.
///
/// `Display` is one line. `Debug` is the report with excerpts, so that a `main` that returns a `Result` prints something readable.
///
/// ```
/// use cuebook_text::error::{Code, Diagnostic, Error, ErrorKind, Hint};
///
/// let hint = Hint::run("write a number", "cuebook serve --port 8080");
/// let finding = Diagnostic::new(Code::BadInput, "the port is not a number").hint(hint);
/// let error = Error::new(ErrorKind::Usage, finding);
/// assert_eq!((error.kind(), error.code()), (ErrorKind::Usage, Code::BadInput));
/// assert_eq!(error.diagnostic().advice(), Some("write a number"));
/// assert!(error.report(false).contains("the port is not a number"));
///
/// // Several findings, fields for programs, and the error that caused it:
/// let other = Diagnostic::new(Code::BadInput, "the host is empty");
/// let error = error.and(other.clone()).with("port", "eighty").caused_by("eighty".parse::<u16>().unwrap_err());
/// assert_eq!((error.diagnostics().len(), error.field("port").unwrap()), (2, &"eighty".into()));
/// assert!(std::error::Error::source(&error).is_some());
/// assert_eq!(Error::all(ErrorKind::Usage, vec![other]).to_json()["error"]["type"], "UsageError");
/// ```
#[derive(Clone)]
pub struct Error(Box<Inner>);

#[derive(Clone)]
struct Inner {
    kind: ErrorKind,
    diagnostics: Vec<Diagnostic>,
    fields: Map<String, Value>,
    source: Option<Arc<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error with its one finding.
    pub fn new(kind: ErrorKind, diagnostic: Diagnostic) -> Error {
        Error(Box::new(Inner { kind, diagnostics: vec![diagnostic], fields: Map::new(), source: None }))
    }

    /// An error with several findings. There is always one: an error about nothing says so.
    pub fn all(kind: ErrorKind, mut diagnostics: Vec<Diagnostic>) -> Error {
        if diagnostics.is_empty() {
            diagnostics.push(Diagnostic::new(Code::RenderFailed, "unknown error"));
        }
        Error(Box::new(Inner { kind, diagnostics, fields: Map::new(), source: None }))
    }

    /// What a program reports that lacks a cargo feature of `cuebook`: what it cannot do, as in `read Python`, and the feature.
    #[doc(hidden)]
    pub fn missing_feature(kind: ErrorKind, cannot: &str, feature: &str) -> Error {
        let message =
            format!("this program cannot {cannot}, because it was built without the feature `{feature}`");
        let hint = format!("enable the feature `{feature}` of the crate `cuebook`");
        Error::new(kind, Diagnostic::new(Code::Unreadable, message).hint(hint)).with("feature", feature)
    }

    /// The same error with another first finding.
    #[doc(hidden)]
    pub fn replaced(mut self, diagnostic: Diagnostic) -> Error {
        self.0.diagnostics[0] = diagnostic;
        self
    }

    /// The same error with each of its findings changed.
    pub fn map(mut self, change: impl FnMut(Diagnostic) -> Diagnostic) -> Error {
        self.0.diagnostics = self.0.diagnostics.into_iter().map(change).collect();
        self
    }

    /// Adds a further finding of the same error.
    pub fn and(mut self, diagnostic: Diagnostic) -> Error {
        self.0.diagnostics.push(diagnostic);
        self
    }

    /// Adds something that the error carries: it stands beside `message` in the JSON form.
    pub fn with(mut self, name: &str, value: impl serde::Serialize) -> Error {
        let value = serde_json::to_value(value).unwrap_or(Value::Null);
        self.0.fields.insert(name.to_owned(), value);
        self
    }

    /// Keeps the error that caused this one, for [`source`](std::error::Error::source).
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
        self.0.source = Some(Arc::from(source.into()));
        self
    }

    /// What kind of error it is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The code of its first finding.
    pub fn code(&self) -> Code {
        self.diagnostic().code
    }

    /// Its first finding.
    pub fn diagnostic(&self) -> &Diagnostic {
        &self.0.diagnostics[0]
    }

    /// All its findings.
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.0.diagnostics
    }

    /// All its findings, for `check`.
    #[doc(hidden)]
    pub fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.0.diagnostics
    }

    /// Something that the error carries, by name.
    pub fn field(&self, name: &str) -> Option<&Value> {
        self.0.fields.get(name)
    }

    /// All findings with their excerpts and hints, as the command line prints them.
    pub fn report(&self, colour: bool) -> String {
        report(self.diagnostics(), colour)
    }

    /// The document that a script gets: `{"status": "error", "error": {…}}`.
    pub fn to_json(&self) -> Value {
        let mut error = Map::new();
        error.insert("type".into(), json!(self.kind().name()));
        error.extend(self.diagnostic().to_json());
        if self.0.diagnostics.len() > 1 {
            let all = self.0.diagnostics.iter().map(|d| Value::Object(d.to_json())).collect();
            error.insert("diagnostics".into(), Value::Array(all));
        }
        error.extend(self.0.fields.clone());
        json!({"status": "error", "error": error})
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.kind().name(), self.diagnostic())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Programs print this, and they have no command line.
        let advised: Vec<Diagnostic> = self
            .diagnostics()
            .iter()
            .map(|finding| {
                let hint = finding.advice().map(Hint::from);
                Diagnostic { hint, ..finding.clone() }
            })
            .collect();
        write!(f, "{}\n{}", self.kind().name(), report(&advised, false).trim_end())
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source: &(dyn std::error::Error + 'static) = self.0.source.as_deref()?;
        Some(source)
    }
}

/// The names nearest to a misspelt one, best first, for hints.
pub fn nearest<'n>(wanted: &str, names: impl IntoIterator<Item = &'n str>) -> Vec<String> {
    let wanted_lower = wanted.to_lowercase();
    let mut scored: Vec<(f64, &str)> = names
        .into_iter()
        // Names of very unlike length are not near, and comparing long ones takes long.
        .filter(|name| name.len() <= 4 * wanted.len() + 64 && wanted.len() <= 4 * name.len() + 64)
        .filter_map(|name| {
            let lower = name.to_lowercase();
            let score = strsim::jaro_winkler(&wanted_lower, &lower);
            // A name of one or two letters is part of nearly everything.
            let part_of = |part: &str, whole: &str| part.len() >= 3 && whole.contains(part);
            let contained = part_of(&wanted_lower, &lower) || part_of(&lower, &wanted_lower);
            (score >= 0.8 || contained).then_some((score, name))
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.dedup_by(|a, b| a.1 == b.1);
    scored.into_iter().take(3).map(|(_, name)| name.to_owned()).collect()
}

/// `did you mean …?` for the nearest names, if there are any.
pub fn did_you_mean(nearest: &[String]) -> Option<String> {
    let quoted: Vec<String> = nearest.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => None,
        [one] => Some(format!("did you mean {one}?")),
        [first @ .., last] => Some(format!("did you mean {} or {last}?", first.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_names_come_best_first_and_unlike_ones_not_at_all() {
        let names = ["general_system", "coding_system", "memory_update"];
        assert_eq!(nearest("general_sytem", names), ["general_system"]);
        assert_eq!(nearest("system", names), ["coding_system", "general_system"]);
        assert!(nearest("zebra", names).is_empty());
        assert_eq!(nearest("uper", ["e", "d", "upper"]), ["upper"]);
    }

    #[test]
    fn debug_shows_the_report_and_not_the_whole_source() {
        let text = format!("{}{{{{ x|uper }}}}\n", "a line\n".repeat(500));
        let source = crate::source::Source::new("a.md", text.clone());
        let at = text.len() - 8;
        let finding = Diagnostic::new(Code::TemplateSyntax, "unknown filter `uper`")
            .at(source.place(at..at + 4))
            .hint("did you mean `upper`?");
        let shown = format!("{:?}", Error::new(ErrorKind::PromptRead, finding));
        for part in ["PromptReadError\n", "CB304", "a.md:501:6", "{{ x|uper }}", "did you mean `upper`?"] {
            assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
        }
        assert!(shown.len() < 500, "{} bytes:\n{shown}", shown.len());
    }

    #[test]
    fn every_code_has_its_page_and_its_own_name() {
        let mut names: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Code::ALL.len(), "two codes share a name");
        for code in Code::ALL {
            let heading = format!("# {code}: {}", code.name());
            assert!(code.page().starts_with(&heading), "the page of {code} does not begin with `{heading}`");
            assert!(code.page().contains("## What to do"), "the page of {code} does not say what to do");
        }
    }
}
