//! A thread in a process of its own, which lives on when whoever started it is gone.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};

use super::resume::Resume;
use super::{Status, ThreadId};
use crate::engine::Settings;
use crate::store::Store;

/// The command that runs a registered thread; whoever detaches one starts the program with it.
pub const COMMAND: [&str; 2] = ["thread", "carry-out"];

/// How many characters of a thread's id become a part of a file's name.
const LONGEST: usize = 60;

/// The variable that says where threads are kept.
pub const STORE: &str = "CUEBOOK_STORE";

/// Starts a process for a thread that is registered, and returns its number.
pub(super) fn start(
    settings: &Settings,
    store: &Arc<dyn Store>,
    project: &Path,
    id: &ThreadId,
    how: &Resume,
) -> Result<u32> {
    let fail = |message: String, hint: &str| {
        Error::new(ErrorKind::Execute, Diagnostic::new(Code::CannotStart, message).hint(hint))
    };
    let Some(program) = settings.program.clone().or_else(own_program) else {
        let hint = "put `cuebook` on the PATH, or say in the settings where the program is";
        return Err(fail("there is no program that could run the thread".into(), hint));
    };
    let folder = project.join(".ai/state/logs");
    let name: Vec<char> = id.as_str().chars().map(|c| if c == '/' { '_' } else { c }).collect();
    // Its end tells threads apart, and a file's name must not be too long.
    let name: String = name[name.len().saturating_sub(LONGEST)..].iter().collect();
    let log = fs::create_dir_all(&folder)
        .and_then(|()| OpenOptions::new().create(true).append(true).open(folder.join(format!("{name}.log"))));
    let log = log.map_err(|error| {
        fail(
            format!("{}: {error}", folder.display()),
            "the folder must be writable, for what the thread prints",
        )
    })?;
    let copy = log.try_clone().map_err(|error| fail(error.to_string(), "the system has no room for it"))?;
    let mut command = Command::new(&program);
    command.args(COMMAND).arg(id.as_str()).arg("--project").arg(project).current_dir(project);
    if let Some(store) = &settings.store {
        // Not among the arguments, which everybody on the machine can read: there may be a password in it.
        command.env(STORE, store);
    }
    for (option, path) in [("--replay", &settings.replay), ("--record", &settings.record)] {
        if let Some(path) = path {
            command.arg(option).arg(path);
        }
    }
    for (limit, value) in &how.limit_overrides {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        command.arg("--limit").arg(format!("{limit}={value}"));
    }
    if let Some(model) = &how.model {
        command.arg("--model").arg(model);
    }
    command.stdin(Stdio::null()).stdout(log).stderr(copy);
    #[cfg(unix)]
    {
        // What is typed at the terminal is meant for whoever started it, and not for the thread.
        use std::os::unix::process::CommandExt as _;
        command.process_group(0);
    }
    match command.spawn() {
        Ok(child) => {
            let pid = child.id();
            // Nobody waits for it; a process that ends before this one would stay behind in the list of processes otherwise.
            let (store, id) = (Arc::clone(store), id.clone());
            let reap = move || {
                let mut child = child;
                drop(child.wait());
                // A program that ended without taking the thread will not do so any more.
                if matches!(store.record(&id), Ok(Some(record)) if record.status == Status::Created) {
                    drop(store.cancel(&id));
                }
            };
            drop(std::thread::Builder::new().name("reaper".into()).stack_size(512 << 10).spawn(reap));
            Ok(pid)
        }
        Err(error) => Err(fail(
            format!("{} cannot be started: {error}", program.display()),
            "see that the program is there and may be run",
        )),
    }
}

/// This program, if it is the one that can run threads, or the one on the PATH.
fn own_program() -> Option<PathBuf> {
    let is_cuebook = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == "cuebook");
    let own = std::env::current_exe().ok().filter(is_cuebook);
    own.or_else(|| crate::environment::which("cuebook").map(PathBuf::from))
}
