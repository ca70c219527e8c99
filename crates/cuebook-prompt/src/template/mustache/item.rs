//! Values as a render looks at them.

use std::borrow::Cow;

use cuebook_template::Given;
use serde_json::{Map, Value as Json};

use crate::variables::Scope;

/// What a name stands for.
#[derive(Debug, Clone)]
pub(super) enum Item<'v> {
    /// There is no value.
    Undefined,
    /// All values of the render.
    Scope(&'v Scope),
    /// A value.
    Value(Cow<'v, Json>),
    /// A rich input without a value: it prints its nonce, and a section finds nothing.
    Placeholder(&'v str),
}

impl<'v> Item<'v> {
    pub(super) fn is_undefined(&self) -> bool {
        matches!(self, Item::Undefined)
    }

    /// A part of a value by its name, or by its number in a list.
    pub(super) fn part(&self, key: &str) -> Item<'v> {
        match self {
            Item::Scope(scope) => match scope.given_to_template(key) {
                Some(Given::Borrowed(value)) => Item::Value(Cow::Borrowed(value)),
                Some(Given::Owned(value)) => Item::Value(Cow::Owned(value)),
                Some(Given::Placeholder(nonce)) => Item::Placeholder(nonce),
                _ => Item::Undefined,
            },
            Item::Value(Cow::Borrowed(value)) => inside(value, key).map_or(Item::Undefined, Item::from),
            Item::Value(Cow::Owned(value)) => {
                inside(value, key).map_or(Item::Undefined, |part| Item::Value(Cow::Owned(part.clone())))
            }
            Item::Undefined | Item::Placeholder(_) => Item::Undefined,
        }
    }

    /// The items of a list that a section goes over; `None` for all other values.
    pub(super) fn items(&self) -> Option<Vec<Item<'v>>> {
        match self {
            Item::Value(Cow::Borrowed(Json::Array(items))) => Some(items.iter().map(Item::from).collect()),
            Item::Value(Cow::Owned(Json::Array(items))) => {
                Some(items.iter().map(|item| Item::Value(Cow::Owned(item.clone()))).collect())
            }
            _ => None,
        }
    }

    /// Whether a section shows for a value. False, null, `0`, the empty string and the empty list are nothing; an empty object is
    /// something.
    pub(super) fn is_true(&self) -> bool {
        match self {
            Item::Undefined | Item::Placeholder(_) => false,
            Item::Scope(_) => true,
            Item::Value(value) => match value.as_ref() {
                Json::Null => false,
                Json::Bool(truth) => *truth,
                Json::Number(number) => number.as_f64() != Some(0.0),
                Json::String(text) => !text.is_empty(),
                Json::Array(items) => !items.is_empty(),
                Json::Object(_) => true,
            },
        }
    }

    /// The names of an object's parts, at most so many.
    pub(super) fn keys(&self, most: usize) -> Vec<String> {
        match self {
            Item::Scope(scope) => scope.names().into_iter().take(most).collect(),
            Item::Value(value) => match value.as_ref() {
                Json::Object(entries) => entries.keys().take(most).cloned().collect(),
                _ => Vec::new(),
            },
            Item::Undefined | Item::Placeholder(_) => Vec::new(),
        }
    }

    /// The value as JSON; `None` if it is missing.
    pub(super) fn json(&self) -> Option<Cow<'_, Json>> {
        match self {
            Item::Undefined => None,
            Item::Scope(scope) => {
                let entry = |name: String| scope.shown(&name).map(|value| (name, value));
                let entries: Map<String, Json> = scope.names().into_iter().filter_map(entry).collect();
                Some(Cow::Owned(Json::Object(entries)))
            }
            Item::Value(value) => Some(Cow::Borrowed(value)),
            Item::Placeholder(nonce) => Some(Cow::Owned(Json::from(*nonce))),
        }
    }
}

impl<'v> From<&'v Json> for Item<'v> {
    fn from(value: &'v Json) -> Self {
        Item::Value(Cow::Borrowed(value))
    }
}

fn inside<'j>(value: &'j Json, key: &str) -> Option<&'j Json> {
    match value {
        Json::Object(entries) => entries.get(key),
        Json::Array(items) if key.starts_with(|first: char| first.is_ascii_digit()) => {
            items.get(key.parse::<usize>().ok()?)
        }
        _ => None,
    }
}
