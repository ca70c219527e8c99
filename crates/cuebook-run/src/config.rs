//! Configurations as templates: `{name}` and `${VAR}` in what the authors of tools and runtimes wrote.
//!
//! What a placeholder puts there is data. It is never looked at again, so nothing in a caller's parameter, and nothing in
//! the environment, is ever expanded. A text that is one placeholder and nothing else becomes the value itself, with its
//! type; inside a longer text a value is written as text, those that are no text as JSON.
//!
//! A name stands for the first of: what the engine knows (`project_path`, `tool_path`, …); for names that say how something
//! is run, the configuration; the caller's parameter; the configuration. So a configuration can give a default to a
//! parameter, and no parameter can change which command runs, where, or for how long.

use std::io::{self, Write};

use serde::Serialize as _;
use serde_json::ser::Formatter;
use serde_json::{Map, Value as Json};

/// Names that say how something is run. A parameter of such a name is data like any other and never changes that.
const OURS: [&str; 18] = [
    "command",
    "program",
    "args",
    "args_for",
    "timeout",
    "cwd",
    "env",
    "input",
    "max_output",
    "method",
    "url",
    "headers",
    "body",
    "auth",
    "retry",
    "mode",
    "kill_grace",
    "stdin",
];

/// Whether a name says how something is run.
pub(crate) fn is_execution_setting(name: &str) -> bool {
    OURS.contains(&name)
}

/// How often one part of a configuration may lead to another.
const ROUNDS: usize = 3;

/// How values are written into a longer text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// As they are.
    Plain,
    /// As parts of a URL.
    Url,
}

/// What placeholders stand for.
pub(crate) struct Values<'v> {
    /// What the engine knows.
    pub(crate) context: &'v Map<String, Json>,
    /// What the caller gave.
    pub(crate) parameters: &'v Map<String, Json>,
    /// What the authors wrote.
    pub(crate) config: &'v Map<String, Json>,
    /// The environment.
    pub(crate) env: &'v dyn Fn(&str) -> Option<String>,
}

