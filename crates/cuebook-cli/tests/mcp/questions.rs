//! Questions to the user of a client: a limit that was reached, and a grant that is missing.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use cuebook_mock::{Api, Mock, Reply, Script};
use serde_json::{Value as Json, json};

use crate::support::Project;
use crate::{call, cuebook};

const GREET: &str = r#"# Greet

```xml
<directive name="greet" version="1.0.0">
  <metadata>
    <description>Greet somebody.</description>
    <category>demo</category>
    <author>tests</author>
    <model tier="fast" />
    <limits turns="1" />
    <permissions><search>*</search></permissions>
  </metadata>
  <outputs><output name="greeting" type="string">What was said</output></outputs>
</directive>
```

Greet.
"#;

/// A client that can ask its user.
struct Client {
    child: Child,
    input: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Client {
    fn start(project: &Project, args: &[&str]) -> Client {
        let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
        command.arg("mcp").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().unwrap();
        let input = child.stdin.take().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut client = Client { child, input, lines };
        let info = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": info});
        client.send(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}));
        client.next();
        client.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        client
    }

    fn send(&mut self, message: &Json) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// The next answer, or the next question.
    fn next(&mut self) -> Json {
        loop {
            let message: Json = serde_json::from_str(&self.lines.next().unwrap().unwrap()).unwrap();
            if message.get("id").is_some() {
                return message;
            }
        }
    }

    fn ask(&mut self, message: &Json) -> Json {
        self.send(message);
        self.next()
    }

    /// Answers a question.
    fn say(&mut self, question: &Json, said: Json) -> Json {
        assert_eq!(question["method"], "elicitation/create", "{question:#}");
        self.ask(&json!({"jsonrpc": "2.0", "id": question["id"], "result": said}))
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_user_raises_a_limit_and_a_thread_goes_on() {
    let search = || Reply::call("c1", "rye_search", json!({"scope": "tool", "query": "grep"})).usage(50, 5);
    let returned = Reply::call("c2", "directive_return", json!({"greeting": "Hi"})).usage(50, 5);
    let mock = Mock::start(Script::new().reply(search()).reply(returned).reply(search())).unwrap();
    let project = Project::new();
    let provider = mock.provider_yaml(Api::OpenAiChat).replace("key: MOCK_KEY\n", "");
    project.write("home/.ai/config/providers/mock.yaml", provider);
    project.write(".ai/directives/demo/greet.md", GREET);
    cuebook(&project, &["keys", "generate"]);
    cuebook(&project, &["sign", "directive", "demo/greet"]);
    let mut client = Client::start(&project, &[]);
    let greet = |id: u32| {
        let arguments =
            json!({"item_type": "directive", "item_id": "demo/greet", "thread": true, "model": "mock-model"});
        call(id, "rye_execute", arguments)
    };
    let question = client.ask(&greet(1));
    let message = question["params"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("the thread used 1 of 1 turns"), "{question:#}");
    assert_eq!(question["params"]["requestedSchema"]["properties"]["limit"]["default"], 2, "{question:#}");
    let answer = client.say(&question, json!({"action": "accept", "content": {"limit": 4}}));
    let content = &answer["result"]["structuredContent"];
    assert_eq!((&answer["id"], &content["outputs"]["greeting"]), (&json!(1), &json!("Hi")), "{answer:#}");
    // A user who declines leaves the thread as it is, with a hint that a client can follow.
    let question = client.ask(&greet(2));
    let answer = client.say(&question, json!({"action": "decline"}));
    let content = &answer["result"]["structuredContent"];
    assert_eq!(content["thread_status"], "suspended", "{answer:#}");
    let hint = content["metadata"]["error"]["hint"].as_str().unwrap();
    assert!(hint.contains("resume_thread") && !hint.contains("--"), "{hint}");
}

#[cfg(target_os = "linux")]
#[test]
fn only_cuebook_allow_grants_and_the_call_is_tried_again() {
    let project = Project::new();
    cuebook(&project, &["keys", "generate"]);
    project.write(
        ".ai/tools/desk/fetch.yaml",
        "version: 1.0.0\ncategory: desk\ntool_type: shell\ndescription: Fetches\n\
         executor_id: rye/core/runtimes/bash/bash\nconfig: {command: 'echo \"{\\\"ok\\\": true}\"', hosts: [desk.example]}\n",
    );
    cuebook(&project, &["sign", "tool", "desk/fetch"]);
    let mut client = Client::start(&project, &["--allow", "desk/fetch"]);
    let fetch = call(1, "rye_execute", json!({"item_type": "tool", "item_id": "desk/fetch"}));
    let question = client.ask(&fetch);
    assert!(question["params"]["message"].as_str().unwrap().contains("cuebook allow"), "{question:#}");
    // The word of a client is no grant: the same question comes again.
    let accept = json!({"action": "accept", "content": {}});
    let question = client.say(&question, accept.clone());
    assert_eq!(question["method"], "elicitation/create", "{question:#}");
    project.allow();
    let answer = client.say(&question, accept);
    assert_eq!(answer["result"]["structuredContent"]["data"]["ok"], true, "{answer:#}");
}
