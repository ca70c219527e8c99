//! How one number or text is formatted.
//!
//! Widths and precisions are numbers that a template chooses, so each is checked before anything of that size is made.

use crate::error::{Error, Exceeded, Result};
use crate::python::{float_repr, signed_exponent};
use crate::value::type_error as invalid;

/// No float has more digits behind the point than this, so further ones are zeros.
const FLOAT_DIGITS: usize = 1100;

/// What stands behind the colon of a replacement field, or between `%` and its letter.
#[derive(Debug, Clone, Default)]
pub(super) struct Spec {
    pub fill: Option<char>,
    pub align: Option<char>,
    pub sign: Option<char>,
    pub alternate: bool,
    pub zero: bool,
    pub width: usize,
    pub grouping: Option<char>,
    pub precision: Option<usize>,
    pub letter: Option<char>,
}

impl Spec {
    /// Reads `[[fill]align][sign][#][0][width][grouping][.precision][letter]`.
    pub fn parse(text: &str, limit: usize) -> Result<Spec> {
        let characters: Vec<char> = text.chars().collect();
        let mut spec = Spec::default();
        let mut at = 0;
        let is_align = |index: usize| matches!(characters.get(index), Some('<' | '>' | '^' | '='));
        if is_align(1) {
            spec.fill = characters.first().copied();
            spec.align = characters.get(1).copied();
            at = 2;
        } else if is_align(0) {
            spec.align = characters.first().copied();
            at = 1;
        }
        if let Some(sign @ ('+' | '-' | ' ')) = characters.get(at) {
            spec.sign = Some(*sign);
            at += 1;
        }
        if characters.get(at) == Some(&'#') {
            spec.alternate = true;
            at += 1;
        }
        if characters.get(at) == Some(&'0') {
            spec.zero = true;
            at += 1;
        }
        spec.width = size(&characters, &mut at, limit)?.unwrap_or(0);
        if let Some(grouping @ (',' | '_')) = characters.get(at) {
            spec.grouping = Some(*grouping);
            at += 1;
        }
        if characters.get(at) == Some(&'.') {
            at += 1;
            let precision = size(&characters, &mut at, limit)?;
            spec.precision = Some(precision.ok_or_else(|| invalid("a format has a point and no precision"))?);
        }
        spec.letter = characters.get(at).copied();
        let grouped = match (spec.grouping, spec.letter) {
            (None, _) | (Some(_), None | Some('d' | 'e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')) => true,
            (Some(separator), Some('b' | 'o' | 'x' | 'X')) => separator == '_',
            _ => false,
        };
        if !grouped {
            return Err(invalid(format!("the format `{text}` cannot group digits")));
        }
        if characters.len() > at + 1 {
            return Err(invalid(format!("`{text}` is not a format")));
        }
        Ok(spec)
    }

    pub fn pad(&self, text: &str, default_align: char) -> String {
        let missing = self.width.saturating_sub(text.chars().count());
        let fill = self.fill.unwrap_or(if self.zero { '0' } else { ' ' });
        let (left, right) = match self.align.unwrap_or(default_align) {
            '<' => (0, missing),
            '^' => (missing / 2, missing - missing / 2),
            _ => (missing, 0),
        };
        let mut out = String::new();
        out.extend(std::iter::repeat_n(fill, left));
        out.push_str(text);
        out.extend(std::iter::repeat_n(fill, right));
        out
    }

    /// Puts sign, prefix and digits together; zeros go between sign and digits.
    pub fn pad_number(&self, negative: bool, prefix: &str, digits: &str) -> String {
        let sign = match (negative, self.sign) {
            (true, _) => "-",
            (false, Some('+')) => "+",
            (false, Some(' ')) => " ",
            (false, _) => "",
        };
        let inner = self.align == Some('=') || (self.align.is_none() && self.zero);
        let fill = self.fill.unwrap_or(if self.zero { '0' } else { ' ' });
        let whole = digits.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let hexadecimal = matches!(self.letter, Some('b' | 'o' | 'x' | 'X'));
        // The exponent of a float is not part of what is grouped, and its `e` is no digit.
        let whole = if hexadecimal { whole } else { digits.bytes().take_while(u8::is_ascii_digit).count() };
        let (mut head, tail) = (digits[..whole].to_owned(), &digits[whole..]);
        if let Some(separator) = self.grouping {
            let group = if hexadecimal { 4 } else { 3 };
            let taken = sign.len() + prefix.len() + tail.len();
            if inner && fill == '0' && whole > 0 {
                let mut count = head.len();
                while taken + count + (count - 1) / group < self.width {
                    count += 1;
                }
                head = format!("{}{head}", "0".repeat(count - head.len()));
            }
            head = grouped(&head, separator, group);
        }
        let body = format!("{head}{tail}");
        if !inner {
            return self.pad(&format!("{sign}{prefix}{body}"), '>');
        }
        let mut out = String::new();
        out.push_str(sign);
        out.push_str(prefix);
        let taken = sign.len() + prefix.len() + body.len();
        out.extend(std::iter::repeat_n(fill, self.width.saturating_sub(taken)));
        out.push_str(&body);
        out
    }
}

