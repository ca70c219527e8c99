//! Values that hold others: how they are dropped and walked without recursion, however deeply they nest.

use std::cell::Cell;
use std::collections::HashSet;
use std::ops::Deref;
use std::rc::Rc;

use super::{Dict, Missing, Special, Val, Value};
use crate::origin::{Origin, Table};

/// The items of a list or a tuple.
#[derive(Debug, Default)]
pub(crate) struct List<'r> {
    items: Vec<Val<'r>>,
    /// Where all of it came from, once something has asked.
    origin: Cell<Option<Origin>>,
}

impl<'r> From<Vec<Val<'r>>> for List<'r> {
    fn from(items: Vec<Val<'r>>) -> Self {
        List { items, origin: Cell::new(None) }
    }
}

impl<'r> Deref for List<'r> {
    type Target = Vec<Val<'r>>;

    fn deref(&self) -> &Vec<Val<'r>> {
        &self.items
    }
}

fn holds_others(value: &Value<'_>) -> bool {
    match value {
        Value::List(_) | Value::Tuple(_) | Value::Dict(_) | Value::Once(_) | Value::View(_) => true,
        Value::Undefined(Missing::Part(_)) => true,
        Value::Special(special) => !matches!(special.as_ref(), Special::Function(_) | Special::Custom(..)),
        _ => false,
    }
}

/// Drops values one after the other. Those that nothing else holds give what they hold to the same list.
pub(super) fn drop_all(mut open: Vec<Val<'_>>) {
    if !open.iter().any(|val| holds_others(&val.value)) {
        return;
    }
    while let Some(val) = open.pop() {
        match val.value {
            Value::List(list) | Value::Tuple(list) => {
                if let Some(mut list) = Rc::into_inner(list) {
                    open.append(&mut list.items);
                }
            }
            Value::Dict(dict) => {
                if let Some(mut dict) = Rc::into_inner(dict) {
                    open.extend(dict.take().into_iter().flat_map(|(key, value)| [key, value]));
                }
            }
            Value::Once(once) => {
                if let Some(once) = Rc::into_inner(once) {
                    open.extend(once.items.take());
                }
            }
            Value::Undefined(Missing::Part(part)) => {
                if let Some(part) = Rc::into_inner(part) {
                    open.push(part.owner);
                }
            }
            Value::View(view) => {
                if let Some(mut view) = Rc::into_inner(view) {
                    open.append(&mut view.items);
                }
            }
            Value::Special(special) => {
                if let Some(mut special) = Rc::into_inner(special) {
                    special.take_into(&mut open);
                }
            }
            _ => {}
        }
    }
}

impl Drop for List<'_> {
    fn drop(&mut self) {
        drop_all(std::mem::take(&mut self.items));
    }
}

impl Drop for Dict<'_> {
    fn drop(&mut self) {
        drop_all(self.take().into_iter().flat_map(|(key, value)| [key, value]).collect());
    }
}

impl Drop for Special<'_> {
    fn drop(&mut self) {
        let mut open = Vec::new();
        self.take_into(&mut open);
        drop_all(open);
    }
}

impl<'r> Special<'r> {
    /// Moves the values that it holds into a list.
    fn take_into(&mut self, open: &mut Vec<Val<'r>>) {
        match self {
            Special::Namespace(entries) => open.extend(entries.take().into_iter().map(|(_, value)| value)),
            Special::Cycler { items, .. } | Special::Group(items) => open.append(items),
            Special::Joiner { separator: value, .. } | Special::Method(value, _) => {
                open.push(std::mem::replace(value, Val::undefined()));
            }
            _ => {}
        }
    }
}

/// Where everything in a value came from. A part that is held several times is looked at once.
pub(crate) fn origin_inside<'r>(origins: &Table<'r>, val: &Val<'r>) -> (Origin, usize) {
    let known = match &val.value {
        Value::Text(text) => {
            let pieces = text.pieces().unwrap_or_default();
            return (origins.mix_all(pieces.iter().map(|piece| piece.mark.origin())), pieces.len());
        }
        Value::List(list) | Value::Tuple(list) => Some(&list.origin),
        Value::Dict(_) | Value::View(_) => None,
        Value::Special(special) if matches!(special.as_ref(), Special::Group(_)) => None,
        _ => return (Origin::AUTHOR, 0),
    };
    if let Some(origin) = known.and_then(Cell::get) {
        return (origin, 0);
    }
    let mut seen: HashSet<*const u8> = HashSet::new();
    let mut open: Vec<&Val<'r>> = vec![val];
    let (mut all, mut steps) = (Origin::AUTHOR, 0);
    while let Some(at) = open.pop() {
        steps += 1;
        if !std::ptr::eq(at, val) {
            all = origins.mix(all, at.origin);
        }
        let (address, cached) = match &at.value {
            Value::List(list) | Value::Tuple(list) => (Rc::as_ptr(list).cast::<u8>(), list.origin.get()),
            Value::Dict(dict) => (Rc::as_ptr(dict).cast::<u8>(), None),
            Value::View(view) => (Rc::as_ptr(view).cast::<u8>(), None),
            Value::Special(special) => (Rc::as_ptr(special).cast::<u8>(), None),
            Value::Text(text) => {
                for piece in text.pieces().unwrap_or_default() {
                    all = origins.mix(all, piece.mark.origin());
                }
                continue;
            }
            _ => continue,
        };
        if let Some(origin) = cached {
            all = origins.mix(all, origin);
            continue;
        }
        if !seen.insert(address) {
            continue;
        }
        match &at.value {
            Value::List(list) | Value::Tuple(list) => open.extend(list.iter().rev()),
            Value::Dict(dict) => {
                open.extend(dict.entries().iter().rev().flat_map(|(key, value)| [value, key]));
            }
            Value::View(view) => open.extend(view.items.iter().rev()),
            Value::Special(special) => {
                if let Special::Group(items) = special.as_ref() {
                    open.extend(items.iter().rev());
                }
            }
            _ => {}
        }
    }
    if let Some(known) = known {
        known.set(Some(all));
    }
    (all, steps)
}
