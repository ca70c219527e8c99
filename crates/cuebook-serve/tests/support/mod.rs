//! A project with a bit of everything, and the server that the tests speak with.

#![allow(dead_code, reason = "every test binary compiles this module and uses a part of it")]
#![allow(clippy::unwrap_used, reason = "these are tests, though the lint sees only functions")]

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use cuebook::items::{SpaceKind, Spaces};
use cuebook::trust::{SigningKey, Trust};
use serde_json::{Value as Json, json};

/// The server.
pub const TEST_SERVER: &str = env!("CARGO_BIN_EXE_cuebook-serve-test-server");
/// A token.
pub const TOKEN: &str = "a-token-of-the-tests-0123456789";

/// A project with prompts of several kinds, one of them broken, and knowledge.
pub fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "prompts/greet/prompt.py",
        r#"METADATA = {"name": "Greeting", "description": "Greets somebody."}
VARIABLES = {
    "required": [{"name": "name", "type": "string", "description": "Who it is"}],
    "optional": [
        {"name": "times", "type": "integer", "default": 2},
        {"name": "loud", "type": "boolean", "default": False},
        {"name": "tags", "type": "list", "default": []},
    ],
}
"#,
    );
    write(
        "prompts/greet/template.md",
        "Hi {{ name }}! {{ times }} times{% if loud %}, loud{% endif %}, {{ tags | join('+') }}\n",
    );
    write(
        "prompts/look.prompty",
        r"---
name: Look
inputs:
  photo: {kind: image}
  style: {kind: string, enumValues: [brief, florid, plain], default: plain}
---
system:
Be {{ style }}.
user:
What is this? {{ photo }} Say it.
assistant:
I see
",
    );
    write("prompts/plain/template.md", "About {{ topic }}\n");
    write("prompts/choose/template.md", "{{ prompt_id }} {{ item_type }} {{ item_id }}\n");
    write("prompts/broken/template.md", "Hi {{ name\n");
    write("outside.prompty", "---\nname: Outside\n---\nuser:\nYou should not see this.\n");
    write(".ai/knowledge/team/style.md", "Be kind.\n");
    write(".ai/knowledge/team/words.yaml", "title: Words\n");
    folder
}

/// Gives the user of a project a key to sign with, which is trusted.
pub fn make_key(project: &Path, user: &Path) {
    let spaces = Spaces::new(project, Some(user));
    let key = SigningKey::generate().unwrap();
    key.save(&spaces, false).unwrap();
    let now = "2026-01-01T00:00:00Z".parse().unwrap();
    Trust::new(&spaces).add(SpaceKind::User, key.public(), "me", Some(&key), now).unwrap();
}

/// A server that listens.
pub struct TestServer {
    pub url: String,
    child: Child,
}

impl TestServer {
    pub fn listening(project: &Path, address: &str) -> TestServer {
        let mut command = Command::new(TEST_SERVER);
        command.arg(project).args([address, "DESK_TOKEN"]).env("DESK_TOKEN", TOKEN).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        TestServer { url: url.trim().to_owned(), child }
    }

    /// The address without the rest of the URL.
    pub fn address(&self) -> &str {
        self.url.trim_start_matches("http://").trim_end_matches("/mcp")
    }

    /// Asks it to end, and says how it ended.
    #[cfg(unix)]
    pub fn terminate(mut self) -> ExitStatus {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        wait(&mut self.child)
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn wait(child: &mut Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status;
        }
        assert!(began.elapsed() < Duration::from_secs(20), "it does not end");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A server over pipes, spoken to in bytes.
pub struct Pipes {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Pipes {
    pub fn start(mut command: Command) -> Pipes {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Pipes { input: child.stdin.take(), child, lines }
    }

    pub fn desk(project: &Path) -> Pipes {
        let mut command = Command::new(TEST_SERVER);
        command.arg(project);
        Pipes::start(command)
    }

    pub fn write(&mut self, bytes: impl AsRef<[u8]>) {
        let input = self.input.as_mut().unwrap();
        input.write_all(bytes.as_ref()).unwrap();
        input.flush().unwrap();
    }

    pub fn send(&mut self, message: &Json) {
        self.write(format!("{message}\n"));
    }

    /// The next line, which must be JSON. That a list has changed may be reported at any time, and is left out.
    pub fn next(&self) -> Json {
        loop {
            let line = self.lines.recv_timeout(Duration::from_secs(20)).expect("an answer");
            let message: Json = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"));
            if !message["method"].as_str().is_some_and(|method| method.ends_with("/list_changed")) {
                return message;
            }
        }
    }

    pub fn ask(&mut self, id: impl Into<Json>, method: &str, params: Json) -> Json {
        self.send(&json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}));
        self.next()
    }

    /// The handshake of 2025-11-25.
    pub fn initialize(&mut self) -> Json {
        let client = json!({"name": "test", "version": "1"});
        let answer = self.ask(
            0,
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
        );
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    /// Closes its input.
    pub fn close_input(mut self) -> Pipes {
        self.input = None;
        self
    }

    /// Closes its input and says how it ended.
    pub fn end(mut self) -> ExitStatus {
        drop(self.input.take());
        wait(&mut self.child)
    }
}

impl Drop for Pipes {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
