//! What keeps a condition of a hook from ever saying what its author wants, as far as that is known before a thread runs: a pattern
//! that cannot be used, a field of `cost` or `limits` that there is not, a number that is compared with a text.
//!
//! What else an event tells differs from thread to thread, so nothing is said about it.

use regex::{Regex, RegexBuilder};
use serde_json::Value as Json;

use crate::error::{did_you_mean, nearest};

/// Bytes that a compiled pattern may take. Patterns run in time that is linear in the text, whatever they are.
const MOST_PATTERN: usize = 1 << 20;

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Number,
    Text,
    Truth,
}

/// What every thread tells its hooks under `cost`.
const COST: [(&str, Holds); 7] = [
    ("turns", Holds::Number),
    ("input_tokens", Holds::Number),
    ("output_tokens", Holds::Number),
    ("spend", Holds::Number),
    ("elapsed_seconds", Holds::Number),
    ("estimated_tokens", Holds::Number),
    ("spend_known", Holds::Truth),
];

/// What every thread tells its hooks under `limits`.
const LIMITS: [(&str, Holds); 8] = [
    ("turns", Holds::Number),
    ("tokens", Holds::Number),
    ("spend", Holds::Number),
    ("spend_currency", Holds::Text),
    ("spawns", Holds::Number),
    ("depth", Holds::Number),
    ("duration_seconds", Holds::Number),
    ("calls", Holds::Number),
];

/// What is wrong with a condition, and which part of it: `path` or `value`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionFault {
    /// The part.
    pub part: &'static str,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

/// The pattern of a condition with `regex`.
///
/// # Errors
///
/// If it cannot be read, or is too large.
pub fn condition_pattern(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).size_limit(MOST_PATTERN).build()
}

/// Why a condition can never hold, or always does, if that can be known from what it says.
///
/// ```
/// use cuebook::dialect::directive::condition_fault;
/// use serde_json::json;
///
/// assert!(condition_fault("cost.spend", "gte", Some(&json!(1.5))).is_none());
/// let fault = condition_fault("cost.spnd", "gte", Some(&json!(1.5))).unwrap();
/// assert_eq!(fault.part, "path");
/// assert_eq!(fault.hint.as_deref(), Some("did you mean `cost.spend` or `cost.spend_known`?"));
/// ```
pub fn condition_fault(path: &str, operator: &str, value: Option<&Json>) -> Option<ConditionFault> {
    let fault = |part, message, hint| Some(ConditionFault { part, message, hint });
    if let (Some((whole, field)), Some(fields)) = (path.split_once('.'), fields(path)) {
        let Some((_, holds)) = fields.iter().find(|(name, _)| *name == field) else {
            let all: Vec<String> = fields.iter().map(|(name, _)| format!("{whole}.{name}")).collect();
            let near: Vec<String> = nearest(field, fields.iter().map(|(name, _)| *name))
                .into_iter()
                .map(|name| format!("{whole}.{name}"))
                .collect();
            let near = did_you_mean(&near);
            let hint = near.unwrap_or_else(|| format!("known: {}", all.join(", ")));
            return fault("path", format!("a thread has no `{path}`"), Some(hint));
        };
        let compares = ["eq", "gt", "gte", "lt", "lte"].contains(&operator);
        let is = match value {
            Some(Json::Number(_)) => Some(Holds::Number),
            Some(Json::String(_)) => Some(Holds::Text),
            Some(Json::Bool(_)) => Some(Holds::Truth),
            _ => None,
        };
        if let Some(is) = is.filter(|is| compares && is != holds) {
            let word = |holds| match holds {
                Holds::Number => "a number",
                Holds::Text => "a string",
                Holds::Truth => "true or false",
            };
            let message = format!(
                "this condition is never true: `{path}` is {}, but the value is {}",
                word(*holds),
                word(is)
            );
            return fault("value", message, Some(format!("compare it with {}", word(*holds))));
        }
    }
    if let ("regex", Some(Json::String(pattern))) = (operator, value)
        && let Err(error) = condition_pattern(pattern)
    {
        let told = error.to_string();
        let why = told.lines().last().unwrap_or_default().trim_start_matches("error: ");
        let hint = "escape special characters with a backslash: `\\(`, `\\.`";
        return fault("value", format!("invalid pattern of `regex`: {why}"), Some(hint.to_owned()));
    }
    None
}

/// What is known below the first step of a path.
fn fields(path: &str) -> Option<&'static [(&'static str, Holds)]> {
    match path.split('.').next() {
        Some("cost") => Some(&COST),
        Some("limits") => Some(&LIMITS),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_can_never_hold_is_told_and_what_is_not_known_is_left_alone() {
        let told = |path: &str, operator: &str, value: Json| {
            condition_fault(path, operator, Some(&value)).map(|fault| (fault.part, fault.message))
        };
        let never = |path, is, value| {
            format!("this condition is never true: `{path}` is {is}, but the value is {value}")
        };
        for (path, operator, value, wanted) in [
            (
                "cost.spend",
                "gte",
                json!("a lot"),
                Some(("value", never("cost.spend", "a number", "a string"))),
            ),
            ("cost.turns", "eq", json!("3"), Some(("value", never("cost.turns", "a number", "a string")))),
            ("cost.spnd", "gte", json!(1), Some(("path", "a thread has no `cost.spnd`".to_owned()))),
            (
                "limits.turn",
                "exists",
                json!(null),
                Some(("path", "a thread has no `limits.turn`".to_owned())),
            ),
            (
                "cost.turns.x",
                "exists",
                json!(null),
                Some(("path", "a thread has no `cost.turns.x`".to_owned())),
            ),
            ("cost.spend", "gte", json!(1.5), None),
            ("cost", "exists", json!(null), None),
            ("limits.spend_currency", "eq", json!("EUR"), None),
            ("cost.turns", "regex", json!("^1.$"), None),
            ("inputs.cost", "gte", json!("a"), None),
            ("outputs.spnd", "eq", json!("a"), None),
            ("error", "contains", json!("x"), None),
        ] {
            assert_eq!(told(path, operator, value), wanted, "{path} {operator}");
        }
        let (part, message) = told("error", "regex", json!("(a")).unwrap();
        assert_eq!((part, message.as_str()), ("value", "invalid pattern of `regex`: unclosed group"));
    }
}
