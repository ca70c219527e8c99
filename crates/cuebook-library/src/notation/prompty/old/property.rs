//! Inputs, outputs and parameters: `type` is `kind`. A `sample` at an input is its default, and one at the top an example.

use super::{Upgrade, is_reference, map, named};
use crate::node::{Data, Key, Node};
use crate::notation::prompty::property::value_kind;
use crate::prompt::Kind;
use crate::source::Place;

/// Keys that only a property has. A map without any of them is a value.
const KEYS: [&str; 12] = [
    "kind",
    "type",
    "name",
    "description",
    "required",
    "nullable",
    "default",
    "sample",
    "example",
    "enum",
    "enumValues",
    "items",
];

/// The properties of a list or a map that are written out.
pub(super) fn each(node: &Node) -> Vec<&Node> {
    match &node.data {
        Data::List(items) => items.iter().collect(),
        Data::Map(entries) => entries.iter().map(|(_, node)| node).collect(),
        _ => Vec::new(),
    }
}

/// The first key that Prompty 2 does not have.
pub(super) fn mark(node: &Node) -> Option<Place> {
    each(node).into_iter().filter(|property| property.get("kind").is_none()).find_map(|property| {
        // A property of Prompty 2 that is called `type` or `sample` holds a map.
        let old = ["type", "sample"].into_iter().filter_map(|old| property.entry(old));
        old.into_iter().find(|(_, node)| !matches!(node.data, Data::Map(_))).map(|(key, _)| key.place.clone())
    })
}

/// The kind that a type is called in Prompty 2.
fn kind_of(kind: &str) -> &str {
    match kind {
        "list" => "array",
        "dict" => "object",
        "str" => "string",
        "int" => "integer",
        "bool" => "boolean",
        "double" => "float",
        other => other,
    }
}

/// The kind of a value, also of one that does not stand for a property in Prompty 2.
fn kind_of_value(node: &Node) -> String {
    match &node.data {
        Data::Map(_) => "object".to_owned(),
        _ => value_kind(node).as_ref().map_or("string", Kind::as_str).to_owned(),
    }
}

/// A property of a kind, with what that kind needs.
fn of_kind(kind: &str, at: &Key, mut entries: Vec<(Key, Node)>) -> Vec<(Key, Node)> {
    let text = |text: &str| Node::new(Data::Text(text.to_owned()), at.place.clone());
    if !entries.iter().any(|(key, _)| key.name == "kind") {
        entries.insert(0, (named("kind", at), text(kind)));
    }
    if kind == "array" && !entries.iter().any(|(key, _)| key.name == "items") {
        let any = map(vec![(named("kind", at), text("any"))], at.place.clone());
        entries.push((named("items", at), any));
    }
    entries
}

impl Upgrade<'_> {
    /// Properties in a list or in a map from names.
    pub(super) fn properties(&mut self, node: Node, at: &str) -> Node {
        let place = node.place.clone();
        let data = match node.data {
            Data::List(items) => {
                let upgrade = |node: Node| {
                    let name = node.get("name").and_then(Node::text).unwrap_or_default().to_owned();
                    let key = Key { name, place: node.opening() };
                    self.property(&key, node, at)
                };
                Data::List(items.into_iter().map(upgrade).collect())
            }
            Data::Map(entries) => {
                let upgrade = |(key, node): (Key, Node)| {
                    let node = self.property(&key, node, at);
                    (key, node)
                };
                Data::Map(entries.into_iter().map(upgrade).collect())
            }
            other => other,
        };
        Node { data, place, from_environment: node.from_environment }
    }

    /// A property. A value that stands for one is its default, also if it is a map.
    pub(super) fn property(&mut self, owner: &Key, node: Node, at: &str) -> Node {
        let Data::Map(entries) = node.data else { return node };
        if !entries.iter().any(|(key, _)| KEYS.contains(&key.name.as_str())) {
            let value = map(entries, node.place.clone());
            let entries = of_kind("object", owner, vec![(named("default", owner), value)]);
            return map(entries, node.place);
        }
        let has = |name: &str| entries.iter().any(|(key, _)| key.name == name);
        let (has_kind, has_sample, has_example) = (has("kind"), has("sample"), has("example"));
        let guess = entries.iter().find(|(key, _)| matches!(key.name.as_str(), "sample" | "default"));
        let mut kind = guess.map_or_else(|| "string".to_owned(), |(_, value)| kind_of_value(value));
        let mut out = Vec::new();
        for (key, node) in entries {
            match key.name.as_str() {
                "type" | "kind" if key.name == "kind" || !has_kind => {
                    let Some(text) = node.text() else {
                        out.push((named("kind", &key), node));
                        continue;
                    };
                    kind = kind_of(text).to_owned();
                    if key.name == "type" {
                        self.renamed(&key, format!("`{at}.{}.type` is `kind`", owner.name));
                    }
                    let data = Data::Text(kind.clone());
                    out.push((named("kind", &key), Node { data, ..node }));
                }
                "sample" => {
                    self.renamed(&key, format!("`{at}.{}.sample` is `default`", owner.name));
                    out.push((named("default", &key), node));
                }
                "default" if has_sample => {}
                "enum" => out.push((named("enumValues", &key), node)),
                // A JSON schema lists names there, which its parameters say one by one.
                "required" if matches!(node.data, Data::List(_)) => {}
                "default" if at == "inputs" && self.old.version == super::Version::One && !node.is_null() => {
                    if self.reads_one() {
                        self.old.unused_defaults.push((owner.name.clone(), key.place.clone()));
                        if !has_example {
                            out.push((named("example", &key), node));
                        }
                        continue;
                    }
                    self.old.unused_defaults.push((owner.name.clone(), key.place.clone()));
                    out.push((key, node));
                }
                "items" => {
                    let node = self.property(&key, node, at);
                    out.push((key, node));
                }
                "properties" => {
                    let node = self.properties(node, at);
                    out.push((key, node));
                }
                _ => out.push((key, node)),
            }
        }
        map(of_kind(&kind, owner, out), node.place)
    }

    /// Samples at the top, as examples of the inputs.
    pub(super) fn samples(&mut self, key: &Key, samples: Node, top: &mut Vec<(Key, Node)>) {
        let Data::Map(samples) = samples.data else {
            if is_reference(&samples) {
                self.lost(key, "`sample` is ignored: its file cannot be read");
            }
            return;
        };
        self.renamed(key, "`sample` is `example`, at each input".into());
        let at = top.iter().position(|(key, _)| key.name == "inputs").unwrap_or_else(|| {
            top.push((named("inputs", key), map(Vec::new(), key.place.clone())));
            top.len() - 1
        });
        for (name, value) in samples {
            let example = (named("example", &name), value);
            let inputs = &mut top[at].1;
            match &mut inputs.data {
                Data::Map(entries) => match entries.iter_mut().find(|(key, _)| key.name == name.name) {
                    Some((_, input)) => add(input, example),
                    None => {
                        let kind = kind_of_value(&example.1);
                        let input = map(of_kind(&kind, &name, vec![example]), name.place.clone());
                        entries.push((name, input));
                    }
                },
                Data::List(items) => {
                    let is_same =
                        |item: &&mut Node| item.get("name").and_then(Node::text) == Some(&name.name);
                    if let Some(input) = items.iter_mut().find(is_same) {
                        add(input, example);
                    }
                }
                _ => {}
            }
        }
    }
}

/// Adds an example to an input that is written out and has none.
fn add(input: &mut Node, example: (Key, Node)) {
    if let Data::Map(entries) = &mut input.data {
        entries.retain(|(key, _)| key.name != "example");
        entries.push(example);
    }
}
