//! The arguments of a tool call, as a model wrote them.
//!
//! Models wrap JSON in code fences, put words around it and leave commas behind. All of that is forgiven; what is still
//! not an object is an error, because a tool that is called with nothing does something that was not asked for. Every
//! step looks at each byte a fixed number of times.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::{Map, Value as Json};

use super::reply_value::bad;
use crate::error::Result;
use crate::json::kind_of;

/// Understands the arguments of a tool call: as they are, without code fences around them, the first object in them, and
/// that without commas before its closing brackets.
pub fn parse_arguments(text: &str) -> Result<Map<String, Json>> {
    let first = match serde_json::from_str(text) {
        Ok(Json::Object(arguments)) => return Ok(arguments),
        // Whole JSON of another type is what the model meant; there is nothing to look for inside.
        Ok(other) => return Err(refuse(&format!("this is {}", kind_of(&other)))),
        Err(error) => error,
    };
    if text.trim().is_empty() {
        return Err(refuse("it is empty"));
    }
    let inner = unfenced(text);
    let object = first_object(inner).map(|range| &inner[range]);
    let candidates = [
        Some(Cow::Borrowed(inner)),
        object.map(Cow::Borrowed),
        Some(without_trailing_commas(object.unwrap_or(inner))),
    ];
    for candidate in candidates.into_iter().flatten() {
        if let Ok(Json::Object(arguments)) = serde_json::from_str(&candidate) {
            return Ok(arguments);
        }
    }
    Err(refuse(&first.to_string()))
}

fn refuse(why: &str) -> crate::Error {
    let mut error = bad(format!("the arguments of a tool call are not a JSON object: {why}"));
    error = error.with("reason", why);
    error
}

/// What stands inside a code fence, if the text is nothing but one.
pub(super) fn unfenced(text: &str) -> &str {
    let trimmed = text.trim();
    let Some(inner) = trimmed.strip_prefix("```").and_then(|rest| rest.strip_suffix("```")) else {
        return trimmed;
    };
    // The word behind the fence names the language; on one line its letters distinguish it from JSON.
    let inner = inner.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+'));
    inner.trim()
}

/// From the first opening brace to the one that closes it. Braces in strings do not count.
///
/// If the first one is never closed the text was cut off, and an object inside it would be a part that looks whole.
fn first_object(text: &str) -> Option<Range<usize>> {
    let start = text.find('{')?;
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate().skip(start) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' if !in_string => depth += 1,
            b'}' if !in_string => {
                depth -= 1;
                if depth == 0 {
                    return Some(start..at + 1);
                }
            }
            _ => {}
        }
    }
    None
}

/// The text without commas that stand before a closing bracket. Commas in strings stay.
fn without_trailing_commas(text: &str) -> Cow<'_, str> {
    let mut dropped = Vec::new();
    let (mut comma, mut in_string, mut escaped) = (None, false, false);
    // A comma trails a value: `{,}` has none, and must not become empty arguments.
    let mut behind_value = false;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => {
                in_string = !in_string;
                comma = None;
            }
            _ if in_string || byte.is_ascii_whitespace() => continue,
            b',' => comma = behind_value.then_some(at),
            b'}' | b']' => dropped.extend(comma.take()),
            _ => comma = None,
        }
        behind_value = !matches!(byte, b'{' | b'[' | b',' | b':');
    }
    if dropped.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut from = 0;
    for at in dropped {
        out.push_str(&text[from..at]);
        from = at + 1;
    }
    out.push_str(&text[from..]);
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn parsed(text: &str) -> Json {
        Json::Object(parse_arguments(text).unwrap_or_else(|error| panic!("{text}: {error}")))
    }

    fn refused(text: &str) -> String {
        parse_arguments(text).unwrap_err().diagnostic().message.clone()
    }

    #[test]
    fn json_is_read_as_it_is() {
        assert_eq!(parsed(r#"{"city": "Paris"}"#), json!({"city": "Paris"}));
        assert_eq!(parsed("  {}\n"), json!({}));
        assert_eq!(parsed(r#"{"a": "```", "b": ",}"}"#), json!({"a": "```", "b": ",}"}));
    }

    #[test]
    fn code_fences_are_taken_off() {
        let paris = json!({"city": "Paris"});
        for text in [
            "```json\n{\"city\": \"Paris\"}\n```",
            "```\n{\"city\": \"Paris\"}\n```\n",
            "```json {\"city\": \"Paris\"}```",
            "  ```JSON\r\n{\"city\": \"Paris\"}\r\n```  ",
        ] {
            assert_eq!(parsed(text), paris, "{text}");
        }
    }

    #[test]
    fn the_first_object_is_found_between_words() {
        assert_eq!(parsed("Sure: {\"a\": {\"b\": \"}\"}} and {\"c\": 1}"), json!({"a": {"b": "}"}}));
        assert_eq!(parsed("Say \"hi\n {\"a\": \"\\\"}\"} x"), json!({"a": "\"}"}));
        assert_eq!(parsed("Here:\n```json\n{\"a\": 1}\n```\nDone."), json!({"a": 1}));
    }

    #[test]
    fn commas_before_a_closing_bracket_are_taken_off() {
        assert_eq!(parsed("{\"a\": [1, 2, ], \"b\": \",}\" ,\n}"), json!({"a": [1, 2], "b": ",}"}));
        assert_eq!(parsed("```json\n{\"a\": 1,}\n```"), json!({"a": 1}));
        assert_eq!(parsed("Call it: {\"a\": 1,} please"), json!({"a": 1}));
    }

    #[test]
    fn arguments_that_are_not_an_object_are_an_error() {
        assert_eq!(refused(""), "the arguments of a tool call are not a JSON object: it is empty");
        assert_eq!(refused("null"), "the arguments of a tool call are not a JSON object: this is null");
        assert_eq!(
            refused("[{\"a\": 1}]"),
            "the arguments of a tool call are not a JSON object: this is an array"
        );
        assert_eq!(
            refused("Paris"),
            "the arguments of a tool call are not a JSON object: expected value at line 1 column 1"
        );
        for text in [
            "{",
            "}",
            "```",
            "``````",
            "```json```",
            "{]}",
            "{\"a\": 1,,}",
            "{,}",
            "{\"a\": [,]}",
            "{'a': 1}",
            "{a}",
        ] {
            assert!(parse_arguments(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_object_inside_a_truncated_one_is_not_the_arguments() {
        assert!(parse_arguments(r#"{"filter": {"id": 1}, "limit": "#).is_err());
    }

    #[test]
    fn hostile_text_is_read_in_linear_time() {
        let started = std::time::Instant::now();
        for text in
            ["{".repeat(1_000_000), "{\"".repeat(500_000), ",".repeat(1_000_000), "[{,}".repeat(250_000)]
        {
            assert!(parse_arguments(&text).is_err());
        }
        assert!(started.elapsed().as_secs() < 20);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in prop_oneof![".{0,60}", "[\\[\\]{}\":,a0\\\\ `\n]{0,60}"]) {
            let _ = parse_arguments(&text);
        }

        #[test]
        fn objects_survive_fences_words_and_commas(
            key in "[a-z{}\",]{0,6}", value in ".{0,12}", fence: bool, words: bool,
        ) {
            let object = json!({key: value, "list": [1, 2]});
            let mut text = serde_json::to_string_pretty(&object).unwrap();
            text.insert(text.len() - 1, ',');
            if fence {
                text = format!("```json\n{text}\n```");
            }
            if words {
                text = format!("Sure!\n{text}\nAnything else?");
            }
            prop_assert_eq!(parsed(&text), object);
        }
    }
}
