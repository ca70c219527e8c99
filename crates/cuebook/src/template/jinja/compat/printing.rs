//! Values as Python prints them: `str()` at the top, `repr()` inside containers. In the portable style they print as
//! [`super::portable`] says.

use minijinja::value::{Tuple, ValueKind};
use minijinja::{AutoEscape, Error, ErrorKind, Output, State, UndefinedBehavior, Value, escape_formatter};

use super::call::string_of;
use super::filters::GroupPair;
use super::globals::{Callee, DictView, Range};
use super::limits::{SMALL, Text, ValueLimits, charge, check_depth};
use super::portable;
use crate::template::jinja::guests;
use crate::variables::Entries;

/// Writes a value into the output as Jinja2 does.
pub(super) fn format_value(
    limits: ValueLimits,
    out: &mut Output<'_>,
    state: &mut State<'_, '_>,
    value: &Value,
) -> Result<(), Error> {
    // Nearly everything that is printed is a short string, and nothing is left to do for it.
    if value.kind() == ValueKind::String
        && let (Some(text), AutoEscape::None) = (value.as_str(), state.auto_escape())
        && text.len() < SMALL
    {
        return out.write_str(text).map_err(Error::from);
    }
    // Written from where it lies: by that it is known whose it is.
    if let Some(text) = guests::text_of(value) {
        charge(state, limits, text.len())?;
        return out.write_str(text).map_err(Error::from);
    }
    if value.downcast_object_ref::<Callee>().is_some()
        && state.undefined_behavior() != UndefinedBehavior::Lenient
        && state.undefined_behavior() != UndefinedBehavior::Chainable
    {
        return Err(Error::from(ErrorKind::UndefinedError));
    }
    let html = match state.auto_escape() {
        AutoEscape::None => false,
        AutoEscape::Html => true,
        _ => return escape_formatter(out, state, value),
    };
    // What is printed into a captured block is kept in memory, and the output's own limit does not see it.
    match string_of(value) {
        Some(text) if !html || value.is_safe() => {
            charge(state, limits, text.len())?;
            out.write_str(text)?;
        }
        Some(text) => {
            let text = escape_html(text, limits)?;
            charge(state, limits, text.len())?;
            out.write_str(&text)?;
        }
        // Counters are frequent, and need no text of their own.
        None if value.kind() == ValueKind::Number && value.is_integer() => write!(out, "{value}")?,
        None => {
            let mut text = Text::new(limits);
            write_str(&mut text, value)?;
            let text = text.into_string();
            charge(state, limits, text.len())?;
            if html { out.write_str(&escape_html(&text, limits)?)? } else { out.write_str(&text)? }
        }
    }
    Ok(())
}

/// What Python's `str()` gives, or the portable style's print.
pub(crate) fn to_str(value: &Value, limits: ValueLimits) -> Result<String, Error> {
    let mut text = Text::new(limits);
    write_str(&mut text, value)?;
    Ok(text.into_string())
}

/// What Python's `repr()` gives.
pub(super) fn to_repr(value: &Value, limits: ValueLimits) -> Result<String, Error> {
    let mut text = Text::new(limits);
    write_repr(&mut text, value, 0)?;
    Ok(text.into_string())
}

pub(super) fn write_str(out: &mut Text, value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::Undefined => Ok(()),
        _ => match string_of(value) {
            Some(text) => out.push_str(text),
            None if out.style().is_portable() => portable::write_text(out, value, 0),
            None => write_repr(out, value, 0),
        },
    }
}

pub(super) fn write_repr(out: &mut Text, value: &Value, depth: usize) -> Result<(), Error> {
    check_depth(depth)?;
    match value.kind() {
        ValueKind::Undefined => out.push_str("Undefined"),
        ValueKind::None => out.push_str("None"),
        ValueKind::Bool => out.push_str(if value.is_true() { "True" } else { "False" }),
        ValueKind::Number => match float(value) {
            Some(number) => out.push_str(&float_repr(number)),
            None => out.push_str(&value.to_string()),
        },
        ValueKind::String => {
            // A string is always there when the kind says so.
            let text = value.as_str().unwrap_or_default();
            if value.is_safe() {
                out.push_str("Markup(")?;
                write_quoted(out, text)?;
                out.push(')')
            } else {
                write_quoted(out, text)
            }
        }
        ValueKind::Bytes => write_bytes(out, value.as_bytes().unwrap_or_default()),
        ValueKind::Map => write_map(out, value, depth),
        ValueKind::Seq | ValueKind::Iterable => write_items(out, value, depth),
        ValueKind::Invalid => Err(Error::new(ErrorKind::InvalidOperation, value.to_string())),
        _ => out.push_str(&value.to_string()),
    }
}

fn write_items(out: &mut Text, value: &Value, depth: usize) -> Result<(), Error> {
    if let Some(range) = value.downcast_object_ref::<Range>() {
        return out.push_str(&range.to_string());
    }
    let view = value.downcast_object_ref::<DictView>();
    let tuple =
        value.downcast_object_ref::<Tuple>().is_some() || value.downcast_object_ref::<GroupPair>().is_some();
    let (open, close) = match view {
        Some(view) => (format!("{}([", view.name()), "])"),
        None if tuple => ("(".to_owned(), ")"),
        None => ("[".to_owned(), "]"),
    };
    out.push_str(&open)?;
    let mut count = 0;
    for item in value.try_iter()?.checked() {
        if count > 0 {
            out.push_str(", ")?;
        }
        write_repr(out, &item?, depth + 1)?;
        count += 1;
    }
    if tuple && count == 1 {
        out.push(',')?;
    }
    out.push_str(close)
}

