//! `pprint`: a value over several lines, as Python's `pprint` breaks them.

use crate::error::Result;
use crate::python::{is_space, length, line_ranges};
use crate::render::{Call, Growing, Render};
use crate::text::Text;
use crate::value::{Printer, Val, Value};

const WIDTH: usize = 80;

pub(super) fn pprint<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let mut out = Growing::new(call.render);
    write(&mut out, &call.value, 0, 0, true)?;
    Ok(Val::text(out.finish(), call.origin()))
}

/// What fits into eighty columns stays on one line, and the keys of a dict are in order.
fn write<'r>(
    out: &mut Growing<'_, 'r>,
    value: &Val<'r>,
    column: usize,
    behind: usize,
    is_whole: bool,
) -> Result<()> {
    let render = out.render;
    let line = line(render, value)?;
    if let Value::Text(text) = &value.value
        && !text.is_safe()
        && !text.as_str().is_empty()
        && column + length(&line) + behind > WIDTH
    {
        return write_text(out, text.as_str(), column, behind, is_whole);
    }
    let nested =
        value.value.is_mapping() || matches!(value.value, Value::List(_) | Value::Tuple(_) | Value::Array(_));
    if !nested || column + length(&line) + behind <= WIDTH {
        return out.push(&line);
    }
    let (open, close) = match &value.value {
        Value::Tuple(_) => ("(", ")"),
        other if other.is_mapping() => ("{", "}"),
        _ => ("[", "]"),
    };
    out.push(open)?;
    let parts = parts(render, value)?;
    let count = parts.len();
    for (index, (key, item)) in parts.into_iter().enumerate() {
        if index > 0 {
            out.push(",\n")?;
            out.repeat(" ", column + 1)?;
        }
        let mut at = column + 1;
        if let Some(key) = key {
            let key = format!("{}: ", self::line(render, &key)?);
            out.push(&key)?;
            at += length(&key);
        }
        write(out, &item, at, if index + 1 == count { behind + 1 } else { 1 }, false)?;
    }
    out.push(close)
}

/// A long text is broken after lines and words. If it is the whole value, parentheses hold its parts together.
fn write_text(
    out: &mut Growing<'_, '_>,
    text: &str,
    mut column: usize,
    mut behind: usize,
    is_whole: bool,
) -> Result<()> {
    if is_whole {
        column += 1;
        behind += 1;
    }
    let width = WIDTH.saturating_sub(column);
    let lines = line_ranges(text, true);
    let mut chunks = Vec::new();
    for (index, (start, end)) in lines.iter().enumerate() {
        let (line, is_last) = (&text[*start..*end], index + 1 == lines.len());
        let room = |is_end: bool| if is_end { width.saturating_sub(behind) } else { width };
        let whole = quoted(out.render, line)?;
        if length(&whole) <= room(is_last) {
            chunks.push(whole);
            continue;
        }
        let (mut current, words) = (String::new(), words(line));
        for (number, word) in words.iter().enumerate() {
            let candidate = format!("{current}{word}");
            if length(&quoted(out.render, &candidate)?) <= room(is_last && number + 1 == words.len()) {
                current = candidate;
                continue;
            }
            if !current.is_empty() {
                chunks.push(quoted(out.render, &current)?);
            }
            current = (*word).to_owned();
        }
        if !current.is_empty() {
            chunks.push(quoted(out.render, &current)?);
        }
    }
    let is_broken = chunks.len() > 1 && is_whole;
    if is_broken {
        out.push("(")?;
    }
    for (index, chunk) in chunks.iter().enumerate() {
        if index > 0 {
            out.push("\n")?;
            out.repeat(" ", column)?;
        }
        out.push(chunk)?;
    }
    if is_broken { out.push(")") } else { Ok(()) }
}

/// The words of a line, each with the spaces behind it.
fn words(line: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let (mut start, mut was_space) = (0, false);
    for (at, letter) in line.char_indices() {
        if was_space && !is_space(letter) {
            words.push(&line[start..at]);
            start = at;
        }
        was_space = is_space(letter);
    }
    if start < line.len() {
        words.push(&line[start..]);
    }
    words
}

fn quoted(render: &Render<'_>, text: &str) -> Result<String> {
    let mut printer = Printer::sorted(render.env.limits.string_bytes);
    printer.repr(&Value::Text(Text::from(text.to_owned())))?;
    render.spend_text(printer.out.len())?;
    Ok(printer.out)
}

type Part<'r> = (Option<Val<'r>>, Val<'r>);

fn parts<'r>(render: &Render<'r>, value: &Val<'r>) -> Result<Vec<Part<'r>>> {
    let Some(mut pairs) = render.pairs(value)? else {
        return Ok(render.item_list(value)?.into_iter().map(|item| (None, item)).collect());
    };
    // Keys of unlike types stay as they are.
    if pairs.iter().all(|(key, _)| key.value.as_str().is_some()) {
        pairs.sort_by(|left, right| left.0.value.as_str().cmp(&right.0.value.as_str()));
    }
    Ok(pairs.into_iter().map(|(key, item)| (Some(key), item)).collect())
}

fn line<'r>(render: &Render<'r>, value: &Val<'r>) -> Result<String> {
    let mut printer = Printer::sorted(render.env.limits.string_bytes);
    printer.repr(&value.value)?;
    render.spend_text(printer.out.len())?;
    Ok(printer.out)
}
