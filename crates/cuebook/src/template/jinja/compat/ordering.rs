//! Which of two values comes first, as Python decides it: values of unlike types have no order, and asking is an error.

use std::cmp::Ordering;

use minijinja::value::ValueKind;
use minijinja::{Error, Value};

use super::call::{integer, invalid, number, string_of, type_name};
use super::limits::{ValueTooLarge, check_depth};
use super::{Style, portable};
use crate::template::meter;

/// How many values one comparison may look at. Lists that hold each other several times are compared as often, so that
/// forty small ones could keep a comparison busy for years.
const COMPARED: usize = 100_000;

/// Whether two values are equal, as Python decides it.
pub(super) fn equal(left: &Value, right: &Value) -> Result<bool, Error> {
    equal_in(Style::Python, left, right)
}

/// Whether two values are equal.
pub(super) fn equal_in(style: Style, left: &Value, right: &Value) -> Result<bool, Error> {
    equal_at(style, left, right, 0, &mut COMPARED.clone())
}

fn equal_at(
    style: Style,
    left: &Value,
    right: &Value,
    depth: usize,
    left_over: &mut usize,
) -> Result<bool, Error> {
    check_depth(depth)?;
    *left_over = left_over
        .checked_sub(1)
        .ok_or_else(|| ValueTooLarge { what: "values in one comparison", limit: COMPARED }.error())?;
    meter::items(1)?;
    let listed = |value: &Value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable);
    if listed(left) && listed(right) {
        if left.is_tuple() != right.is_tuple() || left.len() != right.len() {
            return Ok(false);
        }
        let (mut lefts, mut rights) = (left.try_iter()?.checked(), right.try_iter()?.checked());
        loop {
            match (lefts.next().transpose()?, rights.next().transpose()?) {
                (None, None) => return Ok(true),
                (Some(left), Some(right)) if equal_at(style, &left, &right, depth + 1, left_over)? => {}
                _ => return Ok(false),
            }
        }
    }
    if let (ValueKind::Map, ValueKind::Map, Some(lefts), Some(rights)) =
        (left.kind(), right.kind(), left.as_object(), right.as_object())
    {
        if left.len() != right.len() {
            return Ok(false);
        }
        for (key, left) in lefts.try_iter_pairs().into_iter().flatten() {
            match rights.get_value(&key) {
                Some(right) if equal_at(style, &left, &right, depth + 1, left_over)? => {}
                _ => return Ok(false),
            }
        }
        return Ok(true);
    }
    if style.is_portable() {
        let (missing, other) = (portable::is_absent(left), portable::is_absent(right));
        if missing || other {
            return Ok(missing && other);
        }
        // A truth value is no number here.
        if (left.kind() == ValueKind::Bool) != (right.kind() == ValueKind::Bool) {
            return Ok(false);
        }
    }
    if let (Some(left), Some(right)) = (string_of(left), string_of(right)) {
        meter::text(left.len().min(right.len()))?;
    }
    Ok(left == right)
}

/// Whether one of the items equals a value.
pub(super) fn any_equal(
    items: impl IntoIterator<Item = Result<Value, Error>>,
    wanted: &Value,
) -> Result<bool, Error> {
    for item in items {
        if equal(&item?, wanted)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Compares two values.
pub(super) fn compare(left: &Value, right: &Value) -> Result<Ordering, Error> {
    compare_at(left, right, 0)
}

fn compare_at(left: &Value, right: &Value, depth: usize) -> Result<Ordering, Error> {
    check_depth(depth)?;
    if let (Some(left), Some(right)) = (integer(left), integer(right)) {
        return Ok(left.cmp(&right));
    }
    if let (Some(left), Some(right)) = (number(left), number(right)) {
        return Ok(left.partial_cmp(&right).unwrap_or(Ordering::Equal));
    }
    if let (Some(left), Some(right)) = (string_of(left), string_of(right)) {
        meter::text(left.len().min(right.len()))?;
        return Ok(left.cmp(right));
    }
    let sequences = [left, right].map(|value| matches!(value.kind(), ValueKind::Seq | ValueKind::Iterable));
    if sequences == [true, true] && left.is_tuple() == right.is_tuple() {
        let (mut lefts, mut rights) = (left.try_iter()?.checked(), right.try_iter()?.checked());
        loop {
            match (lefts.next().transpose()?, rights.next().transpose()?) {
                (None, None) => return Ok(Ordering::Equal),
                (None, Some(_)) => return Ok(Ordering::Less),
                (Some(_), None) => return Ok(Ordering::Greater),
                (Some(left), Some(right)) if equal(&left, &right)? => {}
                (Some(left), Some(right)) => return compare_at(&left, &right, depth + 1),
            }
        }
    }
    Err(invalid(format!("{} and {} cannot be compared", type_name(left), type_name(right))))
}

/// Sorts by keys, keeping the order of equal ones. The standard sort is not used because it may panic when a comparison
/// is not an order, and `nan` makes it none.
pub(super) fn sort(mut items: Vec<(Value, Value)>, reverse: bool) -> Result<Vec<Value>, Error> {
    meter::items(items.len())?;
    let mut spare: Vec<(Value, Value)> = Vec::with_capacity(items.len());
    let mut width = 1;
    while width < items.len() {
        let mut rest = items.into_iter().peekable();
        while rest.peek().is_some() {
            let mut left = rest.by_ref().take(width).collect::<Vec<_>>().into_iter().peekable();
            let mut right = rest.by_ref().take(width).collect::<Vec<_>>().into_iter().peekable();
            while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
                let (first, second) = if reverse { (a, b) } else { (b, a) };
                let take_right = compare(&first.0, &second.0)? == Ordering::Less;
                spare.extend(if take_right { right.next() } else { left.next() });
            }
            spare.extend(left);
            spare.extend(right);
        }
        items = std::mem::take(&mut spare);
        width *= 2;
    }
    Ok(items.into_iter().map(|(_, item)| item).collect())
}

/// A string as it is compared where case does not matter; any other value as it is.
pub(super) fn fold(value: Value, case_sensitive: bool) -> Result<Value, Error> {
    match string_of(&value) {
        Some(text) if !case_sensitive => {
            meter::characters(text.len())?;
            Ok(Value::from(text.to_lowercase()))
        }
        _ => Ok(value),
    }
}

/// The value at a dotted path, where numbers are places: `messages.0.role`.
pub(super) fn path(value: &Value, attribute: &Value) -> Result<Value, Error> {
    let Some(dotted) = string_of(attribute) else { return value.get_item(attribute) };
    let mut found = value.clone();
    for part in dotted.split('.') {
        meter::items(1)?;
        found = match part.parse::<usize>() {
            Ok(index) => found.get_item_by_index(index)?,
            Err(_) => found.get_attr(part)?,
        };
    }
    Ok(found)
}
