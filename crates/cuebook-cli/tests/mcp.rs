//! `cuebook mcp`, the real binary. What it says is tested with the official client in `cuebook-serve`; here it is how it behaves as
//! a command.

#![allow(clippy::unwrap_used, reason = "these are tests")]

mod support;

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value as Json, json};
use support::{Project, Test, python_or_skip};

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
fn requests_are_answered_also_if_the_input_ends_right_after_them() {
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

const GREET: &str = r#"# Greet

```xml
<directive name="greet" version="1.0.0">
  <metadata>
    <description>Greet somebody.</description>
    <category>demo</category>
    <author>tests</author>
    <model tier="fast" />
  </metadata>
  <inputs><input name="user" type="string" required="true">Who</input></inputs>
  <outputs><output name="greeting" type="string">What was said</output></outputs>
</directive>
```

Greet {input:user}.
"#;

#[test]
fn directives_run_in_threads_and_the_orchestrator_looks_after_them() {
    use cuebook_mock::{Api, Mock, Reply, Script};
    use std::io::{BufRead, BufReader};
    let returned =
        |words: &str| Reply::call("c1", "directive_return", json!({"greeting": words})).usage(50, 5);
    let script = Script::new().reply(returned("one")).reply(returned("two")).reply(returned("three"));
    let mock = Mock::start(script).unwrap();
    let project = Project::new();
    let provider = mock.provider_yaml(Api::OpenAiChat).replace("key: MOCK_KEY\n", "");
    project.write("home/.ai/config/providers/mock.yaml", provider);
    project.write(".ai/directives/demo/greet.md", GREET);
    for args in [&["keys", "generate"][..], &["sign", "directive", "demo/greet"]] {
        let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
        assert!(command.args(args).output().unwrap().status.success());
    }
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    command.arg("mcp").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = command.spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut output = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut number = 0;
    let mut call = |name: &str, arguments: Json| -> Json {
        if number == 0 {
            writeln!(input, "{}", hello()).unwrap();
            writeln!(input, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
        }
        number += 1;
        writeln!(input, "{}", ask(number, "tools/call", json!({"name": name, "arguments": arguments})))
            .unwrap();
        loop {
            let line: Json = serde_json::from_str(&output.next().unwrap().unwrap()).unwrap();
            if line["id"] == number {
                return line["result"]["structuredContent"].clone();
            }
        }
    };
    let greet = |more: Json, parameters: Json| {
        let mut arguments =
            json!({"item_type": "directive", "item_id": "demo/greet", "parameters": {"user": "Ann"}});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments["parameters"].as_object_mut().unwrap().extend(parameters.as_object().unwrap().clone());
        arguments
    };
    // Both ways of saying it mean the same.
    let model = "mock-model";
    let first = call("rye_execute", greet(json!({"thread": true, "model": model}), json!({})));
    assert_eq!(
        (&first["thread_status"], &first["outputs"]["greeting"]),
        (&json!("completed"), &json!("one")),
        "{first:#}"
    );
    let second = call("rye_execute", greet(json!({}), json!({"thread": true, "model": model})));
    assert_eq!(
        (&second["status"], &second["outputs"]["greeting"]),
        (&json!("success"), &json!("two")),
        "{second:#}"
    );
    assert_ne!(first["thread_id"], second["thread_id"]);
    let third = call("rye_execute", greet(json!({"thread": true, "async": true, "model": model}), json!({})));
    assert_eq!(third["status"], "running", "{third:#}");
    let id = third["thread_id"].as_str().unwrap().to_owned();
    let mut orchestrate = |parameters: Json| {
        let item = "rye/agent/threads/orchestrator";
        let answer =
            call("rye_execute", json!({"item_type": "tool", "item_id": item, "parameters": parameters}));
        assert_eq!(answer["status"], "success", "{answer:#}");
        answer["data"].clone()
    };
    let known = orchestrate(json!({"operation": "get_status", "thread_id": id}));
    assert!(["created", "running", "completed"].contains(&known["status"].as_str().unwrap()), "{known}");
    let waited = orchestrate(json!({"operation": "wait_threads", "thread_ids": [id], "timeout": 60}));
    assert_eq!(waited["results"][&id]["status"], "completed", "{waited:#}");
    let read = orchestrate(json!({"operation": "read_transcript", "thread_id": id}));
    let kinds: Vec<&str> = read["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(|event| event["event_type"].as_str().unwrap())
        .collect();
    assert_eq!((kinds[0], kinds.last()), ("thread_started", Some(&"thread_completed")), "{kinds:?}");
    let results = orchestrate(json!({"operation": "aggregate_results", "thread_ids": [id]}));
    assert_eq!(results["results"][&id]["result"]["outputs"]["greeting"], "three", "{results:#}");
    drop(input);
    assert!(server.wait().unwrap().success());
    assert_eq!(mock.requests().len(), 3);
}
