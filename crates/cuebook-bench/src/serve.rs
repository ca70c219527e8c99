//! What the protocol costs: a call of `rye_execute` over stdio against a bare echo of the same JSON over a pipe (target: at most 3
//! times as long), and what a server that waits needs of memory (at most 15 MB).
//!
//! Both ends of the comparison are copies of this program: `--echo` reads a line, parses it and writes it back, which is the
//! least that anything which speaks JSON over a pipe must do.

mod get;

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cuebook::Book;
use cuebook::actions::sign::{SignRequest, sign};
use cuebook::items::{ItemType, SpaceKind, Spaces};
use cuebook::trust::{SigningKey, Trust};
use cuebook_serve::{LocalItems, Server, serve_stdio};
use serde_json::{Value as Json, json};

use crate::measure::compare;

pub use get::rows;

const DIRECTIVE: &str = "# Greet\n\n```xml\n<directive name=\"greet\" version=\"1.0.0\">\n  <metadata>\n    <description>Greets</description>\n    \
    <category>demo</category>\n    <author>bench</author>\n    <model tier=\"fast\"/>\n    <permissions><search>*</search></permissions>\n  \
    </metadata>\n  <inputs>\n    <input name=\"user\" type=\"string\" required=\"true\">Who</input>\n  </inputs>\n</directive>\n```\n\n\
    <process>Greet {input:user}.</process>\n";

/// If this copy of the program is an end of the comparison, is that and returns `true`.
pub fn be_an_end() -> bool {
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("--echo") => {
            let mut out = std::io::stdout().lock();
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                let Ok(message) = serde_json::from_str::<Json>(&line) else { break };
                if serde_json::to_writer(&mut out, &message).is_err() || out.write_all(b"\n").is_err() {
                    break;
                }
                let _ = out.flush();
            }
        }
        Some("--mcp") => {
            let (Some(project), Some(user)) = (words.next(), words.next()) else { return true };
            let spaces = Spaces::new(Path::new(&project), Some(Path::new(&user)));
            let items = Arc::new(LocalItems::new(spaces.clone()));
            let server = Server::new(Arc::new(Book::open(project)), spaces, Some(items));
            if let Err(error) = serve_stdio(server) {
                eprintln!("{error}");
            }
        }
        _ => return false,
    }
    true
}

/// A program at the other end of two pipes.
pub struct End {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    line: String,
}

impl End {
    /// A copy of this program.
    pub fn start(words: &[&str]) -> Result<End, Box<dyn Error>> {
        End::of(Command::new(std::env::current_exe()?).args(words))
    }

    /// Our server of a project.
    pub fn server(project: &Path, user: &Path) -> Result<End, Box<dyn Error>> {
        End::of(Command::new(std::env::current_exe()?).arg("--mcp").arg(project).arg(user))
    }

    /// Any program.
    pub fn of(command: &mut Command) -> Result<End, Box<dyn Error>> {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take().ok_or("no pipe")?, child.stdout.take().ok_or("no pipe")?);
        Ok(End { child, input, output: BufReader::new(output), line: String::new() })
    }

    /// Agrees with a server on the protocol.
    pub fn hello(&mut self) -> Result<(), Box<dyn Error>> {
        let client = json!({"name": "bench", "version": "1"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params});
        let answer: Json = serde_json::from_str(self.ask(&format!("{hello}\n")))?;
        if answer["result"].is_null() {
            return Err(answer.to_string().into());
        }
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        Ok(writeln!(self.input, "{ready}")?)
    }

    /// Sends a line and waits for the answer.
    pub fn ask(&mut self, line: &str) -> &str {
        self.line.clear();
        let sent = self.input.write_all(line.as_bytes());
        if sent.is_err() || self.output.read_line(&mut self.line).is_err() {
            self.line.clear();
        }
        &self.line
    }

    /// The memory that it holds, in kilobytes.
    pub fn resident(&self) -> Option<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse().ok()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Prints the rows.
pub fn run() -> Result<(), Box<dyn Error>> {
    println!("\nserve: the Model Context Protocol over stdio");
    let (project, user) = (tempfile::tempdir()?, tempfile::tempdir()?);
    let folder = project.path().join(".ai/directives/demo");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("greet.md"), DIRECTIVE)?;
    let spaces = Spaces::new(project.path(), Some(user.path()));
    let key = SigningKey::generate()?;
    key.save(&spaces, false)?;
    let request = SignRequest::new(ItemType::Directive, "demo/greet");
    let now = "2026-01-01T00:00:00Z".parse()?;
    let trust = Trust::new(&spaces);
    trust.add(SpaceKind::User, key.public(), "me", Some(&key), now)?;
    sign(&spaces, &trust, &request, now, &mut |_, _| {})?;
    // Files that have just been written are looked at more closely than others.
    std::thread::sleep(Duration::from_millis(50));

    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut server = End::server(project.path(), user.path())?;
    server.hello()?;
    std::thread::sleep(Duration::from_millis(500));
    let idle = server.resident();

    let arguments = json!({"item_type": "directive", "item_id": "demo/greet", "project_path": text(project.path()), "parameters": {"user": "Ada"}});
    let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "rye_execute", "arguments": arguments}});
    let call = format!("{call}\n");
    let answer: Json = serde_json::from_str(server.ask(&call))?;
    if answer["result"]["structuredContent"]["status"] != "success" {
        return Err(answer.to_string().into());
    }
    let ping = format!("{}\n", json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}));
    let mut echo = End::start(&["--echo"])?;
    // An echo of what comes back, so that both read and write as much.
    let back = format!("{answer}\n");
    let called = compare(|| echo.ask(&back).len(), || server.ask(&call).len());
    println!(
        "  rye_execute, a signed directive: {:.1} µs, bare echo {:.1} µs: {:.2} times",
        called.ours / 1e3,
        called.peer / 1e3,
        called.ratio()
    );
    let pinged = compare(|| echo.ask(&ping).len(), || server.ask(&ping).len());
    println!(
        "  ping: {:.1} µs, bare echo {:.1} µs: {:.2} times",
        pinged.ours / 1e3,
        pinged.peer / 1e3,
        pinged.ratio()
    );
    if let (Some(idle), Some(busy)) = (idle, server.resident()) {
        println!(
            "  memory: {:.1} MB while it waits, {:.1} MB after all these calls",
            idle as f64 / 1e3,
            busy as f64 / 1e3
        );
    }
    Ok(())
}