/// Whose value it is.
pub(crate) enum PlaceholderValue<'v> {
    /// Data: never looked at again.
    Data(&'v Json),
    /// What an author wrote, which may have placeholders of its own.
    Written(&'v Json),
}

/// Fills a whole configuration from itself and from the environment.
pub fn template(config: &Map<String, Json>, env: &Map<String, Json>) -> Map<String, Json> {
    let nothing = Map::new();
    let env = |name: &str| env.get(name).map(text_of);
    let values = Values { context: &nothing, parameters: &nothing, config, env: &env };
    config
        .iter()
        .map(|(name, value)| match name.as_str() {
            "body" => (name.clone(), values.body(value)),
            _ => (name.clone(), values.fill(value, Encoding::Plain)),
        })
        .collect()
}

impl<'v> Values<'v> {
    /// What a name stands for.
    pub(crate) fn look(&self, name: &str) -> Option<PlaceholderValue<'v>> {
        let written = || self.config.get(name).map(PlaceholderValue::Written);
        let given = || self.parameters.get(name).map(PlaceholderValue::Data);
        if let Some(value) = self.context.get(name) {
            return Some(PlaceholderValue::Data(value));
        }
        if is_execution_setting(name) { written().or_else(given) } else { given().or_else(written) }
    }

    /// A value with everything in it filled.
    pub(crate) fn fill(&self, value: &Json, manner: Encoding) -> Json {
        self.filled(value, manner, 0)
    }

    /// The same, and what is to become the body of a request loses the keys whose placeholder stands for nothing.
    pub(crate) fn body(&self, value: &Json) -> Json {
        match value {
            Json::Object(map) => {
                let kept = map.iter().filter(|(_, value)| {
                    let lone = value.as_str().and_then(whole_placeholder);
                    lone.is_none_or(|name| self.look(name).is_some())
                });
                kept.map(|(name, value)| (name.clone(), self.body(value))).collect()
            }
            other => self.fill(other, Encoding::Plain),
        }
    }

    /// A text with everything in it filled, as text.
    pub(crate) fn text(&self, template: &str, manner: Encoding) -> String {
        text_of(&self.filled_text(template, manner, 0))
    }

    fn filled(&self, value: &Json, manner: Encoding, round: usize) -> Json {
        match value {
            Json::String(text) => self.filled_text(text, manner, round),
            Json::Array(items) => items.iter().map(|item| self.filled(item, manner, round)).collect(),
            Json::Object(map) => {
                map.iter().map(|(name, value)| (name.clone(), self.filled(value, manner, round))).collect()
            }
            other => other.clone(),
        }
    }

    fn value_of(&self, name: &str, round: usize) -> Option<Json> {
        match self.look(name)? {
            PlaceholderValue::Data(value) => Some(value.clone()),
            PlaceholderValue::Written(value) if round < ROUNDS => {
                // What leads back to itself stands for nothing.
                let itself = value.as_str().is_some_and(|text| text.contains(&format!("{{{name}}}")));
                if itself { None } else { Some(self.filled(value, Encoding::Plain, round + 1)) }
            }
            PlaceholderValue::Written(_) => None,
        }
    }

    fn filled_text(&self, template: &str, manner: Encoding, round: usize) -> Json {
        if let Some(name) = whole_placeholder(template) {
            return self.value_of(name, round).unwrap_or_else(|| template.into());
        }
        let mut text = String::with_capacity(template.len());
        for piece in pieces(template) {
            let value = match piece {
                Piece::Text(piece) => {
                    text.push_str(piece);
                    continue;
                }
                Piece::Variable { name, default } => {
                    let value = (self.env)(name).filter(|value| !value.is_empty());
                    Some(value.unwrap_or_else(|| default.unwrap_or_default().to_owned()))
                }
                Piece::Name { name, .. } => self.value_of(name, round).map(|value| text_of(&value)),
            };
            match (value, piece) {
                (Some(value), Piece::Name { .. }) if manner == Encoding::Url => {
                    text.push_str(&url_part(&value))
                }
                (Some(value), _) => text.push_str(&value),
                (None, Piece::Name { written, .. }) => text.push_str(written),
                (None, _) => {}
            }
        }
        Json::String(text)
    }
}

/// A value as text: a text as it is, everything else as JSON with a space behind each comma and colon, as Python writes it.
pub(crate) fn text_of(value: &Json) -> String {
    if let Json::String(text) = value {
        return text.clone();
    }
    let mut bytes = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, Spaced);
    match value.serialize(&mut serializer) {
        Ok(()) => String::from_utf8(bytes).unwrap_or_default(),
        // Values are JSON already, and a list in memory takes every byte.
        Err(_) => value.to_string(),
    }
}

/// Writes JSON in one line, with spaces.
struct Spaced;

impl Formatter for Spaced {
    fn begin_array_value<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if first { Ok(()) } else { writer.write_all(b", ") }
    }

    fn begin_object_key<W: Write + ?Sized>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.begin_array_value(writer, first)
    }

    fn begin_object_value<W: Write + ?Sized>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(b": ")
    }
}

/// The name, if a text is one placeholder and nothing else.
pub(crate) fn whole_placeholder(text: &str) -> Option<&str> {
    let name = text.strip_prefix('{')?.strip_suffix('}')?;
    is_name(name).then_some(name)
}

fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_alphabetic() || c == '_')
        && chars.all(|c| c.is_alphanumeric() || c == '_')
}

/// A part of a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Piece<'t> {
    Text(&'t str),
    /// `{name}`
    Name {
        name: &'t str,
        written: &'t str,
    },
    /// `${NAME}` or `${NAME:-default}`
    Variable {
        name: &'t str,
        default: Option<&'t str>,
    },
}

