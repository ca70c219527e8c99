//! Tools that behave badly, as real processes: nothing that they do may hang, fill or break the engine.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use cuebook_run::{Settings, Watch};
use serde_json::{Value as Json, json};
use support::{Fixture, request};

fn quick() -> Settings {
    Settings { timeout: Duration::from_secs(30), grace: Duration::from_millis(300), ..Settings::default() }
}

/// A tool in YAML that runs a script in a shell, with a timeout.
fn shell(world: &Fixture, name: &str, timeout: f64, script: &str) {
    let yaml = format!(
        "version: 1.0.0\ntool_type: shell\ncategory: demo\ndescription: D\nexecutor_id: rye/core/primitives/subprocess\n\
         config:\n  command: /bin/sh\n  args: ['-c', {}]\n  timeout: {timeout}\n",
        json!(script)
    );
    world.signed(&format!("tools/demo/{name}.yaml"), &yaml);
}

fn is_alive(pid: &str) -> bool {
    // A process that has ended and that no one has waited for is not alive.
    let Ok(status) = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim())) else { return false };
    !status.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z')
}

fn gone(pid: &str) -> bool {
    let until = Instant::now() + Duration::from_secs(5);
    while is_alive(pid) && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    !is_alive(pid)
}

#[test]
fn ten_megabytes_of_output_are_read_while_the_tool_runs() {
    let world = Fixture::new();
    world.python(
        "demo/loud",
        "import sys\nsys.stdout.write('x' * (10 << 20))\nsys.stderr.write('y' * (1 << 20))\n",
    );
    let answer = world.tool("demo/loud", json!({}));
    assert_eq!(answer["status"], "success", "{}", answer["error"]);
    assert_eq!(answer["data"]["stdout"].as_str().unwrap().len(), 10 << 20);
    assert_eq!(answer["data"]["stderr"].as_str().unwrap().len(), 1 << 20);
}

#[test]
fn output_over_the_limit_is_dropped_and_reported() {
    let world = Fixture::with(Settings { output: 1000, ..quick() });
    world.python("demo/loud", "import sys\nsys.stdout.write('ü' * (1 << 20))\n");
    let answer = world.tool("demo/loud", json!({}));
    assert_eq!(answer["status"], "success");
    assert_eq!(answer["data"]["stdout"].as_str().unwrap().len(), 1000);
    assert_eq!(answer["data"]["stdout_truncated"], true);
    assert_eq!(answer["data"]["stdout_bytes"], 2 << 20);
    assert_eq!(answer["data"].get("stdout_binary"), None);
}

#[test]
fn binary_output_does_not_break_the_answer() {
    let world = Fixture::new();
    world.python("demo/binary", "import sys\nsys.stdout.buffer.write(b'a\\xff\\x00\\xfeb')\n");
    let answer = world.tool("demo/binary", json!({}));
    assert_eq!(answer["data"]["stdout"], "a\u{fffd}\u{0}\u{fffd}b");
    assert_eq!(answer["data"]["stdout_binary"], true);
}

#[test]
fn a_deaf_tool_is_killed_with_its_children() {
    let world = Fixture::with(quick());
    shell(
        &world,
        "stubborn",
        0.5,
        "trap '' TERM; sh -c 'trap \"\" TERM; echo $$ > child; while :; do sleep 1; done' & echo $$ > pid; echo begun; while :; do sleep 1; done",
    );
    let started = Instant::now();
    let answer = world.tool("demo/stubborn", json!({}));
    assert!(started.elapsed() < Duration::from_secs(4), "{:?}", started.elapsed());
    assert_eq!(answer["status"], "error");
    assert_eq!(answer["error"], "Command timed out after 0.5 seconds");
    assert_eq!(answer["metadata"]["error"]["code"], "CB707");
    assert_eq!(answer["data"]["stdout"], "begun\n");
    assert_eq!(answer["data"]["return_code"], -1);
    for file in ["pid", "child"] {
        let pid = std::fs::read_to_string(world.project().join(file)).unwrap();
        assert!(gone(&pid), "{file} {pid} is still there");
    }
}

#[test]
fn a_tool_that_ends_when_it_is_asked_may_say_something_first() {
    let world = Fixture::with(quick());
    shell(&world, "polite", 0.3, "trap 'echo bye; exit 3' TERM; while :; do sleep 0.05; done");
    let answer = world.tool("demo/polite", json!({}));
    assert_eq!(answer["data"]["stdout"], "bye\n");
    assert_eq!(answer["metadata"]["error"]["code"], "CB707");
}

#[test]
fn a_grandchild_that_keeps_the_streams_is_not_waited_for() {
    let world = Fixture::with(quick());
    shell(&world, "daemon", 20.0, "sleep 30 & echo $! > pid; echo done");
    let started = Instant::now();
    let answer = world.tool("demo/daemon", json!({}));
    assert!(started.elapsed() < Duration::from_secs(2), "{:?}", started.elapsed());
    assert_eq!(answer["status"], "success");
    assert_eq!(answer["data"]["stdout"], "done\n");
    let pid = std::fs::read_to_string(world.project().join("pid")).unwrap();
    assert!(is_alive(&pid), "what a tool leaves running on purpose goes on");
    std::process::Command::new("kill").arg(pid.trim()).status().unwrap();
}

