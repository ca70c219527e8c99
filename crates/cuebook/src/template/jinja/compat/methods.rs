//! The methods of Python's strings, lists, dicts and numbers.

use std::collections::HashSet;

use minijinja::value::{Tuple, ValueKind};
use minijinja::{Error, ErrorKind, State, Value};

use super::call::{self, Call, as_safe_as, hashed, integer, invalid, items_of, string_of, type_name};
use super::formatting::Fields;
use super::globals::DictView;
use super::limits::{Text, ValueLimits};
use super::ordering::equal;
use super::printing::{escape_html, float, is_dict, is_printable};
use super::text;
use crate::template::meter;

/// Methods that change a value in place, which nothing can do here.
const MUTATORS: &[&str] = &[
    "append",
    "clear",
    "extend",
    "insert",
    "pop",
    "popitem",
    "remove",
    "reverse",
    "setdefault",
    "sort",
    "update",
];

/// Calls a method that a value does not have by itself.
pub(super) fn call(
    limits: ValueLimits,
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    given: &[Value],
) -> Result<Value, Error> {
    call::touch(std::slice::from_ref(value))?;
    match value.kind() {
        ValueKind::String => string(limits, state, value, method, given),
        ValueKind::Map => dict(limits, state, value, method, given),
        ValueKind::Seq | ValueKind::Iterable => list(limits, state, value, method, given),
        ValueKind::Number | ValueKind::Bool => numeric(limits, state, value, method, given),
        ValueKind::Bytes if method == "decode" => {
            let text = String::from_utf8(value.as_bytes().unwrap_or_default().to_vec());
            text.map(Value::from).map_err(|_| invalid("the bytes are not UTF-8"))
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn immutable(value: &Value, method: &str) -> Error {
    let instead = match (value.kind(), method) {
        (ValueKind::Map, _) => "make a new one with `{% set d = dict(d, key=value) %}`",
        (_, "sort") => "use the filter `|sort`",
        (_, "reverse") => "use the filter `|reverse`",
        _ => "make a new one with `{% set xs = xs + [x] %}`",
    };
    invalid(format!(
        "`{method}` cannot change {}, because values are immutable: {instead}; to keep it after a \
             loop, use a namespace, `{{% set ns.xs = ns.xs + [x] %}}`",
        type_name(value)
    ))
}

fn dict(
    limits: ValueLimits,
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    given: &[Value],
) -> Result<Value, Error> {
    let Some(object) = value.as_object() else { return Err(Error::from(ErrorKind::UnknownMethod)) };
    // What an object of another kind has under that name is its own.
    if !is_dict(value) && object.get_value_by_str(method).is_some() {
        return Err(Error::from(ErrorKind::UnknownMethod));
    }
    if ["items", "keys", "values"].contains(&method) {
        meter::items(value.len().unwrap_or(0))?;
    }
    let pairs = || object.try_iter_pairs().into_iter().flatten();
    let none = |state| Call::bind(state, limits, method, &[], given).map(|_| ());
    match method {
        "items" => {
            none(state)?;
            let items = pairs().map(|(key, value)| Value::from(Tuple::from([key, value])));
            Ok(DictView::value("dict_items", items.collect()))
        }
        "keys" => {
            none(state)?;
            Ok(DictView::value("dict_keys", pairs().map(|(key, _)| key).collect()))
        }
        "values" => {
            none(state)?;
            Ok(DictView::value("dict_values", pairs().map(|(_, value)| value).collect()))
        }
        "copy" => {
            none(state)?;
            Ok(value.clone())
        }
        "get" => {
            let call = Call::bind(state, limits, method, &["key", "default"], given)?;
            hashed(call.value(0)?)?;
            let found = object.get_value(call.value(0)?);
            Ok(found.or_else(|| call.given(1).cloned()).unwrap_or_else(|| Value::from(())))
        }
        _ if MUTATORS.contains(&method) && object.get_value_by_str(method).is_none() => {
            Err(immutable(value, method))
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn list(
    limits: ValueLimits,
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    given: &[Value],
) -> Result<Value, Error> {
    match method {
        "count" => {
            let items = items_of(state, limits, value)?;
            let call = Call::bind(state, limits, method, &["value"], given)?;
            let wanted = call.value(0)?;
            let mut count = 0;
            for item in &items {
                count += usize::from(equal(item, wanted)?);
            }
            Ok(Value::from(count))
        }
        "index" => {
            let items = items_of(state, limits, value)?;
            let call = Call::bind(state, limits, method, &["value", "start", "stop"], given)?;
            let wanted = call.value(0)?;
            let (start, stop) = bounds(&call, 1, items.len())?;
            let mut found = None;
            for (index, item) in items.iter().enumerate().take(stop).skip(start) {
                if equal(item, wanted)? {
                    found = Some(index);
                    break;
                }
            }
            found
                .map(Value::from)
                .ok_or_else(|| invalid(format!("{} does not contain the value", type_name(value))))
        }
        "copy" if !value.is_tuple() => {
            Call::bind(state, limits, method, &[], given)?;
            Ok(value.clone())
        }
        _ if MUTATORS.contains(&method) && !value.is_tuple() => Err(immutable(value, method)),
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

/// `start` and `stop` as Python reads them: absent, `none`, or counted from the end.
fn bounds(call: &Call<'_, '_, '_>, first: usize, length: usize) -> Result<(usize, usize), Error> {
    let place = |index: usize, default: usize| -> Result<usize, Error> {
        if call.some(index).is_none() {
            return Ok(default);
        }
        let place = i128::from(call.integer(index)?);
        let place = if place < 0 { place + length as i128 } else { place };
        Ok(usize::try_from(place.max(0)).unwrap_or(usize::MAX).min(length))
    };
    let (start, stop) = (place(first, 0)?, place(first + 1, length)?);
    Ok((start, stop.max(start)))
}

fn numeric(
    limits: ValueLimits,
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    given: &[Value],
) -> Result<Value, Error> {
    let unknown = || Error::from(ErrorKind::UnknownMethod);
    Call::bind(state, limits, method, &[], given)?;
    if let Some(number) = float(value) {
        return match method {
            "is_integer" => Ok(Value::from(number.is_finite() && number.fract() == 0.0)),
            "conjugate" => Ok(value.clone()),
            _ => Err(unknown()),
        };
    }
    let number = integer(value).ok_or_else(unknown)?;
    match method {
        "bit_length" => Ok(Value::from(128 - number.unsigned_abs().leading_zeros())),
        "bit_count" => Ok(Value::from(number.unsigned_abs().count_ones())),
        "conjugate" => Ok(value.clone()),
        "as_integer_ratio" => Ok(Value::from(Tuple::from([value.clone(), Value::from(1)]))),
        _ => Err(unknown()),
    }
}

/// The parameters of the string methods, by the names that Python lets them be given by.
fn parameters(method: &str) -> Option<&'static [&'static str]> {
    Some(match method {
        "capitalize" | "casefold" | "isalnum" | "isalpha" | "isascii" | "isdecimal" | "isdigit"
        | "isidentifier" | "islower" | "isnumeric" | "isprintable" | "isspace" | "istitle" | "isupper"
        | "lower" | "swapcase" | "title" | "upper" => &[],
        "center" | "ljust" | "rjust" => &["width", "fillchar"],
        "count" | "find" | "index" | "rfind" | "rindex" => &["sub", "start", "end"],
        "encode" => &["encoding", "errors"],
        "endswith" | "startswith" => &["affix", "start", "end"],
        "expandtabs" => &["tabsize"],
        "format_map" => &["mapping"],
        "join" => &["iterable"],
        "lstrip" | "rstrip" | "strip" => &["chars"],
        "partition" | "rpartition" => &["sep"],
        "removeprefix" => &["prefix"],
        "removesuffix" => &["suffix"],
        "replace" => &["old", "new", "count"],
        "rsplit" | "split" => &["sep", "maxsplit"],
        "splitlines" => &["keepends"],
        "zfill" => &["width"],
        _ => return None,
    })
}

fn string(
    limits: ValueLimits,
    state: &mut State<'_, '_>,
    value: &Value,
    method: &str,
    given: &[Value],
) -> Result<Value, Error> {
    let text = string_of(value).unwrap_or_default();
    if method == "format" {
        return format(limits, value, text, given);
    }
    let Some(parameters) = parameters(method) else { return Err(Error::from(ErrorKind::UnknownMethod)) };
    let call = Call::bind(state, limits, method, parameters, given)?;
    // What is made of a safe text alone is safe.
    let made = |text: String| Ok(as_safe_as(value, text));
    let flag = |truth: bool| Ok(Value::from(truth));
    match method {
        "capitalize" => made(text::capitalize(text)),
        "casefold" => made(fold_case(text)),
        "lower" => made(text.to_lowercase()),
        "upper" => made(text.to_uppercase()),
        "swapcase" => made(swap_case(text)),
        "title" => made(title(text)),
        "isalnum" => flag(all(text, char::is_alphanumeric)),
        "isalpha" => flag(all(text, char::is_alphabetic)),
        "isascii" => flag(text.is_ascii()),
        "isdecimal" => flag(all(text, is_decimal)),
        "isdigit" => flag(all(text, is_digit)),
        "isnumeric" => {
            flag(all(text, |character| character.is_numeric() || is_ideographic_number(character)))
        }
        "isidentifier" => flag(is_identifier(text)),
        "islower" => flag(is_lower(text)),
        "isprintable" => flag(text.chars().all(is_printable)),
        "isspace" => flag(all(text, text::is_space)),
        "istitle" => flag(is_title(text)),
        "isupper" => flag(is_upper(text)),
        "center" => made(text::center(text, call.integer(0)?, fill(&call)?, limits)?),
        "ljust" => {
            let missing = missing(text, call.integer(0)?);
            made(text::pad(text, 0, missing, fill(&call)?, limits)?)
        }
        "rjust" => {
            let missing = missing(text, call.integer(0)?);
            made(text::pad(text, missing, 0, fill(&call)?, limits)?)
        }
        "zfill" => {
            let missing = missing(text, call.integer(0)?);
            let sign = text.len() - text.strip_prefix(['+', '-']).unwrap_or(text).len();
            let padded = text::pad(&text[sign..], missing, 0, '0', limits)?;
            made(format!("{}{padded}", &text[..sign]))
        }
        "expandtabs" => made(text::expand_tabs(text, call.integer_or(0, 8)?, limits)?),
        "encode" => match call.string_or(0, "utf-8")?.to_lowercase().replace('_', "-").as_str() {
            "utf-8" | "utf8" => Ok(Value::from_bytes(text.as_bytes().to_vec())),
            "ascii" if text.is_ascii() => Ok(Value::from_bytes(text.as_bytes().to_vec())),
            _ => Err(invalid("`encode` supports only UTF-8 and ASCII")),
        },
        "count" => {
            let (_, part) = part(&call, text, 1)?;
            let sub = call.string(0)?;
            Ok(Value::from(if sub.is_empty() { part.chars().count() + 1 } else { part.matches(sub).count() }))
        }
        "find" | "rfind" | "index" | "rindex" => {
            let (before, part) = part(&call, text, 1)?;
            let sub = call.string(0)?;
            let found = if method.starts_with('r') { part.rfind(sub) } else { part.find(sub) };
            match found {
                Some(at) => Ok(Value::from(before + part[..at].chars().count())),
                None if method.ends_with("find") => Ok(Value::from(-1)),
                None => Err(invalid("substring not found")),
            }
        }
        "startswith" | "endswith" => {
            let (_, part) = part(&call, text, 1)?;
            let has = |affix: &Value| {
                let affix = string_of(affix)
                    .ok_or_else(|| invalid(format!("`{method}` needs a string or a tuple of strings")))?;
                Ok::<_, Error>(if method == "startswith" {
                    part.starts_with(affix)
                } else {
                    part.ends_with(affix)
                })
            };
            let affix = call.value(0)?;
            if !affix.is_tuple() {
                return flag(has(affix)?);
            }
            for affix in call.items(0)? {
                if has(&affix)? {
                    return flag(true);
                }
            }
            flag(false)
        }
        "lstrip" | "rstrip" | "strip" => {
            let characters: Option<HashSet<char>> = match call.some(0) {
                Some(_) => Some(call.string(0)?.chars().collect()),
                None => None,
            };
            let cut = |character: char| match &characters {
                Some(characters) => characters.contains(&character),
                None => text::is_space(character),
            };
            let left = if method == "rstrip" { text } else { text.trim_start_matches(cut) };
            made(if method == "lstrip" { left } else { left.trim_end_matches(cut) }.to_owned())
        }
        "removeprefix" => made(text.strip_prefix(call.string(0)?).unwrap_or(text).to_owned()),
        "removesuffix" => made(text.strip_suffix(call.string(0)?).unwrap_or(text).to_owned()),
        "partition" | "rpartition" => {
            let separator = call.string(0)?;
            if separator.is_empty() {
                return Err(invalid(format!("`{method}` needs a separator that is not empty")));
            }
            let parts = match method {
                "partition" => {
                    text.split_once(separator).map_or([text, "", ""], |(head, tail)| [head, separator, tail])
                }
                _ => {
                    text.rsplit_once(separator).map_or(["", "", text], |(head, tail)| [head, separator, tail])
                }
            };
            Ok(Value::from(Tuple::from(parts.map(Value::from))))
        }
        "replace" => {
            let count = call.integer_or(2, -1)?;
            made(text::replace(text, call.string(0)?, call.string(1)?, count, limits)?)
        }
        "join" => {
            let items = call.items(0)?;
            let mut out = Text::new(limits);
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(text)?;
                }
                let part = string_of(item);
                let part = part.ok_or_else(|| {
                    invalid(format!("`join` needs strings, but item {index} is {}", type_name(item)))
                })?;
                if value.is_safe() && !item.is_safe() {
                    out.push_str(&escape_html(part, limits)?)?;
                } else {
                    out.push_str(part)?;
                }
            }
            made(out.into_string())
        }
        "split" | "rsplit" => split(&call, text, method == "rsplit"),
        "splitlines" => {
            let lines = text::split_lines(text, call.flag(0, false));
            limits.check_items(lines.len())?;
            Ok(lines.into_iter().map(Value::from).collect())
        }
        "format_map" => {
            let mapping = call.value(0)?;
            let named = |name: &str| {
                let found = mapping.get_item(&Value::from(name))?;
                if found.is_undefined() {
                    Err(invalid(format!("argument `{name}` of a format is missing")))
                } else {
                    Ok(found)
                }
            };
            made(Fields { positional: &[], named: &named, limits, escape: value.is_safe() }.format(text)?)
        }
        _ => Err(Error::from(ErrorKind::UnknownMethod)),
    }
}

fn format(limits: ValueLimits, value: &Value, text: &str, given: &[Value]) -> Result<Value, Error> {
    let (positional, named) = call::split(given);
    let named = |name: &str| {
        let found = named.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
        found.ok_or_else(|| invalid(format!("argument `{name}` of a format is missing")))
    };
    let fields = Fields { positional, named: &named, limits, escape: value.is_safe() };
    Ok(as_safe_as(value, fields.format(text)?))
}

fn missing(text: &str, width: i64) -> usize {
    usize::try_from(width).unwrap_or(0).saturating_sub(text.chars().count())
}

fn fill(call: &Call<'_, '_, '_>) -> Result<char, Error> {
    let mut characters = call.string_or(1, " ")?.chars();
    match (characters.next(), characters.next()) {
        (Some(fill), None) => Ok(fill),
        _ => Err(invalid("the fill must be one character")),
    }
}

/// The part of a text between two places, and how many characters stand before it.
fn part<'t>(call: &Call<'_, '_, '_>, text: &'t str, first: usize) -> Result<(usize, &'t str), Error> {
    if call.some(first).is_none() && call.some(first + 1).is_none() {
        return Ok((0, text));
    }
    let (start, stop) = bounds(call, first, text.chars().count())?;
    let byte = |place: usize| text.char_indices().nth(place).map_or(text.len(), |(at, _)| at);
    Ok((start, &text[byte(start)..byte(stop)]))
}

fn split(call: &Call<'_, '_, '_>, text: &str, from_right: bool) -> Result<Value, Error> {
    let most = usize::try_from(call.integer_or(1, -1)?).unwrap_or(usize::MAX);
    let mut parts: Vec<&str> = Vec::new();
    let mut rest = text;
    if call.some(0).is_some() {
        let separator = call.string(0)?;
        if separator.is_empty() {
            return Err(invalid("`split` needs a separator that is not empty"));
        }
        while parts.len() < most {
            let cut = if from_right {
                rest.rsplit_once(separator).map(|(a, b)| (b, a))
            } else {
                rest.split_once(separator)
            };
            let Some((part, after)) = cut else { break };
            parts.push(part);
            rest = after;
        }
        parts.push(rest);
    } else if from_right {
        rest = rest.trim_end_matches(text::is_space);
        while !rest.is_empty() && parts.len() < most {
            let start = rest
                .rfind(text::is_space)
                .map_or(0, |at| at + rest[at..].chars().next().map_or(1, char::len_utf8));
            parts.push(&rest[start..]);
            rest = rest[..start].trim_end_matches(text::is_space);
        }
        rest = rest.trim_end_matches(text::is_space);
        if !rest.is_empty() {
            parts.push(rest);
        }
    } else {
        rest = rest.trim_start_matches(text::is_space);
        while !rest.is_empty() && parts.len() < most {
            let end = rest.find(text::is_space).unwrap_or(rest.len());
            parts.push(&rest[..end]);
            rest = rest[end..].trim_start_matches(text::is_space);
        }
        if !rest.is_empty() {
            parts.push(rest);
        }
    }
    if from_right {
        parts.reverse();
    }
    call.limits.check_items(parts.len())?;
    Ok(parts.into_iter().map(Value::from).collect())
}

fn all(text: &str, has: impl Fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(has)
}

fn is_decimal(character: char) -> bool {
    text::decimal(character).is_some()
}

fn is_digit(character: char) -> bool {
    is_decimal(character)
        || matches!(u32::from(character), 0xb2 | 0xb3 | 0xb9 | 0x2070 | 0x2074..=0x2079 | 0x2080..=0x2089
            | 0x2460..=0x2468 | 0x2474..=0x247c | 0x2488..=0x2490)
}

/// Chinese and Japanese characters for numbers are letters to Rust, and numbers as well to Python.
fn is_ideographic_number(character: char) -> bool {
    "〇一二三四五六七八九十百千万億兆零壱弐参拾".contains(character)
}

fn is_identifier(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(|first| first.is_alphabetic() || first == '_')
        && characters.all(|character| character.is_alphanumeric() || character == '_')
}

/// Whether a text has small letters and no large ones.
pub(super) fn is_lower(text: &str) -> bool {
    text.chars().any(char::is_lowercase) && !text.chars().any(char::is_uppercase)
}

/// Whether a text has large letters and no small ones.
pub(super) fn is_upper(text: &str) -> bool {
    text.chars().any(char::is_uppercase) && !text.chars().any(char::is_lowercase)
}

fn is_cased(character: char) -> bool {
    character.is_lowercase() || character.is_uppercase()
}

fn is_title(text: &str) -> bool {
    let mut behind_cased = false;
    let mut any = false;
    for character in text.chars() {
        if (character.is_uppercase() && behind_cased) || (character.is_lowercase() && !behind_cased) {
            return false;
        }
        behind_cased = is_cased(character);
        any |= behind_cased;
    }
    any
}

/// `str.title`: unlike the filter of that name, a word begins behind everything that is no letter.
fn title(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut behind_cased = false;
    for character in text.chars() {
        if behind_cased {
            out.extend(character.to_lowercase())
        } else {
            out.extend(character.to_uppercase())
        }
        behind_cased = is_cased(character);
    }
    out
}

fn swap_case(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_uppercase() {
            out.extend(character.to_lowercase());
        } else {
            out.extend(character.to_uppercase());
        }
    }
    out
}

fn fold_case(text: &str) -> String {
    text.to_lowercase().replace('ß', "ss").replace('ς', "σ")
}
