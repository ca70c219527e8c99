//! `thread show --explain`: where each line of a request came from.

use cuebook_mock::{Reply, Script};
use serde_json::{Value as Json, json};

use crate::greeting::stage;
use crate::setup::{Setup, err, out, returned, shell};

const TEMPLATE: &str = "First line.\nWeigh {{ word }}.\nLast line.\n";

fn explained(stage: &Setup) -> String {
    let output = stage.run(&["thread", "show", &stage.id(), "--explain"]);
    assert!(output.status.success(), "{}", err(&output));
    let text = out(&output);
    text.split_once("\n\n").unwrap().1.to_owned()
}

fn as_json(stage: &Setup) -> Json {
    stage.json(&["thread", "show", &stage.id(), "--explain"])
}

#[test]
fn an_input_without_a_value_leaves_the_origins_around_it() {
    let stage = stage(Script::new().text("Light."));
    let prompt = "---\ninputs:\n  word: {kind: string, default: iron}\n  past: {kind: thread}\n  photo: {kind: image}\n---\n\
                  system:\nWeigh {{ word }}.\n{{ past }}\nuser:\nLook: {{ photo }} now\n";
    stage.project.write("prompts/scales.prompty", prompt);
    stage.run(&["run", "scales", "--model", "fast"]);
    let json = as_json(&stage);
    let texts = |message: usize| -> Vec<(String, String)> {
        let pieces = json["explained"][message]["pieces"].as_array().unwrap().iter();
        pieces
            .map(|piece| {
                (piece["text"].as_str().unwrap().into(), piece["origin"]["kind"].as_str().unwrap().into())
            })
            .collect()
    };
    let expected = |all: &[(&str, &str)]| -> Vec<(String, String)> {
        all.iter().map(|(text, kind)| ((*text).into(), (*kind).into())).collect()
    };
    assert_eq!(texts(0), expected(&[("Weigh ", "literal"), ("iron", "value"), (".", "literal")]));
    assert_eq!(texts(1), expected(&[("Look: ", "literal"), (" now", "literal")]));
}

#[test]
fn each_line_names_its_file_variable_or_model() {
    let stage = stage(Script::new().text("Light."));
    stage.project.write("prompts/scales/template.md", TEMPLATE);
    stage.run(&["run", "scales", "--var", "word=iron", "--model", "fast", "--message", "How heavy?"]);
    assert_eq!(
        explained(&stage),
        "[system]
    First line.
        from prompts/scales/template.md:1
    Weigh
        from prompts/scales/template.md:2
    iron
        from variable word (caller) at prompts/scales/template.md:2
    .
        from prompts/scales/template.md:2
    Last line.
        from prompts/scales/template.md:3
[user]
    How heavy?
        from message of the caller
[assistant]
    Light.
        from model mock-model (event 3)
"
    );
    let json = as_json(&stage);
    assert_eq!(json["has_origins"], true);
    let origin = &json["explained"][0]["pieces"][1]["origin"];
    assert_eq!(origin["kind"], "value", "{origin}");
    assert_eq!(origin["variables"][0]["path"], "word", "{origin}");
    // The pieces of a message are its text.
    for (message, explained) in
        json["messages"].as_array().unwrap().iter().zip(json["explained"].as_array().unwrap())
    {
        let pieces: String = explained["pieces"]
            .as_array()
            .unwrap()
            .iter()
            .map(|piece| piece["text"].as_str().unwrap())
            .collect();
        assert_eq!(message["content"][0]["value"], pieces.as_str());
    }
}

#[test]
fn a_directive_names_knowledge_tools_and_reminders() {
    let stage = stage(Script::new().reply(shell("echo hi")).text("Hm.").reply(returned("hello")));
    let output =
        stage.run(&["execute", "directive", "demo/greet", "--param", "user=Ada", "--param", "thread:=true"]);
    assert!(output.status.success(), "{}", err(&output));
    let text = explained(&stage);
    for part in [
        "from .ai/directives/demo/greet.md:",
        "    Ada\n        from variable user (",
        "from result of the tool rye_execute (",
        "from reminder by Cuebook (event ",
        "    Hm.\n        from model mock-model (event ",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
}

const SECTIONS: &str = "# Task
Answer.

# Rules
```yaml section
summary: The house rules.
visibility: summary
tools:
  - name: find_rule
    description: Looks a rule up.
    parameters:
      command: {kind: string, required: true, description: What to look for.}
```
Never say goodbye.
";

#[test]
fn opened_sections_name_their_lines() {
    let open = json!({"section_keys": ["rules"], "reason": "to know them"});
    let stage = stage(Script::new().reply(Reply::call("c1", "open_sections", open)).text("Hello."));
    stage.project.write("prompts/handbook.sections.md", SECTIONS);
    let output = stage.run(&["run", "handbook", "--model", "fast", "--tool", "find_rule=rye/bash/bash"]);
    assert_eq!(out(&output), "Hello.\n", "{}", err(&output));
    let text = explained(&stage);
    assert!(
        text.contains("    Never say goodbye.\n        from prompts/handbook.sections.md:14\n"),
        "{text}"
    );
    let pieces = as_json(&stage)["explained"][0]["pieces"].clone();
    let rule =
        pieces.as_array().unwrap().iter().find(|piece| piece["text"].as_str().unwrap().contains("goodbye"));
    assert_eq!(rule.unwrap()["origin"]["section"], "rules", "{pieces}");
}
