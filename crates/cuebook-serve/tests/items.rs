//! The real tools behind the protocol: a project is signed, searched, loaded and executed by a client.

#![allow(clippy::unwrap_used, reason = "these are tests")]

#[path = "../../skip.rs"]
mod skip;

mod support;

use std::process::Command;

use serde_json::{Value as Json, json};
use support::{Pipes, TEST_SERVER, make_key};

const DIRECTIVE: &str = r#"# Welcome

```xml
<directive name="welcome" version="1.0.0">
  <metadata>
    <description>Welcomes somebody</description>
    <category>team</category>
    <author>tests</author>
    <model tier="fast"/>
    <permissions><search>*</search></permissions>
  </metadata>
  <inputs>
    <input name="who" type="string" required="true">Who comes</input>
  </inputs>
  <outputs>
    <output name="words">What was said</output>
  </outputs>
</directive>
```

<process>Say welcome to {input:who}.</process>
"#;

const TOOL: &str = r#"# A tool that waits.
__version__ = "1.0.0"
__tool_type__ = "python"
__executor_id__ = "rye/core/runtimes/python/script"
__category__ = "team"
__tool_description__ = "Waits for some seconds"

import json, sys, time

request = json.load(sys.stdin)
seconds = request.get("params", request).get("seconds", 0)
time.sleep(seconds)
print(json.dumps({"waited": seconds}))
"#;

struct Fixture {
    project: tempfile::TempDir,
    user: tempfile::TempDir,
}

