//! A directive runs, and what is reported of it.

use std::time::Duration;

use cuebook_mock::{Reply, Script};
use serde_json::{Value as Json, json};

use crate::greeting::{THREADED, stage};
use crate::setup::{KEY, err, kinds, lines, out, returned};

#[test]
fn a_directive_runs_and_its_outputs_are_all_that_is_on_stdout() {
    let stage = stage(Script::new().reply(returned("Hello, Ann!")));
    let output = stage.threaded(&[]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(serde_json::from_str::<Json>(&out(&output)).unwrap(), json!({"greeting": "Hello, Ann!"}));
    let said = err(&output);
    let plain: Vec<&str> = said.lines().collect();
    assert_eq!(plain[0], "started: demo/greet with mock-model", "{said}");
    assert_eq!(plain[1], "turn 1: asking");
    assert_eq!(plain[2], "turn 1: one call (120 tokens so far)");
    assert!(plain[3].starts_with("  directive_return {"), "{said}");
    assert_eq!(plain[4], "completed");
    assert!(plain[5].starts_with("completed: demo/greet/greet-"), "{said}");
    assert!(plain[5].contains("; 1 turn, 120 tokens, 0.0003 spent, "), "{said}");
    assert!(!said.contains('\x1b'), "there is no terminal: {said:?}");
}

#[test]
fn events_come_as_lines_and_the_last_line_is_the_answer() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let output = stage.threaded(&["--json"]);
    assert_eq!(err(&output), "");
    let all = lines(&out(&output));
    let (answer, events) = all.split_last().unwrap();
    assert_eq!(
        kinds(events),
        [
            "thread_started",
            "cognition_in",
            "cognition_out",
            "tool_call_start",
            "directive_return",
            "tool_call_result",
            "thread_completed"
        ]
    );
    assert_eq!((&answer["status"], &answer["thread_status"]), (&json!("success"), &json!("completed")));
    assert_eq!(answer["outputs"], json!({"greeting": "Hi"}));
    let id = answer["thread_id"].as_str().unwrap();
    assert!(events.iter().all(|event| event["thread_id"] == id));
    let numbers: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(stage.events(id), events, "what was told is what is kept");
}

#[test]
fn threads_are_listed_shown_and_followed() {
    let stage = stage(Script::new().reply(returned("Hi")).text("no").forever());
    stage.threaded(&[]);
    let failed = stage.threaded(&[]);
    assert_eq!(failed.status.code(), Some(1));
    assert!(err(&failed).contains("error[CB725]"), "{}", err(&failed));
    let list = out(&stage.run(&["thread", "list"]));
    let rows: Vec<&str> = list.lines().collect();
    assert_eq!(rows.len(), 2, "{list}");
    assert!(rows[0].starts_with("error ") && rows[1].starts_with("completed "), "{list}");
    let completed = out(&stage.run(&["thread", "list", "--status", "completed", "--status", "running"]));
    assert_eq!(completed.lines().count(), 1);
    assert_eq!(out(&stage.run(&["thread", "list", "--prompt", "demo/other"])), "");
    assert_eq!(stage.json(&["thread", "list", "--most", "1"]).as_array().unwrap().len(), 1);
    let id =
        stage.json(&["thread", "list", "--status", "completed"])[0]["thread_id"].as_str().unwrap().to_owned();
    let shown = out(&stage.run(&["thread", "show", &id]));
    for part in [
        "model: mock-model of mock",
        "inputs: {\"user\":\"Ann\"}",
        "Greet Ann.",
        "log: 7 events, hash chain intact",
    ] {
        assert!(shown.contains(part), "{part} is missing: {shown}");
    }
    let json = stage.json(&["thread", "show", &id, "--events"]);
    assert_eq!(json["launch"]["inputs"], json!({"user": "Ann"}));
    assert_eq!((json["log"]["whole"] == true, json["transcript"].as_array().unwrap().len()), (true, 7));
    let tail = out(&stage.run(&["thread", "tail", &id]));
    assert!(tail.lines().last().unwrap().ends_with(" completed"), "{tail}");
    let after = lines(&out(&stage.run(&["thread", "tail", &id, "--after", "6", "--json"])));
    assert_eq!(kinds(&after), ["thread_completed"]);
}

