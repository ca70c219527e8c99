//! Dicts that a template makes, with Python's rules for keys.

use std::collections::HashMap;

use super::print::DEPTH;
use super::{Val, Value, type_error, type_name};
use crate::error::{Error, ErrorKind, Result};

/// What two equal keys have in common: `1`, `1.0` and `true` are one key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    None,
    Integer(i128),
    Float(u64),
    Text(String),
    Tuple(Vec<Key>),
    /// A value that is equal to itself alone.
    Identity(usize),
}

/// How many values a key may hold: a tuple may hold another one many times.
const PARTS: usize = 10_000;

/// What is left of the limits of a key.
struct KeyLimits {
    parts: usize,
    bytes: usize,
}

impl Key {
    /// The key that a value is, and how many bytes of text it holds, which are at most `limit`.
    pub fn of(value: &Value<'_>, limit: usize) -> Result<(Key, usize)> {
        let mut room = KeyLimits { parts: PARTS, bytes: limit };
        let key = Key::within(value, &mut room, 0)?;
        Ok((key, limit - room.bytes))
    }

    fn within(value: &Value<'_>, room: &mut KeyLimits, depth: usize) -> Result<Key> {
        let bytes = value.as_str().map_or(0, str::len);
        let (Some(parts), Some(bytes)) = (room.parts.checked_sub(1), room.bytes.checked_sub(bytes)) else {
            return Err(too_large());
        };
        if depth > DEPTH {
            return Err(too_large());
        }
        *room = KeyLimits { parts, bytes };
        Ok(match value {
            Value::None => Key::None,
            Value::Text(text) => Key::Text(text.as_str().to_owned()),
            Value::Float(number) if number.fract() == 0.0 && number.abs() < 1e18 => {
                Key::Integer(*number as i128)
            }
            Value::Float(number) => Key::Float(number.to_bits()),
            Value::Tuple(items) => {
                let part = |item: &Val<'_>| Key::within(&item.value, room, depth + 1);
                Key::Tuple(items.iter().map(part).collect::<Result<_>>()?)
            }
            Value::Undefined(_) => Key::Identity(0),
            Value::Special(special) => Key::Identity(std::rc::Rc::as_ptr(special) as *const u8 as usize),
            Value::Once(once) => Key::Identity(std::rc::Rc::as_ptr(once) as *const u8 as usize),
            Value::Range(range) => Key::Tuple(vec![
                Key::Text("range".to_owned()),
                Key::Integer(i128::from(range.start)),
                Key::Integer(i128::from(range.step)),
                Key::Integer(range.length as i128),
            ]),
            _ => match value.as_integer() {
                Some(number) => Key::Integer(number),
                None => return Err(type_error(format!("{} cannot be a key", type_name(value)))),
            },
        })
    }
}

fn too_large() -> Error {
    Error::new(ErrorKind::Limit, "a key holds too many values or too much text")
}

/// Keys and values in the order in which they were put in.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dict<'r> {
    entries: Vec<(Val<'r>, Val<'r>)>,
    index: HashMap<Key, usize>,
}

impl<'r> Dict<'r> {
    pub fn insert(&mut self, hash: Key, key: Val<'r>, value: Val<'r>) {
        match self.index.get(&hash) {
            Some(at) => self.entries[*at].1 = value,
            None => {
                self.index.insert(hash, self.entries.len());
                self.entries.push((key, value));
            }
        }
    }

    pub fn get(&self, key: &Key) -> Option<&Val<'r>> {
        self.index.get(key).map(|at| &self.entries[*at].1)
    }

    /// Everything it holds, for its end.
    pub fn take(&mut self) -> Vec<(Val<'r>, Val<'r>)> {
        self.index.clear();
        std::mem::take(&mut self.entries)
    }

    pub fn entries(&self) -> &[(Val<'r>, Val<'r>)] {
        &self.entries
    }

    pub fn len(&self) -> usize {
        self.entries.len()
    }
}
