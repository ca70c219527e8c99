//! Described values as JSON Schema, in the variant that a provider takes.

use serde_json::{Map, Value as Json, json};

use super::draft::Draft;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity};
use crate::prompt::{Kind, Property, UnionStyle};

/// How much of JSON Schema a provider takes, and what it demands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Variant {
    /// Whatever can be said.
    Plain,
    /// OpenAI's strict mode: every property is required, so an optional one may be `null` instead; no `oneOf`.
    Strict,
    /// Anthropic's strict mode: objects are closed, but properties may be optional.
    Closed,
}

impl Draft<'_> {
    /// An object with these properties.
    pub fn schema(&mut self, properties: &[&Property], variant: Variant, path: &str) -> Result<Json> {
        let mut schema = self.object(properties, variant, path)?;
        if variant != Variant::Plain {
            schema.insert("additionalProperties".into(), json!(false));
        }
        Ok(Json::Object(schema))
    }

    fn object(
        &mut self,
        properties: &[&Property],
        variant: Variant,
        path: &str,
    ) -> Result<Map<String, Json>> {
        let mut schemas = Map::new();
        let mut required = Vec::new();
        for property in properties {
            let optional = variant == Variant::Strict && !property.required;
            let path = format!("{path}.{}", property.name);
            let schema = self.property(property, property.nullable || optional, variant, &path)?;
            schemas.insert(property.name.clone(), Json::Object(schema));
            if variant == Variant::Strict || property.required {
                required.push(json!(property.name));
            }
        }
        let mut object = Map::new();
        object.insert("type".into(), json!("object"));
        object.insert("properties".into(), Json::Object(schemas));
        if !required.is_empty() {
            object.insert("required".into(), Json::Array(required));
        }
        Ok(object)
    }

    fn property(
        &mut self,
        property: &Property,
        nullable: bool,
        variant: Variant,
        path: &str,
    ) -> Result<Map<String, Json>> {
        let mut schema = Map::new();
        match &property.kind {
            Kind::Array { items } => {
                schema.insert("type".into(), json!("array"));
                let items = self.property(items, items.nullable, variant, &format!("{path}[]"))?;
                schema.insert("items".into(), Json::Object(items));
            }
            Kind::Object { properties } if properties.is_empty() => {
                schema.insert("type".into(), json!("object"));
                if variant != Variant::Plain {
                    schema.insert("properties".into(), json!({}));
                    schema.insert("additionalProperties".into(), json!(false));
                    self.empty_object(property, path);
                }
            }
            Kind::Object { properties } => {
                schema = self.object(&properties.iter().collect::<Vec<_>>(), variant, path)?;
                schema.insert("additionalProperties".into(), json!(false));
            }
            Kind::Union { style, of } => {
                let key = self.union_key(property, *style, variant, path)?;
                let mut branches = Vec::new();
                for (index, branch) in of.iter().enumerate() {
                    let path = format!("{path}.{}[{index}]", style.as_str());
                    branches.push(Json::Object(self.property(branch, branch.nullable, variant, &path)?));
                }
                if nullable {
                    branches.push(json!({"type": "null"}));
                }
                schema.insert(key.into(), Json::Array(branches));
            }
            kind => match json_type(kind) {
                Some(name) => drop(schema.insert("type".into(), json!(name))),
                None if variant == Variant::Plain => {}
                None => {
                    let why = format!("needs a known type, but `{}` has none", kind.as_str());
                    return Err(self.refuse_schema(
                        property,
                        path,
                        &why,
                        "use a kind such as `string` or `object`",
                    ));
                }
            },
        }
        if nullable && let Some(name) = schema.get("type").cloned() {
            schema.insert("type".into(), json!([name, "null"]));
        }
        describe(&mut schema, property, nullable);
        Ok(schema)
    }

    /// Under which key the branches of a union stand.
    fn union_key(
        &mut self,
        property: &Property,
        style: UnionStyle,
        variant: Variant,
        path: &str,
    ) -> Result<&'static str> {
        match (style, variant) {
            (UnionStyle::AnyOf, _) => Ok("anyOf"),
            (UnionStyle::OneOf, Variant::Plain) => Ok("oneOf"),
            (UnionStyle::OneOf, Variant::Strict) => {
                Err(self.refuse_schema(property, path, "does not accept `oneOf`", "write `anyOf` instead"))
            }
            (UnionStyle::OneOf, Variant::Closed) => {
                let message = format!("`{path}`: `oneOf` is sent as `anyOf`");
                let hint = format!(
                    "{} does not accept `oneOf`; write `anyOf` to silence this warning",
                    self.api.title()
                );
                let note = Diagnostic::new(Code::UnsupportedSchema, message).hint(hint);
                self.note(at(note, property).severity(Severity::Note));
                Ok("anyOf")
            }
        }
    }

    fn empty_object(&mut self, property: &Property, path: &str) {
        let message = format!("`{path}` can only be an empty object");
        let hint = format!(
            "{} needs the names of an object's properties; list them under `properties`",
            self.api.title()
        );
        let note = Diagnostic::new(Code::UnsupportedSchema, message).hint(hint);
        self.note(at(note, property).severity(Severity::Warning));
    }

    fn refuse_schema(&self, property: &Property, path: &str, why: &str, hint: &str) -> Error {
        let message = format!("`{path}`: {} {why}", self.api.title());
        let diagnostic = Diagnostic::new(Code::UnsupportedSchema, message).hint(hint);
        Error::new(ErrorKind::Wire, at(diagnostic, property))
            .with("wire", self.api.as_str())
            .with("property", path)
    }
}

