//! Whole threads: a directive, a scripted model, real tools, a real store.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod support;

use cuebook_mock::{Api, Mock, Reply, Script};
use cuebook_run::store::Filter;
use cuebook_run::{ExecuteRequest, Ignore, Kind, Resume, Status, ThreadId, whole_log};
use serde_json::{Value as Json, json};
use support::Fixture;

/// A directive that greets, may touch files, and returns what it said.
const GREET: &str = r#"# Greet

```xml
<directive name="greet" version="1.0.0">
  <metadata>
    <description>Greet somebody.</description>
    <category>demo</category>
    <model tier="fast" />
    <limits turns="4" tokens="20000" spend="0.5" />
    <permissions><execute><tool>demo.*</tool></execute></permissions>
  </metadata>
  <inputs><input name="user" type="string" required="true">Who</input></inputs>
  <outputs><output name="greeting" type="string">What was said</output></outputs>
</directive>
```

Greet {input:user}.
"#;

/// A directive that has others run.
const PARENT: &str = r#"# Parent

```xml
<directive name="parent" version="1.0.0">
  <metadata>
    <description>Have others greet.</description>
    <category>demo</category>
    <model tier="fast" />
    <permissions><execute><directive>demo.*</directive><tool>demo.*</tool></execute></permissions>
  </metadata>
</directive>
```

Have somebody greeted.
"#;

struct Setup {
    world: Fixture,
    mock: Mock,
}

fn stage(api: Api, script: Script) -> Setup {
    let world = Fixture::new();
    let mock = Mock::start(script).unwrap();
    let folder = world.user().join(".ai/config/providers");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("mock.yaml"), mock.provider_yaml(api).replace("key: MOCK_KEY\n", "")).unwrap();
    world.signed("directives/demo/greet.md", GREET).signed("directives/demo/parent.md", PARENT);
    Setup { world, mock }
}

impl Setup {
    fn request(&self, id: &str, parameters: Json) -> ExecuteRequest {
        ExecuteRequest {
            thread: true,
            model: Some("mock-model".into()),
            ..support::request("directive", id, parameters)
        }
    }

    fn greet(&self) -> Json {
        self.world.engine.answer(&self.request("demo/greet", json!({"user": "Ann"})), &Ignore).json
    }

    fn kinds(&self, id: &str) -> Vec<Kind> {
        let store = self.world.engine.threads(None).unwrap();
        let record = store.record(&ThreadId::known(id)).unwrap().unwrap();
        whole_log(&*store, &record).unwrap().iter().map(|event| event.kind).collect()
    }
}

fn returned(id: &str, outputs: Json) -> Reply {
    Reply::call(id, "directive_return", outputs).usage(100, 21)
}

#[test]
fn directives_return_outputs_over_every_interface() {
    for api in [Api::OpenAiChat, Api::Anthropic, Api::Gemini] {
        let stage = stage(api, Script::new().reply(returned("c1", json!({"greeting": "Hello, Ann!"}))));
        let answer = stage.greet();
        assert_eq!(answer["status"], "success", "{answer:#}");
        assert_eq!(answer["outputs"], json!({"greeting": "Hello, Ann!"}));
        assert_eq!(answer["thread_status"], "completed");
        assert_eq!((&answer["cost"]["turns"], &answer["cost"]["input_tokens"]), (&json!(1), &json!(100)));
        let id = answer["thread_id"].as_str().unwrap();
        assert!(id.starts_with("demo/greet/greet-"), "{id}");
        assert_eq!(
            stage.kinds(id),
            [
                Kind::Started,
                Kind::CognitionIn,
                Kind::CognitionOut,
                Kind::ToolStart,
                Kind::Return,
                Kind::ToolResult,
                Kind::Completed
            ]
        );
    }
}

#[test]
fn the_sentence_of_the_prompt_returns_outputs_as_well() {
    let call = json!({"item_type": "tool", "item_id": "rye/agent/threads/directive_return", "parameters": {"greeting": "Hi"}});
    let stage = stage(Api::Anthropic, Script::new().call("c1", "rye_execute", call));
    assert_eq!(stage.greet()["outputs"], json!({"greeting": "Hi"}));
    let body = &stage.mock.requests()[0].body;
    let reported = body["messages"][0]["content"].to_string();
    assert!(reported.contains("Greet Ann.") && reported.contains("directive_return"), "{reported}");
}

