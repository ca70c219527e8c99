//! `pprint`: a value over several lines, as Python's `pprint` breaks them.

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::super::call::{Call, string_of};
use super::super::limits::{Text, ValueLimits, check_depth};
use super::super::printing::{is_dict, to_repr};

use super::pairs;

pub(super) fn pprint(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let mut out = Text::new(call.limits);
    Pretty { limits: call.limits }.write(&mut out, call.value(0)?, 0, 0, 0)?;
    Ok(Value::from(out.into_string()))
}

/// Python's `pprint`: what fits into eighty columns stays on one line, and the keys of a dict are in order.
struct Pretty {
    limits: ValueLimits,
}

impl Pretty {
    const WIDTH: usize = 80;

    fn write(
        &self,
        out: &mut Text,
        value: &Value,
        column: usize,
        behind: usize,
        depth: usize,
    ) -> Result<(), Error> {
        check_depth(depth)?;
        let line = self.line(value, depth)?;
        let nested = matches!(value.kind(), ValueKind::Map | ValueKind::Seq | ValueKind::Iterable);
        if !nested || column + line.chars().count() + behind <= Self::WIDTH {
            return out.push_str(&line);
        }
        let (open, close) = if value.kind() == ValueKind::Map {
            ("{", "}")
        } else if value.is_tuple() {
            ("(", ")")
        } else {
            ("[", "]")
        };
        out.push_str(open)?;
        let parts = self.parts(value)?;
        let count = parts.len();
        for (index, (key, item)) in parts.into_iter().enumerate() {
            if index > 0 {
                out.push_str(",\n")?;
                out.fill(' ', column + 1)?;
            }
            let mut at = column + 1;
            if let Some(key) = key {
                let key = format!("{}: ", self.line(&key, depth + 1)?);
                out.push_str(&key)?;
                at += key.chars().count();
            }
            let behind = if index + 1 == count { behind + 1 } else { 1 };
            self.write(out, &item, at, behind, depth + 1)?;
        }
        out.push_str(close)
    }

    fn parts(&self, value: &Value) -> Result<Vec<(Option<Value>, Value)>, Error> {
        if value.kind() != ValueKind::Map {
            return value.try_iter()?.checked().map(|item| item.map(|item| (None, item))).collect();
        }
        let mut parts = pairs(value)?;
        // Keys of unlike types stay as they are, as Python leaves their order to their types' names.
        if parts.iter().all(|(key, _)| string_of(key).is_some()) {
            parts.sort_by(|left, right| left.0.as_str().cmp(&right.0.as_str()));
        }
        Ok(parts.into_iter().map(|(key, item)| (Some(key), item)).collect())
    }

    fn line(&self, value: &Value, depth: usize) -> Result<String, Error> {
        check_depth(depth)?;
        match value.kind() {
            ValueKind::Undefined => Ok("Undefined".to_owned()),
            ValueKind::Map if is_dict(value) => {
                let mut out = Text::new(self.limits);
                out.push('{')?;
                for (index, (key, item)) in self.parts(value)?.into_iter().enumerate() {
                    if index > 0 {
                        out.push_str(", ")?;
                    }
                    out.push_str(&self.line(&key.unwrap_or_default(), depth + 1)?)?;
                    out.push_str(": ")?;
                    out.push_str(&self.line(&item, depth + 1)?)?;
                }
                out.push('}')?;
                Ok(out.into_string())
            }
            _ => to_repr(value, self.limits),
        }
    }
}
