//! Threads with processes of their own: left alone, cancelled, killed, followed, and their children.

use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};
use std::time::Duration;

use cuebook_mock::{Reply, Script};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value as Json, json};

use crate::greeting::{PARENT, THREADED, stage};
use crate::setup::{KEY, err, gone, kinds, lines, out, returned, silent};

/// A call of a tool that takes a minute.
fn sleeping() -> Reply {
    let command = "echo $$ > pid; sleep 60";
    let call = json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": command}});
    Reply::call("c1", "rye_execute", call).usage(100, 20)
}

fn pid(child: &Child) -> Pid {
    Pid::from_child(child)
}

#[test]
fn a_thread_without_its_parent_shell_goes_on() {
    let stage = stage(Script::new().reply(returned("Hi").first_byte_after(Duration::from_millis(1500))));
    let shell = format!("cuebook {} --async; sleep 60", THREADED.join(" "));
    let mut command = stage.project.command("sh", stage.project.path());
    command.args(["-c", &shell]).env("MOCK_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut shell = command.process_group(0).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(shell.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let id = first.trim();
    assert!(id.starts_with("demo/greet/greet-"), "{id}");
    kill_process_group(pid(&shell), Signal::HUP).unwrap();
    kill_process_group(pid(&shell), Signal::KILL).unwrap();
    shell.wait().unwrap();
    stage.asked(1);
    // One that hears of it itself goes on as well.
    let runner = stage.json(&["thread", "show", id])["pid"].as_i64().unwrap();
    let runner = Pid::from_raw(i32::try_from(runner).unwrap()).unwrap();
    kill_process(runner, Signal::HUP).unwrap();
    let tail = stage.run(&["thread", "tail", id]);
    assert!(out(&tail).trim_end().ends_with("completed"), "{}", out(&tail));
    assert_eq!(stage.json(&["thread", "show", id])["result"]["outputs"], json!({"greeting": "Hi"}));
}

#[test]
fn async_answers_at_once_with_an_id() {
    let stage = stage(Script::new().reply(silent()));
    let answer = stage.json(&[&THREADED[..], &["--async"]].concat());
    assert_eq!(answer["status"], "running");
    let id = answer["thread_id"].as_str().unwrap();
    stage.asked(1);
    assert_eq!(stage.newest()["status"], "running");
    let busy = stage.run(&["thread", "resume", id]);
    assert!(err(&busy).contains("[CB713]"), "{}", err(&busy));
    let cancelled = stage.run(&["thread", "cancel", id]);
    assert!(err(&cancelled).trim_end().ends_with(": cancelled"), "{}", err(&cancelled));
    gone(&answer["pid"].to_string());
    let events = stage.events(id);
    let kinds = kinds(&events);
    assert_eq!(kinds.last(), Some(&"thread_cancelled"), "{kinds:?}");
    assert!(!kinds.contains(&"cognition_out"), "{kinds:?}");
}

#[test]
fn a_cancelled_thread_takes_its_tools_along() {
    let stage = stage(Script::new().reply(sleeping()).reply(returned("never")));
    // In the sandbox a tool does not know its number.
    let child = stage.start(&[&THREADED[..], &["--unfenced"]].concat());
    let tool = stage.wait_for_file("pid");
    let id = stage.id();
    let cancelled = stage.json(&["thread", "cancel", &id]);
    assert_eq!(cancelled["status"], "cancelled", "{cancelled:#}");
    let output = child.wait_with_output().unwrap();
    assert!(err(&output).contains("[CB727]"), "{}", err(&output));
    assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), ""));
    gone(&tool);
    let events = stage.events(&id);
    let kinds = kinds(&events);
    let at = |kind: &str| kinds.iter().position(|known| *known == kind);
    assert!(at("tool_call_start") < at("thread_cancelled"), "{kinds:?}");
    assert_eq!(kinds.last(), Some(&"thread_cancelled"));
    assert_eq!(stage.mock.requests().len(), 1);
}

