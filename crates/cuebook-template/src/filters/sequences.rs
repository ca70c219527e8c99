//! Filters on lists, dicts and other sequences.

use std::cmp::Ordering;

use super::numbers::plus;
use crate::error::Result;
use crate::operators::{compare, equal};
use crate::origin::Origin;
use crate::python;
use crate::render::Call;
use crate::text::{Builder, Text};
use crate::value::{Special, Val, Value, type_error, type_name};

/// The part of an item that an attribute such as `a.b` or `0` names.
fn path<'r>(call: &Call<'_, 'r>, item: &Val<'r>, attribute: &Val<'r>) -> Result<Val<'r>> {
    path_or(call, item, attribute, None)
}

/// The same, with a value for every part that is undefined.
fn path_or<'r>(
    call: &Call<'_, 'r>,
    item: &Val<'r>,
    attribute: &Val<'r>,
    default: Option<&Val<'r>>,
) -> Result<Val<'r>> {
    let or_default = |found: Val<'r>| match default {
        Some(default) if found.value.is_undefined() => default.clone(),
        _ => found,
    };
    match &attribute.value {
        Value::None => Ok(item.clone()),
        Value::Text(text) => {
            let mut value = item.clone();
            call.render.spend(text.as_str().len() / 64)?;
            for part in text.as_str().split('.') {
                call.render.spend(1)?;
                value = or_default(match part.parse::<i64>() {
                    Ok(number) if part.bytes().all(|byte| byte.is_ascii_digit()) => {
                        call.render.item(&value, &Value::Int(number).into())?
                    }
                    _ => call.render.item(&value, &Val::text(part.to_owned(), Origin::AUTHOR))?,
                });
            }
            Ok(value)
        }
        _ => call.render.item(item, attribute).map(or_default),
    }
}

/// Whether the order is reversed. Python wants a number for that.
fn reverses(call: &Call<'_, '_>, at: usize) -> Result<bool> {
    match call.arg(at) {
        Some(given) if given.value.as_integer().is_none() => {
            Err(type_error(format!("`reverse` of `{}` is true or false", call.name)))
        }
        _ => call.flag(at, false),
    }
}

/// A key for comparisons that do not look at upper and lower case.
fn fold<'r>(call: &Call<'_, 'r>, value: Val<'r>, case_sensitive: bool) -> Result<Val<'r>> {
    match &value.value {
        Value::Text(text) if !case_sensitive => {
            call.render.spend_read(&value)?;
            let lower = text.as_str().to_lowercase();
            Ok(Val::text(lower, value.origin))
        }
        _ => Ok(value),
    }
}

/// Sorts items by their keys, and gives the first error of a comparison. `listed` keys are those of lists in Python, so equal ones need
/// no order.
fn sorted<'r, T>(
    call: &Call<'_, 'r>,
    mut keyed: Vec<(Val<'r>, T)>,
    reverse: bool,
    listed: bool,
) -> Result<Vec<T>> {
    let mut failure = None;
    keyed.sort_by(|(left, _), (right, _)| {
        if failure.is_some() {
            return Ordering::Equal;
        }
        let (left, right) = if reverse { (right, left) } else { (left, right) };
        match compare(call.render, left, right) {
            Ok(order) => order.unwrap_or(Ordering::Equal),
            Err(_) if listed && equal(call.render, left, right).is_ok_and(|same| same) => Ordering::Equal,
            Err(error) => {
                failure = Some(error);
                Ordering::Equal
            }
        }
    });
    match failure {
        Some(error) => Err(error),
        None => Ok(keyed.into_iter().map(|(_, item)| item).collect()),
    }
}

pub(super) fn batch<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let count = call.integer(0, 0)?;
    let items = call.items()?;
    let Some(count) = usize::try_from(count).ok().filter(|count| *count > 0) else {
        // As in Python, no line is ever full; only the first one is before it begins.
        let before = if count == 0 && !items.is_empty() { Some(Val::list(Vec::new())) } else { None };
        let rest = (!items.is_empty()).then(|| Val::list(items));
        return Ok(Val::once(before.into_iter().chain(rest).collect()));
    };
    let mut lines: Vec<Vec<Val<'r>>> = items.chunks(count).map(<[Val<'r>]>::to_vec).collect();
    if let (Some(fill), Some(last)) = (call.some(1), lines.last_mut()) {
        call.render.spend_items(count)?;
        last.resize(count, fill.clone());
    }
    Ok(Val::once(lines.into_iter().map(Val::list).collect()))
}

