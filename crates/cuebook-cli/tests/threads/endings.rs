//! How the processes of threads end, and what becomes of their tools: with the real binary, real signals, and a model that says
//! what its script says.

use std::process::Output;

use cuebook_mock::{Reply, Script};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};

use crate::setup::{Setup, err, gone, kinds, out, returned, runs, shell, silent};

const THREADED: [&str; 4] = ["execute", "directive", "demo/greet", "--thread"];

fn directive(name: &str, spend: &str, permissions: &str) -> String {
    format!(
        r#"# {name}

```xml
<directive name="{name}" version="1.0.0">
  <metadata>
    <description>Greet somebody.</description>
    <category>demo</category>
    <author>tests</author>
    <model tier="fast" />
    <limits turns="6" tokens="20000" spend="{spend}" />
    <permissions>{permissions}<acknowledge risk="elevated">It only sleeps.</acknowledge></permissions>
  </metadata>
  <outputs><output name="greeting" type="string">What was said</output></outputs>
</directive>
```

Greet.
"#
    )
}

fn stage(script: Script) -> Setup {
    let bash = "<execute><tool>rye.bash.bash</tool></execute>";
    let both = "<execute><tool>rye.bash.bash</tool><directive>demo.*</directive></execute>";
    let files = [
        (".ai/directives/demo/greet.md", directive("greet", "0.5", bash)),
        (".ai/directives/demo/parent.md", directive("parent", "2", both)),
    ];
    Setup::new(script, &files.each_ref().map(|(path, text)| (*path, text.as_str())))
}

impl Setup {
    /// Starts a detached thread: its name and its process. Its tools run without the sandbox, in which nothing
    /// outlives anything.
    fn detached(&self) -> (String, Pid) {
        let answer = self.json(&[&THREADED[..], &["--async", "--unfenced"]].concat());
        (answer["thread_id"].as_str().unwrap().to_owned(), process(&answer["pid"]))
    }

    fn status(&self, id: &str) -> String {
        self.json(&["thread", "show", id])["status"].as_str().unwrap().to_owned()
    }

    /// Takes a thread up again, and waits until it has come to its end.
    fn resumes(&self, id: &str) -> Output {
        self.mock.play(Script::new().reply(returned("Hi")));
        let output = self.run(&["thread", "resume", id]);
        assert!(output.status.success(), "{}", err(&output));
        assert_eq!(serde_json::from_str::<Json>(&out(&output)).unwrap(), json!({"greeting": "Hi"}));
        output
    }
}

/// A tool that takes longer than any test, and says which process it is.
const SLEEP: &str = "echo $$ > pid; sleep 300";

fn process(number: &Json) -> Pid {
    Pid::from_raw(i32::try_from(number.as_i64().unwrap()).unwrap()).unwrap()
}

#[test]
fn sigterm_stops_tools_and_leaves_a_resumable_thread() {
    for signal in [Signal::TERM, Signal::INT] {
        let stage = stage(Script::new().reply(shell(SLEEP)).reply(returned("never")));
        let (id, runner) = stage.detached();
        let tool = stage.wait_for_file("pid");
        kill_process(runner, signal).unwrap();
        gone(&runner.as_raw_nonzero().to_string());
        assert!(!runs(&tool), "the tool has outlived its thread");
        assert_eq!(stage.status(&id), "interrupted");
        let events = stage.events(&id);
        let last = events.last().unwrap();
        assert_eq!(
            (&last["event_type"], &last["payload"]["told_to_end"]),
            (&json!("thread_interrupted"), &json!(true))
        );
        let result = events.iter().find(|event| event["event_type"] == "tool_call_result").unwrap();
        assert!(result["payload"]["result"].to_string().contains("cancelled"), "{result:#}");
        stage.resumes(&id);
        let reported = stage.mock.requests().pop().unwrap().body.to_string();
        assert!(reported.contains("Command was cancelled"), "{reported}");
    }
}

