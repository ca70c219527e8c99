//! The four tools: what they are called, what they take and give, and how an answer travels.
//!
//! An answer is an object. It travels twice, as structured content and as the same JSON in text, for clients of either kind. Text,
//! pictures, sounds and resources that a tool gives follow as content of their own. An answer whose `status` is `error` is marked `isError`, so that a model sees that its call failed; it is still a whole answer. Arguments
//! that do not fit the schema give such an answer too, because a model can mend them; only a tool that does not exist is an error
//! of the protocol.

use std::sync::Arc;

use cuebook::{Code, Diagnostic, Error, ErrorKind};
use cuebook_run::Action;
use cuebook_run::policy::allowance::Allowance;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use serde_json::{Value as Json, json};

use crate::items::{Arguments, Items, Watch};
use crate::{content, hints};

/// What a server knows of an action besides what everybody does.
pub(crate) trait Served: Sized {
    /// Whether it reads one item and runs nothing: a directive for the caller, or a piece of knowledge.
    fn is_quick(&self, arguments: &Arguments) -> bool;
    /// Does it.
    fn serve(self, items: &dyn Items, arguments: &Arguments, watch: &dyn Watch) -> Json;
    /// The tool as the list shows it, for a server of a project; none if clients may not use it.
    fn tool(self, project: &str, allowance: Option<&Allowance>) -> Option<Tool>;
}

impl Served for Action {
    fn is_quick(&self, arguments: &Arguments) -> bool {
        let is_set = |flag: Option<&Json>| flag.is_some_and(|flag| *flag != Json::Bool(false));
        let kind = arguments.get("item_type").and_then(Json::as_str);
        let inner = arguments.get("parameters").and_then(|parameters| parameters.get("thread"));
        *self == Action::Execute
            && matches!(kind, Some("directive" | "knowledge"))
            && !is_set(arguments.get("thread"))
            && !is_set(inner)
    }

    fn serve(self, items: &dyn Items, arguments: &Arguments, watch: &dyn Watch) -> Json {
        match self {
            Action::Execute => items.execute(arguments, watch),
            Action::Search => items.search(arguments, watch),
            Action::Load => items.load(arguments, watch),
            Action::Sign => items.sign(arguments, watch),
        }
    }

    fn tool(self, project: &str, allowance: Option<&Allowance>) -> Option<Tool> {
        let mut description = self.description();
        let mut input = self.input(project);
        let mut annotations = annotations(self);
        if let Some(allowance) = allowance {
            match self {
                Action::Sign if !allowance.may_sign() => return None,
                Action::Load if !allowance.may_copy() => {
                    description = "Reads the file of an item.";
                    remove(&mut input, &["destination", "replace"]);
                    annotations = annotations.read_only(true).destructive(false);
                }
                Action::Execute if !allowance.has_tools() => {
                    description = "Returns the instructions of a directive or the text of a knowledge item. Cuebook verifies every item first.";
                    input["properties"]["item_type"]["enum"] = json!(["directive", "knowledge"]);
                }
                _ => {}
            }
        }
        let mut tool = Tool::new(self.name(), description, input).with_title(self.title());
        tool.output_schema = Some(Arc::new(output(self)));
        Some(tool.with_annotations(annotations))
    }
}

/// Takes arguments out of a schema.
fn remove(schema: &mut JsonObject, names: &[&str]) {
    if let Some(properties) = schema.get_mut("properties").and_then(Json::as_object_mut) {
        properties.retain(|name, _| !names.contains(&name.as_str()));
    }
}

/// What a client may expect. A tool can do anything that its author wanted, so `execute` promises nothing.
fn annotations(action: Action) -> ToolAnnotations {
    let hints = |read_only, destructive, idempotent, open_world| {
        ToolAnnotations::with_title(action.title())
            .read_only(read_only)
            .destructive(destructive)
            .idempotent(idempotent)
            .open_world(open_world)
    };
    match action {
        Action::Execute => hints(false, true, false, true),
        Action::Search => hints(true, false, true, false),
        // A copy may take the place of an older one, and a signature that of an older one.
        Action::Load | Action::Sign => hints(false, true, true, false),
    }
}

