//! What the real Rye code answered, held against ours. The cases are not part of this repository: `CUEBOOK_CONFORMANCE` names
//! their folder.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../cuebook/tests/conformance/board.rs"]
mod board;
#[path = "../../../cuebook/tests/conformance/compare.rs"]
mod compare;
mod execute;
#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeSet;

use board::{Board, folder, read};
use cuebook::dialect::tool::{Notation, constants};
use cuebook::source::Source;
use serde_json::{Value as Json, json};

/// Where we decided against the reference.
// The number 30 stands for what the description of the cases calls a defect, and we mend.
const DECIDED: &[(&str, &str, u32)] = &[
    // A comment sign inside of a string begins no comment.
    ("parse_tool", "toolmeta/js_url_comment_breaks_schema", 30),
    // Nothing is quoted for a shell where there is none; where there is one, values are its variables.
    ("template_config", "template_config/env_value_shell_quoted", 30),
    // What was signed is the whole file, where it lies.
    ("execute", "directive_tampered_preamble_NOT_DETECTED", 24),
    ("execute", "directive_tampered_body_NOT_DETECTED", 24),
    ("execute", "directive_moved_and_renamed_STILL_VALID", 24),
    ("execute", "directive_path_traversal_not_blocked", 26),
    ("execute", "tool_unsigned_dry_run_passes", 27),
    // Parameters are data.
    ("execute", "tool_bash_yaml_shell_injection", 25),
    ("execute", "tool_parameter_values_are_templated", 25),
    ("execute", "tool_timeout_via_parameter", 25),
    ("execute", "tool_bash_runtime_command_parameter_is_lost", 25),
    // Defects that the facts name.
    ("execute", "tool_via_bash_runtime_config_command", 30),
    ("execute", "tool_function_returns_none", 30),
    ("execute", "tool_prints_json_list", 30),
    ("execute", "knowledge_dashes_success_with_error_in_data", 30),
];

#[test]
fn rye() {
    let Some(folder) = folder("rye") else { return };
    let file = read(&folder.join("cases.json"));
    let cases = file["cases"].as_array().unwrap();
    let mut board = Board::new("rye", DECIDED);
    let name = |case: &Json| case["id"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let in_b: BTreeSet<String> = cases.iter().filter(|case| case["variant"] == "B").map(name).collect();
    for case in cases {
        let (id, group) = (case["id"].as_str().unwrap(), case["group"].as_str().unwrap());
        match group {
            "parse_tool" => board.note(group, id, parse_tool(case)),
            "chain_validation" => board.note(group, id, chain_validation(case)),
            "template_config" => board.note(group, id, template_config(case)),
            // Seed 002 has the shapes of variant B.
            "execute" if case["variant"] == "C" && in_b.contains(&name(case)) => {}
            "execute" => match execute::run(&file["meta"], case, &name(case)) {
                Some(outcome) => board.note(group, &name(case), outcome),
                None => board.later(group, "the item is not with the case, and cannot be told from it"),
            },
            "lockfile" => match execute::lockfile(case) {
                Some(outcome) => board.note(group, id, outcome),
                None => board.later(group, "the item is not with the case, and cannot be told from it"),
            },
            _ => {}
        }
    }
    board.finish();
}

fn parse_tool(case: &Json) -> Result<(), String> {
    let input = &case["input"];
    let (extension, notation) = match input["parser"].as_str().unwrap() {
        parser if parser.starts_with("python") => ("py", Notation::Python),
        parser if parser.starts_with("yaml") => ("yaml", Notation::Yaml),
        _ => ("js", Notation::JavaScript),
    };
    let source = Source::new(format!("t.{extension}"), input["text"].as_str().unwrap());
    let found = match constants(&source, notation) {
        Ok(found) if notation == Notation::Yaml => json!({"data": found}),
        Ok(found) => Json::Object(found),
        // Messages are ours; that it is an error, and of which line, is not.
        Err(error) => {
            let wanted = case["expect"]["error"].as_str().ok_or_else(|| error.to_string())?;
            let line = error.diagnostic().place.as_ref().map(|place| place.line()).unwrap_or_default();
            let same = !wanted.contains("line ") || wanted.contains(&format!("line {line}"));
            return same.then_some(()).ok_or_else(|| format!("{error}, wanted {wanted}"));
        }
    };
    compare::equals(&case["expect"], &found)
}

fn chain_validation(case: &Json) -> Result<(), String> {
    let report = cuebook_run::validate(case["input"]["chain"].as_array().unwrap());
    let found = json!({
        "valid": report.issues.is_empty(),
        "issues": report.issues,
        "warnings": report.warnings,
        "validated_pairs": report.validated_pairs.len(),
    });
    compare::equals(&case["expect"], &found)
}

fn template_config(case: &Json) -> Result<(), String> {
    let map = |name: &str| case["input"][name].as_object().cloned().unwrap_or_default();
    let found = cuebook_run::template(&map("config"), &map("env"));
    compare::equals(&case["expect"], &Json::Object(found))
}
