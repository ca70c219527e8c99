//! Gives the values of a reply the shapes that were asked for.
//!
//! Models are generous with types, so reading is generous too: `"42"` is a whole number where one was asked for. Rules and
//! words are those of WINK, so that programs which look for them find them; a number that JSON does not know (`NaN`) is
//! refused rather than turned into something else.

use std::collections::HashSet;

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::constraint::Constraints;
use super::date_time;
use super::extract::is_space;
use super::value::{Int, Value};
use crate::error::nearest;
use crate::prompt::{Extras, Field, Record, Shape};

/// How values are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Whether values of another type are converted.
    pub coerce: bool,
    /// Whether an object may have undeclared keys.
    pub extras: Extras,
    /// Whether hidden fields are passed over.
    pub hide: bool,
    /// Whether the result is for a Rust type: `true` for a whole number is 1, and what is not given and would be `null` is
    /// left to the type.
    pub typed: bool,
}

/// Why a value does not fit.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    /// The way to the value, from the inside to the outside.
    steps: Vec<Step>,
    message: String,
    pub hint: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Step {
    Field(String),
    Index(usize),
    Key(String),
}

impl Fault {
    pub fn new(message: impl Into<String>) -> Fault {
        Fault { steps: Vec::new(), message: message.into(), hint: Vec::new() }
    }

    fn at(mut self, step: Step) -> Fault {
        self.steps.push(step);
        self
    }

    /// The way to the value: `a.b`, `many[0]`, `scores[k]`.
    pub fn path(&self) -> String {
        let mut path = String::new();
        for step in self.steps.iter().rev() {
            match step {
                Step::Field(name) if path.is_empty() => path.push_str(name),
                Step::Field(name) => path.extend([".", name]),
                Step::Index(index) => path.push_str(&format!("[{index}]")),
                Step::Key(key) => path.extend(["[", key, "]"]),
            }
        }
        path
    }
}

impl std::fmt::Display for Fault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.path() {
            path if path.is_empty() => f.write_str(&self.message),
            path => write!(f, "{path}: {}", self.message),
        }
    }
}

/// One reading of one reply.
pub(super) struct Fit<'s> {
    rules: Rules,
    constraints: Constraints<'s>,
}

