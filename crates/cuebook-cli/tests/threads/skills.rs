//! Skills in threads: what the model sees of them, what it can open, and what it may call meanwhile.

use cuebook_mock::{Reply, Script};
use serde_json::{Value as Json, json};

use crate::greeting::GREET;
use crate::setup::{Setup, err, kinds, out, returned, shell};

const SKILL: &str =
    "---\nname: read-invoices\ndescription: Reads invoices.\n---\n\n# Read invoices\n\nSum {{total}}.\n";

const TELLER: &str = "---\nname: teller\nmodel: mock-model\ntools:\n  - name: tell\n    kind: function\n    parameters:\n      - {name: command, kind: string, required: true}\n  - name: shout\n    kind: function\n    parameters:\n      - {name: command, kind: string, required: true}\n---\nuser:\nTell me.\n";

/// Prompts of every dialect.
const PROMPTS: [(&str, &str); 6] = [
    ("prompts/plain/template.md", "Do it.\n"),
    ("prompts/asked.prompty", "---\nname: asked\n---\nuser:\nDo it.\n"),
    ("prompts/tree.sections.md", "# Task\nDo it.\n"),
    ("prompts/dotted.prompt", "---\nmodel: mock-model\n---\nDo it.\n"),
    ("skills/other-skill/SKILL.md", "---\nname: other-skill\ndescription: Does it.\n---\nDo it.\n"),
    (".ai/directives/demo/greet.md", GREET),
];

fn stage(script: Script) -> Setup {
    let files = [PROMPTS.as_slice(), &[("skills/read-invoices/SKILL.md", SKILL)]].concat();
    let stage = Setup::new(script, &files);
    stage.project.write("skills/read-invoices/scripts/sum.py", "print('é')\n");
    stage
}

fn opens(call: &str, arguments: Json) -> Reply {
    let mut arguments = arguments;
    arguments["skill"] = json!("read-invoices");
    Reply::call(call, "open_skill", arguments).usage(50, 5)
}

fn body(stage: &Setup, request: usize) -> Json {
    stage.mock.requests()[request].body.clone()
}

/// The results of tools in the last thread, with whether they are errors.
fn results(stage: &Setup) -> Vec<(String, bool)> {
    let events = stage.events(&stage.id());
    let is_result = |event: &&Json| {
        ["tool_call_result", "permission_denied"].contains(&event["event_type"].as_str().unwrap())
    };
    let results = events.iter().filter(is_result);
    results
        .map(|event| {
            let payload = &event["payload"];
            (payload["result"].as_str().unwrap().to_owned(), payload["is_error"].as_bool().unwrap())
        })
        .collect()
}

#[test]
fn a_prompt_of_any_dialect_discloses_a_skill_in_steps() {
    for prompt in ["plain", "asked", "tree", "dotted", "other-skill", "demo/greet"] {
        let end = if prompt == "demo/greet" { returned("hello") } else { Reply::text("Done.").usage(50, 5) };
        let script =
            Script::new().reply(opens("c1", json!({}))).reply(opens("c2", json!({"file": "scripts/sum.py"})));
        let stage = stage(script.reply(end));
        let mut args = vec!["run", prompt, "--model", "fast", "--skill", "read-invoices"];
        if prompt == "demo/greet" {
            args.extend(["--var", "user=Ann"]);
        }
        let output = stage.run(&args);
        assert!(output.status.success(), "{prompt}: {}", err(&output));
        let tools = body(&stage, 0)["tools"].to_string();
        assert!(
            tools.contains("open_skill") && tools.contains("read-invoices: Reads invoices."),
            "{prompt}: {tools}"
        );
        assert!(!body(&stage, 0).to_string().contains("Sum {{total}}."), "{prompt}");
        let second = body(&stage, 1)["messages"].to_string();
        assert!(second.contains("Sum {{total}}.") && second.contains("scripts/sum.py"), "{prompt}: {second}");
        assert!(!second.contains("print("), "{prompt}: {second}");
        assert!(body(&stage, 2)["messages"].to_string().contains("print('é')"), "{prompt}");
    }
}

