//! The four tools: what they are called, what they take and give, and how an answer travels.
//!
//! An answer is an object. It travels twice, as structured content and as the same JSON in text, for clients of either kind. One
//! whose `status` is `error` is marked `isError`, so that a model sees that its call failed; it is still a whole answer. Arguments
//! that do not fit the schema give such an answer too, because a model can mend them; only a tool that does not exist is an error
//! of the protocol.

use std::sync::Arc;

use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use serde_json::{Value as Json, json};

use crate::items::{Arguments, Items, Watch};

/// One of the four.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Execute,
    Search,
    Load,
    Sign,
}

impl Action {
    pub(crate) const ALL: [Action; 4] = [Action::Execute, Action::Search, Action::Load, Action::Sign];

    /// Its name in the list.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Action::Execute => "rye_execute",
            Action::Search => "rye_search",
            Action::Load => "rye_load",
            Action::Sign => "rye_sign",
        }
    }

    /// The tool that a client calls; the names without `rye_` are those of older servers and work as well.
    pub(crate) fn named(name: &str) -> Option<Action> {
        Action::ALL
            .into_iter()
            .find(|action| action.name() == name || action.name().strip_prefix("rye_") == Some(name))
    }

    /// Whether it reads one item and runs nothing: a directive for whoever calls, or a piece of knowledge.
    pub(crate) fn is_quick(self, arguments: &Arguments) -> bool {
        let is_set = |flag: Option<&Json>| flag.is_some_and(|flag| *flag != Json::Bool(false));
        let kind = arguments.get("item_type").and_then(Json::as_str);
        let inner = arguments.get("parameters").and_then(|parameters| parameters.get("thread"));
        self == Action::Execute
            && matches!(kind, Some("directive" | "knowledge"))
            && !is_set(arguments.get("thread"))
            && !is_set(inner)
    }

    /// Does it.
    pub(crate) fn run(self, items: &dyn Items, arguments: &Arguments, watch: &dyn Watch) -> Json {
        match self {
            Action::Execute => items.execute(arguments, watch),
            Action::Search => items.search(arguments, watch),
            Action::Load => items.load(arguments, watch),
            Action::Sign => items.sign(arguments, watch),
        }
    }

    /// The tool as the list shows it, for a server of a project.
    pub(crate) fn tool(self, project: &str) -> Tool {
        let (title, description) = match self {
            Action::Execute => (
                "Execute an item",
                "Runs a tool, or gives a directive's instructions or a piece of knowledge. Every item is verified before it is used. \
                 With dry_run nothing is run: the item and its inputs are only checked.",
            ),
            Action::Search => (
                "Search items",
                "Finds directives, tools and knowledge in the project's, the user's and the system's space.",
            ),
            Action::Load => (
                "Load an item",
                "Reads the file of an item, and with a destination copies it into the project or the user's space.",
            ),
            Action::Sign => (
                "Sign items",
                "Checks items and signs them with the user's key, in their files. An id with * or ? means all that fit.",
            ),
        };
        let mut tool = Tool::new(self.name(), description, self.input(project)).with_title(title);
        tool.output_schema = Some(Arc::new(self.output()));
        tool.with_annotations(self.annotations(title))
    }

    /// What a client may expect. A tool can do anything that whoever wrote it wanted, so `execute` promises nothing.
    fn annotations(self, title: &str) -> ToolAnnotations {
        let hints = |read_only, destructive, idempotent, open_world| {
            ToolAnnotations::with_title(title)
                .read_only(read_only)
                .destructive(destructive)
                .idempotent(idempotent)
                .open_world(open_world)
        };
        match self {
            Action::Execute => hints(false, true, false, true),
            Action::Search => hints(true, false, true, false),
            // A copy may take the place of an older one, and a signature that of an older one.
            Action::Load | Action::Sign => hints(false, true, true, false),
        }
    }

    /// The schema of its arguments.
    pub(crate) fn input(self, project: &str) -> JsonObject {
        let item_type = json!({
            "type": "string",
            "enum": ["directive", "tool", "knowledge"],
            "description": "What kind of item it is",
        });
        let item_id = json!({
            "type": "string",
            "description": "The path of its file below the folder of its kind, without the extension, as in rye/core/create_directive",
        });
        let project_path = json!({
            "type": "string",
            "description": format!("The absolute path of the project; this server's is {project}"),
            "default": project,
        });
        let parameters = |what: &str| json!({"type": "object", "description": what});
        let switch = |what: &str| json!({"type": "boolean", "default": false, "description": what});
        let (required, properties) = match self {
            Action::Execute => (
                json!(["item_type", "item_id", "project_path"]),
                json!({
                    "item_type": item_type,
                    "item_id": item_id,
                    "project_path": project_path,
                    "parameters": parameters("The inputs of a directive, or what a tool takes"),
                    "dry_run": switch("Check everything and run nothing"),
                    "thread": switch("Run a directive in a thread of its own"),
                    "async": switch("With thread: answer at once, and go on"),
                    "model": {"type": "string", "description": "With thread: the model, instead of the directive's own"},
                    "limit_overrides": parameters("With thread: limits instead of the directive's own, such as turns or spend"),
                }),
            ),
            Action::Search => (
                json!(["scope", "query", "project_path"]),
                json!({
                    "scope": {"type": "string", "description": "The kind, and below which folder: directive, tool.rye.core.* or knowledge"},
                    "query": {"type": "string", "description": "Words, \"phrases\", AND, OR, NOT, parentheses, * in words; empty finds everything"},
                    "project_path": project_path,
                    "space": {"type": "string", "enum": ["project", "user", "system", "all"], "default": "all", "description": "Where to look"},
                    "limit": {"type": "integer", "default": 10, "description": "How many results to give"},
                    "offset": {"type": "integer", "default": 0, "description": "How many results to leave out before that"},
                }),
            ),
            Action::Load => (
                json!(["item_type", "item_id", "project_path"]),
                json!({
                    "item_type": item_type,
                    "item_id": item_id,
                    "project_path": project_path,
                    "source": {"type": "string", "enum": ["project", "user", "system"], "description": "The space to read from; without it, the first that has the item"},
                    "destination": {"type": "string", "enum": ["project", "user"], "description": "The space to copy the item to"},
                    "replace": switch("Let the copy take the place of another file"),
                }),
            ),
            Action::Sign => (
                json!(["item_type", "item_id", "project_path"]),
                json!({
                    "item_type": item_type,
                    "item_id": {"type": "string", "description": "An id, or a pattern with * and ?"},
                    "project_path": project_path,
                    "source": {"type": "string", "enum": ["project", "user"], "default": "project", "description": "The space that the items lie in"},
                    "parameters": parameters("Nothing is needed here"),
                }),
            ),
        };
        object(json!({"type": "object", "properties": properties, "required": required}))
    }

    /// The schema of its answers. Items answer with more than is listed here, so nothing is ruled out.
    fn output(self) -> JsonObject {
        let text = |what: &str| json!({"type": "string", "description": what});
        let metadata =
            json!({"type": "object", "description": "How long it took, and what else is known of the run"});
        let error = text("What went wrong; only with the status error");
        let item_id = text("The id of the item");
        let (required, properties) = match self {
            Action::Execute => (
                json!(["status"]),
                json!({
                    "status": text("success, validation_passed (of a dry run), running (of a thread) or error"),
                    "type": text("The kind of item"),
                    "item_id": item_id,
                    "your_directions": text("What the model is to do now"),
                    "body": text("The directive's text, with its inputs put in"),
                    "outputs": {"type": "array", "description": "What the directive is to return", "items": {"type": "object"}},
                    "inputs": {"type": "object", "description": "The inputs, with defaults; of a dry run"},
                    "data": {"description": "What a tool gave, or a piece of knowledge holds"},
                    "message": text("What a dry run found"),
                    "chain": {"type": "array", "description": "The tool and its executors", "items": {"type": "string"}},
                    "chain_details": {"type": "array", "items": {"type": "object"}},
                    "validated_pairs": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
                    "declared_inputs": {"type": "array", "description": "What a directive takes; with an error about its inputs", "items": {"type": "object"}},
                    "error": error,
                    "metadata": metadata,
                }),
            ),
            Action::Search => (
                json!([]),
                json!({
                    "results": {"type": "array", "description": "The items that were found, best first", "items": {"type": "object"}},
                    "total": {"type": "integer", "description": "How many there are altogether"},
                    "query": text("The query"),
                    "scope": text("The scope"),
                    "space": text("The space"),
                    "limit": {"type": "integer"},
                    "offset": {"type": "integer"},
                    "search_type": text("How it was searched"),
                    "error": error,
                }),
            ),
            Action::Load => (
                json!(["status"]),
                json!({
                    "status": text("success or error"),
                    "content": text("The whole file"),
                    "path": text("Where the file lies"),
                    "source": text("The space that it came from"),
                    "copied_to": text("The space that it was copied to"),
                    "destination_path": text("Where the copy lies"),
                    "item_type": text("The kind of item"),
                    "item_id": item_id,
                    "error": error,
                    "metadata": {"type": "object", "description": "The name, the path, the extension and the version"},
                }),
            ),
            Action::Sign => (
                json!(["status"]),
                json!({
                    "status": text("signed, completed (of a pattern) or error"),
                    "item_id": item_id,
                    "path": text("The file"),
                    "location": text("The space"),
                    "signature": {"type": "object", "description": "timestamp, hash, ed25519_sig and pubkey_fp"},
                    "warnings": {"type": "array"},
                    "message": text("What was done"),
                    "signed": {"type": "array", "description": "The ids that were signed", "items": {"type": "string"}},
                    "failed": {"type": "array", "items": {"type": "object"}},
                    "total": {"type": "integer"},
                    "summary": text("How many were signed"),
                    "issues": {"type": "array", "description": "What is wrong with the item"},
                    "error": error,
                }),
            ),
        };
        object(json!({"type": "object", "properties": properties, "required": required}))
    }
}