#[test]
fn ctrl_c_stops_a_thread_that_waits_and_resume_goes_on() {
    let stage = stage(Script::new().reply(silent()));
    let child = stage.start(&THREADED);
    stage.asked(1);
    kill_process(pid(&child), Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = err(&output);
    assert!(said.contains("[CB727]") && said.contains("cuebook thread resume"), "{said}");
    assert_eq!(out(&output), "");
    let cancelled = stage.wait_for("cancelled");
    stage.mock.play(Script::new().reply(returned("Hi")));
    let output = stage.run(&["thread", "resume", cancelled["thread_id"].as_str().unwrap(), "--json"]);
    let all = lines(&out(&output));
    let (answer, events) = all.split_last().unwrap();
    assert_eq!(answer["outputs"], json!({"greeting": "Hi"}), "{answer:#}");
    assert_eq!(kinds(events)[0], "thread_resumed");
}

#[test]
fn a_killed_thread_resumes_without_repeating_calls() {
    let stage = stage(Script::new().reply(sleeping()));
    let mut child = stage.start(&[&THREADED[..], &["--unfenced"]].concat());
    let tool = stage.wait_for_file("pid");
    child.kill().unwrap();
    child.wait().unwrap();
    let found = stage.newest();
    assert_eq!(found["status"], "interrupted", "{found:#}");
    let id = found["thread_id"].as_str().unwrap();
    gone(&tool);
    std::fs::remove_file(stage.project.path().join("pid")).unwrap();
    stage.mock.play(Script::new().reply(returned("Hi")));
    let output = stage.run(&["thread", "resume", id]);
    assert!(output.status.success(), "{}", err(&output));
    assert!(err(&output).contains("not repeated: rye_execute may have run"), "{}", err(&output));
    assert!(!stage.project.path().join("pid").exists(), "it was run again");
    let reported = stage.mock.requests().pop().unwrap().body.to_string();
    assert!(reported.contains("It was not repeated."), "{reported}");
    let events = stage.events(id);
    let kinds = kinds(&events);
    let at = |kind: &str| kinds.iter().position(|known| *known == kind).unwrap();
    assert!(
        at("thread_interrupted") < at("thread_resumed") && at("thread_resumed") < at("tool_call_unknown")
    );
    assert_eq!(kinds.last(), Some(&"thread_completed"));
}

#[test]
fn tail_follows_a_thread_of_another_process_live() {
    let stage = stage(Script::new().reply(silent()));
    let answer = stage.json(&[&THREADED[..], &["--async"]].concat());
    let id = answer["thread_id"].as_str().unwrap();
    stage.asked(1);
    let mut tail = stage.start(&["thread", "tail", id, "--json"]);
    let mut lines = BufReader::new(tail.stdout.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    assert!(line.contains("thread_started"), "{line}");
    // It has not ended, because the thread has not.
    assert!(tail.try_wait().unwrap().is_none());
    stage.run(&["thread", "cancel", id]);
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(tail.wait().unwrap().success());
    assert!(rest.lines().last().unwrap().contains("thread_cancelled"), "{rest}");
}

#[test]
fn children_are_listed_and_cancelled_with_their_parent() {
    let child = json!({"item_type": "directive", "item_id": "demo/greet", "parameters": {"user": "Kid"}, "thread": true});
    let script = Script::new().reply(Reply::call("p1", "rye_execute", child).usage(9, 1));
    let stage = stage(Script::new());
    stage.project.write(".ai/directives/demo/parent.md", PARENT);
    assert!(stage.run(&["sign", "directive", "demo/parent"]).status.success());
    stage.mock.play(script.reply(silent()));
    let running = stage.start(&["execute", "directive", "demo/parent", "--thread"]);
    stage.asked(2);
    let parents = stage.json(&["thread", "list", "--prompt", "demo/parent"]);
    let id = parents[0]["thread_id"].as_str().unwrap();
    let children = stage.json(&["thread", "list", "--parent", id]);
    assert_eq!(children[0]["directive"], "demo/greet", "{children:#}");
    assert!(out(&stage.run(&["thread", "show", id])).contains("child: demo/greet/greet-"));
    let cancelled = stage.run(&["thread", "cancel", id]);
    assert!(cancelled.status.success(), "{}", err(&cancelled));
    let output = running.wait_with_output().unwrap();
    let said = err(&output);
    assert!(said.contains("\n[greet-") && said.contains("] turn 1: asking\n"), "{said}");
    let statuses = |list: &Json| -> Vec<String> {
        list.as_array().unwrap().iter().map(|one| one["status"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(statuses(&stage.json(&["thread", "list"])), ["cancelled", "cancelled"]);
}

#[test]
fn a_thread_is_resumed_in_a_process_of_its_own() {
    let stage = stage(Script::new().reply(returned("Hi")));
    assert_eq!(stage.threaded(&["--limit", "turns=0"]).status.code(), Some(1));
    let id = stage.id();
    let wrong = stage.run(&["thread", "resume", &id, "--limit", "turn=1", "--async"]);
    assert!(err(&wrong).contains("[CB715]"), "it is told here and not in a log: {}", err(&wrong));
    let output = stage.run(&["thread", "resume", &id, "--limit", "turns=1", "--async"]);
    assert_eq!(out(&output).trim(), id, "{}", err(&output));
    stage.wait_for("completed");
    assert_eq!(stage.newest()["result"]["outputs"], json!({"greeting": "Hi"}));
}