/// Reads a number that says how large something is to be.
pub(super) fn size(characters: &[char], at: &mut usize, limit: usize) -> Result<Option<usize>> {
    let mut number: Option<usize> = None;
    while let Some(digit) = characters.get(*at).and_then(|character| character.to_digit(10)) {
        number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit as usize));
        *at += 1;
    }
    check_size(number.unwrap_or(0), limit)?;
    Ok(number)
}

fn grouped(digits: &str, separator: char, group: usize) -> String {
    let mut out = String::with_capacity(digits.len() + digits.len() / group);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(group) {
            out.push(separator);
        }
        out.push(digit);
    }
    out
}

fn fixed(number: f64, precision: usize) -> String {
    let native = precision.min(FLOAT_DIGITS);
    format!("{number:.native$}{}", "0".repeat(precision - native))
}

fn exponential(number: f64, precision: usize) -> (String, i32) {
    let native = precision.min(FLOAT_DIGITS);
    let text = format!("{number:.native$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    (format!("{mantissa}{}", "0".repeat(precision - native)), exponent.parse().unwrap_or(0))
}

fn general(number: f64, precision: usize, alternate: bool) -> String {
    let precision = precision.max(1);
    let (mantissa, exponent) = exponential(number, precision - 1);
    let strip = |digits: String| {
        if alternate || !digits.contains('.') {
            digits
        } else {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        }
    };
    if exponent >= -4 && i64::from(exponent) < precision as i64 {
        let places = (precision as i64 - 1 - i64::from(exponent)) as usize;
        strip(fixed(number, places))
    } else {
        format!("{}e{}", strip(mantissa), signed_exponent(&exponent.to_string()))
    }
}

/// The digits of a float without its sign.
pub(super) fn float_digits(number: f64, spec: &Spec) -> Result<String> {
    let letter = spec.letter;
    let upper = letter.is_some_and(|letter| letter.is_ascii_uppercase());
    let number = number.abs();
    let text = if number.is_finite() {
        let precision = spec.precision.unwrap_or(6);
        match letter.map(|letter| letter.to_ascii_lowercase()) {
            // With `#` there is always a point.
            Some('f') if spec.alternate && precision == 0 => format!("{}.", fixed(number, 0)),
            Some('f') => fixed(number, precision),
            Some('%') => format!("{}%", fixed(number * 100.0, precision)),
            Some('e') => {
                let (mantissa, exponent) = exponential(number, precision);
                let point = if spec.alternate && precision == 0 { "." } else { "" };
                format!("{mantissa}{point}e{}", signed_exponent(&exponent.to_string()))
            }
            Some('g' | 'n') => general(number, precision, spec.alternate),
            None => match spec.precision {
                None => float_repr(number),
                Some(precision) => {
                    let text = general(number, precision, spec.alternate);
                    if text.contains(['.', 'e']) { text } else { format!("{text}.0") }
                }
            },
            Some(other) => return Err(invalid(format!("unknown format `{other}` of a float"))),
        }
    } else {
        let percent = if letter == Some('%') { "%" } else { "" };
        format!("{}{percent}", float_repr(number))
    };
    Ok(if upper { text.to_uppercase() } else { text })
}

pub(super) fn integer_digits(number: u128, spec: &Spec) -> Result<(&'static str, String)> {
    let alternate = |prefix: &'static str| if spec.alternate { prefix } else { "" };
    Ok(match spec.letter {
        None | Some('d' | 'n') => ("", number.to_string()),
        Some('b') => (alternate("0b"), format!("{number:b}")),
        Some('o') => (alternate("0o"), format!("{number:o}")),
        Some('x') => (alternate("0x"), format!("{number:x}")),
        Some('X') => (alternate("0X"), format!("{number:X}")),
        Some(other) => return Err(invalid(format!("unknown format `{other}` of an integer"))),
    })
}

pub(super) fn character_of(code: i128) -> Result<String> {
    let character = u32::try_from(code).ok().and_then(char::from_u32);
    character.map(String::from).ok_or_else(|| invalid(format!("{code} is not the number of a character")))
}

pub(super) fn check_size(size: usize, limit: usize) -> Result<()> {
    if size > limit {
        return Err(Error::limit(Exceeded::Size, format!("a string would be longer than {limit} bytes")));
    }
    Ok(())
}
