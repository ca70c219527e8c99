//! Python's operators as filters.
//!
//! The engine's own operators print floats in another way, order values of unlike types, and grow strings without a
//! limit. They cannot be replaced, but a template can be compiled with `{{ a ~ b }}` written as
//! `{{ a|__cue_concat(b) }}`; these are the filters for that.

use minijinja::value::{Rest, Tuple, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, Value};

use super::Style;
use super::call::{
    as_safe_as, hashed, integer, invalid, items_of, number, refuse_undefined, string_of, text_of, touch,
    type_name,
};
use super::comparison::Comparison;
use super::filters::{autoescapes, whole};
use super::formatting::{Operands, percent};
use super::limits::{Text, ValueLimits, ValueTooLarge, charged};
use super::printing::escape_html;
use crate::template::meter;

/// Registers the operators under their names.
pub(super) fn register(env: &mut Environment<'_>, limits: ValueLimits) {
    env.add_filter("__cue_concat", move |state: &mut State<'_, '_>, parts: Rest<Value>| {
        let made = concat(state, limits, &parts)?;
        charged(state, limits, made)
    });
    env.add_filter("__cue_add", move |state: &mut State<'_, '_>, left: Value, right: Value| {
        let made = add(state, limits, &left, &right)?;
        charged(state, limits, made)
    });
    env.add_filter("__cue_mul", move |state: &mut State<'_, '_>, left: Value, right: Value| {
        let made = multiply(state, limits, &left, &right)?;
        charged(state, limits, made)
    });
    env.add_filter("__cue_mod", move |state: &mut State<'_, '_>, left: Value, right: Value| {
        let made = modulo(state, limits, &left, &right)?;
        charged(state, limits, made)
    });
    env.add_filter("__cue_slice", move |state: &mut State<'_, '_>, value: Value, bounds: Rest<Value>| {
        let made = slice(state, limits, &value, &bounds)?;
        charged(state, limits, made)
    });
    env.add_filter("__cue_at", |value: Value| touch(std::slice::from_ref(&value)).map(|()| value));
    // The engine divides by the number of items that `cycle` is given.
    env.add_filter("__cue_cycle", |value: Value| match value.as_object() {
        Some(object) if object.type_name().ends_with("::Loop") => Err(no_items()),
        _ => Ok(value),
    });
    env.add_filter("__cue_some", |items: Value| {
        meter::items(items.len().unwrap_or(0))?;
        if items.len() == Some(0) { Err(no_items()) } else { Ok(items) }
    });
    env.add_filter("__cue_key", |value: Value| hashed(&value).map(|()| value));
    env.add_filter("__cue_spread", |value: Value| meter::items(value.len().unwrap_or(0)).map(|()| value));
    env.add_filter("__cue_iter", move |value: Value| {
        begun(&value)?;
        match limits.style {
            // The engine iterates over nothing where Python reports an error.
            Style::Python if value.is_none() => Err(invalid("`None` cannot be iterated over")),
            // What has no items has none to go through. What is missing stays so, for a strict environment to refuse.
            Style::Portable if !value.is_undefined() && !has_items(&value) => Ok(Value::from(())),
            _ => Ok(value),
        }
    });
    env.add_filter("__cue_keep", keep);
    env.add_filter("__cue_chain", move |state: &mut State<'_, '_>, first: Value, rest: Rest<Value>| {
        chain(state, limits.style, first, &rest)
    });
    for (comparison, name) in Comparison::filters() {
        env.add_filter(name, move |state: &mut State<'_, '_>, left: Value, right: Value| {
            refuse_undefined(state, &right)?;
            refuse_undefined(state, &left)?;
            comparison.holds(limits.style, &left, &right)
        });
    }
}

/// How many containers one render may put into namespaces. Each can hold the one before it, and values that are nested
/// some ten thousand deep end the process when they are freed.
const MOST_KEPT: usize = 3_000;

#[derive(Default)]
struct Kept(usize);

/// Counts the containers that are put into namespaces.
fn keep(state: &mut State<'_, '_>, value: Value) -> Result<Value, Error> {
    if matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::Iterable) {
        let kept = state.get_or_insert_extension_with(Kept::default);
        kept.0 += 1;
        if kept.0 > MOST_KEPT {
            return Err(
                ValueTooLarge { what: "lists put into namespaces in one render", limit: MOST_KEPT }.error()
            );
        }
    }
    Ok(value)
}

fn no_items() -> Error {
    invalid("`cycle` needs at least one item")
}

