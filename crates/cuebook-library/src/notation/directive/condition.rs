//! What keeps a condition of a hook from ever saying what its author wants, as far as that is known before a thread runs: a pattern
//! that cannot be used, a field of `cost` or `limits` that there is not, a number that is compared with a text.
//!
//! What else an event tells differs from thread to thread, so nothing is said about it.

use serde_json::Value as Json;

use crate::error::{did_you_mean, nearest};

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldContent {
    Number,
    Text,
    Truth,
}

/// What every thread tells its hooks under `cost`.
const COST: [(&str, FieldContent); 7] = [
    ("turns", FieldContent::Number),
    ("input_tokens", FieldContent::Number),
    ("output_tokens", FieldContent::Number),
    ("spend", FieldContent::Number),
    ("elapsed_seconds", FieldContent::Number),
    ("estimated_tokens", FieldContent::Number),
    ("spend_known", FieldContent::Truth),
];

/// What every thread tells its hooks under `limits`.
const LIMITS: [(&str, FieldContent); 8] = [
    ("turns", FieldContent::Number),
    ("tokens", FieldContent::Number),
    ("spend", FieldContent::Number),
    ("spend_currency", FieldContent::Text),
    ("spawns", FieldContent::Number),
    ("depth", FieldContent::Number),
    ("duration_seconds", FieldContent::Number),
    ("calls", FieldContent::Number),
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

/// The pattern of a condition with `regex`. It runs in time that is linear in the text, whatever it is.
#[derive(Debug, Clone)]
#[cfg(feature = "items")]
pub struct ConditionPattern(regex::Regex);

#[cfg(feature = "items")]
impl ConditionPattern {
    /// Reads a pattern.
    ///
    /// # Errors
    ///
    /// Why it cannot be read, or that it is too large.
    pub fn new(pattern: &str) -> Result<ConditionPattern, String> {
        /// Bytes that a compiled pattern may take.
        const MAX_PATTERN: usize = 1 << 20;
        let read = regex::RegexBuilder::new(pattern).size_limit(MAX_PATTERN).build();
        read.map(ConditionPattern).map_err(|error| {
            let reported = error.to_string();
            reported.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
        })
    }

    /// Whether a text has a part that fits it.
    pub fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
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
            Some(Json::Number(_)) => Some(FieldContent::Number),
            Some(Json::String(_)) => Some(FieldContent::Text),
            Some(Json::Bool(_)) => Some(FieldContent::Truth),
            _ => None,
        };
        if let Some(is) = is.filter(|is| compares && is != holds) {
            let word = |holds| match holds {
                FieldContent::Number => "a number",
                FieldContent::Text => "a string",
                FieldContent::Truth => "true or false",
            };
            let message = format!(
                "this condition is never true: `{path}` is {}, but the value is {}",
                word(*holds),
                word(is)
            );
            return fault("value", message, Some(format!("compare it with {}", word(*holds))));
        }
    }
    #[cfg(feature = "items")]
    if let ("regex", Some(Json::String(pattern))) = (operator, value)
        && let Err(why) = ConditionPattern::new(pattern)
    {
        let hint = "escape special characters with a backslash: `\\(`, `\\.`";
        return fault("value", format!("invalid pattern of `regex`: {why}"), Some(hint.to_owned()));
    }
    None
}

/// What is known below the first step of a path.
fn fields(path: &str) -> Option<&'static [(&'static str, FieldContent)]> {
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
    fn impossible_conditions_are_reported_unknown_ones_kept() {
        let reported = |path: &str, operator: &str, value: Json| {
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
            assert_eq!(reported(path, operator, value), wanted, "{path} {operator}");
        }
        let (part, message) = reported("error", "regex", json!("(a")).unwrap();
        assert_eq!((part, message.as_str()), ("value", "invalid pattern of `regex`: unclosed group"));
    }
}
