//! Filters that change texts. Where a filter leaves text in place, the text keeps its origins.

use std::collections::HashSet;

use crate::error::Result;
use crate::format::{self, percent_with};
use crate::origin::Origin;
use crate::python::{self, is_space, length, line_ranges, offset_of};
use crate::render::{Call, Growing, Render};
use crate::text::{Builder, Text};
use crate::value::{Val, Value, type_error, type_name};

fn mapped<'r>(call: &mut Call<'_, 'r>, change: impl Fn(&str) -> String) -> Result<Val<'r>> {
    let (text, origin) = (call.text()?, call.origin());
    Ok(Val::text(text.map_from(origin, change), origin))
}

pub(super) fn lower<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    mapped(call, str::to_lowercase)
}

pub(super) fn upper<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    mapped(call, str::to_uppercase)
}

/// A change that looks at the whole text.
fn whole<'r>(call: &mut Call<'_, 'r>, change: impl Fn(&str) -> String) -> Result<Val<'r>> {
    let (text, origin) = (call.text()?, call.origin());
    Ok(Val::text(text.map_whole(origin, change), origin))
}

pub(super) fn capitalize<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    whole(call, python::capitalize)
}

pub(super) fn title<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let mut value = whole(call, |text| {
        let mut out = String::with_capacity(text.len());
        let mut begins = true;
        for character in text.chars() {
            if is_space(character) || matches!(character, '-' | '(' | '{' | '[' | '<') {
                out.push(character);
                begins = true;
            } else if begins {
                out.extend(character.to_uppercase());
                begins = false;
            } else {
                out.extend(character.to_lowercase());
            }
        }
        out
    })?;
    if let Value::Text(text) = &mut value.value {
        *text = text.clone().safe(false);
    }
    Ok(value)
}

pub(super) fn center<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let text = call.text()?;
    let width = call.integer(0, 80)?;
    centered(call, &text, width, " ")
}

fn centered<'r>(call: &Call<'_, 'r>, text: &Text<'r>, width: i64, fill: &str) -> Result<Val<'r>> {
    let width = usize::try_from(width).unwrap_or(0);
    call.render.spend_text(width)?;
    let missing = width.saturating_sub(length(text.as_str()));
    let left = missing / 2 + (missing & width & 1);
    Ok(padded(text, call.value.origin, (left, missing - left), (fill, call.origin())))
}

/// Text with room on both sides.
pub(crate) fn padded<'r>(
    text: &Text<'r>,
    origin: Origin,
    (left, right): (usize, usize),
    (fill, fill_origin): (&str, Origin),
) -> Val<'r> {
    let mut builder = Builder::new();
    builder.push(&fill.repeat(left), fill_origin);
    builder.push_text(text, origin);
    builder.push(&fill.repeat(right), fill_origin);
    builder.finish(fill_origin, text.is_safe())
}

pub(super) fn trim<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let text = call.text()?;
    let whole = text.as_str();
    let (start, end) = match call.some(0) {
        Some(chars) => {
            let Some(chars) = chars.value.as_str() else {
                return Err(type_error(format!("`trim` needs a string, not {}", type_name(&chars.value))));
            };
            let characters: HashSet<char> = chars.chars().collect();
            bounds(whole, |character| characters.contains(&character))
        }
        None => bounds(whole, is_space),
    };
    Ok(Val::text(text.slice(start, end), call.value.origin))
}

/// Where a text begins and ends without these characters on both sides.
pub(crate) fn bounds(text: &str, cut: impl Fn(char) -> bool) -> (usize, usize) {
    let start = text.len() - text.trim_start_matches(&cut).len();
    let end = text.trim_end_matches(&cut).len();
    (start, end.max(start))
}

