//! The language server in a library of 10,000 prompts: `cuebook-bench lsp`.
//!
//! A recorded session is replayed, letter by letter: an author writes into a prompt, and into a partial that 100 prompts include. After
//! each letter the server is asked for completions. Ruff's server gets as many Python files and the same letters as a comment; it offers
//! no completions. `CUEBOOK_BENCH_ROUNDS=2` rehearses with 100 files.

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use crate::measure::is_rehearsal;
use crate::{command, place};

/// How many prompts there are, and how many include one partial.
const PROMPTS: usize = 10_000;
const USERS: usize = 100;
/// The version of the yardstick.
const RUFF: &str = "0.17.5";
/// What the author types. Every state of the text has a finding, so that the server sends findings after each letter.
const TYPED: &str =
    " Answer {{ user }} in {{ language|upper }}.\n{% if user %}Be brief, {{ user }}.{% endif %}\n";

/// What was measured.
#[derive(Default)]
struct Session {
    start: Duration,
    survey: Option<Duration>,
    own: Vec<Duration>,
    dependants: Vec<Duration>,
    completions: Vec<Duration>,
    memory: u64,
}

/// Measures both servers.
pub fn run() -> Result<(), Box<dyn Error>> {
    let count = if is_rehearsal() { PROMPTS / 100 } else { PROMPTS };
    let folder = tempfile::tempdir()?;
    let (prompts, python) = (folder.path().join("prompts"), folder.path().join("python"));
    write_prompts(&prompts, count)?;
    let ours = prompts_session(&prompts)?;
    println!("cuebook lsp, {count} prompts");
    show(&ours);
    write_python(&python, count)?;
    match ruff() {
        Ok(program) => {
            let theirs = python_session(&program, &python)?;
            println!("ruff server {RUFF}, {count} Python files");
            show(&theirs);
        }
        Err(error) => println!("ruff server: not measured ({error})"),
    }
    Ok(())
}

fn write_prompts(root: &Path, count: usize) -> std::io::Result<()> {
    fs::create_dir_all(root.join("prompts/partials"))?;
    for number in 0..count.div_ceil(USERS) {
        let text = format!(
            "Part {number} for {{{{ user }}}}.\n{{% if language %}}Write {{{{ language }}}}.{{% endif %}}\n"
        );
        fs::write(root.join(format!("prompts/partials/part{number}.md")), text)?;
    }
    for number in 0..count {
        let rules = "Keep to the facts, name your sources and say what you do not know.\n".repeat(20);
        let text = format!(
            "---\nname: prompt_{number}\ninputs:\n  - name: user\n    kind: string\n  - name: language\n    kind: string\n    default: English\n---\n\
             system:\nYou are helper {number}.\n{rules}{{% include \"partials/part{}.md\" %}}\nuser:\n{{{{ user }}}} {{{{ language }}}}\n",
            number / USERS
        );
        fs::write(root.join(format!("prompts/prompt_{number}.prompty")), text)?;
    }
    Ok(())
}

fn write_python(root: &Path, count: usize) -> std::io::Result<()> {
    fs::create_dir_all(root)?;
    for number in 0..count {
        let lines = "def rule(user, language):\n    return f\"{user} {language}\"\n\n\n".repeat(10);
        fs::write(root.join(format!("module_{number}.py")), format!("import os\n\n\n{lines}"))?;
    }
    Ok(())
}

/// An author writes into a prompt, and then into a partial.
fn prompts_session(root: &Path) -> Result<Session, Box<dyn Error>> {
    let program = place::program()?;
    let mut client = Client::start(Command::new(program).arg("lsp"), root)?;
    let mut session = Session { start: client.start, ..Session::default() };
    client.ask("cuebook/settled", json!({}))?;
    session.survey = Some(client.begun.elapsed());
    for (file, is_shared) in [("prompts/prompt_77.prompty", false), ("prompts/partials/part0.md", true)] {
        let path = root.join(file);
        let before = format!("{}{{{{ user|uper }}}}\n", fs::read_to_string(&path)?);
        client.open(&path, &before)?;
        let mut line = before.matches('\n').count();
        let mut column = 0;
        client.findings_of(&path)?;
        for letter in TYPED.chars() {
            let took = client.type_letter(&path, line, column, letter)?;
            session.own.push(took);
            if is_shared {
                let began = Instant::now();
                client.ask("cuebook/settled", json!({}))?;
                session.dependants.push(took + began.elapsed());
            }
            match letter {
                '\n' => (line, column) = (line + 1, 0),
                _ => column += 1,
            }
            let began = Instant::now();
            let position = json!({"line": line, "character": column});
            client.ask(
                "textDocument/completion",
                json!({"textDocument": {"uri": uri(&path)}, "position": position}),
            )?;
            session.completions.push(began.elapsed());
        }
    }
    session.memory = client.memory();
    client.leave();
    Ok(session)
}

/// The same letters in a comment of a Python file.
fn python_session(program: &Path, root: &Path) -> Result<Session, Box<dyn Error>> {
    let mut client = Client::start(Command::new(program).arg("server"), root)?;
    let mut session = Session { start: client.start, ..Session::default() };
    let path = root.join("module_77.py");
    let before = format!("{}# ", fs::read_to_string(&path)?);
    client.open(&path, &before)?;
    client.findings_of(&path)?;
    let line = before.matches('\n').count();
    for (column, letter) in TYPED.chars().filter(|letter| *letter != '\n').enumerate() {
        session.own.push(client.type_letter(&path, line, column + 2, letter)?);
    }
    session.memory = client.memory();
    client.leave();
    Ok(session)
}

