//! The peer: a Python process with the real package, which measures itself when it is asked to.
//!
//! The package is installed by its name into an environment of its own below the target folder, once. It needs CPython 3.13, which
//! is looked for on the search path and among the versions of pyenv; `CUEBOOK_BENCH_PYTHON` names another one.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};

/// The package.
pub const PACKAGE: &str = "weakincentives";
/// Its version.
pub const VERSION: &str = "0.27.0";
/// Names a Python that is to be taken instead of one that is found.
const CHOSEN: &str = "CUEBOOK_BENCH_PYTHON";
const SCRIPT: &str = include_str!("peer.py");

type Result<T> = std::result::Result<T, String>;

/// A running peer.
pub struct Peer {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

/// What the peer made of a prompt.
pub struct Theirs {
    pub text: String,
    pub tools: Vec<String>,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Peer {
    /// Starts it; the error says why it cannot be had.
    pub fn start() -> Result<Peer> {
        let python = environment()?;
        let mut command = Command::new(&python);
        command.args(["-I", "-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().map_err(|error| format!("{}: {error}", python.display()))?;
        let (to, from) = child.stdin.take().zip(child.stdout.take()).ok_or("it has no pipes")?;
        Ok(Peer { child, to, from: BufReader::new(from) })
    }

    /// Gives it a prompt, and the values to go with it.
    pub fn load(&mut self, sections: &Json) -> Result<Theirs> {
        let answer = self.ask(&json!({"load": sections}))?;
        let text = answer["text"].as_str().ok_or("the peer answered without a text")?;
        let tools = answer["tools"].as_array().into_iter().flatten();
        let tools = tools.filter_map(Json::as_str).map(str::to_owned).collect();
        Ok(Theirs { text: text.to_owned(), tools })
    }

    /// Nanoseconds of one `bind` with new parameters and one `render`.
    pub fn bind_and_render(&mut self) -> Result<f64> {
        self.time("bind_and_render")
    }

    /// Nanoseconds of one `render` with what was bound before.
    pub fn render(&mut self) -> Result<f64> {
        self.time("render")
    }

    fn time(&mut self, what: &str) -> Result<f64> {
        self.ask(&json!({"time": what}))?.as_f64().ok_or_else(|| "the peer measured nothing".to_owned())
    }

    fn ask(&mut self, request: &Json) -> Result<Json> {
        let mut line = String::new();
        let asked = writeln!(self.to, "{request}").and_then(|()| self.from.read_line(&mut line));
        asked.map_err(|error| format!("the peer does not listen: {error}"))?;
        serde_json::from_str(&line).map_err(|error| format!("the peer answered {line:?}: {error}"))
    }
}

/// The interpreter of an environment that has the package.
fn environment() -> Result<PathBuf> {
    let here = env::current_exe().map_err(|error| error.to_string())?;
    let target = here.ancestors().nth(2).ok_or("the benchmark does not lie in a build folder")?;
    let folder = target.join("tmp").join(format!("{PACKAGE}-{VERSION}"));
    let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    let check = format!("import importlib.metadata as m; assert m.version('{PACKAGE}') == '{VERSION}'");
    let is_there = || run(Command::new(&python).args(["-I", "-c", &check]));
    if is_there().is_ok() {
        return Ok(python);
    }
    run(Command::new(interpreter()?).args(["-m", "venv", "--clear"]).arg(&folder))?;
    let wanted = format!("{PACKAGE}=={VERSION}");
    let mut pip = Command::new(&python);
    run(pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", &wanted]))?;
    is_there()?;
    Ok(python)
}

/// A CPython 3.13.
fn interpreter() -> Result<OsString> {
    const CHECK: &str =
        "import sys; assert sys.implementation.name == 'cpython' and sys.version_info[:2] >= (3, 13)";
    let runs = |python: &OsString| run(Command::new(python).args(["-I", "-c", CHECK]));
    if let Some(chosen) = env::var_os(CHOSEN) {
        return runs(&chosen).map(|()| chosen).map_err(|why| format!("{CHOSEN}: {why}"));
    }
    let found = candidates().into_iter().find(|python| runs(python).is_ok());
    found.ok_or_else(|| format!("it needs CPython 3.13, and there is no `python3.13`; {CHOSEN} can name one"))
}

fn candidates() -> Vec<OsString> {
    let mut found: Vec<OsString> = vec!["python3.13".into()];
    let root = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".pyenv")));
    let versions = root.and_then(|root| fs::read_dir(root.join("versions")).ok());
    for version in versions.into_iter().flatten().flatten() {
        if version.file_name().to_string_lossy().starts_with("3.13.") {
            found.push(version.path().join("bin/python3.13").into());
        }
    }
    found
}

fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!("{program}: {}", said.lines().last().unwrap_or("failed")))
}
