//! Records from JSON Schema, as `schemars` makes it of Rust types.
//!
//! References are followed and what they name is written out, so a type that holds itself is refused, and so is a schema
//! that becomes too large when it is written out. What a schema demands of the *items* of a list beyond their shape is not
//! kept: the Rust type demands it when a value is read into it.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::property::{constraints, of_format};
use super::{Described, Field, Record, Shape};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::json::quoted;

/// Shapes that a record may be made of when everything is written out.
const MAX_SHAPES: usize = 20_000;

/// How deeply schemas may nest.
const DEEPEST: usize = 64;

impl Record {
    /// The record of a Rust type. Doc comments become descriptions, `#[serde(default)]` gives defaults.
    ///
    /// ```
    /// use cuebook::prompt::{Record, Shape};
    ///
    /// #[derive(schemars::JsonSchema, serde::Deserialize)]
    /// struct Search {
    ///     /// What to look for.
    ///     query: String,
    ///     limit: Option<u8>,
    /// }
    ///
    /// let record = Record::of::<Search>()?;
    /// assert_eq!(record.fields[0].shape, Shape::Text);
    /// assert_eq!(record.fields[0].description.as_deref(), Some("What to look for."));
    /// assert!(record.fields[1].default.is_some(), "an `Option` may be left out");
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn of<T: Described>() -> Result<Arc<Record>> {
        T::record()
    }

    /// The record that a JSON Schema describes. References may lead to `$defs` or `definitions` of the same schema.
    pub fn from_json_schema(schema: &Json) -> Result<Record> {
        let name = schema.get("title").and_then(Json::as_str).unwrap_or("Record").to_owned();
        let mut reader = ShapeReader {
            root: schema,
            known: HashMap::new(),
            open: Vec::new(),
            path: Vec::new(),
            shapes: 0,
        };
        let mut record = match reader.shape(schema, &name)? {
            Shape::Record(record) => Arc::unwrap_or_clone(record),
            // A struct without fields gives an object of which nothing is said.
            Shape::Map(values) if *values == Shape::Any && schema.get("additionalProperties").is_none() => {
                Record::new(name)
            }
            _ => {
                return Err(
                    reader.refuse("expected an object with properties", "use a struct with named fields")
                );
            }
        };
        record.description = text(schema, "description").or(record.description);
        Ok(record)
    }
}

fn text(schema: &Json, key: &str) -> Option<String> {
    schema.get(key).and_then(Json::as_str).map(str::to_owned)
}

struct ShapeReader<'s> {
    root: &'s Json,
    /// What references lead to, and how many shapes that is when it is written out.
    known: HashMap<&'s str, (Shape, usize)>,
    /// The references that are being followed.
    open: Vec<&'s str>,
    /// The names on the way here, for messages.
    path: Vec<String>,
    shapes: usize,
}

impl<'s> ShapeReader<'s> {
    fn refuse(&self, why: &str, hint: &str) -> Error {
        let place = match self.path.join(".") {
            path if path.is_empty() => "the schema".to_owned(),
            path => quoted(&path),
        };
        let message = format!("{place} cannot be a field: {why}");
        Error::new(ErrorKind::Usage, Diagnostic::new(Code::UnsupportedSchema, message).hint(hint))
            .with("property", self.path.join("."))
    }

    fn count(&mut self, shapes: usize) -> Result<()> {
        self.shapes = self.shapes.saturating_add(shapes);
        if self.shapes > MAX_SHAPES {
            let why = format!("its schema has more than {MAX_SHAPES} parts");
            return Err(self.refuse(&why, "use a smaller type, or `serde_json::Value` for a part of it"));
        }
        Ok(())
    }

    /// Reads the schema of what has this name.
    fn inside(&mut self, name: &str, schema: &'s Json) -> Result<Shape> {
        if self.path.len() >= DEEPEST {
            return Err(self.refuse("it is nested too deeply", "use a flatter type"));
        }
        self.path.push(name.to_owned());
        let shape = self.shape(schema, name);
        if shape.is_ok() {
            self.path.pop();
        }
        shape
    }