#[test]
fn a_thread_is_named_by_a_part_of_its_name_if_that_is_enough() {
    let stage = stage(Script::new().reply(returned("Hi")).reply(returned("Hi")));
    stage.threaded(&[]);
    let id = stage.id();
    let end = id.rsplit('-').next().unwrap();
    for name in [id.as_str(), end, &end[5..], "demo/greet", "greet"] {
        assert_eq!(stage.json(&["thread", "show", name])["thread_id"], id.as_str(), "{name}");
    }
    let slip = format!("demo/gret/greet-{end}");
    let output = stage.run(&["thread", "show", &slip]);
    assert!(err(&output).contains("[CB712]") && err(&output).contains(&id), "{}", err(&output));
    stage.threaded(&[]);
    let output = stage.run(&["thread", "show", "greet"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(err(&output).contains("2 threads") && err(&output).contains(&id), "{}", err(&output));
    assert!(err(&stage.run(&["thread", "show", ""])).contains("CB712"));
}

#[test]
fn wrong_words_are_reported_with_the_right_ones() {
    let stage = stage(Script::new());
    let said = |args: &[&str]| {
        let output = stage.run(args);
        assert!(!output.status.success(), "{args:?}");
        assert_eq!(out(&output), "", "{args:?}");
        err(&output)
    };
    let threaded = |more: &[&str]| said(&[&THREADED, more].concat());
    assert!(said(&["thread", "list", "--status", "runing"]).contains("running"));
    assert!(threaded(&["--limit", "turn=3"]).contains("did you mean `turns`?"));
    assert!(threaded(&["--limit", "turns=-1"]).contains("[CB715]"));
    assert!(threaded(&["--limit", "turns"]).contains("--limit turns=30"));
    assert!(threaded(&["--model", "mock-modl"]).contains("mock-model"));
    assert!(said(&["thread", "show", "none"]).contains("[CB712]"));
    let tool = said(&["execute", "tool", "rye/bash/bash", "--param", "command=touch oops", "--thread"]);
    assert!(tool.contains("leave out --thread") && !stage.project.path().join("oops").exists(), "{tool}");
    assert!(stage.mock.requests().is_empty());
    assert_eq!(stage.json(&["thread", "list"]), json!([]));
}

#[test]
fn a_limit_is_reported_and_resume_takes_a_higher_one() {
    let call = json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": "echo once >> runs"}});
    let stage =
        stage(Script::new().reply(Reply::call("c1", "rye_execute", call).usage(10, 2)).reply(returned("Hi")));
    let output = stage.threaded(&["--limit", "turns=1"]);
    let said = err(&output);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("error[CB716]: the thread used 1 of 1 turns"), "{said}");
    let id = stage.id();
    let hint = said.lines().find_map(|line| line.split_once("cuebook thread resume ")).unwrap().1;
    assert!(hint.starts_with(&format!("{id} --limit turns=2")), "{said}");
    assert_eq!(stage.newest()["status"], "suspended");
    let again = stage.run(&["thread", "resume", &id]);
    assert!(err(&again).contains("[CB716]"), "the limit still holds: {}", err(&again));
    let output = stage.run(&["thread", "resume", &id, "--limit", "turns=2"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(serde_json::from_str::<Json>(&out(&output)).unwrap(), json!({"greeting": "Hi"}));
    assert_eq!(std::fs::read_to_string(stage.project.path().join("runs")).unwrap(), "once\n");
    let output = stage.run(&["thread", "resume", &id]);
    assert!(err(&output).contains("[CB728]"), "{}", err(&output));
    let output = stage.run(&["thread", "cancel", &id]);
    assert!(err(&output).contains("[CB728]") && err(&output).contains("completed"), "{}", err(&output));
}

#[test]
fn a_model_gets_the_text_of_the_directive_and_nothing_else() {
    let stage = stage(Script::new().reply(returned("Hi")));
    stage.threaded(&[]);
    let body = &stage.mock.requests()[0].body;
    assert!(body.get("system").is_none(), "{body}");
    let messages = body["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!("user")), "{messages:?}");
    let rendered = out(&stage.run(&["render", "demo/greet", "--var", "user=Ann"]));
    let reported = match &messages[0]["content"] {
        Json::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap().to_owned(),
    };
    assert_eq!(reported.trim(), rendered.trim(), "a thread is told what `render` shows");
    let tools: Vec<&str> =
        body["tools"].as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(tools, ["rye_execute", "directive_return"], "what it may not do it need not know");
}

#[test]
fn shells_complete_the_words_of_threads() {
    let stage = stage(Script::new());
    let words = out(&stage.run(&["completions", "bash"]));
    for word in ["interrupted", "suspended", "--replay", "resume", "--limit", "tail"] {
        assert!(words.contains(word), "{word} is missing");
    }
    let help = out(&stage.run(&["help", "threads"]));
    assert!(help.starts_with("# Threads"), "{help}");
}

/// A terminal for the command; what it shows is on stdout.
const TERMINAL: &str = "
import os, pty, sys
child, terminal = pty.fork()
if child == 0:
    os.execvp('cuebook', ['cuebook'] + sys.argv[1:])
while True:
    try:
        shown = os.read(terminal, 4096)
    except OSError:
        break
    if not shown:
        break
    os.write(1, shown)
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
";

#[test]
fn on_a_terminal_progress_is_one_line_that_goes_away() {
    let Some(()) = crate::support::python_or_skip() else { return };
    let stage = stage(Script::new().reply(returned("Hi").first_byte_after(Duration::from_millis(2500))));
    let mut command = stage.project.command("python3", stage.project.path());
    let output = command.args(["-c", TERMINAL]).args(THREADED).env("MOCK_KEY", KEY).output().unwrap();
    let shown = out(&output);
    assert!(output.status.success(), "{shown}{}", err(&output));
    assert!(shown.contains("0 turns · 0 tokens · 0.00 · 1 s · waiting for mock-model"), "{shown:?}");
    let last = shown.rsplit("\r\x1b[2K").next().unwrap();
    assert!(last.starts_with("{\r\n  \"greeting\": \"Hi\"\r\n}\r\ncompleted: "), "{shown:?}");
}
