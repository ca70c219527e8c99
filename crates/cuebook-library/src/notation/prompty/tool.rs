//! Tools, as a file writes them.

use std::collections::HashMap;

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use super::reader::FrontMatterReader;
use crate::json::quoted;
use crate::node::{Data, Node};
use crate::prompt::{Tool, ToolKind};
use crate::source::Place;

const COMMON: [&str; 4] = ["name", "kind", "description", "bindings"];
/// `runs` is ours: the item that is executed when a model calls the tool, if the caller of the prompt allows it.
const FUNCTION: [&str; 3] = ["parameters", "strict", "runs"];
const MCP: [&str; 5] = ["connection", "serverName", "serverDescription", "approvalMode", "allowedTools"];
const OPENAPI: [&str; 2] = ["connection", "specification"];

/// Whether a function may have this name at every provider.
fn is_callable(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

impl FrontMatterReader {
    /// Tools: a list whose entries have names, or a map from name to tool.
    pub(super) fn tools(&mut self, node: &Node) -> Vec<Tool> {
        let mut tools = Vec::new();
        match &node.data {
            Data::Null => {}
            Data::List(items) => {
                self.each_named(items, "tools", |reader, name, place, item, at| {
                    tools.extend(reader.tool(name, place, item, at));
                });
            }
            Data::Map(entries) => {
                for (key, entry) in entries {
                    let at = format!("tools.{}", key.name);
                    tools.extend(self.tool(key.name.clone(), key.place.clone(), entry, &at));
                }
            }
            _ => {
                let hint = "write `- name: …` and `kind: function` for each";
                self.mismatch(node, "`tools`", "a list, or a map from names", hint);
            }
        }
        tools
    }

    fn tool(&mut self, name: String, place: Place, node: &Node, at: &str) -> Option<Tool> {
        let Data::Map(entries) = &node.data else {
            self.mismatch(
                node,
                &format!("`{at}`"),
                "a map with a `kind`",
                "write `kind: function` below its name",
            );
            return None;
        };
        let kind = match node.get("kind").filter(|kind| !kind.is_null()) {
            Some(kind) => self.text(kind, &format!("`{at}.kind`"))?,
            None => String::new(),
        };
        if kind.trim().is_empty() {
            if !node.get("kind").is_some_and(|kind| kind.is_null() && kind.from_environment) {
                let hint = "write `kind: function`, `mcp`, `openapi`, or a kind that your host knows";
                self.wrong(&place, format!("`{at}` has no kind"), hint);
            }
            return None;
        }
        if kind == "function" && !is_callable(&name) {
            let message = format!("providers refuse the function name {}", quoted(&name));
            let hint = "use ASCII letters, digits, `_` and `-`, at most 64 characters";
            self.strange(&place, message, hint);
        }
        let own: Option<&[&str]> = match kind.as_str() {
            "function" => Some(&FUNCTION),
            "mcp" => Some(&MCP),
            "openapi" => Some(&OPENAPI),
            _ => None,
        };
        let (mut description, mut bindings) = (None, IndexMap::new());
        let (mut parameters, mut strict) = (Vec::new(), None);
        let (mut fields, mut extra): (Map<String, Json>, Map<String, Json>) = (Map::new(), Map::new());
        for (key, node) in entries {
            let what = format!("`{at}.{}`", key.name);
            match key.name.as_str() {
                "name" | "kind" => {}
                "description" => description = self.text(node, &what),
                "bindings" => bindings = self.bindings(node, &format!("{at}.bindings")),
                "parameters" if kind == "function" => {
                    parameters = self.properties(node, &format!("{at}.parameters"));
                }
                "strict" if kind == "function" => strict = self.flag(node, &what),
                "runs" if kind == "function" => {
                    extra.extend(self.text(node, &what).map(|item| (key.name.clone(), item.into())));
                }
                name if own.is_some_and(|own| !own.contains(&name)) => {
                    let known: Vec<&str> = COMMON.iter().chain(own.unwrap_or_default()).copied().collect();
                    self.extra(&format!("`{at}`"), key, &known);
                    extra.insert(key.name.clone(), node.to_json());
                }
                _ => {
                    fields.insert(key.name.clone(), node.to_json());
                }
            }
        }
        let kind = match kind.as_str() {
            "function" => ToolKind::Function { parameters, strict },
            "mcp" => ToolKind::Mcp(fields),
            "openapi" => ToolKind::OpenApi(fields),
            _ => ToolKind::Custom { kind, fields },
        };
        Some(Tool { name, description, kind, bindings, extra, place: Some(place) })
    }

    /// Bindings: a map from parameter to input, where the input is a name or `{input: name}`; or a list with names.
    fn bindings(&mut self, node: &Node, at: &str) -> IndexMap<String, String> {
        let mut bindings = IndexMap::new();
        match &node.data {
            Data::Null => {}
            Data::List(items) => {
                let mut seen: HashMap<String, Place> = HashMap::new();
                for (index, item) in items.iter().enumerate() {
                    let at = format!("{at}[{index}]");
                    let Some((parameter, place)) = self.name_of(item, &at) else { continue };
                    if let Some(first) = seen.get(&parameter) {
                        self.twice(&parameter, &place, first);
                        continue;
                    }
                    seen.insert(parameter.clone(), place);
                    if let Some(input) = self.bound(item, &at) {
                        bindings.insert(parameter, input);
                    }
                }
            }
            Data::Map(entries) => {
                for (key, entry) in entries {
                    if let Some(input) = self.bound(entry, &format!("{at}.{}", key.name)) {
                        bindings.insert(key.name.clone(), input);
                    }
                }
            }
            _ => {
                let hint = "write `parameter: input`, one per line";
                self.mismatch(node, &format!("`{at}`"), "a map from parameters to inputs", hint);
            }
        }
        bindings
    }

    /// The input that fills a parameter.
    fn bound(&mut self, node: &Node, at: &str) -> Option<String> {
        let hint = "write the name of an input: a parameter can only be bound to an input";
        match &node.data {
            Data::Text(input) if !input.trim().is_empty() => Some(input.clone()),
            Data::Map(entries) => {
                for (key, _) in entries.iter().filter(|(key, _)| key.name != "input" && key.name != "name") {
                    self.extra(&format!("`{at}`"), key, &["input"]);
                }
                match node.get("input").filter(|input| !input.is_null()) {
                    Some(input) => self.text(input, &format!("`{at}.input`")),
                    None => {
                        self.wrong(&node.opening(), format!("`{at}` names no input"), "write `input: …`");
                        None
                    }
                }
            }
            _ => {
                self.mismatch(node, &format!("`{at}`"), "the name of an input", hint);
                None
            }
        }
    }
}