    /// Reads a schema. A record in it that has no title gets the given name.
    fn shape(&mut self, schema: &'s Json, name: &str) -> Result<Shape> {
        self.count(1)?;
        let object = match schema {
            Json::Object(object) => object,
            Json::Bool(true) => return Ok(Shape::Any),
            Json::Bool(false) => {
                return Err(self.refuse("it allows no value", "remove the property"));
            }
            _ => return Err(self.refuse("it is not a JSON Schema", "use an object, `true` or `false`")),
        };
        let name = object.get("title").and_then(Json::as_str).unwrap_or(name);
        // What is said beside a reference, or for all branches at once, belongs to each of them.
        let mut shape = match (object.get("$ref"), object.get("allOf")) {
            (Some(reference), _) => Some(self.reference(reference)?),
            (None, Some(Json::Array(all))) => self.all_of(all, name)?,
            _ => None,
        };
        if let Some(Json::Array(of)) = object.get("anyOf").or_else(|| object.get("oneOf")) {
            let union = self.union(of, name)?;
            shape = Some(match shape {
                Some(shape) => self.join(shape, union)?,
                None => union,
            });
        }
        let own = match object.get("properties").is_some() || shape.is_none() {
            true => self.own(object, name)?,
            false => Shape::Any,
        };
        match shape {
            Some(shape) => self.join(own, shape),
            None => Ok(own),
        }
    }

    /// What a schema says without looking elsewhere.
    fn own(&mut self, schema: &'s Map<String, Json>, name: &str) -> Result<Shape> {
        if let Some(value) = schema.get("const") {
            return Ok(if value.is_null() { Shape::Null } else { Shape::Enum(vec![value.clone()]) });
        }
        if let Some(Json::Array(values)) = schema.get("enum") {
            let some: Vec<Json> = values.iter().filter(|value| !value.is_null()).cloned().collect();
            let null = some.len() < values.len();
            return Ok(match (some.is_empty(), null) {
                (true, true) => Shape::Null,
                (_, true) => Shape::Enum(some).optional(),
                _ => Shape::Enum(some),
            });
        }
        match schema.get("type") {
            Some(Json::String(one)) => self.typed(one, schema, name),
            Some(Json::Array(several)) => {
                let mut of = Vec::new();
                for one in several.iter().filter_map(Json::as_str) {
                    of.push(self.typed(one, schema, name)?);
                }
                Ok(one_of(of))
            }
            _ if schema.contains_key("properties") => self.typed("object", schema, name),
            _ if schema.contains_key("items") || schema.contains_key("prefixItems") => {
                self.typed("array", schema, name)
            }
            _ => Ok(Shape::Any),
        }
    }

    fn typed(&mut self, kind: &str, schema: &'s Map<String, Json>, name: &str) -> Result<Shape> {
        Ok(match kind {
            "string" => {
                schema.get("format").and_then(Json::as_str).and_then(of_format).unwrap_or(Shape::Text)
            }
            "integer" => Shape::Integer,
            "number" => Shape::Number,
            "boolean" => Shape::Boolean,
            "null" => Shape::Null,
            "array" => self.array(schema, name)?,
            "object" => self.object(schema, name)?,
            other => {
                let why = format!("unknown type {}", quoted(other));
                return Err(self.refuse(&why, "use string, integer, number, boolean, null, array or object"));
            }
        })
    }

    fn array(&mut self, schema: &'s Map<String, Json>, name: &str) -> Result<Shape> {
        if let Some(Json::Array(first)) = schema.get("prefixItems") {
            let mut items = Vec::new();
            for (index, item) in first.iter().enumerate() {
                items.push(self.inside(&index.to_string(), item)?);
            }
            return Ok(Shape::Tuple(items));
        }
        let items = match schema.get("items") {
            Some(items) => Box::new(self.inside(name, items)?),
            None => Box::new(Shape::Any),
        };
        let unique = schema.get("uniqueItems") == Some(&Json::Bool(true));
        Ok(if unique { Shape::Set(items) } else { Shape::List(items) })
    }

    fn object(&mut self, schema: &'s Map<String, Json>, name: &str) -> Result<Shape> {
        let additional = schema.get("additionalProperties");
        let properties = match schema.get("properties") {
            Some(Json::Object(properties)) => properties,
            _ => match additional.or_else(|| schema.get("patternProperties")?.as_object()?.values().next()) {
                Some(Json::Bool(false)) => return Ok(Shape::Record(Arc::new(Record::new(name)))),
                Some(values) => return Ok(Shape::Map(Box::new(self.inside(name, values)?))),
                None => return Ok(Shape::Map(Box::new(Shape::Any))),
            },
        };
        let required: Vec<&str> = match schema.get("required") {
            Some(Json::Array(names)) => names.iter().filter_map(Json::as_str).collect(),
            _ => Vec::new(),
        };
        let mut record = Record::new(name);
        record.description = schema.get("description").and_then(Json::as_str).map(str::to_owned);
        for (name, property) in properties {
            let shape = self.inside(name, property)?;
            record.fields.push(self.field(name, property, shape, required.contains(&name.as_str())));
        }
        Ok(Shape::Record(Arc::new(record)))
    }

