//! `thread fork`, and the request of one turn.

use cuebook_mock::{Reply, Script};
use serde_json::{Value as Json, json};

use crate::greeting::stage;
use crate::setup::{Setup, err, lines, out, returned, shell};

const SCALES: &str = "---\ninputs:\n  word: {kind: string}\ntools:\n  - name: weigh\n    kind: function\n    description: Weighs a word.\n    \
                      parameters: {command: {kind: string, required: true}}\n---\nsystem:\nWeigh {{ word }}.\nuser:\nNow.\n";
const BALANCE: &str = "---\ninputs:\n  word: {kind: string}\n  tone: {kind: string, default: calm}\ntools:\n  - name: weigh\n    kind: function\n    \
                       description: Weighs a word.\n    parameters: {command: {kind: string, required: true}}\n---\nsystem:\nIn a {{ tone }} tone, weigh {{ word }}.\nuser:\nNow.\n";

/// A project whose thread called a tool in its first turn and answered in the second.
fn weighed(more: Script) -> Setup {
    let stage = stage(more);
    stage.project.write("prompts/scales.prompty", SCALES);
    stage.project.write("prompts/balance.prompty", BALANCE);
    let run = ["run", "scales", "--var", "word=iron", "--model", "fast", "--tool", "weigh=rye/bash/bash"];
    let output = stage.run(&run);
    assert_eq!(out(&output), "Heavy.\n", "{}", err(&output));
    stage
}

fn script() -> Script {
    Script::new().reply(Reply::call("c1", "weigh", json!({"command": "echo 7 kg"}))).text("Heavy.")
}

/// What the model got with a request.
fn messages(stage: &Setup, request: usize) -> Json {
    let body = stage.mock.requests()[request].body.clone();
    json!({"system": body["system"], "messages": body["messages"], "tools": body["tools"]})
}

/// The result of a fork that succeeds.
fn forked(stage: &Setup, args: &[&str]) -> Json {
    let output = stage.run(&[&["thread", "fork"], args, &["--json"]].concat());
    assert!(output.status.success(), "{}{}", out(&output), err(&output));
    lines(&out(&output)).pop().unwrap()
}

#[test]
fn a_fork_repeats_the_request_of_its_turn() {
    let stage = weighed(script().text("Light."));
    let first = stage.id();
    let fork = forked(&stage, &[&first, "--turn", "2", "--allow-again"]);
    assert_eq!(fork["result"], "Light.", "{fork}");
    assert_eq!(messages(&stage, 2), messages(&stage, 1));
    let shown = stage.json(&["thread", "show", fork["thread_id"].as_str().unwrap(), "--explain"]);
    assert_eq!(shown["launch"]["forked_from"], json!({"thread_id": first, "turn": 2}));
    assert_eq!(shown["cost"]["turns"], 1);
    let messages = shown["explained"].as_array().unwrap().iter();
    let origins: Vec<Option<&str>> =
        messages.map(|one| one["pieces"][0]["origin"]["kind"].as_str()).collect();
    // The third message has a call and no text.
    assert_eq!(origins, [Some("literal"), Some("literal"), None, Some("earlier"), Some("model")]);
    // The other thread stays as it is.
    assert_eq!(stage.json(&["thread", "show", &first])["status"], "completed");
    assert_eq!(stage.json(&["thread", "show", &first])["messages"].as_array().unwrap().len(), 5);
}

#[test]
fn a_fork_can_have_another_prompt() {
    let stage = weighed(script().text("Calmly: heavy."));
    let first = stage.id();
    let fork = [&*first, "--turn", "2", "--prompt", "balance", "--var", "tone=gentle", "--allow-again"];
    assert_eq!(forked(&stage, &fork)["result"], "Calmly: heavy.");
    let (before, after) = (messages(&stage, 1), messages(&stage, 2));
    assert!(after["system"].to_string().contains("In a gentle tone, weigh iron."), "{after}");
    assert_eq!(after["messages"], before["messages"], "what was said behind the prompt stays");
    let launch = stage.json(&["thread", "show", &stage.id()])["launch"].clone();
    assert_eq!((&launch["directive"], &launch["inputs"]["word"]), (&json!("balance"), &json!("iron")));
    // An unknown variable of the other prompt is an error, and so is a prompt for a directive.
    let output =
        stage.run(&["thread", "fork", &first, "--turn", "1", "--prompt", "missing", "--allow-again"]);
    assert!(err(&output).contains("CB101"), "{}", err(&output));
}

