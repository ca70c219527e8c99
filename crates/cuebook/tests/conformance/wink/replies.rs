//! Replies that hold, or do not hold, what a prompt asks for.

use cuebook::chat::output::{Container, OutputSpec};
use cuebook::prompt::Extras;
use serde_json::Value as Json;

use super::types;
use crate::board::{Board, table};
use crate::compare::equals;

pub fn run(cases: &Json, board: &mut Board) {
    for (number, case) in table(cases, "parse_cases").iter().enumerate() {
        let root = case["root"].as_str().unwrap();
        let container = match case["container"].as_str().unwrap() {
            "array" => Container::Array,
            _ => Container::Object,
        };
        let allow_extra_keys = case["allow_extra_keys"].as_bool().unwrap();
        let spec = OutputSpec { record: types::record(&case["types"], root), container, allow_extra_keys };
        let schema = spec.record.schema(Extras::Allowed);
        board.note("replies", &format!("{number}: {root}: schema"), equals(&case["schema"], &schema));
        for result in case["results"].as_array().unwrap() {
            let reply = result["reply"].as_str().unwrap();
            board.note("replies", &format!("{number}: {root}: {reply:?}"), one(&spec, reply, result));
        }
    }
    for case in table(cases, "cases") {
        schemas(case, board);
    }
}

/// The schemas of the tools of a prompt, which have no title there.
fn schemas(case: &Json, board: &mut Board) {
    let mut sections: Vec<&Json> = case["prompt"]["sections"].as_array().into_iter().flatten().collect();
    let mut tools = Vec::new();
    while let Some(section) = sections.pop() {
        tools.extend(section["tools"].as_array().into_iter().flatten());
        sections.extend(section["children"].as_array().into_iter().flatten());
    }
    for spec in case["expected"]["tool_specs"].as_array().into_iter().flatten() {
        let Some(tool) = tools.iter().find(|tool| tool["name"] == spec["name"]) else { continue };
        if !tool["params"].is_object() {
            continue;
        }
        let record = types::record_of_fields("Params", &tool["params"], &case["types"]);
        let mut schema = record.schema(Extras::Forbidden);
        schema.as_object_mut().unwrap().shift_remove("title");
        let name = format!("{}: {}", case["id"], spec["name"]);
        board.note("schemas", &name, equals(&spec["parameters"], &schema));
    }
}

fn one(spec: &OutputSpec, reply: &str, expected: &Json) -> Result<(), String> {
    match (spec.parse(reply), expected["ok"].as_bool().unwrap()) {
        (Ok(value), true) => equals(&expected["value"], &value),
        (Err(error), false) => {
            let wanted = [&expected["error"]["type"], &expected["error"]["message"]];
            let got = [Json::from(error.kind().name()), Json::from(error.diagnostic().message.as_str())];
            if wanted == [&got[0], &got[1]] {
                Ok(())
            } else {
                Err(format!("expected {wanted:?}, got {got:?}"))
            }
        }
        (Ok(value), false) => Err(format!("expected {}, got {value}", expected["error"]["message"])),
        (Err(error), true) => Err(format!("expected {}, got {error}", expected["value"])),
    }
}