/// The schema of its answers. Items answer with more than is listed here, so nothing is ruled out.
fn output(action: Action) -> JsonObject {
    let text = |what: &str| json!({"type": "string", "description": what});
    let metadata = json!({"type": "object", "description": "The duration, and other facts about the run"});
    let error = text("The error; only with the status error");
    let item_id = text("The id of the item");
    let (required, properties) = match action {
        Action::Execute => (
            json!(["status"]),
            json!({
                "status": text("success, validation_passed (of a dry run), running (of a thread) or error"),
                "type": text("The type of the item"),
                "item_id": item_id,
                "your_directions": text("The model's next step"),
                "body": text("The directive's text with its inputs filled in"),
                "outputs": {"description": "The outputs that the directive must return; for a thread, the outputs that it returned"},
                "thread_id": text("The thread that the directive ran in"),
                "thread_status": text("The thread's status"),
                "result": {"description": "The model's last answer in the thread"},
                "cost": {"type": "object", "description": "The thread's usage: turns, tokens, spend, elapsed_seconds; estimated_tokens if some are estimates, spend_known: false if the model's price is unknown"},
                "pid": {"type": "integer", "description": "The process of a thread that is still running"},
                "inputs": {"type": "object", "description": "For a dry run, the inputs with their defaults"},
                "data": {"description": "The result of a tool, or the text of a knowledge item"},
                "message": text("The result of a dry run"),
                "chain": {"type": "array", "description": "The tool and its executors", "items": {"type": "string"}},
                "chain_details": {"type": "array", "items": {"type": "object"}},
                "validated_pairs": {"type": "array", "items": {"type": "array", "items": {"type": "string"}}},
                "declared_inputs": {"type": "array", "description": "The directive's inputs; with an error about them", "items": {"type": "object"}},
                "error": error,
                "metadata": metadata,
            }),
        ),
        Action::Search => (
            json!([]),
            json!({
                "results": {"type": "array", "description": "The matching items, best first", "items": {"type": "object"}},
                "total": {"type": "integer", "description": "The total number of matches"},
                "query": text("The query"),
                "scope": text("The scope"),
                "space": text("The space"),
                "limit": {"type": "integer"},
                "offset": {"type": "integer"},
                "search_type": text("The kind of search"),
                "error": error,
            }),
        ),
        Action::Load => (
            json!(["status"]),
            json!({
                "status": text("success or error"),
                "content": text("The file's text"),
                "path": text("The path of the file"),
                "source": text("The space of the item"),
                "copied_to": text("The space of the copy"),
                "destination_path": text("The path of the copy"),
                "item_type": text("The type of the item"),
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
                "message": text("A summary"),
                "signed": {"type": "array", "description": "The ids that were signed", "items": {"type": "string"}},
                "failed": {"type": "array", "items": {"type": "object"}},
                "total": {"type": "integer"},
                "summary": text("The number of signed items"),
                "issues": {"type": "array", "description": "The problems of the item"},
                "error": error,
            }),
        ),
    };
    object(json!({"type": "object", "properties": properties, "required": required}))
}