#[test]
fn outputs_are_checked_by_name_and_type() {
    let stage = stage(
        Api::OpenAiChat,
        Script::new()
            .reply(returned("c1", json!({"other": 1})))
            .reply(returned("c2", json!({"greeting": 3})))
            .reply(returned("c3", json!({"greeting": ""}))),
    );
    let answer = stage.greet();
    assert_eq!(answer["outputs"], json!({"greeting": ""}), "{answer:#}");
    assert_eq!(answer["cost"]["turns"], 3);
}

#[test]
fn a_model_that_is_blocked_ends_the_thread_as_an_error() {
    let blocked = json!({"status": "error", "error_detail": "no file"});
    let stage = stage(Api::OpenAiChat, Script::new().reply(returned("c1", blocked)));
    let answer = stage.greet();
    assert_eq!(answer["status"], "error");
    assert!(answer["error"].as_str().unwrap().contains("no file"), "{answer:#}");
    assert_eq!(answer["thread_status"], "error");
}

#[test]
fn a_model_that_only_talks_fails_after_three_reminders() {
    let stage = stage(Api::OpenAiChat, Script::new().text("just text").usage(10, 2).forever());
    let answer = stage.greet();
    assert_eq!(answer["metadata"]["error"]["code"], "CB725", "{answer:#}");
    assert_eq!(stage.mock.requests().len(), 4);
    let id = answer["thread_id"].as_str().unwrap();
    assert_eq!(stage.kinds(id).iter().filter(|kind| **kind == Kind::Nudge).count(), 3);
}

#[test]
fn a_denied_call_runs_nothing() {
    let bash =
        json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": "touch oops"}});
    let stage = stage(
        Api::Anthropic,
        Script::new().call("c1", "rye_execute", bash).reply(returned("c2", json!({"greeting": "Hi"}))),
    );
    let answer = stage.greet();
    assert_eq!(answer["status"], "success", "{answer:#}");
    assert!(!stage.world.project().join("oops").exists());
    let kinds = stage.kinds(answer["thread_id"].as_str().unwrap());
    assert_eq!(kinds.iter().filter(|kind| **kind == Kind::Denied).count(), 1);
    assert_eq!(kinds.iter().filter(|kind| **kind == Kind::ToolStart).count(), 1, "only the return");
    let last = stage.mock.requests().pop().unwrap().body.to_string();
    assert!(last.contains("Permission denied"), "{last}");
}

#[test]
fn tools_of_one_turn_run_at_once_and_keep_their_order() {
    let meet = "import os, time\npath = \".\"\ndef execute(params, project_path):\n    open(os.path.join(project_path, params['me']), 'w').close()\n    for _ in range(400):\n        if os.path.exists(os.path.join(project_path, params['you'])):\n            return {'met': params['you']}\n        time.sleep(0.02)\n    return {'met': None}\n";
    let call = |me: &str, you: &str| json!({"item_type": "tool", "item_id": "demo/meet", "parameters": {"me": me, "you": you}});
    let stage = stage(
        Api::OpenAiChat,
        Script::new()
            .reply(Reply::call("c1", "rye_execute", call("a", "b")).and_call(
                "c2",
                "rye_execute",
                call("b", "a"),
            ))
            .reply(returned("c3", json!({"greeting": "Hi"}))),
    );
    let meet = meet.replace("path = \".\"\n", "");
    let text = format!(
        "__version__ = \"1.0.0\"\n__tool_type__ = \"python\"\n__executor_id__ = \"rye/core/runtimes/python/function\"\n__category__ = \"demo\"\n__tool_description__ = \"Meets\"\n{meet}"
    );
    stage.world.signed("tools/demo/meet.py", &text);
    let answer = stage.greet();
    assert_eq!(answer["status"], "success", "{answer:#}");
    let messages = stage.mock.requests().pop().unwrap().body["messages"].clone();
    let reported: Vec<(String, String)> = messages
        .as_array()
        .unwrap()
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| (message["tool_call_id"].to_string(), message["content"].to_string()))
        .collect();
    assert_eq!(reported.len(), 2, "{messages:#}");
    assert!(reported[0].0.contains("c1") && reported[0].1.contains("\\\"met\\\":\\\"b\\\""), "{reported:?}");
    assert!(reported[1].0.contains("c2") && reported[1].1.contains("\\\"met\\\":\\\"a\\\""), "{reported:?}");
}