#[test]
fn output_of_a_grandchild_is_not_read_forever() {
    let world = Fixture::with(quick());
    shell(&world, "chatty", 20.0, "yes & echo $! > pid; exit 0");
    let started = Instant::now();
    let answer = world.tool("demo/chatty", json!({}));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    assert_eq!(answer["status"], "success");
    let pid = std::fs::read_to_string(world.project().join("pid")).unwrap();
    let _ = std::process::Command::new("kill").arg(pid.trim()).status();
}

#[test]
fn parameters_of_a_megabyte_arrive_however_slowly_they_are_read() {
    let world = Fixture::new();
    let slow = "import sys, time, json\ndata = b''\nwhile True:\n    part = sys.stdin.buffer.read1(65536)\n    if not part: break\n    data += part\n    time.sleep(0.005)\nprint(json.dumps({'n': len(json.loads(data)['text']), 'argv': len(sys.argv)}))\n";
    world.python("demo/slow", slow);
    let answer = world.tool("demo/slow", json!({"text": "z".repeat(1 << 20)}));
    // Python sets `sys.argv` inside the process, so no parameter is too large for it.
    assert_eq!(answer["data"], json!({"n": 1 << 20, "argv": 5}), "{}", answer["error"]);
    let answer = world.tool("demo/slow", json!({"text": "z"}));
    assert_eq!(answer["data"], json!({"n": 1, "argv": 5}));
}

#[test]
fn a_tool_that_ends_without_reading_its_parameters_is_no_error() {
    let world = Fixture::new();
    shell(&world, "deaf", 20.0, "exec <&-; echo '{\"ok\": true}'");
    let answer = world.tool("demo/deaf", json!({"text": "z".repeat(4 << 20)}));
    assert_eq!(answer["data"], json!({"ok": true}));
    assert_eq!(answer["status"], "success");
}

#[test]
fn a_caller_sees_that_a_tool_runs_and_can_stop_it() {
    struct Impatient {
        stop: AtomicBool,
    }
    impl Watch for Impatient {
        fn cancelled(&self) -> bool {
            self.stop.load(Ordering::Relaxed)
        }
        fn progress(&self, message: &str) {
            assert!(message.starts_with("running for 1 s"), "{message}");
            self.stop.store(true, Ordering::Relaxed);
        }
    }
    let world = Fixture::with(quick());
    shell(&world, "long", 30.0, "echo $$ > pid; sleep 30");
    let watch = Impatient { stop: AtomicBool::new(false) };
    let answer = world.engine.answer(&request("tool", "demo/long", json!({})), &watch).json;
    assert_eq!(answer["error"], "Command was cancelled");
    let pid = std::fs::read_to_string(world.project().join("pid")).unwrap();
    assert!(gone(&pid));
}

#[test]
fn the_end_of_a_process_means_what_it_should() {
    let world = Fixture::new();
    let ends = |name: &str, script: &str| {
        shell(&world, name, 20.0, script);
        world.tool(&format!("demo/{name}"), json!({}))
    };
    let list = ends("list", "echo '[1, 2]'");
    assert_eq!((&list["status"], &list["data"]), (&json!("success"), &json!([1, 2])));
    assert_eq!(ends("empty", "echo '{}'")["data"], json!({}));
    assert_eq!(ends("null", "echo null")["data"], Json::Null);
    assert_eq!(ends("number", "echo 3")["data"], json!(3));
    let no = ends("no", "echo '{\"success\": false, \"error\": \"why\"}'");
    assert_eq!((&no["status"], &no["error"]), (&json!("error"), &json!("why")));
    let code = ends("code", "echo '{\"partial\": 1}'; echo bad >&2; exit 3");
    assert_eq!((&code["error"], &code["data"]), (&json!("bad\n"), &json!({"partial": 1})));
    assert_eq!(code["metadata"]["error"]["message"], "demo/code failed with exit code 3: bad");
    let signal = ends("signal", "kill -9 $$");
    assert_eq!(signal["data"]["return_code"], -9);
    assert_eq!(signal["metadata"]["error"]["message"], "demo/signal was killed by signal 9");
}

#[test]
fn a_missing_program_is_reported_by_name() {
    let world = Fixture::new();
    let yaml = "version: 1.0.0\ncategory: demo\nexecutor_id: rye/core/primitives/subprocess\nconfig: {command: no-such-program}\n";
    world.signed("tools/demo/none.yaml", yaml);
    let answer = world.tool("demo/none", json!({}));
    assert_eq!(answer["error"], "Failed to spawn: No such file or directory (os error 2)");
    assert_eq!(answer["data"]["return_code"], -1);
    assert_eq!(answer["metadata"]["error"]["code"], "CB706");
    assert_eq!(
        answer["metadata"]["error"]["message"],
        "demo/none cannot start: the program `no-such-program` does not exist"
    );
}

#[test]
fn many_tools_run_at_once() {
    let world = Fixture::new();
    shell(&world, "echo", 20.0, "cat");
    std::thread::scope(|scope| {
        for n in 0..16 {
            let world = &world;
            scope
                .spawn(move || assert_eq!(world.tool("demo/echo", json!({"n": n}))["data"], json!({"n": n})));
        }
    });
}