pub(super) fn slice<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let slices = match call.integer(0, 0)? {
        0 => return Err(type_error("`slice` needs a number of slices larger than 0")),
        slices => usize::try_from(slices).unwrap_or(0),
    };
    call.render.spend_items(slices)?;
    let items = call.items()?;
    let (each, more) = (items.len() / slices.max(1), items.len() % slices.max(1));
    let mut parts = Vec::with_capacity(slices);
    let mut from = 0;
    for number in 0..slices {
        let to = from + each + usize::from(number < more);
        let mut part = items[from..to].to_vec();
        if let Some(fill) = call.some(1).filter(|_| number >= more) {
            part.push(fill.clone());
        }
        parts.push(Val::list(part));
        from = to;
    }
    Ok(Val::once(parts))
}

pub(super) fn dictsort<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let (case_sensitive, reverse) = (call.flag(0, false)?, reverses(call, 2)?);
    let by = call.text_arg(1, "key")?;
    let by_value = match by.as_str() {
        "key" => false,
        "value" => true,
        _ => return Err(type_error("`dictsort` sorts by \"key\" or \"value\"")),
    };
    let pairs = pairs(call)?.into_iter().map(|(key, value)| {
        let by = fold(call, if by_value { value.clone() } else { key.clone() }, case_sensitive)?;
        Ok((by, Val::tuple(vec![key, value])))
    });
    Ok(Val::list(sorted(call, pairs.collect::<Result<_>>()?, reverse, false)?))
}

fn pairs<'r>(call: &Call<'_, 'r>) -> Result<Vec<(Val<'r>, Val<'r>)>> {
    match call.render.pairs(&call.value)? {
        Some(pairs) => Ok(pairs),
        None => match &call.value.value {
            Value::Undefined(missing) => Err(missing.error()),
            other => Err(type_error(format!("`{}` needs a dict, not {}", call.name, type_name(other)))),
        },
    }
}

pub(super) fn first<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    if let Value::Once(once) = &call.value.value {
        let first = once.items.borrow_mut().pop_front();
        return Ok(first.unwrap_or_else(|| Val::missing("an empty sequence has no first item".to_owned())));
    }
    let items = call.render.items(&call.value)?;
    if items.len() == 0 {
        return Ok(Val::missing("an empty sequence has no first item".to_owned()));
    }
    Ok(items.get(&call.render.origins, 0))
}

pub(super) fn last<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    if matches!(call.value.value, Value::Once(_)) {
        return Err(type_error("a generator has no last item; make a list of it first"));
    }
    let items = call.render.items(&call.value)?;
    match items.len().checked_sub(1) {
        Some(at) => Ok(items.get(&call.render.origins, at)),
        None => Ok(Val::missing("an empty sequence has no last item".to_owned())),
    }
}

/// One of the items. The same render always picks the same ones, because the same inputs give the same text.
pub(super) fn random<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    if matches!(call.value.value, Value::Once(_)) || call.value.value.is_mapping() {
        return Err(type_error(format!("`random` needs a list, not {}", type_name(&call.value.value))));
    }
    let items = call.render.items(&call.value)?;
    if items.len() == 0 {
        return Ok(Val::missing("an empty sequence has no items".to_owned()));
    }
    Ok(items.get(&call.render.origins, call.render.pick(items.len())))
}

pub(super) fn groupby<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let case_sensitive = call.flag(2, false)?;
    let attribute = call.arg(0).cloned().unwrap_or_else(Val::undefined);
    let mut keyed = Vec::new();
    for item in call.items()? {
        let key = path_or(call, &item, &attribute, call.some(1))?;
        keyed.push((fold(call, key.clone(), case_sensitive)?, (key, item)));
    }
    let mut groups: Vec<(Val<'r>, Vec<Val<'r>>)> = Vec::new();
    for (key, item) in sorted(call, keyed, false, false)? {
        if let Some((last, items)) = groups.last_mut()
            && equal(
                call.render,
                &fold(call, last.clone(), case_sensitive)?,
                &fold(call, key.clone(), case_sensitive)?,
            )?
        {
            items.push(item);
        } else {
            groups.push((key, vec![item]));
        }
    }
    let group = |(key, items)| Val::from(Value::Special(Special::Group(vec![key, Val::list(items)]).into()));
    Ok(Val::list(groups.into_iter().map(group).collect()))
}

