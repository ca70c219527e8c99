//! What a hook costs: a warm render against the same call inside one Python process plus one round trip of bytes over a pipe
//! (target: at most 3 times as long), and against the simplest worker that there could be, without a fence, which reads the
//! values as JSON, makes the call and writes the result as JSON; a cold one against `python3 -I -c pass` (at most 1.2 times);
//! and what ten thousand renders with a hook leave behind (nothing).

use std::error::Error;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use cuebook::{Book, Context, Variables};
use cuebook_hooks::Examination;
use cuebook_hooks::sandbox::Launcher;
use serde_json::json;

use crate::measure::turns;
use crate::peers::PYTHON;
use crate::race::Race;
use crate::table::{self, Row};

const PROMPT: &str = "TEMPLATE = \"Hello {{ name }}, {{ greeting }}\"\n\n\
    async def pre_render(variables, context):\n    variables[\"greeting\"] = \"good \" + variables[\"time\"]\n    return variables\n";

/// Starts of a process that are compared.
const STARTS: usize = 40;
const RENDERS: usize = 10_000;

/// Prints the rows; without a Python it says so.
pub fn run() -> Result<(), Box<dyn Error>> {
    println!("\nhooks: a `pre_render` in a sandboxed worker");
    let project = project()?;
    let book = book(project.path());
    let python = match Examination::of(book.library(), &Launcher::this_program())?.python {
        Ok(python) => python.program,
        Err(error) => {
            println!("skipped: {error}");
            return Ok(());
        }
    };
    warm(&book, &python)?;
    cold(project.path(), &python)?;
    left_behind(project.path())
}

/// The row of the one table: a warm render with a hook.
pub fn row() -> Result<Row, Box<dyn Error>> {
    let project = project()?;
    let book = book(project.path());
    let python = Examination::of(book.library(), &Launcher::this_program())?.python?.program;
    let context = Arc::new(Context::default());
    let prepared = book.prepare("case", &context)?;
    let variables = variables();
    if prepared.render(&variables, &context)?.text() != "Hello Ada, good morning" {
        return Err("the hook gives another text".into());
    }
    let (question, mut back) = question()?;
    let mut worker = Pipes::of(Peer::start(&python, &simplest())?)?;
    worker.turn(&question, &mut back);
    let payload = vec![b'x'; 300];
    let mut echo = Pipes::of(Peer::start(&python, ECHO)?)?;
    let mut echoed = vec![0; payload.len()];
    let version = version(&python)?;
    let inside = inside_python(&python)?;
    let mut trip = turns(|| echo.turn(&payload, &mut echoed));
    let what = "a warm render of a prompt whose `pre_render` runs in its sandboxed worker";
    let row = Race::new("hook call", what, Ok(turns(|| prepared.render(&variables, &context))))
        .floor(
            "the same call inside one Python, and 300 bytes over a pipe and back",
            Ok(Box::new(move || Ok(trip()? + inside))),
        )
        .peer(
            table::Peer::new(PYTHON, version)
                .yardstick()
                .note("the simplest worker: it has no sandbox and renders nothing"),
            Ok(turns(|| worker.turn(&question, &mut back))),
        )
        .run();
    if !back.ends_with(b"\"good morning\"}") {
        return Err("the simplest worker gives another answer".into());
    }
    match echo.failed.or(worker.failed) {
        Some(error) => Err(error.into()),
        None => Ok(row),
    }
}

fn version(python: &Path) -> Result<String, Box<dyn Error>> {
    let output = Command::new(python)
        .args(["-I", "-c", "import platform; print(platform.python_version())"])
        .output()?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// What the simplest worker is asked, and room for its answer.
fn question() -> Result<(Vec<u8>, Vec<u8>), Box<dyn Error>> {
    let values = json!({"name": "Ada", "time": "morning", "numbers": [1, 2, 3]}).to_string();
    let mut question = u32::try_from(values.len())?.to_le_bytes().to_vec();
    question.extend(values.bytes());
    let answer = json!({"name": "Ada", "time": "morning", "numbers": [1, 2, 3], "greeting": "good morning"});
    // Python puts a space behind colons and commas.
    let spaces = 4 + 3 + 2;
    Ok((question, vec![0; 4 + answer.to_string().len() + spaces]))
}

fn project() -> Result<tempfile::TempDir, Box<dyn Error>> {
    let project = tempfile::tempdir()?;
    let folder = project.path().join("prompts/case");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("prompt.py"), PROMPT)?;
    // Files that have just been written are looked at more closely than others.
    std::thread::sleep(std::time::Duration::from_millis(50));
    Ok(project)
}

