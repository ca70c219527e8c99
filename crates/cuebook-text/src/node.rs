//! Values that know where they were written.
//!
//! A [`Node`] is what a reader of JSON or YAML gives to code that points at every part of a file, also after parts of
//! it were replaced by other files: each value and each key carries its own place. This module knows no notation.

use serde_json::{Map, Number, Value};

use crate::error::{Code, ErrorKind};
use crate::source::Place;

/// One step on the way to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step<'k> {
    /// Into an object, to the value of this key.
    Key(&'k str),
    /// Into an array, to this element.
    Index(usize),
}

/// A file that has been understood and whose values have places, whatever its notation.
pub trait Located {
    /// Where a value stands. If the path leads nowhere: the deepest value on the way to it.
    fn place(&self, path: &[Step<'_>]) -> Place;
    /// Where the key stands that the last step names; the value itself if it has none.
    fn key_place(&self, path: &[Step<'_>]) -> Place;
    /// Where a value begins, for remarks about a list or map as a whole.
    fn opening(&self, path: &[Step<'_>]) -> Place;
    /// The code and kind that everything wrong with the file gets.
    fn refusal(&self) -> (Code, ErrorKind);
}

/// A value with its place.
#[derive(Debug, Clone)]
pub struct Node {
    /// The value.
    pub data: Data,
    /// Where it stands. That of a list or map reaches from its beginning to its end.
    pub place: Place,
    /// Whether it came from the environment, where everything is text; also null for a reference that led nowhere, about
    /// which no more has to be said.
    pub from_environment: bool,
}

/// What a node holds. Maps keep the order of the file and have no key twice.
#[derive(Debug, Clone)]
pub enum Data {
    /// Null, or nothing at all.
    Null,
    /// True or false.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A map.
    Map(Vec<(Key, Node)>),
}

/// A key with its place.
#[derive(Debug, Clone)]
pub struct Key {
    /// The key itself.
    pub name: String,
    /// Where it is written.
    pub place: Place,
}

impl Node {
    /// A value that was written at a place.
    pub fn new(data: Data, place: Place) -> Node {
        Node { data, place, from_environment: false }
    }

    /// Whether it is null, or nothing at all.
    pub fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    /// The text, if it is one.
    pub fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key, if this is a map that has it.
    pub fn get(&self, name: &str) -> Option<&Node> {
        self.entry(name).map(|(_, node)| node)
    }

    /// A key with its value, if this is a map that has it.
    pub fn entry(&self, name: &str) -> Option<&(Key, Node)> {
        match &self.data {
            Data::Map(entries) => entries.iter().find(|(key, _)| key.name == name),
            _ => None,
        }
    }

    /// The value without its places.
    pub fn to_json(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(value) => Value::Bool(*value),
            Data::Number(number) => Value::Number(number.clone()),
            Data::Text(text) => Value::String(text.clone()),
            Data::List(items) => items.iter().map(Node::to_json).collect(),
            Data::Map(entries) => Value::Object(to_object(entries)),
        }
    }

    /// What it is, for a message.
    pub fn describe(&self) -> &'static str {
        match &self.data {
            Data::Null if self.place.range().is_empty() => "nothing",
            Data::Null => "null",
            Data::Bool(true) => "true",
            Data::Bool(false) => "false",
            Data::Number(_) => "a number",
            Data::Text(_) => "a string",
            Data::List(_) => "a list",
            Data::Map(_) => "a map",
        }
    }

    /// Where it begins: the whole of a scalar, the bracket of a list or map, the first key of a map without brackets.
    pub fn opening(&self) -> Place {
        let start = self.place.range().start;
        let length = match &self.data {
            Data::Map(entries) => match entries.first() {
                Some((key, _)) if key.place.range().start == start => return key.place.clone(),
                _ => 1,
            },
            Data::List(_) => 1,
            _ => return self.place.clone(),
        };
        self.place.source().place(start..(start + length).min(self.place.range().end))
    }

    /// The key and the node that a path leads to. If it leads nowhere: the deepest node on the way, without its key.
    pub fn find(&self, path: &[Step<'_>]) -> (Option<&Key>, &Node) {
        let mut found: (Option<&Key>, &Node) = (None, self);
        for step in path {
            let next = match (step, &found.1.data) {
                (Step::Key(name), Data::Map(_)) => found.1.entry(name).map(|(key, node)| (Some(key), node)),
                (Step::Index(index), Data::List(items)) => items.get(*index).map(|node| (None, node)),
                _ => None,
            };
            match next {
                Some(next) => found = next,
                None => return (None, found.1),
            }
        }
        found
    }
}

/// The entries of a map without their places.
pub fn to_object(entries: &[(Key, Node)]) -> Map<String, Value> {
    entries.iter().map(|(key, node)| (key.name.clone(), node.to_json())).collect()
}
