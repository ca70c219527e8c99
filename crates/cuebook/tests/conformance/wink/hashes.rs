//! Hashes of texts and of JSON values.

use cuebook::overrides::hash::{canonical_json, json_hash, text_hash};
use serde_json::Value as Json;

use crate::board::Board;

pub fn run(cases: &Json, board: &mut Board) {
    let tables = cases["hash_cases"].as_object().into_iter().flatten();
    for (table, cases) in tables {
        for case in cases.as_array().expect("a list of cases") {
            let value = &case["value"];
            let outcome = match table.as_str() {
                "text" => same("sha256", case, text_hash(value.as_str().expect("a text"))),
                "json" => same("canonical", case, canonical_json(value))
                    .and_then(|()| same("sha256", case, json_hash(value))),
                other => Err(format!("nobody knows how to run `{other}`")),
            };
            board.note("hashes", &format!("{table} {value}"), outcome);
        }
    }
}

fn same(field: &str, case: &Json, found: String) -> Result<(), String> {
    if case[field] == found { Ok(()) } else { Err(format!("{field}: {} and not {found}", case[field])) }
}
