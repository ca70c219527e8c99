//! `cuebook mock`: a model that answers from a script.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

mod support;

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Stdio};

use serde_json::Value as Json;
use support::{Project, Test};

/// A running `cuebook mock`, which ends with the test.
struct Running {
    child: Child,
    first_line: String,
}

impl Running {
    fn start(project: &Project, args: &[&str]) -> Running {
        let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
        let mut child = command.arg("mock").args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut first_line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first_line).unwrap();
        Running { child, first_line }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn mock_answers_a_run_from_its_script() {
    let project = Project::new();
    project.write("prompts/hi/template.md", "Say hi.");
    project.write("replies.json", r#"[{"text": "Hi from the script."}]"#);
    let mock = Running::start(&project, &["--script", "replies.json", "--json"]);
    let reported: Json = serde_json::from_str(&mock.first_line).unwrap();
    project.write("home/.ai/config/providers/mock.yaml", reported["provider"].as_str().unwrap());
    let mut run = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    let output = run.args(["run", "hi", "--model", "mock-model"]).env("MOCK_KEY", "any").output().unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert!(stdout.contains("Hi from the script."), "{stdout}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn mock_prints_a_provider_file() {
    let project = Project::new();
    let mock = Running::start(&project, &["--api", "anthropic"]);
    assert_eq!(
        mock.first_line,
        "# Save this as ~/.ai/config/providers/mock.yaml, and set MOCK_KEY to any value.\n"
    );
}

#[test]
fn mock_names_what_is_wrong_with_its_script() {
    let error = "error[CB407]: replies.json: the script is invalid: reply 1 is not an object
help: write a list of replies, as in [{\"text\": \"Hello.\"}]

for more about this: cuebook help CB407
";
    let args = ["mock", "--script", "replies.json"];
    Test::new().file("replies.json", "[1]").args(args).stderr(error).code(2).run();
    Test::new().args(args).code(1).run();
}

#[test]
fn mock_names_an_address_that_is_taken() {
    let project = Project::new();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = project.command(env!("CARGO_BIN_EXE_cuebook"), project.path());
    let output = command.args(["mock", "--at", &address]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains(&format!("cannot listen on `{address}`")), "{stderr}");
}
