//! A project with a scripted model, and what tests ask about its threads.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use cuebook_mock::{Api, Mock, Reply, Script};
use serde_json::{Value as Json, json};

use crate::support::Project;

/// What no output, file or log may show.
pub const KEY: &str = "sk-mock-5f0e8d7c6b5a4938271605f4e3d2c1b0";

/// Long enough for a machine that has other things to do.
pub const PATIENCE: Duration = Duration::from_secs(60);

pub struct Setup {
    pub project: Project,
    pub mock: Mock,
}

impl Setup {
    /// A project with these files, whose items are signed, and a model that plays the script.
    pub fn new(script: Script, files: &[(&str, &str)]) -> Setup {
        let project = Project::new();
        let mock = Mock::start(script).unwrap();
        project.write("home/.ai/config/providers/mock.yaml", mock.provider_yaml(Api::Anthropic));
        for (path, text) in files {
            project.write(path, text);
        }
        let stage = Setup { project, mock };
        stage.succeeds(&["keys", "generate"]);
        stage.succeeds(&["sign", "directive", "demo/*"]);
        if files.iter().any(|(path, _)| path.starts_with(".ai/tools/")) {
            stage.succeeds(&["sign", "tool", "demo/*"]);
        }
        stage
    }

    fn succeeds(&self, args: &[&str]) {
        let output = self.run(args);
        assert!(output.status.success(), "{}", err(&output));
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = self.project.command(env!("CARGO_BIN_EXE_cuebook"), self.project.path());
        command.args(args).env("MOCK_KEY", KEY).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    pub fn start(&self, args: &[&str]) -> Child {
        self.command(args).spawn().unwrap()
    }

    /// The answer of a command that succeeds.
    pub fn json(&self, args: &[&str]) -> Json {
        let output = self.run(&[args, &["--json"]].concat());
        assert!(output.status.success(), "{args:?}: {}{}", out(&output), err(&output));
        serde_json::from_str(&out(&output)).unwrap()
    }

    /// The newest thread.
    pub fn newest(&self) -> Json {
        self.json(&["thread", "list"])[0].clone()
    }

    pub fn id(&self) -> String {
        self.newest()["thread_id"].as_str().unwrap().to_owned()
    }

    pub fn events(&self, id: &str) -> Vec<Json> {
        lines(&out(&self.run(&["thread", "tail", id, "--no-follow", "--json"])))
    }

    /// Waits until the newest thread has a status.
    pub fn wait_for(&self, status: &str) -> Json {
        let began = Instant::now();
        loop {
            let newest = self.newest();
            if newest["status"] == status {
                return newest;
            }
            assert!(began.elapsed() < PATIENCE, "not {status}: {newest:#}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub fn wait_for_file(&self, name: &str) -> String {
        let began = Instant::now();
        loop {
            match std::fs::read_to_string(self.project.path().join(name)) {
                Ok(text) if text.ends_with('\n') => return text.trim().to_owned(),
                _ => assert!(began.elapsed() < PATIENCE, "there is no {name}"),
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub fn asked(&self, count: usize) {
        assert!(self.mock.wait_for_requests(count, PATIENCE), "{count} requests were expected");
    }
}

pub fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

pub fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

pub fn lines(text: &str) -> Vec<Json> {
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}")))
        .collect()
}

pub fn kinds(events: &[Json]) -> Vec<&str> {
    events.iter().filter_map(|event| event["event_type"].as_str()).collect()
}

pub fn returned(greeting: &str) -> Reply {
    Reply::call("c9", "directive_return", json!({"greeting": greeting})).usage(100, 20)
}

/// A call of a shell.
pub fn shell(command: &str) -> Reply {
    let call = json!({"item_type": "tool", "item_id": "rye/bash/bash", "parameters": {"command": command}});
    Reply::call("c1", "rye_execute", call).usage(100, 20)
}

/// An answer that takes a minute.
pub fn silent() -> Reply {
    Reply::text("too late").first_byte_after(PATIENCE)
}

/// Whether a process runs; one that has ended and that no one asked about does not.
pub fn runs(pid: &str) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|text| !text.rsplit(')').next().unwrap_or_default().trim_start().starts_with('Z'))
}

pub fn gone(pid: &str) {
    let began = Instant::now();
    while runs(pid) {
        assert!(began.elapsed() < PATIENCE, "{pid} still runs");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Shows every file below a folder.
pub fn search(folder: &Path, look: &mut dyn FnMut(&Path, &[u8])) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            search(&path, look);
        } else if path.is_file() {
            look(&path, &std::fs::read(&path).unwrap());
        }
    }
}
