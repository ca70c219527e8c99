//! What a real Rye server answered over the protocol, and where we decided otherwise.

#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "../../cuebook/tests/conformance/board.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod board;
mod support;

use std::process::Command;

use board::{Board, folder, read, table};
use serde_json::{Value as Json, json};
use support::{Pipes, TEST_SERVER, make_key};

/// Decided otherwise: the server's name and what it offers, whole answers instead of one key (23), flags at the top that count
/// (22), and errors that are marked as such (29).
const DECIDED: &[(&str, &str, u32)] = &[
    ("mcp", "mcp/initialize", 29),
    ("mcp", "mcp/execute_directive_unicode", 23),
    ("mcp", "mcp/execute_missing_inputs_is_not_isError", 29),
    ("mcp", "mcp/toplevel_thread_flag_silently_ignored", 22),
];

#[test]
fn cases_of_a_real_server() {
    let Some(folder) = folder("rye") else { return };
    let file = read(&folder.join("cases.json"));
    let mut board = Board::new("rye", DECIDED);
    let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    make_key(project.path(), user.path());
    let directive = project.path().join(".ai/directives/demo/greet.md");
    std::fs::create_dir_all(directive.parent().unwrap()).unwrap();
    let Some(text) = file["meta"]["fixtures"]["directive_ok"].as_str() else {
        table(&file, "cases")
            .iter()
            .filter(|case| case["group"] == "mcp")
            .for_each(|_| board.later("mcp", "the directive is not with the cases"));
        return board.finish();
    };
    std::fs::write(&directive, text).unwrap();
    let mut command = Command::new(TEST_SERVER);
    command.arg(project.path()).env("DESK_USER", user.path());
    let mut desk = Pipes::start(command);
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": client});
    let hello = desk.ask(0, "initialize", params);
    let sign = json!({"item_type": "directive", "item_id": "demo/greet"});
    let signed = desk.ask(1, "tools/call", json!({"name": "rye_sign", "arguments": sign}));
    assert_eq!(signed["result"]["isError"], false, "{signed}");

    for case in table(&file, "cases").iter().filter(|case| case["group"] == "mcp") {
        let text = case["input"].to_string().replace("{{PROJECT}}", &project.path().to_string_lossy());
        let input: Json = serde_json::from_str(&text).unwrap();
        let outcome = match input["method"].as_str() {
            Some("initialize") => same(&hello["result"], &case["expect"]),
            Some("tools/list") => {
                let answer = desk.ask(1, "tools/list", json!({}));
                tools(&answer["result"]["tools"], &case["expect"])
            }
            Some(other) => Err(format!("what {other} is to show is not known")),
            None => {
                let answer = desk.ask(1, "tools/call", input);
                same(&plain(&answer["result"]), &plain(&case["expect"]))
            }
        };
        board.note("mcp", case["id"].as_str().unwrap(), outcome);
    }
    board.finish();
}

fn same(found: &Json, wanted: &Json) -> Result<(), String> {
    if found == wanted { Ok(()) } else { Err(format!("\n  wanted {wanted}\n  found  {found}")) }
}

/// An answer without what differs from run to run, with texts that are JSON read as such.
fn plain(result: &Json) -> Json {
    let texts: Vec<Json> = result["content"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|content| {
            let text = content["text"].as_str().unwrap_or_default();
            let mut json: Json = serde_json::from_str(text).unwrap_or_else(|_| json!(text));
            if json["metadata"]["duration_ms"].is_number() {
                json["metadata"]["duration_ms"] = json!(0);
            }
            json
        })
        .collect();
    json!({"isError": result["isError"], "content": texts})
}

/// Every tool of theirs is one of ours, by the name of decision 29, with everything that theirs takes.
fn tools(found: &Json, wanted: &Json) -> Result<(), String> {
    for tool in wanted.as_array().unwrap() {
        let name = format!("rye_{}", tool["name"].as_str().unwrap());
        let ours = found.as_array().unwrap().iter().find(|ours| ours["name"] == name.as_str());
        let schema = &ours.ok_or_else(|| format!("there is no {name}"))?["inputSchema"];
        same(&schema["required"], &tool["required"])?;
        for (property, described) in tool["properties"].as_object().unwrap() {
            for (key, value) in described.as_object().unwrap() {
                same(&schema["properties"][property][key], value)
                    .map_err(|why| format!("{name}.{property}: {why}"))?;
            }
        }
    }
    Ok(())
}
