//! What the real Rye code answered, and what Prompty's vectors say about runs, held against ours. The cases are not part of this repository: `CUEBOOK_CONFORMANCE` names
//! their folder.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

#[path = "../../../cuebook/tests/conformance/board.rs"]
mod board;
mod budget;
mod classify;
#[path = "../../../cuebook/tests/conformance/compare.rs"]
mod compare;
mod execute;
mod policy;
mod prompty;
#[path = "../support/mod.rs"]
mod support;
mod thread;

use std::collections::BTreeSet;

use board::{Board, folder, read, table};
use cuebook::dialect::tool::{Notation, constants};
use cuebook::source::Source;
use serde_json::{Value as Json, json};

/// Instead of the number of a decision: the description of the cases calls it a defect, and we mend it.
const DEFECT: u32 = 0;

/// Where we decided against the reference, with the number of the decision.
const DECIDED: &[(&str, &str, u32)] = &[
    // A comment sign inside of a string begins no comment.
    ("parse_tool", "toolmeta/js_url_comment_breaks_schema", DEFECT),
    // Nothing is quoted for a shell where it is missing; where there is one, values are its variables.
    ("template_config", "template_config/env_value_shell_quoted", DEFECT),
    // What was signed is the whole file, where it lies.
    ("execute", "directive_tampered_preamble_NOT_DETECTED", 24),
    ("execute", "directive_tampered_body_NOT_DETECTED", 24),
    ("execute", "directive_moved_and_renamed_STILL_VALID", 24),
    ("execute", "directive_path_traversal_not_blocked", 26),
    ("execute", "tool_unsigned_dry_run_passes", 27),
    // An error names the item, as the seed prints it.
    ("execute", "directive_item_id_with_extension", 23),
    ("execute", "directive_not_found", 23),
    ("execute", "knowledge_not_found", 23),
    ("execute", "tool_not_found", 23),
    ("execute", "tool_dry_run_not_found", 23),
    // Parameters are data.
    ("execute", "tool_bash_yaml_shell_injection", 25),
    ("execute", "tool_parameter_values_are_templated", 25),
    ("execute", "tool_timeout_via_parameter", 25),
    ("execute", "tool_bash_runtime_command_parameter_is_lost", 25),
    // Defects that the facts name.
    ("execute", "tool_via_bash_runtime_config_command", DEFECT),
    ("execute", "tool_function_returns_none", DEFECT),
    ("execute", "tool_prints_json_list", DEFECT),
    ("execute", "knowledge_dashes_success_with_error_in_data", DEFECT),
    // A child that asks for more than its parent has gets all of that.
    ("capabilities", "caps/attenuate/god_child_gets_only_first_parent", DEFECT),
    // Everything of a type is enough to search the type.
    ("capabilities", "caps/check/search_item_type_only_cap_needs_exact", DEFECT),
    // Signing is not the same as everything.
    ("risk", "risk/sign_falls_to_unrestricted", DEFECT),
    // A server that says how long to wait is listened to, and one that does not is not asked again at once.
    ("error_classification", "error_class/429", DEFECT),
    // A model that says that it is blocked ends the thread; one that never returns what was asked for has failed.
    ("thread", "thread/return_blocked_error_is_rejected", DEFECT),
    ("thread", "thread/text_only_exhausts_nudges", DEFECT),
    // Children are counted where every process can see it, and each gets a share of the money that is left.
    ("thread", "thread/spawn_limit_not_enforced_across_processes", DEFECT),
    ("thread", "thread/second_child_budget_refused*", DEFECT),
    // A thread in a process of its own is not its own parent.
    ("thread", "thread/async*", DEFECT),
    // Inputs are a part of the log, so a thread can go on with them.
    ("thread", "thread/resume_*", DEFECT),
    // Threads of other processes can be stopped as well.
    ("thread", "thread/orchestrator_cancel_thread", DEFECT),
    // What Anthropic answers when it has too much to do.
    ("error_classification", "error_class/529_not_listed", DEFECT),
];

#[test]
fn prompty() {
    if let Some(folder) = folder("prompty") {
        prompty::run(&folder).finish();
    }
}

#[test]
fn rye() {
    if let Some(folder) = folder("rye") {
        run(&folder).finish();
    }
}

#[test]
fn a_file_without_cases_is_accepted() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("cases.json"), "{}").unwrap();
    assert_eq!(run(folder.path()).count(), 0);
}

/// Runs every group of this crate.
fn run(folder: &std::path::Path) -> Board {
    let file = read(&folder.join("cases.json"));
    let cases = table(&file, "cases");
    let mut board = Board::new("rye", DECIDED);
    board.remark("thread", "of event_types all but cognition_out and the return: our log has other events");
    board.remark(
        "thread",
        "of registry_rows and budget_rows the columns that name times, processes and models",
    );
    board.remark(
        "thread",
        "the prompt except the body of the directive: it is the listing of the seed (decision 21)",
    );
    board.remark("thread", "the words of nudges and refusals; only their reasons are compared");
    board.remark("thread", "requests that were not answered: a turn is an answer");
    board.remark("thread", "the row of a refused thread, and the spend of a root in the ledger");
    board.remark("execute", "durations, paths and times, which the cases mark as volatile");
    let name = |case: &Json| case["id"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
    let in_b: BTreeSet<String> = cases.iter().filter(|case| case["variant"] == "B").map(name).collect();
    for case in cases {
        let (id, group) = (case["id"].as_str().unwrap(), case["group"].as_str().unwrap());
        match group {
            "parse_tool" => board.note(group, id, parse_tool(case)),
            group if policy::is_ours(group) => board.note(group, id, policy::run(group, case)),
            "chain_validation" => board.note(group, id, chain_validation(case)),
            "template_config" => board.note(group, id, template_config(case)),
            // Seed 002 has the shapes of variant B.
            "execute" if case["variant"] == "C" && in_b.contains(&name(case)) => {
                board.later(group, "the same case in the variant that the seed describes is run");
            }
            "execute" => match execute::run(&file["meta"], case, &name(case)) {
                Some(outcome) => board.note(group, &name(case), outcome),
                None => board.later(group, "the item is not with the case, and cannot be told from it"),
            },
            "error_classification" => board.note(group, id, classify::run(case)),
            "lockfile" => match execute::lockfile(case) {
                Some(outcome) => board.note(group, id, outcome),
                None => board.later(group, "the item is not with the case, and cannot be told from it"),
            },
            "budget" => board.note(group, id, budget::run(case)),
            "thread" => match thread::run(&file["meta"], case) {
                Some(outcome) => board.note(group, id, outcome),
                None => board.later(group, "the directive is not with the case, and cannot be told from it"),
            },
            // The runners of `cuebook` and `cuebook-serve` have the others, and `cuebook` names those that no one has.
            _ => {}
        }
    }
    board
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
