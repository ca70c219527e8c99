//! What stands around the text: metadata, the model, tools and outputs.

use serde_json::{Map, Value as Json, json};

use super::Drafting;
use crate::convert::BuiltIn;
use crate::convert::draft::with_items;
use crate::convert::shape;
use crate::node::Node;
use crate::prompt::{Prompt, Type};
use crate::source::Place;

impl Drafting<'_> {
    /// What its author noted, without what every prompt of the project has and what has a place of its own.
    pub(super) fn extra(&self, prompt: &Prompt) -> Map<String, Json> {
        let own = ["limits", "permissions", "acknowledged_risks", "context", "outputs", "category"];
        let mut extra = prompt.metadata.extra.clone();
        extra.retain(|key, value| {
            // What everybody inherits is not said again, but for what a directive must say itself to be signed.
            let must_say = self.target == BuiltIn::Directive && (key == "author" || key == "authors");
            (must_say || self.defaults.metadata.get(key) != Some(value))
                && !(self.from == BuiltIn::Directive && own.contains(&key.as_str()))
        });
        extra
    }

    pub(super) fn model(
        &mut self,
        prompt: &Prompt,
        front: Option<&Node>,
    ) -> Option<(Map<String, Json>, Option<Place>)> {
        let model = prompt.model.as_ref()?;
        let place = front.and_then(|front| front.entry("model")).map(|(key, _)| key.place.clone());
        let place = place.or_else(|| super::own::element(self.prepared, "model"));
        let Json::Object(mut object) = model.to_json() else { return None };
        if self.from == BuiltIn::Directive {
            let own: Vec<String> =
                object.keys().filter(|key| *key != "id" && *key != "provider").cloned().collect();
            for key in own {
                object.shift_remove(&key);
                let message =
                    format!("`{key}` of the model is left out: only a runner of directives knows it");
                let hint = "name a model by its id when you use the prompt";
                self.report.lost("model", message).at(place.clone()).hint(hint);
            }
        }
        if let Some(Json::Object(connection)) = object.get_mut("connection") {
            let mut hidden = Vec::new();
            connection.retain(|key, value| {
                let is_secret = matches!(crate::redact::kind_of_name(key), crate::redact::Name::Secret);
                let is_reference = value.as_str().is_some_and(|text| text.starts_with("${"));
                if is_secret && !is_reference {
                    hidden.push(key.clone());
                }
                !is_secret || is_reference
            });
            for key in hidden {
                let message = format!("the connection's `{key}` is a secret, so it is not copied");
                self.report
                    .lost("model", message)
                    .at(place.clone())
                    .hint("keep it in the environment, and write ${env:NAME}");
            }
        }
        if object.get("id").and_then(Json::as_str) == Some("") {
            object.shift_remove("id");
        }
        (!object.is_empty()).then_some((object, place))
    }

    pub(super) fn tools(&mut self, prompt: &Prompt) -> Vec<(Map<String, Json>, Option<Place>)> {
        if let Some(tree) = self.prepared.tree() {
            return self.section_tools(tree);
        }
        let object = |tool: &crate::prompt::Tool| match tool.to_json() {
            Json::Object(object) => (object, tool.place.clone()),
            _ => (Map::new(), tool.place.clone()),
        };
        prompt.tools.iter().map(object).collect()
    }

    pub(super) fn section_tools(
        &mut self,
        tree: &crate::sections::Tree,
    ) -> Vec<(Map<String, Json>, Option<Place>)> {
        let mut tools = Vec::new();
        for tool in tree.sections().iter().flat_map(|node| &node.section.tools) {
            let mut object = Map::new();
            object.insert("name".into(), json!(tool.name));
            object.insert("kind".into(), json!("function"));
            object.insert("description".into(), json!(tool.description));
            if let Some(record) = &tool.params {
                object.insert("parameters".into(), shape::properties(record));
            }
            if !tool.accepts_overrides {
                let message = format!("the protection of `{}` from overrides is left out", tool.name);
                self.report.lost("tools", message).at(tool.place.clone());
            }
            tools.push((object, tool.place.clone()));
        }
        tools
    }

    pub(super) fn outputs(
        &mut self,
        prompt: &Prompt,
        front: Option<&Node>,
    ) -> Vec<(Map<String, Json>, Option<Place>)> {
        if let Some(directive) = self.prepared.directive() {
            return self.directive_outputs(directive);
        }
        let key = |name: &str| front.and_then(|front| front.entry(name)).map(|(key, _)| key.place.clone());
        let place = key("outputs").or_else(|| key("output"));
        let object = |output: &crate::prompt::Property| match output.to_json() {
            Json::Object(object) => (object, output.place.clone().or_else(|| place.clone())),
            _ => (Map::new(), place.clone()),
        };
        prompt.outputs.iter().map(object).collect()
    }

    pub(super) fn directive_outputs(
        &mut self,
        directive: &crate::dialect::directive::Directive,
    ) -> Vec<(Map<String, Json>, Option<Place>)> {
        let mut outputs = Vec::new();
        for output in directive.outputs.iter().filter(|output| !output.name.is_empty()) {
            let mut object = Map::new();
            object.insert("name".into(), json!(output.name.as_str()));
            let kind = match output.kind() {
                Type::List => "array",
                kind => kind.as_str(),
            };
            object.insert("kind".into(), json!(kind));
            if let Some(description) = &output.description {
                object.insert("description".into(), json!(description.as_str()));
            }
            if !output.optional {
                object.insert("required".into(), json!(true));
            }
            with_items(&mut object);
            outputs.push((object, Some(output.name.place())));
        }
        outputs
    }
}
