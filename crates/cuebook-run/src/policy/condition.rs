//! Conditions of hooks: `{path: cost.turns, op: gte, value: 3}`, and `any`, `all` and `not` of such.
//!
//! [`check`] says what is wrong with a condition when it is read. [`evaluate`] never fails: what makes no sense does not hold.

use cuebook::dialect::directive::{ConditionFault, ConditionPattern, HOOK_OPERATORS, condition_fault};
use cuebook::error::{did_you_mean, nearest};
use cuebook::json::type_of;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Map, Number, Value as Json};

use super::tool_result::text_of;

/// What a condition may say.
const NAMES: [&str; 6] = ["path", "op", "value", "any", "all", "not"];

/// Whether a condition holds for a document. An empty one always does.
///
/// ```
/// use cuebook_run::policy::condition::evaluate;
/// use serde_json::json;
///
/// let doc = json!({"cost": {"turns": 3}});
/// assert!(evaluate(&json!({"path": "cost.turns", "op": "gte", "value": 3}), &doc));
/// assert!(evaluate(&json!({"not": {"path": "error", "op": "exists"}}), &doc));
/// ```
pub fn evaluate(condition: &Json, doc: &Json) -> bool {
    let Json::Object(map) = condition else { return condition.is_null() };
    if map.is_empty() {
        return true;
    }
    let all_of =
        |name: &str| map.get(name).map(|list| list.as_array().map(Vec::as_slice).unwrap_or_default());
    if let Some(any) = all_of("any") {
        return any.iter().any(|one| evaluate(one, doc));
    }
    if let Some(all) = all_of("all") {
        return map["all"].is_array() && all.iter().all(|one| evaluate(one, doc));
    }
    if let Some(not) = map.get("not") {
        return !evaluate(not, doc);
    }
    let path = map.get("path").and_then(Json::as_str).unwrap_or_default();
    let operator = map.get("op").map_or(Some("eq"), Json::as_str).unwrap_or_default();
    let nothing = Json::Null;
    compare(resolve(doc, path).unwrap_or(&nothing), operator, map.get("value").unwrap_or(&nothing))
}

/// What a path leads to: names, and numbers of list items, with dots between them. The empty path leads to the document.
pub fn resolve<'d>(doc: &'d Json, path: &str) -> Option<&'d Json> {
    if path.is_empty() {
        return Some(doc);
    }
    path.split('.').try_fold(doc, |value, step| match value {
        Json::Object(map) => map.get(step),
        Json::Array(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
        _ => None,
    })
}

fn compare(actual: &Json, operator: &str, expected: &Json) -> bool {
    let order = || ordered(actual, expected);
    match operator {
        "eq" => same(actual, expected),
        "ne" => !same(actual, expected),
        "gt" => order().is_some_and(|order| order.is_gt()),
        "gte" => order().is_some_and(|order| order.is_ge()),
        "lt" => order().is_some_and(|order| order.is_lt()),
        "lte" => order().is_some_and(|order| order.is_le()),
        "in" => expected.as_array().is_some_and(|all| all.iter().any(|one| same(actual, one))),
        "contains" => contains(actual, expected),
        "regex" => {
            let pattern = expected.as_str().and_then(|pattern| ConditionPattern::new(pattern).ok());
            !actual.is_null() && pattern.is_some_and(|pattern| pattern.matches(&text_of(actual)))
        }
        "exists" => !actual.is_null(),
        _ => false,
    }
}

