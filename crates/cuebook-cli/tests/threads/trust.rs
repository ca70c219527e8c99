//! Keys, and who decides who is sent them and what may run.

use cuebook_mock::{Api, Reply, Script};
use serde_json::{Value as Json, json};

use crate::greeting::{GREET, THREADED, stage};
use crate::setup::{KEY, err, out, returned, search};

#[test]
fn a_missing_key_is_named_and_no_key_is_shown() {
    keeps_its_key("key: MOCK_KEY\n");
}

#[test]
fn a_secret_of_a_header_is_kept_like_a_key() {
    keeps_its_key("headers: {x-other: a, x-api-key: \"${env:MOCK_KEY}\"}\n");
    let stage = stage(Script::new());
    let yaml = stage.mock.provider_yaml(Api::Anthropic).replace("key: MOCK_KEY\n", HEADER);
    stage.project.write("home/.ai/config/providers/mock.yaml", yaml);
    assert!(out(&stage.run(&["providers"])).contains("MOCK_KEY is set"));
    let output = stage.command(&["providers"]).env_remove("MOCK_KEY").output().unwrap();
    assert!(out(&output).contains("MOCK_KEY is not set"), "{}", out(&output));
    let output = stage.command(&["providers", "--json"]).env_remove("MOCK_KEY").output().unwrap();
    let listed: Json = serde_json::from_str(&out(&output)).unwrap();
    let mock = listed.as_array().unwrap().iter().find(|provider| provider["name"] == "mock").unwrap();
    assert_eq!((&mock["ready"], &mock["variables"]), (&json!(false), &json!(["MOCK_KEY"])));
}

/// A secret that stands in a header.
const HEADER: &str = "headers: {Authorization: \"Bearer ${env:MOCK_KEY}\"}\n";

fn keeps_its_key(said: &str) {
    let leak = json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": format!("echo {KEY}; echo ${{MOCK_KEY:-unset}}")}});
    let stage = stage(
        Script::new()
            .reply(Reply::error(401, &format!("the key {KEY} is not good")))
            .reply(Reply::call("c1", "rye_execute", leak).usage(10, 2).and_text(format!("I know {KEY}")))
            .reply(returned(&format!("Hi {KEY}"))),
    );
    let yaml = stage.mock.provider_yaml(Api::Anthropic).replace("key: MOCK_KEY\n", said);
    stage.project.write("home/.ai/config/providers/mock.yaml", yaml);
    let args = [&THREADED[..], &["--model", "mock-model"]].concat();
    let output = stage.command(&args).env_remove("MOCK_KEY").output().unwrap();
    assert!(err(&output).contains("[CB721]") && err(&output).contains("MOCK_KEY"), "{}", err(&output));
    assert!(stage.mock.requests().is_empty());
    let mut seen = vec![stage.threaded(&["--json"]), stage.threaded(&["--record", "replies.jsonl"])];
    let id = stage.id();
    seen.push(stage.run(&["thread", "show", &id, "--events"]));
    seen.push(stage.run(&["thread", "show", &id, "--json", "--events"]));
    seen.push(stage.run(&["thread", "tail", &id, "--json"]));
    seen.push(stage.run(&["thread", "list", "--json"]));
    assert_eq!(stage.mock.requests()[1].header("x-api-key"), Some(KEY), "the provider has to know it");
    for output in &seen {
        assert!(!out(output).contains(KEY) && !err(output).contains(KEY), "{}{}", out(output), err(output));
    }
    assert!(seen[1].status.success(), "{}", err(&seen[1]));
    let reported = stage.mock.requests()[2].body["messages"][2].to_string();
    assert!(
        reported.contains("nunset") && reported.contains("[secret]") && !reported.contains(KEY),
        "the tool has it: {reported}"
    );
    let mut files = 0;
    search(stage.project.path(), &mut |path, bytes| {
        files += 1;
        let found = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "{} has the key", path.display());
    });
    assert!(files > 5);
}

