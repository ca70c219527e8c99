//! Prompts of every dialect that run like directives.

use cuebook_mock::{Reply, Script};
use serde_json::{Value as Json, json};

use crate::greeting::stage;
use crate::setup::{err, lines, out, returned};

#[test]
fn any_prompt_is_run() {
    let stage = stage(Script::new().text("One.").text("Two.").text("Three."));
    stage.project.write("prompts/ask/template.md", "Say {{ word }}.\n");
    stage.project.write(
        "say.prompty",
        "---\nname: say\nmodel: mock-model\n---\nsystem:\nBe brief.\n\nuser:\nSay {{word}}.\n",
    );
    let output = stage.run(&["run", "ask", "--var", "word=one", "--model", "fast"]);
    assert_eq!((out(&output).as_str(), output.status.code()), ("One.\n", Some(0)), "{}", err(&output));
    assert!(err(&output).starts_with("started: ask with mock-model\n"), "{}", err(&output));
    let output = stage.run(&["run", "say.prompty", "--var", "word=two"]);
    assert_eq!(out(&output), "Two.\n", "{}", err(&output));
    let output = stage.run(&["run", "ask", "--var", "word=three", "--model", "fast", "--json"]);
    let all = lines(&out(&output));
    assert_eq!((&all.last().unwrap()["result"], err(&output).as_str()), (&json!("Three."), ""));
    let bodies: Vec<Json> = stage.mock.requests().into_iter().map(|request| request.body).collect();
    assert!(bodies[0]["messages"].to_string().contains("Say one."));
    assert_eq!(bodies[1]["system"], "Be brief.", "{}", bodies[1]);
    assert!(bodies[1]["messages"].to_string().contains("Say two."));
}

const SECTIONS: &str = "---
name: Handbook
---
# Task
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
fn opened_sections_are_in_the_next_request() {
    let open = json!({"section_keys": ["rules"], "reason": "to know them"});
    let script = Script::new()
        .reply(Reply::call("c1", "open_sections", open))
        .reply(Reply::call("c2", "find_rule", json!({"command": "echo be kind"})))
        .text("Hello.");
    let stage = stage(script);
    stage.project.write("prompts/handbook.sections.md", SECTIONS);
    let refused = stage.run(&["run", "handbook", "--model", "fast"]);
    assert!(err(&refused).contains("[CB730]") && err(&refused).contains("find_rule"), "{}", err(&refused));
    let output = stage.run(&["run", "handbook", "--model", "fast", "--tool", "find_rule=rye/bash/bash"]);
    assert_eq!(out(&output), "Hello.\n", "{}", err(&output));
    assert!(err(&output).contains("  sections opened\n"), "{}", err(&output));
    let bodies: Vec<String> = stage.mock.requests().iter().map(|request| request.body.to_string()).collect();
    assert!(!bodies[0].contains("Never say goodbye.") && !bodies[0].contains("find_rule"), "{}", bodies[0]);
    assert!(bodies[0].contains("open_sections"), "{}", bodies[0]);
    assert!(bodies[1].contains("Never say goodbye.") && bodies[1].contains("find_rule"), "{}", bodies[1]);
    assert!(bodies[2].contains("be kind\\\\n"), "{}", bodies[2]);
}

const WITH_TOOL: &str = "---\nname: teller\nmodel: mock-model\ntools:\n  - name: tell\n    kind: function\n    description: Tells something.\n    parameters:\n      - {name: command, kind: string, required: true}\n---\nuser:\nTell me.\n";

#[test]
fn the_tools_of_a_prompt_run_only_where_the_user_says_so() {
    let call = || Reply::call("c1", "tell", json!({"command": "echo told"}));
    let stage = stage(Script::new().reply(call()).text("Done.").reply(call()).text("Done."));
    stage.project.write("teller.prompty", WITH_TOOL);
    let runs = WITH_TOOL
        .replace("description: Tells something.", "description: Tells something.\n    runs: rye/bash/bash");
    stage.project.write("runner.prompty", runs);
    let refused = stage.run(&["run", "teller.prompty"]);
    assert!(
        err(&refused).contains("[CB730]") && err(&refused).contains("--tool tell=my/tool"),
        "{}",
        err(&refused)
    );
    let refused = stage.run(&["run", "runner.prompty"]);
    let said = err(&refused);
    assert!(said.contains("[CB717]") && said.contains("--allow rye.execute.tool.rye.bash.bash"), "{said}");
    let refused = stage.run(&["run", "teller.prompty", "--tool", "tel=rye/bash/bash"]);
    assert!(err(&refused).contains("did you mean `tell`?"), "{}", err(&refused));
    assert!(
        err(&stage.run(&["run", "teller.prompty", "--tool", "tell"])).contains("--tool search=my/search")
    );
    assert!(stage.mock.requests().is_empty());
    for args in [
        ["run", "teller.prompty", "--tool", "tell=rye/bash/bash"],
        ["run", "runner.prompty", "--allow", "rye.execute.tool.rye.bash.bash"],
    ] {
        let output = stage.run(&args);
        assert_eq!(out(&output), "Done.\n", "{}", err(&output));
        assert!(stage.mock.requests().pop().unwrap().body.to_string().contains("told"));
    }
}

#[test]
fn an_answer_that_has_not_the_declared_form_is_asked_for_again() {
    let outputs = "outputs:\n  - {name: mood, kind: string, required: true}\n";
    let stage = stage(Script::new().text("fine, thanks").text("{\"mood\": \"fine\"}").text("no").forever());
    stage
        .project
        .write("ask.prompty", format!("---\nname: ask\nmodel: mock-model\n{outputs}---\nuser:\nHi.\n"));
    let output = stage.run(&["run", "ask.prompty"]);
    assert_eq!(
        serde_json::from_str::<Json>(&out(&output)).unwrap(),
        json!({"mood": "fine"}),
        "{}",
        err(&output)
    );
    assert_eq!(stage.mock.requests().len(), 2);
    let failed = stage.run(&["run", "ask.prompty"]);
    assert_eq!((failed.status.code(), out(&failed).as_str()), (Some(1), ""));
    assert!(err(&failed).contains("[CB725]"), "{}", err(&failed));
    assert_eq!(stage.mock.requests().len(), 2 + 4);
}

#[test]
fn a_directive_can_be_run_like_any_other_prompt() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let output = stage.run(&["run", "demo/greet", "--var", "user=Ann"]);
    assert_eq!(
        serde_json::from_str::<Json>(&out(&output)).unwrap(),
        json!({"greeting": "Hi"}),
        "{}",
        err(&output)
    );
    assert_eq!(stage.newest()["directive"], "demo/greet");
}
