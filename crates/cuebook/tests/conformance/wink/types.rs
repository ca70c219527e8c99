//! The types that cases declare, in the notation of Python, as records.

use std::sync::Arc;

use cuebook::prompt::{Field, Record, Shape};
use serde_json::Value as Json;

/// The declared type of this name.
pub fn record(types: &Json, name: &str) -> Arc<Record> {
    record_of_fields(name, types.get(name).unwrap_or_else(|| panic!("no type {name}")), types)
}

/// A record of fields that are written as a map of name and type.
pub fn record_of_fields(name: &str, fields: &Json, types: &Json) -> Arc<Record> {
    let fields = fields.as_object().unwrap_or_else(|| panic!("{name}: fields are a map"));
    let fields = fields.iter().map(|(name, spec)| field(name, spec, types)).collect();
    Arc::new(Record { name: name.to_owned(), description: None, fields })
}

fn field(name: &str, spec: &Json, types: &Json) -> Field {
    let notation = spec.as_str().or_else(|| spec.get("type")?.as_str()).expect("a field has a type");
    let mut field = Field::new(name, shape(notation, types));
    field.default = spec.get("default").cloned();
    let metadata = spec.get("metadata").and_then(Json::as_object).into_iter().flatten();
    for (key, value) in metadata {
        let keyword = match key.as_str() {
            "description" => {
                field.description = value.as_str().map(str::to_owned);
                continue;
            }
            "alias" => {
                field.alias = value.as_str().map(str::to_owned);
                continue;
            }
            "ge" => "minimum",
            "gt" => "exclusiveMinimum",
            "le" => "maximum",
            "lt" => "exclusiveMaximum",
            "min_length" => "minLength",
            "max_length" => "maxLength",
            "regex" => "pattern",
            "in" => "enum",
            "not_in" => {
                field.constraints.insert("not".into(), serde_json::json!({"enum": value}));
                continue;
            }
            other => other,
        };
        field.constraints.insert(keyword.to_owned(), value.clone());
    }
    field
}

/// A type in Python's notation.
pub fn shape(notation: &str, types: &Json) -> Shape {
    let mut alternatives: Vec<Shape> =
        split(notation, '|').into_iter().map(|alternative| one(alternative, types)).collect();
    match alternatives.len() {
        1 => alternatives.remove(0),
        _ => Shape::Union(alternatives),
    }
}

fn one(notation: &str, types: &Json) -> Shape {
    let (name, arguments) = match notation.split_once('[') {
        Some((name, rest)) => (name, split(rest.strip_suffix(']').expect("a closing bracket"), ',')),
        None => (notation, Vec::new()),
    };
    let argument = |index: usize| Box::new(shape(arguments[index], types));
    match (name, arguments.len()) {
        ("str", 0) => Shape::Text,
        ("int", 0) => Shape::Integer,
        ("float" | "Decimal", 0) => Shape::Number,
        ("bool", 0) => Shape::Boolean,
        ("None" | "NoneType", 0) => Shape::Null,
        // Containers of which nothing is said are not described either.
        ("object" | "Any" | "list" | "dict" | "tuple" | "set", 0) => Shape::Any,
        ("datetime", 0) => Shape::DateTime,
        ("date", 0) => Shape::Date,
        ("time", 0) => Shape::Time,
        ("UUID", 0) => Shape::Uuid,
        ("Path", 0) => Shape::Path,
        ("Literal", _) => Shape::Enum(arguments.iter().map(|text| literal(text)).collect()),
        ("list" | "Sequence", 1) => Shape::List(argument(0)),
        ("set" | "frozenset", 1) => Shape::Set(argument(0)),
        ("tuple", 2) if arguments[1] == "..." => Shape::List(argument(0)),
        ("tuple", count) => Shape::Tuple((0..count).map(|index| *argument(index)).collect()),
        ("dict" | "Mapping", 2) => Shape::Map(argument(1)),
        ("Optional", 1) => argument(0).optional(),
        ("Union", count) => Shape::Union((0..count).map(|index| *argument(index)).collect()),
        (name, 0) => Shape::Record(record(types, name)),
        _ => panic!("a type that is not known: {notation}"),
    }
}

fn literal(text: &str) -> Json {
    match text {
        "True" => Json::Bool(true),
        "False" => Json::Bool(false),
        "None" => Json::Null,
        text if text.starts_with(['\'', '"']) => Json::from(&text[1..text.len() - 1]),
        number => serde_json::from_str(number).expect("a literal"),
    }
}

/// The parts between separators that stand in no bracket and no quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut depth, mut quote, mut from) = (0, None, 0);
    let mut parts = Vec::new();
    for (at, character) in text.char_indices() {
        match (character, quote) {
            (_, Some(open)) if character == open => quote = None,
            (_, Some(_)) => {}
            ('\'' | '"', None) => quote = Some(character),
            ('[', None) => depth += 1,
            (']', None) => depth -= 1,
            _ if character == separator && depth == 0 => {
                parts.push(text[from..at].trim());
                from = at + separator.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[from..].trim());
    parts
}
