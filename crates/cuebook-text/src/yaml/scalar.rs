//! What a scalar without quotes means.

use serde_json::Number;

/// What a plain scalar means.
#[derive(Debug, Clone, PartialEq)]
pub enum Scalar {
    /// `null`, `~` or nothing.
    Null,
    /// A boolean.
    Bool(bool),
    /// A number that JSON has.
    Number(Number),
    /// `.inf` or `.nan`, which JSON cannot hold.
    Unspeakable,
    /// Everything else.
    Text,
}

/// What a text means where it stands without quotes.
pub fn resolve(text: &str) -> Scalar {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "true" | "True" | "TRUE" => return Scalar::Bool(true),
        "false" | "False" | "FALSE" => return Scalar::Bool(false),
        ".nan" | ".NaN" | ".NAN" => return Scalar::Unspeakable,
        _ => {}
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        return Scalar::Unspeakable;
    }
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix)
            && !digits.is_empty()
            && digits.chars().all(|digit| digit.is_digit(radix))
        {
            return u64::from_str_radix(digits, radix)
                .map_or(Scalar::Text, |number| Scalar::Number(number.into()));
        }
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return whole(text, unsigned);
    }
    if is_float(unsigned) {
        // What no number can hold is rarely meant as one, as in `12e345` for a commit.
        return text.parse().ok().and_then(Number::from_f64).map_or(Scalar::Text, Scalar::Number);
    }
    Scalar::Text
}

fn whole(text: &str, digits: &str) -> Scalar {
    if digits.len() > 1 && digits.starts_with('0') {
        return Scalar::Text;
    }
    let text = text.strip_prefix('+').unwrap_or(text);
    if let Ok(number) = text.parse::<i64>() {
        return Scalar::Number(number.into());
    }
    // The text of a longer number loses nothing.
    text.parse::<u64>().map_or(Scalar::Text, |number| Scalar::Number(number.into()))
}

/// Whether it is `1.5`, `.5`, `1.`, `1e3`, `1.5E-3`: digits on at least one side of the point.
fn is_float(text: &str) -> bool {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (number, exponent) = match text.find(['e', 'E']) {
        Some(at) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let fine = match number.split_once('.') {
        Some((before, after)) => digits(before) && digits(after) && !(before.is_empty() && after.is_empty()),
        None => !number.is_empty() && digits(number),
    };
    fine && exponent.is_none_or(|exponent| {
        let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
        !exponent.is_empty() && digits(exponent)
    })
}
