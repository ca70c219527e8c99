//! The front matter of a tree of sections.

use std::sync::Arc;

use serde_json::Map;

use super::SectionsReader;
use super::{Front, INPUTS};
use crate::chat::output::{Container, OutputSpec};
use crate::error::{did_you_mean, nearest};
use crate::node::{Data, Node};
use crate::prompt::{Kind, Property, Record};
use crate::sections::{Headings, Missing, check_key};
use crate::template::jinja::fence::is_label;
use crate::variables::{SESSION, SYSTEM};

/// The keys of front matter that mean something.
pub const KEYS: [&str; 12] = [
    "ns",
    "key",
    "name",
    "description",
    "metadata",
    "inputs",
    "output",
    "headings",
    "missing",
    "model",
    "engine",
    "kind",
];
/// The kinds that a property may have here.
const KINDS: [&str; 8] = ["string", "integer", "float", "number", "boolean", "array", "object", "union"];
/// The key of an input whose values are fenced.
const FENCE: &str = "fence";
const OUTPUT_KEYS: [&str; 3] = ["container", "properties", "allow_extra_keys"];

impl Default for Front {
    fn default() -> Front {
        Front {
            ns: "prompts".to_owned(),
            key: None,
            name: None,
            description: None,
            metadata: Map::new(),
            inputs: Vec::new(),
            fences: Vec::new(),
            output: None,
            outputs: Vec::new(),
            headings: Headings::default(),
            missing: Missing::default(),
            model: None,
            engine: "dollar".to_owned(),
            engines: Vec::new(),
        }
    }
}

impl SectionsReader {
    pub(super) fn front(&mut self, root: &Node) -> Front {
        let mut front = Front::default();
        let Data::Map(entries) = &root.data else { return front };
        for (key, node) in entries {
            match key.name.as_str() {
                "ns" => front.ns = self.key_text(node, "`ns`").unwrap_or(front.ns),
                "key" => front.key = self.key_text(node, "`key`"),
                "name" => front.name = self.text(node, "`name`"),
                "description" => front.description = self.text(node, "`description`"),
                "metadata" => front.metadata = self.object(node, "`metadata`"),
                "inputs" => {
                    let (rest, fences) = self.fences(node);
                    (front.inputs, front.fences) = (self.inputs(&rest), fences);
                }
                "output" => self.output(node, &mut front),
                "headings" => {
                    let named = [("plain", Headings::Plain), ("numbered", Headings::Numbered)];
                    front.headings = self.one_of(node, "`headings`", &named).unwrap_or_default();
                }
                "missing" => {
                    let named = [("error", Missing::Error), ("keep", Missing::Keep)];
                    front.missing = self.one_of(node, "`missing`", &named).unwrap_or_default();
                }
                "model" => front.model = self.model(node),
                "engine" => {
                    if let Some(engine) = self.text(node, "`engine`") {
                        front.engines.push((engine.clone(), node.place.clone()));
                        front.engine = engine;
                    }
                }
                "kind" if node.text() == Some("sections") => {}
                _ => self.extra("the front matter", key, &KEYS[..KEYS.len() - 1]),
            }
        }
        front
    }

    /// A key of the prompt or of a section.
    pub(super) fn key_text(&mut self, node: &Node, what: &str) -> Option<String> {
        let key = self.text(node, what)?;
        match check_key(what, &key) {
            Ok(()) => Some(key),
            Err(error) => {
                self.fault(error.diagnostic().clone().at(node.place.clone()), "invalid_definition");
                None
            }
        }
    }

    /// One of a few words.
    pub(super) fn one_of<T: Copy>(&mut self, node: &Node, what: &str, named: &[(&str, T)]) -> Option<T> {
        let found = named.iter().find(|(name, _)| node.text() == Some(name));
        if found.is_none() && !node.is_null() {
            let names: Vec<String> = named.iter().map(|(name, _)| format!("`{name}`")).collect();
            let wanted = names.join(" or ");
            self.mismatch(node, what, &wanted, format!("write {wanted}"));
        }
        found.map(|(_, value)| *value)
    }

    /// Takes `fence` out of the inputs: only sections have it. Templates have a filter.
    fn fences(&mut self, node: &Node) -> (Node, Vec<(String, String)>) {
        let mut rest = node.clone();
        let mut found = Vec::new();
        let inputs: Vec<(String, &mut Node)> = match &mut rest.data {
            Data::Map(entries) => entries.iter_mut().map(|(key, input)| (key.name.clone(), input)).collect(),
            Data::List(items) => {
                let name = |item: &Node| item.get("name").and_then(Node::text).unwrap_or_default().to_owned();
                items.iter_mut().map(|item| (name(item), item)).collect()
            }
            _ => Vec::new(),
        };
        for (name, input) in inputs {
            let Data::Map(entries) = &mut input.data else { continue };
            let Some(at) = entries.iter().position(|(key, _)| key.name == FENCE) else { continue };
            let (_, label) = entries.remove(at);
            found.extend(self.label(&name, &label).map(|label| (name, label)));
        }
        (rest, found)
    }