fn object(json: Json) -> JsonObject {
    match json {
        Json::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// What does not fit between arguments and their schema, if anything. The project is this server's unless somebody says otherwise.
pub(crate) fn misfit(schema: &JsonObject, arguments: &Arguments) -> Option<String> {
    let required =
        schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    for name in required.filter(|name| *name != "project_path") {
        if !arguments.contains_key(name) {
            return Some(format!("'{name}' is a required property"));
        }
    }
    let properties = schema.get("properties").and_then(Json::as_object)?;
    for (name, value) in arguments {
        let Some(property) = properties.get(name) else { continue };
        let wanted = property["type"].as_str().unwrap_or_default();
        let fits = match wanted {
            "string" => value.is_string(),
            "object" => value.is_object(),
            "boolean" => value.is_boolean(),
            // 3.0 is as whole as 3.
            "integer" => {
                value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            _ => true,
        };
        if !fits {
            return Some(format!("{} is not of type '{wanted}'", shown(value)));
        }
        if let Some(choices) = property["enum"].as_array()
            && !choices.contains(value)
        {
            return Some(format!("{} is not one of {}", shown(value), shown(&property["enum"])));
        }
    }
    None
}

/// A value in a message about it: as the reference shows it, in the manner of Python, and not too long.
fn shown(value: &Json) -> String {
    let text = match value {
        Json::String(text) => format!("'{text}'"),
        Json::Array(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(", ")),
        Json::Null => "None".to_owned(),
        Json::Bool(true) => "True".to_owned(),
        Json::Bool(false) => "False".to_owned(),
        other => other.to_string(),
    };
    match text.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The answer about arguments that do not fit.
pub(crate) fn refused(why: &str) -> CallToolResult {
    let why = format!("Input validation error: {why}");
    let mut result = CallToolResult::error(vec![ContentBlock::text(&why)]);
    result.structured_content = Some(json!({"status": "error", "error": why}));
    result
}

/// An answer as it travels.
pub(crate) fn answer(answer: Json) -> CallToolResult {
    let answer = if answer.is_object() { answer } else { json!({"status": "success", "data": answer}) };
    let failed = match answer.get("status").and_then(Json::as_str) {
        Some(status) => status == "error",
        None => answer.get("error").is_some_and(|error| !error.is_null()),
    };
    if failed { CallToolResult::structured_error(answer) } else { CallToolResult::structured(answer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misfit(action: Action, arguments: Json) -> Option<String> {
        super::misfit(&action.input("/p"), &object(arguments))
    }

    #[test]
    fn arguments_are_held_against_their_schema() {
        let ok = json!({"item_type": "tool", "item_id": "x", "project_path": "/p", "dry_run": true, "anything": 1});
        assert_eq!(misfit(Action::Execute, ok), None);
        assert_eq!(misfit(Action::Execute, json!({"item_type": "tool", "item_id": "x"})), None);
        for (arguments, why) in [
            (
                json!({"item_type": "banana", "item_id": "x"}),
                "'banana' is not one of ['directive', 'tool', 'knowledge']",
            ),
            (json!({"item_type": "tool"}), "'item_id' is a required property"),
            (json!({"item_type": "tool", "item_id": 5}), "5 is not of type 'string'"),
            (
                json!({"item_type": "tool", "item_id": "x", "parameters": "{}"}),
                "'{}' is not of type 'object'",
            ),
            (json!({"item_type": "tool", "item_id": "x", "dry_run": null}), "None is not of type 'boolean'"),
        ] {
            assert_eq!(misfit(Action::Execute, arguments).as_deref(), Some(why));
        }
        let search = json!({"scope": "tool", "query": "", "limit": 5.0});
        assert_eq!(misfit(Action::Search, search), None);
    }

    #[test]
    fn an_answer_that_says_error_is_one() {
        for (given, is_error) in [
            (json!({"status": "success"}), false),
            (json!({"status": "error", "error": "no"}), true),
            (json!({"error": "no scope"}), true),
            (json!({"results": [], "total": 0}), false),
            (json!([1]), false),
        ] {
            let result = answer(given.clone());
            assert_eq!(result.is_error, Some(is_error), "{given}");
            let text = result.content[0].as_text().unwrap().text.clone();
            assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), result.structured_content.unwrap());
        }
    }

    #[test]
    fn every_tool_has_both_schemas_and_says_what_it_may_do() {
        for action in Action::ALL {
            let tool = serde_json::to_value(action.tool("/p")).unwrap();
            assert_eq!(Action::named(tool["name"].as_str().unwrap()), Some(action));
            for schema in ["inputSchema", "outputSchema"] {
                assert_eq!(tool[schema]["type"], "object", "{tool}");
                for name in tool[schema]["required"].as_array().unwrap() {
                    assert!(tool[schema]["properties"].get(name.as_str().unwrap()).is_some(), "{name}");
                }
            }
            for hint in ["readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"] {
                assert!(tool["annotations"][hint].is_boolean(), "{hint}");
            }
        }
    }
}
