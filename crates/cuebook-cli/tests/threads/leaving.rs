//! Commands that start a process for a thread and leave: they do so when it has the thread, and not before.

use cuebook_mock::Script;
use serde_json::json;

use crate::greeting::{THREADED, stage};
use crate::setup::{Setup, err, kinds, out, returned, runs, silent};

/// A thread that waits for more turns.
fn suspended(stage: &Setup) -> String {
    assert_eq!(stage.threaded(&["--limit", "turns=0"]).status.code(), Some(1));
    stage.id()
}

#[test]
fn resume_reports_why_a_thread_cannot_continue() {
    let stage = stage(Script::new().reply(returned("Hi")));
    let id = suspended(&stage);
    let resume = ["thread", "resume", &id, "--async", "--limit", "turns=9"];
    let events = stage.events(&id).len();
    let path = ".ai/directives/demo/greet.md";
    let signed = std::fs::read_to_string(stage.project.path().join(path)).unwrap();
    // Changed without a signature, and gone.
    stage.project.write(path, signed.replace("Greet {input:user}.", "Greet {input:user} twice."));
    let unsigned = stage.run(&resume);
    std::fs::remove_file(stage.project.path().join(path)).unwrap();
    let gone = stage.run(&resume);
    for (output, code) in [(unsigned, "[CB221]"), (gone, "[CB116]")] {
        assert_eq!((output.status.code(), out(&output).as_str()), (Some(1), ""), "{}", err(&output));
        assert!(err(&output).contains(code), "{}", err(&output));
    }
    assert_eq!(stage.newest()["status"], "suspended");
    assert_eq!(stage.events(&id).len(), events);
    stage.project.write(path, signed);
    let output = stage.run(&resume);
    assert_eq!(out(&output).trim(), id, "{}", err(&output));
    stage.wait_for("completed");
}

#[test]
fn one_of_two_concurrent_resumes_fails() {
    let stage = stage(Script::new().reply(silent()));
    let id = suspended(&stage);
    let resume = ["thread", "resume", &id, "--async", "--limit", "turns=9", "--json"];
    let both = [stage.start(&resume), stage.start(&resume)];
    let both = both.map(|child| child.wait_with_output().unwrap());
    let (won, lost): (Vec<_>, Vec<_>) = both.iter().partition(|output| output.status.success());
    assert_eq!((won.len(), lost.len()), (1, 1), "{both:#?}");
    assert!(out(lost[0]).contains("CB713"), "{}", out(lost[0]));
    assert_eq!(lost[0].status.code(), Some(1));
    let won: serde_json::Value = serde_json::from_str(&out(won[0])).unwrap();
    assert_eq!(won["pid"], stage.newest()["pid"]);
    let events = stage.events(&id);
    assert_eq!(kinds(&events).iter().filter(|kind| **kind == "thread_resumed").count(), 1);
    assert!(stage.run(&["thread", "cancel", &id]).status.success());
}

#[test]
fn background_threads_run_when_the_command_returns() {
    let stage = stage(Script::new().reply(silent()));
    let id = suspended(&stage);
    let resumed = stage.json(&["thread", "resume", &id, "--async", "--limit", "turns=9"]);
    let tail = stage.start(&["thread", "tail", &id]);
    let newest = stage.newest();
    assert_eq!((&newest["status"], &newest["pid"]), (&json!("running"), &resumed["pid"]));
    assert!(runs(&resumed["pid"].to_string()));
    assert!(stage.run(&["thread", "cancel", &id]).status.success());
    let tail = tail.wait_with_output().unwrap();
    assert!(out(&tail).trim_end().ends_with("cancelled"), "{}", out(&tail));
    stage.mock.play(Script::new().reply(silent()));
    let started = stage.json(&[&THREADED[..], &["--async"]].concat());
    let newest = stage.newest();
    assert_eq!((&newest["status"], &newest["pid"]), (&json!("running"), &started["pid"]));
    assert!(stage.run(&["thread", "cancel", newest["thread_id"].as_str().unwrap()]).status.success());
}