/// Takes a template apart.
pub(crate) fn pieces(template: &str) -> Vec<Piece<'_>> {
    let mut found = Vec::new();
    let (mut from, mut at) = (0, 0);
    while let Some(open) = template[at..].find('{').map(|open| at + open) {
        at = open + 1;
        let Some(close) = template[at..].find('}').map(|close| at + close) else { break };
        let inner = &template[at..close];
        let dollar = template[..open].ends_with('$');
        let piece = if dollar {
            let (name, default) = match inner.split_once(":-") {
                Some((name, default)) => (name, Some(default)),
                None => (inner, None),
            };
            let upper = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
            (upper && is_name(name)).then_some((open - 1, Piece::Variable { name, default }))
        } else {
            let written = &template[open..=close];
            is_name(inner).then_some((open, Piece::Name { name: inner, written }))
        };
        if let Some((start, piece)) = piece {
            if from < start {
                found.push(Piece::Text(&template[from..start]));
            }
            found.push(piece);
            from = close + 1;
            at = from;
        }
    }
    if from < template.len() {
        found.push(Piece::Text(&template[from..]));
    }
    found
}

/// A value as one part of a URL: nothing in it can end the part.
fn url_part(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => {
                text.push(char::from(byte))
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    // Of itself `..` is harmless in every part of a URL but the path, where it goes up.
    if value == ".." || value == "." { text.replace('.', "%2E") } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(value: Json) -> Map<String, Json> {
        value.as_object().cloned().unwrap()
    }

    fn fill(template: &str, parameters: Json, config: Json) -> Json {
        let (parameters, config) = (map(parameters), map(config));
        let context = map(json!({"project_path": "/p"}));
        let env = |name: &str| (name == "SECRET").then(|| "{x} ${SECRET}".to_owned());
        let values = Values { context: &context, parameters: &parameters, config: &config, env: &env };
        values.fill(&json!(template), Encoding::Plain)
    }

    #[test]
    fn the_text_of_a_placeholder_is_never_expanded_again() {
        let given = json!({"x": "${SECRET} {project_path} {y}", "y": "Y"});
        assert_eq!(fill("<{x}>", given.clone(), json!({})), "<${SECRET} {project_path} {y}>");
        assert_eq!(fill("{x}", given.clone(), json!({})), "${SECRET} {project_path} {y}");
        assert_eq!(fill("${SECRET}|", given, json!({})), "{x} ${SECRET}|");
    }

    #[test]
    fn a_lone_placeholder_keeps_its_type() {
        let given = json!({"n": 3, "list": [1, {"a": null}], "flag": true});
        assert_eq!(fill("{list}", given.clone(), json!({})), json!([1, {"a": null}]));
        assert_eq!(fill("n={n} {flag} {list}", given.clone(), json!({})), "n=3 true [1, {\"a\": null}]");
        assert_eq!(
            fill("{unknown} ${unknown} {} { n } ${n}", given, json!({})),
            "{unknown} ${unknown} {} { n } ${n}"
        );
    }

    #[test]
    fn parameters_never_change_how_a_tool_runs() {
        let config = json!({"tone": "warm", "command": "/bin/true", "project_path": "/elsewhere"});
        let given = json!({"tone": "dry", "command": "rm", "project_path": "/etc"});
        assert_eq!(fill("{tone} {command} {project_path}", given, config.clone()), "dry /bin/true /p");
        assert_eq!(fill("{tone}", json!({}), config), "warm");
        assert_eq!(fill("{command}", json!({"command": "ls"}), json!({})), "ls");
    }

    #[test]
    fn a_configuration_leads_to_itself_only_so_far() {
        let config = json!({"a": "{b}", "b": "{c}!", "c": 1, "loop": "x{loop}", "p": "{q}", "q": "{p}"});
        assert_eq!(fill("{a}", json!({}), config.clone()), "1!");
        assert_eq!(fill("{loop} {p}", json!({}), config), "{loop} {q}", "a name of the circle is left");
    }

    #[test]
    fn a_value_stays_inside_its_part_of_a_url() {
        let parameters = map(json!({"q": "a/../b?c=#d e", "up": ".."}));
        let nothing = Map::new();
        let env = |_: &str| None;
        let values = Values { context: &nothing, parameters: &parameters, config: &nothing, env: &env };
        let url = values.text("https://x.y/{q}/{up}", Encoding::Url);
        assert_eq!(url, "https://x.y/a%2F..%2Fb%3Fc%3D%23d%20e/%2E%2E");
    }
}
