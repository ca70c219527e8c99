//! What a model may call: `tools` has names, and `toolDefs` describes tools.

use std::collections::HashSet;

use indexmap::IndexMap;
use serde_json::{Map, Value as Json, json};

use super::picoschema::{self, Names};
use super::{Front, wrong};
use crate::error::{Code, Diagnostic, Result, Severity};
use crate::node::{Data, Node};
use crate::prompt::{Tool, ToolKind};
use crate::source::Place;

pub(super) fn read(front: &Front, names: Names<'_>, notes: &mut Vec<Diagnostic>) -> Result<Vec<Tool>> {
    let mut tools: Vec<Tool> = Vec::new();
    for node in items(&front.root, "toolDefs")? {
        let text = |key: &str| node.get(key).and_then(Node::text);
        let Some(name) = text("name") else {
            let message = "a tool of `toolDefs` has no name";
            return Err(wrong(
                node.opening(),
                message,
                "write `- {name: …, description: …, inputSchema: …}`",
            ));
        };
        let parameters = match node.get("inputSchema") {
            Some(schema) => picoschema::to_json_schema(schema, names)?,
            None => json!({"type": "object", "properties": {}}),
        };
        tools.push(tool(name, text("description"), parameters, node.opening()));
    }
    let mut known: HashSet<String> = tools.iter().map(|tool| tool.name.clone()).collect();
    for node in items(&front.root, "tools")? {
        let Some(name) = node.text() else {
            let message = format!("a tool of `tools` must be a name, but is {}", node.describe());
            return Err(wrong(node.opening(), message, "write its name here, and describe it in `toolDefs`"));
        };
        if !known.insert(name.to_owned()) {
            continue;
        }
        let message = format!("the tool `{name}` has no description, so a model knows nothing but its name");
        let note = Diagnostic::new(Code::BadFrontMatter, message).severity(Severity::Note);
        let hint = format!("describe it: `toolDefs: [{{name: {name}, description: …, inputSchema: …}}]`");
        notes.push(note.at(node.place.clone()).hint(hint));
        tools.push(tool(name, None, json!({"type": "object", "properties": {}}), node.place.clone()));
    }
    Ok(tools)
}

fn tool(name: &str, description: Option<&str>, parameters: Json, place: Place) -> Tool {
    Tool {
        name: name.to_owned(),
        description: description.map(str::to_owned),
        kind: ToolKind::Schema { parameters },
        bindings: IndexMap::new(),
        extra: Map::new(),
        place: Some(place),
    }
}

fn items<'n>(root: &'n Node, key: &str) -> Result<&'n [Node]> {
    match root.get(key) {
        None | Some(Node { data: Data::Null, .. }) => Ok(&[]),
        Some(Node { data: Data::List(items), .. }) => Ok(items),
        Some(node) => {
            let message = format!("`{key}` must be a list, but is {}", node.describe());
            Err(wrong(node.opening(), message, "write one tool per line, after `- `"))
        }
    }
}
