//! Peers in Python: processes with the real packages, which measure themselves when they are asked to.
//!
//! Packages are installed by their names into an environment of their own below the target folder, once. The interpreter is looked
//! for on the search path and among the versions of pyenv; `CUEBOOK_BENCH_PYTHON` names another one. Whatever is missing is an
//! error that says what; a table shows it and does without the peer.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value as Json, json};

use crate::command::{Result, run};

/// Names a Python that is to be taken instead of one that is found.
const CHOSEN: &str = "CUEBOOK_BENCH_PYTHON";

/// What a peer is made of.
pub struct Packages {
    /// All packages that must have a certain version, the one that matters first.
    pub exact: &'static [(&'static str, &'static str)],
    /// Further constraints for pip, as `name<version`.
    pub also: &'static [&'static str],
    /// The minor version of CPython 3: the lowest that will do, and the one that is looked for.
    pub minor: u32,
}

impl Packages {
    /// The interpreter of an environment that has them.
    pub fn environment(&self) -> Result<PathBuf> {
        let (name, version) = self.exact.first().ok_or("the peer has no package")?;
        let folder = crate::place::environment(name, version)?;
        let python = folder.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
        let checks =
            self.exact.iter().map(|(name, version)| format!("assert m.version('{name}') == '{version}'"));
        let check = format!("import importlib.metadata as m; {}", checks.collect::<Vec<_>>().join("; "));
        let is_there = || run(Command::new(&python).args(["-I", "-c", &check]));
        if is_there().is_ok() {
            return Ok(python);
        }
        run(Command::new(self.interpreter()?).args(["-m", "venv", "--clear"]).arg(&folder))?;
        let wanted = self.exact.iter().map(|(name, version)| format!("{name}=={version}"));
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        run(pip.args(wanted).args(self.also))?;
        is_there()?;
        Ok(python)
    }

    /// A CPython that can run them.
    fn interpreter(&self) -> Result<OsString> {
        let minor = self.minor;
        let check = format!(
            "import sys; assert sys.implementation.name == 'cpython' and sys.version_info[:2] >= (3, {minor})"
        );
        let runs = |python: &OsString| run(Command::new(python).args(["-I", "-c", &check]));
        if let Some(chosen) = env::var_os(CHOSEN) {
            return runs(&chosen).map(|()| chosen).map_err(|why| format!("{CHOSEN}: {why}"));
        }
        let found = candidates(minor).into_iter().find(|python| runs(python).is_ok());
        found.ok_or_else(|| {
            format!("it needs CPython 3.{minor}, and there is no `python3.{minor}`; {CHOSEN} can name one")
        })
    }
}

fn candidates(minor: u32) -> Vec<OsString> {
    let name = format!("python3.{minor}");
    let mut found: Vec<OsString> = vec![name.clone().into()];
    let root = env::var_os("PYENV_ROOT").map(PathBuf::from);
    let root = root.or_else(|| Some(Path::new(&env::var_os("HOME")?).join(".pyenv")));
    let versions = root.and_then(|root| fs::read_dir(root.join("versions")).ok());
    for version in versions.into_iter().flatten().flatten() {
        if version.file_name().to_string_lossy().starts_with(&format!("3.{minor}.")) {
            found.push(version.path().join("bin").join(&name).into());
        }
    }
    found
}

/// A running script that reads a request in JSON from each line and answers with a line of JSON.
pub struct Script {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Drop for Script {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Script {
    /// Starts one.
    pub fn start(python: &Path, text: &str) -> Result<Script> {
        Script::of(Command::new(python).args(["-I", "-c", text]))
    }

    /// Starts any program that speaks like one.
    pub fn of(command: &mut Command) -> Result<Script> {
        let program = command.get_program().to_string_lossy().into_owned();
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| format!("{program}: {error}"))?;
        let (to, from) = child.stdin.take().zip(child.stdout.take()).ok_or("it has no pipes")?;
        Ok(Script { child, to, from: BufReader::new(from) })
    }

    /// Nanoseconds of one call of what the script has under a name.
    pub fn time(&mut self, what: &str) -> Result<f64> {
        self.ask(&json!({"time": what}))?.as_f64().ok_or_else(|| "the peer measured nothing".to_owned())
    }

    /// Asks for anything else.
    pub fn ask(&mut self, request: &Json) -> Result<Json> {
        let mut line = String::new();
        let asked = writeln!(self.to, "{request}").and_then(|()| self.from.read_line(&mut line));
        asked.map_err(|error| format!("the peer does not listen: {error}"))?;
        serde_json::from_str(&line).map_err(|error| format!("the peer answered {line:?}: {error}"))
    }
}
