//! Values that know where they were written.
//!
//! A [`Node`] is what a reader of JSON or YAML gives to whoever has to point at every part of a file, also after parts of
//! it were replaced by other files: each value and each key carries its own place. This module knows no notation.

use serde_json::{Map, Number, Value};

use crate::json::Step;
use crate::source::Place;

/// A value with its place.
#[derive(Debug, Clone)]
pub(crate) struct Node {
    pub(crate) data: Data,
    /// Where it stands. That of a list or map reaches from its beginning to its end.
    pub(crate) place: Place,
    /// Whether it came from the environment, where everything is text; also null for a reference that led nowhere, about
    /// which no more has to be said.
    pub(crate) from_environment: bool,
}

/// What a node holds. Maps keep the order of the file and have no key twice.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    Null,
    Bool(bool),
    Number(Number),
    Text(String),
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

/// A key with its place.
#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) place: Place,
}

impl Node {
    pub(crate) fn new(data: Data, place: Place) -> Node {
        Node { data, place, from_environment: false }
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    /// The text, if it is one.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key, if this is a map that has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entry(name).map(|(_, node)| node)
    }

    /// A key with its value, if this is a map that has it.
    pub(crate) fn entry(&self, name: &str) -> Option<&(Key, Node)> {
        match &self.data {
            Data::Map(entries) => entries.iter().find(|(key, _)| key.name == name),
            _ => None,
        }
    }

    /// The value without its places.
    pub(crate) fn to_json(&self) -> Value {
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
    pub(crate) fn describe(&self) -> &'static str {
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
    pub(crate) fn opening(&self) -> Place {
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
    pub(crate) fn find(&self, path: &[Step<'_>]) -> (Option<&Key>, &Node) {
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
pub(crate) fn to_object(entries: &[(Key, Node)]) -> Map<String, Value> {
    entries.iter().map(|(key, node)| (key.name.clone(), node.to_json())).collect()
}
