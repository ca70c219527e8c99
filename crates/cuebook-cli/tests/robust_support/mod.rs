//! What the tests of reliability and robustness share: projects in temporary folders, and the real command with a
//! watchdog and a limit on its memory.

#![allow(dead_code, reason = "each test binary uses its own part of it")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value as Json;

/// No command may take longer.
const WATCHDOG: Duration = Duration::from_secs(30);

/// Address space of a command, in KiB. What it really uses is less; a bomb would need far more.
const MAX_MEMORY: u32 = 2_000_000;

/// The command itself.
pub const CUEBOOK: &str = env!("CARGO_BIN_EXE_cuebook");

/// A project in a temporary folder.
pub struct Project {
    folder: tempfile::TempDir,
    home: tempfile::TempDir,
}

impl Project {
    /// An empty project. A mark makes sure that no project above it is taken for it.
    pub fn new() -> Project {
        let project = Project { folder: tempfile::tempdir().unwrap(), home: tempfile::tempdir().unwrap() };
        project.write("cuebook.toml", "")
    }

    /// Its folder.
    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    /// The home folder of its user.
    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// A path in it.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Writes a file, and the folders that it lies in.
    pub fn write(self, path: &str, content: impl AsRef<[u8]>) -> Project {
        self.put(path, content);
        self
    }

    /// The same, on a project that is kept elsewhere.
    pub fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// Makes a symbolic link.
    pub fn link(self, path: &str, target: &str) -> Project {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
        self
    }

    /// A command in this project, within its limits.
    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(format!("ulimit -v {MAX_MEMORY}; exec \"$0\" \"$@\""))
            .arg(CUEBOOK)
            .args(args)
            .current_dir(self.root())
            .env_remove("CUEBOOK_ROOT")
            .env_remove("USER_SPACE")
            .env("HOME", self.home())
            .env("NO_COLOR", "1");
        command
    }

    /// Runs a command to its end.
    pub fn run(&self, args: &[&str]) -> Run {
        run(self.command(args), b"")
    }

    /// Renders the prompt `p` from the given template.
    pub fn render_text(&self, template: impl AsRef<[u8]>) -> Run {
        self.put("prompts/p/template.md", template);
        self.run(&["render", "p"])
    }
}

/// What a command did.
#[derive(Debug)]
pub struct Run {
    /// Its exit code; `None` if a signal ended it.
    pub code: Option<i32>,
    /// What it wrote.
    pub stdout: Vec<u8>,
    /// What it said.
    pub stderr: String,
}

impl Run {
    /// It did what it should; gives its text.
    #[track_caller]
    pub fn text(&self) -> &str {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        std::str::from_utf8(&self.stdout).unwrap()
    }

    /// It failed, wrote nothing, and said exactly this (apart from the last line, which names the page of the code).
    #[track_caller]
    pub fn says(&self, wanted: &str) {
        assert_eq!(self.code, Some(1), "{self:?}");
        assert!(self.stdout.is_empty(), "a failure writes nothing to stdout: {self:?}");
        let said = self.stderr.trim_end();
        let (said, _) = said.rsplit_once("\n\nfor more about this: cuebook help CB").unwrap_or((said, ""));
        assert_eq!(said.trim_end(), wanted.trim());
    }

    /// It failed as JSON; gives the error.
    #[track_caller]
    pub fn error(&self) -> Json {
        assert_eq!(self.code, Some(1), "{self:?}");
        let document: Json = serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("stdout is not JSON ({error}): {self:?}"));
        assert_eq!(document["status"], "error", "{document}");
        document["error"].clone()
    }
}

/// Runs a command with something on its stdin.
#[track_caller]
pub fn run(mut command: Command, input: &[u8]) -> Run {
    let child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait(child, input)
}

/// Waits for a command, at most as long as the watchdog does.
#[track_caller]
pub fn wait(mut child: Child, input: &[u8]) -> Run {
    let mut stdin = child.stdin.take();
    let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
    let input = input.to_vec();
    let feed = std::thread::spawn(move || {
        // A command that does not want its input may close it.
        let _ = stdin.as_mut().map(|stdin| stdin.write_all(&input));
    });
    let out = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stdout.as_mut().map(|stream| stream.read_to_end(&mut bytes));
        bytes
    });
    let err = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = stderr.as_mut().map(|stream| stream.read_to_end(&mut bytes));
        bytes
    });
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if start.elapsed() > WATCHDOG {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the command hung for {WATCHDOG:?}");
        }
        std::thread::sleep(Duration::from_micros(200));
    };
    feed.join().unwrap();
    let run = Run {
        code: status.code(),
        stdout: out.join().unwrap(),
        stderr: String::from_utf8_lossy(&err.join().unwrap()).into_owned(),
    };
    assert!(!run.stderr.contains("panicked at"), "{}", run.stderr);
    run
}

/// Every file below a folder with its content, by relative path.
pub fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(next) = waiting.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                waiting.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_string_lossy().into_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// A small generator of numbers: the same seed gives the same test.
pub struct Random(u64);

impl Random {
    /// A generator with a seed, which is not zero.
    pub fn new(seed: u64) -> Random {
        Random(seed.max(1))
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound as u64) as usize
    }
}