fn book(root: &Path) -> Book {
    let book = Book::open(root);
    let hooks = cuebook_hooks::hooks(book.library().clone(), Launcher::this_program());
    book.with_hooks(hooks)
}

fn variables() -> Variables {
    Variables::new().set("name", "Ada").set("time", "morning").set("numbers", json!([1, 2, 3]))
}

/// A Python that echoes frames, and one that calls the hook in a loop.
struct Peer {
    child: Child,
}

impl Peer {
    fn start(python: &Path, script: &str) -> Result<Peer, Box<dyn Error>> {
        let child = Command::new(python)
            .args(["-I", "-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        Ok(Peer { child })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const ECHO: &str =
    "import os\nwhile True:\n    data = os.read(0, 65536)\n    if not data: break\n    os.write(1, data)\n";

/// The simplest worker: values in, call, values out.
fn simplest() -> String {
    format!(
        "import json, os\n{PROMPT}\ndef read(size):\n    data = os.read(0, size)\n    while len(data) < size: data += os.read(0, size - len(data))\n\
         \x20   return data\nwhile True:\n    values = json.loads(read(int.from_bytes(read(4), 'little')))\n    hook = pre_render(values, {{}})\n\
         \x20   try:\n        hook.send(None)\n    except StopIteration as end:\n        reply = json.dumps(end.value).encode()\n\
         \x20   os.write(1, len(reply).to_bytes(4, 'little') + reply)\n"
    )
}

fn warm(book: &Book, python: &Path) -> Result<(), Box<dyn Error>> {
    let context = Arc::new(Context::default());
    let prepared = book.prepare("case", &context)?;
    let variables = variables();
    let rendered = prepared.render(&variables, &context)?;
    assert_eq!(rendered.text(), "Hello Ada, good morning");
    let inside = inside_python(python)?;

    // What crosses the pipe: about what the values come to, there and back.
    let payload = vec![b'x'; 300];
    let mut echo = Pipes::of(Peer::start(python, ECHO)?)?;
    let mut back = vec![0; payload.len()];
    let bare =
        crate::measure::compare(|| echo.turn(&payload, &mut back), || prepared.render(&variables, &context));
    println!(
        "{:36} {:>9.0} ns {:>9.0} ns {:>7.2}   (peer: call {inside:.0} ns + round trip {:.0} ns; target ≤ 3)",
        "warm render with a hook",
        bare.peer + inside,
        bare.ours,
        bare.ours / (bare.peer + inside),
        bare.peer
    );

    let (question, mut back) = question()?;
    let mut worker = Pipes::of(Peer::start(python, &simplest())?)?;
    let simple = crate::measure::compare(
        || worker.turn(&question, &mut back),
        || prepared.render(&variables, &context),
    );
    println!(
        "{:36} {:>9.0} ns {:>9.0} ns {:>7.2}   (peer: a worker that only speaks JSON, without a fence)",
        "",
        simple.peer,
        simple.ours,
        simple.ratio()
    );
    match echo.failed.or(worker.failed) {
        Some(error) => Err(error.into()),
        None => Ok(()),
    }
}

/// The pipes of a peer, and what went wrong with them.
struct Pipes {
    _peer: Peer,
    to: std::process::ChildStdin,
    from: std::process::ChildStdout,
    failed: Option<std::io::Error>,
}

impl Pipes {
    fn of(mut peer: Peer) -> Result<Pipes, Box<dyn Error>> {
        let to = peer.child.stdin.take().ok_or("no pipe")?;
        let from = peer.child.stdout.take().ok_or("no pipe")?;
        Ok(Pipes { _peer: peer, to, from, failed: None })
    }

    fn turn(&mut self, question: &[u8], answer: &mut [u8]) {
        if let Err(error) = self.to.write_all(question).and_then(|()| self.from.read_exact(answer)) {
            self.failed = Some(error);
        }
    }
}

/// Nanoseconds of the same call inside one Python process, best of many rounds.
fn inside_python(python: &Path) -> Result<f64, Box<dyn Error>> {
    let script = format!(
        "import asyncio, time\n{PROMPT}\nvariables = {{'name': 'Ada', 'time': 'morning', 'numbers': [1, 2, 3]}}\n\
         def call():\n    hook = pre_render(variables, {{}})\n    try:\n        hook.send(None)\n    except StopIteration as end:\n\
         \x20       return end.value\nbest = 1e9\nfor _ in range(200):\n    start = time.perf_counter_ns()\n\
         \x20   for _ in range(1000): call()\n    best = min(best, (time.perf_counter_ns() - start) / 1000)\nprint(best, flush=True)\n"
    );
    let mut peer = Peer::start(python, &script)?;
    let out = peer.child.stdout.take().ok_or("no pipe")?;
    let mut line = String::new();
    BufReader::new(out).read_line(&mut line)?;
    Ok(line.trim().parse()?)
}

fn cold(root: &Path, python: &Path) -> Result<(), Box<dyn Error>> {
    let (mut peer, mut ours) = (f64::MAX, f64::MAX);
    for _ in 0..STARTS {
        let started = Instant::now();
        Command::new(python).args(["-I", "-c", "pass"]).stdin(Stdio::null()).status()?;
        peer = peer.min(started.elapsed().as_nanos() as f64);
        // A book of its own has no worker yet.
        let book = book(root);
        let context = Arc::new(Context::default());
        let prepared = book.prepare("case", &context)?;
        let started = Instant::now();
        prepared.render(&variables(), &context)?;
        ours = ours.min(started.elapsed().as_nanos() as f64);
    }
    println!(
        "{:36} {:>9.2} ms {:>9.2} ms {:>7.2}   (peer: python3 -I -c pass; target ≤ 1.2)",
        "cold render with a hook",
        peer / 1e6,
        ours / 1e6,
        ours / peer
    );
    Ok(())
}

/// Processes that are ours, open descriptors, and resident bytes.
fn traces() -> (usize, usize, u64) {
    let own = std::process::id().to_string();
    let children = fs::read_to_string(format!("/proc/{own}/task/{own}/children")).unwrap_or_default();
    let descriptors = fs::read_dir("/proc/self/fd").map_or(0, |entries| entries.count());
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let resident = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .unwrap_or_default();
    (children.split_whitespace().count(), descriptors, resident)
}

fn temporary_files() -> Vec<PathBuf> {
    let entries = fs::read_dir(std::env::temp_dir()).into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

fn left_behind(root: &Path) -> Result<(), Box<dyn Error>> {
    let context = Context::default();
    let variables = variables();
    // What is made once, whatever comes after, is made before we look.
    book(root).render("case", &variables, &context)?;
    let (files, (processes, descriptors, resident)) = (temporary_files(), traces());
    let book = book(root);
    let started = Instant::now();
    for _ in 0..RENDERS {
        book.render("case", &variables, &context)?;
    }
    let elapsed = started.elapsed();
    drop(book);
    let (processes_after, descriptors_after, resident_after) = traces();
    let new_files = temporary_files().into_iter().filter(|path| !files.contains(path)).count();
    println!(
        "{RENDERS} renders with a hook in {:.2} s leave behind: {} processes, {} descriptors, {new_files} files, {} KiB",
        elapsed.as_secs_f64(),
        processes_after as i64 - processes as i64,
        descriptors_after as i64 - descriptors as i64,
        resident_after as i64 - resident as i64,
    );
    Ok(())
}
