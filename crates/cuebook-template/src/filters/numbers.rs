//! Filters that make or change numbers.

use crate::error::Result;
use crate::python::{ascii_digits, float_repr, is_space};
use crate::render::Call;
use crate::value::{Val, Value, type_error, type_name};

fn number_of(call: &Call<'_, '_>) -> Result<f64> {
    call.value.value.as_number().ok_or_else(|| call.value.value.number_error(&format!("`{}`", call.name)))
}

pub(super) fn abs<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let value = match call.value.value.as_integer() {
        Some(number) => {
            Value::integer(number.checked_abs().ok_or_else(|| type_error("the number is too large"))?)
        }
        None => Value::Float(number_of(call)?.abs()),
    };
    Ok(Val::new(value, call.value.origin))
}

pub(super) fn filesizeformat<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let value = &call.value.value;
    let bytes = value.as_number().or_else(|| value.as_str().and_then(parse_float));
    let bytes = bytes.ok_or_else(|| value.number_error("`filesizeformat`"))?;
    let binary = call.flag(0, false)?;
    let (base, unit) = if binary { (1024.0_f64, "iB") } else { (1000.0_f64, "B") };
    let text = if bytes == 1.0 {
        "1 Byte".to_owned()
    } else if bytes < base {
        format!("{} Bytes", bytes.trunc())
    } else {
        let prefixes = if binary { "KMGTPEZY" } else { "kMGTPEZY" };
        let mut shown = (bytes, ' ');
        for (index, letter) in prefixes.chars().enumerate() {
            let size = base.powi(index as i32 + 2);
            shown = (base * bytes / size, letter);
            if bytes < size {
                break;
            }
        }
        let number = if shown.0.is_finite() { format!("{:.1}", shown.0) } else { float_repr(shown.0) };
        format!("{number} {}{unit}", shown.1)
    };
    Ok(Val::text(text, call.origin()))
}

pub(crate) fn parse_float(text: &str) -> Option<f64> {
    let text = ascii_digits(text.trim_matches(is_space));
    if text.contains('_') {
        return digits_without_underscores(&text)?.parse().ok();
    }
    text.parse().ok()
}

/// Python allows `_` between digits and nowhere else.
fn digits_without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let between = |index: usize| {
        index > 0
            && bytes[index - 1].is_ascii_alphanumeric()
            && bytes.get(index + 1).is_some_and(u8::is_ascii_alphanumeric)
    };
    let placed = bytes.iter().enumerate().all(|(index, byte)| *byte != b'_' || between(index));
    placed.then(|| text.replace('_', ""))
}

pub(super) fn float<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let value = &call.value.value;
    if let Value::Undefined(missing) = value {
        return Err(missing.error());
    }
    let parsed = value.as_number().or_else(|| value.as_str().and_then(parse_float));
    let origin = call.origin();
    Ok(match parsed {
        Some(number) => Val::new(Value::Float(number), origin),
        None => call.arg(0).cloned().unwrap_or_else(|| Val::new(Value::Float(0.0), origin)),
    })
}

fn parse_int(text: &str, base: u32) -> Option<i128> {
    let text = ascii_digits(text.trim_matches(is_space));
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text.as_ref()),
    };
    let lower = digits.to_ascii_lowercase();
    let prefixed =
        [(2, "0b"), (8, "0o"), (16, "0x")].into_iter().find(|(_, prefix)| lower.starts_with(prefix));
    let (base, digits) = match (base, prefixed) {
        (0, Some((base, _))) => (base, &lower[2..]),
        (0, None) => (10, lower.as_str()),
        (base, Some((prefix_base, _))) if base == prefix_base => (base, &lower[2..]),
        (base, _) => (base, lower.as_str()),
    };
    if !(2..=36).contains(&base) || !digits.starts_with(|first: char| first.is_ascii_alphanumeric()) {
        return None;
    }
    let number = i128::from_str_radix(&digits_without_underscores(digits)?, base).ok()?;
    Some(if negative { -number } else { number })
}

