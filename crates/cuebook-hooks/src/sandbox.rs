//! Starts a program fenced in.
//!
//! We start a *launcher* (ourselves with a hidden argument, or the small program in `src/bin`), which fences itself in and
//! becomes the parent of the program. The program finds its requests on descriptor 3 and writes its replies to descriptor 4;
//! its stdin is empty, and what it prints on stdout and stderr arrives in one pipe of its own.
//!
//! A protection that the system refuses is left out and reported; whether the rest is enough is not decided here. Nothing in
//! here knows what the program is or what it is asked.
//!
//! | file | what it does | runs in |
//! | --- | --- | --- |
//! | `spawn.rs` | starts the launcher and hands out the pipes | the process that uses this crate |
//! | `process.rs` | watches and ends what runs | the process that uses this crate |
//! | `wire.rs` | what the two say to each other | both |
//! | `launcher.rs` | starts the program, waits, cleans up | the launcher |
//! | `measure.rs` | measures what all processes of the program use | the launcher |
//! | `fence/` | the protections, one file each | the launcher, and its child before it becomes the program |
//! | `calls.rs` | the system calls that are `unsafe` to make | the launcher |

#[cfg(unix)]
mod calls;
#[cfg(unix)]
mod fence;
#[cfg(unix)]
mod launcher;
#[cfg(unix)]
mod measure;
mod process;
mod spawn;
#[cfg(unix)]
mod wire;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout};
use std::time::Duration;

use cuebook::library::SandboxLevel;

pub use process::{Ending, Process};
pub use spawn::{probe, spawn, spawn_tool};

/// The argument that makes a program the launcher. What is to run comes through a pipe, where `ps` does not show it.
#[cfg(unix)]
const MAGIC: &str = "--cuebook-launch-fenced";

/// How the launcher is started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    program: PathBuf,
    arguments: Vec<OsString>,
}

impl Launcher {
    /// This very program, whose `main` calls [`launch_if_asked`] first.
    pub fn this_program() -> Launcher {
        // On Linux the link in /proc leads to the program that runs even after an update has put another in its place.
        let program = if cfg!(target_os = "linux") {
            PathBuf::from("/proc/self/exe")
        } else {
            // Should even that fail, starting it says so.
            std::env::current_exe().unwrap_or_default()
        };
        Launcher::at(program)
    }

    /// A program of its own, such as `cuebook-launcher`.
    pub fn at(program: impl Into<PathBuf>) -> Launcher {
        Launcher { program: program.into(), arguments: Vec::new() }
    }

    /// The same program with arguments: an interpreter, and what makes it call [`launch`].
    pub fn with_arguments(mut self, arguments: impl IntoIterator<Item = impl Into<OsString>>) -> Launcher {
        self.arguments = arguments.into_iter().map(Into::into).collect();
        self
    }

    /// The program that is started.
    pub fn program(&self) -> &Path {
        &self.program
    }

    pub(crate) fn arguments(&self) -> &[OsString] {
        &self.arguments
    }
}

/// What is to run, and what it is given.
#[derive(Debug, Clone)]
pub struct Profile {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Its whole environment. Where there is no private `/tmp`, `HOME` and `TMPDIR` are set to a private folder.
    pub environment: Vec<(OsString, OsString)>,
    /// Files and folders that it may read, at their own paths. What it needs of the system is added.
    pub readable: Vec<PathBuf>,
    /// The folder that it starts in.
    pub folder: PathBuf,
    /// Bytes of memory of each process.
    pub memory: u64,
    /// Bytes of memory of all its processes together. The launcher measures it a few times a second, and ends a program
    /// that uses more.
    pub total_memory: u64,
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
    /// What a tool has and a worker of hooks does not.
    pub tool: Option<Tool>,
}

/// What a tool has and a worker of hooks does not: folders to change, a standard input, and a way to some hosts.
///
/// A tool runs as the child of a small first process, so that signals, exit codes and orphans are as usual. As root it
/// stays root, without any rights but those on files: it could not change the user's files otherwise.
#[derive(Debug, Clone, Default)]
pub struct Tool {
    /// Folders that it may change.
    pub writable: Vec<PathBuf>,
    /// Files and folders inside of these that it may read and not change. They exist, and are no links.
    pub guarded: Vec<PathBuf>,
    /// Files and folders inside of these that look empty. They exist, and are no links.
    pub hidden: Vec<PathBuf>,
    /// What it reads from its standard input.
    pub input: Vec<u8>,
    /// Whether its standard input is [`FencedTool::stdin`] instead, for a conversation.
    pub is_fed: bool,
    /// Whether it gets a proxy: a socket that listens inside of the fence, which [`FencedTool::listener`] accepts from.
    pub proxy: bool,
    /// The protections without which it does not start.
    pub required: Vec<Protection>,
}

/// Something that keeps a program from doing harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
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

