//! A template as words and names, if it is no more than that.
//!
//! Every engine can show text and the value of a name; that much can be said in any other notation. Each engine takes its own
//! templates apart here, in `parts.rs` beside its reader, so that there is one idea of what its signs mean. Nothing here renders.

#![expect(missing_docs, reason = "the fields of variants are described with their variants")]

use std::ops::Range;

/// What a template writes next. Ranges are bytes of what was taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TemplatePart {
    /// Text of the author, as it shows.
    Text { text: String, range: Range<usize> },
    /// The value of a name.
    Value {
        name: String,
        absent: MissingValue,
        /// Whether it is escaped for HTML.
        escaped: bool,
        range: Range<usize>,
    },
    /// What the environment says, and what shows if it says nothing.
    Environment { name: String, otherwise: String, range: Range<usize> },
}

/// What shows where there is no value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingValue {
    /// Nothing.
    Nothing,
    /// It is an error.
    Fails,
    /// This text.
    Shows(String),
}

/// What makes a template more than words and names, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotPlain {
    pub range: Range<usize>,
    /// In a few words, as in ``a loop``.
    pub what: String,
}

/// What a Mustache template does, beyond words and names: its sections, and parts of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Branch {
    /// Text of the author.
    Text(String),
    /// A value by the parts of its name; none for `.`.
    Value { keys: Vec<String>, escaped: bool, range: Range<usize> },
    /// A section.
    Section { keys: Vec<String>, inverted: bool, body: Vec<Branch>, range: Range<usize> },
}
