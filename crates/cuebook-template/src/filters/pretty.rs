//! `pprint`: a value over several lines, as Python's `pprint` breaks them.

use crate::error::Result;
use crate::python::length;
use crate::render::{Call, Growing, Render};
use crate::value::{Printer, Val, Value};

const WIDTH: usize = 80;

pub(super) fn pprint<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let mut out = Growing::new(call.render);
    write(&mut out, &call.value, 0, 0)?;
    Ok(Val::text(out.finish(), call.origin()))
}

/// What fits into eighty columns stays on one line, and the keys of a dict are in order.
fn write<'r>(out: &mut Growing<'_, 'r>, value: &Val<'r>, column: usize, behind: usize) -> Result<()> {
    let render = out.render;
    let line = line(render, value)?;
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
        write(out, &item, at, if index + 1 == count { behind + 1 } else { 1 })?;
    }
    out.push(close)
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