impl Fixture {
    fn new() -> Fixture {
        let world = Fixture { project: tempfile::tempdir().unwrap(), user: tempfile::tempdir().unwrap() };
        make_key(world.project.path(), world.user.path());
        world.write("directives/team/welcome.md", DIRECTIVE);
        world.write("tools/team/wait.py", TOOL);
        world.write("knowledge/team/tea.md", "```yaml\nname: tea\ntitle: Tea\nversion: 1.0.0\nentry_type: reference\ncategory: team\ndescription: How to make it\n```\n\nFour minutes.\n");
        world
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.project.path().join(".ai").join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn start(&self) -> Pipes {
        let mut command = Command::new(TEST_SERVER);
        command.arg(self.project.path()).env("DESK_USER", self.user.path());
        let mut desk = Pipes::start(command);
        desk.initialize();
        desk
    }
}

/// The answer of a tool, and whether it is an error.
fn call(desk: &mut Pipes, tool: &str, arguments: Json) -> (bool, Json) {
    let answer = desk.ask(1, "tools/call", json!({"name": tool, "arguments": arguments}));
    let result = &answer["result"];
    assert!(result.is_object(), "{answer}");
    (result["isError"].as_bool().unwrap(), result["structuredContent"].clone())
}

fn sign_all(desk: &mut Pipes) {
    for kind in ["directive", "tool", "knowledge"] {
        let (failed, answer) = call(desk, "rye_sign", json!({"item_type": kind, "item_id": "team/*"}));
        assert!(!failed, "{answer}");
        assert_eq!(answer["total"], 1, "{answer}");
        assert_eq!(answer["signed"].as_array().map(Vec::len), Some(1), "{answer}");
    }
}

#[test]
fn a_client_signs_finds_loads_and_executes_items() {
    let world = Fixture::new();
    let mut desk = world.start();
    let welcome = json!({"item_type": "directive", "item_id": "team/welcome", "parameters": {"who": "Zoë"}});
    let (failed, answer) = call(&mut desk, "rye_execute", welcome.clone());
    assert!(failed && answer["error"].as_str().unwrap().contains("nsigned"), "{answer}");
    sign_all(&mut desk);
    let (failed, answer) = call(&mut desk, "rye_execute", welcome);
    assert!(!failed, "{answer}");
    assert_eq!(answer["status"], "success");
    assert!(answer["body"].as_str().unwrap().contains("Say welcome to Zoë."), "{answer}");
    let (failed, answer) =
        call(&mut desk, "rye_execute", json!({"item_type": "directive", "item_id": "team/welcome"}));
    assert!(failed, "{answer}");
    assert_eq!(answer["declared_inputs"][0]["name"], "who", "{answer}");
    let (failed, answer) = call(&mut desk, "rye_search", json!({"scope": "knowledge", "query": "tea"}));
    assert!(!failed && answer["results"][0]["id"] == "team/tea", "{answer}");
    let load = json!({"item_type": "knowledge", "item_id": "team/tea", "destination": "user"});
    let (failed, answer) = call(&mut desk, "rye_load", load);
    assert!(!failed && answer["copied_to"] == "user", "{answer}");
    assert!(world.user.path().join(".ai/knowledge/team/tea.md").exists());
    let elsewhere = json!({"scope": "tool", "query": "", "project_path": "relative"});
    let (failed, answer) = call(&mut desk, "rye_search", elsewhere);
    assert!(failed && answer["error"].as_str().unwrap().contains("not absolute"), "{answer}");
}

#[test]
fn knowledge_is_shown_only_as_signed() {
    let world = Fixture::new();
    let mut desk = world.start();
    let listed = desk.ask(1, "resources/list", json!({}));
    let tea = listed["result"]["resources"]
        .as_array()
        .unwrap()
        .iter()
        .find(|resource| resource["name"] == "team/tea");
    let tea = tea.unwrap_or_else(|| panic!("{listed}"));
    assert_eq!((&tea["title"], &tea["description"]), (&json!("Tea"), &json!("How to make it")));
    let uri = json!({"uri": tea["uri"]});
    let answer = desk.ask(2, "resources/read", uri.clone());
    assert_eq!(answer["error"]["data"]["code"], "CB220", "{answer}");
    sign_all(&mut desk);
    let answer = desk.ask(3, "resources/read", uri.clone());
    let text = answer["result"]["contents"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer}"));
    assert!(text.contains("Four minutes.") && !text.contains("rye:signed"), "{text}");
    let path = world.project.path().join(".ai/knowledge/team/tea.md");
    let signed = std::fs::read_to_string(&path).unwrap();
    assert!(signed.contains("rye:signed"), "{signed}");
    std::fs::write(&path, signed.replace("Four", "Forty")).unwrap();
    let answer = desk.ask(4, "resources/read", uri);
    assert_eq!(answer["error"]["data"]["code"], "CB221", "{answer}");
}

#[test]
fn a_running_tool_is_reported_and_ended() {
    let found = Command::new("python3").args(["-c", "pass"]).status().is_ok_and(|status| status.success());
    if !found {
        return skip::missing_peer("python3 is missing");
    }
    let world = Fixture::new();
    let mut desk = world.start();
    sign_all(&mut desk);
    let wait = |seconds: f64| json!({"item_type": "tool", "item_id": "team/wait", "parameters": {"seconds": seconds}});
    let (failed, answer) = call(&mut desk, "rye_execute", wait(0.0));
    assert!(!failed, "{answer}");
    assert_eq!(answer["data"]["waited"].as_f64(), Some(0.0), "{answer}");
    // Three seconds, and the client wants to hear how it goes.
    let params = json!({"name": "rye_execute", "arguments": wait(3.0), "_meta": {"progressToken": "p"}});
    let mut next = desk.ask("slow", "tools/call", params);
    let mut steps = 0;
    while next["method"] == "notifications/progress" {
        assert_eq!(next["params"]["progressToken"], "p");
        steps += 1;
        next = desk.next();
    }
    assert!(steps > 0, "{next}");
    assert_eq!(next["id"], "slow");
    // An hour, and the client has had enough: its process ends, and the server answers others.
    let params = json!({"name": "rye_execute", "arguments": wait(3600.0)});
    desk.send(&json!({"jsonrpc": "2.0", "id": "long", "method": "tools/call", "params": params}));
    // It runs from a private copy, with the project as its argument.
    let script = format!("team/wait[.]py.*{}", world.project.path().display());
    let runs = |script: &str| {
        let found = Command::new("pgrep").arg("-f").arg(script).output();
        found.is_ok_and(|found| !found.stdout.is_empty())
    };
    let within = |wanted: bool| {
        (0..200).any(|_| {
            std::thread::sleep(std::time::Duration::from_millis(50));
            runs(&script) == wanted
        })
    };
    if Command::new("pgrep").arg("-V").output().is_ok() {
        assert!(within(true), "the tool does not run");
    }
    desk.send(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "long"}}),
    );
    assert_eq!(desk.ask("after", "ping", json!({}))["id"], "after");
    assert!(within(false), "the tool still runs");
}
