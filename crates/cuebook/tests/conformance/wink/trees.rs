//! Trees of sections: what was rendered, refused, opened and read.

mod case;

use std::panic::{AssertUnwindSafe, catch_unwind};

use cuebook::Error;
use cuebook::prompt::Extras;
use cuebook::sections::disclosure::{expand, suffix_of};
use cuebook::sections::{RenderedPrompt, Setting, Tree, VisibilityOverrides, check_key};
use serde_json::{Value as Json, json};

use self::case::Case;
use crate::board::{Board, table};
use crate::compare::equals;

type Outcome = Result<(), String>;

pub fn run(cases: &Json, board: &mut Board) {
    for case in table(cases, "cases") {
        let name = case["id"].as_str().expect("a name");
        // A case of a form that the runner does not know must not hide the others.
        let outcome = catch_unwind(AssertUnwindSafe(|| check(case)));
        board.note("trees", name, outcome.unwrap_or_else(|_| Err("panicked".to_owned())));
    }
    for case in table(cases, "suffix_cases") {
        let key = case["section_key"].as_str().expect("a key");
        let children = case::texts(&case["child_keys"]);
        let found = suffix_of(key, &children, case["has_tools"] == true);
        board.note(
            "suffixes",
            &format!("{key} {children:?} {}", case["has_tools"]),
            same("suffix", &case["suffix"], found),
        );
    }
    for case in table(cases, "key_cases") {
        let key = case["key"].as_str().expect("a key");
        let found = check_key("Section key", key);
        let (table, outcome) = match (case["value"].as_str(), found) {
            (Some(value), Ok(())) => ("keys", same("key", &json!(value), key)),
            // Decision 16: what the package changes silently is refused here, and the message says what to write.
            (Some(value), Err(error)) => {
                let hint = error.diagnostic().hint.as_deref().map(str::to_owned);
                ("keys, refused with a suggestion", same("hint", &json!(format!("write `{value}`")), hint))
            }
            (None, Ok(())) => ("keys", Err("it is a key".to_owned())),
            (None, Err(error)) => ("keys", same_error(&case["error"], &error)),
        };
        board.note(table, &format!("{key:?}"), outcome);
    }
}

fn same(what: &str, expected: &Json, found: impl serde::Serialize) -> Outcome {
    equals(expected, &json!(found)).map_err(|why| format!("{what}: {why}"))
}

fn check(case: &Json) -> Outcome {
    let expected = &case["expected"];
    let read = Case::read(case);
    let Case { tree, bound, session, overrides } = match read {
        Ok(read) => read,
        Err(error) => return refused(expected, &error, false),
    };
    let setting = Setting::new(bound.values()).session(&session).overrides(&overrides);
    let rendered = match tree.render(&setting) {
        Ok(rendered) => rendered,
        Err(error) => return refused(expected, &error, true),
    };
    if expected["ok"] != true {
        return Err(format!("expected {}, got {:?}", expected["error"]["message"], rendered.text()));
    }
    whole(expected, &tree, &rendered)?;
    let answers = expected["calls"].as_array().into_iter().flatten();
    for (call, answer) in case["calls"].as_array().into_iter().flatten().zip(answers) {
        called(call, answer, &tree, &rendered, &setting, &session).map_err(|why| format!("{call}: {why}"))?;
    }
    Ok(())
}

fn refused(expected: &Json, error: &Error, is_render: bool) -> Outcome {
    if expected["ok"] == true {
        return Err(format!("expected {}, got {error}", expected["text"]));
    }
    if (expected["stage"] == "render") != is_render {
        return Err(format!("expected at the stage {}, got {error}", expected["stage"]));
    }
    same_error(&expected["error"], error)
}

