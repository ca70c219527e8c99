//! Python's two ways to format text: `'%05.1f' % x` and `'{:>5}'.format(x)`.
//!
//! Widths and precisions are numbers that a template chooses, so each is checked before anything of that size is made.

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::call::{integer, invalid, number, string_of, type_name};
use super::limits::{Text, ValueLimits};
use super::printing::{self, float_repr, signed_exponent, to_ascii, to_repr, to_str};

/// No float has more digits behind the point than this, so further ones are zeros.
const FLOAT_DIGITS: usize = 1100;

/// What stands behind the colon of a replacement field, or between `%` and its letter.
#[derive(Debug, Clone, Default)]
struct Spec {
    fill: Option<char>,
    align: Option<char>,
    sign: Option<char>,
    alternate: bool,
    zero: bool,
    width: usize,
    grouping: Option<char>,
    precision: Option<usize>,
    letter: Option<char>,
}

impl Spec {
    /// Reads `[[fill]align][sign][#][0][width][grouping][.precision][letter]`.
    fn parse(text: &str, limits: ValueLimits) -> Result<Spec, Error> {
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
        spec.width = size(&characters, &mut at, limits)?.unwrap_or(0);
        if let Some(grouping @ (',' | '_')) = characters.get(at) {
            spec.grouping = Some(*grouping);
            at += 1;
        }
        if characters.get(at) == Some(&'.') {
            at += 1;
            let precision = size(&characters, &mut at, limits)?;
            spec.precision =
                Some(precision.ok_or_else(|| invalid("a format has a point, but no precision"))?);
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
            return Err(invalid(format!("invalid format `{text}`")));
        }
        Ok(spec)
    }

    fn pad(&self, text: &str, default_align: char, limits: ValueLimits) -> Result<String, Error> {
        let missing = self.width.saturating_sub(text.chars().count());
        let fill = self.fill.unwrap_or(if self.zero { '0' } else { ' ' });
        let (left, right) = match self.align.unwrap_or(default_align) {
            '<' => (0, missing),
            '^' => (missing / 2, missing - missing / 2),
            _ => (missing, 0),
        };
        let mut out = Text::new(limits);
        out.fill(fill, left)?;
        out.push_str(text)?;
        out.fill(fill, right)?;
        Ok(out.into_string())
    }

    /// Puts sign, prefix and digits together; zeros go between sign and digits.
    fn pad_number(
        &self,
        negative: bool,
        prefix: &str,
        digits: &str,
        limits: ValueLimits,
    ) -> Result<String, Error> {
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
            return self.pad(&format!("{sign}{prefix}{body}"), '>', limits);
        }
        let mut out = Text::new(limits);
        out.push_str(sign)?;
        out.push_str(prefix)?;
        let taken = sign.len() + prefix.len() + body.len();
        out.fill(fill, self.width.saturating_sub(taken))?;
        out.push_str(&body)?;
        Ok(out.into_string())
    }
}

