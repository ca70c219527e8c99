//! A directive as scripts see it, in Rye's words.

use serde_json::{Map, Value as Json, json};

use super::metadata::permissions_json;
use super::{Directive, Input, Output};

impl Directive {
    /// Everything that it says. Parts that are not there have no keys.
    pub fn to_json(&self) -> Json {
        let mut object = Map::new();
        let named = [
            ("name", &self.name),
            ("version", &self.version),
            ("extends", &self.extends),
            ("description", &self.description),
            ("category", &self.category),
        ];
        for (key, text) in named {
            if let Some(text) = text {
                object.insert(key.into(), json!(text.as_str()));
            }
        }
        object.extend(self.more.iter().map(|(key, text)| (key.clone(), json!(text.as_str()))));
        if let Some(model) = &self.model {
            object.insert("model".into(), json!(model));
        }
        if let Some(limits) = &self.limits {
            object.insert("limits".into(), json!(limits));
        }
        if let Some(permissions) = &self.permissions {
            permissions_json(permissions, &mut object);
        }
        if let Some(hooks) = &self.hooks {
            object.insert("hooks".into(), json!(hooks));
        }
        if let Some(context) = &self.context {
            object.insert("context".into(), context.to_json());
        }
        if !self.inputs.is_empty() {
            object.insert("inputs".into(), self.declared_inputs());
        }
        if !self.actions.is_empty() {
            object.insert("actions".into(), json!(self.actions));
        }
        if !self.outputs.is_empty() {
            object.insert("outputs".into(), self.declared_outputs());
        }
        object.insert("templates".into(), json!(self.templates));
        object.insert("preamble".into(), json!(self.preamble()));
        object.insert("body".into(), json!(self.body()));
        object.insert("raw".into(), json!(self.raw()));
        object.insert("content".into(), json!(self.content()));
        Json::Object(object)
    }

    /// What it takes, in the order of its declarations.
    pub fn declared_inputs(&self) -> Json {
        self.inputs.iter().map(Input::to_json).collect()
    }

    /// What it gives, in the order of its declarations.
    pub fn declared_outputs(&self) -> Json {
        self.outputs.iter().map(Output::to_json).collect()
    }
}
