//! Arithmetic and comparison, as Python has them.

use std::cmp::Ordering;
use std::rc::Rc;

use crate::ast::{Binary, Comparison};
use crate::error::{Error, ErrorKind, Exceeded, Result};
use crate::format;
use crate::render::Render;
use crate::text::{Builder, Text};
use crate::value::{Special, Val, Value, type_error, type_name};

pub(crate) fn too_large() -> Error {
    Error::limit(Exceeded::Size, "a number is too large: integers have at most 127 bits")
}

fn by_zero() -> Error {
    Error::new(ErrorKind::Runtime, "a number is divided by 0")
}

impl<'r> Render<'r> {
    /// Arithmetic.
    pub(crate) fn binary(&self, operator: Binary, left: &Val<'r>, right: &Val<'r>) -> Result<Val<'r>> {
        for side in [left, right] {
            if let Value::Undefined(missing) = &side.value {
                let percent = operator == Binary::Remainder && matches!(left.value, Value::Text(_));
                if !percent {
                    return Err(missing.error());
                }
            }
        }
        if let (Some(a), Some(b)) = (left.value.as_integer(), right.value.as_integer()) {
            let origin = self.origins.mix(left.origin, right.origin);
            return Ok(Val::new(integers(operator, a, b)?, origin));
        }
        if let (Some(a), Some(b)) = (left.value.as_number(), right.value.as_number()) {
            let origin = self.origins.mix(left.origin, right.origin);
            return Ok(Val::new(Value::Float(floats(operator, a, b)?), origin));
        }
        match operator {
            Binary::Add => self.add(left, right),
            Binary::Multiply => self.repeat(left, right),
            Binary::Remainder if matches!(left.value, Value::Text(_)) => format::percent(self, left, right),
            _ => Err(mismatch(operator, left, right)),
        }
    }

    /// Whether a comparison holds.
    pub(crate) fn holds(&self, comparison: Comparison, left: &Val<'r>, right: &Val<'r>) -> Result<bool> {
        use std::cmp::Ordering::{Greater, Less};
        for side in [left, right] {
            self.refuse_missing(side)?;
        }
        let order = |wanted: fn(std::cmp::Ordering) -> bool| {
            compare(self, left, right).map(|order| order.is_some_and(wanted))
        };
        match comparison {
            Comparison::Equal => equal(self, left, right),
            Comparison::NotEqual => equal(self, left, right).map(|equal| !equal),
            Comparison::Less => order(|order| order == Less),
            Comparison::LessOrEqual => order(|order| order != Greater),
            Comparison::Greater => order(|order| order == Greater),
            Comparison::GreaterOrEqual => order(|order| order != Less),
            Comparison::In => self.contains(right, left),
            Comparison::NotIn => self.contains(right, left).map(|found| !found),
        }
    }

    fn add(&self, left: &Val<'r>, right: &Val<'r>) -> Result<Val<'r>> {
        match (&left.value, &right.value) {
            (Value::Text(a), Value::Text(b)) => {
                let safe = a.is_safe() || b.is_safe();
                let shown = |text: &crate::text::Text<'r>| {
                    if safe && !text.is_safe() { text.map(crate::python::escape_html) } else { text.clone() }
                };
                let mut builder = Builder::new();
                builder.push_text(&shown(a), left.origin);
                builder.push_text(&shown(b), right.origin);
                self.spend_text(builder.len())?;
                let origin = self.origins.mix(self.origin_of(left), self.origin_of(right));
                Ok(builder.finish(origin, safe))
            }
            (Value::List(_) | Value::Array(_), Value::List(_) | Value::Array(_)) => {
                let mut items = self.item_list(left)?;
                items.extend(self.item_list(right)?);
                self.spend_items(items.len())?;
                Ok(Val::list(items))
            }
            (Value::Tuple(a), Value::Tuple(b)) => {
                let items: Vec<_> = a.iter().chain(b.iter()).cloned().collect();
                self.spend_items(items.len())?;
                Ok(Val::tuple(items))
            }
            _ => Err(mismatch(Binary::Add, left, right)),
        }
    }

    fn repeat(&self, left: &Val<'r>, right: &Val<'r>) -> Result<Val<'r>> {
        let (value, times) = match (left.value.as_integer(), right.value.as_integer()) {
            (None, Some(times)) => (left, times),
            (Some(times), None) => (right, times),
            _ => return Err(mismatch(Binary::Multiply, left, right)),
        };
        if i64::try_from(times).is_err() {
            return Err(too_large());
        }
        let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
        let origin = self.origins.mix(self.origin_of(left), self.origin_of(right));
        match &value.value {
            Value::Text(text) => {
                self.spend_text(text.as_str().len().saturating_mul(times))?;
                let Some(pieces) = text.pieces().filter(|_| !text.as_str().is_empty()) else {
                    let repeated =
                        if text.as_str().is_empty() { String::new() } else { text.as_str().repeat(times) };
                    return Ok(Val::text(Text::from(repeated).safe(text.is_safe()), origin));
                };
                self.spend(pieces.len().saturating_mul(times) / 8)?;
                let mut builder = Builder::new();
                for _ in 0..times {
                    builder.push_text(text, origin);
                }
                Ok(builder.finish(origin, text.is_safe()))
            }
            Value::List(_) | Value::Array(_) | Value::Tuple(_) => {
                let items = self.item_list(value)?;
                let count = items.len().saturating_mul(times);
                self.spend_items(count)?;
                let all: Vec<_> = items.iter().cycle().take(count).cloned().collect();
                let tuple = matches!(value.value, Value::Tuple(_));
                Ok(if tuple { Val::tuple(all) } else { Val::list(all) })
            }
            _ => Err(mismatch(Binary::Multiply, left, right)),
        }
    }

    /// `item in container`.
    pub(crate) fn contains(&self, container: &Val<'r>, item: &Val<'r>) -> Result<bool> {
        let is_text = matches!((&container.value, &item.value), (Value::Text(_), Value::Text(_)));
        if self.is_portable() && !is_text && holds_nothing(&container.value) {
            return Ok(false);
        }
        match &container.value {
            Value::Undefined(_) => Ok(false),
            Value::Text(text) => match &item.value {
                Value::Text(part) => {
                    self.spend(text.as_str().len() / 64)?;
                    Ok(text.as_str().contains(part.as_str()))
                }
                Value::Undefined(missing) => Err(missing.error()),
                other => Err(type_error(format!("a string cannot contain {}", type_name(other)))),
            },
            Value::Dict(dict) => Ok(dict.get(&self.key_of(&item.value)?).is_some()),
            Value::Map(map) => {
                self.key_of(&item.value)?;
                Ok(item.value.as_str().is_some_and(|key| map.contains_key(key)))
            }
            _ => {
                let items = self.items(container)?;
                for index in 0..items.len() {
                    self.spend(1)?;
                    if equal(self, &items.get(&self.origins, index), item)? {
                        return Ok(true);
                    }
                }
                Ok(false)
            }
        }
    }
}