/// Reads a number that says how large something is to be.
fn size(characters: &[char], at: &mut usize, limits: ValueLimits) -> Result<Option<usize>, Error> {
    let mut number: Option<usize> = None;
    while let Some(digit) = characters.get(*at).and_then(|character| character.to_digit(10)) {
        number = Some(number.unwrap_or(0).saturating_mul(10).saturating_add(digit as usize));
        *at += 1;
    }
    limits.check_bytes(number.unwrap_or(0))?;
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
fn float_digits(number: f64, spec: &Spec) -> Result<String, Error> {
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

fn integer_digits(number: u128, spec: &Spec) -> Result<(&'static str, String), Error> {
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

fn character_of(code: i128) -> Result<String, Error> {
    let character = u32::try_from(code).ok().and_then(char::from_u32);
    character.map(String::from).ok_or_else(|| invalid(format!("{code} is not a character code")))
}

/// What Python's `format(value, spec)` gives.
fn format_field(value: &Value, spec: &str, limits: ValueLimits) -> Result<String, Error> {
    if spec.is_empty() {
        return to_str(value, limits);
    }
    let spec = Spec::parse(spec, limits)?;
    if let Some(text) = string_of(value) {
        if !matches!(spec.letter, None | Some('s')) || spec.sign.is_some() || spec.align == Some('=') {
            return Err(invalid("a string cannot use a number format"));
        }
        let cut: String = text.chars().take(spec.precision.unwrap_or(usize::MAX)).collect();
        return spec.pad(&cut, '<', limits);
    }
    if let Some(number) = integer(value) {
        if spec.letter == Some('c') {
            if spec.precision.is_some() || spec.sign.is_some() {
                return Err(invalid("a character format has neither sign nor precision"));
            }
            return spec.pad(&character_of(number)?, '<', limits);
        }
        if !matches!(spec.letter, Some('e' | 'E' | 'f' | 'F' | 'g' | 'G' | '%')) {
            if spec.precision.is_some() {
                return Err(invalid("an integer format has no precision"));
            }
            let (prefix, digits) = integer_digits(number.unsigned_abs(), &spec)?;
            return spec.pad_number(number < 0, prefix, &digits, limits);
        }
    }
    if let Some(number) = number(value) {
        return spec.pad_number(
            number.is_sign_negative() && !number.is_nan(),
            "",
            &float_digits(number, &spec)?,
            limits,
        );
    }
    Err(invalid(format!("{} cannot be formatted", type_name(value))))
}

/// `str.format`: text with replacement fields in braces.
pub(super) struct Fields<'f> {
    pub(super) positional: &'f [Value],
    pub(super) named: &'f dyn Fn(&str) -> Result<Value, Error>,
    pub(super) limits: ValueLimits,
    /// Whether what is filled in must be escaped for HTML, because the text around it is safe.
    pub(super) escape: bool,
}

impl Fields<'_> {
    pub(super) fn format(&self, template: &str) -> Result<String, Error> {
        self.format_at(template, &mut Numbering::Unknown, 2)
    }

    fn format_at(&self, template: &str, numbering: &mut Numbering, depth: usize) -> Result<String, Error> {
        if depth == 0 {
            return Err(invalid("replacement fields are nested too deeply"));
        }
        let mut out = Text::new(self.limits);
        let mut rest = template;
        while let Some(at) = rest.find(['{', '}']) {
            out.push_str(&rest[..at])?;
            let brace = &rest[at..at + 1];
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix(brace) {
                out.push_str(brace)?;
                rest = after;
                continue;
            }
            if brace == "}" {
                return Err(invalid("a format has an unpaired `}`"));
            }
            let end = field_end(rest)?;
            let field = &rest[..end];
            rest = &rest[end + 1..];
            out.push_str(&self.field(field, numbering, depth)?)?;
        }
        out.push_str(rest)?;
        Ok(out.into_string())
    }

    fn field(&self, field: &str, numbering: &mut Numbering, depth: usize) -> Result<String, Error> {
        let split = field.char_indices().scan(0usize, |brackets, (at, character)| {
            match character {
                '[' => *brackets += 1,
                ']' => *brackets = brackets.saturating_sub(1),
                _ => {}
            }
            Some((at, character, *brackets))
        });
        let mut name_end = field.len();
        for (at, character, brackets) in split {
            if brackets == 0 && matches!(character, ':' | '!') {
                name_end = at;
                break;
            }
        }
        let (name, after) = field.split_at(name_end);
        let (conversion, spec) = match after.strip_prefix('!') {
            Some(after) => {
                let mut characters = after.chars();
                let conversion = characters.next();
                let tail = characters.as_str();
                let spec = tail.strip_prefix(':').or_else(|| tail.is_empty().then_some(""));
                (conversion, spec.ok_or_else(|| invalid("a format needs `:` after a conversion"))?)
            }
            None => (None, after.strip_prefix(':').unwrap_or("")),
        };
        let value = self.lookup(name, numbering)?;
        let value = match conversion {
            None => value,
            Some('s') => Value::from(to_str(&value, self.limits)?),
            Some('r') => Value::from(to_repr(&value, self.limits)?),
            Some('a') => Value::from(to_ascii(&value, self.limits)?),
            Some(other) => return Err(invalid(format!("unknown conversion `{other}` in a format"))),
        };
        let spec = if spec.contains(['{', '}']) {
            self.format_at(spec, numbering, depth - 1)?
        } else {
            spec.to_owned()
        };
        let text = format_field(&value, &spec, self.limits)?;
        if self.escape && !value.is_safe() { printing::escape_html(&text, self.limits) } else { Ok(text) }
    }

    fn lookup(&self, name: &str, numbering: &mut Numbering) -> Result<Value, Error> {
        let first_end = name.find(['.', '[']).unwrap_or(name.len());
        let (first, mut rest) = name.split_at(first_end);
        let index = if first.is_empty() { Some(numbering.next()?) } else { first.parse::<usize>().ok() };
        if !first.is_empty() && index.is_some() {
            numbering.given()?;
        }
        let mut value = match index {
            Some(index) => {
                let found = self.positional.get(index).cloned();
                found.ok_or_else(|| invalid(format!("argument {index} of a format is missing")))?
            }
            None => (self.named)(first)?,
        };
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix('.') {
                let end = after.find(['.', '[']).unwrap_or(after.len());
                if end == 0 {
                    return Err(invalid("a format has a point without a name"));
                }
                // The sandbox hides what begins with a line.
                value =
                    if after.starts_with('_') { Value::UNDEFINED } else { value.get_attr(&after[..end])? };
                rest = &after[end..];
            } else {
                let after = rest.strip_prefix('[').unwrap_or(rest);
                let end = after.find(']').ok_or_else(|| invalid("a format has an unclosed `[`"))?;
                let key = &after[..end];
                value = match key.parse::<usize>() {
                    Ok(index) => value.get_item_by_index(index)?,
                    Err(_) => value.get_item(&Value::from(key))?,
                };
                rest = &after[end + 1..];
            }
        }
        Ok(value)
    }
}