#[test]
fn the_text_of_a_skill_names_its_file_and_offsets() {
    let stage = stage(Script::new().reply(opens("c1", json!({}))).text("Done."));
    let output = stage.run(&["run", "plain", "--model", "fast", "--skill", "read-invoices"]);
    assert_eq!(out(&output), "Done.\n", "{}", err(&output));
    let json = stage.json(&["thread", "show", &stage.id(), "--explain"]);
    let result =
        json["explained"].as_array().unwrap().iter().find(|message| message["role"] == "tool").unwrap();
    let origin = &result["pieces"][0]["origin"];
    let start = SKILL.find("# Read").unwrap();
    assert_eq!(
        (&origin["kind"], &origin["file"]),
        (&json!("literal"), &json!("skills/read-invoices/SKILL.md"))
    );
    assert_eq!(
        (&origin["line"], &origin["start"], &origin["end"]),
        (&json!(6), &json!(start), &json!(SKILL.len()))
    );
    assert_eq!(result["pieces"][0]["text"], &SKILL[start..]);
    assert_eq!(result["pieces"][1]["origin"]["kind"], "frame");
    let shown = out(&stage.run(&["thread", "show", &stage.id(), "--explain"]));
    assert!(shown.contains("    Sum {{total}}.\n        from skills/read-invoices/SKILL.md:8\n"), "{shown}");
}

#[test]
fn a_skill_gives_nothing_but_its_files() {
    let paths = ["../../secret.txt", "/etc/passwd", ".hidden", "scripts", "scripts/../../../secret.txt", ""];
    let script = paths.iter().enumerate().fold(Script::new(), |script, (number, path)| {
        script.reply(opens(&format!("c{number}"), json!({"file": path})))
    });
    let stage =
        stage(script.reply(Reply::call("u", "open_skill", json!({"skill": "other-skill"}))).text("Done."));
    stage.project.write("secret.txt", "secret");
    stage.project.write("skills/read-invoices/.hidden", "secret");
    stage.run(&["run", "plain", "--model", "fast", "--skill", "read-invoices", "--limit", "turns=20"]);
    let results = results(&stage);
    assert_eq!(results.len(), paths.len() + 1);
    for (text, is_error) in &results {
        assert!(*is_error && text.starts_with("Error: ") && !text.contains("secret\n"), "{text}");
    }
    assert!(results[0].0.contains("Its files: SKILL.md, scripts/sum.py"), "{}", results[0].0);
    assert_eq!(results.last().unwrap().0, "Error: `skill` must be one of: read-invoices");
}

#[test]
fn a_skill_with_a_link_is_refused() {
    let stage = stage(Script::new());
    std::os::unix::fs::symlink("/etc/passwd", stage.project.path().join("skills/read-invoices/passwd"))
        .unwrap();
    let output = stage.run(&["run", "plain", "--model", "fast", "--skill", "read-invoices"]);
    assert!(err(&output).contains("[CB110]"), "{}", err(&output));
    assert_eq!(stage.mock.requests().len(), 0);
}

#[test]
fn a_signed_skill_is_opened_only_as_it_was_signed() {
    let stage = stage(Script::new().reply(opens("c1", json!({}))).text("Done."));
    let signed = stage.run(&["sign", "skill", "read-invoices"]);
    assert!(signed.status.success(), "{}", err(&signed));
    let args = ["run", "plain", "--model", "fast", "--skill", "read-invoices"];
    assert_eq!(out(&stage.run(&args)), "Done.\n");
    stage.project.write("skills/read-invoices/scripts/sum.py", "print(2)\n");
    let output = stage.run(&args);
    assert!(err(&output).contains("[CB221]"), "{}", err(&output));
}

#[test]
fn a_skill_that_changed_after_the_start_is_refused() {
    let script = Script::new().reply(opens("c1", json!({}))).reply(opens("c2", json!({}))).text("Done.");
    let stage = stage(script);
    let limited = ["run", "plain", "--model", "fast", "--skill", "read-invoices", "--limit", "turns=1"];
    stage.run(&limited);
    stage.project.write("skills/read-invoices/scripts/sum.py", "print(2)\n");
    let output = stage.run(&["thread", "resume", &stage.id(), "--limit", "turns=5"]);
    assert_eq!(out(&output), "Done.\n", "{}", err(&output));
    let results = results(&stage);
    assert!(!results[0].1, "{results:?}");
    assert_eq!(results[1].0, "Error: the skill `read-invoices` was changed after this thread began");
}

#[test]
fn only_a_skill_can_be_given() {
    let stage = stage(Script::new());
    for (id, code) in [("plain", "[CB407]"), ("read-invoice", "[CB101]")] {
        let output = stage.run(&["run", "asked", "--model", "fast", "--skill", id]);
        assert!(!output.status.success() && err(&output).contains(code), "{id}: {}", err(&output));
    }
    assert!(stage.json(&["thread", "list"]).as_array().unwrap().is_empty());
}

fn with_tools(script: Script, allowed: &str) -> Setup {
    let stage = stage(script);
    stage.project.write("teller.prompty", TELLER);
    let skill = SKILL.replace("\n---\n\n", &format!("\nallowed-tools: {allowed}\n---\n\n"));
    stage.project.write("skills/read-invoices/SKILL.md", skill);
    stage
}

const TELL: [&str; 8] = [
    "run",
    "teller.prompty",
    "--skill",
    "read-invoices",
    "--tool",
    "tell=rye/bash/bash",
    "--tool",
    "shout=rye/bash/bash",
];