/// Whether a value can hold no others, or none but texts: the portable style has no error for that.
fn holds_nothing(container: &Value<'_>) -> bool {
    matches!(container, Value::Text(_) | Value::None | Value::Bool(_)) || container.as_number().is_some()
}

fn symbol(operator: Binary) -> &'static str {
    match operator {
        Binary::Add => "+",
        Binary::Subtract => "-",
        Binary::Multiply => "*",
        Binary::Divide => "/",
        Binary::FloorDivide => "//",
        Binary::Remainder => "%",
        Binary::Power => "**",
    }
}

fn mismatch(operator: Binary, left: &Val<'_>, right: &Val<'_>) -> Error {
    let (left, right) = (type_name(&left.value), type_name(&right.value));
    let error = type_error(format!("`{}` does not work on {left} and {right}", symbol(operator)));
    if operator == Binary::Add { error.help("join texts with `~`") } else { error }
}

fn integers<'r>(operator: Binary, a: i128, b: i128) -> Result<Value<'r>> {
    // Only the smallest number divided by -1 has no quotient, and then nothing is left over.
    let floor = || {
        let (quotient, rest) = (a.checked_div(b), a.checked_rem(b).unwrap_or(0));
        if rest != 0 && (rest < 0) != (b < 0) {
            (quotient.map(|quotient| quotient - 1), rest + b)
        } else {
            (quotient, rest)
        }
    };
    Ok(match operator {
        Binary::Add => Value::integer(a.checked_add(b).ok_or_else(too_large)?),
        Binary::Subtract => Value::integer(a.checked_sub(b).ok_or_else(too_large)?),
        Binary::Multiply => Value::integer(a.checked_mul(b).ok_or_else(too_large)?),
        Binary::Divide | Binary::FloorDivide | Binary::Remainder if b == 0 => return Err(by_zero()),
        Binary::Divide => Value::Float(a as f64 / b as f64),
        Binary::FloorDivide => Value::integer(floor().0.ok_or_else(too_large)?),
        Binary::Remainder => Value::integer(floor().1),
        Binary::Power if b >= 0 => {
            let exponent = u32::try_from(b).unwrap_or(u32::MAX);
            match a {
                0 | 1 => Value::integer(if exponent == 0 { 1 } else { a }),
                -1 => Value::integer(if exponent % 2 == 0 { 1 } else { -1 }),
                _ => Value::integer(a.checked_pow(exponent).ok_or_else(too_large)?),
            }
        }
        Binary::Power if a == 0 => return Err(by_zero()),
        Binary::Power => Value::Float((a as f64).powf(b as f64)),
    })
}

