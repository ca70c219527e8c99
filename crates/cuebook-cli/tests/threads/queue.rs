//! Queued threads and workers on the command line.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use cuebook_mock::{Reply, Script};
use serde_json::{Value as Json, json};

use crate::greeting::stage;
use crate::setup::{PATIENCE, Setup, err, gone, lines, out, returned, silent};

const START: [&str; 7] = ["thread", "start", "demo/greet", "--var", "user=Ann", "--model", "fast"];

fn start(stage: &Setup, more: &[&str]) -> String {
    let output = stage.run(&[&START, more].concat());
    assert!(output.status.success(), "{}", err(&output));
    out(&output).trim().to_owned()
}

fn status(stage: &Setup) -> Json {
    stage.json(&["worker", "status"])
}

fn counts(stage: &Setup) -> [u64; 3] {
    let status = status(stage);
    ["waiting", "scheduled", "running"].map(|name| status[name].as_u64().unwrap())
}

fn show(stage: &Setup, id: &str) -> Json {
    stage
        .json(&["thread", "list"])
        .as_array()
        .unwrap()
        .iter()
        .find(|one| one["thread_id"] == id)
        .unwrap()
        .clone()
}

#[test]
fn a_worker_runs_what_was_queued_by_priority() {
    let stage = stage(Script::new().reply(returned("Hi")).forever());
    assert_eq!(counts(&stage), [0, 0, 0]);
    let usual = start(&stage, &[]);
    let first = start(&stage, &["--priority", "5"]);
    let later = start(&stage, &["--in", "1h", "--priority", "9"]);
    assert_eq!(counts(&stage), [2, 1, 0]);
    assert_eq!(show(&stage, &usual)["status"], "queued");
    assert!(stage.mock.requests().is_empty(), "nothing is asked before a worker runs it");
    let output = stage.run(&["worker", "--until-empty", "--concurrency", "1", "--json"]);
    assert!(output.status.success(), "{}", err(&output));
    let took: Vec<Json> = lines(&out(&output)).into_iter().filter(|line| line["event"] == "took").collect();
    assert_eq!(
        took.iter().map(|line| line["thread_id"].as_str().unwrap()).collect::<Vec<_>>(),
        [&first, &usual]
    );
    assert_eq!(show(&stage, &usual)["status"], "completed");
    assert_eq!(show(&stage, &later)["status"], "queued");
    assert_eq!(counts(&stage), [0, 1, 0]);
    assert!(stage.run(&["thread", "cancel", &later]).status.success());
    assert_eq!(counts(&stage), [0, 0, 0]);
    // A user can run it without a worker, too.
    let now = start(&stage, &["--in", "1h"]);
    let output = stage.run(&["thread", "resume", &now]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(show(&stage, &now)["status"], "completed");
    assert_eq!(counts(&stage), [0, 0, 0]);
}

#[test]
fn a_worker_takes_a_thread_only_when_it_is_due() {
    let stage = stage(Script::new().reply(returned("Hi")).forever());
    let past = start(&stage, &["--at", "2001-01-01T00:00:00Z"]);
    let future = start(&stage, &["--at", "2999-01-01T00:00:00Z"]);
    assert_eq!(counts(&stage), [1, 1, 0]);
    let output = stage.run(&["worker", "--until-empty"]);
    assert!(output.status.success(), "{}", err(&output));
    assert_eq!(show(&stage, &past)["status"], "completed");
    assert_eq!(show(&stage, &future)["status"], "queued");
    assert_eq!((counts(&stage), stage.mock.requests().len()), ([0, 1, 0], 1));
}

#[test]
fn a_waiting_worker_takes_a_delayed_thread_after_its_due_time() {
    let stage = stage(Script::new().reply(returned("Hi")).forever());
    // The worker waits before there is anything to do, so the due time alone makes it look again.
    let mut worker = stage.start(&["worker"]);
    let queued = stage.json(&[&START[..], &["--in", "2s"]].concat());
    let moment = |time: &Json| time.as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
    stage.wait_for("completed");
    let events = stage.events(queued["thread_id"].as_str().unwrap());
    assert!(moment(&events[1]["timestamp"]) >= moment(&queued["due_at"]), "{queued}: {}", events[1]);
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[test]
fn a_second_signal_stops_what_runs_and_nothing_is_lost() {
    let stage = stage(Script::new().reply(silent()).reply(returned("Hi")));
    let id = start(&stage, &[]);
    let mut worker = stage.start(&["worker", "--name", "first"]);
    stage.asked(1);
    let pid = worker.id().to_string();
    let signal =
        || assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    signal();
    let began = Instant::now();
    while status(&stage)["workers"][0]["draining"] != true {
        assert!(began.elapsed() < PATIENCE);
    }
    assert_eq!(counts(&stage), [0, 0, 1], "the request may end");
    signal();
    assert!(worker.wait().unwrap().success());
    gone(&pid);
    assert_eq!(show(&stage, &id)["status"], "interrupted");
    assert_eq!(counts(&stage), [1, 0, 0]);
    assert!(stage.run(&["worker", "--until-empty"]).status.success());
    assert_eq!(show(&stage, &id)["status"], "completed");
}

#[test]
fn a_worker_that_hangs_loses_its_threads_and_cannot_write() {
    let answer = || returned("Hi").first_byte_after(Duration::from_millis(700));
    let stage = stage(Script::new().reply(answer()).reply(answer()));
    let id = start(&stage, &[]);
    let mut first = stage.start(&["worker", "--lease", "2", "--name", "first"]);
    stage.asked(1);
    let pid = first.id().to_string();
    let signal = |name: &str| {
        assert!(std::process::Command::new("kill").args([name, &pid]).status().unwrap().success());
    };
    signal("-STOP");
    let mut second = stage.start(&["worker", "--lease", "2", "--name", "second"]);
    stage.wait_for("completed");
    let before = stage.events(&id);
    signal("-CONT");
    // It registers again when it finds out.
    let began = Instant::now();
    while status(&stage)["workers"].as_array().unwrap().len() < 2 {
        assert!(began.elapsed() < PATIENCE);
    }
    signal("-TERM");
    let output = {
        assert!(first.wait().unwrap().success());
        let mut text = String::new();
        first.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    };
    assert!(output.contains("cannot run") && output.contains("process"), "{output}");
    assert_eq!(stage.events(&id), before, "it wrote nothing");
    assert_eq!(show(&stage, &id)["cost"]["turns"], 1);
    second.kill().unwrap();
    second.wait().unwrap();
}

#[test]
fn metrics_are_served_on_this_machine() {
    let stage = stage(Script::new().reply(returned("Hi")).forever());
    let mut worker = stage.start(&["worker", "--metrics", "0"]);
    let mut said = String::new();
    let mut errors = worker.stderr.take().unwrap();
    while !said.ends_with("/metrics\n") {
        let mut byte = [0];
        errors.read_exact(&mut byte).unwrap();
        said.push(char::from(byte[0]));
    }
    let address = said.trim().trim_start_matches("metrics: http://").trim_end_matches("/metrics");
    assert!(address.starts_with("127.0.0.1:"), "{said}");
    start(&stage, &[]);
    stage.wait_for("completed");
    let ask = |request: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let began = Instant::now();
    let answer = loop {
        let answer = ask("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
        if answer.contains("cuebook_worker_ended_total{status=\"completed\"} 1\n") {
            break answer;
        }
        assert!(began.elapsed() < PATIENCE, "{answer}");
    };
    assert!(
        answer.starts_with("HTTP/1.1 200 OK\r\n") && answer.contains("text/plain; version=0.0.4"),
        "{answer}"
    );
    for line in [
        "cuebook_queue_threads{state=\"waiting\"} 0\n",
        "cuebook_workers 1\n",
        "cuebook_worker_taken_total 1\n",
        "cuebook_worker_turns_total 1\n",
        "# TYPE cuebook_queue_oldest_wait_seconds gauge\n",
    ] {
        assert!(answer.contains(line), "{line}{answer}");
    }
    assert!(ask("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
    assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405"));
    worker.kill().unwrap();
    worker.wait().unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn a_queued_thread_runs_unsandboxed_only_if_its_worker_does() {
    let call = |name: &str| crate::setup::shell(&format!("echo out > .ai/{name}.txt"));
    let script = Script::new()
        .reply(call("inside"))
        .reply(returned("Hi"))
        .reply(call("asked"))
        .reply(returned("Hi"))
        .reply(call("outside"))
        .reply(returned("Hi"));
    let stage = stage(script);
    let has_left = |name: &str| stage.project.path().join(format!(".ai/{name}.txt")).exists();
    let run = |start_with: &[&str], work_with: &[&str], name: &str| {
        start(&stage, start_with);
        let output = stage.run(&[&["worker", "--until-empty"], work_with].concat());
        assert!(output.status.success(), "{}", err(&output));
        has_left(name)
    };
    assert!(!run(&[], &["--no-sandbox"], "inside"));
    assert!(!run(&["--no-sandbox"], &[], "asked"));
    assert!(run(&["--no-sandbox"], &["--no-sandbox"], "outside"));
}

#[test]
fn options_of_the_queue_are_checked() {
    let stage = stage(Script::new().reply(Reply::text("no")));
    for (args, expected) in [
        (&["thread", "start", "demo/greet", "--in", "soon"][..], "write a duration such as"),
        (&["thread", "start", "demo/greet", "--at", "25:00"], "write a time such as"),
        (&["thread", "start", "demo/greet", "--at", "09:00", "--in", "1h"], "cannot be used with"),
        (&["thread", "start", "demo/none"], "[CB"),
        (&["thread", "start", "demo/greet"], "[CB"),
        (&["thread", "resume", "x", "--in", "1h"], "[CB"),
        (&["worker", "--lease", "0"], "2..="),
        (&["worker", "--metrics", "http://localhost:1"], "[CB802]"),
    ] {
        let output = stage.run(args);
        assert!(!output.status.success(), "{args:?}");
        assert!(err(&output).contains(expected), "{args:?}: {}", err(&output));
    }
    assert_eq!(stage.json(&["thread", "list"]), json!([]));
}