pub(super) fn truncate<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let limit = call.integer(0, 255)?;
    let end = call.arg(2).cloned().unwrap_or_else(|| Val::text("...", Origin::AUTHOR));
    let Some(end_length) = end.value.length() else {
        return Err(type_error(format!("the end of `truncate` is a string, not {}", type_name(&end.value))));
    };
    let leeway = match call.some(3) {
        Some(_) => call.integer(3, 5)?,
        None => 5,
    };
    let kept = limit.saturating_sub(end_length as i64);
    if kept < 0 || leeway < 0 {
        return Err(type_error("`truncate` needs a length that has room for the end"));
    }
    call.render.truth(&call.value)?;
    let Some(count) = call.value.value.length() else {
        return Err(type_error(format!("{} cannot be truncated", type_name(&call.value.value))));
    };
    if count as i64 <= limit.saturating_add(leeway) {
        return Ok(call.value.clone());
    }
    let Value::Text(text) = &call.value.value else {
        return Err(type_error(format!("{} cannot be truncated", type_name(&call.value.value))));
    };
    let mut cut = offset_of(text.as_str(), usize::try_from(kept).unwrap_or(0));
    if !call.flag(1, false)? {
        cut = text.as_str()[..cut].rfind(' ').unwrap_or(cut);
    }
    let mut builder = Builder::new();
    builder.push_text(&text.slice(0, cut), call.value.origin);
    let end_origin = call.render.origin_of(&end);
    match &end.value {
        Value::Text(end) => builder.push_text(end, end_origin),
        Value::Undefined(missing) => return Err(missing.error()),
        other => {
            return Err(type_error(format!("the end of `truncate` is a string, not {}", type_name(other))));
        }
    }
    let origin = call.render.origins.mix(call.origin(), end_origin);
    Ok(builder.finish(origin, text.is_safe()))
}

pub(super) fn indent<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let with_origin = call.arg(0).map_or(Origin::AUTHOR, |given| call.render.origin_of(given));
    let with = match call.arg(0) {
        Some(given) if given.value.as_str().is_some() => call.text_arg(0, "")?,
        _ => {
            let width = usize::try_from(call.integer(0, 4)?).unwrap_or(0);
            call.render.spend_text(width)?;
            Text::from(" ".repeat(width))
        }
    };
    let (first, blank) = (call.flag(1, false)?, call.flag(2, false)?);
    let text = string_value(call)?;
    let origin = call.value.origin;
    let mut builder = Builder::new();
    let whole = text.as_str();
    let mut lines = line_ranges(whole, false);
    // The last line counts even when it is empty.
    if whole.is_empty()
        || line_ranges(whole, true)
            .last()
            .is_some_and(|(start, end)| *end > *start && ends_line(&whole[*start..*end]))
    {
        lines.push((whole.len(), whole.len()));
    }
    let (mut paid, mut before) = (0, 0);
    for (index, (start, end)) in lines.into_iter().enumerate() {
        // The end of a line is a part of the text; only one of another kind is replaced.
        if index > 0 && &whole[before..start] == "\n" {
            builder.push_text(&text.slice(before, start), origin);
        } else if index > 0 {
            builder.push("\n", call.origin());
        }
        before = end;
        let indented = if index == 0 { first } else { blank || end > start };
        if indented {
            builder.push_text(&with, with_origin);
        }
        builder.push_text(&text.slice(start, end), origin);
        call.render.spend_growth(&mut paid, builder.len())?;
    }
    let origin = call.render.origins.mix(call.origin(), with_origin);
    Ok(builder.finish(origin, text.is_safe()))
}

fn ends_line(text: &str) -> bool {
    line_ranges(text, false) != line_ranges(text, true)
}

/// The value, which must be a string.
fn string_value<'r>(call: &Call<'_, 'r>) -> Result<Text<'r>> {
    match &call.value.value {
        Value::Text(_) => call.text(),
        Value::Undefined(missing) => Err(missing.error()),
        other => Err(type_error(format!("`{}` needs a string, not {}", call.name, type_name(other)))),
    }
}