fn floats(operator: Binary, a: f64, b: f64) -> Result<f64> {
    Ok(match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide | Binary::FloorDivide | Binary::Remainder if b == 0.0 => return Err(by_zero()),
        Binary::Divide => a / b,
        Binary::FloorDivide => floor_divide(a, b).0,
        Binary::Remainder => floor_divide(a, b).1,
        Binary::Power if a == 0.0 && b < 0.0 => return Err(by_zero()),
        Binary::Power if a < 0.0 && b.fract() != 0.0 => {
            return Err(type_error("the power of a negative number with a fraction is not a real number"));
        }
        Binary::Power => {
            let power = a.powf(b);
            if power.is_infinite() && a.is_finite() && b.is_finite() {
                return Err(too_large());
            }
            power
        }
    })
}

/// Quotient and remainder as Python rounds them: the remainder has the sign of the divisor.
fn floor_divide(a: f64, b: f64) -> (f64, f64) {
    let mut rest = a % b;
    let mut quotient = (a - rest) / b;
    if rest != 0.0 {
        if (b < 0.0) != (rest < 0.0) {
            rest += b;
            quotient -= 1.0;
        }
    } else {
        rest = 0.0_f64.copysign(b);
    }
    let mut floor = quotient.floor();
    if quotient - floor > 0.5 {
        floor += 1.0;
    }
    (if quotient == 0.0 { 0.0_f64.copysign(a / b) } else { floor }, rest)
}

/// Whether two values are equal.
pub(crate) fn equal<'r>(render: &Render<'r>, left: &Val<'r>, right: &Val<'r>) -> Result<bool> {
    equal_at(render, left, right, 0)
}

