//! Records as JSON Schema.
//!
//! Nothing is referred to: what a record holds stands inside it, so that every provider can take the schema. Defaults are
//! not sent, because a model that knows them repeats them.

use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

use super::{Extras, Field, Record, Shape};

impl Record {
    /// Its JSON Schema, without descriptions. Records inside it always allow further keys.
    ///
    /// ```
    /// use cuebook::prompt::{Extras, Field, Record, Shape};
    ///
    /// let record = Record::new("Person").field(Field::new("age", Shape::Integer));
    /// let schema = record.schema(Extras::Forbidden);
    /// assert_eq!(schema["properties"]["age"], serde_json::json!({"type": "integer"}));
    /// assert_eq!(schema["additionalProperties"], false);
    /// ```
    pub fn schema(&self, extras: Extras) -> Json {
        Writer { nested: Extras::Allowed, descriptions: None, hide: false }.record(self, extras, "").into()
    }

    /// Its JSON Schema with what its fields are for. A description in `overrides` stands in the place of the field's own;
    /// it is found by the field's name, or by `outer.inner` for a field of a record inside this one.
    pub fn described_schema(&self, extras: Extras, overrides: &IndexMap<String, String>) -> Json {
        let writer = Writer { nested: Extras::Allowed, descriptions: Some(overrides), hide: false };
        writer.record(self, extras, "").into()
    }

    /// Its JSON Schema for a model that answers: with descriptions, without hidden fields, and with the same word about
    /// further keys at every depth, because replies are read like that.
    pub(crate) fn reply_schema(&self, extras: Extras) -> Json {
        let none = IndexMap::new();
        Writer { nested: extras, descriptions: Some(&none), hide: true }.record(self, extras, "").into()
    }
}

struct Writer<'o> {
    /// What records inside the record say about further keys.
    nested: Extras,
    /// What descriptions are replaced with; `None` if there are to be none at all.
    descriptions: Option<&'o IndexMap<String, String>>,
    /// Whether hidden fields are left out.
    hide: bool,
}

impl Writer<'_> {
    fn record(&self, record: &Record, extras: Extras, path: &str) -> Map<String, Json> {
        let mut properties = Map::new();
        let mut required = Vec::new();
        for field in record.fields.iter().filter(|field| !(self.hide && field.hidden)) {
            properties.insert(field.key().to_owned(), self.field(field, path).into());
            if field.default.is_none() {
                required.push(json!(field.key()));
            }
        }
        let mut schema = Map::new();
        schema.insert("title".into(), json!(record.name));
        if let (Some(_), Some(description)) = (self.descriptions, &record.description) {
            schema.insert("description".into(), json!(description));
        }
        schema.insert("type".into(), json!("object"));
        schema.insert("properties".into(), properties.into());
        schema.insert("additionalProperties".into(), json!(extras == Extras::Allowed));
        if !required.is_empty() {
            schema.insert("required".into(), required.into());
        }
        schema
    }

    fn field(&self, field: &Field, path: &str) -> Map<String, Json> {
        let at = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
        let mut schema = self.shape(&field.shape, &at(&field.name));
        schema.extend(field.constraints.clone());
        if let Some(overrides) = self.descriptions {
            let said = overrides.get(&at(&field.name)).or_else(|| overrides.get(&at(field.key())));
            if let Some(description) = said.or(field.description.as_ref()) {
                schema.insert("description".into(), json!(description));
            }
        }
        schema
    }

    fn shape(&self, shape: &Shape, path: &str) -> Map<String, Json> {
        let mut schema = Map::new();
        let mut put = |key: &str, value: Json| drop(schema.insert(key.to_owned(), value));
        let inner = |shape: &Shape| Json::Object(self.shape(shape, path));
        match shape {
            Shape::Text | Shape::Path => put("type", json!("string")),
            Shape::Integer => put("type", json!("integer")),
            Shape::Number => put("type", json!("number")),
            Shape::Boolean => put("type", json!("boolean")),
            Shape::Null => put("type", json!("null")),
            Shape::Any => {}
            Shape::DateTime | Shape::Date | Shape::Time | Shape::Uuid => {
                put("type", json!("string"));
                put(
                    "format",
                    json!(match shape {
                        Shape::DateTime => "date-time",
                        Shape::Date => "date",
                        Shape::Time => "time",
                        _ => "uuid",
                    }),
                );
            }
            Shape::Enum(values) => {
                put("enum", json!(values));
                if let Some(name) = common_type(values) {
                    put("type", json!(name));
                }
            }
            Shape::List(items) | Shape::Set(items) => {
                put("type", json!("array"));
                put("items", inner(items));
                if matches!(shape, Shape::Set(_)) {
                    put("uniqueItems", json!(true));
                }
            }
            Shape::Tuple(items) => {
                put("type", json!("array"));
                put("prefixItems", items.iter().map(inner).collect());
                put("minItems", json!(items.len()));
                put("maxItems", json!(items.len()));
            }
            Shape::Map(values) => {
                put("type", json!("object"));
                put("additionalProperties", inner(values));
            }
            Shape::Record(record) => return self.record(record, self.nested, path),
            Shape::Union(of) => return self.union(of, path),
        }
        schema
    }

    /// `anyOf`, with `null` last and, beside it, the type that all others share. If there is one other and it is an object,
    /// all that is known of it stands beside `anyOf` too, for providers that look no further.
    fn union(&self, of: &[Shape], path: &str) -> Map<String, Json> {
        let others: Vec<Map<String, Json>> =
            of.iter().filter(|shape| **shape != Shape::Null).map(|shape| self.shape(shape, path)).collect();
        let mut schema = match others.as_slice() {
            [only] if only.get("type") == Some(&json!("object")) => only.clone(),
            _ => Map::new(),
        };
        let shared = others.first().and_then(|first| first.get("type")).cloned();
        let shared = shared.filter(|shared| others.iter().all(|other| other.get("type") == Some(shared)));
        let mut any_of: Vec<Json> = others.into_iter().map(Json::Object).collect();
        if of.contains(&Shape::Null) {
            any_of.push(json!({"type": "null"}));
        }
        schema.insert("anyOf".into(), any_of.into());
        if let Some(shared) = shared {
            schema.insert("type".into(), shared);
        }
        schema
    }
}

/// The one type that all values have.
fn common_type(values: &[Json]) -> Option<&'static str> {
    let type_of = |value: &Json| match value {
        Json::Bool(_) => Some("boolean"),
        Json::String(_) => Some("string"),
        Json::Number(number) if number.is_f64() => Some("number"),
        Json::Number(_) => Some("integer"),
        _ => None,
    };
    let first = type_of(values.first()?)?;
    values.iter().all(|value| type_of(value) == Some(first)).then_some(first)
}
