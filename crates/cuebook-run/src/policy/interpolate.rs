//! `${path}` in what hooks say: values of a thread take the places of their paths.
//!
//! A text that is one placeholder and nothing else becomes the value, with its type, or null. Inside of a longer text a value is written
//! as text, and one that is not there as nothing. `{input:name}` stands for an input of the thread, as in the body of a directive. One
//! pass is all there is: what a value says is never looked at for placeholders.

use serde_json::{Map, Value as Json};

use super::condition::resolve;
use super::tool_result::text_of;

/// A template with its placeholders filled, in texts, lists and maps. Names of maps stay as they are.
///
/// ```
/// use cuebook_run::policy::interpolate::interpolate;
/// use serde_json::json;
///
/// let context = json!({"cost": {"turns": 3}});
/// assert_eq!(interpolate(&json!({"a": "${cost}", "b": "T=${cost.turns}"}), &context), json!({"a": {"turns": 3}, "b": "T=3"}));
/// ```
pub fn interpolate(template: &Json, context: &Json) -> Json {
    match template {
        Json::String(text) => text_filled(text, context),
        Json::Array(items) => items.iter().map(|item| interpolate(item, context)).collect(),
        Json::Object(map) => Json::Object(map_filled(map, context)),
        other => other.clone(),
    }
}

/// The same for a map.
pub fn map_filled(map: &Map<String, Json>, context: &Json) -> Map<String, Json> {
    map.iter().map(|(name, value)| (name.clone(), interpolate(value, context))).collect()
}

/// Whether a text has placeholders.
pub(super) fn has_placeholders(text: &str) -> bool {
    Pieces::of(text).any(|piece| !matches!(piece, Piece::Text(_)))
}

fn text_filled(text: &str, context: &Json) -> Json {
    let mut pieces = Pieces::of(text);
    if let (Some(Piece::Path(path)), None) = (pieces.next(), pieces.next()) {
        return resolve(context, path).cloned().unwrap_or(Json::Null);
    }
    let mut filled = String::with_capacity(text.len());
    for piece in Pieces::of(text) {
        match piece {
            Piece::Text(text) => filled.push_str(text),
            Piece::Path(path) => match resolve(context, path) {
                None | Some(Json::Null) => {}
                Some(value) => filled.push_str(&text_of(value)),
            },
            Piece::Input { name, rest, whole } => {
                match (context.get("inputs").and_then(|all| all.get(name)), rest) {
                    (Some(value), _) => filled.push_str(&text_of(value)),
                    (None, "?") => {}
                    (None, "") => filled.push_str(whole),
                    (None, default) => filled.push_str(&default[1..]),
                }
            }
        }
    }
    Json::String(filled)
}

/// A piece of a text.
enum Piece<'t> {
    Text(&'t str),
    /// `${path}`
    Path(&'t str),
    /// `{input:name}`, `{input:name?}`, `{input:name:default}`, `{input:name|default}`
    Input {
        name: &'t str,
        rest: &'t str,
        whole: &'t str,
    },
}

/// Takes a text apart from left to right.
struct Pieces<'t> {
    text: &'t str,
    at: usize,
    /// Behind the last brace that closes there is no placeholder; looking for one again and again would take for ever.
    last: usize,
}

impl<'t> Pieces<'t> {
    fn of(text: &'t str) -> Pieces<'t> {
        Pieces { text, at: 0, last: text.rfind('}').unwrap_or(0) }
    }
}

impl<'t> Iterator for Pieces<'t> {
    type Item = Piece<'t>;

    fn next(&mut self) -> Option<Piece<'t>> {
        let (text, begin) = (self.text, self.at);
        let mut from = begin;
        while from < self.last
            && let Some(found) = text[from..self.last].find(['$', '{'])
        {
            let start = from + found;
            if let Some((piece, length)) = placeholder(&text[start..]) {
                if start > begin {
                    self.at = start;
                    return Some(Piece::Text(&text[begin..start]));
                }
                self.at = start + length;
                return Some(piece);
            }
            from = start + 1;
        }
        self.at = text.len();
        (begin < text.len()).then(|| Piece::Text(&text[begin..]))
    }
}

/// The placeholder that a text begins with, and how long it is.
fn placeholder(text: &str) -> Option<(Piece<'_>, usize)> {
    if let Some(rest) = text.strip_prefix("${") {
        let end = rest.find('}').filter(|end| *end > 0)?;
        return Some((Piece::Path(&rest[..end]), end + 3));
    }
    let rest = text.strip_prefix("{input:")?;
    let name = &rest[..rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len())];
    let behind = &rest[name.len()..];
    let is_known = behind.starts_with(['}', ':', '|']) || behind.starts_with("?}");
    if name.is_empty() || !is_known {
        return None;
    }
    let end = behind.find('}')?;
    let length = "{input:".len() + name.len() + end + 1;
    Some((Piece::Input { name, rest: &behind[..end], whole: &text[..length] }, length))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn filled(template: Json) -> Json {
        let context = json!({
            "cost": {"turns": 3, "spend": 0.5}, "items": [{"n": "a"}], "flag": true, "none": null, "evil": "${flag}{input:user}",
            "inputs": {"user": "Ann", "n": 1},
        });
        interpolate(&template, &context)
    }

    #[test]
    fn a_lone_placeholder_keeps_the_type() {
        assert_eq!(filled(json!("${cost}")), json!({"turns": 3, "spend": 0.5}));
        assert_eq!(filled(json!("${items.0.n}")), json!("a"));
        assert_eq!(filled(json!("${zz.y}")), json!(null));
        assert_eq!(filled(json!(["${flag}", {"k": "${cost.turns}"}, 7])), json!([true, {"k": 3}, 7]));
    }

    #[test]
    fn inside_of_a_text_a_value_is_text_and_nothing_is_nothing() {
        assert_eq!(filled(json!("T=${cost.turns} ${flag} ${items}")), json!("T=3 true [{\"n\":\"a\"}]"));
        assert_eq!(filled(json!("x${none}y${zz}z")), json!("xyz"));
        assert_eq!(filled(json!("${flag}${flag}")), json!("truetrue"));
    }

    #[test]
    fn inputs_can_be_named_as_in_a_directive() {
        assert_eq!(filled(json!("Hi {input:user}, {input:n}")), json!("Hi Ann, 1"));
        assert_eq!(
            filled(json!("{input:zz?}|{input:zz:a:b}|{input:zz|c}|{input:zz}")),
            json!("|a:b|c|{input:zz}")
        );
        assert_eq!(filled(json!("{input:} {input:a-b} {input")), json!("{input:} {input:a-b} {input"));
    }

    #[test]
    fn values_are_inert() {
        assert_eq!(filled(json!("${evil}")), json!("${flag}{input:user}"));
        assert_eq!(filled(json!("a ${evil}")), json!("a ${flag}{input:user}"));
        assert_eq!(filled(json!({"${flag}": 1})), json!({"${flag}": 1}));
    }

    #[test]
    fn other_braces_stay() {
        for text in ["", "$", "${", "${}", "$flag", "{flag}", "a}b", "${a", "$${", "é$é{"] {
            assert_eq!(filled(json!(text)), json!(text));
        }
        assert_eq!(filled(json!("$${flag}}")), json!("$true}"));
    }

    #[test]
    fn hostile_texts_take_no_time() {
        let text = "${".repeat(200_000);
        assert_eq!(filled(json!(text)), json!(text));
        for part in ["{input:", "$", "{input:a", "${}", "{input:a?"] {
            let text = format!("{}x}}", part.repeat(100_000));
            assert_eq!(filled(json!(text)), json!(text), "{part}");
        }
    }
}
