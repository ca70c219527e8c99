//! How large one value may grow.
//!
//! Fuel bounds the steps of a template, not the bytes that one step may make: a format width is a number, and a list of
//! two references to one list doubles what printing it gives. Sizes are therefore checked before a value is built.

use std::fmt;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, State, Value};

use super::Style;
use crate::template::meter;

/// How deeply values may nest where they are walked: deeper ones would use up the stack before anything else.
pub(super) const DEPTH: usize = 128;

/// How many strings of the largest size one render may make in all. Without it, a loop could keep as many as it has
/// turns.
const LARGEST_STRINGS: usize = 32;

/// Values smaller than this are not counted: what fuel pays for bounds them.
pub(super) const SMALL: usize = 256;

/// How large one value may grow, and in which style it becomes text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueLimits {
    /// Bytes of one string.
    pub string_bytes: usize,
    /// Items of one sequence.
    pub items: usize,
    /// How it prints and compares.
    pub style: Style,
}

impl Default for ValueLimits {
    fn default() -> ValueLimits {
        ValueLimits { string_bytes: 8 * 1024 * 1024, items: 1_000_000, style: Style::Python }
    }
}

/// The source of an error that says that a value would grow beyond its limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ValueTooLarge {
    /// What is limited: bytes of a string, items of a sequence, levels of nesting, bytes of a render.
    pub what: &'static str,
    /// The limit that would be passed.
    pub limit: usize,
}

impl ValueTooLarge {
    pub(super) fn error(self) -> Error {
        Error::new(ErrorKind::InvalidOperation, self.to_string()).with_source(self)
    }
}

impl fmt::Display for ValueTooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the value is too large: the limit is {} {}", self.limit, self.what)
    }
}

impl std::error::Error for ValueTooLarge {}

impl ValueLimits {
    /// Refuses a string of so many bytes.
    pub(super) fn check_bytes(self, bytes: usize) -> Result<(), Error> {
        if bytes > self.string_bytes {
            return Err(ValueTooLarge { what: "bytes of a string", limit: self.string_bytes }.error());
        }
        Ok(())
    }

    /// Refuses a sequence of so many items.
    pub(super) fn check_items(self, items: usize) -> Result<(), Error> {
        if items > self.items {
            return Err(ValueTooLarge { what: "items of a sequence", limit: self.items }.error());
        }
        Ok(())
    }
}

/// The bytes that one render has made so far.
#[derive(Default)]
struct Made(usize);

/// Counts a value that was made, or a text that was printed, against what one render may make in all.
pub(super) fn charge(state: &mut State<'_, '_>, limits: ValueLimits, bytes: usize) -> Result<(), Error> {
    if bytes < SMALL {
        return Ok(());
    }
    meter::text(bytes)?;
    let made = state.get_or_insert_extension_with(Made::default);
    made.0 = made.0.saturating_add(bytes);
    let limit = limits.string_bytes.saturating_mul(LARGEST_STRINGS);
    if made.0 > limit {
        return Err(ValueTooLarge { what: "bytes made in one render", limit }.error());
    }
    Ok(())
}

/// Counts what a filter, an operator or a method gave.
pub(in crate::template::jinja) fn charged(
    state: &mut State<'_, '_>,
    limits: ValueLimits,
    value: Value,
) -> Result<Value, Error> {
    let bytes = match value.kind() {
        ValueKind::String | ValueKind::Bytes => value.as_bytes().map_or(0, <[u8]>::len),
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
            let items = value.len().unwrap_or(0);
            meter::items(items)?;
            items.saturating_mul(size_of::<Value>())
        }
        _ => 0,
    };
    charge(state, limits, bytes)?;
    cap(value, limits)
}

/// Refuses to walk into a value that is nested too deeply, and pays for what is inside of another value.
pub(super) fn check_depth(depth: usize) -> Result<(), Error> {
    if depth > DEPTH {
        return Err(ValueTooLarge { what: "levels of nesting", limit: DEPTH }.error());
    }
    meter::items(usize::from(depth > 0))
}

/// Passes a value through if its string is short enough, its sequence has few enough items.
pub(super) fn cap(value: Value, limits: ValueLimits) -> Result<Value, Error> {
    match value.kind() {
        ValueKind::String | ValueKind::Bytes => {
            limits.check_bytes(value.as_bytes().map_or(0, <[u8]>::len))?
        }
        ValueKind::Seq | ValueKind::Map | ValueKind::Iterable => {
            limits.check_items(value.len().unwrap_or(0))?
        }
        _ => {}
    }
    Ok(value)
}

/// A string that refuses to grow beyond the limit.
pub(super) struct Text {
    text: String,
    limits: ValueLimits,
}

impl Text {
    pub(super) fn new(limits: ValueLimits) -> Text {
        Text { text: String::new(), limits }
    }

    /// The style of what is written.
    pub(super) fn style(&self) -> Style {
        self.limits.style
    }

    pub(super) fn push_str(&mut self, more: &str) -> Result<(), Error> {
        meter::text(more.len())?;
        self.limits.check_bytes(self.text.len().saturating_add(more.len()))?;
        self.text.push_str(more);
        Ok(())
    }

    pub(super) fn push(&mut self, more: char) -> Result<(), Error> {
        self.push_str(more.encode_utf8(&mut [0; 4]))
    }

    /// Adds a character many times, asking for the room first.
    pub(super) fn fill(&mut self, with: char, times: usize) -> Result<(), Error> {
        let added = times.saturating_mul(with.len_utf8());
        self.limits.check_bytes(self.text.len().saturating_add(added))?;
        meter::text(added)?;
        self.text.extend(std::iter::repeat_n(with, times));
        Ok(())
    }

    pub(super) fn into_string(self) -> String {
        self.text
    }
}
