//! Values that are written out: what `ast.literal_eval` of Python would give, as far as JSON can carry it.
//!
//! Left out, because a reader in another language would get something else than Python has: sets, bytes, complex numbers,
//! `...`, keys that are not strings, integers beyond 64 bits, infinite floats and lone surrogates. Each is an error that
//! says so.

use std::ops::Range;

use serde_json::{Map, Value};

/// A value that is written out in a Python file, and where.
#[derive(Debug, Clone, PartialEq)]
pub struct Literal {
    /// The value.
    pub value: LiteralValue,
    /// Where it stands, without parentheses around it.
    pub range: Range<usize>,
}

/// The kinds of values that can be written out.
#[derive(Debug, Clone, PartialEq)]
pub enum LiteralValue {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool(bool),
    /// An integer between the least `i64` and the greatest `u64`.
    Int(i128),
    /// A finite float.
    Float(f64),
    /// A string.
    Str(String),
    /// A list.
    List(Vec<Literal>),
    /// A tuple.
    Tuple(Vec<Literal>),
    /// A dict in the order in which it is written; no key is there twice.
    Dict(Vec<Entry>),
}

/// One entry of a dict.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key stands.
    pub key_range: Range<usize>,
    /// The value.
    pub value: Literal,
}

impl Literal {
    /// The value as JSON; tuples become arrays.
    pub fn to_json(&self) -> Value {
        match &self.value {
            LiteralValue::None => Value::Null,
            LiteralValue::Bool(value) => Value::Bool(*value),
            LiteralValue::Int(value) => match (i64::try_from(*value), u64::try_from(*value)) {
                (Ok(small), _) => small.into(),
                (_, Ok(large)) => large.into(),
                // Reading lets no such integer in; one that was made elsewhere keeps its size, if not its digits.
                _ => (*value as f64).into(),
            },
            LiteralValue::Float(value) => (*value).into(),
            LiteralValue::Str(value) => value.as_str().into(),
            // Loops, because this recurses and every adapter of an iterator would cost a frame at each level.
            LiteralValue::List(items) | LiteralValue::Tuple(items) => {
                let mut array = Vec::with_capacity(items.len());
                for item in items {
                    array.push(item.to_json());
                }
                Value::Array(array)
            }
            LiteralValue::Dict(entries) => {
                let mut object = Map::with_capacity(entries.len());
                for entry in entries {
                    object.insert(entry.key.clone(), entry.value.to_json());
                }
                Value::Object(object)
            }
        }
    }

    /// What Python calls its type.
    pub fn type_name(&self) -> &'static str {
        match self.value {
            LiteralValue::None => "None",
            LiteralValue::Bool(_) => "bool",
            LiteralValue::Int(_) => "int",
            LiteralValue::Float(_) => "float",
            LiteralValue::Str(_) => "str",
            LiteralValue::List(_) => "list",
            LiteralValue::Tuple(_) => "tuple",
            LiteralValue::Dict(_) => "dict",
        }
    }

    /// The value under a key, if this is a dict that has it.
    pub fn get(&self, key: &str) -> Option<&Literal> {
        self.entries()?.iter().find(|entry| entry.key == key).map(|entry| &entry.value)
    }

    /// The text, if this is a string.
    pub fn as_str(&self) -> Option<&str> {
        match &self.value {
            LiteralValue::Str(value) => Some(value),
            _ => None,
        }
    }

    /// The items, if this is a list or a tuple.
    pub fn items(&self) -> Option<&[Literal]> {
        match &self.value {
            LiteralValue::List(items) | LiteralValue::Tuple(items) => Some(items),
            _ => None,
        }
    }

    /// The entries, if this is a dict.
    pub fn entries(&self) -> Option<&[Entry]> {
        match &self.value {
            LiteralValue::Dict(entries) => Some(entries),
            _ => None,
        }
    }
}
