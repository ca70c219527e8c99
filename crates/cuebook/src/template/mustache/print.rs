//! How values print.
//!
//! Portably: `true` and `false`, nothing for null and for what is not there, whole numbers without a fraction, other
//! numbers with as many digits as it takes to read them back, and lists and objects as compact JSON. Nothing in a value is
//! ever read as a tag.

use minijinja::Value;
use minijinja::value::ValueKind;

use super::tree::is_list;
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
    /// The value stands for an error.
    Invalid(String),
}

impl From<Full> for Unprintable {
    fn from(_: Full) -> Self {
        Unprintable::Full
    }
}

/// Writes a value, with `& < > "` as HTML entities if `escape` says so.
pub(super) fn print(sink: &mut Sink, value: &Value, escape: bool, longest: usize) -> Result<(), Unprintable> {
    // Nearly everything that is printed is a string.
    if let Some(text) = value.as_str() {
        return Ok(write(sink, text, escape)?);
    }
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(()),
        ValueKind::Seq | ValueKind::Iterable | ValueKind::Map => {
            let mut json = Json { text: String::new(), longest };
            json.value(value, 0)?;
            Ok(write(sink, &json.text, escape)?)
        }
        _ => Ok(write(sink, &scalar(value)?, escape)?),
    }
}

/// A value that is neither a list nor an object, as text.
pub(super) fn scalar(value: &Value) -> Result<String, Unprintable> {
    Ok(match value.kind() {
        ValueKind::Undefined | ValueKind::None => String::new(),
        ValueKind::Bool => value.is_true().to_string(),
        ValueKind::Number => number(value),
        ValueKind::Bytes => String::from_utf8_lossy(value.as_bytes().unwrap_or_default()).into_owned(),
        ValueKind::Invalid => return Err(Unprintable::Invalid(value.to_string())),
        _ => value.to_string(),
    })
}

/// Integers whole, whatever their size; other numbers with the fewest digits that read back as the same number.
fn number(value: &Value) -> String {
    match (value.is_integer(), f64::try_from(value.clone())) {
        (false, Ok(number)) if number == f64::INFINITY => "Infinity".to_owned(),
        (false, Ok(number)) if number == f64::NEG_INFINITY => "-Infinity".to_owned(),
        (false, Ok(number)) => number.to_string(),
        _ => value.to_string(),
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

struct Json {
    text: String,
    longest: usize,
}

impl Json {
    fn value(&mut self, value: &Value, depth: usize) -> Result<(), Unprintable> {
        if depth > DEPTH {
            return Err(Unprintable::TooLarge("levels of nesting", DEPTH));
        }
        match value.kind() {
            ValueKind::Undefined | ValueKind::None => self.push("null"),
            ValueKind::Bool | ValueKind::Number => {
                let text = scalar(value)?;
                // JSON has no word for what is not a number, or has no end.
                let finite = !matches!(text.as_str(), "NaN" | "Infinity" | "-Infinity");
                self.push(if finite { &text } else { "null" })
            }
            ValueKind::Map => self.object(value, depth),
            _ if is_list(value) => self.list(value, depth),
            _ => match value.as_str() {
                Some(text) => self.string(text),
                None => self.string(&scalar(value)?),
            },
        }
    }

    fn list(&mut self, value: &Value, depth: usize) -> Result<(), Unprintable> {
        self.push("[")?;
        for (index, item) in value.try_iter().into_iter().flatten().enumerate() {
            if index > 0 {
                self.push(",")?;
            }
            self.value(&item, depth + 1)?;
        }
        self.push("]")
    }

    fn object(&mut self, value: &Value, depth: usize) -> Result<(), Unprintable> {
        self.push("{")?;
        let pairs = value.as_object().and_then(|object| object.try_iter_pairs());
        for (index, (key, item)) in pairs.into_iter().flatten().enumerate() {
            if index > 0 {
                self.push(",")?;
            }
            match key.as_str() {
                Some(key) => self.string(key)?,
                None => self.string(&scalar(&key)?)?,
            }
            self.push(":")?;
            self.value(&item, depth + 1)?;
        }
        self.push("}")
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