/// Whether fields name their arguments by number or leave the numbers out; they may not mix.
enum Numbering {
    Unknown,
    Automatic(usize),
    Manual,
}

impl Numbering {
    fn next(&mut self) -> Result<usize, Error> {
        let next = match self {
            Numbering::Unknown => 0,
            Numbering::Automatic(next) => *next,
            Numbering::Manual => return Err(invalid("a format mixes `{}` with numbered fields")),
        };
        *self = Numbering::Automatic(next + 1);
        Ok(next)
    }

    fn given(&mut self) -> Result<(), Error> {
        if matches!(self, Numbering::Automatic(_)) {
            return Err(invalid("a format mixes `{}` with numbered fields"));
        }
        *self = Numbering::Manual;
        Ok(())
    }
}

fn field_end(rest: &str) -> Result<usize, Error> {
    let mut open = 1usize;
    for (at, character) in rest.char_indices() {
        match character {
            '{' => open += 1,
            '}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Ok(at);
        }
    }
    Err(invalid("a format has an unpaired `{`"))
}

/// The right side of `%`.
pub(super) enum Operands<'o> {
    /// Values in the order in which they are asked for.
    Tuple(&'o [Value]),
    /// Values by name.
    Mapping(&'o Value),
}

/// What Python's `template % operands` gives. Where the template is safe, what is filled in is escaped.
pub(super) fn percent(
    template: &str,
    operands: &Operands<'_>,
    escape: bool,
    limits: ValueLimits,
) -> Result<String, Error> {
    let mut out = Text::new(limits);
    let mut taken = 0;
    let mut rest = template;
    while let Some(at) = rest.find('%') {
        out.push_str(&rest[..at])?;
        let characters: Vec<char> = rest[at + 1..].chars().take(256).collect();
        let mut position = 0;
        let mut named = None;
        if characters.first() == Some(&'(') {
            let end = characters.iter().position(|character| *character == ')');
            let end = end.ok_or_else(|| invalid("a format has `%(` without `)`"))?;
            named = Some(characters[1..end].iter().collect::<String>());
            position = end + 1;
        }
        let mut spec = Spec { sign: Some('-'), ..Spec::default() };
        loop {
            match characters.get(position) {
                Some('-') => spec.align = Some('<'),
                Some('+') => spec.sign = Some('+'),
                Some(' ') if spec.sign != Some('+') => spec.sign = Some(' '),
                Some(' ') => {}
                Some('#') => spec.alternate = true,
                Some('0') => spec.zero = true,
                _ => break,
            }
            position += 1;
        }
        if spec.align == Some('<') {
            spec.zero = false;
        }
        let mut next = |named: Option<&str>| match (operands, named) {
            (Operands::Mapping(mapping), Some(name)) => {
                let value = mapping.get_item(&Value::from(name))?;
                if value.is_undefined() {
                    Err(invalid(format!("argument `{name}` of a format is missing")))
                } else {
                    Ok(value)
                }
            }
            (Operands::Tuple(_), Some(_)) => Err(invalid("a format with names needs named arguments")),
            (Operands::Mapping(mapping), None) => {
                taken += 1;
                if taken == 1 {
                    Ok((*mapping).clone())
                } else {
                    Err(invalid("a format has too few arguments"))
                }
            }
            (Operands::Tuple(values), None) => {
                taken += 1;
                values.get(taken - 1).cloned().ok_or_else(|| invalid("a format has too few arguments"))
            }
        };
        let mut star = |spec: &mut Spec, position: &mut usize| -> Result<Option<usize>, Error> {
            if characters.get(*position) != Some(&'*') {
                return size(&characters, position, limits);
            }
            *position += 1;
            let wanted = integer(&next(None)?).ok_or_else(|| invalid("`*` in a format needs an integer"))?;
            if wanted < 0 {
                spec.align = Some('<');
            }
            let wanted = usize::try_from(wanted.unsigned_abs()).unwrap_or(usize::MAX);
            limits.check_bytes(wanted)?;
            Ok(Some(wanted))
        };
        spec.width = star(&mut spec, &mut position)?.unwrap_or(0);
        if characters.get(position) == Some(&'.') {
            position += 1;
            spec.precision = Some(star(&mut spec, &mut position)?.unwrap_or(0));
        }
        while matches!(characters.get(position), Some('h' | 'l' | 'L')) {
            position += 1;
        }
        let letter = *characters.get(position).ok_or_else(|| invalid("a format ends inside a field"))?;
        let read: usize = characters[..=position].iter().map(|character| character.len_utf8()).sum();
        rest = &rest[at + 1 + read..];
        if letter == '%' {
            out.push('%')?;
            continue;
        }
        let value = next(named.as_deref())?;
        out.push_str(&percent_field(&value, letter, spec, escape, limits)?)?;
    }
    out.push_str(rest)?;
    match operands {
        Operands::Tuple(values) if taken < values.len() => Err(invalid("a format has too many arguments")),
        _ => Ok(out.into_string()),
    }
}

fn percent_field(
    value: &Value,
    letter: char,
    mut spec: Spec,
    escape: bool,
    limits: ValueLimits,
) -> Result<String, Error> {
    let text = match letter {
        's' => to_str(value, limits)?,
        'r' => to_repr(value, limits)?,
        'a' => to_ascii(value, limits)?,
        'c' => match (integer(value), string_of(value)) {
            (Some(code), _) => character_of(code)?,
            (None, Some(text)) if text.chars().count() == 1 => text.to_owned(),
            _ => return Err(invalid("`%c` needs a character or its code")),
        },
        'd' | 'i' | 'u' | 'x' | 'X' | 'o' => {
            let whole = match (integer(value), printing::float(value)) {
                (Some(whole), _) => whole,
                (None, Some(number)) if matches!(letter, 'd' | 'i' | 'u') && number.is_finite() => {
                    number.trunc() as i128
                }
                _ => return Err(invalid(format!("`%{letter}` needs a number, not {}", type_name(value)))),
            };
            spec.letter = Some(if matches!(letter, 'i' | 'u') { 'd' } else { letter });
            let (prefix, mut digits) = integer_digits(whole.unsigned_abs(), &spec)?;
            if let Some(precision) = spec.precision {
                digits = format!("{}{digits}", "0".repeat(precision.saturating_sub(digits.len())));
            }
            return spec.pad_number(whole < 0, prefix, &digits, limits);
        }
        'e' | 'E' | 'f' | 'F' | 'g' | 'G' => {
            let number = number(value);
            let number = number
                .ok_or_else(|| invalid(format!("`%{letter}` needs a number, not {}", type_name(value))))?;
            spec.letter = Some(letter);
            return spec.pad_number(
                number.is_sign_negative() && !number.is_nan(),
                "",
                &float_digits(number, &spec)?,
                limits,
            );
        }
        other => return Err(invalid(format!("unknown letter `{other}` in a format"))),
    };
    let text = if escape && value.kind() != ValueKind::Number && !value.is_safe() {
        printing::escape_html(&text, limits)?
    } else {
        text
    };
    let cut: String = text.chars().take(spec.precision.unwrap_or(usize::MAX)).collect();
    spec.zero = false;
    spec.pad(&cut, '>', limits)
}
