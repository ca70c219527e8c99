//! How an answer is compared with what a case expects.

use serde_json::Value as Json;

/// Everything that is expected is there: further keys do not matter, `null` is the same as absent, lists have the same
/// length, numbers are compared by value.
pub fn includes(expected: &Json, actual: &Json) -> Result<(), String> {
    at("$", expected, actual)
}

fn at(path: &str, expected: &Json, actual: &Json) -> Result<(), String> {
    let differs = || Err(format!("{path}: expected {expected}, got {actual}"));
    match (expected, actual) {
        (Json::Object(wanted), Json::Object(have)) => wanted.iter().try_for_each(|(key, value)| {
            at(&format!("{path}.{key}"), value, have.get(key).unwrap_or(&Json::Null))
        }),
        (Json::Array(wanted), Json::Array(have)) if wanted.len() == have.len() => wanted
            .iter()
            .zip(have)
            .enumerate()
            .try_for_each(|(index, (wanted, have))| at(&format!("{path}[{index}]"), wanted, have)),
        (Json::Number(wanted), Json::Number(have)) if wanted.as_f64() == have.as_f64() => Ok(()),
        _ if expected == actual => Ok(()),
        _ => differs(),
    }
}

/// The same, whole; numbers are compared by value.
pub fn equals(expected: &Json, actual: &Json) -> Result<(), String> {
    includes(expected, actual)?;
    includes(actual, expected).map_err(|why| format!("more than expected: {why}"))
}
