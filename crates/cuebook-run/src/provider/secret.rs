//! Secrets among the options of a provider file: what is sent in bodies, for gateways that want to be paid or let in by a field.
//!
//! An option is kept like a key if it comes from the environment (`${env:NAME}`), if its name or that of a map around it is one of
//! a secret (`token`, `password`, `authorization`, `credentials`, …), if it looks like one (`sk-…`), or if its name only ends in
//! `key` and its value is no word. Most options are none of that, and what is short or a word is found in innocent texts: it must
//! not be taken out of them.

use std::borrow::Cow;

use cuebook::Result;
use cuebook::redact::{self, REDACTED, Secrets};
use serde_json::{Map, Value as Json};

use super::file::{VARIABLE, is_variable, variables_of};

/// Notes the secrets that stand in options.
pub(super) fn note(options: &Map<String, Json>, secrets: &mut Secrets) {
    for (name, value) in options {
        let mut value = without_variables(value);
        look(name, &value, secrets);
        secrets.field(name, &mut value);
    }
}

/// Whether an option is a secret, or holds one, that stands in the file and not in the environment.
pub(super) fn is_written(name: &str, value: &Json) -> bool {
    let before = without_variables(value);
    let mut reported = before.clone();
    redact::field(name, &mut reported);
    reported != before || {
        let mut secrets = Secrets::new();
        look(name, &before, &mut secrets);
        secrets.values().next().is_some()
    }
}

/// The names of the variables that stand in an option.
pub(super) fn variables_in(value: &Json) -> Vec<&str> {
    match value {
        Json::String(text) => variables_of(text).collect(),
        Json::Array(items) => items.iter().flat_map(variables_in).collect(),
        Json::Object(members) => members.values().flat_map(variables_in).collect(),
        _ => Vec::new(),
    }
}

/// Whether a text begins to name a variable, and does not end.
pub(super) fn is_broken(text: &str) -> bool {
    text.matches(VARIABLE).count() > variables_of(text).filter(|name| is_variable(name)).count()
}

/// Does something with every text of an option.
pub(super) fn each_text(value: &mut Json, change: &mut impl FnMut(&mut String) -> Result<()>) -> Result<()> {
    match value {
        Json::String(text) => change(text),
        Json::Array(items) => items.iter_mut().try_for_each(|item| each_text(item, change)),
        Json::Object(members) => members.values_mut().try_for_each(|member| each_text(member, change)),
        _ => Ok(()),
    }
}

/// Notes what has the look of a secret, and what a name that ends in `key` belongs to.
fn look(name: &str, value: &Json, secrets: &mut Secrets) {
    let mut keep = |text: &str| secrets.field("api_key", &mut Json::from(text));
    match value {
        Json::String(text) if is_key(name) && text.contains(|letter: char| letter.is_ascii_digit()) => {
            keep(text)
        }
        Json::String(text) => looking(text).into_iter().for_each(keep),
        Json::Array(items) => items.iter().for_each(|item| look(name, item, secrets)),
        Json::Object(members) => members.iter().for_each(|(name, member)| look(name, member, secrets)),
        _ => {}
    }
}

/// Whether a name ends like that of a key, and is not that of a place in a cache.
fn is_key(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.ends_with("key") && !name.contains("cache")
}

/// The parts of a text that have the look of secrets.
fn looking(text: &str) -> Vec<&str> {
    let Cow::Owned(reported) = redact::text(text) else { return Vec::new() };
    let mut parts = Vec::new();
    let mut rest = text;
    // What stands between the parts that are left.
    for (number, kept) in reported.split(REDACTED).enumerate() {
        let Some(at) = rest.find(kept) else { return vec![text] };
        let at = if kept.is_empty() && number > 0 { rest.len() } else { at };
        parts.extend(Some(&rest[..at]).filter(|part| number > 0 && !part.is_empty()));
        rest = &rest[(at + kept.len()).min(rest.len())..];
    }
    parts
}

/// An option without the texts that are made of variables: what they hold is known from the environment.
fn without_variables(value: &Json) -> Json {
    match value {
        Json::String(text) if variables_of(text).next().is_some() => Json::Null,
        Json::Array(items) => items.iter().map(without_variables).collect(),
        Json::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), without_variables(member))).collect()
        }
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kept(options: Json) -> Vec<String> {
        let mut secrets = Secrets::new();
        note(options.as_object().unwrap(), &mut secrets);
        secrets.values().map(str::to_owned).collect()
    }

    #[test]
    fn secrets_are_known_by_their_names_and_looks_at_any_depth() {
        let options = json!({
            "gateway": {"access_token": "violet-blue-horse", "headers": [{"Authorization": "Bearer green-42"}]},
            "billing_key": "acct-7f3e9b",
            "note": "ask with sk-abcdefghijklmnopqrstuvwx12345678 only",
        });
        assert_eq!(
            kept(options),
            [
                "sk-abcdefghijklmnopqrstuvwx12345678",
                "violet-blue-horse",
                "Bearer green-42",
                "acct-7f3e9b",
                "green-42"
            ]
        );
    }

    #[test]
    fn ordinary_short_values_are_not_secrets() {
        let options = json!({
            "max_tokens": 4096, "max_completion_tokens": 10, "prompt_cache_key": "my-project-2", "sort_key": "timestamp",
            "auth": "required", "token": "abc", "service_tier": "flex", "thinking": {"type": "enabled", "budget_tokens": 2048},
            "metadata": {"user_id": "ann-12345678"}, "stop": ["END-1234"], "user": "${env:TEAM_TOKEN}",
        });
        assert_eq!(kept(options), [""; 0]);
    }

    #[test]
    fn only_a_literal_secret_counts_as_written() {
        assert!(is_written("password", &json!("abc")), "also what is too short to be taken out of texts");
        assert!(is_written("extra", &json!({"x-api-key": "violet-42"})));
        for (name, value) in
            [("api_key", json!("${env:K}")), ("max_tokens", json!(5)), ("user", json!("ann"))]
        {
            assert!(!is_written(name, &value), "{name}");
        }
        assert_eq!(
            variables_in(&json!({"a": ["x ${env:ONE}", {"b": "${env:TWO}${env:ONE}"}], "c": 1})),
            ["ONE", "TWO", "ONE"]
        );
    }

    #[test]
    fn a_secret_inside_a_text_is_found() {
        let key = "sk-abcdefghijklmnopqrstuvwx12345678";
        assert_eq!(looking(&format!("{key} wherever")), [key]);
        assert_eq!(looking(&format!("use {key}")), [key]);
        assert!(looking("nothing to see").is_empty());
    }
}
