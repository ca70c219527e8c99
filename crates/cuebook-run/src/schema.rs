//! Whether parameters fit the schema that a tool declares: what is required is there, and what is there has its type.
//!
//! This looks at the top level only, which is what a caller can mend at a glance; what is deeper is for the tool to judge. A
//! schema that says something else than it should is the tool's mistake and no reason to refuse a call.

use cuebook::error::{did_you_mean, nearest};
use cuebook::json::type_of;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Map, Value as Json};

/// Checks the parameters of a call.
pub(crate) fn check(id: &str, schema: Option<&Json>, parameters: &Map<String, Json>) -> Result<()> {
    let Some(Json::Object(schema)) = schema else { return Ok(()) };
    let mut wrong = Vec::new();
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Json::as_object).unwrap_or(&empty);
    if schema.get("additionalProperties") == Some(&Json::Bool(false)) {
        for name in parameters.keys().filter(|name| !properties.contains_key(*name)) {
            let near = did_you_mean(&nearest(name, properties.keys().map(String::as_str)));
            let hint = near.unwrap_or_else(|| {
                let known: Vec<&str> = properties.keys().map(String::as_str).collect();
                format!("it takes {}", known.join(", "))
            });
            wrong.push(
                Diagnostic::new(Code::BadParameters, format!("{id} has no parameter `{name}`")).hint(hint),
            );
        }
    }
    for name in schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str)
    {
        if !parameters.contains_key(name) {
            let described = properties.get(name).and_then(|property| property.get("description")?.as_str());
            let message = format!("{id} needs the parameter `{name}`");
            wrong.push(Diagnostic::new(Code::BadParameters, message).hint_opt(described.map(str::to_owned)));
        }
    }
    for (name, value) in parameters {
        let Some(property) = properties.get(name) else { continue };
        if let Some(types) = property.get("type")
            && !has_type(value, types)
        {
            let wanted = match types {
                Json::String(wanted) => wanted.clone(),
                Json::Array(types) => types.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(" or "),
                _ => continue,
            };
            let message = format!("the parameter `{name}` must be of type {wanted}, not {}", type_of(value));
            wrong.push(Diagnostic::new(Code::BadParameters, message));
        }
        if let Some(Json::Array(allowed)) = property.get("enum")
            && !allowed.contains(value)
        {
            let allowed: Vec<String> = allowed.iter().map(Json::to_string).collect();
            let message = format!("the parameter `{name}` cannot be {value}");
            let hint = format!("use one of {}", allowed.join(", "));
            wrong.push(Diagnostic::new(Code::BadParameters, message).hint(hint));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Error::all(ErrorKind::Execute, wrong)) }
}

fn has_type(value: &Json, types: &Json) -> bool {
    match types {
        Json::Array(types) => types.iter().any(|wanted| has_type(value, wanted)),
        Json::String(wanted) => match wanted.as_str() {
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "number" => value.is_number(),
            "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
            "array" => value.is_array(),
            "object" => value.is_object(),
            "null" => value.is_null(),
            // A word that JSON Schema does not have says nothing.
            _ => true,
        },
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn all_misfits_are_reported_together() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["path"],
            "properties": {"path": {"type": "string"}, "limit": {"type": ["integer", "null"]}, "mode": {"enum": ["a"]}},
        });
        let check = |given: Json| check("t", Some(&schema), given.as_object().unwrap());
        assert!(check(json!({"path": "x", "limit": 3.0, "mode": "a"})).is_ok());
        let error = check(json!({"pth": 1, "limit": "3", "mode": "b"})).unwrap_err();
        let messages: Vec<&str> = error.diagnostics().iter().map(|d| d.message.as_str()).collect();
        assert_eq!(
            messages,
            [
                "t has no parameter `pth`",
                "t needs the parameter `path`",
                "the parameter `limit` must be of type integer or null, not a string",
                "the parameter `mode` cannot be \"b\"",
            ]
        );
    }
}
