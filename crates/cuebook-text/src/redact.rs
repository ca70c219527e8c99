//! Takes secrets out of reports about a run: traces, logs, errors.
//!
//! A value is a secret for one of these reasons:
//!
//! | reason | example | file |
//! | --- | --- | --- |
//! | the name that it goes by | `{"apiKey": "…"}`, a field called `authorization` | `redact/name.rs` |
//! | its own look | `sk-…`, `Bearer …`, a private key, the password in a URL | `redact/shape.rs` |
//! | it was a secret a moment ago | the `apiKey` that a template wrote into its text | `redact/known.rs` |
//! | it is one for the whole process ([`keep`]) | the key of a provider that a model repeats | `redact/known.rs` |
//!
//! What is taken out leaves [`REDACTED`] behind, so a reader sees that something was there. Text that holds JSON is read,
//! redacted and written again; text without a secret comes back as it was, byte for byte.
//!
//! The engine uses this before it hands values to a span, and the trace backends use it again on whatever arrives;
//! redacting twice does no harm. Nothing here changes what a prompt renders or what is sent to a model.

mod known;
mod name;
mod shape;

use std::borrow::Cow;

use serde_json::Value;

pub use known::{Secrets, keep, scrub_kept};
pub use name::{Name, kind_of_name};

/// What stands in the place of a secret.
pub const REDACTED: &str = "[REDACTED]";

/// Deeper values are taken out whole: settings are never nested like this, and a walk must end.
const DEEPEST: usize = 128;

/// Takes the secrets out of a value that goes by a name: a field of a span, a member of an object.
///
/// ```
/// use cuebook_text::redact::field;
/// use serde_json::json;
///
/// let mut inputs = json!({"city": "Oslo", "apiKey": "k-1", "max_tokens": 100});
/// field("inputs", &mut inputs);
/// assert_eq!(inputs, json!({"city": "Oslo", "apiKey": "[REDACTED]", "max_tokens": 100}));
/// ```
pub fn field(name: &str, value: &mut Value) {
    walk(Some(name), value, DEEPEST, &mut |_| {});
}

/// Takes the secrets out of a value that has no name.
pub fn value(value: &mut Value) {
    walk(None, value, DEEPEST, &mut |_| {});
}

/// Takes the secrets out of a text: JSON by its names, anything else by the look of its words.
///
/// ```
/// use cuebook_text::redact::text;
///
/// assert_eq!(text(r#"{"password":"hunter2"}"#), r#"{"password":"[REDACTED]"}"#);
/// assert_eq!(text("a bearer of good news"), "a bearer of good news");
/// ```
pub fn text(text: &str) -> Cow<'_, str> {
    text_within(text, DEEPEST, &mut |_| {})
}

/// A value as the text of a span's field: strings as they are, everything else as JSON.
///
/// Backends read it back: a field that begins like an object or an array, and is one, becomes one again.
pub fn field_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Reads what [`field_text`] wrote. Numbers and words stay text, since a prompt may well render `12`.
pub fn field_value(text: &str) -> Value {
    json_in(text).unwrap_or_else(|| Value::String(text.to_owned()))
}