impl<'s> Fit<'s> {
    pub fn new(rules: Rules) -> Fit<'s> {
        Fit { rules, constraints: Constraints::default() }
    }

    /// An object as a record: every field, in the record's order, under its name.
    pub fn record(&mut self, record: &'s Record, map: &IndexMap<String, Value>) -> Result<Value, Fault> {
        let mut result = IndexMap::with_capacity(record.fields.len());
        let mut used = HashSet::with_capacity(record.fields.len());
        for field in &record.fields {
            let given = match self.rules.hide && field.hidden {
                true => None,
                false => given(field, map),
            };
            let value = match given {
                Some((key, value)) => {
                    used.insert(key);
                    self.field(field, value).map_err(|fault| fault.at(Step::Field(field.name.clone())))?
                }
                None => match &field.default {
                    Some(Json::Null) if self.rules.typed => continue,
                    Some(default) => Value::from(default),
                    None => return Err(missing(field, map)),
                },
            };
            result.insert(field.name.clone(), value);
        }
        let extra: Vec<&String> = map.keys().filter(|key| !used.contains(key.as_str())).collect();
        if !extra.is_empty() && self.rules.extras == Extras::Forbidden {
            let names: Vec<Value> = extra.iter().map(|key| Value::Text((*key).clone())).collect();
            let mut fault = Fault::new(format!("Extra keys not permitted: {}", Value::List(names).to_repr()));
            let free = record.fields.iter().map(Field::key).filter(|key| !used.contains(key));
            fault.hint = extra.first().map(|key| nearest(key, free)).unwrap_or_default();
            return Err(fault);
        }
        Ok(Value::Map(result))
    }

    fn field(&mut self, field: &'s Field, value: &Value) -> Result<Value, Fault> {
        let value = self.shape(&field.shape, value)?;
        self.constraints.check(&field.constraints, &value).map_err(Fault::new)?;
        Ok(value)
    }

    fn shape(&mut self, shape: &'s Shape, value: &Value) -> Result<Value, Fault> {
        match (shape, value) {
            (Shape::Any, _) => {
                finite(value)?;
                Ok(value.clone())
            }
            (Shape::Union(of), _) => self.union(of, value),
            (Shape::Null, Value::Null) => Ok(Value::Null),
            (Shape::Null, _) => Err(Fault::new("expected None")),
            (Shape::Enum(values), _) => self.one_of(values, value),
            (_, Value::Null) => Err(Fault::new("value cannot be None")),
            (Shape::Record(record), Value::Map(map)) => self.record(record, map),
            (Shape::Record(record), _) => {
                Err(Fault::new(format!("expected mapping for dataclass {}", record.name)))
            }
            (Shape::List(items), _) => {
                let list = self.items(value, "sequence")?;
                Ok(Value::List(self.each(list, |_| items)?))
            }
            (Shape::Set(items), Value::Map(map)) if self.rules.coerce => {
                let keys: Vec<Value> = map.keys().cloned().map(Value::Text).collect();
                Ok(Value::List(distinct(self.each(&keys, |_| items)?)))
            }
            (Shape::Set(items), _) => {
                let list = self.items(value, "set")?;
                Ok(Value::List(distinct(self.each(list, |_| items)?)))
            }
            (Shape::Tuple(shapes), _) => {
                let list = self.items(value, "tuple")?;
                if list.len() != shapes.len() {
                    return Err(Fault::new(format!("expected {} items", shapes.len())));
                }
                Ok(Value::List(self.each(list, |index| &shapes[index])?))
            }
            (Shape::Map(values), Value::Map(map)) => {
                let mut result = IndexMap::with_capacity(map.len());
                for (key, value) in map {
                    let value =
                        self.shape(values, value).map_err(|fault| fault.at(Step::Key(key.clone())))?;
                    result.insert(key.clone(), value);
                }
                Ok(Value::Map(result))
            }
            (Shape::Map(_), _) => Err(Fault::new("expected mapping")),
            (Shape::Boolean, _) => self.boolean(value),
            _ => self.scalar(shape, value),
        }
    }

    /// The items of a list; a text alone is a list of one.
    fn items<'v>(&self, value: &'v Value, expected: &str) -> Result<&'v [Value], Fault> {
        match value {
            Value::List(items) => Ok(items),
            Value::Text(_) if self.rules.coerce => Ok(std::slice::from_ref(value)),
            _ => Err(Fault::new(format!("expected {expected}"))),
        }
    }

    fn each(&mut self, items: &[Value], shape: impl Fn(usize) -> &'s Shape) -> Result<Vec<Value>, Fault> {
        let items = items.iter().enumerate().map(|(index, item)| {
            self.shape(shape(index), item).map_err(|fault| fault.at(Step::Index(index)))
        });
        items.collect()
    }

    /// The first alternative that fits. Nothing but white space is `null` where that is one of them.
    fn union(&mut self, of: &'s [Shape], value: &Value) -> Result<Value, Fault> {
        let optional = of.contains(&Shape::Null);
        let empty = matches!(value, Value::Text(text) if text.chars().all(is_space));
        if optional && (*value == Value::Null || (self.rules.coerce && empty)) {
            return Ok(Value::Null);
        }
        let mut last = Fault::new("no matching type in Union");
        for shape in of.iter().filter(|shape| **shape != Shape::Null) {
            match self.shape(shape, value) {
                Ok(value) => return Ok(value),
                Err(fault) => last = fault,
            }
        }
        Err(last)
    }

    /// The first of the allowed values that this one is, or becomes when it is converted to that one's type.
    fn one_of(&self, values: &[Json], value: &Value) -> Result<Value, Fault> {
        let allowed: Vec<Value> = values.iter().map(Value::from).collect();
        for candidate in &allowed {
            let converted = match candidate {
                _ if value.is(candidate) => return Ok(candidate.clone()),
                _ if !self.rules.coerce || *value == Value::Null => None,
                Value::Bool(_) => match value {
                    Value::Text(text) => truth(text).map(Value::Bool),
                    other => other.number().map(|number| Value::Bool(number != 0.0)),
                },
                Value::Int(_) => to_int(value).map(Value::Int),
                Value::Float(_) => to_float(value).map(Value::Float),
                Value::Text(_) => Some(Value::Text(value.to_str())),
                _ => None,
            };
            if converted.is_some_and(|converted| converted.is(candidate)) {
                return Ok(candidate.clone());
            }
        }
        if *value == Value::Null {
            return Err(Fault::new("value cannot be None"));
        }
        Err(Fault::new(format!("expected one of {}", Value::List(allowed).to_repr())))
    }

    fn boolean(&self, value: &Value) -> Result<Value, Fault> {
        match (value, value.number()) {
            (Value::Bool(_), _) => Ok(value.clone()),
            (Value::Text(text), _) if self.rules.coerce => match truth(text) {
                Some(value) => Ok(Value::Bool(value)),
                None => Err(Fault::new(format!("Cannot interpret '{text}' as boolean"))),
            },
            (_, Some(number)) if self.rules.coerce => Ok(Value::Bool(number != 0.0)),
            _ => Err(Fault::new("expected bool")),
        }
    }

    fn scalar(&self, shape: &Shape, value: &Value) -> Result<Value, Fault> {
        // JSON does not tell whole numbers from others, nor days from texts: neither is a conversion.
        let text = || match value {
            Value::Text(text) => Some(text.clone()),
            other => self.rules.coerce.then(|| other.to_str()),
        };
        let date_time = |is: fn(&str) -> bool| text().filter(|text| is(text)).map(Value::Text);
        let (name, read) = match shape {
            Shape::Text => ("str", text().map(Value::Text)),
            Shape::Path => ("Path", text().map(Value::Text)),
            Shape::Integer => {
                let read = match value {
                    Value::Bool(_) if self.rules.typed => to_int(value).map(Value::Int),
                    Value::Bool(_) | Value::Int(_) => Some(value.clone()),
                    _ if self.rules.coerce => to_int(value).map(Value::Int),
                    _ => None,
                };
                ("int", read)
            }
            Shape::Number => {
                let read = match value {
                    Value::Float(_) | Value::Int(_) => to_float(value),
                    _ if self.rules.coerce => to_float(value),
                    _ => None,
                };
                ("float", read.map(Value::Float))
            }
            Shape::DateTime => ("datetime", date_time(date_time::is_date_time)),
            Shape::Date => ("date", date_time(date_time::is_date)),
            Shape::Time => ("time", date_time(date_time::is_time)),
            Shape::Uuid => ("UUID", text().and_then(|text| date_time::uuid(&text)).map(Value::Text)),
            // Everything else has been seen to before.
            _ => ("value", None),
        };
        match read {
            Some(value) => {
                finite(&value)?;
                Ok(value)
            }
            None if self.rules.coerce => {
                Err(Fault::new(format!("unable to coerce {} to {name}", value.to_repr())))
            }
            None => Err(Fault::new(format!("expected {name}"))),
        }
    }
}

