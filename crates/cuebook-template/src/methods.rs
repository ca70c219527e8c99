//! Methods of strings, lists, dicts and numbers. Methods that would change a value are refused.

mod strings;
mod table;

pub(crate) use self::table::METHODS;

use crate::error::{Error, ErrorKind, Result};
use crate::operators::{equal, too_large};
use crate::origin::Origin;
use crate::render::{Args, Render};
use crate::value::{Dict, Special, Val, Value, View, type_error, type_name};

const LIST: [&str; 3] = ["copy", "count", "index"];
const LIST_CHANGES: [&str; 8] = ["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"];
const TUPLE: [&str; 2] = ["count", "index"];
const DICT: [&str; 6] = ["copy", "fromkeys", "get", "items", "keys", "values"];
const DICT_CHANGES: [&str; 5] = ["clear", "pop", "popitem", "setdefault", "update"];
const INTEGER: [&str; 4] = ["as_integer_ratio", "bit_count", "bit_length", "conjugate"];
const FLOAT: [&str; 4] = ["as_integer_ratio", "conjugate", "hex", "is_integer"];
const LOOP: [&str; 2] = ["changed", "cycle"];
const CYCLER: [&str; 2] = ["next", "reset"];

/// The methods of a value that is no string, and those of them that would change it.
fn tables(value: &Value<'_>) -> (&'static [&'static str], &'static [&'static str]) {
    match value {
        Value::List(_) | Value::Array(_) => (&LIST, &LIST_CHANGES),
        Value::Tuple(_) | Value::Range(_) => (&TUPLE, &[]),
        Value::Dict(_) | Value::Map(_) => (&DICT, &DICT_CHANGES),
        Value::Bool(_) | Value::Int(_) | Value::Big(_) => (&INTEGER, &[]),
        Value::Float(_) => (&FLOAT, &[]),
        Value::Special(special) => match special.as_ref() {
            Special::Loop(_) => (&LOOP, &[]),
            Special::Cycler { .. } => (&CYCLER, &[]),
            Special::Group(_) => (&TUPLE, &[]),
            _ => (&[], &[]),
        },
        _ => (&[], &[]),
    }
}

/// The method of a value that has this name.
pub(crate) fn find(value: &Value<'_>, name: &str) -> Option<&'static str> {
    if let Value::Text(_) = value {
        return strings::find(name);
    }
    if value.is_mapping()
        && !matches!(name.as_bytes(), [b'c' | b'f' | b'g' | b'i' | b'k' | b'p' | b's' | b'u' | b'v', ..])
    {
        // Most attributes of dicts are keys, and no method begins like this.
        return None;
    }
    let (own, changes) = tables(value);
    own.iter().chain(changes).copied().find(|known| *known == name)
}

/// The methods of a value that can be called.
pub(crate) fn names(value: &Value<'_>) -> Vec<&'static str> {
    match value {
        Value::Text(_) => strings::names(),
        _ => tables(value).0.to_vec(),
    }
}

/// Calls a method.
pub(crate) fn call<'r>(
    render: &Render<'r>,
    value: &Val<'r>,
    name: &'static str,
    args: Args<'r>,
) -> Result<Val<'r>> {
    render.spend(1)?;
    render.spend_read(value)?;
    args.spend_read(render)?;
    if (LIST_CHANGES.contains(&name) && matches!(value.value, Value::List(_) | Value::Array(_)))
        || (DICT_CHANGES.contains(&name) && value.value.is_mapping())
    {
        return Err(immutable(&value.value, name));
    }
    let made = match &value.value {
        Value::Text(text) => strings::call(render, value, text, name, args),
        Value::Dict(_) | Value::Map(_) => dict(render, value, name, args),
        Value::Special(special) if !matches!(special.as_ref(), Special::Group(_)) => {
            special_method(render, special, name, args)
        }
        Value::Bool(_) | Value::Int(_) | Value::Big(_) | Value::Float(_) => number(value, name, &args),
        _ => sequence(render, value, name, args),
    };
    render.spend_made(made?)
}

fn immutable(value: &Value<'_>, name: &str) -> Error {
    let error = Error::new(
        ErrorKind::Runtime,
        format!("`{name}` would change {}, and values cannot change", type_name(value)),
    );
    let help = match name {
        "append" | "extend" | "insert" => {
            "make a new list, as in `{% set items = items + [more] %}`, inside loops in a namespace"
        }
        "sort" => "use the filter `sort`",
        "reverse" => "use the filter `reverse`",
        "update" | "setdefault" => "make a new dict, as in `dict(old, key=value)`",
        "pop" | "popitem" | "remove" | "clear" => "use a slice, or the filters `select` and `reject`",
        _ => return error,
    };
    error.help(help)
}

fn most(name: &str, args: &Args<'_>, most: usize) -> Result<()> {
    if args.positional.len() > most {
        return Err(type_error(format!("`{name}` takes at most {most} arguments")));
    }
    if let Some((other, _)) = args.named.first() {
        return Err(type_error(format!("`{name}` has no argument `{other}`")));
    }
    Ok(())
}

fn dict<'r>(render: &Render<'r>, value: &Val<'r>, name: &'static str, args: Args<'r>) -> Result<Val<'r>> {
    match name {
        "get" => {
            most(name, &args, 2)?;
            let mut given = args.positional.into_iter();
            let key = given.next().ok_or_else(|| type_error("`get` needs a key"))?;
            let hash = render.key_of(&key.value)?;
            let default = given.next().unwrap_or_else(|| Value::None.into());
            let found = match &value.value {
                Value::Dict(dict) => dict.get(&hash).cloned(),
                Value::Map(map) => {
                    key.value.as_str().and_then(|key| map.get_key_value(key)).map(|(key, json)| {
                        Val::new(Value::from_json(json), render.origins.key(value.origin, key))
                    })
                }
                _ => None,
            };
            Ok(found.unwrap_or(default))
        }
        "copy" => {
            most(name, &args, 0)?;
            Ok(value.clone())
        }
        "fromkeys" => {
            most(name, &args, 2)?;
            let mut given = args.positional.into_iter();
            let keys = given.next().ok_or_else(|| type_error("`fromkeys` needs the keys"))?;
            let all = given.next().unwrap_or_else(|| Value::None.into());
            let mut dict = Dict::default();
            for key in render.item_list(&keys)? {
                dict.insert(render.key_of(&key.value)?, key, all.clone());
            }
            Ok(Value::Dict(dict.into()).into())
        }
        _ => {
            most(name, &args, 0)?;
            let pairs = render.pairs(value)?.unwrap_or_default();
            let (view, items): (&'static str, Vec<Val<'r>>) = match name {
                "keys" => ("dict_keys", pairs.into_iter().map(|(key, _)| key).collect()),
                "values" => ("dict_values", pairs.into_iter().map(|(_, value)| value).collect()),
                _ => (
                    "dict_items",
                    pairs.into_iter().map(|(key, value)| Val::tuple(vec![key, value])).collect(),
                ),
            };
            Ok(Value::View(View { name: view, items }.into()).into())
        }
    }
}

fn sequence<'r>(render: &Render<'r>, value: &Val<'r>, name: &'static str, args: Args<'r>) -> Result<Val<'r>> {
    if name == "copy" {
        most(name, &args, 0)?;
        return Ok(Val::list(render.item_list(value)?));
    }
    most(name, &args, if name == "index" { 3 } else { 1 })?;
    let wanted = args.positional.first().ok_or_else(|| type_error(format!("`{name}` needs a value")))?;
    let items = render.items(value)?;
    let length = items.len() as i64;
    let bound = |at: usize, default: i64| -> Result<usize> {
        let number =
            args.positional.get(at).map_or(Ok(default), |value| value.value.need_integer("a place"))?;
        Ok((if number < 0 { number + length } else { number }).clamp(0, length) as usize)
    };
    let (start, stop) = (bound(1, 0)?, bound(2, length)?);
    let mut count = 0;
    for at in start..stop.max(start) {
        if equal(render, &items.get(&render.origins, at), wanted)? {
            if name == "index" {
                return Ok(Val::new(Value::Int(at as i64), render.origin_of(value)));
            }
            count += 1;
        }
    }
    if name == "index" {
        return Err(Error::new(ErrorKind::Runtime, "the value is not in the list"));
    }
    Ok(Val::new(Value::Int(count), render.origin_of(value)))
}

fn number<'r>(value: &Val<'r>, name: &'static str, args: &Args<'r>) -> Result<Val<'r>> {
    most(name, args, 0)?;
    let made = match (&value.value, name) {
        (Value::Bool(flag), "conjugate") => Value::Int(i64::from(*flag)),
        (_, "conjugate") => value.value.clone(),
        (Value::Float(number), "as_integer_ratio") => {
            let (top, bottom) = ratio(*number)?;
            let part = |part| Val::new(Value::integer(part), value.origin);
            return Ok(Val::tuple(vec![part(top), part(bottom)]));
        }
        (Value::Float(number), "hex") => Value::Text(hexadecimal(*number).into()),
        (Value::Float(number), _) => Value::Bool(number.is_finite() && number.fract() == 0.0),
        (other, _) => {
            let number = other.as_integer().unwrap_or_default();
            match name {
                "bit_length" => Value::Int(i64::from(128 - number.unsigned_abs().leading_zeros())),
                "bit_count" => Value::Int(i64::from(number.unsigned_abs().count_ones())),
                _ => {
                    let one = Val::new(Value::Int(1), Origin::AUTHOR);
                    return Ok(Val::tuple(vec![Val::new(Value::integer(number), value.origin), one]));
                }
            }
        }
    };
    Ok(Val::new(made, value.origin))
}