/// Goes through a value; `taken` sees every value that goes because of its name.
fn walk(name: Option<&str>, value: &mut Value, depth: usize, taken: &mut dyn FnMut(&Value)) {
    if let Some(name) = name
        && is_secret(name, value)
    {
        taken(value);
        *value = Value::String(REDACTED.to_owned());
        return;
    }
    let Some(depth) = depth.checked_sub(1) else {
        if !matches!(value, Value::Null | Value::Bool(_) | Value::Number(_)) {
            *value = Value::String(REDACTED.to_owned());
        }
        return;
    };
    match value {
        Value::String(text) => {
            if let Cow::Owned(redacted) = text_within(text, depth, taken) {
                *text = redacted;
            }
        }
        Value::Array(items) => {
            // `["--api-key", "…"]`, `["Authorization", "…"]`: pairs and command lines name what comes next.
            for at in 0..items.len() {
                let named = match at.checked_sub(1).and_then(|before| items[before].as_str()) {
                    Some(before) if name::introduces(before) => {
                        items[at].as_str().is_some_and(|it| !it.is_empty())
                    }
                    _ => false,
                };
                if named {
                    taken(&items[at]);
                    items[at] = Value::String(REDACTED.to_owned());
                } else {
                    walk(None, &mut items[at], depth, taken);
                }
            }
        }
        Value::Object(members) => {
            let described = name::described_by(members);
            for (name, member) in members.iter_mut() {
                // `{"name": "Authorization", "value": "…"}` is how headers and variables are often listed.
                if described && name == "value" && member.is_string() {
                    taken(member);
                    *member = Value::String(REDACTED.to_owned());
                } else {
                    walk(Some(name), member, depth, taken);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Whether all of a value must go because of its name.
fn is_secret(name: &str, value: &Value) -> bool {
    match (kind_of_name(name), value) {
        (Name::Plain, _) | (_, Value::Null | Value::Bool(_)) => false,
        (_, Value::String(text)) if text.is_empty() => false,
        // `password: 1234` is a secret, `max_tokens: 1234` a count, and a list of numbers the tokens of a text.
        (Name::Secret, _) => true,
        (Name::Token, value) => !only_numbers(value),
        (Name::Count, Value::String(text)) => text.parse::<f64>().is_err(),
        (Name::Count, _) => false,
    }
}

fn only_numbers(value: &Value) -> bool {
    match value {
        Value::Number(_) => true,
        Value::Array(items) => items.iter().all(Value::is_number),
        _ => false,
    }
}

/// The object or array that a text is, if it is one.
fn json_in(text: &str) -> Option<Value> {
    let trimmed = text.trim();
    let wrapped = (trimmed.starts_with('{') && trimmed.ends_with('}'))
        || (trimmed.starts_with('[') && trimmed.ends_with(']'));
    if wrapped { serde_json::from_str(trimmed).ok() } else { None }
}

fn text_within<'t>(text: &'t str, depth: usize, taken: &mut dyn FnMut(&Value)) -> Cow<'t, str> {
    if let Some(mut value) = json_in(text) {
        let before = value.clone();
        walk(None, &mut value, depth, taken);
        return if value == before { Cow::Borrowed(text) } else { Cow::Owned(value.to_string()) };
    }
    shape::redacted(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn redacted(mut it: Value) -> Value {
        value(&mut it);
        it
    }

    #[test]
    fn names_of_secrets_take_their_values_out_wherever_they_stand() {
        let before = json!({
            "city": "Oslo",
            "api_key": "k",
            "nested": [{"userPassword": "p", "Set-Cookie": "a=b", "n": 1}],
            "credentials": {"user": "ada", "pin": 1234},
            "password": 1234,
        });
        let after = json!({
            "city": "Oslo",
            "api_key": REDACTED,
            "nested": [{"userPassword": REDACTED, "Set-Cookie": REDACTED, "n": 1}],
            "credentials": REDACTED,
            "password": REDACTED,
        });
        assert_eq!(redacted(before), after);
    }

    #[test]
    fn counts_of_tokens_stay_and_tokens_go() {
        let before = json!({
            "max_tokens": 100, "maxOutputTokens": 5, "input_tokens": 7, "usage": {"total_tokens": 12},
            "completion_tokens_details": {"reasoning_tokens": 3},
            "token_limit": "4096", "tokens": [1, 2, 3], "max_tokens_text": "lots",
            "token": "abc", "accessToken": "xyz", "refresh_tokens": ["a", "b"],
        });
        let after = json!({
            "max_tokens": 100, "maxOutputTokens": 5, "input_tokens": 7, "usage": {"total_tokens": 12},
            "completion_tokens_details": {"reasoning_tokens": 3},
            "token_limit": "4096", "tokens": [1, 2, 3], "max_tokens_text": REDACTED,
            "token": REDACTED, "accessToken": REDACTED, "refresh_tokens": REDACTED,
        });
        assert_eq!(redacted(before), after);
    }

    #[test]
    fn switches_and_empty_values_are_no_secrets() {
        let it = json!({"requires_auth": true, "token": null, "password": ""});
        assert_eq!(redacted(it.clone()), it);
    }

    #[test]
    fn json_inside_text_is_redacted_at_every_depth() {
        let inner = json!({"apiKey": "deep-down"}).to_string();
        let outer = json!({"config": inner}).to_string();
        let after = text(&outer);
        assert!(!after.contains("deep-down"), "{after}");
        assert_eq!(field_value(&after)["config"], json!({"apiKey": REDACTED}).to_string());
    }

    #[test]
    fn text_without_a_secret_keeps_every_byte() {
        for same in
            ["{ \"a\" :  1 }", "[1,2", "", "{{ name }}", "Ask the author about tokens and passwords: later."]
        {
            assert!(matches!(text(same), Cow::Borrowed(it) if it == same), "{same}");
        }
    }

    #[test]
    fn pairs_and_command_lines_name_what_comes_next() {
        let before =
            json!([["Authorization", "abc"], {"name": "X-Api-Key", "value": "k"}, ["--token", "t", "run"]]);
        let after = json!([["Authorization", REDACTED], {"name": "X-Api-Key", "value": REDACTED}, ["--token", REDACTED, "run"]]);
        assert_eq!(redacted(before), after);
    }

    #[test]
    fn too_deep_values_are_removed_whole() {
        let mut it = json!({"password": "hunter2"});
        for _ in 0..200 {
            it = json!([it]);
        }
        assert!(!redacted(it).to_string().contains("hunter2"));
    }

    #[test]
    fn redacting_twice_changes_nothing_more() {
        let once =
            redacted(json!({"apiKey": "k", "t": "Bearer abcdefghijk1234567890", "u": "https://a:b@c/"}));
        assert_eq!(redacted(once.clone()), once);
    }

    #[test]
    fn texts_of_fields_are_read_back() {
        for it in [json!({"a": [1, null]}), json!("plain"), json!("12"), json!([])] {
            assert_eq!(field_value(&field_text(&it)), it);
        }
    }
}