#[test]
fn a_project_provider_counts_only_when_signed() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let path = ".ai/config/providers/team.yaml";
    let file = stage
        .mock
        .provider_yaml(Api::Gemini)
        .replace("name: mock", "name: team")
        .replace("mock-model", "team-model");
    stage.project.write(path, file.replace("api: gemini", "api: gemin"));
    let refused = stage.run(&["sign", "config", path]);
    assert!(err(&refused).contains("[CB719]") && err(&refused).contains("gemini"), "{}", err(&refused));
    stage.project.write(path, &file);
    let refused = stage.threaded(&["--model", "team-model"]);
    assert!(
        err(&refused).contains("[CB220]") && err(&refused).contains("cuebook sign config"),
        "{}",
        err(&refused)
    );
    assert!(stage.run(&["sign", "config", path]).status.success());
    let output = stage.threaded(&["--model", "team-model"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(stage.mock.requests()[0].api, Some(Api::Gemini));
    let signed = std::fs::read_to_string(stage.project.path().join(path)).unwrap();
    stage.project.write(path, signed.replace("127.0.0.1", "127.0.0.2"));
    let refused = stage.threaded(&["--model", "team-model"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(err(&refused).contains(path), "{}", err(&refused));
    assert_eq!(stage.mock.requests().len(), 1);
    let other = stage.run(&["sign", "config", "home/.ai/config/none.yaml"]);
    assert!(!other.status.success());
    stage.project.write("notes.yaml", "a: 1\n");
    assert!(err(&stage.run(&["sign", "config", "notes.yaml"])).contains("hooks.yaml"));
}

#[test]
fn a_prompt_does_not_decide_who_is_sent_the_key() {
    let stage = stage(Script::new());
    let connection = "  connection: {kind: key, endpoint: \"https://elsewhere.example/v1\"}\n";
    let text =
        format!("---\nname: ask\nmodel:\n  id: mock-model\n  provider: mock\n{connection}---\nuser:\nHi.\n");
    stage.project.write("ask.prompty", text);
    let refused = stage.run(&["run", "ask.prompty"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        err(&refused).contains("[CB720]") && err(&refused).contains("elsewhere.example"),
        "{}",
        err(&refused)
    );
    assert!(stage.mock.requests().is_empty());
}

#[test]
fn only_the_user_says_what_is_harmless() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let start = GREET.find("<permissions>").unwrap();
    let end = GREET.find("</permissions>").unwrap();
    let boundless = format!("{}<permissions>*{}", &GREET[..start], &GREET[end..]);
    stage.project.write(".ai/directives/demo/greet.md", boundless);
    assert!(stage.run(&["sign", "directive", "demo/greet"]).status.success());
    let table = "risk_levels:\n  unrestricted: {policy: allow}\n";
    stage.project.write(".ai/config/capability_risk.yaml", table);
    assert!(err(&stage.threaded(&[])).contains("[CB717]"));
    stage.project.write("home/.ai/config/capability_risk.yaml", table);
    let output = stage.threaded(&[]);
    assert!(output.status.success(), "{}", err(&output));
}

#[test]
fn check_reports_a_bad_provider_file_without_secrets() {
    let stage = stage(Script::new());
    for address in
        ["http://user:hunter2@127.0.0.1/v1", "ftp://user:hunter2@example.org", "http://h/?key=hunter2"]
    {
        let file = format!("name: other\napi: openai\nbase_url: \"{address}\"\n");
        stage.project.write("home/.ai/config/providers/other.yaml", file);
        for (args, code) in [(&["check"][..], 0), (&["providers"], 0), (&["check", "--json"], 0)] {
            let output = stage.run(args);
            let said = out(&output) + &err(&output);
            assert_eq!(output.status.code(), Some(code), "{said}");
            assert!(said.contains("CB719") && said.contains("base_url"), "{said}");
            assert!(!said.contains("hunter2"), "{said}");
        }
    }
}
