//! How much of a trace is kept. A trace must not be what fills memory or a disk; what is left out leaves a mark.

use serde_json::Value;

/// How much of a trace is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceLimits {
    /// How deep frames nest. Deeper ones are counted only.
    pub depth: usize,
    /// How many frames a trace has. Later ones are counted only.
    pub frames: usize,
    /// How many bytes of one value are kept.
    pub value_bytes: usize,
    /// How many bytes the values of one trace have together.
    pub trace_bytes: usize,
}

impl Default for TraceLimits {
    fn default() -> TraceLimits {
        // A page of inputs and a long answer fit; a megabyte of base64 does not.
        TraceLimits { depth: 64, frames: 10_000, value_bytes: 256 * 1024, trace_bytes: 64 * 1024 * 1024 }
    }
}

impl TraceLimits {
    /// Cuts a value down to what one value, and the rest of the trace, has room for; says how many bytes it has now.
    pub(crate) fn cut(&self, value: &mut Value, room: usize) -> usize {
        let most = self.value_bytes.min(room);
        let size = size_of(value);
        if size <= most {
            return size;
        }
        // Long texts first: an object keeps its form if one of its texts is what is too long.
        if !value.is_string() {
            let each = most / 4;
            cut_texts(value, each);
            let size = size_of(value);
            if size <= most {
                return size;
            }
        }
        let text = match value.take() {
            Value::String(text) => text,
            other => other.to_string(),
        };
        *value = Value::String(cut_text(&text, most));
        size_of(value)
    }
}

fn cut_texts(value: &mut Value, most: usize) {
    match value {
        Value::String(text) if text.len() > most => *text = cut_text(text, most),
        Value::Array(items) => items.iter_mut().for_each(|item| cut_texts(item, most)),
        Value::Object(members) => members.values_mut().for_each(|member| cut_texts(member, most)),
        _ => {}
    }
}

/// The beginning of a text, and a mark that says so.
pub(crate) fn cut_text(text: &str, most: usize) -> String {
    let end = text.floor_char_boundary(most);
    format!("{}… [cut: {end} of {} bytes]", &text[..end], text.len())
}

/// About how many bytes a value takes when it is written.
fn size_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size_of(item) + 1).sum::<usize>() + 2,
        Value::Object(members) => {
            members.iter().map(|(name, it)| name.len() + 4 + size_of(it)).sum::<usize>() + 2
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_long_text_is_cut_between_letters_and_says_so() {
        let limits = TraceLimits { value_bytes: 8, ..TraceLimits::default() };
        let mut value = json!("ééééééééé");
        limits.cut(&mut value, usize::MAX);
        assert_eq!(value, "éééé… [cut: 8 of 18 bytes]");
    }

    #[test]
    fn an_object_keeps_its_form_when_one_text_is_too_long() {
        let limits = TraceLimits { value_bytes: 200, ..TraceLimits::default() };
        let mut value = json!({"city": "Oslo", "file": "x".repeat(1000)});
        limits.cut(&mut value, usize::MAX);
        assert_eq!(value["city"], "Oslo");
        assert!(value["file"].as_str().unwrap().ends_with("x… [cut: 50 of 1000 bytes]"), "{value}");
    }

    #[test]
    fn an_object_of_many_members_becomes_the_beginning_of_its_text() {
        let limits = TraceLimits { value_bytes: 20, ..TraceLimits::default() };
        let mut value = json!({"numbers": (0..100).collect::<Vec<_>>()});
        limits.cut(&mut value, usize::MAX);
        assert!(value.as_str().unwrap().starts_with("{\"numbers\":[0,1,2,3,… [cut: 20 of "), "{value}");
    }

    #[test]
    fn content_that_fits_is_unchanged() {
        let mut value = json!({"a": [1, "b"]});
        let size = TraceLimits::default().cut(&mut value, usize::MAX);
        assert_eq!(value, json!({"a": [1, "b"]}));
        assert!(size > 0);
    }
}
