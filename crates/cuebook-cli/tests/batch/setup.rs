//! A project with a prompt, rows and a scripted model.

use std::process::{Command, Output, Stdio};

use cuebook_mock::{Api, Mock, Reply, Request, Script};
use serde_json::Value as Json;

use crate::support::Project;

/// What no output, file or log may show.
pub const KEY: &str = "sk-mock-5f0e8d7c6b5a4938271605f4e3d2c1b0";

pub struct Setup {
    pub project: Project,
    pub mock: Mock,
}

impl Setup {
    pub fn new(script: Script) -> Setup {
        Setup::speaking(Api::OpenAiChat, script)
    }

    pub fn speaking(api: Api, script: Script) -> Setup {
        let project = Project::new();
        let mock = Mock::start(script).unwrap();
        project.write("home/.ai/config/providers/mock.yaml", mock.provider_yaml(api));
        project.write("prompts/ask/template.md", "Answer this: {{ question }}");
        Setup { project, mock }
    }

    /// A model that repeats the question, which is the last word of the prompt.
    pub fn echo() -> Setup {
        Setup::new(Script::answer(echo))
    }

    /// The provider takes so many requests in a minute.
    pub fn add_rate(&self, requests: u32) {
        let name = "home/.ai/config/providers/mock.yaml";
        self.project.write(name, self.read(name) + &format!("rate: {{requests: {requests}}}\n"));
    }

    pub fn questions(&self, count: usize) {
        let lines: String = (1..=count).map(|row| format!("{{\"question\":\"row-{row}.\"}}\n")).collect();
        self.project.write("data.jsonl", lines);
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(env!("CARGO_BIN_EXE_cuebook"), self.project.path());
        command.arg("batch").args(args).env("MOCK_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Asks for all rows of `data.jsonl`.
    pub fn ask(&self, more: &[&str]) -> Output {
        self.run(
            &[&["ask", "data.jsonl", "--run", "--model", "mock-model", "--out", "out.jsonl"], more].concat(),
        )
    }

    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.project.path().join(name)).unwrap_or_default()
    }

    pub fn lines(&self, name: &str) -> Vec<Json> {
        lines(&self.read(name))
    }
}

/// Answers with the number of the row that a request asks for.
pub fn echo(request: &Request) -> Reply {
    Reply::text(format!("answer to {}", asked(request))).usage(20, 5)
}

/// The row that a request asks for, as in `row-7`.
pub fn asked(request: &Request) -> String {
    let text = request.body.to_string();
    // A server that panics would let the client wait.
    let at = text.find("row-").unwrap_or(text.len());
    text[at..].chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect()
}

pub fn lines(text: &str) -> Vec<Json> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect()
}

pub fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}
