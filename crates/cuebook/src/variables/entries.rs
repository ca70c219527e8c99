//! Names and values inside a value, as templates see them.
//!
//! The template engine has maps of its own, which hash every key of every small object with care for attackers. Most objects
//! in a prompt have a handful of keys, and looking through those in a row is several times faster, both when the values are
//! converted and when a template asks for one.

use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use minijinja::Value;
use minijinja::value::{Enumerator, Object, ObjectExt};

/// The most keys that are looked through in a row.
const FEW: usize = 12;

/// Names and values, in the order in which they were written.
#[derive(Debug)]
pub(crate) enum Entries {
    Few(Box<[(Value, Value)]>),
    /// Randomly seeded, so that nobody can choose keys that collide.
    Many(IndexMap<String, Value, RandomState>),
}

impl Entries {
    /// Entries whose keys are all different.
    pub(super) fn new<'k>(entries: impl ExactSizeIterator<Item = (&'k str, Value)>) -> Entries {
        if entries.len() <= FEW {
            Entries::Few(entries.map(|(name, value)| (Value::from(name), value)).collect())
        } else {
            Entries::Many(entries.map(|(name, value)| (name.to_owned(), value)).collect())
        }
    }

    fn len(&self) -> usize {
        match self {
            Entries::Few(entries) => entries.len(),
            Entries::Many(entries) => entries.len(),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Entries::Few(entries) => {
                entries.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
            }
            Entries::Many(entries) => entries.get(name),
        }
    }
}

impl Object for Entries {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get(key.as_str()?).cloned()
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.get(key).cloned()
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        self.mapped_enumerator(|entries| -> Box<dyn Iterator<Item = Value> + Send + Sync + '_> {
            match entries {
                Entries::Few(entries) => Box::new(entries.iter().map(|(key, _)| key.clone())),
                Entries::Many(entries) => Box::new(entries.keys().map(|key| Value::from(key.as_str()))),
            }
        })
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        Some(self.len())
    }
}
