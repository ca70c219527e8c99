//! Tools: those of OpenAI's requests, which Prompty 1 has among its parameters, and those with an `id` and a `type`.

use super::{Upgrade, map, named};
use crate::node::{Data, Key, Node};
use crate::source::Place;

/// The first key that Prompty 2 does not have.
pub(super) fn mark(node: &Node) -> Option<Place> {
    let tools = super::property::each(node).into_iter().filter(|tool| tool.get("kind").is_none());
    let mut keys = tools.filter_map(|tool| tool.entry("id").or_else(|| tool.entry("type")));
    keys.next().map(|(key, _)| key.place.clone())
}

impl Upgrade<'_> {
    /// Tools in a list or in a map from names.
    pub(super) fn tools(&mut self, node: Node) -> Node {
        let node = self.follow(&node);
        let place = node.place.clone();
        let data = match node.data {
            Data::List(items) => {
                let list = items.into_iter().map(|item| self.tool(item, true)).collect();
                Data::List(list)
            }
            Data::Map(entries) => {
                let tool = |(key, node): (Key, Node)| {
                    let node = self.tool(node, false);
                    (key, node)
                };
                Data::Map(entries.into_iter().map(tool).collect())
            }
            other => other,
        };
        Node { data, place, from_environment: node.from_environment }
    }

    fn tool(&mut self, node: Node, needs_name: bool) -> Node {
        let place = node.place.clone();
        let Data::Map(entries) = node.data else { return node };
        if entries.iter().any(|(key, _)| key.name == "kind") {
            return map(entries, place);
        }
        let mut out: Vec<(Key, Node)> = Vec::new();
        for (key, node) in entries {
            match key.name.as_str() {
                "id" => {
                    self.renamed(&key, "`id` of a tool is `name`".into());
                    out.push((named("name", &key), node));
                }
                "type" => {
                    self.renamed(&key, "`type` of a tool is `kind`".into());
                    out.push((named("kind", &key), node));
                }
                "function" => match node.data {
                    Data::Map(inner) => out.extend(inner),
                    _ => out.push((key, node)),
                },
                _ => out.push((key, node)),
            }
        }
        for (key, node) in &mut out {
            if key.name == "parameters" {
                let old = std::mem::replace(node, Node::new(Data::Null, node.place.clone()));
                *node = self.parameters(old);
            }
        }
        // A tool of a host's may have no name besides its type.
        let kind = out.iter().find(|(key, _)| key.name == "kind").cloned();
        if let Some((key, kind)) =
            kind.filter(|_| needs_name && !out.iter().any(|(key, _)| key.name == "name"))
        {
            out.insert(0, (named("name", &key), kind));
        }
        map(out, place)
    }

    /// Parameters: properties, or a JSON schema of an object.
    fn parameters(&mut self, node: Node) -> Node {
        let is_schema = node.get("type").and_then(Node::text) == Some("object");
        let (Some(properties), true) = (node.get("properties").cloned(), is_schema) else {
            return if is_schema {
                Node::new(Data::Null, node.place)
            } else {
                self.properties(node, "parameters")
            };
        };
        let required: Vec<String> = match node.get("required").map(|required| &required.data) {
            Some(Data::List(names)) => names.iter().filter_map(Node::text).map(str::to_owned).collect(),
            _ => Vec::new(),
        };
        let mut properties = self.properties(properties, "parameters");
        if let Data::Map(entries) = &mut properties.data {
            for (key, node) in entries.iter_mut().filter(|(key, _)| required.contains(&key.name)) {
                if let Data::Map(property) = &mut node.data {
                    property.push((named("required", key), Node::new(Data::Bool(true), key.place.clone())));
                }
            }
        }
        properties
    }
}
