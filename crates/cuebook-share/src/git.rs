//! Runs the system's `git`, without a shell and for a limited time. It may not ask questions, run hooks or write more than it needs.

mod ask;
mod checkout;
mod folder;

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};

pub use ask::{LONGEST, Running, ask};
pub(crate) use checkout::Checkout;
pub use folder::PrivateFolder;

/// Bytes of a file that git may write.
#[cfg(target_os = "linux")]
const MAX_FILE: u64 = 512 << 20;

/// The error for what git could not do.
pub fn failed(message: impl Into<String>, hint: &str) -> Error {
    Error::new(ErrorKind::Io, Diagnostic::new(Code::GitFailed, message).hint(hint))
}

/// The first line of what was printed.
pub fn line(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(b"\n").unwrap_or(bytes)
}

/// The first line of a complaint.
pub fn first_error_line(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let first = text.lines().next().unwrap_or("it printed no message");
    first.trim_start_matches("fatal: ").to_owned()
}

/// A path as git prints it.
#[cfg(unix)]
pub fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(<OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes))
}

/// A path as git prints it.
#[cfg(not(unix))]
pub fn path_of(bytes: &[u8]) -> PathBuf {
    PathBuf::from(String::from_utf8_lossy(bytes).into_owned())
}

/// The program on the `PATH`. Folders that are relative or lie in the project (`node_modules/.bin`) are skipped: what is in
/// them comes with the project.
fn program(project: &Path) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let mut files = folders.map(|folder| folder.join(format!("git{}", std::env::consts::EXE_SUFFIX)));
    let found = files.find(|file| file.is_file() && !cuebook::trust::is_inside(project, file));
    found.ok_or_else(|| not_started(&std::io::ErrorKind::NotFound.into()))
}

/// The program, such that it can only look. No program that lies in the project is used.
pub fn looking(project: &Path) -> Result<Command> {
    let mut command = Command::new(program(project)?);
    command
        .arg("--no-pager")
        .arg("--literal-pathspecs")
        .args(["-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false"])
        // A partial clone would fetch what it lacks. Releases before 2.45 do not know GIT_NO_LAZY_FETCH.
        .args(["-c", "protocol.allow=never"])
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_PAGER", "cat")
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    // A hook of git runs with these, and they would name another place than the project.
    for name in [
        "GIT_DIR",
        "GIT_COMMON_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
        "GIT_OBJECT_DIRECTORY",
        "GIT_ALTERNATE_OBJECT_DIRECTORIES",
        "GIT_NAMESPACE",
        "GIT_PREFIX",
        "GIT_EXTERNAL_DIFF",
        "GIT_TRACE",
    ] {
        command.env_remove(name);
    }
    Ok(command)
}

fn not_started(error: &std::io::Error) -> Error {
    match error.kind() {
        std::io::ErrorKind::NotFound => {
            failed("git is not installed, and this command needs it", "install git, or name a folder or file")
        }
        _ => failed(format!("git does not start: {error}"), "check that `git --version` works"),
    }
}

/// Keeps git from filling the disk with what a server sends.
fn limit_files(child: &Child) {
    #[cfg(target_os = "linux")]
    if let Some(pid) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
        use rustix::process::{Resource, Rlimit, prlimit};
        let limit = Rlimit { current: Some(MAX_FILE), maximum: Some(MAX_FILE) };
        // Without the limit, the time limit still holds.
        let _ = prlimit(Some(pid), Resource::Fsize, limit);
    }
    #[cfg(not(target_os = "linux"))]
    let _ = child;
}
