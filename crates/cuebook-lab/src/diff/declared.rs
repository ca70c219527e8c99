//! What the files of a version declare, as one list of named things.

use std::collections::BTreeMap;
use std::collections::HashMap;

use serde_json::{Map, Value as Json, json};

use super::entry::{Aspect, Declared};
use super::rendering::Outcome;
use super::version::Version;
use crate::dialect::directive::Directive;
use crate::dialect::python;
use crate::dialect::template::DEFINITIONS;
use crate::prepared::Prepared;
use crate::prompt::{Prompt, Variable, Visibility};
use crate::sections::{Body, SectionState, Tree};

/// Everything that a version declares, in the order of its files. What became of sections is taken from the renders.
pub(super) fn of(version: &Version<'_>, own: &Outcome, other: &Outcome) -> Vec<Declared> {
    let prepared = version.prepared();
    let prompt = prepared.prompt();
    let directive = prepared.directive();
    let mut list = about(prompt, directive.is_some());
    list.extend(prompt.variables.iter().map(variable));
    list.extend(undeclared(prepared));
    list.extend(model(prompt));
    list.extend(format(prompt));
    list.extend(tools(prompt));
    if let Some(tree) = prepared.tree() {
        list.extend(sections(tree, own, other));
    }
    let outputs = prompt.outputs.iter();
    let shown_outputs = shown(prompt, "outputs");
    list.extend(outputs.map(|output| named(Aspect::Output, &output.name, output.to_json(), &shown_outputs)));
    list.extend(prompt.permissions.granted().into_iter().map(|name| flag(Aspect::Permission, name)));
    if let Json::Object(limits) = prompt.limits.to_json() {
        list.extend(limits.into_iter().map(|(name, value)| Declared::new(Aspect::Limit, name, value)));
    }
    list.extend(prompt.hooks.iter().map(|hook| flag(Aspect::Hook, &hook.name)));
    // The definitions in the file are identified by what they define; everything else may take part in a render.
    if let Some(code) = prompt.code.as_ref().filter(|_| !prompt.hooks.is_empty()) {
        let code = python::without(code, &DEFINITIONS);
        list.push(Declared::new(Aspect::Hook, "prompt.py", json!(code.trim())));
    }
    list.extend(prepared.namespaces().map(|name| flag(Aspect::Provider, &name)));
    if let Some(directive) = directive {
        list.extend(of_directive(prepared, directive));
    }
    list
}

/// Something that is there or not.
fn flag(aspect: Aspect, name: &str) -> Declared {
    Declared::new(aspect, name, json!({}))
}

/// What a prompt shows of a list of named things, by name: without their secrets.
fn shown(prompt: &Prompt, key: &str) -> HashMap<String, Json> {
    let mut shown = HashMap::new();
    if let Json::Array(list) = prompt.to_json()[key].take() {
        for item in list {
            let name = item["name"].as_str().unwrap_or_default().to_owned();
            shown.entry(name).or_insert(item);
        }
    }
    shown
}

/// Something whose JSON has its name, and that may hold secrets.
fn named(aspect: Aspect, name: &str, value: Json, shown: &HashMap<String, Json>) -> Declared {
    let without_name = |mut value: Json| {
        value.as_object_mut().and_then(|object| object.shift_remove("name"));
        value
    };
    let shown = shown.get(name).cloned().unwrap_or_else(|| value.clone());
    Declared { aspect, name: name.to_owned(), value: without_name(value), shown: without_name(shown) }
}

fn about(prompt: &Prompt, is_directive: bool) -> Vec<Declared> {
    let metadata = &prompt.metadata;
    let mut list = Vec::new();
    let mut add = |name: &str, value: Json| {
        if !value.is_null() {
            list.push(Declared::new(Aspect::About, name, value));
        }
    };
    add("name", json!(metadata.name));
    add("version", json!(metadata.version));
    add("type", json!(metadata.kind));
    add("extends", json!(metadata.extends));
    add("description", json!(metadata.description));
    let shown = prompt.to_json()["metadata"].take();
    for (name, value) in &metadata.extra {
        // These have aspects of their own.
        let elsewhere = ["limits", "permissions", "acknowledged_risks", "context", "outputs", "acknowledged"];
        if is_directive && elsewhere.contains(&name.as_str()) {
            continue;
        }
        let shown = shown[name].clone();
        list.push(Declared { aspect: Aspect::About, name: name.clone(), value: value.clone(), shown });
    }
    list
}

fn variable(variable: &Variable) -> Declared {
    let fields = |default: Option<Json>| {
        let mut fields = Map::new();
        fields.insert("need".into(), json!(variable.need.as_str()));
        if let Json::Object(object) = variable.to_json() {
            fields.extend(object.into_iter().filter(|(key, _)| key != "name"));
        }
        if let Some(default) = default {
            fields.insert("default".into(), default);
        }
        Json::Object(fields)
    };
    Declared {
        aspect: Aspect::Variable,
        name: variable.name.clone(),
        value: fields(variable.default.clone()),
        shown: fields(None),
    }
}

/// Variables that templates read and that are not declared.
fn undeclared(prepared: &Prepared) -> Vec<Declared> {
    let prompt = prepared.prompt();
    let is_known = |name: &String| prompt.variable(name).is_some() || prepared.provides(name);
    let names = prepared
        .known_names()
        .iter()
        .filter(|name| *name != crate::variables::SYSTEM && !prepared.is_session(name) && !is_known(name));
    names.map(|name| Declared::new(Aspect::Variable, name.clone(), json!({"need": "undeclared"}))).collect()
}

