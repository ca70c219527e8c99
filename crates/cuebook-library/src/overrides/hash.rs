//! The hashes that tell whether an original is still the text that an override was made for.
//!
//! All of them are SHA-256 in small hexadecimal digits, of a text or of the one canonical spelling of a JSON value. They
//! are the same as WINK's, so that its files stay valid here: that spelling is what Python writes.

use crate::sha256::{Sha256, hex};
use serde_json::{Map, Value as Json, json};

use super::example::{TaskExample, ToolExample};
use crate::template::python::float_repr;

/// The hash of a text, such as the template of a section.
pub fn text_hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}

/// The hash of a JSON value, whatever the order of its keys.
pub fn json_hash(value: &Json) -> String {
    text_hash(&canonical_json(value))
}

/// The hash of what a tool promises: its description and the schemas of what it takes and gives. Not its name, and not the
/// descriptions of its parameters, which do not change what a call means.
pub fn contract_hash(description: &str, parameters: &Json, result: &Json) -> String {
    let parts = [text_hash(description), json_hash(parameters), json_hash(result)];
    text_hash(&parts.join("::"))
}

/// The hash of an example of a tool's use.
pub fn tool_example_hash(example: &ToolExample) -> String {
    json_hash(&json!({
        "description": example.description,
        "input": without_nulls(&example.input),
        "output": without_nulls(&example.output),
    }))
}

/// The hash of an example of a task. What its steps take and give does not count.
pub fn task_example_hash(example: &TaskExample) -> String {
    let step = |step: &super::TaskStep| json!({"tool": step.tool, "description": step.description});
    json_hash(&json!({
        "objective": example.objective,
        "steps": example.steps.iter().map(step).collect::<Vec<Json>>(),
        "outcome": without_nulls(&example.outcome),
    }))
}

/// A value without the nulls inside it: a field that is not set and one that is null are the same.
fn without_nulls(value: &Json) -> Json {
    match value {
        Json::Array(items) => items.iter().filter(|item| !item.is_null()).map(without_nulls).collect(),
        Json::Object(members) => {
            let kept = members.iter().filter(|(_, member)| !member.is_null());
            Json::Object(kept.map(|(key, member)| (key.clone(), without_nulls(member))).collect())
        }
        other => other.clone(),
    }
}

/// The canonical spelling of a JSON value: keys in order, no spaces, nothing but ASCII, floats as Python writes them.
pub fn canonical_json(value: &Json) -> String {
    let mut writer = Writer { out: String::new(), indent: None };
    writer.value(value, 0);
    writer.out
}

/// The same for files: two spaces of indent, and a newline at the end.
pub(super) fn pretty_json(value: &Json) -> String {
    let mut writer = Writer { out: String::new(), indent: Some(2) };
    writer.value(value, 0);
    writer.out.push('\n');
    writer.out
}

struct Writer {
    out: String,
    /// Spaces per level; `None` for one line.
    indent: Option<usize>,
}

