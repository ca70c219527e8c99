//! Picoschema: short descriptions of values, as JSON Schema.

use serde_json::{Map, Value as Json, json};

use super::wrong;
use crate::error::{Result, did_you_mean, nearest};
use crate::node::{Data, Node};

/// The types that a description can name.
const SCALARS: [&str; 6] = ["any", "boolean", "integer", "null", "number", "string"];

/// Schemas that are known by a name.
pub(super) type Names<'n> = &'n dyn Fn(&str) -> Result<Option<Json>>;

/// A description as JSON Schema. What is JSON Schema already stays as it is.
pub(super) fn to_json_schema(node: &Node, names: Names<'_>) -> Result<Json> {
    let is_type = |node: &Node| {
        node.text().is_some_and(|name| SCALARS.contains(&name) || matches!(name, "object" | "array"))
    };
    if node.get("type").is_some_and(is_type) {
        return Ok(node.to_json());
    }
    if let Some(Node { data: Data::Map(_), .. }) = node.get("properties") {
        let mut schema = node.to_json();
        schema["type"] = json!("object");
        return Ok(schema);
    }
    read(node, names)
}

fn read(node: &Node, names: Names<'_>) -> Result<Json> {
    match &node.data {
        Data::Text(text) => scalar(node, text, names),
        Data::Map(_) => object(node, names),
        _ => {
            let message = format!("a schema cannot be {}", node.describe());
            let hint =
                "write a type, as in `name: string, the name of the user`, or a map of names and types";
            Err(wrong(node.opening(), message, hint))
        }
    }
}

/// A type and a description, with a comma between them.
fn described(text: &str) -> (&str, Option<&str>) {
    match text.split_once(',') {
        Some((kind, description)) => (kind.trim(), Some(description.trim()).filter(|text| !text.is_empty())),
        None => (text.trim(), None),
    }
}

fn scalar(node: &Node, text: &str, names: Names<'_>) -> Result<Json> {
    let (kind, description) = described(text);
    let mut schema = match kind {
        "any" => json!({}),
        kind if SCALARS.contains(&kind) => json!({"type": kind}),
        kind => match names(kind)? {
            Some(schema) => schema,
            None => {
                let hint = did_you_mean(&nearest(kind, SCALARS)).unwrap_or_else(|| {
                    format!("use one of: {}; or describe it in schemas/{kind}.json", SCALARS.join(", "))
                });
                return Err(wrong(node.place.clone(), format!("unknown type `{kind}`"), hint));
            }
        },
    };
    if let (Some(description), Json::Object(schema)) = (description, &mut schema) {
        schema.insert("description".into(), json!(description));
    }
    Ok(schema)
}

fn object(node: &Node, names: Names<'_>) -> Result<Json> {
    let Data::Map(entries) = &node.data else { return Ok(Json::Null) };
    let (mut properties, mut required) = (Map::new(), Vec::new());
    let mut additional = Json::Bool(false);
    for (key, value) in entries {
        if key.name == "(*)" {
            additional = read(value, names)?;
            continue;
        }
        let (name, info) = match key.name.split_once('(') {
            Some((name, info)) => (name, Some(info.strip_suffix(')').unwrap_or(info))),
            None => (key.name.as_str(), None),
        };
        let (name, is_optional) = match name.strip_suffix('?') {
            Some(name) => (name, true),
            None => (name, false),
        };
        if !is_optional {
            required.push(json!(name));
        }
        let mut property = match info.filter(|info| !info.is_empty()).map(described) {
            None => nullable(read(value, names)?, is_optional),
            Some((kind, description)) => {
                let mut property = match kind {
                    "array" => nullable(json!({"type": "array", "items": read(value, names)?}), is_optional),
                    "object" => nullable(read(value, names)?, is_optional),
                    "enum" => choices(value, is_optional)?,
                    other => {
                        let known = ["array", "object", "enum"];
                        let hint = did_you_mean(&nearest(other, known))
                            .unwrap_or_else(|| format!("use one of: {}", known.join(", ")));
                        let message = format!("unknown kind `{other}` between brackets");
                        return Err(wrong(key.place.clone(), message, hint));
                    }
                };
                if let (Some(description), Json::Object(property)) = (description, &mut property) {
                    property.insert("description".into(), json!(description));
                }
                property
            }
        };
        // Two spellings of one name would take each other's place.
        if properties.contains_key(name) {
            let message = format!("`{name}` is described twice");
            return Err(wrong(key.place.clone(), message, "remove one of the two"));
        }
        properties.insert(name.to_owned(), property.take());
    }
    let mut schema = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        schema["required"] = Json::Array(required);
    }
    schema["additionalProperties"] = additional;
    Ok(schema)
}

/// What is optional may be null as well.
fn nullable(mut schema: Json, is_optional: bool) -> Json {
    if is_optional && let Some(Json::String(kind)) = schema.get("type") {
        schema["type"] = json!([kind, "null"]);
    }
    schema
}

fn choices(node: &Node, is_optional: bool) -> Result<Json> {
    let Data::List(items) = &node.data else {
        let message = format!("the values of an enum must be a list, but are {}", node.describe());
        return Err(wrong(node.opening(), message, "write `color(enum): [RED, BLUE]`"));
    };
    let mut values: Vec<Json> = items.iter().map(Node::to_json).collect();
    if is_optional && !values.contains(&Json::Null) {
        values.push(Json::Null);
    }
    Ok(json!({"enum": values}))
}
