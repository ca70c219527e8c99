//! Values in the notations of files: YAML, Python literals, and text in XML.

use serde_json::{Map, Value as Json};

/// A map as a block of YAML, one key per line.
pub(super) fn yaml(map: &Map<String, Json>) -> String {
    let mut out = String::new();
    yaml_map(map, 0, &mut out);
    out
}

fn yaml_map(map: &Map<String, Json>, indent: usize, out: &mut String) {
    for (index, (key, value)) in map.iter().enumerate() {
        // The first key of a map in a list stands behind the dash.
        if index > 0 || !out.ends_with("- ") {
            out.push_str(&" ".repeat(indent));
        }
        out.push_str(&scalar(key));
        out.push(':');
        yaml_value(value, indent + 2, out);
    }
}

/// Writes a value behind a colon, with the end of its line.
fn yaml_value(value: &Json, indent: usize, out: &mut String) {
    match value {
        Json::Object(map) if !map.is_empty() => {
            out.push('\n');
            yaml_map(map, indent, out);
        }
        Json::Array(items)
            if items.iter().any(|item| matches!(item, Json::Object(map) if !map.is_empty())) =>
        {
            out.push('\n');
            for item in items {
                out.push_str(&" ".repeat(indent));
                out.push_str("- ");
                match item {
                    Json::Object(map) if !map.is_empty() => yaml_map(map, indent + 2, out),
                    other => {
                        out.push_str(&flow(other));
                        out.push('\n');
                    }
                }
            }
        }
        Json::String(text) => {
            out.push(' ');
            out.push_str(&scalar(text));
            out.push('\n');
        }
        other => {
            out.push(' ');
            out.push_str(&flow(other));
            out.push('\n');
        }
    }
}

/// A value in one line, which YAML reads as JSON does.
fn flow(value: &Json) -> String {
    match value {
        Json::String(text) => quoted(text),
        Json::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Json::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}: {}", quoted(key), flow(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

/// A text without quotes, if it can do without.
fn scalar(text: &str) -> String {
    const WORDS: [&str; 9] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    let plain = text.starts_with(|letter: char| letter.is_ascii_alphabetic())
        && text.chars().all(|letter| letter.is_ascii_alphanumeric() || " _-./,()".contains(letter))
        && !text.ends_with(' ')
        && !WORDS.contains(&text.to_lowercase().as_str());
    if plain { text.to_owned() } else { quoted(text) }
}

/// A text in double quotes, as YAML, JSON and Python read it.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            // Invisible characters, and those that end a line for some readers, are spelt out.
            letter if letter.is_control() || matches!(letter, '\u{2028}' | '\u{2029}' | '\u{feff}') => {
                out.push_str(&format!("\\u{:04x}", letter as u32));
            }
            letter => out.push(letter),
        }
    }
    out.push('"');
    out
}

/// A value as a Python literal.
pub(super) fn python(value: &Json, indent: usize) -> String {
    let margin = " ".repeat(indent + 4);
    match value {
        Json::Null => "None".to_owned(),
        Json::Bool(true) => "True".to_owned(),
        Json::Bool(false) => "False".to_owned(),
        Json::Number(number) => number.to_string(),
        Json::String(text) => quoted(text),
        Json::Array(items) if items.iter().all(|item| !item.is_object()) => {
            format!("[{}]", items.iter().map(|item| python(item, indent)).collect::<Vec<_>>().join(", "))
        }
        Json::Array(items) => {
            let items = items.iter().map(|item| format!("{margin}{},\n", python_line(item)));
            format!("[\n{}{}]", items.collect::<String>(), " ".repeat(indent))
        }
        Json::Object(map) if map.is_empty() => "{}".to_owned(),
        Json::Object(map) => {
            let entries = map
                .iter()
                .map(|(key, value)| format!("{margin}{}: {},\n", quoted(key), python(value, indent + 4)));
            format!("{{\n{}{}}}", entries.collect::<String>(), " ".repeat(indent))
        }
    }
}

/// A value as a Python literal in one line.
fn python_line(value: &Json) -> String {
    match value {
        Json::Object(map) => {
            let entries = map.iter().map(|(key, value)| format!("{}: {}", quoted(key), python_line(value)));
            format!("{{{}}}", entries.collect::<Vec<_>>().join(", "))
        }
        Json::Array(items) => format!("[{}]", items.iter().map(python_line).collect::<Vec<_>>().join(", ")),
        other => python(other, 0),
    }
}

/// A text as the content of an element or of an attribute; `None` if XML has no way to say it.
pub(super) fn xml(text: &str) -> Option<String> {
    let mut out = String::new();
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => out.push_str(&format!("&#{};", letter as u32)),
            letter if letter < ' ' || matches!(letter, '\u{fffe}' | '\u{ffff}') => return None,
            letter => out.push(letter),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::error::{Code, ErrorKind};
    use crate::source::Source;

    #[test]
    fn yaml_reads_back_as_what_it_was() {
        let value = json!({
            "name": "A prompt", "on": "off", "n": 1.5, "empty": {}, "none": null, "list": ["a: b", 1, [true]],
            "deep": {"- x": {"y": "line\nline\u{85}\u{2028}\u{7}"}, "#": "# no comment", "e": ""},
            "maps": [{"a": 1, "b": {"c": "d"}}, {}, "x", [{"z": 1}]], "---": "---",
        });
        let text = yaml(value.as_object().unwrap());
        let source = Source::new("x", text.clone());
        let document =
            crate::yaml::Document::parse(&source, 0..text.len(), Code::BadFrontMatter, ErrorKind::PromptRead);
        assert_eq!(document.unwrap().into_root().to_json(), value, "{text}");
    }

    #[test]
    fn python_is_written_as_python() {
        let value = json!({"a": true, "b": [null, "é\"\n"], "c": [{"d": 1}]});
        assert_eq!(
            python(&value, 0),
            "{\n    \"a\": True,\n    \"b\": [None, \"é\\\"\\n\"],\n    \"c\": [\n        {\"d\": 1},\n    ],\n}"
        );
    }
}