fn model(prompt: &Prompt) -> Vec<Declared> {
    let Some(model) = &prompt.model else { return Vec::new() };
    let shown = prompt.to_json()["model"].take();
    let Json::Object(fields) = model.to_json() else { return Vec::new() };
    let field = |(name, value): (String, Json)| Declared {
        aspect: Aspect::Model,
        shown: shown[&name].clone(),
        name,
        value,
    };
    fields.into_iter().filter(|(_, value)| *value != json!("")).map(field).collect()
}

fn format(prompt: &Prompt) -> Vec<Declared> {
    let format = &prompt.format;
    let mut list = vec![Declared::new(Aspect::Format, "engine", json!(format.engine))];
    list.extend(format.parser.as_ref().map(|parser| Declared::new(Aspect::Format, "parser", json!(parser))));
    list
}

fn tools(prompt: &Prompt) -> impl Iterator<Item = Declared> {
    let shown = shown(prompt, "tools");
    prompt.tools.iter().map(move |tool| named(Aspect::Tool, &tool.name, tool.to_json(), &shown))
}

/// The sections of a tree, and their tools.
fn sections(tree: &Tree, own: &Outcome, other: &Outcome) -> Vec<Declared> {
    let (own, other) = (states(own), states(other));
    let is_full = |states: &Option<BTreeMap<String, SectionState>>, path: &str| {
        states.as_ref().and_then(|states| states.get(path)) == Some(&SectionState::Shown(Visibility::Full))
    };
    let none = indexmap::IndexMap::new();
    let mut list = Vec::new();
    for node in tree.sections() {
        let (path, section) = (node.dotted(), &node.section);
        let mut fields = Map::new();
        fields.insert("title".into(), json!(section.title));
        if let Some(state) = own.as_ref().and_then(|states| states.get(path)) {
            fields.insert("state".into(), json!(state.as_str()));
        }
        fields.insert("priority".into(), json!(section.priority));
        fields.insert("accepts_overrides".into(), json!(section.accepts_overrides));
        if let Some(summary) = &section.summary {
            fields.insert("summary".into(), json!(summary.text()));
        }
        // What is shown is compared as text; what is not would go unnoticed until a model opens it.
        if own.is_some()
            && other.is_some()
            && !is_full(&own, path)
            && !is_full(&other, path)
            && let Body::Template { text, .. } = &section.body
        {
            fields.insert("text".into(), json!(text.text()));
        }
        let skills: Vec<&str> = section.skills.iter().map(|skill| skill.name.as_str()).collect();
        if !skills.is_empty() {
            fields.insert("skills".into(), json!(skills));
        }
        list.push(Declared::new(Aspect::Section, path, Json::Object(fields)));
        for tool in &section.tools {
            let mut value = tool.to_json(&none);
            value.as_object_mut().and_then(|object| object.shift_remove("name"));
            value["section"] = json!(path);
            list.push(Declared::new(Aspect::Tool, &tool.name, value));
        }
    }
    list
}

fn states(outcome: &Outcome) -> Option<BTreeMap<String, SectionState>> {
    let disclosed = outcome.rendered.as_ref().ok()?.sections()?;
    let sections = disclosed.sections.iter();
    Some(sections.map(|section| (section.path.join("."), section.state)).collect())
}

/// What only directives declare.
fn of_directive(prepared: &Prepared, directive: &Directive) -> Vec<Declared> {
    let mut list = Vec::new();
    // Its permissions include inherited ones, if those are known.
    let composed = prepared.compose().and_then(Result::ok);
    let inherited = composed.as_ref().and_then(|composed| composed.permissions.as_ref());
    let permissions = inherited.map(|(permissions, _)| permissions).or(directive.permissions.as_ref());
    if let Some(permissions) = permissions {
        list.extend(permissions.capabilities.iter().map(|name| flag(Aspect::Permission, name)));
        list.extend(permissions.acknowledged.iter().map(|known| {
            let name = format!("acknowledged: {}", known.risk);
            Declared::new(Aspect::Permission, name, json!({"reason": known.reason}))
        }));
    }
    for (name, value) in directive.limits.iter().flatten() {
        list.push(Declared::new(Aspect::Limit, format!("thread {name}"), value.clone()));
    }
    for (index, hook) in directive.hooks.iter().flatten().enumerate() {
        let event = hook.get("event").or_else(|| hook.get("id")).and_then(Json::as_str).unwrap_or("hook");
        list.push(Declared::new(Aspect::Hook, format!("{} {event}", index + 1), json!(hook)));
    }
    if let Some(outputs) = directive.declared_outputs().as_array() {
        for output in outputs {
            let mut output = output.clone();
            let name = output.as_object_mut().and_then(|output| output.shift_remove("name"));
            let name = name.as_ref().and_then(Json::as_str).unwrap_or_default().to_owned();
            list.push(Declared::new(Aspect::Output, name, output));
        }
    }
    let context = match &composed {
        Some(composed) => Some(&composed.context),
        None => directive.context.as_ref(),
    };
    if let Some(Json::Object(context)) = context.map(|context| context.to_json()) {
        for (name, ids) in context.into_iter().filter(|(_, ids)| *ids != json!([])) {
            list.push(Declared::new(Aspect::Context, name, ids));
        }
    }
    for (index, action) in directive.actions.iter().enumerate() {
        list.push(Declared::new(Aspect::Context, format!("action {}", index + 1), json!(action)));
    }
    list
}
