//! How values print.
//!
//! Portably: `true` and `false`, nothing for null and for what is not there, whole numbers without a fraction, other
//! numbers with as many digits as it takes to read them back, and lists and objects as compact JSON. Nothing in a value is
//! ever read as a tag.

use std::borrow::Cow;

use serde_json::{Number, Value as Json};

use crate::json::write_string;
use crate::template::sink::{Full, Sink};

/// Values nest no deeper than this where they print as JSON: deeper ones would use up the stack.
const DEPTH: usize = 128;

/// Why a value does not print.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unprintable {
    /// The text is longer than the limit.
    Full,
    /// The value alone is longer than this many bytes, or nests deeper than this many levels.
    TooLarge(&'static str, usize),
}

impl From<Full> for Unprintable {
    fn from(_: Full) -> Self {
        Unprintable::Full
    }
}

/// Writes a value, with `& < > "` as HTML entities if `escape` says so.
pub(super) fn print(sink: &mut Sink, value: &Json, escape: bool, longest: usize) -> Result<(), Unprintable> {
    match scalar(value) {
        Some(text) => Ok(write(sink, &text, escape)?),
        None => {
            let mut compact = Compact { text: String::new(), longest };
            compact.value(value, 0)?;
            Ok(write(sink, &compact.text, escape)?)
        }
    }
}

/// A value as text; `None` for a list and an object.
pub(super) fn scalar(value: &Json) -> Option<Cow<'_, str>> {
    Some(match value {
        Json::Null => "".into(),
        Json::Bool(truth) => if *truth { "true" } else { "false" }.into(),
        Json::Number(value) => number(value).into(),
        Json::String(text) => text.into(),
        Json::Array(_) | Json::Object(_) => return None,
    })
}

/// Integers whole, whatever their size; other numbers with the fewest digits that read back as the same number.
fn number(value: &Number) -> String {
    match value.as_f64().filter(|_| value.is_f64()) {
        Some(number) => number.to_string(),
        None => value.to_string(),
    }
}

fn write(sink: &mut Sink, text: &str, escape: bool) -> Result<(), Full> {
    let bytes = text.as_bytes();
    if !escape {
        return sink.value(bytes);
    }
    let mut from = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let entity: &[u8] = match byte {
            b'&' => b"&amp;",
            b'<' => b"&lt;",
            b'>' => b"&gt;",
            b'"' => b"&quot;",
            _ => continue,
        };
        sink.value(&bytes[from..at])?;
        sink.value(entity)?;
        from = at + 1;
    }
    sink.value(&bytes[from..])
}

/// A value under construction as compact JSON.
struct Compact {
    text: String,
    longest: usize,
}

impl Compact {
    fn value(&mut self, value: &Json, depth: usize) -> Result<(), Unprintable> {
        if depth > DEPTH {
            return Err(Unprintable::TooLarge("levels of nesting", DEPTH));
        }
        match value {
            Json::Null => self.push("null"),
            Json::Bool(truth) => self.push(if *truth { "true" } else { "false" }),
            Json::Number(value) => self.push(&number(value)),
            Json::String(text) => self.string(text),
            Json::Array(items) => {
                self.push("[")?;
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        self.push(",")?;
                    }
                    self.value(item, depth + 1)?;
                }
                self.push("]")
            }
            Json::Object(entries) => {
                self.push("{")?;
                for (index, (key, item)) in entries.iter().enumerate() {
                    if index > 0 {
                        self.push(",")?;
                    }
                    self.string(key)?;
                    self.push(":")?;
                    self.value(item, depth + 1)?;
                }
                self.push("}")
            }
        }
    }

    fn string(&mut self, text: &str) -> Result<(), Unprintable> {
        write_string(text, |piece| self.push(piece))
    }

    fn push(&mut self, text: &str) -> Result<(), Unprintable> {
        if self.text.len() + text.len() > self.longest {
            return Err(Unprintable::TooLarge("bytes of a string", self.longest));
        }
        self.text.push_str(text);
        Ok(())
    }
}