impl Writer {
    fn value(&mut self, value: &Json, depth: usize) {
        match value {
            Json::Null => self.out.push_str("null"),
            Json::Bool(true) => self.out.push_str("true"),
            Json::Bool(false) => self.out.push_str("false"),
            Json::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
                Some(float) => self.out.push_str(&float_repr(float)),
                None => self.out.push_str(&number.to_string()),
            },
            Json::String(text) => self.string(text),
            Json::Array(items) => {
                self.out.push('[');
                for (index, item) in items.iter().enumerate() {
                    self.separate(index, depth + 1);
                    self.value(item, depth + 1);
                }
                self.close(']', items.is_empty(), depth);
            }
            Json::Object(members) => self.object(members, depth),
        }
    }

    fn object(&mut self, members: &Map<String, Json>, depth: usize) {
        let mut sorted: Vec<(&String, &Json)> = members.iter().collect();
        // Bytes of UTF-8 have the order of the characters that they stand for.
        sorted.sort_unstable_by_key(|(key, _)| *key);
        self.out.push('{');
        for (index, (key, member)) in sorted.into_iter().enumerate() {
            self.separate(index, depth + 1);
            self.string(key);
            self.out.push_str(if self.indent.is_some() { ": " } else { ":" });
            self.value(member, depth + 1);
        }
        self.close('}', members.is_empty(), depth);
    }

    /// What stands before an element.
    fn separate(&mut self, index: usize, depth: usize) {
        if index > 0 {
            self.out.push(',');
        }
        self.new_line(depth);
    }

    fn close(&mut self, bracket: char, is_empty: bool, depth: usize) {
        if !is_empty {
            self.new_line(depth);
        }
        self.out.push(bracket);
    }

    fn new_line(&mut self, depth: usize) {
        if let Some(indent) = self.indent {
            self.out.push('\n');
            self.out.extend(std::iter::repeat_n(' ', indent * depth));
        }
    }

    fn string(&mut self, text: &str) {
        self.out.push('"');
        for character in text.chars() {
            match character {
                '"' => self.out.push_str("\\\""),
                '\\' => self.out.push_str("\\\\"),
                '\n' => self.out.push_str("\\n"),
                '\r' => self.out.push_str("\\r"),
                '\t' => self.out.push_str("\\t"),
                '\u{8}' => self.out.push_str("\\b"),
                '\u{c}' => self.out.push_str("\\f"),
                ' '..='~' => self.out.push(character),
                other => {
                    // Beyond the first 65,536 characters it takes two escapes, as UTF-16 does.
                    for unit in other.encode_utf16(&mut [0; 2]) {
                        self.out.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
        self.out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_json_is_what_python_writes() {
        let value = json!({"b": [1, 2.5, 1.0, 1e21, 1e16, 1e-7, 0.0001, -0.0, u64::MAX, i64::MIN], "a": {}});
        assert_eq!(
            canonical_json(&value),
            "{\"a\":{},\"b\":[1,2.5,1.0,1e+21,1e+16,1e-07,0.0001,-0.0,18446744073709551615,-9223372036854775808]}"
        );
        let text = json!("\u{0}\u{8}\u{c}\n\r\t\u{1f} ~\u{7f}\u{80}é\u{2028}🚀\"\\/");
        assert_eq!(
            canonical_json(&text),
            "\"\\u0000\\b\\f\\n\\r\\t\\u001f ~\\u007f\\u0080\\u00e9\\u2028\\ud83d\\ude80\\\"\\\\/\""
        );
    }

    #[test]
    fn keys_are_ordered_by_their_characters() {
        let value = json!({"\u{ff61}": 1, "🚀": 2, "é": 3, "z": 4, "Z": 5, "": 6});
        let keys: Vec<String> = canonical_json(&value).matches(char::is_numeric).map(str::to_owned).collect();
        assert!(
            keys.concat().ends_with('2'),
            "UTF-16 would put the rocket before the half-width dot: {keys:?}"
        );
        assert!(canonical_json(&value).starts_with("{\"\":6,\"Z\":5,\"z\":4,\"\\u00e9\":3,"));
    }

    #[test]
    fn pretty_json_is_indented_and_ends_with_a_newline() {
        let value = json!({"b": [], "a": {"c": [1, {}]}});
        assert_eq!(
            pretty_json(&value),
            "{\n  \"a\": {\n    \"c\": [\n      1,\n      {}\n    ]\n  },\n  \"b\": []\n}\n"
        );
    }

    #[test]
    fn a_contract_is_the_description_and_both_schemas() {
        let none =
            json!({"title": "NoneType", "type": "object", "properties": {}, "additionalProperties": false});
        let null = json!({"title": "NoneType", "type": "null"});
        assert_eq!(
            contract_hash("Ping.", &none, &null),
            "9ea972749777335198e752f50c464f1c80c33cc91ff0976b626ebd77544c4bc2"
        );
        assert_ne!(contract_hash("Pong.", &none, &null), contract_hash("Ping.", &none, &null));
        assert_ne!(contract_hash("Ping.", &null, &none), contract_hash("Ping.", &none, &null));
    }

    #[test]
    fn a_null_inside_an_example_is_as_if_it_were_not_there() {
        let example = |output: Json| ToolExample {
            description: "many".into(),
            input: json!({"query": "q", "limit": 5}),
            output,
        };
        let with = example(json!([{"id": 1, "note": null}, {"id": 2, "note": "n"}]));
        let without = example(json!([{"id": 1}, {"note": "n", "id": 2}]));
        assert_eq!(tool_example_hash(&with), tool_example_hash(&without));
        assert_eq!(
            tool_example_hash(&with),
            "1933119fa78eaa5e26f685eabe0f378be583884c0bfda5637d3845d5d841760b"
        );
        let nothing = ToolExample { description: "plain".into(), input: Json::Null, output: Json::Null };
        assert_eq!(
            tool_example_hash(&nothing),
            "cf4e8630e12528f324feaabb6f303669de689749a4689331781741e48786d789"
        );
    }

    #[test]
    fn the_hash_of_a_task_covers_its_steps_but_not_their_data() {
        let step = |input: Json| super::super::TaskStep {
            tool: "lookup".into(),
            description: "d".into(),
            input,
            output: Json::Null,
        };
        let task = |step| TaskExample { objective: "Find".into(), outcome: json!("ok"), steps: vec![step] };
        let hash = task_example_hash(&task(step(json!({"id": 1}))));
        assert_eq!(hash, "4c840b544a3ad3c283a1c6ec7fb68519a1f7119ac45d792dee38a009514c9396");
        assert_eq!(hash, task_example_hash(&task(step(json!({"id": 2})))));
    }
}