impl Protection {
    /// All of them.
    pub const ALL: [Protection; 8] = [
        Protection::View,
        Protection::Files,
        Protection::Network,
        Protection::Processes,
        Protection::ProcessLimit,
        Protection::SystemCalls,
        Protection::Privileges,
        Protection::Resources,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Protection::View => "view",
            Protection::Files => "files",
            Protection::Network => "network",
            Protection::Processes => "processes",
            Protection::ProcessLimit => "process-limit",
            Protection::SystemCalls => "system-calls",
            Protection::Privileges => "privileges",
            Protection::Resources => "resources",
        }
    }

    /// What it means, for people.
    pub fn description(self) -> &'static str {
        match self {
            Protection::View => "sees only the files that Cuebook gives it",
            Protection::Files => {
                "reads only the files that Cuebook gives it, and writes only to a private temporary directory"
            }
            Protection::Network => "has no network",
            Protection::Processes => "cannot see or reach other processes, and leaves none behind",
            Protection::ProcessLimit => "can start only a limited number of processes",
            Protection::SystemCalls => "can make only common system calls",
            Protection::Privileges => "cannot gain privileges",
            Protection::Resources => "has limits on memory, CPU time and open files",
        }
    }
}

/// What the fence is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// What is missing, and why.
    pub missing: Vec<(Protection, String)>,
}

impl Report {
    /// No fence at all, and why.
    pub(crate) fn nothing(why: &str) -> Report {
        Report { missing: Protection::ALL.map(|protection| (protection, why.to_owned())).to_vec() }
    }

    /// The level that it comes to.
    pub fn level(&self) -> SandboxLevel {
        let bearable = [Protection::View, Protection::Processes, Protection::ProcessLimit];
        if self.missing.is_empty() {
            SandboxLevel::Full
        } else if self.missing.iter().all(|(protection, _)| bearable.contains(protection)) {
            SandboxLevel::Reduced
        } else {
            SandboxLevel::None
        }
    }

    /// Why a protection is missing, if it is.
    pub fn why_missing(&self, protection: Protection) -> Option<&str> {
        self.missing.iter().find(|(missing, _)| *missing == protection).map(|(_, why)| why.as_str())
    }
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
    /// What runs. Dropping it ends it.
    pub process: Process,
}

impl Sandboxed {
    /// Whether the program has exactly one thread and no children now. `false` when in doubt.
    pub fn is_quiet(&self) -> bool {
        self.process.is_quiet()
    }

    /// Waits until the program has ended, but no longer than this; `None` if it has not.
    pub fn wait(&mut self, timeout: Duration) -> Option<Ending> {
        self.process.wait(timeout)
    }

    /// Ends the program and everything that it has started.
    pub fn kill(&mut self) -> Ending {
        self.process.kill()
    }
}

/// A tool that runs fenced in.
#[derive(Debug)]
pub struct FencedTool {
    /// Its standard input, if it [is fed](Tool::is_fed).
    pub stdin: Option<ChildStdin>,
    /// Its standard output.
    pub stdout: Option<ChildStdout>,
    /// Its standard error.
    pub stderr: Option<ChildStderr>,
    /// Where the connections of the tool's proxy arrive.
    pub listener: Option<std::net::TcpListener>,
    /// What runs. Dropping it ends it.
    pub process: Process,
    /// Closing it ends the tool.
    #[cfg_attr(not(unix), allow(dead_code))]
    control: ChildStdin,
}

impl FencedTool {
    /// The limit that the tool exceeded, if the launcher ended it for that.
    pub fn exceeded(&self) -> Option<String> {
        #[cfg(unix)]
        return spawn::exceeded(&self.control);
        #[cfg(not(unix))]
        return None;
    }
}

/// Keeps the environment and the memory of this process from other processes of the same user: none of them can read
/// `/proc/<pid>/environ` or attach a debugger. Programs that it starts are not affected.
pub fn hide_from_others() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
}

/// Becomes the launcher, if this process was started as one, and then never returns. A program that starts workers as
/// [`Launcher::this_program`] calls this first of all in its `main`: a copy of it does nothing else.
pub fn launch_if_asked() {
    if is_asked() {
        launch();
    }
}

/// Becomes the launcher and never returns, for a program that [`Launcher::with_arguments`] starts. Elsewhere than on Unix it does nothing.
pub fn launch() {
    #[cfg(unix)]
    std::process::exit(launcher::run());
}

fn is_asked() -> bool {
    #[cfg(unix)]
    {
        let mut arguments = std::env::args_os().skip(1);
        arguments.next().is_some_and(|first| first == MAGIC) && arguments.next().is_none()
    }
    #[cfg(not(unix))]
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn level(missing: &[Protection]) -> SandboxLevel {
        let missing = missing.iter().map(|protection| (*protection, "because".to_owned())).collect();
        Report { missing }.level()
    }

    #[test]
    fn the_level_is_reduced_only_if_files_stay_closed() {
        use Protection::*;
        assert_eq!(level(&[]), SandboxLevel::Full);
        assert_eq!(level(&[View]), SandboxLevel::Reduced);
        assert_eq!(level(&[View, Processes, ProcessLimit]), SandboxLevel::Reduced);
        for bad in [Files, Network, SystemCalls, Privileges, Resources] {
            assert_eq!(level(&[View, bad]), SandboxLevel::None, "{bad:?}");
        }
    }

    #[test]
    fn a_protection_is_spelt_the_same_everywhere() {
        for protection in Protection::ALL {
            assert_eq!(serde_json::to_value(protection).unwrap(), protection.as_str());
        }
    }
}
