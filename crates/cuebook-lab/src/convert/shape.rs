//! Records as the properties of front matter.

use serde_json::{Map, Value as Json, json};

use super::draft::with_items;
use crate::prompt::{Record, Shape};

/// The fields of a record, by name.
pub(super) fn properties(record: &Record) -> Json {
    let field = |field: &crate::prompt::Field| {
        let mut object = shape(&field.shape);
        if let Some(description) = &field.description {
            object.insert("description".into(), json!(description));
        }
        match &field.default {
            None => drop(object.insert("required".into(), json!(true))),
            Some(Json::Null) => {}
            Some(default) => drop(object.insert("default".into(), default.clone())),
        }
        object.extend(field.constraints.clone());
        (field.key().to_owned(), Json::Object(object))
    };
    Json::Object(record.fields.iter().map(field).collect())
}

/// What a value looks like.
fn shape(of: &Shape) -> Map<String, Json> {
    let mut object = Map::new();
    let mut say = |key: &str, value: Json| drop(object.insert(key.to_owned(), value));
    match of {
        Shape::Enum(values) => {
            let all_text = values.iter().all(Json::is_string);
            say("kind", json!(if all_text { "string" } else { "any" }));
            say("enumValues", Json::Array(values.clone()));
        }
        Shape::List(items) => {
            say("kind", json!("array"));
            say("items", Json::Object(shape(items)));
        }
        Shape::Set(items) => {
            say("kind", json!("array"));
            say("items", Json::Object(shape(items)));
            say("uniqueItems", json!(true));
        }
        Shape::Record(record) => {
            say("kind", json!("object"));
            say("properties", properties(record));
        }
        Shape::Union(of) => {
            let branches: Vec<&Shape> = of.iter().filter(|branch| **branch != Shape::Null).collect();
            let is_nullable = branches.len() < of.len();
            match branches.as_slice() {
                [one] => object = shape(one),
                _ => {
                    let branches = branches.iter().map(|branch| Json::Object(shape(branch)));
                    say("kind", json!("union"));
                    say("anyOf", branches.collect());
                }
            }
            if is_nullable {
                object.insert("nullable".into(), json!(true));
            }
        }
        simple => say("kind", json!(kind(simple))),
    }
    with_items(&mut object);
    object
}

/// The name of a kind that has nothing in it.
fn kind(of: &Shape) -> &'static str {
    match of {
        Shape::Text => "string",
        Shape::Integer => "integer",
        Shape::Number => "float",
        Shape::Boolean => "boolean",
        Shape::Null => "null",
        Shape::DateTime => "datetime",
        Shape::Date => "date",
        Shape::Time => "time",
        Shape::Uuid => "uuid",
        Shape::Path => "path",
        Shape::Map(_) => "object",
        Shape::Tuple(_) => "array",
        _ => "any",
    }
}
