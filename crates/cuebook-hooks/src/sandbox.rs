//! Starts a program fenced in.
//!
//! We start a *launcher* (ourselves with a hidden argument, or the small program in `src/bin`), which fences itself in and
//! becomes the parent of the program. The program finds its requests on descriptor 3 and writes its replies to descriptor 4;
//! its stdin is empty, and what it prints on stdout and stderr arrives in one pipe of its own.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitCode};
use std::time::Duration;

use cuebook::library::SandboxLevel;

/// How the launcher is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    program: PathBuf,
}

/// What is to run, and what it is given.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment.
    pub environment: Vec<(OsString, OsString)>,
    /// Files and folders that it may read, at their own paths. What it needs of the system is added.
    pub readable: Vec<PathBuf>,
    /// The folder that it starts in.
    pub folder: PathBuf,
    /// Bytes of memory of each process.
    pub memory: u64,
    /// Processes and threads, all together.
    pub processes: u64,
    /// Open files of each process.
    pub open_files: u64,
    /// Bytes of the private temporary folder `/tmp`.
    pub temp_size: u64,
    /// CPU time of each process.
    pub cpu: Duration,
    /// Protections that are left out, as if this system did not offer them.
    pub without: Vec<Protection>,
}

/// Something that keeps a program from doing harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Protection {
    /// Nothing is visible but what it is given.
    View,
    /// Nothing else can be read, and nothing written but a private temporary folder.
    Files,
    /// There is no network.
    Network,
    /// Other processes can be neither seen nor signalled nor traced, and none is left behind.
    Processes,
    /// The number of processes is limited.
    ProcessLimit,
    /// System calls that programs do not need are refused.
    SystemCalls,
    /// No program that it starts gains rights.
    Privileges,
    /// Memory, CPU time and open files are limited.
    Resources,
}

/// What the fence is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What is missing, and why.
    pub missing: Vec<(Protection, String)>,
}

/// A program that runs fenced in.
#[derive(Debug)]
pub struct Sandboxed {
    /// Where requests are written. Closing it ends the program and all its children.
    pub requests: ChildStdin,
    /// Where replies arrive.
    pub replies: ChildStdout,
    /// What it prints.
    pub printed: ChildStderr,
    /// What the fence is made of.
    pub report: Report,
}

impl Report {
    /// The level that it comes to.
    pub fn level(&self) -> SandboxLevel {
        SandboxLevel::None
    }
}

/// Becomes the launcher, if this process was started as one. A program that starts workers calls this first in its `main`.
pub fn launch_if_asked() -> Option<ExitCode> {
    None
}