/// The digits of a float to the base 16, as in `0x1.8p+1`.
fn hexadecimal(number: f64) -> String {
    let sign = if number.is_sign_negative() && !number.is_nan() { "-" } else { "" };
    let bits = number.to_bits();
    let (exponent, digits) = ((bits >> 52 & 0x7ff) as i64, bits & ((1 << 52) - 1));
    match exponent {
        _ if !number.is_finite() => crate::python::float_repr(number),
        0 if digits == 0 => format!("{sign}0x0.0p+0"),
        0 => format!("{sign}0x0.{digits:013x}p-1022"),
        _ => format!("{sign}0x1.{digits:013x}p{:+}", exponent - 1023),
    }
}

/// A float as a fraction of integers.
fn ratio(number: f64) -> Result<(i128, i128)> {
    if !number.is_finite() {
        return Err(Error::new(ErrorKind::Runtime, "an infinite number and `nan` are no fractions"));
    }
    let (mut top, mut bottom) = (number, 1i128);
    while top.fract() != 0.0 {
        top *= 2.0;
        bottom = bottom.checked_mul(2).ok_or_else(too_large)?;
    }
    match top.abs() < 2f64.powi(126) {
        true => Ok((top as i128, bottom)),
        false => Err(too_large()),
    }
}

/// What the methods of a loop, a cycler and their kin do.
fn special_method<'r>(
    render: &Render<'r>,
    special: &Special<'r>,
    name: &str,
    args: Args<'r>,
) -> Result<Val<'r>> {
    match (special, name) {
        (Special::Loop(state), "cycle") => match args.positional.len() {
            0 => Err(type_error("`loop.cycle` needs at least one item")),
            length => Ok(args.positional[state.index.get() % length].clone()),
        },
        (Special::Loop(state), _) => {
            let changed = match state.last_changed.borrow().as_ref() {
                None => true,
                Some(last) => {
                    !equal(render, &Val::tuple(last.clone()), &Val::tuple(args.positional.clone()))?
                }
            };
            if changed {
                *state.last_changed.borrow_mut() = Some(args.positional);
            }
            Ok(Value::Bool(changed).into())
        }
        (Special::Cycler { items, at }, "next") => {
            let current = items[at.get()].clone();
            at.set((at.get() + 1) % items.len());
            Ok(current)
        }
        (Special::Cycler { at, .. }, _) => {
            at.set(0);
            Ok(Value::None.into())
        }
        (other, _) => Err(type_error(format!("{} has no method `{name}`", other.type_name()))),
    }
}
