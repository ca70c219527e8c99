//! What Python makes of texts and values.

use serde_json::Value as Json;

pub use cuebook_template::python::{float_repr, is_space};

/// What Python's `str` gives for a value, at most so many bytes.
pub(crate) fn to_str(value: &Json, limit: usize) -> Result<String, cuebook_template::Error> {
    cuebook_template::python::to_str(value, limit)
}

/// What Python's `repr` gives for a text.
pub(crate) fn text_repr(text: &str) -> String {
    let list = Json::Array(vec![Json::from(text)]);
    // Without a limit nothing is too long.
    let written = to_str(&list, usize::MAX).unwrap_or_default();
    written.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(&written).to_owned()
}

/// The lines of a text as `str.splitlines` cuts them, with their ends.
pub(crate) fn split_lines(text: &str) -> Vec<&str> {
    let lines = cuebook_template::python::line_ranges(text, true);
    lines.into_iter().filter_map(|(start, end)| text.get(start..end)).collect()
}