    fn field(&self, name: &str, schema: &'s Json, shape: Shape, required: bool) -> Field {
        let mut field = Field::new(name, shape);
        field.description = text(schema, "description");
        field.default = (!required).then(|| schema.get("default").cloned().unwrap_or(Json::Null));
        // A type with a name of its own says of itself what it demands.
        let mut at = schema;
        for _ in 0..DEEPEST {
            if let Json::Object(object) = at {
                for (keyword, value) in constraints(object, &field.shape) {
                    field.constraints.entry(keyword).or_insert(value);
                }
            }
            let next = at.get("$ref").and_then(Json::as_str).and_then(|reference| self.target(reference));
            let Some(next) = next else { break };
            at = next;
            if field.description.is_none() && !matches!(field.shape, Shape::Record(_)) {
                field.description = text(at, "description");
            }
        }
        field
    }

    /// What a reference leads to.
    fn target(&self, reference: &str) -> Option<&'s Json> {
        self.root.pointer(reference.strip_prefix('#')?)
    }

    fn reference(&mut self, reference: &'s Json) -> Result<Shape> {
        let reference = reference.as_str().unwrap_or_default();
        if let Some((shape, shapes)) = self.known.get(reference).cloned() {
            self.count(shapes)?;
            return Ok(shape);
        }
        let Some(target) = self.target(reference) else {
            let why = format!("{} does not exist", quoted(reference));
            return Err(self.refuse(&why, "refer only to `$defs` of the same schema"));
        };
        // The root is open from the beginning.
        if self.open.contains(&reference) || std::ptr::eq(target, self.root) {
            let hint = "the depth has no limit; write `#[schemars(with = \"serde_json::Value\")]` on the recursive \
                 field";
            return Err(self.refuse("the type contains itself", hint));
        }
        if self.open.len() >= DEEPEST {
            return Err(self.refuse("it is nested too deeply", "use a flatter type"));
        }
        let before = self.shapes;
        self.open.push(reference);
        let name = reference.rsplit('/').next().unwrap_or(reference).replace("~1", "/").replace("~0", "~");
        let shape = self.shape(target, &name)?;
        self.open.pop();
        self.known.insert(reference, (shape.clone(), self.shapes - before));
        Ok(shape)
    }

    fn union(&mut self, of: &'s [Json], name: &str) -> Result<Shape> {
        let mut shapes = Vec::new();
        for branch in of {
            shapes.push(self.inside(name, branch)?);
        }
        Ok(one_of(shapes))
    }

    fn all_of(&mut self, all: &'s [Json], name: &str) -> Result<Option<Shape>> {
        let mut joined = None;
        for part in all {
            let shape = self.inside(name, part)?;
            joined = Some(match joined {
                Some(before) => self.join(before, shape)?,
                None => shape,
            });
        }
        Ok(joined)
    }

    /// What fits both: the fields of two records; a record with each branch of a union.
    fn join(&mut self, first: Shape, second: Shape) -> Result<Shape> {
        match (first, second) {
            (Shape::Any, other) | (other, Shape::Any) => Ok(other),
            (Shape::Record(first), Shape::Record(second)) => {
                self.count(second.fields.len())?;
                let mut record = Arc::unwrap_or_clone(first);
                for field in &second.fields {
                    if !record.fields.iter().any(|known| known.name == field.name) {
                        record.fields.push(field.clone());
                    }
                }
                Ok(Shape::Record(Arc::new(record)))
            }
            (record @ Shape::Record(_), Shape::Union(of)) => {
                // What is said of an optional record is said of the record.
                let branches = of.into_iter().map(|branch| match branch {
                    Shape::Null => Ok(Shape::Null),
                    branch => self.join(record.clone(), branch),
                });
                Ok(one_of(branches.collect::<Result<Vec<Shape>>>()?))
            }
            (first, second) if first == second => Ok(first),
            _ => Err(self.refuse("it combines several schemas", "use one type, without `flatten`")),
        }
    }
}

/// One of several shapes: unions inside it are dissolved, lists of values become one, `null` comes last.
fn one_of(shapes: Vec<Shape>) -> Shape {
    let (mut of, mut values, mut null): (Vec<Shape>, Option<usize>, bool) = (Vec::new(), None, false);
    let flat = shapes.into_iter().flat_map(|shape| match shape {
        Shape::Union(of) => of,
        other => vec![other],
    });
    for shape in flat {
        match (shape, values) {
            (Shape::Null, _) => null = true,
            (Shape::Enum(more), Some(index)) => {
                if let Some(Shape::Enum(list)) = of.get_mut(index) {
                    list.extend(more);
                }
            }
            (Shape::Enum(first), None) => {
                values = Some(of.len());
                of.push(Shape::Enum(first));
            }
            (other, _) => of.push(other),
        }
    }
    let shape = match of.len() {
        0 if null => return Shape::Null,
        1 => of.swap_remove(0),
        _ => Shape::Union(of),
    };
    if null { shape.optional() } else { shape }
}
