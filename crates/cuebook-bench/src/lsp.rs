//! The language server in a library of 10,000 prompts: `cuebook-bench lsp`.
//!
//! A session is replayed: an author writes into a prompt, and into a partial that 100 prompts include, with mistakes, pauses,
//! completions and hovers. Each figure has a target, which is met or missed. Ruff's server gets as many Python files and the same
//! letters as a comment. `CUEBOOK_BENCH_ROUNDS=2` rehearses with 100 files and short pauses; its figures meet no target.

mod session;

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value as Json, json};

use self::session::{At, Event};
use crate::measure::is_rehearsal;
use crate::{command, place};

/// How many prompts there are, and how many include one partial.
const PROMPTS: usize = 10_000;
const USERS: usize = 100;
/// The version of the yardstick.
const RUFF: &str = "0.17.5";
/// What the figures of `cuebook lsp` must not exceed, of 100 times the 99th.
const OWN: Duration = Duration::from_millis(20);
const DEPENDANTS: Duration = Duration::from_millis(200);
const COMPLETION: Duration = Duration::from_millis(20);
const START: Duration = Duration::from_millis(300);
const MEMORY: u64 = 150 << 20;
/// The longest pause of a rehearsal.
const SHORT: Duration = Duration::from_millis(5);

/// What was measured.
#[derive(Default)]
struct Session {
    start: Duration,
    survey: Option<Duration>,
    own: Vec<Duration>,
    dependants: Vec<Duration>,
    completions: Vec<Duration>,
    hovers: Vec<Duration>,
    /// The most memory at any event.
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
    print!("{}", shown(&ours, !is_rehearsal()));
    write_python(&python, count)?;
    match ruff() {
        Ok(program) => {
            let theirs = python_session(&program, &python)?;
            println!("ruff server {RUFF}, {count} Python files");
            print!("{}", shown(&theirs, false));
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
    let mut place = (PathBuf::new(), 0, false);
    for event in session::events()? {
        let (path, line, is_shared) = &place;
        let at = |(below, column): At| json!({"line": line + below, "character": column});
        let asked = |at: Json| json!({"textDocument": {"uri": uri(path)}, "position": at});
        match event {
            Event::File { is_shared } => place = begin(&mut client, root, is_shared)?,
            Event::Insert(text, start) => {
                let took = client.edit(path, &at(start), &at(start), &text)?;
                session.own.push(took);
                if *is_shared {
                    session.dependants.push(took + client.time("cuebook/settled", json!({}))?);
                }
            }
            Event::Delete(start, end) => session.own.push(client.edit(path, &at(start), &at(end), "")?),
            Event::Pause(pause) => {
                std::thread::sleep(if is_rehearsal() { pause.min(SHORT) } else { pause });
            }
            Event::Complete(place) => {
                session.completions.push(client.time("textDocument/completion", asked(at(place)))?);
            }
            Event::Hover(place) => session.hovers.push(client.time("textDocument/hover", asked(at(place)))?),
        }
        session.memory = session.memory.max(client.memory());
    }
    client.leave();
    Ok(session)
}

/// Opens a file for the session. It has a finding in every state, so that the server sends findings after each change.
fn begin(
    client: &mut Client,
    root: &Path,
    is_shared: bool,
) -> Result<(PathBuf, usize, bool), Box<dyn Error>> {
    let path = root.join(if is_shared { "prompts/partials/part0.md" } else { "prompts/prompt_77.prompty" });
    let before = format!("{}{{{{ user|uper }}}}\n", fs::read_to_string(&path)?);
    client.open(&path, &before)?;
    client.findings_of(&path)?;
    Ok((path, before.matches('\n').count(), is_shared))
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
    let mut column = 2;
    for event in session::events()? {
        let Event::Insert(text, _) = event else { continue };
        let text = text.replace('\n', " ");
        let at = json!({"line": line, "character": column});
        session.own.push(client.edit(&path, &at, &at, &text)?);
        column += text.len();
        session.memory = session.memory.max(client.memory());
    }
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

/// The figures of a session, one per line, with what they must not exceed.
fn shown(session: &Session, is_judged: bool) -> String {
    let verdict = |is_met: bool, target: String| match is_judged {
        true => format!("   at most {target}: {}", if is_met { "kept" } else { "missed" }),
        false => String::new(),
    };
    let mut lines = vec![format!(
        "{:<34} {:>14.2?}{}",
        "start to the first answer",
        session.start,
        verdict(session.start <= START, format!("{START:?}"))
    )];
    lines.extend(session.survey.map(|survey| format!("{:<34} {survey:>14.2?}", "start to all findings")));
    let rows = [
        ("findings of the changed file", &session.own, Some(OWN)),
        ("findings of all that depend on it", &session.dependants, Some(DEPENDANTS)),
        ("completions", &session.completions, Some(COMPLETION)),
        ("hovers", &session.hovers, None),
    ];
    for (name, times, target) in rows {
        let mut times = times.clone();
        times.sort_unstable();
        let at = |share: usize| times.get((times.len() * share / 100).min(times.len().saturating_sub(1)));
        let (Some(half), Some(most)) = (at(50), at(99)) else { continue };
        let target = target.map(|target| verdict(*most <= target, format!("{target:?}")));
        let target = target.unwrap_or_default();
        lines.push(format!("{name:<34} p50 {half:>10.2?}   p99 {most:>10.2?}   of {}{target}", times.len()));
    }
    let target = verdict(session.memory <= MEMORY, format!("{} MB", MEMORY >> 20));
    lines.push(format!("{:<34} {:>11} MB{target}", "most memory", session.memory >> 20));
    lines.iter().map(|line| format!("  {}\n", line.trim_end())).collect()
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

    /// The time from a change to the findings of its file.
    fn edit(
        &mut self,
        path: &Path,
        start: &Json,
        end: &Json,
        text: &str,
    ) -> Result<Duration, Box<dyn Error>> {
        self.next += 1;
        let change = json!({"range": {"start": start, "end": end}, "text": text});
        let document = json!({"uri": uri(path), "version": self.next + 1});
        let began = Instant::now();
        self.notify("textDocument/didChange", json!({"textDocument": document, "contentChanges": [change]}))?;
        self.findings_of(path)?;
        Ok(began.elapsed())
    }

    /// The time of an answer.
    fn time(&mut self, method: &str, params: Json) -> Result<Duration, Box<dyn Error>> {
        let began = Instant::now();
        self.ask(method, params)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_figure_meets_its_target_or_misses_it() {
        let session = Session {
            start: Duration::from_millis(300),
            own: vec![Duration::from_millis(1); 99].into_iter().chain([Duration::from_millis(21)]).collect(),
            completions: vec![Duration::from_millis(20)],
            memory: 151 << 20,
            ..Session::default()
        };
        let verdicts = |is_judged: bool| -> Vec<String> {
            let words = |line: &str| line.rsplit(' ').next().unwrap_or_default().to_owned();
            shown(&session, is_judged).lines().map(words).collect()
        };
        assert_eq!(verdicts(true), ["kept", "missed", "kept", "missed"]);
        assert_eq!(verdicts(false), ["300.00ms", "100", "1", "MB"]);
    }

    #[test]
    fn the_session_runs_in_a_small_library() {
        let folder = tempfile::tempdir().unwrap();
        write_prompts(folder.path(), USERS).unwrap();
        let session = prompts_session(folder.path()).unwrap();
        assert!(session.own.len() > session.dependants.len() && !session.dependants.is_empty());
        assert!(session.completions.len() >= 50 && !session.hovers.is_empty());
        assert!(!cfg!(target_os = "linux") || session.memory > 0);
    }
}
