//! What a prompt takes and what its model answers.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value as Json};

use super::picoschema::{self, Names};
use super::{Front, wrong};
use crate::dialect::Reading;
use crate::error::{Code, Diagnostic, ErrorKind, Result, Severity};
use crate::json::Document;
use crate::node::{Data, Node};
use crate::prompt::{Need, Property, Record, Type, Variable};
use crate::source::Place;
use crate::template::engine::Loader as _;
use crate::yaml;

/// What a prompt takes.
pub(super) struct Inputs {
    pub(super) variables: Vec<Variable>,
    /// Whether a schema says what it takes.
    pub(super) is_declared: bool,
    pub(super) defaults: Map<String, Json>,
}

impl Inputs {
    pub(super) fn read(front: &Front, names: Names<'_>) -> Result<Inputs> {
        let input = map_of(&front.root, "input")?;
        let defaults = match input.and_then(|input| input.get("default")) {
            None => Map::new(),
            Some(node) => match node.to_json() {
                Json::Object(defaults) => defaults,
                Json::Null => Map::new(),
                _ => {
                    let message = format!("`input.default` must be a map, but is {}", node.describe());
                    return Err(wrong(node.opening(), message, "write `default: {name: value}`"));
                }
            },
        };
        let node = input.and_then(|input| input.get("schema"));
        let schema = node.map(|node| picoschema::to_json_schema(node, names)).transpose()?;
        let mut variables = Vec::new();
        let required = schema.as_ref().and_then(|schema| schema["required"].as_array());
        let required: HashSet<&str> = required.into_iter().flatten().filter_map(Json::as_str).collect();
        let places = node.map(declared).unwrap_or_default();
        let properties =
            schema.as_ref().and_then(|schema| schema.get("properties")).and_then(Json::as_object);
        for (name, property) in properties.into_iter().flatten() {
            let default = defaults.get(name).or_else(|| property.get("default")).cloned();
            let need = if required.contains(name.as_str()) && default.is_none() {
                Need::Required
            } else {
                Need::Optional
            };
            variables.push(Variable {
                kind: kind_of(property),
                description: property["description"].as_str().map(str::to_owned),
                default,
                choices: property["enum"].as_array().cloned().unwrap_or_default(),
                // Null is a value of everything that is optional.
                lenient: need == Need::Optional,
                place: places.get(name.as_str()).map(|place| (*place).clone()),
                ..Variable::new(name, need)
            });
        }
        let is_declared = properties.is_some();
        let is_property = |name: &str| properties.is_some_and(|properties| properties.contains_key(name));
        for (name, value) in defaults.iter().filter(|(name, _)| is_declared && !is_property(name)) {
            let default = Some(value.clone());
            variables.push(Variable { default, lenient: true, ..Variable::new(name, Need::Optional) });
        }
        Ok(Inputs { variables, is_declared, defaults })
    }
}

/// The names that a schema declares, each with the place of its key.
fn declared(schema: &Node) -> HashMap<&str, &Place> {
    let schema = match schema.get("properties") {
        Some(properties @ Node { data: Data::Map(_), .. }) => properties,
        _ => schema,
    };
    let Data::Map(entries) = &schema.data else { return HashMap::new() };
    let mut places = HashMap::new();
    for (key, _) in entries {
        let (name, _) = key.name.split_once('(').unwrap_or((&key.name, ""));
        places.entry(name.trim_end_matches('?')).or_insert(&key.place);
    }
    places
}

fn kind_of(property: &Json) -> Type {
    let name = match &property["type"] {
        Json::Array(several) => several.iter().filter_map(Json::as_str).find(|name| *name != "null"),
        other => other.as_str(),
    };
    match name {
        Some("string") => Type::String,
        Some("integer") => Type::Integer,
        Some("number") => Type::Number,
        Some("boolean") => Type::Boolean,
        Some("array") => Type::List,
        Some("object") => Type::Object,
        _ => Type::Any,
    }
}

/// A part of the front matter that is a map.
pub(super) fn map_of<'n>(root: &'n Node, key: &str) -> Result<Option<&'n Node>> {
    match root.get(key) {
        None | Some(Node { data: Data::Null, .. }) => Ok(None),
        Some(node @ Node { data: Data::Map(_), .. }) => Ok(Some(node)),
        Some(node) => {
            let message = format!("`{key}` must be a map, but is {}", node.describe());
            Err(wrong(node.opening(), message, "write its keys below it, indented"))
        }
    }
}

/// What the answer of the model holds; nothing if it is text.
pub(super) fn outputs(front: &Front, names: Names<'_>, notes: &mut Vec<Diagnostic>) -> Result<Vec<Property>> {
    let Some(node) = map_of(&front.root, "output")?.and_then(|output| output.get("schema")) else {
        return Ok(Vec::new());
    };
    let schema = picoschema::to_json_schema(node, names)?;
    properties(&schema, node, notes)
}

/// The properties of an object. A schema of anything else is noted: an interface can only be asked for objects.
pub(super) fn properties(schema: &Json, node: &Node, notes: &mut Vec<Diagnostic>) -> Result<Vec<Property>> {
    match schema["type"].as_str() {
        Some("object")
            if schema.get("properties").and_then(Json::as_object).is_some_and(|map| !map.is_empty()) =>
        {
            let record = Record::from_json_schema(schema)
                .map_err(|error| error.map(|found| found.at(node.opening())))?;
            Ok(record.to_properties())
        }
        None | Some("string") => Ok(Vec::new()),
        Some(other) => {
            let message = format!(
                "no model is asked to keep to the schema, because it is no object with names but `{other}`"
            );
            let note = Diagnostic::new(Code::UnsupportedSchema, message).severity(Severity::Note);
            notes.push(note.at(node.opening()).hint("put the value into an object: `result: …`"));
            Ok(Vec::new())
        }
    }
}

/// The schema of a name: the file `schemas/NAME.json` or `schemas/NAME.yaml` in a folder of prompts.
pub(super) fn named(reading: &Reading<'_>, name: &str) -> Result<Option<Json>> {
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'));
    if !is_name || name.is_empty() || name.starts_with('.') {
        return Ok(None);
    }
    let parent = reading.offer().file();
    if let Some(source) = reading.loader.load(&format!("schemas/{name}.json"), &parent)? {
        return Document::parse(&source, Code::BadFrontMatter, ErrorKind::PromptRead)
            .map(|document| Some(document.into_value()));
    }
    match reading.loader.load(&format!("schemas/{name}.yaml"), &parent)? {
        Some(source) => {
            let range = 0..source.text().len();
            let document =
                yaml::Document::parse(&source, range, Code::BadFrontMatter, ErrorKind::PromptRead)?;
            Ok(Some(document.into_root().to_json()))
        }
        None => Ok(None),
    }
}
