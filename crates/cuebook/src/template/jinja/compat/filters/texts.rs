//! Filters that change texts.

use std::borrow::Cow;
use std::collections::HashSet;

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::super::call::{Call, as_safe_as, invalid, items_of, refuse_undefined, string_of};
use super::super::limits::Text;
use super::super::printing::{escape_html, to_str};
use super::super::text;
use super::{autoescapes, pairs};

pub(super) fn capitalize(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    Ok(as_safe_as(call.value(0)?, text::capitalize(&call.text(0)?)))
}

pub(super) fn center(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let width = call.integer_or(1, 80)?;
    Ok(as_safe_as(call.value(0)?, text::center(&call.text(0)?, width, ' ', call.limits)?))
}

pub(super) fn indent(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let given = call.given(1);
    let with = match given.and_then(string_of) {
        Some(with) => Cow::Borrowed(with),
        None => {
            let width = usize::try_from(call.integer_or(1, 4)?).unwrap_or(0);
            call.limits.check_bytes(width)?;
            Cow::Owned(" ".repeat(width))
        }
    };
    let text = required_string(call, 0)?;
    Ok(as_safe_as(
        call.value(0)?,
        text::indent(text, &with, call.flag(2, false), call.flag(3, false), call.limits)?,
    ))
}

/// A string argument that Jinja2 uses without making it one; an undefined value counts as the empty text.
fn required_string<'v>(call: &'v Call<'_, '_, '_>, index: usize) -> Result<&'v str, Error> {
    refuse_undefined(call.state, call.value(index)?)?;
    call.string(index)
}

pub(super) fn lower(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    Ok(as_safe_as(call.value(0)?, call.text(0)?.to_lowercase()))
}

pub(super) fn upper(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    Ok(as_safe_as(call.value(0)?, call.text(0)?.to_uppercase()))
}

pub(super) fn replace(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let (value, old, new) = (call.value(0)?, call.value(1)?, call.value(2)?);
    let count = if call.some(3).is_some() { call.integer(3)? } else { -1 };
    let (text, old_text, new_text) = (call.text(0)?, call.text(1)?, call.text(2)?);
    if !autoescapes(call.state) {
        return Ok(Value::from(text::replace(&text, &old_text, &new_text, count, call.limits)?));
    }
    let safe = value.is_safe() || old.is_safe() || new.is_safe();
    if !safe {
        return Ok(Value::from(text::replace(&text, &old_text, &new_text, count, call.limits)?));
    }
    let escaped = |value: &Value, text: &str| {
        if value.is_safe() { Ok(text.to_owned()) } else { escape_html(text, call.limits) }
    };
    let (text, new_text) = (escaped(value, &text)?, escaped(new, &new_text)?);
    Ok(Value::from_safe_string(text::replace(&text, &old_text, &new_text, count, call.limits)?))
}

pub(super) fn striptags(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let stripped = text::strip_tags(&call.text(0)?);
    if !stripped.contains('&') {
        return Ok(Value::from(stripped));
    }
    // What is left of `<` and `>` is text; hidden as entities, it comes through the unescaping unharmed.
    let hidden = stripped.replace('<', "&lt;").replace('>', "&gt;");
    Ok(Value::from(minijinja_contrib::filters::striptags(hidden)))
}

pub(super) fn title(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let mut out = String::new();
    let mut begins = true;
    for character in call.text(0)?.chars() {
        if text::is_space(character) || matches!(character, '-' | '(' | '{' | '[' | '<') {
            out.push(character);
            begins = true;
        } else if begins {
            out.extend(character.to_uppercase());
            begins = false;
        } else {
            out.extend(character.to_lowercase());
        }
    }
    Ok(Value::from(out))
}

pub(super) fn trim(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let text = call.text(0)?;
    let trimmed = match call.some(1) {
        Some(_) => {
            let characters: HashSet<char> = call.string(1)?.chars().collect();
            text.trim_matches(|character| characters.contains(&character))
        }
        None => text.trim_matches(text::is_space),
    };
    Ok(as_safe_as(call.value(0)?, trimmed.to_owned()))
}

pub(super) fn truncate(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let (length, end) = (call.integer_or(1, 255)?, call.string_or(3, "...")?);
    let leeway = if call.some(4).is_some() { call.integer(4)? } else { 5 };
    let kept = length - end.chars().count() as i64;
    if kept < 0 || leeway < 0 {
        return Err(invalid("`truncate` needs a length with room for the end"));
    }
    let value = call.value(0)?;
    refuse_undefined(call.state, value)?;
    if value.is_undefined() {
        return Ok(value.clone());
    }
    let text = call.string(0)?;
    if text.chars().count() as i64 <= length.saturating_add(leeway) {
        return Ok(value.clone());
    }
    let mut cut = text::take(text, usize::try_from(kept).unwrap_or(0));
    if !call.flag(2, false) {
        cut = cut.rsplit_once(' ').map_or(cut, |(before, _)| before);
    }
    call.limits.check_bytes(cut.len().saturating_add(end.len()))?;
    Ok(as_safe_as(value, format!("{cut}{end}")))
}