fn at(diagnostic: Diagnostic, property: &Property) -> Diagnostic {
    match &property.place {
        Some(place) => diagnostic.at(place.clone()).label("declared here"),
        None => diagnostic,
    }
}

fn describe(schema: &mut Map<String, Json>, property: &Property, nullable: bool) {
    if let Some(description) = &property.description {
        schema.insert("description".into(), json!(description));
    }
    if !property.enum_values.is_empty() {
        let mut values = property.enum_values.clone();
        if nullable && !values.contains(&Json::Null) {
            values.push(Json::Null);
        }
        schema.insert("enum".into(), Json::Array(values));
    }
}

fn json_type(kind: &Kind) -> Option<&'static str> {
    match kind {
        Kind::String => Some("string"),
        Kind::Integer => Some("integer"),
        Kind::Float | Kind::Number => Some("number"),
        Kind::Boolean => Some("boolean"),
        Kind::Array { .. } => Some("array"),
        Kind::Object { .. } => Some("object"),
        Kind::Union { .. } | Kind::Rich(_) | Kind::Custom(_) => None,
    }
}

/// An object with these properties in the part of OpenAPI that Gemini's own schemas are made of; `None` if it takes more
/// than that, and Gemini has to be given JSON Schema.
pub(super) fn gemini(properties: &[&Property]) -> Option<Json> {
    if properties.is_empty() {
        return None;
    }
    let mut schemas = Map::new();
    for property in properties {
        schemas.insert(property.name.clone(), gemini_property(property)?);
    }
    let names: Vec<&str> = properties.iter().map(|property| property.name.as_str()).collect();
    let required: Vec<&str> = properties.iter().filter(|p| p.required).map(|p| p.name.as_str()).collect();
    let mut object = Map::new();
    object.insert("type".into(), json!("OBJECT"));
    object.insert("properties".into(), Json::Object(schemas));
    if !required.is_empty() {
        object.insert("required".into(), json!(required));
    }
    object.insert("propertyOrdering".into(), json!(names));
    Some(Json::Object(object))
}

fn gemini_property(property: &Property) -> Option<Json> {
    let mut schema = Map::new();
    match &property.kind {
        Kind::Object { properties } => {
            let object = gemini(&properties.iter().collect::<Vec<_>>())?;
            schema.extend(object.as_object().cloned()?);
        }
        Kind::Union { style: UnionStyle::AnyOf, of } => {
            let branches = of.iter().map(gemini_property).collect::<Option<Vec<_>>>()?;
            schema.insert("anyOf".into(), Json::Array(branches));
        }
        kind => {
            schema.insert("type".into(), json!(json_type(kind)?.to_uppercase()));
            if let Kind::Array { items } = kind {
                schema.insert("items".into(), gemini_property(items)?);
            }
        }
    }
    if property.nullable {
        schema.insert("nullable".into(), json!(true));
    }
    if let Some(description) = &property.description {
        schema.insert("description".into(), json!(description));
    }
    if !property.enum_values.is_empty() {
        // Only words can be listed there.
        if !matches!(property.kind, Kind::String) || !property.enum_values.iter().all(Json::is_string) {
            return None;
        }
        schema.insert("enum".into(), json!(property.enum_values));
    }
    Some(Json::Object(schema))
}
