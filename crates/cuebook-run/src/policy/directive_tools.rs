//! The tools that a thread offers to the model of a directive.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cuebook::dialect::directive::{Output, ToolOffer};
use cuebook::prompt::{Tool, ToolKind, Tools};
use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

use super::capability::Capabilities;
use super::returns;
use crate::actions::Action;

/// The tools that threads offer to the models of directives.
#[derive(Debug, Clone, Copy)]
pub struct DirectiveTools;

impl ToolOffer for DirectiveTools {
    fn tools(&self, permissions: &[String], outputs: &[Output]) -> Arc<Tools> {
        tools(&returns::permitted(Capabilities::new(permissions.iter().cloned()), outputs), outputs)
    }
}

/// How many sets of tools are remembered.
const MAX_REMEMBERED: usize = 64;

/// The tools of threads with these capabilities and outputs. All threads of a directive have the same, so they share them.
pub(crate) fn tools(capabilities: &Capabilities, outputs: &[Output]) -> Arc<Tools> {
    static MADE: Mutex<BTreeMap<String, Arc<Tools>>> = Mutex::new(BTreeMap::new());
    let allowed: Vec<Action> =
        Action::ALL.into_iter().filter(|action| capabilities.allows_some(action.word())).collect();
    let names: Vec<&str> = allowed.iter().map(|action| action.name()).collect();
    let key = json!([names, returns::to_json(outputs)]).to_string();
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(tools) = made.get(&key) {
        return tools.clone();
    }
    let mut tools: Vec<Tool> = allowed.into_iter().map(within_project).collect();
    if !outputs.is_empty() {
        tools.push(returns::return_tool(outputs));
    }
    let tools = Arc::new(Tools::from(tools));
    if made.len() >= MAX_REMEMBERED {
        made.clear();
    }
    made.insert(key, tools.clone());
    tools
}

/// An action as a tool. A thread stays in its project, so a model need not say which.
fn within_project(action: Action) -> Tool {
    let mut schema = action.input("");
    if let Some(required) = schema.get_mut("required").and_then(Json::as_array_mut) {
        required.retain(|name| name != "project_path");
    }
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.shift_remove("project_path");
    }
    tool(action.name(), action.description(), Json::Object(schema))
}

/// A tool that a model knows by a JSON schema.
pub(crate) fn tool(name: &str, description: &str, parameters: Json) -> Tool {
    Tool {
        name: name.to_owned(),
        description: Some(description.to_owned()),
        kind: ToolKind::Schema { parameters },
        bindings: IndexMap::new(),
        extra: Map::new(),
        place: None,
    }
}
