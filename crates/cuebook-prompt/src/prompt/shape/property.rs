//! Shapes of the properties that files declare.

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::{CONSTRAINTS, Field, Record, Shape};
use crate::prompt::{Kind, Property, UnionStyle};

impl Shape {
    /// The shape of a property. Beside the kinds that have a name of their own it knows `datetime`, `date`, `time`, `uuid`,
    /// `path` and `null`; what only the author knows can be anything.
    pub fn of_property(property: &Property) -> Shape {
        let shape = match &property.kind {
            _ if !property.enum_values.is_empty() => {
                let (null, values): (Vec<Json>, Vec<Json>) =
                    property.enum_values.iter().cloned().partition(Json::is_null);
                let shape = Shape::Enum(values);
                if null.is_empty() { shape } else { shape.optional() }
            }
            Kind::String => match property.extra.get("format").and_then(Json::as_str) {
                Some(format) => of_format(format).unwrap_or(Shape::Text),
                None => Shape::Text,
            },
            Kind::Integer => Shape::Integer,
            Kind::Float | Kind::Number => Shape::Number,
            Kind::Boolean => Shape::Boolean,
            Kind::Array { items } => {
                let items = Box::new(Shape::of_property(items));
                let unique = property.extra.get("uniqueItems") == Some(&Json::Bool(true));
                if unique { Shape::Set(items) } else { Shape::List(items) }
            }
            Kind::Object { properties } if properties.is_empty() => Shape::Map(Box::new(Shape::Any)),
            Kind::Object { properties } => {
                Shape::Record(Arc::new(Record::from_properties(property.name.as_str(), properties)))
            }
            Kind::Union { of, .. } => Shape::Union(of.iter().map(Shape::of_property).collect()),
            Kind::Rich(_) => Shape::Any,
            Kind::Custom(name) => match name.as_str() {
                "path" => Shape::Path,
                "null" => Shape::Null,
                "datetime" => Shape::DateTime,
                other => of_format(other).unwrap_or(Shape::Any),
            },
        };
        if property.nullable { shape.optional() } else { shape }
    }
}

/// The shape of texts of a format of JSON Schema; `None` if they are texts like others.
pub(super) fn of_format(format: &str) -> Option<Shape> {
    match format {
        // Times without a place on earth have a name of their own in schemas that Rust types give.
        "date-time" | "partial-date-time" => Some(Shape::DateTime),
        "date" => Some(Shape::Date),
        "time" | "partial-time" => Some(Shape::Time),
        "uuid" => Some(Shape::Uuid),
        _ => None,
    }
}

impl Record {
    /// A record of the properties of a file. What is neither required nor has a default is `null` if it is not given.
    pub fn from_properties(name: impl Into<String>, properties: &[Property]) -> Record {
        let fields = properties.iter().map(Field::of_property).collect();
        Record { name: name.into(), description: None, fields }
    }
}

impl Field {
    /// The field of a property. Words of JSON Schema beside its kind (`minimum`, `pattern`, …) are its constraints.
    pub fn of_property(property: &Property) -> Field {
        let shape = Shape::of_property(property);
        let constraints = constraints(&property.extra, &shape);
        let default = property.default.clone().unwrap_or(Json::Null);
        Field {
            name: property.name.clone(),
            alias: None,
            shape,
            default: (!property.required).then_some(default),
            description: property.description.clone(),
            hidden: false,
            constraints,
        }
    }
}

impl Record {
    /// The fields that a model gets, as the properties of a file: the opposite of [`Record::from_properties`].
    pub fn to_properties(&self) -> Vec<Property> {
        let shown = self.fields.iter().filter(|field| !field.hidden);
        shown.map(Field::to_property).collect()
    }
}

impl Field {
    fn to_property(&self) -> Property {
        let mut property = self.shape.to_property(self.key());
        property.required = self.default.is_none();
        property.default = self.default.clone().filter(|default| !default.is_null());
        property.description = self.description.clone();
        property.extra.extend(self.constraints.clone());
        property
    }
}

impl Shape {
    fn to_property(&self, name: &str) -> Property {
        let items = |shape: &Shape| Kind::Array { items: Box::new(shape.to_property("")) };
        let (kind, extra): (Kind, &[(&str, Json)]) = match self {
            Shape::Text | Shape::Path => (Kind::String, &[]),
            Shape::Integer => (Kind::Integer, &[]),
            Shape::Number => (Kind::Number, &[]),
            Shape::Boolean => (Kind::Boolean, &[]),
            Shape::Null => (Kind::Custom("null".to_owned()), &[]),
            Shape::Any => (Kind::Custom("any".to_owned()), &[]),
            Shape::DateTime => (Kind::String, &[("format", json!("date-time"))]),
            Shape::Date => (Kind::String, &[("format", json!("date"))]),
            Shape::Time => (Kind::String, &[("format", json!("time"))]),
            Shape::Uuid => (Kind::String, &[("format", json!("uuid"))]),
            Shape::Enum(values) => (kind_of(values), &[]),
            Shape::List(shape) => (items(shape), &[]),
            Shape::Set(shape) => (items(shape), &[("uniqueItems", Json::Bool(true))]),
            Shape::Tuple(shapes) => (items(&Shape::Union(shapes.clone())), &[]),
            Shape::Map(_) => (Kind::Object { properties: Vec::new() }, &[]),
            Shape::Record(record) => (Kind::Object { properties: record.to_properties() }, &[]),
            Shape::Union(shapes) => return union(name, shapes),
        };
        let mut property = Property::new(name, kind);
        if let Shape::Enum(values) = self {
            property.enum_values.clone_from(values);
        }
        property.extra.extend(extra.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
        property
    }
}

/// One of several shapes. With `null` among them it is the others, and may be `null`.
fn union(name: &str, shapes: &[Shape]) -> Property {
    let (null, others): (Vec<&Shape>, Vec<&Shape>) = shapes.iter().partition(|shape| **shape == Shape::Null);
    let mut property = match others.as_slice() {
        [one] => one.to_property(name),
        several => {
            let of = several.iter().map(|shape| shape.to_property("")).collect();
            Property::new(name, Kind::Union { style: UnionStyle::AnyOf, of })
        }
    };
    property.nullable |= !null.is_empty();
    property
}

/// The kind of the values of an enumeration; text if they are of several.
fn kind_of(values: &[Json]) -> Kind {
    match () {
        () if values.iter().all(Json::is_boolean) => Kind::Boolean,
        () if values.iter().all(|value| value.is_i64() || value.is_u64()) => Kind::Integer,
        () if values.iter().all(Json::is_number) => Kind::Number,
        () => Kind::String,
    }
}

/// What a schema demands of a value beyond its shape.
pub(super) fn constraints(schema: &Map<String, Json>, shape: &Shape) -> Map<String, Json> {
    let bare = match shape {
        Shape::Union(of) => of.iter().find(|shape| **shape != Shape::Null).unwrap_or(shape),
        other => other,
    };
    let wanted = |keyword: &str| match keyword {
        // The format of a number is how a machine holds it; that of a shape is the shape.
        "format" => *bare == Shape::Text,
        // A tuple has as many items as it has.
        "minItems" | "maxItems" => !matches!(bare, Shape::Tuple(_)),
        _ => true,
    };
    let kept = CONSTRAINTS.iter().filter(|keyword| wanted(keyword));
    kept.filter_map(|keyword| Some(((*keyword).to_owned(), schema.get(*keyword)?.clone()))).collect()
}