/// Pays for the beginning of a loop. The engine copies the keys of a dict and counts the characters of a text; of a list it takes
/// one item after the other, and each turn pays for itself.
fn begun(value: &Value) -> Result<(), Error> {
    match value.kind() {
        ValueKind::String => meter::text(value.as_str().map_or(0, str::len)),
        ValueKind::Map | ValueKind::Iterable => meter::items(value.len().unwrap_or(0)),
        _ => Ok(()),
    }
}

/// Whether the portable style goes through the items of a value.
fn has_items(value: &Value) -> bool {
    matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Map | ValueKind::Iterable)
        && value.try_iter().is_ok()
}

fn unsupported(operator: &str, left: &Value, right: &Value) -> Error {
    if left.is_undefined() || right.is_undefined() {
        return Error::new(ErrorKind::UndefinedError, format!("an operand of `{operator}` is undefined"));
    }
    invalid(format!("`{operator}` cannot join {} and {}", type_name(left), type_name(right)))
}

/// `a ~ b`.
fn concat(state: &mut State<'_, '_>, limits: ValueLimits, parts: &[Value]) -> Result<Value, Error> {
    let safe = autoescapes(state) && parts.iter().any(Value::is_safe);
    let mut out = Text::new(limits);
    for part in parts {
        let text = text_of(state, limits, part)?;
        if safe && !part.is_safe() {
            out.push_str(&escape_html(&text, limits)?)?
        } else {
            out.push_str(&text)?
        }
    }
    let text = out.into_string();
    Ok(if safe { Value::from_safe_string(text) } else { Value::from(text) })
}

/// `a + b`.
pub(super) fn add(
    state: &State<'_, '_>,
    limits: ValueLimits,
    left: &Value,
    right: &Value,
) -> Result<Value, Error> {
    if let (Some(left), Some(right)) = (integer(left), integer(right)) {
        return left.checked_add(right).map(whole).ok_or_else(|| invalid("the sum is too large"));
    }
    if let (Some(left), Some(right)) = (number(left), number(right)) {
        return Ok(Value::from(left + right));
    }
    if let (Some(first), Some(second)) = (string_of(left), string_of(right)) {
        let safe = left.is_safe() || right.is_safe();
        let mut out = Text::new(limits);
        for (value, text) in [(left, first), (right, second)] {
            if safe && !value.is_safe() {
                out.push_str(&escape_html(text, limits)?)?
            } else {
                out.push_str(text)?
            }
        }
        let text = out.into_string();
        return Ok(if safe { Value::from_safe_string(text) } else { Value::from(text) });
    }
    let listed = |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if listed(left) && listed(right) && left.is_tuple() == right.is_tuple() {
        let items = left.len().unwrap_or(0).saturating_add(right.len().unwrap_or(0));
        limits.check_items(items)?;
        let mut items = items_of(state, limits, left)?;
        items.extend(items_of(state, limits, right)?);
        limits.check_items(items.len())?;
        return Ok(if left.is_tuple() { Value::from(Tuple::from(items)) } else { Value::from(items) });
    }
    Err(unsupported("+", left, right))
}

/// `a * b`.
fn multiply(state: &State<'_, '_>, limits: ValueLimits, left: &Value, right: &Value) -> Result<Value, Error> {
    if let (Some(left), Some(right)) = (integer(left), integer(right)) {
        return left.checked_mul(right).map(whole).ok_or_else(|| invalid("the product is too large"));
    }
    if let (Some(left), Some(right)) = (number(left), number(right)) {
        return Ok(Value::from(left * right));
    }
    let (value, times) = match (integer(left), integer(right)) {
        (None, Some(times)) => (left, times),
        (Some(times), None) => (right, times),
        _ => return Err(unsupported("*", left, right)),
    };
    let times = usize::try_from(times.max(0)).unwrap_or(usize::MAX);
    if let Some(text) = string_of(value) {
        limits.check_bytes(text.len().saturating_mul(times))?;
        meter::text(text.len().saturating_mul(times))?;
        return Ok(as_safe_as(value, text.repeat(times)));
    }
    if !matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable) {
        return Err(unsupported("*", left, right));
    }
    let items = items_of(state, limits, value)?;
    let length = items.len().saturating_mul(times);
    limits.check_items(length)?;
    meter::items(length)?;
    let items: Vec<Value> = items.into_iter().cycle().take(length).collect();
    Ok(if value.is_tuple() { Value::from(Tuple::from(items)) } else { Value::from(items) })
}

