//! `cuebook execute`, as people and scripts use it.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

mod support;

use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};
use support::Project;

const TOOL: &str = "version: 1.0.0\ntool_type: shell\ncategory: demo\ndescription: Says what it hears\n\
                    executor_id: rye/core/primitives/subprocess\n";

fn project() -> Project {
    let project = Project::new();
    project.write(".ai/tools/demo/cat.yaml", format!("{TOOL}config: {{command: cat}}\n"));
    project.write(
        ".ai/tools/demo/fail.yaml",
        format!("{TOOL}config: {{command: sh, args: ['-c', 'echo out; echo why >&2; exit 3']}}\n"),
    );
    project.write(
        ".ai/tools/demo/sleep.yaml",
        format!("{TOOL}config: {{command: sh, args: ['-c', 'echo $$ > pid; sleep 60']}}\n"),
    );
    project.write(
        ".ai/tools/demo/deaf.yaml",
        format!("{TOOL}config: {{command: sh, args: ['-c', 'trap \"\" TERM INT; echo $$ > pid; while :; do sleep 1; done'], kill_grace: 60}}\n"),
    );
    for args in [&["keys", "generate"][..], &["sign", "tool", "demo/*"]] {
        assert_eq!(cuebook(&project, args, "").0, 0);
    }
    project
}

/// Runs the command in a project: exit code, stdout, stderr.
fn cuebook(project: &Project, args: &[&str], stdin: &str) -> (i32, String, String) {
    let mut command = project.command("cuebook", project.path());
    let piped = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[test]
fn parameters_come_from_arguments_files_and_stdin() {
    let project = project();
    let run = |args: &[&str], stdin: &str| {
        let all: Vec<&str> = ["execute", "tool", "demo/cat", "--json"].iter().chain(args).copied().collect();
        let (code, stdout, stderr) = cuebook(&project, &all, stdin);
        assert_eq!(code, 0, "{stdout}{stderr}");
        let answer: Json = serde_json::from_str(&stdout).unwrap();
        assert_eq!(answer["chain"], json!(["demo/cat", "rye/core/primitives/subprocess"]));
        answer["data"].clone()
    };
    assert_eq!(run(&["--param", "a=1", "--param", "b:=[2]"], ""), json!({"a": "1", "b": [2]}));
    project.write("p.json", "{\"a\": true, \"c\": null}");
    assert_eq!(run(&["--params", "p.json", "--param", "a=x"], ""), json!({"a": "x", "c": null}));
    assert_eq!(run(&["--params", "-"], "{\"n\": 3}"), json!({"n": 3}));
}

#[test]
fn failures_have_words_json_and_an_exit_code() {
    let project = project();
    let (code, stdout, stderr) = cuebook(&project, &["execute", "tool", "demo/fail"], "");
    assert_eq!((code, stdout.as_str()), (1, "out\n"));
    assert!(stderr.starts_with("error[CB708]: demo/fail failed with exit code 3: why\n"), "{stderr}");
    let (code, stdout, stderr) = cuebook(&project, &["execute", "tool", "demo/fail", "--json"], "");
    let answer: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (code, &answer["status"], &answer["error"], stderr.as_str()),
        (1, &json!("error"), &json!("why\n"), "")
    );
    let (code, stdout, _) = cuebook(&project, &["execute", "tool", "demo/none", "--json"], "");
    let answer: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (code, &answer["error"], answer.get("item_id")),
        (1, &json!("Tool not found: demo/none"), Some(&json!("demo/none")))
    );
    let (code, _, stderr) = cuebook(&project, &["execute", "tool", "demo/cat", "--param", "x"], "");
    assert!(code == 2 && stderr.contains("--param x has no `=`"), "{code} {stderr}");
}

#[test]
fn a_thread_without_anybody_to_ask_is_an_error_in_one_line() {
    let project = project();
    let args =
        ["execute", "directive", "rye/core/create_directive", "--param", "name=a", "--param", "category=b"];
    let all: Vec<&str> = args.iter().chain(&["--thread", "--limit", "turns=3", "--json"]).copied().collect();
    let (code, stdout, stderr) = cuebook(&project, &all, "");
    assert_eq!(code, 1, "{stdout}{stderr}");
    let answer: Json = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (&answer["status"], &answer["error"]["code"]),
        (&json!("error"), &json!("CB720")),
        "{answer:#}"
    );
    assert!(answer["error"]["message"].as_str().unwrap().contains("key is not set"), "{answer:#}");
    assert_eq!((stdout.lines().count(), stderr.as_str()), (1, ""));
}

/// Starts a tool that writes its number into a file, and interrupts the command so many times.
#[cfg(unix)]
fn interrupted(tool: &str, times: usize) {
    let project = project();
    let mut command = project.command("cuebook", project.path());
    let started = Instant::now();
    let child = command.args(["execute", "tool", tool, "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let pid_file = project.path().join("pid");
    while std::fs::read_to_string(&pid_file).map_or(true, |text| text.trim().is_empty()) {
        assert!(started.elapsed() < Duration::from_secs(20), "the tool never began");
        std::thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..times {
        let signal = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
        assert!(signal.unwrap().success());
        std::thread::sleep(Duration::from_millis(300));
    }
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let answer: Json = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["error"], "Command was cancelled");
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    let alive = std::process::Command::new("kill").args(["-0", pid.trim()]).stderr(Stdio::null()).status();
    assert!(!alive.unwrap().success(), "the tool is still there");
    assert!(started.elapsed() < Duration::from_secs(40), "nobody waits for a grace of a minute");
}

#[cfg(unix)]
#[test]
fn an_interrupt_stops_the_tool_as_well() {
    interrupted("demo/sleep", 1);
}

#[cfg(unix)]
#[test]
fn a_second_interrupt_kills_a_deaf_tool() {
    interrupted("demo/deaf", 2);
}