#[test]
fn every_limit_stops_the_thread_says_so_and_lets_it_go_on() {
    let search = json!({"item_type": "tool", "item_id": "demo/none", "parameters": {}});
    let script = Script::new().reply(Reply::call("c", "rye_execute", search).usage(1000, 100)).forever();
    let stage = stage(Api::OpenAiChat, script);
    for (limits, code) in [
        (json!({"turns": 2}), "turns_exceeded"),
        (json!({"tokens": 2000}), "tokens_exceeded"),
        (json!({"spend": 0.0005}), "spend_exceeded"),
    ] {
        let mut request = stage.request("demo/greet", json!({"user": "Ann"}));
        request.limit_overrides = limits.as_object().unwrap().clone();
        let answer = stage.world.engine.answer(&request, &Ignore).json;
        assert_eq!(answer["metadata"]["error"]["code"], "CB716", "{answer:#}");
        assert_eq!(answer["metadata"]["error"]["limit_code"], code, "{answer:#}");
        assert_eq!(answer["thread_status"], "suspended");
        let hint = answer["metadata"]["error"]["hint"].as_str().unwrap();
        assert!(hint.contains("cuebook thread resume demo/greet/greet-"), "{hint}");
    }
    stage.mock.play(Script::new().reply(returned("c9", json!({"greeting": "At last"}))));
    let store = stage.world.engine.threads(None).unwrap();
    let stopped = store.list(&Filter { status: vec![Status::Suspended], ..Filter::default() }).unwrap();
    let by_turns = &stopped[2].id;
    let how =
        Resume { limit_overrides: json!({"turns": 9}).as_object().unwrap().clone(), ..Resume::default() };
    let cuebook_run::ThreadRun::Finished(finished) =
        stage.world.engine.resume_with(None, None, by_turns, &how, &Ignore).unwrap()
    else {
        panic!("it runs elsewhere")
    };
    assert_eq!(finished.outputs, Some(json!({"greeting": "At last"})), "{finished:?}");
    assert_eq!(finished.cost.turns, 3);
}

#[test]
fn a_child_is_capped_by_its_parent_and_its_spend_is_its_parents() {
    let child = json!({"item_type": "directive", "item_id": "demo/greet", "parameters": {"user": "Kid"}, "thread": true});
    let stage = stage(
        Api::Anthropic,
        Script::new()
            .reply(Reply::call("p1", "rye_execute", child).usage(100, 10))
            .reply(returned("c1", json!({"greeting": "Hi Kid"})))
            .reply(Reply::text("Done.").usage(200, 5)),
    );
    let answer = stage.world.engine.answer(&stage.request("demo/parent", json!({})), &Ignore).json;
    assert_eq!(answer["result"], "Done.", "{answer:#}");
    let store = stage.world.engine.threads(None).unwrap();
    let id = ThreadId::known(answer["thread_id"].as_str().unwrap());
    let account = store.account(&id).unwrap().unwrap();
    let children = store.list(&Filter { parent: Some(id), ..Filter::default() }).unwrap();
    assert_eq!(children.len(), 1);
    assert_eq!(account.children, children[0].cost.spend);
    assert!(account.settled && account.held.nanos() == 0 && account.reserved.nanos() == 0, "{account:?}");
}

#[test]
fn any_prompt_can_be_run_through_the_orchestrator() {
    let stage = stage(Api::OpenAiChat, Script::new().reply(Reply::text("Hello, Ann.").usage(10, 5)));
    stage.world.plain(
        "prompts/hello.prompty",
        "---\nname: hello\ninputs:\n  who: Ann\n---\nuser:\nGreet {{ who }}.\n",
    );
    let run = |prompt: &str| {
        let given = json!({"operation": "run_prompt", "prompt": prompt, "model": "mock-model", "variables": {"who": "Ann"}});
        stage.world.tool("rye/agent/threads/orchestrator", given)
    };
    let refused = run("./prompts/hello.prompty");
    assert!(refused["error"].as_str().unwrap().contains("invalid prompt id"), "{refused:#}");
    let answer = run("hello");
    assert_eq!(answer["data"]["result"], "Hello, Ann.", "{answer:#}");
    assert_eq!(answer["data"]["status"], "completed");
    let reported = stage.mock.requests()[0].body["messages"][0]["content"].to_string();
    assert!(reported.contains("Greet Ann."), "{reported}");
}
