//! The items of lists, dicts and everything else that can be looped over.

use std::rc::Rc;

use serde_json::{Map, Value as Json};

use super::Render;
use crate::error::Result;
use crate::origin::Origin;
use crate::value::{Items, Special, Val, Value, type_error, type_name};

fn keys<'r>(map: &'r Map<String, Json>, origin: Origin) -> Items<'r> {
    Items::Keys(Rc::new(map.keys().map(String::as_str).collect()), origin)
}

impl<'r> Render<'r> {
    /// The items of a value, or an error if it has none.
    pub fn items(&self, val: &Val<'r>) -> Result<Items<'r>> {
        self.refuse_missing(val)?;
        let items = match &val.value {
            Value::Undefined(_) => Items::Values(Rc::default(), Origin::AUTHOR),
            Value::None if self.is_portable() => Items::Values(Rc::default(), Origin::AUTHOR),
            Value::Array(items) => Items::Array(items, val.origin),
            Value::List(items) | Value::Tuple(items) => Items::Values(items.clone(), val.origin),
            Value::Map(map) => keys(map, val.origin),
            Value::Dict(dict) => {
                let keys: Vec<_> = dict.entries().iter().map(|(key, _)| key.clone()).collect();
                Items::Values(Rc::new(keys.into()), val.origin)
            }
            Value::Range(range) => Items::Range(**range, val.origin),
            Value::Once(once) => {
                let taken = std::mem::take(&mut *once.items.borrow_mut());
                Items::Values(Rc::new(Vec::from(taken).into()), val.origin)
            }
            Value::View(view) => Items::Values(Rc::new(view.items.clone().into()), val.origin),
            Value::Text(text) => {
                let ends = |(at, character): (usize, char)| (at as u32, (at + character.len_utf8()) as u32);
                Items::Characters(
                    Rc::new(text.as_str().char_indices().map(ends).collect()),
                    text.clone(),
                    val.origin,
                )
            }
            Value::Special(special) => match special.as_ref() {
                Special::Group(items) => Items::Values(Rc::new(items.clone().into()), val.origin),
                _ => return Err(not_iterable(&val.value)),
            },
            other => return Err(not_iterable(other)),
        };
        self.spend_items(items.len())?;
        Ok(items)
    }

    /// All items of a value.
    pub fn item_list(&self, val: &Val<'r>) -> Result<Vec<Val<'r>>> {
        Ok(self.items(val)?.all(&self.origins))
    }

    /// The keys and values of a dict.
    pub fn pairs(&self, val: &Val<'r>) -> Result<Option<Vec<(Val<'r>, Val<'r>)>>> {
        let pairs: Vec<_> = match &val.value {
            Value::Map(map) => {
                let pair = |(key, value): (&'r String, &'r Json)| {
                    let inside = self.origins.key(val.origin, key);
                    (Val::text(key.as_str(), val.origin), Val::new(Value::from_json(value), inside))
                };
                map.iter().map(pair).collect()
            }
            Value::Dict(dict) => dict.entries().to_vec(),
            _ => return Ok(None),
        };
        self.spend_items(pairs.len())?;
        Ok(Some(pairs))
    }
}

fn not_iterable(value: &Value<'_>) -> crate::error::Error {
    type_error(format!("{} cannot be looped over", type_name(value)))
}
