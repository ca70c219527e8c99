//! Threads that MCP clients start: they run, and they may no more than their client.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use cuebook_mock::{Api, Mock, Reply, Script};
use serde_json::{Value as Json, json};

use crate::support::{Project, python_or_skip};
use crate::{answer, ask, call, code, converse, cuebook, hello};

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
fn mcp_runs_directives_in_threads() {
    let returned =
        |words: &str| Reply::call("c1", "directive_return", json!({"greeting": words})).usage(50, 5);
    let script = Script::new().reply(returned("one")).reply(returned("two")).reply(returned("three"));
    let mock = Mock::start(script).unwrap();
    let project = Project::new();
    let provider = mock.provider_yaml(Api::OpenAiChat).replace("key: MOCK_KEY\n", "");
    project.write("home/.ai/config/providers/mock.yaml", provider);
    project.write(".ai/directives/demo/greet.md", GREET);
    cuebook(&project, &["keys", "generate"]);
    cuebook(&project, &["sign", "directive", "demo/greet"]);
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    command.args(["mcp", "--allow", "rye/agent/threads/orchestrator"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
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

const SHELL: &str = r#"# Clean

```xml
<directive name="clean" version="1.0.0">
  <metadata>
    <description>Cleans up.</description>
    <category>demo</category>
    <author>tests</author>
    <model tier="fast" />
    <permissions>
      <execute><tool>rye.bash.bash</tool><tool>desk.*</tool></execute>
    </permissions>
  </metadata>
</directive>
```

Clean up.
"#;

/// A project whose directive may use a shell, and a model that does.
fn with_shell(replies: usize) -> (Project, Mock) {
    let command =
        json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": "touch pwned"}});
    let mut script = Script::new();
    for _ in 0..replies {
        script = script
            .reply(Reply::call("c1", "rye_execute", command.clone()).usage(50, 5))
            .reply(Reply::text("done").usage(50, 5));
    }
    let mock = Mock::start(script).unwrap();
    let project = Project::new();
    let provider = mock.provider_yaml(Api::OpenAiChat).replace("key: MOCK_KEY\n", "");
    project.write("home/.ai/config/providers/mock.yaml", provider);
    project.write(".ai/directives/demo/clean.md", SHELL);
    cuebook(&project, &["keys", "generate"]);
    cuebook(&project, &["sign", "directive", "demo/clean"]);
    (project, mock)
}

#[test]
fn a_thread_runs_no_tool_that_its_client_may_not_run() {
    let Some(()) = python_or_skip() else { return };
    let (project, _mock) = with_shell(3);
    let clean =
        json!({"item_type": "directive", "item_id": "demo/clean", "thread": true, "model": "mock-model"});
    for args in [&[][..], &["--allow", "*"]] {
        let (answers, said) = converse(&project, args, &[hello(), call(1, "rye_execute", clean.clone())]);
        let answer = answer(&answers, 1);
        assert_eq!(answer["result"]["structuredContent"]["status"], "success", "{answer:#} {said}");
        assert!(!project.path().join("pwned").exists(), "{args:?}");
    }
    let (_, said) =
        converse(&project, &["--allow", "rye/bash/bash"], &[hello(), call(1, "rye_execute", clean)]);
    assert!(project.path().join("pwned").exists(), "what is allowed by name runs: {said}");
}

#[test]
fn a_detached_thread_runs_no_tool_that_its_client_may_not_run() {
    let Some(()) = python_or_skip() else { return };
    let (project, _mock) = with_shell(1);
    let mut clean = json!({"item_type": "directive", "item_id": "demo/clean", "model": "mock-model"});
    (clean["thread"], clean["async"]) = (true.into(), true.into());
    let (answers, _) = converse(&project, &["--allow", "*"], &[hello(), call(1, "rye_execute", clean)]);
    let begun = &answer(&answers, 1)["result"]["structuredContent"];
    assert_eq!(begun["status"], "running", "{begun:#}");
    // It ends when its log does.
    cuebook(&project, &["thread", "tail", begun["thread_id"].as_str().unwrap()]);
    assert!(!project.path().join("pwned").exists());
}

#[test]
fn a_client_runs_prompts_by_id_and_never_by_path() {
    let (project, outside) = (Project::new(), Project::new());
    outside.write("leak.prompty", "---\nname: Leak\n---\nuser:\nHi\n");
    project.write("inside.prompty", "---\nname: Inside\n---\nuser:\nHi\n");
    let leak = outside.path().join("leak.prompty").to_string_lossy().into_owned();
    let id = "rye/agent/threads/orchestrator";
    for prompt in [leak.as_str(), "/etc/passwd", "./inside.prompty", "../x", "inside.prompty"] {
        let parameters = json!({"operation": "run_prompt", "prompt": prompt});
        let run = json!({"item_type": "tool", "item_id": id, "parameters": parameters});
        let (answers, _) = converse(&project, &["--allow", id], &[hello(), call(1, "rye_execute", run)]);
        let code = code(answer(&answers, 1));
        assert!(["CB101", "CB104"].contains(&code), "{prompt}: {code}");
    }
}

#[test]
fn threads_of_the_user_are_not_shown_to_clients_by_default() {
    let project = Project::new();
    let list = json!({"item_type": "tool", "item_id": "rye/agent/threads/orchestrator", "parameters": {"operation": "list_active"}});
    let (answers, _) = converse(&project, &[], &[hello(), call(1, "rye_execute", list)]);
    assert_eq!(code(answer(&answers, 1)), "CB805");
}