fn equal_at<'r>(render: &Render<'r>, left: &Val<'r>, right: &Val<'r>, depth: usize) -> Result<bool> {
    if depth > 128 {
        return Err(Error::limit(Exceeded::Depth, "values that nest too deeply cannot be compared"));
    }
    render.spend(1)?;
    if render.is_portable() {
        let absent = |value: &Value<'r>| matches!(value, Value::Undefined(_) | Value::None);
        let truth = |value: &Value<'r>| matches!(value, Value::Bool(_));
        if absent(&left.value) || absent(&right.value) {
            return Ok(absent(&left.value) && absent(&right.value));
        }
        if truth(&left.value) != truth(&right.value) {
            return Ok(false);
        }
    }
    if let (Some(a), Some(b)) = (left.value.as_integer(), right.value.as_integer()) {
        return Ok(a == b);
    }
    if let (Some(a), Some(b)) = (left.value.as_number(), right.value.as_number()) {
        return Ok(a == b);
    }
    Ok(match (&left.value, &right.value) {
        (Value::Undefined(_), Value::Undefined(_)) | (Value::None, Value::None) => true,
        (Value::Text(a), Value::Text(b)) => {
            let (a, b) = (a.as_str(), b.as_str());
            render.spend(if a.len() == b.len() { a.len() / 64 } else { 0 })?;
            a == b
        }
        (Value::List(a), Value::List(b)) | (Value::Tuple(a), Value::Tuple(b)) if Rc::ptr_eq(a, b) => true,
        (Value::Dict(a), Value::Dict(b)) if Rc::ptr_eq(a, b) => true,
        (Value::List(_) | Value::Array(_), Value::List(_) | Value::Array(_))
        | (Value::Tuple(_), Value::Tuple(_)) => {
            let (a, b) = (render.items(left)?, render.items(right)?);
            if a.len() != b.len() {
                return Ok(false);
            }
            for index in 0..a.len() {
                if !equal_at(
                    render,
                    &a.get(&render.origins, index),
                    &b.get(&render.origins, index),
                    depth + 1,
                )? {
                    return Ok(false);
                }
            }
            true
        }
        (Value::Dict(_) | Value::Map(_), Value::Dict(_) | Value::Map(_)) => {
            if left.value.length() != right.value.length() {
                return Ok(false);
            }
            for (key, value) in render.pairs(left)?.unwrap_or_default() {
                let other = match &right.value {
                    Value::Dict(dict) => dict.get(&render.key_of(&key.value)?).cloned(),
                    Value::Map(map) => key
                        .value
                        .as_str()
                        .and_then(|key| map.get(key))
                        .map(|json| Val::from(Value::from_json(json))),
                    _ => None,
                };
                match other {
                    Some(other) if equal_at(render, &value, &other, depth + 1)? => {}
                    _ => return Ok(false),
                }
            }
            true
        }
        (Value::Range(a), Value::Range(b)) => {
            a.length == b.length
                && (a.length == 0 || a.start == b.start && (a.length == 1 || a.step == b.step))
        }
        (Value::Special(a), Value::Special(b)) => match (a.as_ref(), b.as_ref()) {
            (Special::Group(_), Special::Group(_)) => {
                let (a, b) = (render.item_list(left)?, render.item_list(right)?);
                equal_at(render, &Val::tuple(a), &Val::tuple(b), depth + 1)?
            }
            (Special::Function(a), Special::Function(b)) => a == b,
            _ => Rc::ptr_eq(a, b),
        },
        (Value::Once(a), Value::Once(b)) => Rc::ptr_eq(a, b),
        (Value::View(a), Value::View(b)) => {
            a.name == b.name && a.name != "dict_values" && {
                equal_at(render, &Val::list(a.items.clone()), &Val::list(b.items.clone()), depth + 1)?
            }
        }
        _ => false,
    })
}

/// How two values are ordered; `None` if one of them is not a number in Python's sense.
pub(crate) fn compare<'r>(render: &Render<'r>, left: &Val<'r>, right: &Val<'r>) -> Result<Option<Ordering>> {
    render.spend(1)?;
    render.check_stack()?;
    for side in [left, right] {
        match &side.value {
            Value::Undefined(_) | Value::Bool(_) if render.is_portable() => return Ok(None),
            Value::Undefined(missing) => return Err(missing.error()),
            _ => {}
        }
    }
    if let (Some(a), Some(b)) = (left.value.as_integer(), right.value.as_integer()) {
        return Ok(Some(a.cmp(&b)));
    }
    if let (Some(a), Some(b)) = (left.value.as_number(), right.value.as_number()) {
        return Ok(a.partial_cmp(&b));
    }
    match (&left.value, &right.value) {
        (Value::Text(a), Value::Text(b)) => {
            render.spend(a.as_str().len().min(b.as_str().len()) / 64)?;
            Ok(Some(a.as_str().cmp(b.as_str())))
        }
        (Value::List(_) | Value::Array(_), Value::List(_) | Value::Array(_))
        | (Value::Tuple(_), Value::Tuple(_)) => {
            let (a, b) = (render.items(left)?, render.items(right)?);
            for index in 0..a.len().min(b.len()) {
                let (a, b) = (a.get(&render.origins, index), b.get(&render.origins, index));
                if !equal(render, &a, &b)? {
                    return compare(render, &a, &b);
                }
            }
            Ok(Some(a.len().cmp(&b.len())))
        }
        _ if render.is_portable() => Ok(None),
        (a, b) => Err(type_error(format!("{} and {} cannot be compared", type_name(a), type_name(b)))),
    }
}
