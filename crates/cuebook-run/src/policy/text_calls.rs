//! Calls of tools that a model writes as text, for models that have no other way.
//!
//! ```text
//! <invoke name="rye_execute"><parameter name="item_id">a/b</parameter></invoke>
//! ```
//!
//! The text is read once from left to right, in time that is linear in its length, whatever it holds. What is not whole is no call.
//! A value is text without the white space around it; one that is a JSON object or list is read as such, because tools take those too.

use cuebook::chat::reply::ToolCall;
use serde_json::{Map, Value as Json};

/// A call that was written as text.
#[derive(Debug, Clone, PartialEq)]
pub struct TextCall {
    /// `textcall_0` and so on, in the order of the text.
    pub id: String,
    /// The tool.
    pub name: String,
    /// What it is called with.
    pub input: Map<String, Json>,
}

impl TextCall {
    /// The call as others are.
    pub fn into_call(self) -> ToolCall {
        ToolCall { id: self.id, name: self.name, arguments: Json::Object(self.input).to_string() }
    }
}

/// The calls in a text.
pub fn text_calls(text: &str) -> Vec<TextCall> {
    let named = |(index, (name, body)): (usize, (&str, &str))| TextCall {
        id: format!("textcall_{index}"),
        name: name.to_owned(),
        input: Elements::of(body, "parameter")
            .map(|(name, value)| (name.to_owned(), value_of(value)))
            .collect(),
    };
    Elements::of(text, "invoke").enumerate().map(named).collect()
}

fn value_of(text: &str) -> Json {
    let text = text.trim();
    let parsed = if text.starts_with(['{', '[']) { serde_json::from_str(text).ok() } else { None };
    parsed.unwrap_or_else(|| text.into())
}

/// Elements `<tag name="…">…</tag>`, with their names and what is in them. They do not nest: the first end ends.
struct Elements<'t> {
    rest: &'t str,
    open: String,
    close: String,
}

impl<'t> Elements<'t> {
    fn of(text: &'t str, tag: &str) -> Elements<'t> {
        Elements { rest: text, open: format!("<{tag}"), close: format!("</{tag}>") }
    }
}

impl<'t> Iterator for Elements<'t> {
    type Item = (&'t str, &'t str);

    fn next(&mut self) -> Option<(&'t str, &'t str)> {
        loop {
            let start = self.rest.find(&self.open)? + self.open.len();
            self.rest = &self.rest[start..];
            let Some((name, length)) = name(self.rest) else { continue };
            let inside = &self.rest[length..];
            // Where this one has no end, no later one has.
            let Some(end) = inside.find(&self.close) else {
                self.rest = "";
                return None;
            };
            self.rest = &inside[end + self.close.len()..];
            return Some((name, &inside[..end]));
        }
    }
}

/// Reads ` name="…">`: the name, and how long all of it is.
fn name(text: &str) -> Option<(&str, usize)> {
    let spaced = text.trim_start();
    let quoted = spaced.strip_prefix("name=").filter(|_| spaced.len() < text.len())?;
    let quote = quoted.chars().next().filter(|c| ['"', '\''].contains(c))?;
    let inside = &quoted[1..];
    // A name never holds the beginning of another element, so a quote that is never closed costs little.
    let end = inside.find([quote, '<'])?;
    let behind = inside[end..].strip_prefix(quote)?.trim_start();
    let rest = behind.strip_prefix('>')?;
    (end > 0).then(|| (&inside[..end], text.len() - rest.len()))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn calls(text: &str) -> Json {
        text_calls(text).into_iter().map(|call| json!([call.id, call.name, call.input])).collect()
    }

    #[test]
    fn calls_are_found_among_words() {
        let text = "x <invoke name=\"a\"><parameter name=\"p\"> a/b\n</parameter>\n<parameter\nname='q' >{\"k\": [1]}</parameter></invoke> y <invoke  name=\"b\"></invoke>";
        assert_eq!(
            calls(text),
            json!([["textcall_0", "a", {"p": "a/b", "q": {"k": [1]}}], ["textcall_1", "b", {}]])
        );
        let call = text_calls(text).remove(0).into_call();
        assert_eq!(
            (call.id.as_str(), call.arguments.as_str()),
            ("textcall_0", r#"{"p":"a/b","q":{"k":[1]}}"#)
        );
    }

    #[test]
    fn incomplete_calls_are_text() {
        for text in [
            "<invoke name=\"a\">",
            "<invoke name=\"\"></invoke>",
            "<invoke></invoke>",
            "<invokename=\"a\"></invoke>",
            "<invoke name=a></invoke>",
            "<invoke name=\"a></invoke>",
            "<invoked name=\"a\"></invoke>",
            "&lt;invoke name=\"a\"&gt;&lt;/invoke&gt;",
            "",
        ] {
            assert_eq!(calls(text), json!([]), "{text}");
        }
        assert_eq!(
            calls(
                "<invoke <invoke name=\"a\"><parameter name=\"p\">{not json</parameter><parameter name=\"q\">x</invoke>"
            ),
            json!([["textcall_0", "a", {"p": "{not json"}]])
        );
    }

    #[test]
    fn hostile_texts_take_no_time() {
        let begun = Instant::now();
        for part in [
            "<invoke name=\"",
            "<invoke name=\"a\">",
            "<invoke ",
            "<parameter name=\"p\">",
            "</invoke>",
            "<invoke name='",
        ] {
            assert!(text_calls(&part.repeat(100_000)).len() <= 1, "{part}");
            let body = format!("<invoke name=\"a\">{}</invoke>", part.repeat(100_000));
            assert!(text_calls(&body).len() <= 1, "{part}");
        }
        assert!(begun.elapsed() < Duration::from_secs(10));
    }

    proptest! {
        #[test]
        fn any_text_can_be_read(text in "(<invoke|</invoke>|<parameter| name=|\"|'|>|a|é| |\\n){0,40}") {
            for call in text_calls(&text) {
                prop_assert!(!call.name.is_empty() && text.contains(&call.name));
            }
        }
    }
}