/// `a % b`: the rest of a division, or a format.
fn modulo(state: &State<'_, '_>, limits: ValueLimits, left: &Value, right: &Value) -> Result<Value, Error> {
    if let Some(template) = string_of(left) {
        refuse_undefined(state, right)?;
        let values = if right.is_tuple() { items_of(state, limits, right)? } else { vec![right.clone()] };
        let mapping = right.kind() == ValueKind::Map;
        let operands = if mapping { Operands::Mapping(right) } else { Operands::Tuple(&values) };
        return Ok(as_safe_as(left, percent(template, &operands, left.is_safe(), limits)?));
    }
    let by_zero = || invalid("division by zero");
    if let (Some(left), Some(right)) = (integer(left), integer(right)) {
        let rest = left.checked_rem(right).ok_or_else(by_zero)?;
        return Ok(whole(if rest != 0 && (rest < 0) != (right < 0) { rest + right } else { rest }));
    }
    match (number(left), number(right)) {
        (Some(_), Some(0.0)) => Err(by_zero()),
        (Some(left), Some(right)) => {
            let rest = left % right;
            Ok(Value::from(if rest != 0.0 && (rest < 0.0) != (right < 0.0) { rest + right } else { rest }))
        }
        _ => Err(unsupported("%", left, right)),
    }
}

/// `a < b <= c`: operators by name, each with what stands at its right. What comes behind a comparison that fails is not
/// compared.
fn chain(state: &State<'_, '_>, style: Style, first: Value, rest: &[Value]) -> Result<bool, Error> {
    let mut left = first;
    for pair in rest.chunks(2) {
        let [operator, right] = pair else { return Err(Error::from(ErrorKind::MissingArgument)) };
        refuse_undefined(state, &left)?;
        refuse_undefined(state, right)?;
        let comparison = operator.as_str().and_then(Comparison::of_operator);
        let comparison = comparison.ok_or_else(|| invalid("unknown comparison"))?;
        let holds = comparison.holds(style, &left, right)?;
        if !holds {
            return Ok(false);
        }
        left = right.clone();
    }
    Ok(true)
}

/// `a[start:stop:step]`.
fn slice(
    state: &State<'_, '_>,
    limits: ValueLimits,
    value: &Value,
    bounds: &[Value],
) -> Result<Value, Error> {
    let bound =
        |index: usize| match bounds.get(index).filter(|bound| !bound.is_none() && !bound.is_undefined()) {
            None => Ok(None),
            Some(bound) => integer(bound)
                .map(Some)
                .ok_or_else(|| invalid(format!("a slice needs integers, not {}", type_name(bound)))),
        };
    let step = bound(2)?.unwrap_or(1);
    if step == 0 {
        return Err(invalid("the step of a slice cannot be 0"));
    }
    if value.is_undefined() {
        return Err(Error::new(ErrorKind::UndefinedError, "an undefined value cannot be sliced"));
    }
    if !matches!(value.kind(), ValueKind::String | ValueKind::Seq | ValueKind::Iterable) {
        return Err(invalid(format!("{} cannot be sliced", type_name(value))));
    }
    touch(std::slice::from_ref(value))?;
    // The characters of a long text are not made values of their own: that would take thirty times its room.
    let characters: Vec<char> = string_of(value).map(|text| text.chars().collect()).unwrap_or_default();
    let items = if string_of(value).is_some() { Vec::new() } else { items_of(state, limits, value)? };
    let length = (items.len() + characters.len()) as i128;
    let place = |bound: Option<i128>, default: i128, least: i128, most: i128| match bound {
        None => default,
        Some(place) if place < 0 => (place + length).clamp(least, most),
        Some(place) => place.clamp(least, most),
    };
    let (start, stop) = if step > 0 {
        (place(bound(0)?, 0, 0, length), place(bound(1)?, length, 0, length))
    } else {
        (place(bound(0)?, length - 1, -1, length - 1), place(bound(1)?, -1, -1, length - 1))
    };
    let mut places = Vec::new();
    let mut at = start;
    while if step > 0 { at < stop } else { at > stop } {
        places.extend(usize::try_from(at));
        at = at.saturating_add(step);
    }
    if string_of(value).is_some() {
        let text: String = places.iter().filter_map(|at| characters.get(*at)).collect();
        return Ok(as_safe_as(value, text));
    }
    let taken: Vec<Value> = places.iter().filter_map(|at| items.get(*at)).cloned().collect();
    Ok(if value.is_tuple() { Value::from(Tuple::from(taken)) } else { Value::from(taken) })
}
