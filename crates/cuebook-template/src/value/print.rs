//! Values as Python's `str` and `repr` write them.

use serde_json::Value as Json;

use super::{Special, Val, Value};
use crate::error::{Error, Exceeded, Result};
use crate::python::{float_repr, quote};

/// How deeply values may nest where they are walked.
pub(crate) const DEPTH: usize = 128;

/// What Python calls the type of a value.
pub(crate) fn type_name(value: &Value<'_>) -> &'static str {
    match value {
        Value::Undefined(_) => "an undefined value",
        Value::None => "none",
        Value::Bool(_) => "a boolean",
        Value::Int(_) | Value::Big(_) => "an integer",
        Value::Float(_) => "a float",
        Value::Text(_) => "a string",
        Value::List(_) | Value::Array(_) => "a list",
        Value::Tuple(_) => "a tuple",
        Value::Dict(_) | Value::Map(_) => "a dict",
        Value::Range(_) => "a range",
        Value::Once(_) => "a generator",
        Value::View(_) => "a view of a dict",
        Value::Special(special) => special.type_name(),
    }
}

/// Writes values, up to a limit.
pub(crate) struct Printer {
    pub out: String,
    limit: usize,
    depth: usize,
    /// Whether dicts whose keys are all strings are written in the order of these.
    sorted: bool,
}

impl Printer {
    pub fn new(limit: usize) -> Printer {
        Printer { out: String::new(), limit, depth: 0, sorted: false }
    }

    pub fn sorted(limit: usize) -> Printer {
        Printer { sorted: true, ..Printer::new(limit) }
    }

    fn check(&self) -> Result<()> {
        if self.out.len() > self.limit {
            return Err(Error::limit(
                Exceeded::Size,
                format!("a string would be longer than {} bytes", self.limit),
            ));
        }
        Ok(())
    }

    pub fn str(&mut self, value: &Value<'_>) -> Result<()> {
        match value {
            Value::Undefined(_) => {}
            Value::Text(text) => self.out.push_str(text.as_str()),
            _ => self.repr(value)?,
        }
        self.check()
    }

    fn nested(&mut self, inside: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        if self.depth >= DEPTH {
            return Err(Error::limit(
                Exceeded::Depth,
                format!("a value nests more than {DEPTH} levels deep"),
            ));
        }
        self.depth += 1;
        let result = inside(self);
        self.depth -= 1;
        result?;
        self.check()
    }

    fn items<'v, T: 'v>(
        &mut self,
        (open, close): (&str, &str),
        items: impl Iterator<Item = T>,
        mut write: impl FnMut(&mut Self, T) -> Result<()>,
    ) -> Result<()> {
        self.nested(|printer| {
            printer.out.push_str(open);
            for (at, item) in items.enumerate() {
                if at > 0 {
                    printer.out.push_str(", ");
                }
                write(printer, item)?;
            }
            printer.out.push_str(close);
            Ok(())
        })
    }

    fn values(&mut self, brackets: (&str, &str), items: &[Val<'_>]) -> Result<()> {
        self.items(brackets, items.iter(), |printer, item| printer.repr(&item.value))
    }

    pub fn repr(&mut self, value: &Value<'_>) -> Result<()> {
        match value {
            Value::Undefined(_) => self.out.push_str("Undefined"),
            Value::None => self.out.push_str("None"),
            Value::Bool(value) => self.out.push_str(if *value { "True" } else { "False" }),
            Value::Int(number) => self.out.push_str(&number.to_string()),
            Value::Big(number) => self.out.push_str(&number.to_string()),
            Value::Float(number) => self.out.push_str(&float_repr(*number)),
            Value::Text(text) if text.is_safe() => {
                self.out.push_str("Markup(");
                quote(&mut self.out, text.as_str());
                self.out.push(')');
            }
            Value::Text(text) => quote(&mut self.out, text.as_str()),
            Value::List(items) => self.values(("[", "]"), items)?,
            Value::Tuple(items) => {
                let close = if items.len() == 1 { ",)" } else { ")" };
                self.values(("(", close), items)?;
            }
            Value::Dict(dict) => {
                let mut entries: Vec<_> = dict.entries().iter().collect();
                if self.sorted && entries.iter().all(|(key, _)| key.value.as_str().is_some()) {
                    entries.sort_by_key(|(key, _)| key.value.as_str());
                }
                self.items(("{", "}"), entries.into_iter(), |printer, (key, value)| {
                    printer.repr(&key.value)?;
                    printer.out.push_str(": ");
                    printer.repr(&value.value)
                })?;
            }
            Value::Array(items) => self.items(("[", "]"), items.iter(), Self::json)?,
            Value::Map(map) => self.map(map)?,
            Value::Range(range) => {
                let (start, stop, step) = (range.start, range.stop, range.step);
                let text = if step == 1 {
                    format!("range({start}, {stop})")
                } else {
                    format!("range({start}, {stop}, {step})")
                };
                self.out.push_str(&text);
            }
            Value::Once(_) => self.out.push_str("<generator>"),
            Value::View(view) => {
                let open = format!("{}([", view.name);
                self.values((&open, "])"), &view.items)?;
            }
            Value::Special(special) => self.special(special)?,
        }
        self.check()
    }

    fn special(&mut self, special: &Special<'_>) -> Result<()> {
        match special {
            Special::Group(items) => self.values(("(", ")"), items),
            Special::Namespace(entries) => self.nested(|printer| {
                printer.out.push_str("<Namespace {");
                for (at, (name, value)) in entries.borrow().iter().enumerate() {
                    if at > 0 {
                        printer.out.push_str(", ");
                    }
                    quote(&mut printer.out, name);
                    printer.out.push_str(": ");
                    printer.repr(&value.value)?;
                }
                printer.out.push_str("}>");
                Ok(())
            }),
            _ => {
                self.out.push_str(&special.describe());
                Ok(())
            }
        }
    }

    fn map(&mut self, map: &serde_json::Map<String, Json>) -> Result<()> {
        let mut entries: Vec<_> = map.iter().collect();
        if self.sorted {
            entries.sort_by_key(|(key, _)| *key);
        }
        self.items(("{", "}"), entries.into_iter(), |printer, (key, value)| {
            quote(&mut printer.out, key);
            printer.out.push_str(": ");
            printer.json(value)
        })
    }

    fn json(&mut self, json: &Json) -> Result<()> {
        match json {
            Json::Array(items) => self.items(("[", "]"), items.iter(), Self::json),
            Json::Object(map) => self.map(map),
            other => self.repr(&Value::from_json(other)),
        }
    }

    /// Writes a value as every runtime of `.prompty` files does.
    pub fn portable(&mut self, value: &Value<'_>) -> Result<()> {
        match value {
            Value::Undefined(_) | Value::None => {}
            Value::Bool(value) => self.out.push_str(if *value { "true" } else { "false" }),
            Value::Float(number) => self.out.push_str(&portable_float(*number)),
            Value::Text(text) => self.out.push_str(text.as_str()),
            Value::List(items) | Value::Tuple(items) => self.portable_items(items)?,
            Value::View(view) => self.portable_items(&view.items)?,
            Value::Once(once) => {
                let items: Vec<Val<'_>> = once.items.borrow().iter().cloned().collect();
                self.portable_items(&items)?;
            }
            Value::Array(items) => self.nested(|printer| {
                items.iter().try_for_each(|item| printer.portable(&Value::from_json(item)))
            })?,
            Value::Range(range) => {
                for at in 0..range.length {
                    self.out.push_str(&range.at(at).to_string());
                }
            }
            Value::Map(_) | Value::Dict(_) => self.portable_json(value)?,
            Value::Special(special) => match special.as_ref() {
                Special::Group(items) => self.portable_items(items)?,
                _ => self.repr(value)?,
            },
            Value::Int(_) | Value::Big(_) => self.repr(value)?,
        }
        self.check()
    }

    fn portable_items(&mut self, items: &[Val<'_>]) -> Result<()> {
        self.nested(|printer| items.iter().try_for_each(|item| printer.portable(&item.value)))
    }

    /// What stands inside a map: JSON without spaces.
    fn portable_json(&mut self, value: &Value<'_>) -> Result<()> {
        match value {
            Value::Undefined(_) | Value::None => self.out.push_str("null"),
            Value::Float(number) if !number.is_finite() => self.out.push_str("null"),
            Value::Text(text) => self.json_text(text.as_str()),
            Value::List(items) | Value::Tuple(items) => self.json_items(items)?,
            Value::View(view) => self.json_items(&view.items)?,
            Value::Array(items) => {
                let items: Vec<Val<'_>> = items.iter().map(|item| Value::from_json(item).into()).collect();
                self.json_items(&items)?;
            }
            Value::Map(map) => self.json_pairs(
                map.iter().map(|(key, value)| (Value::Text(key.as_str().into()), Value::from_json(value))),
            )?,
            Value::Dict(dict) => {
                let pairs =
                    dict.entries().iter().map(|(key, value)| (key.value.clone(), value.value.clone()));
                self.json_pairs(pairs)?;
            }
            _ => self.portable(value)?,
        }
        self.check()
    }

    fn json_items(&mut self, items: &[Val<'_>]) -> Result<()> {
        self.nested(|printer| {
            printer.out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    printer.out.push(',');
                }
                printer.portable_json(&item.value)?;
            }
            printer.out.push(']');
            Ok(())
        })
    }

    fn json_pairs<'v>(&mut self, pairs: impl Iterator<Item = (Value<'v>, Value<'v>)>) -> Result<()> {
        self.nested(|printer| {
            printer.out.push('{');
            for (at, (key, value)) in pairs.enumerate() {
                if at > 0 {
                    printer.out.push(',');
                }
                match key.as_str() {
                    Some(key) => printer.json_text(key),
                    None => {
                        printer.out.push('"');
                        printer.portable(&key)?;
                        printer.out.push('"');
                    }
                }
                printer.out.push(':');
                printer.portable_json(&value)?;
            }
            printer.out.push('}');
            Ok(())
        })
    }

    fn json_text(&mut self, text: &str) {
        // A string always has a JSON form.
        self.out.push_str(&serde_json::to_string(text).unwrap_or_default());
    }
}

/// The fewest digits that give the same number, without an exponent.
fn portable_float(number: f64) -> String {
    match number {
        _ if number.is_nan() => "nan".to_owned(),
        // The sign of a zero is never intended.
        0.0 => "0".to_owned(),
        _ => number.to_string(),
    }
}

/// A value as Python's `str` writes it, up to so many bytes.
pub fn to_str(json: &Json, limit: usize) -> Result<String> {
    let mut printer = Printer::new(limit);
    printer.str(&Value::from_json(json))?;
    Ok(printer.out)
}
