//! The items of a value that can be looped over.

use std::rc::Rc;

use serde_json::Value as Json;

use super::{List, Range, Val, Value};
use crate::origin::{Origin, Table};
use crate::text::Text;

/// Items that are made when they are asked for.
#[derive(Debug, Clone)]
pub(crate) enum Items<'r> {
    Array(&'r [Json], Origin),
    Values(Rc<List<'r>>, Origin),
    /// The keys of a dict of the caller's.
    Keys(Rc<Vec<&'r str>>, Origin),
    Range(Range, Origin),
    Characters(Rc<Vec<(u32, u32)>>, Text<'r>, Origin),
}

impl<'r> Items<'r> {
    pub fn len(&self) -> usize {
        match self {
            Items::Array(items, _) => items.len(),
            Items::Values(items, _) => items.len(),
            Items::Keys(keys, _) => keys.len(),
            Items::Range(range, _) => range.length,
            Items::Characters(places, ..) => places.len(),
        }
    }

    pub fn get(&self, origins: &Table<'r>, index: usize) -> Val<'r> {
        match self {
            Items::Array(items, origin) => {
                Val::new(Value::from_json(&items[index]), origins.index(*origin, index))
            }
            Items::Values(items, origin) => match (&items[index], *origin) {
                (item, Origin::AUTHOR) => item.clone(),
                (item, origin) => Val::new(item.value.clone(), origins.mix(item.origin, origin)),
            },
            Items::Keys(keys, origin) => Val::text(keys[index], *origin),
            Items::Range(range, origin) => Val::new(Value::Int(range.at(index)), *origin),
            Items::Characters(places, text, origin) => {
                let (start, end) = places[index];
                Val::text(text.slice(start as usize, end as usize).safe(false), *origin)
            }
        }
    }

    pub fn all(&self, origins: &Table<'r>) -> Vec<Val<'r>> {
        match self {
            Items::Values(items, Origin::AUTHOR) => items.to_vec(),
            _ => (0..self.len()).map(|index| self.get(origins, index)).collect(),
        }
    }
}