/// Whether two values are the same; numbers by their value.
fn same(a: &Json, b: &Json) -> bool {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => by_value(a, b).is_some_and(|order| order.is_eq()),
        (Json::Array(a), Json::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Json::Object(a), Json::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

fn ordered(a: &Json, b: &Json) -> Option<std::cmp::Ordering> {
    match (a, b) {
        (Json::Number(a), Json::Number(b)) => by_value(a, b),
        (Json::String(a), Json::String(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

fn by_value(a: &Number, b: &Number) -> Option<std::cmp::Ordering> {
    let whole = |number: &Number| number.as_i128();
    match (whole(a), whole(b)) {
        (Some(a), Some(b)) => Some(a.cmp(&b)),
        _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
    }
}

/// Whether a text contains another one, or a list an item. What is neither is looked at as the text that it would be written as.
fn contains(actual: &Json, expected: &Json) -> bool {
    match actual {
        Json::Null => false,
        Json::Array(items) if items.iter().any(|item| same(item, expected)) => true,
        actual => text_of(actual).contains(&text_of(expected)),
    }
}

/// Whether a condition says something that can be evaluated.
///
/// # Errors
///
/// `CB726` if it does not.
pub fn check(condition: &Json) -> Result<()> {
    match fault(condition, &mut Vec::new()) {
        None => Ok(()),
        Some(fault) => {
            let diagnostic = Diagnostic::new(Code::BadHook, fault.message).hint_opt(fault.hint);
            Err(Error::new(ErrorKind::Config, diagnostic))
        }
    }
}

/// What is wrong with a part of a file, and which part.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) path: Vec<String>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

/// The first thing that is wrong with a condition.
pub(super) fn fault(condition: &Json, path: &mut Vec<String>) -> Option<Fault> {
    let at = |path: &[String], message: String, hint: Option<String>| {
        Some(Fault { path: path.to_vec(), message, hint })
    };
    let map = match condition {
        Json::Null => return None,
        Json::Object(map) if map.is_empty() => return None,
        Json::Object(map) => map,
        other => {
            let message = format!("a condition must be an object, not {}", type_of(other));
            return at(path, message, Some("write {path: …, op: …, value: …}".to_owned()));
        }
    };
    if let Some(name) = map.keys().find(|name| !NAMES.contains(&name.as_str())) {
        path.push(name.clone());
        let hint =
            did_you_mean(&nearest(name, NAMES)).unwrap_or_else(|| format!("it has {}", NAMES.join(", ")));
        return at(path, format!("a condition has no `{name}`"), Some(hint));
    }
    let several: Vec<&str> =
        ["any", "all", "not"].into_iter().filter(|name| map.contains_key(*name)).collect();
    match several.as_slice() {
        [] => simple(map, path),
        [name] if map.len() == 1 => {
            path.push((*name).to_owned());
            let found = match (&map[*name], *name) {
                (inner, "not") => fault(inner, path),
                (Json::Array(all), _) => all.iter().enumerate().find_map(|(index, one)| {
                    path.push(index.to_string());
                    let found = fault(one, path);
                    path.pop();
                    found
                }),
                (other, _) => {
                    at(path, format!("`{name}` must be a list of conditions, not {}", type_of(other)), None)
                }
            };
            path.pop();
            found
        }
        [name, ..] => at(
            path,
            format!("a condition has `{name}` and other keys, so it is ambiguous"),
            Some("put both into a list under `all`".to_owned()),
        ),
    }
}

fn simple(map: &Map<String, Json>, path: &[String]) -> Option<Fault> {
    let inside = |name: &str, message: String, hint: Option<String>| {
        let mut path = path.to_vec();
        if map.contains_key(name) {
            path.push(name.to_owned());
        }
        Some(Fault { path, message, hint })
    };
    match map.get("path") {
        Some(Json::String(_)) => {}
        Some(other) => {
            return inside("path", format!("a path must be a string, not {}", type_of(other)), None);
        }
        None => {
            return inside("path", "a condition has no `path`".to_owned(), Some("add a `path`".to_owned()));
        }
    }
    let operator = match map.get("op") {
        None => "eq",
        Some(Json::String(operator)) if HOOK_OPERATORS.contains(&operator.as_str()) => operator,
        Some(other) => {
            let near = other.as_str().and_then(|name| did_you_mean(&nearest(name, HOOK_OPERATORS)));
            let hint = near.unwrap_or_else(|| format!("use one of {}", HOOK_OPERATORS.join(", ")));
            return inside("op", format!("unknown operator {other}"), Some(hint));
        }
    };
    let value = map.get("value");
    let looks_at = map.get("path").and_then(Json::as_str).unwrap_or_default();
    if let Some(ConditionFault { part, message, hint }) = condition_fault(looks_at, operator, value) {
        return inside(part, message, hint);
    }
    match (operator, value) {
        ("exists", _) => None,
        (_, None) => inside("value", format!("`{operator}` has no `value` to compare with"), None),
        ("in", Some(Json::Array(_))) => None,
        ("in", Some(other)) => inside(
            "value",
            format!("`in` needs a list, not {}", type_of(other)),
            Some("XML has no lists: use `regex`, or move the hook to a hooks.yaml".to_owned()),
        ),
        ("gt" | "gte" | "lt" | "lte", Some(other)) if !other.is_number() && !other.is_string() => {
            inside("value", format!("`{operator}` compares numbers or strings, not {}", type_of(other)), None)
        }
        ("regex", Some(other)) if !other.is_string() => {
            inside("value", format!("`regex` needs a pattern, not {}", type_of(other)), None)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn doc() -> Json {
        json!({
            "directive": "web/build", "cost": {"turns": 3, "spend": 0.5}, "items": [{"n": "a"}, {"n": "b"}],
            "tags": ["x", "y"], "none": null, "flag": true, "big": 18_446_744_073_709_551_615_u64,
        })
    }

    fn holds(condition: Json) -> bool {
        evaluate(&condition, &doc())
    }

    #[test]
    fn operators_compare_as_they_say() {
        for (path, op, value, expected) in [
            ("cost.turns", "eq", json!(3.0), true),
            ("cost.turns", "eq", json!("3"), false),
            ("nope", "eq", json!(null), true),
            ("nope", "ne", json!(1), true),
            ("cost.turns", "gt", json!(2.5), true),
            ("cost.turns", "lt", json!(3), false),
            ("cost.turns", "lte", json!(3), true),
            ("cost.turns", "gt", json!("2"), false),
            ("directive", "lt", json!("x"), true),
            ("flag", "gt", json!(0), false),
            ("big", "gt", json!(-1), true),
            ("big", "eq", json!(18_446_744_073_709_551_614_u64), false),
            ("directive", "in", json!(["a", "web/build"]), true),
            ("directive", "in", json!("web/build"), false),
            ("tags", "contains", json!("x"), true),
            ("tags", "contains", json!("z"), false),
            ("cost.turns", "contains", json!(3), true),
            ("nope", "contains", json!(""), false),
            ("directive", "regex", json!("^web/"), true),
            ("directive", "regex", json!("("), false),
            ("none", "regex", json!(".*"), false),
            ("items.1.n", "eq", json!("b"), true),
            ("items.2", "exists", json!(null), false),
            ("items.n", "exists", json!(null), false),
            ("", "exists", json!(null), true),
            ("flag", "zzz", json!(1), false),
        ] {
            assert_eq!(
                holds(json!({"path": path, "op": op, "value": value})),
                expected,
                "{path} {op} {value}"
            );
        }
    }

    #[test]
    fn conditions_combine() {
        let (yes, no) = (json!({"path": "flag", "value": true}), json!({"path": "flag", "value": false}));
        assert!(holds(json!({})) && holds(json!(null)) && !holds(json!("flag")));
        assert!(holds(json!({"any": [no, yes]})) && !holds(json!({"any": []})));
        assert!(
            holds(json!({"all": [yes, yes]}))
                && holds(json!({"all": []}))
                && !holds(json!({"all": [yes, no]}))
        );
        assert!(holds(json!({"not": no})) && !holds(json!({"not": {}})));
        assert!(holds(json!({"all": [{"any": [no, {"not": no}]}, {}]})));
        assert!(!holds(json!({"all": "flag"})));
    }

    #[test]
    fn an_impossible_condition_is_reported() {
        for (condition, message) in [
            (json!("x"), "a condition must be an object, not a string"),
            (json!({"pth": "a"}), "a condition has no `pth`"),
            (json!({"op": "eq", "value": 1}), "a condition has no `path`"),
            (json!({"path": "a", "op": "equals", "value": 1}), "unknown operator \"equals\""),
            (json!({"path": "a"}), "`eq` has no `value` to compare with"),
            (json!({"path": "a", "op": "in", "value": "b"}), "`in` needs a list, not a string"),
            (
                json!({"path": "a", "op": "gt", "value": true}),
                "`gt` compares numbers or strings, not a boolean",
            ),
            (json!({"path": "a", "op": "regex", "value": "("}), "invalid pattern of `regex`: unclosed group"),
            (json!({"any": {"path": "a"}}), "`any` must be a list of conditions, not an object"),
            (
                json!({"all": [{"path": "a", "value": 1}, {"not": {"op": "exists"}}]}),
                "a condition has no `path`",
            ),
            (
                json!({"not": {}, "path": "a", "value": 1}),
                "a condition has `not` and other keys, so it is ambiguous",
            ),
        ] {
            let error = check(&condition).unwrap_err();
            assert_eq!(
                (error.code(), error.diagnostic().message.as_str()),
                (Code::BadHook, message),
                "{condition}"
            );
        }
        for fine in
            [json!({}), json!(null), json!({"path": "a", "op": "exists"}), json!({"not": {"any": []}})]
        {
            assert!(check(&fine).is_ok(), "{fine}");
        }
        let fault =
            fault(&json!({"all": [{}, {"path": "a", "op": "eqq", "value": 1}]}), &mut vec!["c".into()])
                .unwrap();
        assert_eq!(fault.path, ["c", "all", "1", "op"]);
        assert_eq!(fault.hint.as_deref(), Some("did you mean `eq`?"));
    }

    #[test]
    fn hostile_patterns_are_bounded() {
        assert!(check(&json!({"path": "a", "op": "regex", "value": "((a{1000}){1000}){1000}"})).is_err());
        let doc = json!({"a": "a".repeat(50_000)});
        assert!(!evaluate(&json!({"path": "a", "op": "regex", "value": "(a*)*b"}), &doc));
    }
}
