//! Tests that drive the real binary: [`Test`] for one command, [`transcript`] for a page that tells a story.

#![allow(dead_code, reason = "every test binary compiles this module and uses a part of it")]
#![allow(clippy::unwrap_used, reason = "these are tests, though the lint sees only functions")]

#[path = "../../../skip.rs"]
pub mod skip;

pub mod transcript;

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Nothing, if there is no Python to run hooks with: then a test that needs one says so and passes, except under CI.
pub fn python_or_skip() -> Option<()> {
    let found = Command::new("python3").args(["-c", "pass"]).status().is_ok_and(|status| status.success());
    if !found {
        skip::missing_peer("python3 is missing");
    }
    found.then_some(())
}

/// A project of its own, and the environment that a command runs in: nothing of the machine shines through.
pub struct Project {
    folder: PathBuf,
    _around: tempfile::TempDir,
    /// What answers for models, if the project needs that.
    pub model: Option<cuebook_mock::Mock>,
}

impl Project {
    pub fn new() -> Project {
        let around = tempfile::tempdir().unwrap();
        let folder = around.path().join("project");
        std::fs::create_dir(&folder).unwrap();
        std::fs::create_dir(around.path().join("home")).unwrap();
        // The home folder lies outside the project: a folder that holds it is no workspace. Tests write to it by this name.
        #[cfg(unix)]
        std::os::unix::fs::symlink("../home", folder.join("home")).unwrap();
        Project { folder, _around: around, model: None }
    }

    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The user's home folder.
    pub fn home(&self) -> PathBuf {
        self.folder.with_file_name("home")
    }

    /// Grants everything that the project asks for.
    pub fn allow(&self) {
        let mut command = self.command(env!("CARGO_BIN_EXE_cuebook"), self.path());
        let output = command.args(["allow", "--yes"]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Writes a file, and makes its folder if need be.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        self.write_at(Path::new(path), bytes);
    }

    /// The same for a path that may lie anywhere.
    pub fn write_at(&self, path: &Path, bytes: impl AsRef<[u8]>) {
        let path = self.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// Makes a symbolic link at `from` that says `to`.
    #[cfg(unix)]
    pub fn link(&self, from: &str, to: &str) {
        let from = self.path().join(from);
        std::fs::create_dir_all(from.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(to, from).unwrap();
    }

    /// A program with a clean environment. It finds `cuebook` first on its PATH and no terminal to ask on.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>, folder: &Path) -> Command {
        let binaries = Path::new(env!("CARGO_BIN_EXE_cuebook")).parent().unwrap().to_owned();
        let system = std::env::var_os("PATH").unwrap_or_default();
        let path: Vec<PathBuf> = std::iter::once(binaries).chain(std::env::split_paths(&system)).collect();
        let mut command = Command::new(program);
        command
            .env_clear()
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("HOME", self.home())
            .env("TZ", "UTC")
            .env("LANG", "C.UTF-8")
            .env("NO_COLOR", "1")
            .env("COLUMNS", "110")
            .current_dir(folder)
            .stdin(Stdio::null());
        command
    }
}

/// The texts inside of a text that are encoded.
pub fn decoded(text: &str) -> String {
    use base64::Engine as _;
    let words = text
        .split(|c: char| !(c.is_ascii_alphanumeric() || "+/=".contains(c)))
        .filter(|word| word.len() > 40);
    let bytes = words.filter_map(|word| base64::engine::general_purpose::STANDARD.decode(word).ok());
    bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).collect()
}

/// Runs a command whose stdout no one reads any more, and gives its exit code.
pub fn code_when_closed(mut command: Command) -> Option<i32> {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.stdout(writer).stderr(Stdio::null()).status().unwrap().code()
}

/// One run of `cuebook` in a fresh project, and what is expected of it.
///
/// ```ignore
/// Test::new().file("prompts/hi/template.md", "Hi {{ name }}").args(["render", "hi"]).stdout("Hi ").run();
/// ```
pub struct Test {
    project: Project,
    args: Vec<String>,
    stdin: Option<String>,
    stdout: Option<String>,
    stderr: Option<String>,
    code: i32,
}

impl Test {
    pub fn new() -> Test {
        Test { project: Project::new(), args: Vec::new(), stdin: None, stdout: None, stderr: None, code: 0 }
    }

    pub fn file(self, path: &str, bytes: impl AsRef<[u8]>) -> Test {
        self.project.write(path, bytes);
        self
    }

    #[cfg(unix)]
    pub fn link(self, from: &str, to: &str) -> Test {
        self.project.link(from, to);
        self
    }

    pub fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Test {
        self.args = args.into_iter().map(str::to_owned).collect();
        self
    }

    pub fn stdin(mut self, text: &str) -> Test {
        self.stdin = Some(text.to_owned());
        self
    }

    /// What stdout must be, whole.
    pub fn stdout(mut self, text: &str) -> Test {
        self.stdout = Some(text.to_owned());
        self
    }

    /// What stderr must be, whole.
    pub fn stderr(mut self, text: &str) -> Test {
        self.stderr = Some(text.to_owned());
        self
    }

    /// The exit code; 0 if nothing is said.
    pub fn code(mut self, code: i32) -> Test {
        self.code = code;
        self
    }

    /// Runs it and compares. Gives the project back for further runs and looks.
    pub fn run(self) -> Project {
        let mut command = self.project.command(env!("CARGO_BIN_EXE_cuebook"), self.project.path());
        command.args(&self.args).stdout(Stdio::piped()).stderr(Stdio::piped());
        let output = match &self.stdin {
            None => command.output().unwrap(),
            Some(text) => {
                let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
                std::io::Write::write_all(&mut child.stdin.take().unwrap(), text.as_bytes()).unwrap();
                child.wait_with_output().unwrap()
            }
        };
        let shown = format!("cuebook {}", self.args.join(" "));
        let text = |bytes: &[u8]| transcript::normalise(&String::from_utf8_lossy(bytes), self.project.path());
        let Output { status, stdout, stderr } = output;
        let (stdout, stderr) = (text(&stdout), text(&stderr));
        for (name, wanted, found) in [("stdout", &self.stdout, &stdout), ("stderr", &self.stderr, &stderr)] {
            if let Some(wanted) = wanted
                && wanted != found
            {
                panic!("{name} of `{shown}` is not as expected:\n{}", transcript::diff(wanted, found));
            }
        }
        assert_eq!(status.code(), Some(self.code), "exit code of `{shown}`\n{stdout}{stderr}");
        self.project
    }
}
