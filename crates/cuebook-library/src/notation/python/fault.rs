//! Why the value of a name is not known, and the error that says so.
//!
//! A module is full of names whose values are never asked for, so a reason is kept small until it is needed.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Code, Diagnostic, Error, ErrorKind};
use crate::source::Source;

/// Why, and where.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    why: UnknownReason,
    range: Range<usize>,
    /// The other place that belongs to it: the first of two keys, the assignment before a change.
    other: Option<Range<usize>>,
}

/// Why the value of a name is not known.
#[derive(Debug, Clone)]
pub(super) enum UnknownReason {
    /// Part of it is an expression of this kind.
    Computed(&'static str),
    /// Part of it is `*x` or `**x`.
    Unpacks,
    /// Part of it is written out but has no counterpart in JSON; what it is, and what to write instead.
    Uncarriable(&'static str, &'static str),
    /// A key of this type.
    KeyNotString(&'static str),
    /// A key that the dict has already.
    DuplicateKey(String),
    IntegerTooLarge,
    FloatTooLarge,
    LoneSurrogate,
    /// Changed in place or by an augmented assignment after it was assigned.
    Changed,
    Deleted,
    /// Bound inside a block that begins with this word.
    InBlock(&'static str),
    /// One of several targets, as in `a, b = …`.
    Unpacked,
    /// Assigned by `:=`.
    Walrus,
    Imported,
    /// Perhaps imported by `from x import *`.
    StarImport,
    /// Defined as one of these.
    Defined(&'static str),
}

impl Fault {
    pub(super) fn new(why: UnknownReason, range: Range<usize>) -> Fault {
        Fault { why, range, other: None }
    }

    pub(super) fn with(mut self, other: Range<usize>) -> Fault {
        self.other = Some(other);
        self
    }

    /// The error for a read of the value of this name.
    pub(super) fn to_error(&self, name: &str, source: &Arc<Source>) -> Error {
        let place = source.place(self.range.clone());
        let write_out = format!("write a literal: Cuebook reads {name} without running the file");
        let one_assignment = format!("write the final value as one plain assignment: {name} = …");
        let (code, message, label, hint) = match &self.why {
            UnknownReason::Computed(what) => (
                Code::NotLiteral,
                format!("`{name}` must be a literal, but this is computed ({what})"),
                "known only when the file runs",
                write_out,
            ),
            UnknownReason::Unpacks => (
                Code::NotLiteral,
                format!("`{name}` must be a literal, but this unpacks another value"),
                "known only when the file runs",
                write_out,
            ),
            UnknownReason::Uncarriable(what, instead) => (
                Code::NotLiteral,
                format!("`{name}` must hold plain values, but this is {what}"),
                "not a plain value",
                (*instead).to_owned(),
            ),
            UnknownReason::KeyNotString(kind) => (
                Code::BadDefinition,
                format!("a key in `{name}` must be a string, but this is of type {kind}"),
                "not a string",
                match *kind {
                    "tuple" | "list" | "dict" => "use a string as the key".to_owned(),
                    _ => format!("write it as a string: \"{}\"", place.text()),
                },
            ),
            UnknownReason::DuplicateKey(key) => (
                Code::BadDefinition,
                format!("duplicate key {key:?} in `{name}`"),
                "second one here",
                "remove one of them: Python silently drops the first".to_owned(),
            ),
            UnknownReason::IntegerTooLarge => (
                Code::BadDefinition,
                format!("an integer in `{name}` does not fit into 64 bits"),
                "too large",
                "write it as a string to keep its digits, or as a float".to_owned(),
            ),
            UnknownReason::FloatTooLarge => (
                Code::BadDefinition,
                format!("a float in `{name}` is too large"),
                "Python reads this as infinity",
                "write a number below 1.8e308".to_owned(),
            ),
            UnknownReason::LoneSurrogate => (
                Code::BadDefinition,
                format!("a string in `{name}` has an unpaired surrogate"),
                "half of a surrogate pair",
                "write the character, or \\U and its eight digits".to_owned(),
            ),
            UnknownReason::Changed => (
                Code::NotLiteral,
                format!("`{name}` is changed after it is assigned"),
                "changed here",
                one_assignment,
            ),
            UnknownReason::Deleted => {
                (Code::NotLiteral, format!("`{name}` is deleted"), "deleted here", one_assignment)
            }
            UnknownReason::InBlock(word) => (
                Code::NotLiteral,
                format!("`{name}` is assigned inside a block, so its value is computed"),
                match *word {
                    "if" => "inside an `if`",
                    "for" => "inside a `for`",
                    "while" => "inside a `while`",
                    "with" => "inside a `with`",
                    "try" => "inside a `try`",
                    _ => "inside a `match`",
                },
                format!("assign {name} once, at the top level of the file"),
            ),
            UnknownReason::Unpacked => (
                Code::NotLiteral,
                format!("`{name}` is one of several targets of an assignment"),
                "assigned by unpacking",
                format!("use a separate assignment: {name} = …"),
            ),
            UnknownReason::Walrus => (
                Code::NotLiteral,
                format!("`{name}` is assigned inside an expression"),
                "assigned by `:=`",
                format!("use a separate assignment: {name} = …"),
            ),
            UnknownReason::Imported => (
                Code::NotLiteral,
                format!("`{name}` is imported, and Cuebook does not follow imports"),
                "imported here",
                write_out,
            ),
            UnknownReason::StarImport => (
                Code::NotLiteral,
                format!("`{name}` may come from a star import"),
                "may bind any name",
                format!("import names one by one, or assign {name} after the import"),
            ),
            UnknownReason::Defined(what) => (
                Code::NotLiteral,
                format!("`{name}` must be a value, but this is a {what}"),
                "defined here",
                format!("rename one of them, or write the value as a literal: {name} = …"),
            ),
        };
        let mut diagnostic = Diagnostic::new(code, message).at(place).label(label).hint(hint);
        if let Some(other) = &self.other {
            let label = if matches!(self.why, UnknownReason::DuplicateKey(_)) {
                "first here"
            } else {
                "assigned here"
            };
            diagnostic = diagnostic.related(source.place(other.clone()), label);
        }
        Error::new(ErrorKind::PromptRead, diagnostic)
    }
}