#[test]
fn a_process_that_must_end_does_not_wait_for_its_model() {
    let stage = stage(Script::new().reply(silent()));
    let (id, runner) = stage.detached();
    stage.asked(1);
    kill_process(runner, Signal::TERM).unwrap();
    gone(&runner.as_raw_nonzero().to_string());
    assert_eq!(stage.status(&id), "interrupted");
    let said = stage.run(&["thread", "tail", &id]);
    assert!(out(&said).trim_end().ends_with("interrupted: its process was asked to stop"), "{}", out(&said));
    let events = stage.events(&id);
    assert!(kinds(&events).contains(&"cognition_partial"), "{events:#?}");
    stage.resumes(&id);
}

/// Ends a process at once, as if the machine had.
fn kill(runner: Pid) {
    kill_process(runner, Signal::KILL).unwrap();
    gone(&runner.as_raw_nonzero().to_string());
}

#[test]
fn a_surviving_tool_is_stopped_by_cancel() {
    // It does not want to end, and has started others, one of them in a group of its own.
    let stubborn = "trap '' TERM; setsid sh -c 'echo $$ > other; exec sleep 300' & echo $$ > pid; while :; do sleep 1; done";
    let stage = stage(Script::new().reply(shell(stubborn)));
    let (id, runner) = stage.detached();
    let tools = [stage.wait_for_file("pid"), stage.wait_for_file("other")];
    kill(runner);
    assert!(tools.iter().all(|tool| runs(tool)), "the test is about tools that go on");
    let cancelled = stage.run(&["thread", "cancel", &id]);
    assert!(cancelled.status.success(), "{}", err(&cancelled));
    assert_eq!(err(&cancelled), format!("{id}: cancelled\nstopped 1 tool that was left running\n"));
    assert!(!tools.iter().any(|tool| runs(tool)), "a tool still runs");
    let events = stage.events(&id);
    let found = events.iter().find(|event| event["event_type"] == "thread_interrupted").unwrap();
    assert_eq!(found["payload"]["tools_stopped"], 1, "{found:#}");
    assert_eq!(kinds(&events).last(), Some(&"thread_cancelled"));
}

#[test]
fn a_surviving_tool_is_stopped_before_a_resume() {
    let stage = stage(Script::new().reply(shell(SLEEP)));
    let (id, runner) = stage.detached();
    let tool = stage.wait_for_file("pid");
    kill(runner);
    let output = stage.resumes(&id);
    assert!(!runs(&tool), "the tool still runs");
    assert!(err(&output).contains("resumed; stopped 1 tool that was left running\n"), "{}", err(&output));
    let reported = stage.mock.requests().pop().unwrap().body.to_string();
    assert!(reported.contains("Its remaining processes were stopped."), "{reported}");
}

#[test]
fn background_processes_of_a_call_keep_running() {
    let daemon = "setsid sh -c 'echo $$ > daemon; exec sleep 300' > /dev/null 2>&1 & \
                  until test -s daemon; do sleep 0.05; done";
    let child = json!({"item_type": "directive", "item_id": "demo/greet", "thread": true, "async": true});
    let stage = stage(Script::new());
    let script = Script::new()
        .reply(shell(daemon))
        .reply(Reply::call("c2", "rye_execute", child).usage(9, 1))
        .reply(silent())
        .reply(silent());
    stage.mock.play(script);
    let answer = stage.json(&["execute", "directive", "demo/parent", "--thread", "--async", "--unfenced"]);
    let daemon = stage.wait_for_file("daemon");
    // The parent and its child wait for their models.
    stage.asked(4);
    let parent = answer["thread_id"].as_str().unwrap();
    let children = stage.json(&["thread", "list", "--parent", parent]);
    kill(process(&answer["pid"]));
    assert_eq!(stage.status(parent), "interrupted");
    assert!(runs(&daemon), "its call had ended");
    assert!(runs(&children[0]["pid"].to_string()), "the child has a process of its own");
    assert_eq!(stage.status(children[0]["thread_id"].as_str().unwrap()), "running");
    let cancelled = stage.run(&["thread", "cancel", parent]);
    assert!(!err(&cancelled).contains("tool"), "{}", err(&cancelled));
    gone(&children[0]["pid"].to_string());
    assert!(runs(&daemon));
    kill_process(process(&json!(daemon.parse::<i64>().unwrap())), Signal::KILL).unwrap();
}