/// What is given for a field: under its alias, or else under its name.
fn given<'f, 'v>(field: &'f Field, map: &'v IndexMap<String, Value>) -> Option<(&'f str, &'v Value)> {
    let keys = [field.alias.as_deref(), Some(field.name.as_str())];
    keys.into_iter().flatten().find_map(|key| map.get(key).map(|value| (key, value)))
}

fn missing(field: &Field, map: &IndexMap<String, Value>) -> Fault {
    let mut fault = Fault::new(format!("Missing required field: '{}'", field.name));
    // Thousands of keys would take longer to compare than the hint is worth.
    fault.hint = nearest(field.key(), map.keys().take(100).map(String::as_str));
    fault
}

/// Refuses numbers that JSON does not know, so that nothing is lost without a word.
fn finite(value: &Value) -> Result<(), Fault> {
    match value {
        Value::Float(number) if !number.is_finite() => {
            Err(Fault::new(format!("{} is not a valid JSON number", value.to_repr())))
        }
        Value::List(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(index, item)| finite(item).map_err(|fault| fault.at(Step::Index(index)))),
        Value::Map(map) => map
            .iter()
            .try_for_each(|(key, item)| finite(item).map_err(|fault| fault.at(Step::Key(key.clone())))),
        _ => Ok(()),
    }
}

/// The items without those that came before; the order stays.
fn distinct(items: Vec<Value>) -> Vec<Value> {
    let mut seen = HashSet::new();
    // Numbers that are the same are one item, however they are written.
    let key = |item: &Value| match (item, item.number()) {
        (Value::Int(number), _) => number.to_string(),
        (_, Some(number)) => Int::truncate(number)
            .filter(|int| int.to_f64() == number)
            .map_or_else(|| number.to_string(), |int| int.to_string()),
        (other, None) => other.to_text(),
    };
    items.into_iter().filter(|item| seen.insert(key(item))).collect()
}

fn truth(text: &str) -> Option<bool> {
    match text.trim_matches(is_space).to_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

fn to_int(value: &Value) -> Option<Int> {
    match value {
        Value::Bool(value) => Some(Int::Small(i64::from(*value))),
        Value::Int(number) => Some(number.clone()),
        Value::Float(number) => Int::truncate(*number),
        Value::Text(text) => Int::parse(&digits(text)?),
        _ => None,
    }
}

fn to_float(value: &Value) -> Option<f64> {
    match value {
        Value::Text(text) => digits(text)?.parse().ok(),
        // A whole number that is too large for a float is refused.
        Value::Int(number) => Some(number.to_f64()).filter(|number| number.is_finite()),
        other => other.number(),
    }
}

/// The text of a number without what Python allows in it: white space around it, and `_` between two digits.
fn digits(text: &str) -> Option<String> {
    let text = text.trim_matches(is_space);
    let bytes = text.as_bytes();
    let is_digit = |at: Option<usize>| at.and_then(|at| bytes.get(at)).is_some_and(u8::is_ascii_digit);
    let between = |at: usize| is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
    if !text.match_indices('_').all(|(at, _)| between(at)) {
        return None;
    }
    Some(text.replace('_', ""))
}
