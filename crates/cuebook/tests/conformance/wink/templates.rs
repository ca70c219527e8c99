//! The text of a body: dedented, stripped, filled in.

use std::collections::BTreeSet;

use cuebook::source::Source;
use cuebook::template::dollar::{Fault, Missing, Template, expand};
use serde_json::Value as Json;

use crate::board::{Board, table};

pub fn run(cases: &Json, board: &mut Board) {
    for case in table(cases, "template_cases") {
        board.note("template", &case["template"].to_string(), check(case));
    }
}

fn check(case: &Json) -> Result<(), String> {
    let text = case["template"].as_str().unwrap();
    let template = Template::compile(Source::verbatim("case", text));
    let names: BTreeSet<&str> = template.placeholders().iter().map(String::as_str).collect();
    let wanted: BTreeSet<&str> =
        case["placeholder_names"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    if names != wanted {
        return Err(format!("expected the placeholders {wanted:?}, got {names:?}"));
    }
    let values = case["params"].as_object().unwrap();
    let outcome = expand(text, values, Missing::Error).map_err(|fault| said(&fault));
    let expected = match case["ok"].as_bool().unwrap() {
        true => Ok(case["value"].as_str().unwrap().to_owned()),
        false => Err(refused(&case["error"])),
    };
    if outcome == expected { Ok(()) } else { Err(format!("expected {expected:?}, got {outcome:?}")) }
}

/// What the package said, in short.
fn refused(error: &Json) -> String {
    match error["placeholder"].as_str() {
        Some(name) => format!("missing {name}"),
        None => error["message"].as_str().unwrap().to_owned(),
    }
}

/// The same of our own refusal.
fn said(fault: &Fault) -> String {
    match fault {
        Fault::Missing { name, .. } => format!("missing {name}"),
        Fault::Invalid { line, column, .. } => {
            format!("Invalid placeholder in string: line {line}, col {column}")
        }
        other => other.to_string(),
    }
}
