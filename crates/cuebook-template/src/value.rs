//! Values during a render. They borrow from the caller's data, and each carries its origin.

mod dict;
mod items;
mod missing;
mod nested;
mod print;
mod scope;
mod special;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::{Map, Value as Json};

pub(crate) use self::dict::{Dict, Key};
pub(crate) use self::items::Items;
pub(crate) use self::missing::{Missing, Part};
pub(crate) use self::nested::{List, origin_inside};
pub use self::print::to_str;
pub(crate) use self::print::{Printer, type_name};
pub(crate) use self::scope::{Context, Cx, Scope, Slots, Unit};
pub(crate) use self::special::{LoopState, MacroValue, Special};
use crate::error::{Error, ErrorKind, Exceeded, Result};
use crate::origin::Origin;
use crate::text::{Builder, Text};

/// A value with its origin.
#[derive(Debug, Clone)]
pub(crate) struct Val<'r> {
    pub value: Value<'r>,
    pub origin: Origin,
}

#[derive(Debug, Clone)]
pub(crate) enum Value<'r> {
    Undefined(Missing<'r>),
    None,
    Bool(bool),
    Int(i64),
    /// An integer that 64 bits do not hold.
    Big(Rc<i128>),
    Float(f64),
    Text(Text<'r>),
    List(Rc<List<'r>>),
    Tuple(Rc<List<'r>>),
    Dict(Rc<Dict<'r>>),
    /// A list of the caller's.
    Array(&'r [Json]),
    /// A dict of the caller's.
    Map(&'r Map<String, Json>),
    Range(Rc<Range>),
    /// What Jinja2 calls a generator: its items can be taken once.
    Once(Rc<Once<'r>>),
    /// `keys()`, `values()` or `items()` of a dict.
    View(Rc<View<'r>>),
    Special(Rc<Special<'r>>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Range {
    pub start: i64,
    pub stop: i64,
    pub step: i64,
    pub length: usize,
}

impl Range {
    pub fn at(&self, index: usize) -> i64 {
        let at = i128::from(self.start) + i128::from(self.step) * index as i128;
        at.clamp(i64::MIN.into(), i64::MAX.into()) as i64
    }
}

#[derive(Debug)]
pub(crate) struct Once<'r> {
    pub items: RefCell<std::collections::VecDeque<Val<'r>>>,
}

#[derive(Debug)]
pub(crate) struct View<'r> {
    pub name: &'static str,
    pub items: Vec<Val<'r>>,
}

/// An error for an operation that does not fit its values.
pub(crate) fn type_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::Type, message)
}

impl<'r> From<Value<'r>> for Val<'r> {
    fn from(value: Value<'r>) -> Self {
        Val { value, origin: Origin::AUTHOR }
    }
}

impl Builder {
    /// The text as a value. `all` is where everything came from that took part.
    pub fn finish<'r>(self, all: Origin, safe: bool) -> Val<'r> {
        let (text, origin) = self.into_parts(all);
        Val::text(text.safe(safe), origin)
    }
}

impl<'r> Val<'r> {
    pub fn new(value: Value<'r>, origin: Origin) -> Val<'r> {
        Val { value, origin }
    }

    pub fn text(text: impl Into<Text<'r>>, origin: Origin) -> Val<'r> {
        Val { value: Value::Text(text.into()), origin }
    }

    pub fn list(items: Vec<Val<'r>>) -> Val<'r> {
        Val::from(Value::List(Rc::new(items.into())))
    }

    pub fn tuple(items: Vec<Val<'r>>) -> Val<'r> {
        Val::from(Value::Tuple(Rc::new(items.into())))
    }

    pub fn once(items: Vec<Val<'r>>) -> Val<'r> {
        Val::from(Value::Once(Rc::new(Once { items: RefCell::new(items.into()) })))
    }

    pub fn undefined() -> Val<'r> {
        Val::from(Value::Undefined(Missing::Nothing))
    }

    pub fn missing(message: String) -> Val<'r> {
        Val::from(Value::Undefined(Missing::Other(message.into())))
    }
}

impl<'r> Value<'r> {
    pub fn integer(number: i128) -> Value<'r> {
        match i64::try_from(number) {
            Ok(number) => Value::Int(number),
            Err(_) => Value::Big(Rc::new(number)),
        }
    }

    pub fn from_json(json: &'r Json) -> Value<'r> {
        match json {
            Json::Null => Value::None,
            Json::Bool(value) => Value::Bool(*value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Value::Int(number),
                (None, Some(number)) => Value::Big(Rc::new(i128::from(number))),
                (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Value::Text(Text::from(text.as_str())),
            Json::Array(items) => Value::Array(items),
            Json::Object(map) => Value::Map(map),
        }
    }

    /// A value that owns what it holds.
    pub fn from_owned_json(json: Json) -> Value<'r> {
        match json {
            Json::String(text) => Value::Text(Text::from(text)),
            Json::Array(items) => {
                let items: Vec<Val<'r>> =
                    items.into_iter().map(|item| Value::from_owned_json(item).into()).collect();
                Value::List(Rc::new(items.into()))
            }
            Json::Object(map) => {
                let mut dict = Dict::default();
                for (key, value) in map {
                    let text = key.clone();
                    dict.insert(
                        Key::Text(key),
                        Val::text(text, Origin::AUTHOR),
                        Value::from_owned_json(value).into(),
                    );
                }
                Value::Dict(Rc::new(dict))
            }
            Json::Null => Value::None,
            Json::Bool(value) => Value::Bool(value),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(number), _) => Value::Int(number),
                (None, Some(number)) => Value::Big(Rc::new(i128::from(number))),
                (None, None) => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
        }
    }

    pub fn is_undefined(&self) -> bool {
        matches!(self, Value::Undefined(_))
    }

    pub fn is_none(&self) -> bool {
        matches!(self, Value::None)
    }

    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Text(text) => Some(text.as_str()),
            _ => None,
        }
    }

    pub fn is_safe(&self) -> bool {
        matches!(self, Value::Text(text) if text.is_safe())
    }

    /// The number, for integers and booleans.
    pub fn as_integer(&self) -> Option<i128> {
        match self {
            Value::Bool(value) => Some(i128::from(*value)),
            Value::Int(number) => Some(i128::from(*number)),
            Value::Big(number) => Some(**number),
            _ => None,
        }
    }

    pub fn as_number(&self) -> Option<f64> {
        match self {
            Value::Float(number) => Some(*number),
            _ => self.as_integer().map(|number| number as f64),
        }
    }

    /// Whether Python takes it for true. An undefined value is false.
    pub fn is_true(&self) -> bool {
        match self {
            Value::Undefined(_) | Value::None => false,
            Value::Bool(value) => *value,
            Value::Int(number) => *number != 0,
            Value::Big(_) => true,
            Value::Float(number) => *number != 0.0,
            Value::Text(text) => !text.as_str().is_empty(),
            Value::Once(_) => true,
            Value::Special(special) => special.is_true(),
            _ => self.length() != Some(0),
        }
    }

    /// How many items it has, if Python's `len` knows.
    pub fn length(&self) -> Option<usize> {
        match self {
            Value::Undefined(_) => Some(0),
            Value::Text(text) => Some(crate::python::length(text.as_str())),
            Value::List(items) | Value::Tuple(items) => Some(items.len()),
            Value::Dict(dict) => Some(dict.len()),
            Value::Array(items) => Some(items.len()),
            Value::Map(map) => Some(map.len()),
            Value::Range(range) => Some(range.length),
            Value::View(view) => Some(view.items.len()),
            Value::Special(special) => special.length(),
            _ => None,
        }
    }

    pub fn is_mapping(&self) -> bool {
        matches!(self, Value::Dict(_) | Value::Map(_))
    }

    pub fn number_error(&self, what: &str) -> Error {
        match self {
            Value::Undefined(missing) => missing.error(),
            _ => type_error(format!("{what} needs a number, not {}", type_name(self))),
        }
    }

    /// The integer, or an error that says what needs it.
    pub fn need_integer(&self, what: &str) -> Result<i64> {
        match self.as_integer() {
            Some(number) => i64::try_from(number)
                .map_err(|_| Error::limit(Exceeded::Size, format!("{what} is too large"))),
            None => match self {
                Value::Undefined(missing) => Err(missing.error()),
                _ => Err(type_error(format!("{what} must be an integer, not {}", type_name(self)))),
            },
        }
    }
}

/// A counter that a value shares.
pub(crate) type Counter = Cell<usize>;
