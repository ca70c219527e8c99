//! Runs small programs in the fence, for tests.

// Each file of tests uses its own part of this.
#![allow(dead_code)]

#[path = "../../../skip.rs"]
pub mod skip;

use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use cuebook::library::SandboxLevel;
use cuebook_hooks::sandbox::{Ending, Launcher, Profile, Protection, Report, Sandboxed, probe, spawn};

/// A program that is to run in the fence.
#[derive(Clone)]
pub struct Fenced {
    pub profile: Profile,
    request: String,
}

/// What came of it.
#[derive(Debug)]
pub struct Ran {
    pub replied: String,
    pub printed: String,
    pub ending: Ending,
    pub report: Report,
}

/// The launcher that these tests drive.
pub fn launcher() -> Launcher {
    Launcher::at(env!("CARGO_BIN_EXE_cuebook-launcher"))
}

/// Python that tries something and replies with what came of it: `attempt('name', function)`.
const ATTEMPT: &str = "
import os, sys
def reply(*words):
    os.write(4, (' '.join(map(str, words)) + '\\n').encode())
def attempt(name, function, *arguments):
    try:
        reply(name, 'worked', function(*arguments))
    except BaseException as error:
        reply(name, type(error).__name__)
";

/// A Python program that tries things.
pub fn attempts(code: &str) -> Option<Fenced> {
    Fenced::python(&format!("{ATTEMPT}{code}"))
}

/// Whether this system offers everything. Where it does not, a test of the whole fence cannot run.
pub fn whole_fence() -> bool {
    let report = probe(&launcher()).expect("a probe runs");
    if report.level() != SandboxLevel::Full {
        skip::missing_peer(format_args!("the sandbox lacks protections: {:?}", report.missing));
    }
    report.level() == SandboxLevel::Full
}

/// The real Python (the one on the path may be a script that looks for another) and the folders that it lives in.
fn python() -> Option<&'static (PathBuf, Vec<PathBuf>)> {
    static PYTHON: OnceLock<Option<(PathBuf, Vec<PathBuf>)>> = OnceLock::new();
    let found = PYTHON.get_or_init(|| {
        let ask = "import sys; print(sys.executable); print(sys.base_prefix); print(sys.base_exec_prefix)";
        let output = Command::new("python3").args(["-I", "-S", "-c", ask]).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        let mut lines = text.lines().map(PathBuf::from);
        Some((lines.next()?.canonicalize().ok()?, lines.collect()))
    });
    if found.is_none() {
        skip::missing_peer("python3 is missing");
    }
    found.as_ref()
}

impl Fenced {
    pub fn program(program: impl Into<PathBuf>) -> Fenced {
        let profile = Profile {
            program: program.into(),
            arguments: Vec::new(),
            environment: vec![("HOME".into(), "/tmp".into()), ("PATH".into(), "/usr/bin:/bin".into())],
            readable: Vec::new(),
            folder: "/".into(),
            memory: 1 << 30,
            total_memory: 1 << 30,
            processes: 32,
            open_files: 64,
            temp_size: 16 << 20,
            cpu: Duration::from_secs(20),
            without: Vec::new(),
            tool: None,
        };
        Fenced { profile, request: String::new() }
    }

    /// A Python program; `None` where there is no Python.
    pub fn python(code: &str) -> Option<Fenced> {
        let (python, folders) = python()?;
        let mut test = Fenced::program(python);
        test.profile.readable = folders.clone();
        test.profile.arguments = ["-I", "-S", "-c", code].map(Into::into).to_vec();
        Some(test)
    }

    pub fn argument(mut self, argument: impl Into<std::ffi::OsString>) -> Fenced {
        self.profile.arguments.push(argument.into());
        self
    }

    pub fn request(mut self, request: &str) -> Fenced {
        self.request = request.into();
        self
    }

    pub fn readable(mut self, path: impl Into<PathBuf>) -> Fenced {
        self.profile.readable.push(path.into());
        self
    }

    pub fn without(mut self, protections: &[Protection]) -> Fenced {
        self.profile.without = protections.to_vec();
        self
    }

    pub fn try_start(&self) -> std::io::Result<Sandboxed> {
        spawn(&launcher(), &self.profile)
    }

    pub fn start(&self) -> Sandboxed {
        self.try_start().expect("the program starts")
    }

    /// Runs it to its end.
    pub fn run(self) -> Ran {
        let mut running = self.start();
        running.requests.write_all(self.request.as_bytes()).expect("it reads its requests");
        // What it prints is read beside what it replies, or a full pipe would keep it waiting.
        let mut printed = running.printed;
        let printed = std::thread::spawn(move || {
            let mut text = String::new();
            printed.read_to_string(&mut text).map(|_| text)
        });
        let mut replied = String::new();
        running.replies.read_to_string(&mut replied).expect("replies are text");
        let ending = running.process.wait(Duration::from_secs(60)).expect("it ends");
        let printed = printed.join().expect("no panic").expect("prints are text");
        Ran { replied, printed, ending, report: running.report }
    }
}
