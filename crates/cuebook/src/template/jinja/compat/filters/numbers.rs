//! Filters that make or change numbers.

use minijinja::{Error, ErrorKind, Value};

use super::super::call::{Call, integer, invalid, number, string_of, type_name};
use super::super::printing::{float, float_repr};
use super::super::text;

pub(super) fn abs(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    if let Some(number) = integer(value) {
        return number.checked_abs().map(whole).ok_or_else(|| invalid("the number is too large"));
    }
    float(value)
        .map(|number| Value::from(number.abs()))
        .ok_or_else(|| invalid(format!("`abs` needs a number, not {}", type_name(value))))
}

/// An integer in the smallest form that holds it.
pub(in super::super) fn whole(number: i128) -> Value {
    i64::try_from(number).map_or_else(|_| Value::from(number), Value::from)
}

pub(super) fn filesizeformat(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    let bytes = number(value).or_else(|| string_of(value).and_then(parse_float));
    let bytes =
        bytes.ok_or_else(|| invalid(format!("`filesizeformat` needs a number, not {}", type_name(value))))?;
    let (base, unit) = if call.flag(1, false) { (1024.0_f64, "iB") } else { (1000.0_f64, "B") };
    if bytes == 1.0 {
        return Ok(Value::from("1 Byte"));
    }
    if bytes < base {
        return Ok(Value::from(format!("{} Bytes", bytes.trunc())));
    }
    let prefixes = if unit == "B" { "kMGTPEZY" } else { "KMGTPEZY" };
    let mut shown = bytes;
    let mut prefix = ' ';
    for (index, letter) in prefixes.chars().enumerate() {
        let size = base.powi(index as i32 + 2);
        (shown, prefix) = (base * bytes / size, letter);
        if bytes < size {
            break;
        }
    }
    let shown = if shown.is_finite() { format!("{shown:.1}") } else { float_repr(shown) };
    Ok(Value::from(format!("{shown} {prefix}{unit}")))
}

fn parse_float(text: &str) -> Option<f64> {
    let text = text::ascii_digits(text.trim_matches(text::is_space));
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

pub(super) fn float_filter(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "an undefined value is not a number"));
    }
    let parsed = number(value).or_else(|| string_of(value).and_then(parse_float));
    Ok(parsed.map(Value::from).or_else(|| call.given(1).cloned()).unwrap_or_else(|| Value::from(0.0)))
}

fn parse_int(text: &str, base: u32) -> Option<i128> {
    let text = text::ascii_digits(text.trim_matches(text::is_space));
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

pub(super) fn int(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "an undefined value is not a number"));
    }
    let base = u32::try_from(call.integer_or(2, 10)?).unwrap_or(1);
    let truncated =
        |number: f64| (number.is_finite() && number.abs() < 1e38).then_some(number.trunc() as i128);
    let parsed = match string_of(value) {
        Some(text) => parse_int(text, base).or_else(|| parse_float(text).and_then(truncated)),
        None => integer(value).or_else(|| float(value).and_then(truncated)),
    };
    Ok(parsed.map(whole).or_else(|| call.given(1).cloned()).unwrap_or_else(|| Value::from(0)))
}

pub(super) fn round(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    let precision = i32::try_from(call.integer_or(1, 0)?.clamp(-400, 400)).unwrap_or(0);
    let number =
        number(value).ok_or_else(|| invalid(format!("`round` needs a number, not {}", type_name(value))))?;
    match call.string_or(2, "common")? {
        "common" => Ok(match integer(value) {
            Some(integer) if precision >= 0 => whole(integer),
            Some(integer) => whole(round_integer(integer, precision.unsigned_abs())),
            None => Value::from(round_float(number, precision)),
        }),
        method @ ("ceil" | "floor") => {
            let scale = 10f64.powi(precision);
            let scaled = number * scale;
            if !scaled.is_finite() {
                return Err(invalid("the number is too large to round"));
            }
            let rounded = if method == "ceil" { scaled.ceil() } else { scaled.floor() };
            Ok(Value::from((rounded + 0.0) / scale))
        }
        _ => Err(invalid("use the method \"common\", \"ceil\" or \"floor\" of `round`")),
    }
}

/// Rounds to the nearest number with so many zeros at its end; of two equally near, to the even one.
fn round_integer(number: i128, zeros: u32) -> i128 {
    let Some(unit) = 10i128.checked_pow(zeros) else { return 0 };
    let (quotient, rest) = (number.div_euclid(unit), number.rem_euclid(unit));
    let up = rest * 2 > unit || (rest * 2 == unit && quotient.rem_euclid(2) == 1);
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
    // A tie of the whole part is none when there is something behind the point.
    let tie = (integer.rem_euclid(unit)) * 2 == unit && number.fract() != 0.0;
    let rounded = if tie { (integer.div_euclid(unit) + i128::from(number > 0.0)) * unit } else { rounded };
    (rounded as f64).copysign(number)
}
