//! What a reply holds before it is known to be what was asked for.
//!
//! Models write what Python's JSON writes: numbers of any length, `NaN`, `Infinity`. `serde_json` has no place for those,
//! so replies have a value of their own until each part of them has its shape.

use indexmap::IndexMap;
use serde_json::{Map, Number, Value as Json};

use crate::template::python::{float_repr, text_repr};

/// A part of a reply.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(Int),
    /// Not a number, too, and infinite ones.
    Float(f64),
    Text(String),
    List(Vec<Value>),
    Map(IndexMap<String, Value>),
}

/// A whole number of any size. What fits into the first form is never in the second.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Int {
    Small(i64),
    /// Decimal digits without needless zeros, perhaps with a minus before them.
    Big(String),
}

impl Int {
    /// The number that decimal digits are, perhaps with a sign before them; `None` if they are something else.
    pub fn parse(text: &str) -> Option<Int> {
        let (minus, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = match digits.trim_start_matches('0') {
            "" => "0",
            digits => digits,
        };
        let text = if minus { format!("-{digits}") } else { digits.to_owned() };
        Some(text.parse().map_or_else(|_| Int::Big(text), Int::Small))
    }

    /// A number without what is behind its point; `None` if it is not a number or infinite.
    pub fn truncate(number: f64) -> Option<Int> {
        number.is_finite().then(|| Int::parse(&format!("{:.0}", number.trunc()))).flatten()
    }

    /// The nearest float; infinite if it is too large for one.
    pub fn to_f64(&self) -> f64 {
        match self {
            Int::Small(number) => *number as f64,
            Int::Big(digits) => digits.parse().unwrap_or(f64::INFINITY),
        }
    }
}

impl std::fmt::Display for Int {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Int::Small(number) => write!(f, "{number}"),
            Int::Big(digits) => f.write_str(digits),
        }
    }
}

impl Value {
    /// Whether two values are the same as Python sees it: `true`, `1` and `1.0` are.
    pub fn is(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::List(ours), Value::List(theirs)) => {
                ours.len() == theirs.len() && ours.iter().zip(theirs).all(|(one, other)| one.is(other))
            }
            (Value::Map(ours), Value::Map(theirs)) => {
                ours.len() == theirs.len()
                    && ours.iter().all(|(key, one)| theirs.get(key).is_some_and(|other| one.is(other)))
            }
            (Value::Int(ours), Value::Int(theirs)) => ours == theirs,
            _ => match (self.number(), other.number()) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => self == other,
            },
        }
    }

    /// Its number, if it is one; truth values are.
    pub fn number(&self) -> Option<f64> {
        match self {
            Value::Bool(value) => Some(f64::from(u8::from(*value))),
            Value::Int(number) => Some(number.to_f64()),
            Value::Float(number) => Some(*number),
            _ => None,
        }
    }

    /// What Python's `str()` makes of it.
    pub fn to_str(&self) -> String {
        match self {
            Value::Text(text) => text.clone(),
            other => other.to_repr(),
        }
    }

    /// What Python's `repr()` makes of it.
    pub fn to_repr(&self) -> String {
        let mut out = String::new();
        self.write_repr(&mut out);
        out
    }

    fn write_repr(&self, out: &mut String) {
        match self {
            Value::Null => out.push_str("None"),
            Value::Bool(true) => out.push_str("True"),
            Value::Bool(false) => out.push_str("False"),
            Value::Int(number) => out.push_str(&number.to_string()),
            Value::Float(number) => out.push_str(&float_repr(*number)),
            Value::Text(text) => out.push_str(&text_repr(text)),
            Value::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ", " });
                    item.write_repr(out);
                }
                out.push(']');
            }
            Value::Map(map) => {
                out.push('{');
                for (index, (key, item)) in map.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { ", " });
                    out.push_str(&text_repr(key));
                    out.push_str(": ");
                    item.write_repr(out);
                }
                out.push('}');
            }
        }
    }

    /// The value for programs. A whole number that is too long for 64 bits becomes the text of its digits, a number that
    /// JSON does not know becomes `null`.
    pub fn to_json(&self) -> Json {
        match self {
            Value::Null => Json::Null,
            Value::Bool(value) => Json::Bool(*value),
            Value::Int(Int::Small(number)) => Json::from(*number),
            Value::Int(Int::Big(digits)) => match digits.parse::<u64>() {
                Ok(number) => Json::from(number),
                Err(_) => Json::String(digits.clone()),
            },
            Value::Float(number) => Number::from_f64(*number).map_or(Json::Null, Json::Number),
            Value::Text(text) => Json::String(text.clone()),
            Value::List(items) => items.iter().map(Value::to_json).collect(),
            Value::Map(map) => Json::Object(
                map.iter().map(|(key, item)| (key.clone(), item.to_json())).collect::<Map<_, _>>(),
            ),
        }
    }

    /// The value as JSON text, with every digit of its numbers.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.write_text(&mut out);
        out
    }

    fn write_text(&self, out: &mut String) {
        match self {
            Value::Int(number) => out.push_str(&number.to_string()),
            Value::List(items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    item.write_text(out);
                }
                out.push(']');
            }
            Value::Map(map) => {
                out.push('{');
                for (index, (key, item)) in map.iter().enumerate() {
                    out.push_str(if index == 0 { "" } else { "," });
                    out.push_str(&Json::from(key.as_str()).to_string());
                    out.push(':');
                    item.write_text(out);
                }
                out.push('}');
            }
            other => out.push_str(&other.to_json().to_string()),
        }
    }
}

impl From<&Json> for Value {
    fn from(json: &Json) -> Value {
        match json {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.is_f64(), Int::parse(&number.to_string())) {
                (false, Some(number)) => Value::Int(number),
                _ => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Text(text.clone()),
            Json::Array(items) => Value::List(items.iter().map(Value::from).collect()),
            Json::Object(map) => {
                Value::Map(map.iter().map(|(key, item)| (key.clone(), Value::from(item))).collect())
            }
        }
    }
}