pub(super) fn replace<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let count = match call.some(2) {
        Some(_) => call.integer(2, -1)?,
        None => -1,
    };
    let text = call.text()?;
    let (old, new) = (call.text_arg(0, "")?, call.text_arg(1, "")?);
    let new_origin = call.arg(1).map_or(Origin::AUTHOR, |new| call.render.origin_of(new));
    if !call.cx.autoescape {
        let replaced =
            replaced(call.render, &text, call.value.origin, old.as_str(), (&new, new_origin), count)?;
        return Ok(replaced.finish(call.render.origins.mix(call.origin(), new_origin), false));
    }
    let safe = text.is_safe() || old.is_safe() || new.is_safe();
    let escaped = |text: Text<'r>| if safe && !text.is_safe() { text.map(python::escape_html) } else { text };
    let (text, new) = (escaped(text), escaped(new));
    let replaced = replaced(call.render, &text, call.value.origin, old.as_str(), (&new, new_origin), count)?;
    Ok(replaced.finish(call.render.origins.mix(call.origin(), new_origin), safe))
}

/// Text with the first `count` places of `old` replaced; all of them if the count is negative.
pub(crate) fn replaced<'r>(
    render: &Render<'r>,
    text: &Text<'r>,
    origin: Origin,
    old: &str,
    (new, new_origin): (&Text<'r>, Origin),
    count: i64,
) -> Result<Builder> {
    let most = usize::try_from(count).unwrap_or(usize::MAX);
    let whole = text.as_str();
    let places: Vec<usize> = if old.is_empty() {
        let all = whole.char_indices().map(|(at, _)| at).chain([whole.len()]);
        all.take(most).collect()
    } else {
        whole.match_indices(old).map(|(at, _)| at).take(most).collect()
    };
    let longer = places.len().saturating_mul(new.as_str().len());
    render.spend_text((whole.len() - places.len() * old.len()).saturating_add(longer))?;
    render.spend(places.len().saturating_mul(1 + new.pieces().map_or(0, <[_]>::len) / 8))?;
    let mut builder = Builder::new();
    let mut from = 0;
    for at in places {
        builder.push_text(&text.slice(from, at), origin);
        builder.push_text(new, new_origin);
        from = at + old.len();
    }
    builder.push_text(&text.slice(from, whole.len()), origin);
    Ok(builder)
}

pub(super) fn wordcount<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let text = call.text()?;
    let words = text.as_str().split(|character: char| !character.is_alphanumeric() && character != '_');
    let count = words.filter(|word| !word.is_empty()).count();
    Ok(Val::new(Value::Int(count as i64), call.origin()))
}

pub(super) fn wordwrap<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let width = usize::try_from(call.integer(0, 79)?).ok().filter(|width| *width > 0);
    let (long, hyphens) = (call.flag(1, true)?, call.flag(3, true)?);
    let end = match call.some(2) {
        Some(end) => match end.value.as_str() {
            Some(end) => end.to_owned(),
            None => {
                return Err(type_error(format!("`wordwrap` needs a string, not {}", type_name(&end.value))));
            }
        },
        None => "\n".to_owned(),
    };
    let text = string_value(call)?;
    let mut out = Growing::new(call.render);
    for (index, (from, to)) in line_ranges(text.as_str(), false).into_iter().enumerate() {
        if index > 0 {
            out.push(&end)?;
        }
        let width = width.ok_or_else(|| type_error("`wordwrap` needs a width larger than 0"))?;
        let line = &text.as_str()[from..to];
        call.render.spend(line.len())?;
        for (index, part) in format::wrap(line, width, long, hyphens).iter().enumerate() {
            if index > 0 {
                out.push(&end)?;
            }
            out.push(part)?;
        }
    }
    let end_origin = call.arg(2).map_or(Origin::AUTHOR, |end| call.render.origin_of(end));
    Ok(Val::text(out.finish(), call.render.origins.mix(call.origin(), end_origin)))
}

pub(super) fn format<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let args = std::mem::take(&mut call.rest);
    if !args.positional.is_empty() && !args.named.is_empty() {
        return Err(type_error("`format` takes positional arguments or named ones, not both"));
    }
    let text = call.text()?;
    let template = Val::text(text, call.value.origin);
    if args.named.is_empty() {
        return percent_with(call.render, &template, &Val::tuple(args.positional));
    }
    let named = call.render.dict_of(args.named)?;
    percent_with(call.render, &template, &named)
}