/// The same error: its type, its message, and what it carries. What stands behind it in Python is Python's own.
fn same_error(expected: &Json, error: &Error) -> Outcome {
    let kind = match expected["type"].as_str().expect("a type") {
        // These are Python's words for a bad key and for bad arguments.
        "ValueError" | "TypeError" if error.kind().name() == "OutputParseError" => "OutputParseError",
        "ValueError" | "TypeError" => "PromptValidationError",
        own => own,
    };
    same("type", &json!(kind), error.kind().name())?;
    same("message", &expected["message"], &error.diagnostic().message)?;
    for field in ["section_path", "placeholder", "dataclass_type", "raw_message", "reason", "section_keys"] {
        if let Some(wanted) = expected.get(field) {
            let none = if field == "section_path" { json!([]) } else { Json::Null };
            same(field, wanted, error.field(field).unwrap_or(&none))?;
        }
    }
    let requested = expected["requested_overrides"].as_array().into_iter().flatten();
    let requested: serde_json::Map<String, Json> = requested
        .map(|wanted| (case::texts(&wanted["path"]).join("/"), wanted["visibility"].clone()))
        .collect();
    if !requested.is_empty() {
        let found = error.field("requested_overrides").expect("what to open");
        same("requested_overrides", &json!(requested), found)?;
        let order: Vec<&String> = found.as_object().expect("an object").keys().collect();
        same("the order of them", &json!(order), requested.keys().collect::<Vec<_>>())?;
    }
    Ok(())
}

fn names(rendered: &RenderedPrompt) -> Vec<&str> {
    rendered.tools.iter().map(|tool| tool.name.as_str()).collect()
}

fn whole(expected: &Json, tree: &Tree, rendered: &RenderedPrompt) -> Outcome {
    same("text", &expected["text"], rendered.text())?;
    same("tools", &expected["tools"], names(rendered))?;
    let mut specs = rendered.tools_json();
    for spec in specs.as_array_mut().expect("a list") {
        spec["parameters"].as_object_mut().expect("a schema").shift_remove("title");
        bare(&mut spec["parameters"]);
    }
    same("tool_specs", &expected["tool_specs"], specs)?;
    let skills: Vec<&str> = rendered.skills.iter().map(|skill| skill.name.as_str()).collect();
    same("skills", &expected["skills"], skills)?;
    same("tool_param_descriptions", &expected["tool_param_descriptions"], &rendered.tool_param_descriptions)?;
    let output = rendered.structured_output.as_ref().map(|output| {
        json!({
            "type": output.record.name,
            "container": output.container.as_str(),
            "allow_extra_keys": output.allow_extra_keys,
            "schema": output.record.schema(Extras::Allowed),
        })
    });
    same("structured_output", &expected["structured_output"], output)?;
    let nodes = tree.sections().iter();
    let nodes: Vec<Json> =
        nodes.map(|node| json!({"path": node.path, "depth": node.depth, "number": node.number})).collect();
    same("nodes", &expected["nodes"], nodes)?;
    same("descriptor", &expected["descriptor"], rendered.descriptor.to_json())
}

/// A schema without its descriptions, which the package leaves out.
fn bare(schema: &mut Json) {
    let Some(schema) = schema.as_object_mut() else { return };
    schema.shift_remove("description");
    for (word, inner) in schema.iter_mut() {
        match word.as_str() {
            "properties" => inner.as_object_mut().into_iter().flatten().for_each(|(_, of)| bare(of)),
            "anyOf" | "prefixItems" => inner.as_array_mut().into_iter().flatten().for_each(bare),
            "items" | "additionalProperties" => bare(inner),
            _ => {}
        }
    }
}

fn called(
    call: &Json,
    expected: &Json,
    tree: &Tree,
    rendered: &RenderedPrompt,
    setting: &Setting<'_>,
    session: &VisibilityOverrides,
) -> Outcome {
    let name = call["tool"].as_str().expect("a tool");
    if rendered.tool(name).is_none() {
        return same("error", &expected["error"]["type"], "ToolMissing");
    }
    let error = match name {
        "read_section" => match tree.read_section(&call["args"], setting) {
            Ok(content) => return same("content", &expected["value"]["content"], content),
            Err(error) => error,
        },
        "open_sections" => match tree.open_sections(&call["args"], setting) {
            Err(error) => error,
        },
        other => return Err(format!("nobody knows how to call `{other}`")),
    };
    if expected["ok"] == true {
        return Err(format!("expected {}, got {error}", expected["value"]));
    }
    same_error(&expected["error"], &error)?;
    if call["then_rerender"] != true {
        return Ok(());
    }
    let mut session = session.clone();
    expand(&error, &mut session);
    let again = tree.render(&setting.session(&session)).map_err(|error| error.to_string())?;
    same("rendered again", &expected["rerender"]["text"], again.text())?;
    same("tools again", &expected["rerender"]["tools"], names(&again))
}
