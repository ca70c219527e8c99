//! The model: `configuration` is the connection, the provider and the id; `parameters` are the options.

use super::{Upgrade, is_reference, map, named};
use crate::node::{Data, Key, Node};
use crate::source::Place;

/// Options that have another name.
const OPTIONS: [(&str, &str); 6] = [
    ("max_tokens", "maxOutputTokens"),
    ("max_completion_tokens", "maxOutputTokens"),
    ("top_p", "topP"),
    ("frequency_penalty", "frequencyPenalty"),
    ("presence_penalty", "presencePenalty"),
    ("stop", "stopSequences"),
];
/// Options that have the same name in all versions.
const SAME: [&str; 10] = [
    "temperature",
    "seed",
    "maxOutputTokens",
    "topP",
    "topK",
    "frequencyPenalty",
    "presencePenalty",
    "stopSequences",
    "allowMultipleToolCalls",
    "additionalProperties",
];
/// Keys that a connection has only in an old file.
const CONNECTION: [&str; 5] = ["type", "azure_deployment", "azure_endpoint", "api_key", "api_version"];

/// The first key that Prompty 2 does not have, and whether only Prompty 1 has it.
pub(super) fn mark(model: &Node) -> (Option<Place>, bool) {
    let Data::Map(entries) = &model.data else { return (None, false) };
    let mut mark = None;
    let mut is_one = false;
    for (key, node) in entries {
        let found = match key.name.as_str() {
            "configuration" | "parameters" => {
                is_one = true;
                Some(key)
            }
            "api" => Some(key),
            "connection" if node.text().is_some() && !is_reference(node) => Some(key),
            "connection" if node.get("kind").is_none() => first(node, &CONNECTION),
            "options" => first(node, &OPTIONS.map(|(old, _)| old)),
            _ => None,
        };
        mark = mark.or(found);
    }
    (mark.map(|key| key.place.clone()), is_one)
}

fn first<'n>(node: &'n Node, names: &[&str]) -> Option<&'n Key> {
    let Data::Map(entries) = &node.data else { return None };
    entries.iter().map(|(key, _)| key).find(|key| names.contains(&key.name.as_str()))
}

/// The parts of a model, as they are found.
#[derive(Default)]
struct Parts {
    own: Vec<(Key, Node)>,
    connection: Vec<(Key, Node)>,
    options: Vec<(Key, Node)>,
    additional: Vec<(Key, Node)>,
    tools: Option<(Key, Node)>,
}

impl Parts {
    /// Sets a key of the model that the file does not have yet.
    fn set(&mut self, name: &str, at: &Key, node: Node) {
        if !self.own.iter().any(|(key, _)| key.name == name) {
            self.own.push((named(name, at), node));
        }
    }
}

impl Upgrade<'_> {
    /// The model, and the tools that Prompty 1 has among its parameters.
    pub(super) fn model(&mut self, node: Node) -> (Node, Option<(Key, Node)>) {
        let place = node.place.clone();
        let Data::Map(entries) = node.data else { return (node, None) };
        let mut parts = Parts::default();
        let (mut connection, mut options) = (None, None);
        for (key, node) in entries {
            match key.name.as_str() {
                "api" => {
                    self.renamed(&key, "`model.api` is `model.apiType`".into());
                    parts.set("apiType", &key, node);
                }
                "configuration" => {
                    self.renamed(&key, "`model.configuration` is `model.connection`".into());
                    connection = Some((key, node));
                }
                "connection" if node.get("kind").is_none() => connection = Some((key, node)),
                "parameters" => {
                    self.renamed(&key, "`model.parameters` is `model.options`".into());
                    options = Some((key, node));
                }
                "options" => options = Some((key, node)),
                _ => parts.own.push((key, node)),
            }
        }
        if let Some((key, node)) = connection {
            let node = self.follow(&node);
            self.connection(&key, node, &mut parts);
        }
        if let Some((key, node)) = options {
            let node = self.follow(&node);
            self.options(&key, node, &mut parts);
        }
        (map(parts.own, place), parts.tools)
    }

    fn connection(&mut self, owner: &Key, node: Node, parts: &mut Parts) {
        let place = node.place.clone();
        let text = |text: &str| Node::new(Data::Text(text.to_owned()), owner.place.clone());
        let entries = match node.data {
            Data::Map(entries) => entries,
            // Prompt flow names a connection that the host knows.
            Data::Text(_) if !is_reference(&node) => vec![(named("connection", owner), node)],
            _ => return parts.set("connection", owner, node),
        };
        for (key, node) in entries {
            match key.name.as_str() {
                "type" => match node.text() {
                    Some(kind) if !is_reference(&node) => {
                        let provider = provider_of(kind);
                        self.renamed(&key, format!("`type: {kind}` is `model.provider: {provider}`"));
                        parts.set("provider", &key, text(provider));
                    }
                    _ => parts.set("provider", &key, node),
                },
                "azure_deployment" | "model" => {
                    self.renamed(&key, format!("`{}` is `model.id`", key.name));
                    parts.set("id", &key, node);
                }
                "azure_endpoint" | "base_url" => {
                    self.renamed(&key, format!("`{}` is `model.connection.endpoint`", key.name));
                    parts.connection.push((named("endpoint", &key), node));
                }
                "api_key" => {
                    self.renamed(&key, "`api_key` is `model.connection.apiKey`".into());
                    parts.connection.push((named("apiKey", &key), node));
                }
                "connection" => {
                    parts.connection.push((named("kind", &key), text("reference")));
                    parts.connection.push((named("name", &key), node));
                }
                _ => parts.connection.push((key, node)),
            }
        }
        let mut connection = std::mem::take(&mut parts.connection);
        if connection.is_empty() {
            return;
        }
        if !connection.iter().any(|(key, _)| key.name == "kind") {
            connection.insert(0, (named("kind", owner), text("key")));
        }
        parts.set("connection", owner, map(connection, place));
    }

    fn options(&mut self, owner: &Key, node: Node, parts: &mut Parts) {
        let place = node.place.clone();
        let Data::Map(entries) = node.data else { return parts.set("options", owner, node) };
        for (key, node) in entries {
            let name = key.name.as_str();
            if let Some((old, new)) = OPTIONS.into_iter().find(|(old, _)| *old == name) {
                self.renamed(&key, format!("`{old}` is `model.options.{new}`"));
                let node = match node.data {
                    Data::Text(_) if old == "stop" => {
                        let place = node.place.clone();
                        Node::new(Data::List(vec![node]), place)
                    }
                    _ => node,
                };
                parts.options.push((named(new, &key), node));
            } else if name == "tools" {
                self.renamed(&key, "`model.parameters.tools` is `tools`".into());
                parts.tools = Some((key, node));
            } else if name == "deployment_name" {
                self.renamed(&key, "`deployment_name` is `model.id`".into());
                parts.set("id", &key, node);
            } else if SAME.contains(&name) {
                parts.options.push((key, node));
            } else {
                parts.additional.push((key, node));
            }
        }
        let (mut options, more) = (std::mem::take(&mut parts.options), std::mem::take(&mut parts.additional));
        super::merge(&mut options, "additionalProperties", more);
        if !options.is_empty() {
            parts.set("options", owner, map(options, place));
        }
    }
}

/// The provider that a type of configuration is called in Prompty 2.
fn provider_of(kind: &str) -> &str {
    match kind {
        "serverless" | "azure_serverless" => "foundry",
        kind if kind.starts_with("azure") => "foundry",
        kind if kind.starts_with("openai") => "openai",
        other => other,
    }
}