#[test]
fn a_fork_asks_for_the_permissions_again() {
    let stage = weighed(script());
    let output = stage.run(&["thread", "fork", &stage.id(), "--turn", "1"]);
    let said = err(&output);
    assert!(said.contains("CB737") && said.contains("--turn 1 --allow-again"), "{said}");
    assert_eq!(stage.json(&["thread", "list"]).as_array().unwrap().len(), 1);
    let output = stage.run(&["thread", "fork", &stage.id(), "--turn", "3", "--allow-again"]);
    let said = err(&output);
    assert!(said.contains("has no turn 3") && said.contains("it has the turns 1 to 2"), "{said}");
}

#[test]
fn a_fork_keeps_a_new_limit_and_the_rights_of_its_directive() {
    let stage = stage(Script::new().reply(shell("echo hi")).reply(returned("hello")).reply(returned("hi")));
    let output =
        stage.run(&["execute", "directive", "demo/greet", "--param", "user=Ada", "--param", "thread:=true"]);
    assert!(output.status.success(), "{}", err(&output));
    let first = stage.id();
    let fork = forked(&stage, &[&first, "--turn", "2", "--limit", "turns=9"]);
    assert_eq!(fork["outputs"]["greeting"], "hi", "{fork}");
    assert_eq!(messages(&stage, 2), messages(&stage, 1));
    let (old, new) = (stage.json(&["thread", "show", &first]), stage.json(&["thread", "show", &stage.id()]));
    assert_eq!(new["launch"]["limits"]["turns"], 9);
    assert_eq!(new["launch"]["capabilities"], old["launch"]["capabilities"]);
    let output = stage.run(&["thread", "fork", &first, "--turn", "1", "--prompt", "demo/greet"]);
    assert!(err(&output).contains("its thread keeps its directive"), "{}", err(&output));
}

#[test]
fn a_fork_in_another_process_has_the_open_sections() {
    let open = json!({"section_keys": ["rules"], "reason": "to know them"});
    let stage =
        stage(Script::new().reply(Reply::call("c1", "open_sections", open)).text("Hello.").text("Bye."));
    let handbook = "# Task\nAnswer.\n\n# Rules\n```yaml section\nsummary: The house rules.\nvisibility: summary\n```\nNever say goodbye.\n";
    stage.project.write("prompts/handbook.sections.md", handbook);
    let output = stage.run(&["run", "handbook", "--model", "fast"]);
    assert_eq!(out(&output), "Hello.\n", "{}", err(&output));
    forked(&stage, &[&stage.id(), "--turn", "2", "--async"]);
    assert_eq!(stage.wait_for("completed")["result"]["result"], "Bye.");
    assert_eq!(messages(&stage, 2), messages(&stage, 1));
}

#[test]
fn the_request_of_a_turn_is_shown_with_its_origins() {
    let stage = weighed(script());
    let first = stage.json(&["thread", "show", &stage.id(), "--turn", "1", "--explain"]);
    let roles = |json: &Json| -> Vec<String> {
        let messages = json["explained"].as_array().unwrap().iter();
        messages.map(|one| one["role"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(roles(&first), ["system", "user"]);
    let second = stage.json(&["thread", "show", &stage.id(), "--turn", "2", "--explain"]);
    assert_eq!(roles(&second), ["system", "user", "assistant", "tool"]);
    assert_eq!(second["explained"][3]["pieces"][0]["origin"]["kind"], "tool");
}