#[test]
fn an_open_skill_refuses_tools_that_it_does_not_name() {
    let call = |id: &str, name: &str| Reply::call(id, name, json!({"command": "echo hi"})).usage(50, 5);
    for (allowed, tell, shout) in [
        ("tell", true, false),
        ("tell(*), shout", true, true),
        ("shout(echo:*)", false, false),
        ("rye/bash/bash", true, true),
        ("rye.execute.tool.rye.*", true, true),
        ("[]", false, false),
        ("Tell", false, false),
    ] {
        let script = Script::new().reply(call("c0", "shout")).reply(opens("c1", json!({})));
        let stage =
            with_tools(script.reply(call("c2", "tell")).reply(call("c3", "shout")).text("Done."), allowed);
        let output = stage.run(&TELL);
        assert_eq!(out(&output), "Done.\n", "{allowed}: {}", err(&output));
        let results = results(&stage);
        let refused: Vec<bool> =
            results.iter().map(|(text, _)| text.starts_with("Permission denied: The open skill")).collect();
        assert_eq!(refused, [false, false, !tell, !shout], "{allowed}: {results:?}");
    }
}

#[test]
fn a_skill_grants_nothing_that_the_user_did_not() {
    let call = Reply::call("c2", "rm", json!({"command": "echo hi"}));
    let stage =
        with_tools(Script::new().reply(opens("c1", json!({}))).reply(call).text("Done."), "tell rm rye.*");
    assert_eq!(out(&stage.run(&TELL)), "Done.\n");
    assert!(results(&stage)[1].0.starts_with("There is no tool `rm`."), "{:?}", results(&stage));
    let write = json!({"item_type": "tool", "item_id": "rye/file-system/write", "parameters": {"path": "x", "content": "x"}});
    let script = Script::new().reply(opens("c1", json!({}))).reply(Reply::call("c2", "rye_execute", write));
    let stage = with_tools(script.reply(returned("hello")), "rye/file-system/write");
    let output = stage.run(&["run", "demo/greet", "--var", "user=Ann", "--skill", "read-invoices"]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(results(&stage)[1].0.contains("not covered by capabilities"), "{:?}", results(&stage));
}

#[test]
fn a_directive_is_narrowed_by_an_open_skill_also_after_a_resume() {
    let script = Script::new().reply(opens("c0", json!({}))).reply(shell("echo hi")).reply(returned("hello"));
    let stage = with_tools(script, "demo/other");
    let args = ["run", "demo/greet", "--var", "user=Ann", "--skill", "read-invoices", "--limit", "turns=1"];
    stage.run(&args);
    let output = stage.run(&["thread", "resume", &stage.id(), "--limit", "turns=4"]);
    assert!(output.status.success(), "{}", err(&output));
    let results = results(&stage);
    let expected = "Permission denied: The open skill `read-invoices` allows only: demo/other.";
    assert_eq!(results[1], (expected.to_owned(), true), "{results:?}");
    assert!(kinds(&stage.events(&stage.id())).contains(&"permission_denied"));
}

#[test]
fn a_fork_keeps_open_skills_open() {
    let call = || Reply::call("c2", "shout", json!({"command": "echo hi"})).usage(50, 5);
    let stage = with_tools(
        Script::new().reply(opens("c1", json!({}))).text("Done.").reply(call()).text("Forked."),
        "tell",
    );
    assert_eq!(out(&stage.run(&TELL)), "Done.\n");
    let output = stage.run(&["thread", "fork", &stage.id(), "--turn", "2", "--allow-again"]);
    assert_eq!(out(&output), "Forked.\n", "{}", err(&output));
    assert!(results(&stage)[0].0.starts_with("Permission denied: The open skill"), "{:?}", results(&stage));
}

#[test]
fn a_long_file_is_read_in_parts() {
    let script = Script::new()
        .reply(opens("c1", json!({"file": "long.txt"})))
        .reply(opens("c2", json!({"file": "long.txt", "offset": 249_990})));
    let stage = stage(script.text("Done."));
    stage.project.write("skills/read-invoices/long.txt", format!("{}END", "é".repeat(300_000)));
    let output = stage.run(&[
        "run",
        "plain",
        "--model",
        "fast",
        "--skill",
        "read-invoices",
        "--limit",
        "tokens=10000000",
    ]);
    assert!(output.status.success(), "{}", err(&output));
    let results = results(&stage);
    assert!(
        results[0].0.contains("[The text continues: call again with \"offset\": "),
        "{}",
        results[0].0.len()
    );
    assert!(results[1].0.starts_with('é') && results[1].0.ends_with("END"), "{}", results[1].0.len());
}