    /// The name of the tags around an input: its own name for `true`.
    fn label(&mut self, input: &str, node: &Node) -> Option<String> {
        let what = format!("`{INPUTS}.{input}.{FENCE}`");
        match &node.data {
            Data::Bool(is_fenced) => is_fenced.then(|| input.to_owned()),
            Data::Null => None,
            Data::Text(label) if is_label(label) => Some(label.clone()),
            _ => {
                let hint = "a tag begins with a letter or `_` and has letters, digits, `_`, `.` and `-`";
                self.mismatch(node, &what, "`true`, `false` or the name of a tag", hint);
                None
            }
        }
    }

    fn inputs(&mut self, node: &Node) -> Vec<Property> {
        let mut inputs = self.properties(node, INPUTS);
        for input in &inputs {
            let Some(place) = input.place.clone() else { continue };
            if let Some(rich) = input.rich() {
                let message = format!("an input of a section tree cannot have the kind `{}`", rich.as_str());
                let hint = "sections are one message; put conversations and images into separate messages";
                self.wrong(&place, message, hint);
            }
            if [SYSTEM, SESSION].contains(&input.name.as_str()) {
                let message = format!("an input cannot have the reserved name `{}`", input.name);
                self.wrong(&place, message, "choose another name");
            }
        }
        inputs.retain(|input| input.rich().is_none());
        self.known_kinds(&inputs);
        inputs
    }

    /// Notes unknown kinds: any value would fit them, which is hardly the intent of a typo.
    pub(super) fn known_kinds(&mut self, properties: &[Property]) {
        for property in properties {
            match &property.kind {
                Kind::Custom(name) if name != "any" => {
                    let Some(place) = &property.place else { continue };
                    let message = format!("unknown kind `{name}`: `{}` accepts any value", property.name);
                    let hint = did_you_mean(&nearest(name, KINDS))
                        .unwrap_or_else(|| format!("known kinds: {}", KINDS.join(", ")));
                    self.strange(place, message, hint);
                }
                Kind::Object { properties } => self.known_kinds(properties),
                Kind::Array { items } => self.known_kinds(std::slice::from_ref(&**items)),
                Kind::Union { of, .. } => self.known_kinds(of),
                _ => {}
            }
        }
    }

    /// What an answer holds: properties, or a map that says more about them.
    fn output(&mut self, node: &Node, front: &mut Front) {
        let is_spelt_out = match &node.data {
            Data::Map(entries) => {
                let has = |name: &str| entries.iter().any(|(key, _)| key.name == name);
                has("container")
                    || (has("properties")
                        && entries.iter().all(|(key, _)| OUTPUT_KEYS.contains(&key.name.as_str())))
            }
            _ => false,
        };
        let (mut container, mut extras, mut properties) = (Container::Object, false, Vec::new());
        if is_spelt_out {
            for (key, node) in self.entries(node, "`output`") {
                match key.name.as_str() {
                    "container" => {
                        let named = [("object", Container::Object), ("array", Container::Array)];
                        container = self.one_of(node, "`output.container`", &named).unwrap_or(container);
                    }
                    "properties" => properties = self.properties(node, "output.properties"),
                    "allow_extra_keys" => {
                        extras = self.flag(node, "`output.allow_extra_keys`").unwrap_or_default();
                    }
                    _ => self.extra("`output`", key, &OUTPUT_KEYS),
                }
            }
        } else {
            properties = self.properties(node, "output");
        }
        if properties.is_empty() {
            if is_spelt_out {
                let hint = "add `properties: {…}`, the fields of an answer";
                self.wrong(&node.opening(), "`output` has no `properties`", hint);
            }
            return;
        }
        self.known_kinds(&properties);
        let record = Arc::new(Record::from_properties("Output", &properties));
        front.output = Some(OutputSpec { record, container, allow_extra_keys: extras });
        front.outputs = match container {
            Container::Object => properties,
            // Providers want an object, so a list stands in one.
            Container::Array => {
                let item = Property::new("", Kind::Object { properties });
                let mut items = Property::new("items", Kind::Array { items: Box::new(item) });
                items.required = true;
                items.place = Some(node.opening());
                vec![items]
            }
        };
    }
}