fn write_map(out: &mut Text, value: &Value, depth: usize) -> Result<(), Error> {
    if is_macro(value) {
        out.push_str("<Macro ")?;
        write_repr(out, &value.get_attr("name")?, depth + 1)?;
        return out.push('>');
    }
    let namespace = is_namespace(value);
    out.push_str(if namespace { "<Namespace {" } else { "{" })?;
    // A map is always an object.
    let pairs = value.as_object().and_then(|object| object.try_iter_pairs());
    for (index, (key, item)) in pairs.into_iter().flatten().enumerate() {
        if index > 0 {
            out.push_str(", ")?;
        }
        write_repr(out, &key, depth + 1)?;
        out.push_str(": ")?;
        write_repr(out, &item, depth + 1)?;
    }
    out.push_str(if namespace { "}>" } else { "}" })
}

/// Whether a value is what `namespace()` gives. The engine keeps that type to itself, so only its name tells.
pub(super) fn is_namespace(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Namespace"))
}

/// Whether a value is plain names and values: a map of the engine's own, whose type only its name tells, or one of ours.
pub(super) fn is_dict(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().contains("Map<") || object.is::<Entries>())
}

/// Whether a value is a macro; again only the name of its type tells.
pub(super) fn is_macro(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.type_name().ends_with("::Macro"))
}

/// The number of a value that Python would hold as a float.
pub(super) fn float(value: &Value) -> Option<f64> {
    if value.kind() != ValueKind::Number || value.is_integer() {
        return None;
    }
    f64::try_from(value.clone()).ok()
}

/// A float as Python's `repr()` writes it: the fewest digits that give the same number, an exponent from 1e16 on and
/// below 1e-4.
pub(crate) fn float_repr(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { "inf" } else { "-inf" }.to_owned();
    }
    // Rust's debug form changes to an exponent at the same points, and differs only in how the exponent is written.
    let text = format!("{number:?}");
    match text.split_once('e') {
        Some((mantissa, exponent)) => format!("{mantissa}e{}", signed_exponent(exponent)),
        None => text,
    }
}

/// `5` as `+05`, `-7` as `-07`.
pub(super) fn signed_exponent(exponent: &str) -> String {
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ('-', digits),
        None => ('+', exponent),
    };
    format!("{sign}{digits:0>2}")
}

fn write_quoted(out: &mut Text, text: &str) -> Result<(), Error> {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    out.push(quote)?;
    let mut plain_from = 0;
    for (at, character) in text.char_indices() {
        if character != quote && character != '\\' && is_printable(character) {
            continue;
        }
        out.push_str(&text[plain_from..at])?;
        plain_from = at + character.len_utf8();
        out.push_str(&escape_character(character))?;
    }
    out.push_str(&text[plain_from..])?;
    out.push(quote)
}

fn write_bytes(out: &mut Text, bytes: &[u8]) -> Result<(), Error> {
    let quote = if bytes.contains(&b'\'') && !bytes.contains(&b'"') { '"' } else { '\'' };
    out.push('b')?;
    out.push(quote)?;
    for byte in bytes {
        let character = char::from(*byte);
        if character != quote && character != '\\' && (' '..='~').contains(&character) {
            out.push(character)?;
        } else {
            out.push_str(&escape_character(character))?;
        }
    }
    out.push(quote)
}

fn escape_character(character: char) -> String {
    match (character, u32::from(character)) {
        ('\n', _) => "\\n".to_owned(),
        ('\r', _) => "\\r".to_owned(),
        ('\t', _) => "\\t".to_owned(),
        ('\\' | '\'' | '"', _) => format!("\\{character}"),
        (_, code @ 0..=0xff) => format!("\\x{code:02x}"),
        (_, code @ 0x100..=0xffff) => format!("\\u{code:04x}"),
        (_, code) => format!("\\U{code:08x}"),
    }
}

/// What Python's `ascii()` gives.
pub(super) fn to_ascii(value: &Value, limits: ValueLimits) -> Result<String, Error> {
    let repr = to_repr(value, limits)?;
    let mut text = Text::new(limits);
    for character in repr.chars() {
        if character.is_ascii() {
            text.push(character)?
        } else {
            text.push_str(&escape_character(character))?
        }
    }
    Ok(text.into_string())
}

/// Whether Python calls a character printable: neither control, format, surrogate, private, unassigned nor a separator
/// other than the space.
pub(super) fn is_printable(character: char) -> bool {
    if character.is_ascii() {
        return !character.is_ascii_control();
    }
    if character.is_alphanumeric() {
        return true;
    }
    // The standard library keeps that table to itself but escapes by it; a letter goes first because a mark that begins
    // a string is escaped for another reason.
    format!("a{character}").escape_debug().nth(1) != Some('\\')
}

/// Text with the characters escaped that mean something in HTML, as MarkupSafe writes them.
pub(super) fn escape_html(text: &str, limits: ValueLimits) -> Result<String, Error> {
    let mut out = Text::new(limits);
    let mut plain_from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let escaped = match byte {
            b'&' => "&amp;",
            b'<' => "&lt;",
            b'>' => "&gt;",
            b'"' => "&#34;",
            b'\'' => "&#39;",
            _ => continue,
        };
        out.push_str(&text[plain_from..at])?;
        out.push_str(escaped)?;
        plain_from = at + 1;
    }
    out.push_str(&text[plain_from..])?;
    Ok(out.into_string())
}
