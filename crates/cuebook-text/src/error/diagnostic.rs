//! One finding: what is wrong, how bad it is, where, and the way out.
//!
//! Errors carry one or more of these, and `check` returns a list of them, so that both look the same to a reader, to a
//! script and to the tests.

use std::fmt;

use serde_json::{Map, Value, json};

use super::{Code, Hint};
use crate::source::Place;

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// Worth knowing.
    Note,
    /// Works, but probably not as meant.
    Warning,
    /// Does not work.
    Error,
}

impl Severity {
    /// The word for it, in lower case.
    pub fn as_str(self) -> &'static str {
        match self {
            Severity::Note => "note",
            Severity::Warning => "warning",
            Severity::Error => "error",
        }
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// One finding.
///
/// ```
/// use cuebook_text::error::{Code, Diagnostic, Severity};
/// use cuebook_text::source::Source;
///
/// let source = Source::new("note.md", "Hello {{ nmae }}!");
/// let finding = Diagnostic::new(Code::UndeclaredVariable, "undeclared variable `nmae`")
///     .at(source.place(9..13))
///     .label("here")
///     .related(source.place(0..5), "in this sentence")
///     .severity(Severity::Warning)
///     .hint("did you mean `name`?");
/// assert_eq!((finding.file_name(), finding.advice()), (Some("note.md"), Some("did you mean `name`?")));
/// assert!(finding.commands().is_empty());
/// assert_eq!(finding.to_json()["line"], 1);
/// ```
#[derive(Debug, Clone)]
pub struct Diagnostic {
    /// What kind of finding it is; has a page of its own.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, in one sentence without a full stop.
    pub message: String,
    /// Where, if it is in a text.
    pub place: Option<Place>,
    /// What stands under the underlined excerpt.
    pub label: Option<String>,
    /// Other places that belong to it, each with its label.
    pub related: Vec<(Place, String)>,
    /// The file, where there is no place in a text (an unreadable file, a folder).
    pub file: Option<String>,
    /// What to do about it.
    pub hint: Option<Hint>,
}

impl Diagnostic {
    /// A finding of the given code with the severity that the code has by default.
    pub fn new(code: Code, message: impl Into<String>) -> Diagnostic {
        Diagnostic {
            code,
            severity: code.severity(),
            message: message.into(),
            place: None,
            label: None,
            related: Vec::new(),
            file: None,
            hint: None,
        }
    }

    /// Says where.
    pub fn at(mut self, place: Place) -> Self {
        self.place = Some(place);
        self
    }

    /// Says what stands under the excerpt.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = Some(label.into());
        self
    }

    /// Adds another place.
    pub fn related(mut self, place: Place, label: impl Into<String>) -> Self {
        self.related.push((place, label.into()));
        self
    }

    /// Adds the place where the file is included that this is about, unless it is there already.
    #[doc(hidden)]
    pub fn included(self, place: &Place) -> Self {
        let is_reported = self.place.iter().chain(self.related.iter().map(|(place, _)| place));
        match is_reported.into_iter().any(|reported| reported.is_same(place)) {
            true => self,
            false => self.related(place.clone(), "included here"),
        }
    }

    /// Names the file where there is no text to show.
    pub fn file(mut self, file: impl Into<String>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// Says what to do.
    pub fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// What to do, without the spelling of the command line. [`commands`](Diagnostic::commands) has that.
    pub fn advice(&self) -> Option<&str> {
        self.hint.as_ref()?.advice.as_deref()
    }

    /// The commands of `cuebook` that do it.
    pub fn commands(&self) -> &[String] {
        self.hint.as_ref().map_or(&[], |hint| &hint.commands)
    }

    /// Says what to do, if there is something to say.
    #[doc(hidden)]
    pub fn hint_opt(mut self, hint: Option<impl Into<Hint>>) -> Self {
        self.hint = hint.map(Into::into).or(self.hint);
        self
    }

    /// The same finding with another severity.
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// The file it is about, from the place or by name.
    pub fn file_name(&self) -> Option<&str> {
        self.place.as_ref().map(Place::file).or(self.file.as_deref())
    }

    /// The finding as scripts see it.
    pub fn to_json(&self) -> Map<String, Value> {
        let mut object = Map::new();
        object.insert("code".into(), json!(self.code.as_str()));
        object.insert("rule".into(), json!(self.code.name()));
        object.insert("severity".into(), json!(self.severity.as_str()));
        object.insert("message".into(), json!(self.message));
        object.insert("file".into(), json!(self.file_name()));
        let (line, column) = match &self.place {
            Some(place) => (json!(place.line()), json!(place.column())),
            None => (Value::Null, Value::Null),
        };
        object.insert("line".into(), line);
        object.insert("column".into(), column);
        if let Some(place) = &self.place {
            let range = place.source().file_range(place.range());
            object.insert("range".into(), json!([range.start, range.end]));
            object.insert("excerpt".into(), json!(excerpt_line(place)));
        }
        if let Some(label) = &self.label {
            object.insert("label".into(), json!(label));
        }
        if !self.related.is_empty() {
            let related: Vec<Value> = self
                .related
                .iter()
                .map(|(place, label)| {
                    json!({"file": place.file(), "line": place.line(), "column": place.column(), "label": label})
                })
                .collect();
            object.insert("related".into(), Value::Array(related));
        }
        if let Some(hint) = &self.hint {
            hint.add_to(&mut object);
        }
        object
    }
}

/// The first line that a place touches, cut to a length that a report can show.
fn excerpt_line(place: &Place) -> String {
    let text = place.source().text();
    let start = text[..place.range().start].rfind('\n').map_or(0, |newline| newline + 1);
    let line = text[start..].split('\n').next().unwrap_or_default();
    super::without_secrets(line).chars().take(200).collect()
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.place, &self.file) {
            (Some(place), _) => write!(f, "{place}: ")?,
            (None, Some(file)) => write!(f, "{file}: ")?,
            (None, None) => {}
        }
        write!(f, "{} [{}]", self.message, self.code)
    }
}