#[test]
fn a_cancelled_call_takes_along_what_has_left_its_group() {
    // Both put what they start into a group of its own.
    let command =
        "setsid sh -c 'echo $$ > other; exec sleep 300' & timeout 300 sh -c 'echo $$ > pid; exec sleep 300'";
    let stage = stage(Script::new().reply(shell(command)));
    let (id, _) = stage.detached();
    let tools = [stage.wait_for_file("pid"), stage.wait_for_file("other")];
    let cancelled = stage.run(&["thread", "cancel", &id]);
    assert_eq!(err(&cancelled), format!("{id}: cancelled\n"));
    assert!(!tools.iter().any(|tool| runs(tool)), "a tool still runs");
}

#[test]
fn a_thread_whose_process_is_stopped_is_cancelled_all_the_same() {
    let stage = stage(Script::new().reply(shell(SLEEP)));
    let (id, runner) = stage.detached();
    let tool = stage.wait_for_file("pid");
    kill_process(runner, Signal::STOP).unwrap();
    let cancelled = stage.run(&["thread", "cancel", &id]);
    assert!(cancelled.status.success(), "{}", err(&cancelled));
    assert_eq!(err(&cancelled), format!("{id}: cancelled\n"));
    gone(&runner.as_raw_nonzero().to_string());
    gone(&tool);
    stage.resumes(&id);
}

#[test]
fn children_of_an_ended_thread_can_be_cancelled() {
    let child = json!({"item_type": "directive", "item_id": "demo/greet", "thread": true, "async": true});
    let stage = stage(Script::new());
    // Who asks first is not certain; only the parent has made a call before.
    let others = Script::answer(|request| match request.body.to_string().contains("tool_result") {
        true => returned("Hi"),
        false => silent(),
    });
    stage.mock.play(others.reply(Reply::call("c1", "rye_execute", child).usage(9, 1)));
    let output = stage.run(&["execute", "directive", "demo/parent", "--thread"]);
    assert!(output.status.success(), "{}", err(&output));
    let list = stage.json(&["thread", "list"]);
    let named = |prompt: &str| {
        let one = list.as_array().unwrap().iter().find(|one| one["directive"] == prompt).unwrap();
        (one["thread_id"].as_str().unwrap().to_owned(), one["status"].as_str().unwrap().to_owned())
    };
    let ((parent, status), (child, _)) = (named("demo/parent"), named("demo/greet"));
    assert_eq!(status, "completed");
    let cancelled = stage.run(&["thread", "cancel", &parent]);
    let said = format!("{parent} is already completed; its children:\n{child}: cancelled\n");
    assert_eq!((err(&cancelled), cancelled.status.code()), (said, Some(0)));
    assert_eq!(stage.status(&parent), "completed");
    let again = stage.run(&["thread", "cancel", &parent]);
    assert!(err(&again).contains("[CB728]"), "{}", err(&again));
}

#[test]
fn a_cancelled_thread_does_not_start() {
    let stage = stage(Script::new().reply(silent()).reply(returned("too late")));
    let (id, _) = stage.detached();
    stage.asked(1);
    assert!(stage.run(&["thread", "cancel", &id]).status.success());
    // A process that was started for it, and comes late.
    let late = stage.run(&["thread", "carry-out", &id, "--behind", "1"]);
    assert!(err(&late).contains("[CB713]"), "{}", err(&late));
    assert_eq!(stage.status(&id), "cancelled");
    assert_eq!(stage.mock.requests().len(), 1);
}

#[test]
fn a_list_of_no_threads_is_not_asked_for() {
    let stage = stage(Script::new());
    let output = stage.run(&["thread", "list", "--most", "0"]);
    assert_eq!(output.status.code(), Some(2), "{}", err(&output));
    assert!(err(&output).contains("--most") && err(&output).contains("1.."), "{}", err(&output));
}
