//! `cuebook mcp`, the real binary. What it says is tested with the official client in `cuebook-serve`; here it is how it behaves as
//! a command.

#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "../../../cuebook/tests/support/python.rs"]
#[allow(dead_code, reason = "shared with other tests, which use more of it")]
mod python;
#[path = "../support/mod.rs"]
mod support;

mod allow;
#[cfg(target_os = "linux")]
mod fence;
mod http;
mod others;
mod questions;
mod setup;
mod threads;

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value as Json, json};
use support::{Project, Test, python_or_skip};

/// Runs a command of the project's user.
fn cuebook(project: &Project, args: &[&str]) {
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    let output = command.args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A call of a tool.
fn call(id: u32, tool: &str, arguments: Json) -> Json {
    ask(id, "tools/call", json!({"name": tool, "arguments": arguments}))
}

/// The code of the error that a call was answered with.
fn code(answer: &Json) -> &str {
    let content = &answer["result"]["structuredContent"]["metadata"]["error"]["code"];
    content.as_str().or(answer["error"]["data"]["code"].as_str()).unwrap_or_else(|| panic!("{answer:#}"))
}

/// Sends lines to the command, closes its input and gives what it wrote: its answers, and what it said besides.
fn talk(project: &Project, args: &[&str], messages: &[Json]) -> (Vec<Json>, String) {
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    command.arg("mcp").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    for message in messages {
        writeln!(input, "{message}").unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    // Nothing but the protocol may be on stdout.
    let text = String::from_utf8(output.stdout).unwrap();
    let answers = text.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}")));
    (answers.collect(), said)
}

/// Sends messages, waits for the answer to each request, and closes the input only then.
fn converse(project: &Project, args: &[&str], messages: &[Json]) -> (Vec<Json>, String) {
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    command.arg("mcp").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    messages.iter().for_each(|message| writeln!(input, "{message}").unwrap());
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut answers: Vec<Json> = Vec::new();
    while answers.len() < messages.len() {
        let Some(line) = lines.next() else { break };
        let message: Json = serde_json::from_str(&line.unwrap()).unwrap();
        if message.get("id").is_some() {
            answers.push(message);
        }
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success() && answers.len() == messages.len(), "{said}\n{answers:?}");
    (answers, said)
}

fn hello() -> Json {
    let client = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
}

fn ask(id: u32, method: &str, params: Json) -> Json {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

fn answer(answers: &[Json], id: u32) -> &Json {
    answers.iter().find(|answer| answer["id"] == id).unwrap_or_else(|| panic!("{answers:?}"))
}

#[test]
fn requests_before_the_end_of_input_are_answered() {
    let project = Project::new();
    project.write("prompts/hi/template.md", "Hi {{ name }}\n");
    let messages = [
        hello(),
        ask(1, "prompts/list", json!({})),
        ask(2, "prompts/get", json!({"name": "hi", "arguments": {"name": "Ada"}})),
        ask(3, "tools/list", json!({})),
    ];
    for _ in 0..5 {
        let (answers, said) = talk(&project, &[], &messages);
        assert_eq!(answer(&answers, 0)["result"]["serverInfo"]["name"], "cuebook");
        assert_eq!(answer(&answers, 2)["result"]["messages"][0]["content"]["text"], "Hi Ada");
        assert_eq!(answer(&answers, 3)["result"]["tools"][0]["name"], "rye_execute");
        assert!(answer(&answers, 1)["result"]["prompts"].as_array().unwrap().len() > 1);
        assert_eq!(said, "");
    }
}

#[test]
fn a_client_may_set_a_log_level() {
    let project = Project::new();
    let messages = [hello(), ask(1, "logging/setLevel", json!({"level": "debug"}))];
    let (answers, _) = talk(&project, &[], &messages);
    assert_eq!(answer(&answers, 0)["result"]["capabilities"]["logging"], json!({}));
    assert_eq!(answer(&answers, 1)["result"], json!({}), "{answers:?}");
}

#[test]
fn hooks_run_and_what_they_print_is_not_on_stdout() {
    let Some(()) = python_or_skip() else { return };
    let project = Project::new();
    project.write(
        "prompts/hi/prompt.py",
        "TEMPLATE = 'Hi {{ name }}'\ndef pre_render(variables, context):\n    print('I was here')\n    variables['name'] = 'Ada'\n    return variables\n",
    );
    let messages = [hello(), ask(1, "prompts/get", json!({"name": "hi"}))];
    let (answers, said) = talk(&project, &["--verbose", "--trace", "console"], &messages);
    assert_eq!(answer(&answers, 1)["result"]["messages"][0]["content"]["text"], "Hi Ada", "{said}");
    assert!(said.contains("I was here"), "{said}");
}

#[test]
fn options_of_http_mean_nothing_without_it() {
    for args in [["mcp", "--token-env", "X"], ["mcp", "--allow-origin", "https://a.example"]] {
        Test::new().args(args).code(2).run();
    }
    Test::new().args(["mcp", "--root", "nowhere"]).code(1).run();
}

#[test]
fn an_input_that_is_no_pipe_is_read_as_well() {
    let project = Project::new();
    project.write("talk.jsonl", format!("{}\n{}\n", hello(), ask(1, "ping", json!({}))));
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    let file = std::fs::File::open(project.path().join("talk.jsonl")).unwrap();
    let output = command.arg("mcp").stdin(file).output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap().lines().count(), 2);
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    assert!(command.arg("mcp").output().unwrap().status.success(), "an input that ends at once is no error");
}