pub(super) fn items<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    call.render.truth(&call.value)?;
    if call.value.value.is_undefined() {
        return Ok(Val::once(Vec::new()));
    }
    let pairs = pairs(call)?;
    Ok(Val::once(pairs.into_iter().map(|(key, value)| Val::tuple(vec![key, value])).collect()))
}

pub(super) fn join<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    // In Python the letters of a text are its items. Runtimes disagree about that, and it is never meant.
    if call.render.is_portable() && call.value.value.as_str().is_some() {
        return Err(type_error("`join` needs a list, not a string"));
    }
    let mut items = call.items()?;
    if let Some(attribute) = call.some(1).cloned() {
        items = items.iter().map(|item| path(call, item, &attribute)).collect::<Result<_>>()?;
    }
    let separator = call.arg(0).cloned().unwrap_or_else(|| Val::text("", Origin::AUTHOR));
    let safe =
        call.cx.autoescape && (separator.value.is_safe() || items.iter().any(|item| item.value.is_safe()));
    let shown = |value: &Val<'r>| -> Result<Text<'r>> {
        let text = call.render.text_of(value)?;
        Ok(if safe && !text.is_safe() { text.map(python::escape_html) } else { text })
    };
    let between = shown(&separator)?;
    let between_origin = call.render.origin_of(&separator);
    let mut builder = Builder::new();
    let (mut origin, mut paid) = (between_origin, 0);
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            builder.push_text(&between, between_origin);
        }
        let item_origin = call.render.origin_of(item);
        origin = call.render.origins.mix(origin, item_origin);
        builder.push_text(&shown(item)?, item_origin);
        call.render.spend_growth(&mut paid, builder.len())?;
    }
    Ok(builder.finish(origin, safe))
}

pub(super) fn list<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    Ok(Val::list(call.items()?))
}

fn extreme<'r>(call: &mut Call<'_, 'r>, wanted: Ordering) -> Result<Val<'r>> {
    let case_sensitive = call.flag(0, false)?;
    let mut best: Option<(Val<'r>, Val<'r>)> = None;
    for item in call.items()? {
        let key = match call.some(1) {
            Some(attribute) => path(call, &item, attribute)?,
            None => item.clone(),
        };
        let key = fold(call, key, case_sensitive)?;
        let better = match &best {
            Some((known, _)) => compare(call.render, &key, known)? == Some(wanted),
            None => true,
        };
        if better {
            best = Some((key, item));
        }
    }
    Ok(best.map_or_else(|| Val::missing("an empty sequence has no such item".to_owned()), |(_, item)| item))
}

pub(super) fn max<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    extreme(call, Ordering::Greater)
}

pub(super) fn min<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    extreme(call, Ordering::Less)
}

pub(super) fn reverse<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    if let Value::Text(text) = &call.value.value {
        let reversed: String = text.as_str().chars().rev().collect();
        return Ok(Val::text(Text::from(reversed).safe(text.is_safe()), call.origin()));
    }
    if matches!(call.value.value, Value::Undefined(_)) {
        call.render.truth(&call.value)?;
    }
    let mut items = call.items().map_err(|_| type_error("the value cannot be reversed"))?;
    items.reverse();
    Ok(Val::once(items))
}

pub(super) fn sort<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let (reverse, case_sensitive) = (reverses(call, 0)?, call.flag(1, false)?);
    let mut keyed = Vec::new();
    for item in call.items()? {
        let key = match call.some(2) {
            Some(attribute) => keys(call, &item, attribute, case_sensitive)?,
            None => fold(call, item.clone(), case_sensitive)?,
        };
        keyed.push((key, item));
    }
    // One item is in order without a comparison.
    for (key, _) in keyed.iter().skip(1) {
        call.render.refuse_missing(key)?;
    }
    Ok(Val::list(sorted(call, keyed, reverse, true)?))
}

