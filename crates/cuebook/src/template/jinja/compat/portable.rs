//! How values print and compare in the portable style; see [`Style`](super::Style).

use std::cmp::Ordering;

use minijinja::value::ValueKind;
use minijinja::{Error, ErrorKind, Value};

use super::Style;
use super::call::{hashed, string_of, touch};
use super::limits::{Text, check_depth};
use super::ordering::equal_in;
use super::printing::{float, is_macro, write_repr};
use crate::json::write_string;
use crate::template::meter;

/// Null, or nothing at all: the portable style does not tell them apart.
pub(super) fn is_absent(value: &Value) -> bool {
    value.is_undefined() || value.is_none()
}

/// Writes a value as it prints.
pub(super) fn write_text(out: &mut Text, value: &Value, depth: usize) -> Result<(), Error> {
    check_depth(depth)?;
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => Ok(()),
        ValueKind::Bool => out.push_str(if value.is_true() { "true" } else { "false" }),
        ValueKind::Number => write_number(out, value),
        ValueKind::String => out.push_str(value.as_str().unwrap_or_default()),
        ValueKind::Seq | ValueKind::Iterable => {
            for item in value.try_iter()?.checked() {
                write_text(out, &item?, depth + 1)?;
            }
            Ok(())
        }
        ValueKind::Map if !is_macro(value) => write_json(out, value, depth),
        ValueKind::Invalid => Err(Error::new(ErrorKind::InvalidOperation, value.to_string())),
        // What only a template of Jinja2 can hold prints as it does there: macros, functions, bytes.
        _ => write_repr(out, value, depth),
    }
}

fn write_number(out: &mut Text, value: &Value) -> Result<(), Error> {
    match float(value) {
        Some(number) => out.push_str(&float_text(number)),
        None => out.push_str(&value.to_string()),
    }
}

/// The fewest digits that give the same number, without an exponent.
pub(super) fn float_text(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    // Nobody means the sign of a zero.
    if number == 0.0 { "0".to_owned() } else { number.to_string() }
}

/// Writes what stands inside a map: JSON without spaces.
fn write_json(out: &mut Text, value: &Value, depth: usize) -> Result<(), Error> {
    check_depth(depth)?;
    match value.kind() {
        ValueKind::Undefined | ValueKind::None => out.push_str("null"),
        ValueKind::Number if float(value).is_some_and(|number| !number.is_finite()) => out.push_str("null"),
        ValueKind::String => write_string(value.as_str().unwrap_or_default(), |piece| out.push_str(piece)),
        ValueKind::Seq | ValueKind::Iterable => {
            out.push('[')?;
            for (index, item) in value.try_iter()?.checked().enumerate() {
                if index > 0 {
                    out.push(',')?;
                }
                write_json(out, &item?, depth + 1)?;
            }
            out.push(']')
        }
        ValueKind::Map if !is_macro(value) => {
            out.push('{')?;
            let pairs = value.as_object().and_then(|object| object.try_iter_pairs());
            for (index, (key, item)) in pairs.into_iter().flatten().enumerate() {
                if index > 0 {
                    out.push(',')?;
                }
                match string_of(&key) {
                    Some(key) => write_string(key, |piece| out.push_str(piece))?,
                    None => {
                        out.push('"')?;
                        write_text(out, &key, depth + 1)?;
                        out.push('"')?;
                    }
                }
                out.push(':')?;
                write_json(out, &item, depth + 1)?;
            }
            out.push('}')
        }
        _ => write_text(out, value, depth),
    }
}

/// Which of two values comes first; `None` if they have no order.
pub(super) fn order(left: &Value, right: &Value, depth: usize) -> Result<Option<Ordering>, Error> {
    check_depth(depth)?;
    let kinds = (left.kind(), right.kind());
    let listed = |kind| matches!(kind, ValueKind::Seq | ValueKind::Iterable);
    match kinds {
        (ValueKind::Number, ValueKind::Number) => {
            Ok(match (i128::try_from(left.clone()), i128::try_from(right.clone())) {
                (Ok(first), Ok(second)) if left.is_integer() && right.is_integer() => {
                    Some(first.cmp(&second))
                }
                _ => {
                    let number = |value: &Value| f64::try_from(value.clone()).ok();
                    number(left).zip(number(right)).and_then(|(left, right)| left.partial_cmp(&right))
                }
            })
        }
        (ValueKind::String, ValueKind::String) => {
            let (left, right) = (left.as_str().unwrap_or_default(), right.as_str().unwrap_or_default());
            meter::text(left.len().min(right.len()))?;
            Ok(Some(left.cmp(right)))
        }
        (first, second) if listed(first) && listed(second) => {
            let (mut lefts, mut rights) = (left.try_iter()?.checked(), right.try_iter()?.checked());
            loop {
                match (lefts.next().transpose()?, rights.next().transpose()?) {
                    (None, None) => return Ok(Some(Ordering::Equal)),
                    (None, Some(_)) => return Ok(Some(Ordering::Less)),
                    (Some(_), None) => return Ok(Some(Ordering::Greater)),
                    (Some(left), Some(right)) if equal_in(Style::Portable, &left, &right)? => {}
                    (Some(left), Some(right)) => return order(&left, &right, depth + 1),
                }
            }
        }
        _ => Ok(None),
    }
}

/// Whether a container has a value in it. What cannot hold anything holds nothing.
pub(super) fn contains(value: &Value, container: &Value) -> Result<bool, Error> {
    touch(&[value.clone(), container.clone()])?;
    Ok(match container.kind() {
        ValueKind::String => string_of(container)
            .zip(string_of(value))
            .is_some_and(|(container, value)| container.contains(value)),
        ValueKind::Map => {
            hashed(value)?;
            container.as_object().is_some_and(|object| object.get_value(value).is_some())
        }
        ValueKind::Seq | ValueKind::Iterable => {
            for item in container.try_iter()?.checked() {
                if equal_in(Style::Portable, &item?, value)? {
                    return Ok(true);
                }
            }
            false
        }
        _ => false,
    })
}