pub(super) fn urlencode(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    refuse_undefined(call.state, value)?;
    let pairs = match value.kind() {
        ValueKind::Map => pairs(value)?,
        ValueKind::Seq | ValueKind::Iterable => {
            let mut pairs = Vec::new();
            for item in call.items(0)? {
                let [key, value] = <[Value; 2]>::try_from(items_of(call.state, call.limits, &item)?)
                    .map_err(|_| invalid("`urlencode` needs a string, a dict or pairs"))?;
                pairs.push((key, value));
            }
            pairs
        }
        _ => return Ok(Value::from(text::quote_url(&call.text(0)?, false, call.limits)?)),
    };
    let mut out = Text::new(call.limits);
    for (index, (key, value)) in pairs.iter().enumerate() {
        if index > 0 {
            out.push('&')?;
        }
        out.push_str(&text::quote_url(&to_str(key, call.limits)?, true, call.limits)?)?;
        out.push('=')?;
        out.push_str(&text::quote_url(&to_str(value, call.limits)?, true, call.limits)?)?;
    }
    Ok(Value::from(out.into_string()))
}

pub(super) fn urlize(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let value = call.value(0)?;
    let escaped =
        if value.is_safe() { call.text(0)?.into_owned() } else { escape_html(&call.text(0)?, call.limits)? };
    let shown = match call.some(1) {
        Some(_) => usize::try_from(call.integer(1)?).ok(),
        None => None,
    };
    let mut relations: Vec<String> = match call.some(4) {
        Some(_) => call.string(4)?.split_whitespace().map(str::to_owned).collect(),
        None => Vec::new(),
    };
    if call.flag(2, false) {
        relations.push("nofollow".to_owned());
    }
    relations.push("noopener".to_owned());
    relations.sort();
    relations.dedup();
    let mut attributes = format!(" rel=\"{}\"", escape_html(&relations.join(" "), call.limits)?);
    if call.some(3).is_some() {
        attributes.push_str(&format!(" target=\"{}\"", escape_html(call.string(3)?, call.limits)?));
    }
    let schemes = match call.some(5) {
        Some(_) => {
            call.items(5)?.iter().map(|scheme| to_str(scheme, call.limits)).collect::<Result<Vec<_>, _>>()?
        }
        None => Vec::new(),
    };
    let links = text::Links { shown, attributes, schemes: &schemes };
    let text = links.make(&escaped, call.limits)?;
    Ok(if autoescapes(call.state) { Value::from_safe_string(text) } else { Value::from(text) })
}

pub(super) fn wordcount(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let text = call.text(0)?;
    let words = text.split(|character: char| !character.is_alphanumeric() && character != '_');
    Ok(Value::from(words.filter(|word| !word.is_empty()).count()))
}

pub(super) fn wordwrap(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let width = text::positive(call.integer_or(1, 79)?)?;
    let end = if call.some(3).is_some() { call.string(3)? } else { "\n" };
    let mut out = Text::new(call.limits);
    for (index, line) in text::split_lines(required_string(call, 0)?, false).into_iter().enumerate() {
        if index > 0 {
            out.push_str(end)?;
        }
        // Each word is held by itself while a line is broken.
        call.limits.check_items(line.len())?;
        let wrapped = text::wrap(line, width, call.flag(2, true), call.flag(4, true));
        out.push_str(&text::join(wrapped.iter().map(String::as_str), end, call.limits)?)?;
    }
    Ok(Value::from(out.into_string()))
}

pub(super) fn xmlattr(call: &mut Call<'_, '_, '_>) -> Result<Value, Error> {
    let mut out = Text::new(call.limits);
    for (key, value) in pairs(call.value(0)?)? {
        if value.is_none() || value.is_undefined() {
            continue;
        }
        let key = to_str(&key, call.limits)?;
        if key.contains(|character: char| character.is_whitespace() || matches!(character, '/' | '>' | '=')) {
            return Err(invalid(format!("invalid attribute name `{key}`")));
        }
        out.push(' ')?;
        out.push_str(&escape_html(&key, call.limits)?)?;
        out.push_str("=\"")?;
        let text = to_str(&value, call.limits)?;
        if value.is_safe() {
            out.push_str(&text)?
        } else {
            out.push_str(&escape_html(&text, call.limits)?)?
        }
        out.push('"')?;
    }
    let text = out.into_string();
    let text = if call.flag(1, true) { text } else { text.strip_prefix(' ').unwrap_or(&text).to_owned() };
    Ok(if autoescapes(call.state) { Value::from_safe_string(text) } else { Value::from(text) })
}