/// Ruff, in a virtual environment below the build folder.
fn ruff() -> Result<PathBuf, Box<dyn Error>> {
    let folder = place::environment("ruff", RUFF)?;
    let program = folder.join("bin/ruff");
    if !program.is_file() {
        command::run(Command::new("python3").args(["-m", "venv"]).arg(&folder))?;
        let wanted = format!("ruff=={RUFF}");
        command::run(Command::new(folder.join("bin/pip")).args(["install", "--quiet", &wanted]))?;
    }
    Ok(program)
}

fn show(session: &Session) {
    let shown = |name: &str, times: &[Duration]| {
        let mut times = times.to_vec();
        times.sort_unstable();
        let at = |share: f64| {
            times.get(((times.len() as f64 * share) as usize).min(times.len().saturating_sub(1)))
        };
        if let (Some(half), Some(most)) = (at(0.5), at(0.99)) {
            println!("  {name:<34} p50 {half:>10.2?}   p99 {most:>10.2?}   of {}", times.len());
        }
    };
    println!("  {:<34} {:>14.2?}", "start to the first answer", session.start);
    if let Some(survey) = session.survey {
        println!("  {:<34} {survey:>14.2?}", "start to all findings");
    }
    shown("findings of the changed file", &session.own);
    shown("findings of all that depend on it", &session.dependants);
    shown("completions", &session.completions);
    println!("  {:<34} {:>11} MB", "memory at the end", session.memory >> 20);
}

/// An editor.
struct Client {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next: u64,
    begun: Instant,
    start: Duration,
}

impl Client {
    fn start(command: &mut Command, root: &Path) -> Result<Client, Box<dyn Error>> {
        let begun = Instant::now();
        let command =
            command.current_dir(root).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut server = command.spawn()?;
        let input = server.stdin.take().ok_or("no stdin")?;
        let output = BufReader::new(server.stdout.take().ok_or("no stdout")?);
        let mut client = Client { server, input, output, next: 0, begun, start: Duration::ZERO };
        let folder = json!({"uri": uri(root), "name": "library"});
        let params = json!({"rootUri": uri(root), "workspaceFolders": [folder], "capabilities": {}, "processId": null});
        client.ask("initialize", params)?;
        client.start = begun.elapsed();
        client.notify("initialized", json!({}))?;
        Ok(client)
    }

    fn send(&mut self, message: &Json) -> std::io::Result<()> {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len())?;
        self.input.flush()
    }

    fn notify(&mut self, method: &str, params: Json) -> std::io::Result<()> {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}))
    }

    fn receive(&mut self) -> Result<Json, Box<dyn Error>> {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err("the server has left".into());
            }
            match line.trim_end().strip_prefix("Content-Length: ") {
                Some(number) => length = number.parse()?,
                None if line == "\r\n" => break,
                None => {}
            }
        }
        let mut bytes = vec![0; length];
        self.output.read_exact(&mut bytes)?;
        let message: Json = serde_json::from_slice(&bytes)?;
        // What a server asks of its editor is answered with nothing.
        if message.get("method").is_some() && message.get("id").is_some() {
            self.send(&json!({"jsonrpc": "2.0", "id": message["id"], "result": null}))?;
        }
        Ok(message)
    }

    fn ask(&mut self, method: &str, params: Json) -> Result<Json, Box<dyn Error>> {
        self.next += 1;
        let id = self.next;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))?;
        loop {
            let message = self.receive()?;
            if message["id"] == id && message.get("method").is_none() {
                return Ok(message);
            }
        }
    }

    fn open(&mut self, path: &Path, text: &str) -> std::io::Result<()> {
        let language = if path.extension().is_some_and(|end| end == "py") { "python" } else { "markdown" };
        let document = json!({"uri": uri(path), "languageId": language, "version": 1, "text": text});
        self.notify("textDocument/didOpen", json!({"textDocument": document}))
    }

    /// Waits for the findings of a file.
    fn findings_of(&mut self, path: &Path) -> Result<(), Box<dyn Error>> {
        loop {
            let message = self.receive()?;
            if message["method"] == "textDocument/publishDiagnostics" && message["params"]["uri"] == uri(path)
            {
                return Ok(());
            }
        }
    }

    /// The time from a letter to the findings of its file.
    fn type_letter(
        &mut self,
        path: &Path,
        line: usize,
        column: usize,
        letter: char,
    ) -> Result<Duration, Box<dyn Error>> {
        self.next += 1;
        let at = json!({"line": line, "character": column});
        let change = json!({"range": {"start": at, "end": at}, "text": letter.to_string()});
        let document = json!({"uri": uri(path), "version": self.next + 1});
        let began = Instant::now();
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": [change]}))?;
        self.findings_of(path)?;
        Ok(began.elapsed())
    }

    /// The memory of the server in bytes.
    fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.server.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.and_then(|line| line.trim().split(' ').next()?.parse::<u64>().ok());
        kilobytes.unwrap_or(0) << 10
    }

    fn leave(mut self) {
        // A server that has left already is no failure of the measurement.
        let _ = self.ask("shutdown", Json::Null);
        let _ = self.notify("exit", Json::Null);
        let _ = self.server.wait();
    }
}

fn uri(path: &Path) -> String {
    format!("file://{}", path.display())
}