fn object(json: Json) -> JsonObject {
    match json {
        Json::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// An argument that does not fit its schema.
#[derive(Debug, PartialEq)]
pub(crate) struct ArgumentError {
    argument: String,
    why: String,
    /// The part of the schema that it does not fit; none if the argument is missing.
    expected: Option<Json>,
}

/// The first argument that does not fit its schema. The project is this server's without a setting.
pub(crate) fn misfit(schema: &JsonObject, arguments: &Arguments) -> Option<ArgumentError> {
    let required =
        schema.get("required").and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str);
    for name in required.filter(|name| *name != "project_path") {
        if !arguments.contains_key(name) {
            let why = format!("'{name}' is a required property");
            return Some(ArgumentError { argument: name.to_owned(), why, expected: None });
        }
    }
    let properties = schema.get("properties").and_then(Json::as_object)?;
    for (name, value) in arguments {
        let Some(property) = properties.get(name) else { continue };
        let misfit = |why: String, key: &str| {
            Some(ArgumentError { argument: name.clone(), why, expected: Some(json!({key: property[key]})) })
        };
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
            return misfit(format!("{} is not of type '{wanted}'", shown(value)), "type");
        }
        if let Some(choices) = property["enum"].as_array()
            && !choices.contains(value)
        {
            return misfit(format!("{} is not one of {}", shown(value), shown(&property["enum"])), "enum");
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
pub(crate) fn refused(misfit: &ArgumentError) -> CallToolResult {
    let message = format!("Input validation error: {}", misfit.why);
    let mut result = CallToolResult::error(vec![ContentBlock::text(&message)]);
    let hint = format!("correct the argument `{}`: tools/list has its schema", misfit.argument);
    let diagnostic = Diagnostic::new(Code::BadParameters, message.clone()).hint(hint);
    let mut error = Error::new(ErrorKind::Usage, diagnostic).with("argument", misfit.argument.as_str());
    if let Some(expected) = &misfit.expected {
        error = error.with("expected", expected.clone());
    }
    result.structured_content = Some(Action::refusal(&error));
    result
}

/// The answer to a call that is refused. A model can read it, and tell its user what to allow.
pub(crate) fn denied(error: &Error) -> CallToolResult {
    answer(Action::refusal(error))
}

/// An answer as it travels.
pub(crate) fn answer(answer: Json) -> CallToolResult {
    let mut answer = if answer.is_object() { answer } else { json!({"status": "success", "data": answer}) };
    hints::for_clients(&mut answer);
    let given = content::take(&mut answer);
    let failed = match answer.get("status").and_then(Json::as_str) {
        Some(status) => status == "error",
        None => answer.get("error").is_some_and(|error| !error.is_null()),
    };
    let mut result =
        if failed { CallToolResult::structured_error(answer) } else { CallToolResult::structured(answer) };
    result.content.extend(given);
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misfit(action: Action, arguments: Json) -> Option<String> {
        super::misfit(&action.input("/p"), &object(arguments)).map(|misfit| misfit.why)
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
    fn a_schema_error_names_the_argument_and_what_is_expected() {
        let wrong =
            super::misfit(&Action::Execute.input("/p"), &object(json!({"item_type": "tool", "item_id": 5})));
        let result = refused(&wrong.unwrap());
        let content = result.structured_content.unwrap();
        let error = &content["metadata"]["error"];
        assert_eq!((&content["status"], &error["code"]), (&json!("error"), &json!("CB710")), "{content:#}");
        assert_eq!((&error["argument"], &error["expected"]), (&json!("item_id"), &json!({"type": "string"})));
        assert_eq!(result.is_error, Some(true));
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
    fn only_what_clients_may_use_is_listed() {
        let listed = |patterns: &[&str]| {
            let allowance = Allowance::new(patterns).unwrap();
            Action::ALL
                .into_iter()
                .filter_map(|action| action.tool("/p", Some(&allowance)))
                .collect::<Vec<_>>()
        };
        let names = |tools: &[Tool]| tools.iter().map(|tool| tool.name.to_string()).collect::<Vec<_>>();
        let few = listed(&[]);
        assert_eq!(names(&few), ["rye_execute", "rye_search", "rye_load"]);
        assert_eq!(few[0].input_schema["properties"]["item_type"]["enum"], json!(["directive", "knowledge"]));
        assert!(few[2].input_schema["properties"].get("destination").is_none());
        let more = listed(&["desk/*", "rye_sign", "rye_load"]);
        assert_eq!(names(&more), ["rye_execute", "rye_search", "rye_load", "rye_sign"]);
        assert_eq!(more[0].input_schema["properties"]["item_type"]["enum"].as_array().unwrap().len(), 3);
        assert!(more[2].input_schema["properties"].get("destination").is_some());
    }

    #[test]
    fn every_tool_has_both_schemas_and_says_what_it_may_do() {
        for action in Action::ALL {
            let tool = serde_json::to_value(action.tool("/p", None)).unwrap();
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
