//! Shapes: what a record looks like, for the parameters of a tool and for a reply that is to be read by a program.
//!
//! A [`Record`] is a named list of fields, each with a [`Shape`]. Records are written out in Rust, made from the properties
//! of a file ([`Record::from_properties`]), or taken from a Rust type that derives `JsonSchema` ([`Record::of`]). From a
//! record come its JSON Schema ([`Record::schema`]) and the reading of replies ([`crate::chat::output`]).
//!
//! A shape says what a value looks like; it holds no value and reads none.

mod described;
mod property;
mod reader;
mod schema;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::{Map, Value as Json};

pub use described::Described;

/// What a value looks like.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Text.
    Text,
    /// A whole number of any size.
    Integer,
    /// A number.
    Number,
    /// `true` or `false`.
    Boolean,
    /// Nothing.
    Null,
    /// Anything at all.
    Any,
    /// A day and a time of day, in the notation of ISO 8601.
    DateTime,
    /// A day.
    Date,
    /// A time of day.
    Time,
    /// A UUID.
    Uuid,
    /// The name of a file or folder.
    Path,
    /// One of these values.
    Enum(Vec<Json>),
    /// Any number of items.
    List(Box<Shape>),
    /// Items of which no two are the same.
    Set(Box<Shape>),
    /// As many items as there are shapes, each with its own.
    Tuple(Vec<Shape>),
    /// Names that is unknown before, and their values.
    Map(Box<Shape>),
    /// One of several; the first that fits. With [`Shape::Null`] among them a value is optional.
    Union(Vec<Shape>),
    /// Names that are known, and their values.
    Record(Arc<Record>),
}

/// Fields under a name.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its name: the title of its schema.
    pub name: String,
    /// What it is.
    pub description: Option<String>,
    /// Its fields, in order.
    pub fields: Vec<Field>,
}

/// A field of a record.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// Its name in a result.
    pub name: String,
    /// Its name in the schema and in replies, where that is another one.
    pub alias: Option<String>,
    /// What its value looks like.
    pub shape: Shape,
    /// What it is if it is not given; `None` if it must be given.
    pub default: Option<Json>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether models neither see nor set it. It keeps its default.
    pub hidden: bool,
    /// What else must be true of its value, in the words of JSON Schema: `minimum`, `maxLength`, `pattern` and so on.
    pub constraints: Map<String, Json>,
}

/// Whether an object may have undeclared keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extras {
    /// It may.
    Allowed,
    /// It may not.
    Forbidden,
}

impl Shape {
    /// This shape, or `null`.
    pub fn optional(self) -> Shape {
        match self {
            Shape::Null | Shape::Any => self,
            Shape::Union(of) if of.contains(&Shape::Null) => Shape::Union(of),
            Shape::Union(mut of) => {
                of.push(Shape::Null);
                Shape::Union(of)
            }
            other => Shape::Union(vec![other, Shape::Null]),
        }
    }

    /// A list of items of this shape.
    pub fn list(self) -> Shape {
        Shape::List(Box::new(self))
    }
}

impl Record {
    /// A record without fields.
    pub fn new(name: impl Into<String>) -> Record {
        Record { name: name.into(), description: None, fields: Vec::new() }
    }

    /// Adds a field.
    #[must_use]
    pub fn field(mut self, field: Field) -> Record {
        self.fields.push(field);
        self
    }

    /// Says what the record is.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Record {
        self.description = Some(description.into());
        self
    }
}

impl Field {
    /// A field that must be given.
    pub fn new(name: impl Into<String>, shape: Shape) -> Field {
        Field {
            name: name.into(),
            alias: None,
            shape,
            default: None,
            description: None,
            hidden: false,
            constraints: Map::new(),
        }
    }

    /// Says what the field is if it is not given.
    #[must_use]
    pub fn or(mut self, default: impl Into<Json>) -> Field {
        self.default = Some(default.into());
        self
    }

    /// Says what the field is for.
    #[must_use]
    pub fn describe(mut self, description: impl Into<String>) -> Field {
        self.description = Some(description.into());
        self
    }

    /// Gives the field another name in the schema and in replies.
    #[must_use]
    pub fn alias(mut self, alias: impl Into<String>) -> Field {
        self.alias = Some(alias.into());
        self
    }

    /// Hides the field from models that answer.
    #[must_use]
    pub fn hide(mut self) -> Field {
        self.hidden = true;
        self
    }

    /// Says what else must be true of the value, in a word of JSON Schema.
    #[must_use]
    pub fn constrain(mut self, keyword: impl Into<String>, value: impl Into<Json>) -> Field {
        self.constraints.insert(keyword.into(), value.into());
        self
    }

    /// Its name in the schema.
    pub fn key(&self) -> &str {
        self.alias.as_deref().unwrap_or(&self.name)
    }
}

/// The words of JSON Schema that a field keeps as its constraints. Those that say which shape it is are not among them.
const CONSTRAINTS: [&str; 14] = [
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "pattern",
    "format",
    "not",
];