/// The key of an item for attributes such as `age,name`.
fn keys<'r>(
    call: &Call<'_, 'r>,
    item: &Val<'r>,
    attribute: &Val<'r>,
    case_sensitive: bool,
) -> Result<Val<'r>> {
    match attribute.value.as_str() {
        Some(several) if several.contains(',') => {
            let part = |part: &str| {
                let attribute = Val::text(part.to_owned(), Origin::AUTHOR);
                fold(call, path(call, item, &attribute)?, case_sensitive)
            };
            Ok(Val::list(several.split(',').map(part).collect::<Result<_>>()?))
        }
        _ => fold(call, path(call, item, attribute)?, case_sensitive),
    }
}

pub(super) fn sum<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let mut total = call.arg(1).cloned().unwrap_or_else(|| Value::Int(0).into());
    if matches!(total.value, Value::Text(_)) {
        return Err(type_error("`sum` does not add strings; use `join`"));
    }
    for item in call.items()? {
        let item = match call.some(0) {
            Some(attribute) => path(call, &item, attribute)?,
            None => item,
        };
        total = plus(call, &total, &item)?;
    }
    Ok(total)
}

pub(super) fn unique<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let case_sensitive = call.flag(0, false)?;
    let mut seen = std::collections::HashSet::new();
    let mut kept = Vec::new();
    // Two methods differ by their addresses, so every one lives until the end.
    let mut keys = Vec::new();
    for item in call.items()? {
        let key = match call.some(1) {
            Some(attribute) => path(call, &item, attribute)?,
            None => item.clone(),
        };
        let key = fold(call, key, case_sensitive)?;
        if seen.insert(call.render.key_of(&key.value)?) {
            kept.push(item);
            keys.push(key);
        }
    }
    Ok(Val::once(kept))
}

/// Whether `map`, `select` and their kin have nothing to do: Jinja2 takes what is false for an empty sequence.
fn is_empty(call: &Call<'_, '_>) -> Result<bool> {
    Ok(!call.render.truth(&call.value)?)
}

pub(super) fn map<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    let mut args = std::mem::take(&mut call.rest);
    if is_empty(call)? {
        return Ok(Val::once(Vec::new()));
    }
    let items = call.items()?;
    if args.positional.is_empty() {
        let attribute = args.take_named("attribute");
        let default = args.take_named("default");
        if let Some((name, _)) = args.named.first() {
            return Err(type_error(format!("`map` has no argument `{name}`")));
        }
        let attribute =
            attribute.ok_or_else(|| type_error("`map` needs the name of a filter, or `attribute`"))?;
        let mut mapped = Vec::with_capacity(items.len());
        for item in &items {
            let default = default.as_ref().filter(|default| !default.value.is_none());
            mapped.push(path_or(call, item, &attribute, default)?);
        }
        return Ok(Val::once(mapped));
    }
    let name = call.render.text_of(&args.positional.remove(0))?;
    let mut mapped = Vec::with_capacity(items.len());
    for item in items {
        mapped.push(call.render.call_filter(call.cx, name.as_str(), item, args.clone())?);
    }
    Ok(Val::once(mapped))
}

fn selected<'r>(call: &mut Call<'_, 'r>, by_attribute: bool, kept: bool) -> Result<Val<'r>> {
    let mut args = std::mem::take(&mut call.rest);
    if is_empty(call)? {
        return Ok(Val::once(Vec::new()));
    }
    let attribute = match (by_attribute, args.positional.is_empty()) {
        (true, true) => return Err(type_error(format!("`{}` needs the name of an attribute", call.name))),
        (true, false) => Some(args.positional.remove(0)),
        (false, _) => None,
    };
    let test = if args.positional.is_empty() {
        None
    } else {
        Some(call.render.text_of(&args.positional.remove(0))?)
    };
    let mut out = Vec::new();
    for item in call.items()? {
        let value = match &attribute {
            Some(attribute) => path(call, &item, attribute)?,
            None => item.clone(),
        };
        let holds = match &test {
            None => call.render.truth(&value)?,
            Some(test) => call.render.call_test(call.cx, test.as_str(), value, args.clone())?,
        };
        if holds == kept {
            out.push(item);
        }
    }
    Ok(Val::once(out))
}

pub(super) fn select<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    selected(call, false, true)
}

pub(super) fn reject<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    selected(call, false, false)
}

pub(super) fn selectattr<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    selected(call, true, true)
}

pub(super) fn rejectattr<'r>(call: &mut Call<'_, 'r>) -> Result<Val<'r>> {
    selected(call, true, false)
}