pub(super) fn int<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let value = &call.value.value;
    if let Value::Undefined(missing) = value {
        return Err(missing.error());
    }
    let base = u32::try_from(call.integer(1, 10)?).unwrap_or(1);
    let truncated =
        |number: f64| (number.is_finite() && number.abs() < 1e38).then_some(number.trunc() as i128);
    let parsed = match value {
        Value::Text(text) => {
            parse_int(text.as_str(), base).or_else(|| parse_float(text.as_str()).and_then(truncated))
        }
        Value::Float(number) => truncated(*number),
        other => other.as_integer(),
    };
    let origin = call.origin();
    Ok(match parsed {
        Some(number) => Val::new(Value::integer(number), origin),
        None => call.arg(0).cloned().unwrap_or_else(|| Val::new(Value::Int(0), origin)),
    })
}

pub(super) fn round<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let precision = i32::try_from(call.integer(0, 0)?.clamp(-400, 400)).unwrap_or(0);
    let method = call.text_arg(1, "common")?;
    let number = number_of(call)?;
    let value = match method.as_str() {
        "common" => match call.value.value.as_integer() {
            Some(integer) if precision >= 0 => Value::integer(integer),
            Some(integer) => Value::integer(round_integer(integer, precision.unsigned_abs())),
            None => Value::Float(round_float(number, precision)),
        },
        method @ ("ceil" | "floor") => {
            let scale = 10f64.powi(precision);
            let scaled = number * scale;
            if !scaled.is_finite() {
                return Err(type_error("the number is too large to be rounded"));
            }
            let rounded = if method == "ceil" { scaled.ceil() } else { scaled.floor() };
            Value::Float((rounded + 0.0) / scale)
        }
        other => {
            let error = type_error(format!("`round` has no method `{other}`"));
            return Err(error.help("the methods are `common`, `ceil` and `floor`"));
        }
    };
    Ok(Val::new(value, call.value.origin))
}

/// Rounds to the nearest number with so many zeros at its end; of two equally near, to the even one.
fn round_integer(number: i128, zeros: u32) -> i128 {
    let Some(unit) = 10i128.checked_pow(zeros) else { return 0 };
    let (quotient, rest) = (number.div_euclid(unit), number.rem_euclid(unit));
    let up = rest > unit - rest || (rest == unit - rest && quotient.rem_euclid(2) == 1);
    (quotient + i128::from(up)).saturating_mul(unit)
}

fn round_float(number: f64, precision: i32) -> f64 {
    if !number.is_finite() {
        return number;
    }
    if precision >= 0 {
        // Writing the digits rounds as Python does: exactly, of two equally near to the even one.
        let places = precision as usize;
        return format!("{number:.places$}").parse().unwrap_or(number);
    }
    if number.abs() >= 1e38 {
        return number;
    }
    let zeros = precision.unsigned_abs();
    let Some(unit) = 10i128.checked_pow(zeros) else { return 0.0 * number };
    let integer = number.trunc() as i128;
    let rounded = round_integer(integer, zeros);
    // A tie of the whole part is no tie when there is something behind the point.
    let rest = integer.rem_euclid(unit);
    let tie = rest == unit - rest && number.fract() != 0.0;
    let up = (integer.div_euclid(unit) + i128::from(number > 0.0)).saturating_mul(unit);
    let rounded = if tie { up } else { rounded };
    (rounded as f64).copysign(number)
}

/// The sum of two values, as `+` adds them.
pub(super) fn plus<'r>(call: &Call<'_, 'r>, left: &Val<'r>, right: &Val<'r>) -> Result<Val<'r>> {
    call.render.binary(crate::ast::Binary::Add, left, right).map_err(|error| {
        error.help(format!("`sum` adds {} and {}", type_name(&left.value), type_name(&right.value)))
    })
}
