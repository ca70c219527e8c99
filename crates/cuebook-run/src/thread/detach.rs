//! A thread in its own process, which continues when its starter is gone.
//!
//! The starter leaves when the process has taken the thread over, and not before: what keeps it from that is reported here, and
//! not only in a file without a reader.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use cuebook::error::printable;
use cuebook::files;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};

use super::Status;
use super::resume::{Resume, busy};
use crate::caller::MARK;
use crate::settings::{Fence, Settings};
use crate::store::{Holder, Record, STORE, Store, moved};
use crate::watch::Watch;

/// The command that runs a registered thread; detaching one starts the program with it.
pub const COMMAND: [&str; 2] = ["thread", "carry-out"];

/// The option of that command for what the thread may do at most: a JSON list of patterns.
pub const ALLOWANCE: &str = "--allowance";

/// How many characters of a thread's id become a part of a file's name.
const LONGEST: usize = 60;

/// How often it is looked whether the process has taken its thread up.
const LOOK: Duration = Duration::from_millis(10);

/// Starts a process for a thread that is registered, and returns its number when the process has taken the thread up.
pub(super) fn start(
    settings: &Settings,
    store: &Arc<dyn Store>,
    project: &Path,
    record: &Record,
    how: &Resume,
    watch: &dyn Watch,
) -> Result<u32> {
    let id = &record.id;
    let fail = |message: String, hint: &str| {
        Error::new(ErrorKind::Execute, Diagnostic::new(Code::CannotStart, message).hint(hint))
    };
    let Some(program) = settings.program.clone().or_else(|| own_program(project)) else {
        let hint = "put `cuebook` on the PATH, or set the program's path in the settings";
        return Err(fail("cannot find the program that runs threads".into(), hint));
    };
    let folder = project.join(".ai/state/logs");
    let name: Vec<char> = id.as_str().chars().map(|c| if c == '/' { '_' } else { c }).collect();
    // Its end tells threads apart, and a file's name must not be too long.
    let name: String = name[name.len().saturating_sub(LONGEST)..].iter().collect();
    let file = folder.join(format!("{name}.log"));
    files::stays_inside(project, &file, &files::display_name(project, &file))?;
    let log = open_log(&folder, &file);
    let log = log.map_err(|error| {
        fail(
            format!("{}: {error}", folder.display()),
            "make the directory writable; the thread's output goes there",
        )
    })?;
    let said_before = log.metadata().map_or(0, |log| log.len());
    let copy =
        log.try_clone().map_err(|error| fail(error.to_string(), "the system has no resources for it"))?;
    let mut command = Command::new(&program);
    command.args(COMMAND).arg(id.as_str()).arg("--root").arg(project).current_dir(project);
    // It is not a tool, whatever starts it: it continues when the thread that started it is dead.
    command.env_remove(MARK);
    if let Some(store) = &settings.store {
        // Not among the arguments, which everybody on the machine can read: there may be a password in it.
        command.env(STORE, store);
    }
    for (option, path) in [("--replay", &settings.replay), ("--record", &settings.record)] {
        if let Some(path) = path {
            command.arg(option).arg(path);
        }
    }
    if let Some(provider) = &settings.provider {
        command.arg("--provider").arg(provider);
    }
    if let Some(allowance) = &settings.allowance {
        command.arg(ALLOWANCE).arg(serde_json::json!(allowance.patterns()).to_string());
    }
    if settings.fence == Fence::Off {
        command.arg("--no-sandbox");
    }
    for (limit, value) in &how.limit_overrides {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        command.arg("--limit").arg(format!("{limit}={value}"));
    }
    if let Some(model) = &how.model {
        command.arg("--model").arg(model);
    }
    if let Some(seen) = how.behind {
        command.arg("--behind").arg(seen.to_string());
    }
    for (option, is_set) in [("--allow-again", how.allow_again), ("--trust-log", how.trust_log)] {
        if is_set {
            command.arg(option);
        }
    }
    command.stdin(Stdio::null()).stdout(log).stderr(copy);
    #[cfg(unix)]
    {
        // Input at the terminal is for the process that started this, and not for the thread.
        use std::os::unix::process::CommandExt as _;
        command.process_group(0);
    }
    let mut child = command.spawn().map_err(|error| {
        fail(
            format!("{} does not start: {error}", program.display()),
            "check that the program exists and is executable",
        )
    })?;
    let pid = child.id();
    if let Err(NotTaken { now, status }) = wait(&mut child, &**store, record, watch)? {
        if now.status == Status::Running {
            return Err(busy(&now));
        }
        if now.last != record.last || now.status != record.status {
            return Err(moved(id, now.status));
        }
        let why = final_events(&file, said_before);
        let message = format!("process {pid} ended before it started `{id}` ({status}){why}");
        return Err(fail(message, &format!("its output is in {}", file.display())));
    }
    // There is no wait for it; without this, a process that ends before this one would stay in the list of processes.
    let reap = move || drop(child.wait());
    drop(std::thread::Builder::new().name("reaper".into()).stack_size(512 << 10).spawn(reap));
    Ok(pid)
}

/// Opens the file for what a thread's process prints. Only this user can read it and its neighbours.
fn open_log(folder: &Path, file: &Path) -> std::io::Result<File> {
    let (mut folders, mut options) = (DirBuilder::new(), OpenOptions::new());
    #[cfg(unix)]
    {
        std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    if let Some(parent) = folder.parent().and_then(Path::parent) {
        fs::create_dir_all(parent)?;
    }
    folders.recursive(true).create(folder)?;
    files::plain_target(file)?;
    options.create(true).append(true).open(file)
}

/// A process has ended, and another holds the thread, or none.
struct NotTaken {
    now: Record,
    status: ExitStatus,
}

/// Waits until a process has taken its thread over, or has ended. A request to stop meanwhile leaves it running.
fn wait(
    child: &mut Child,
    store: &dyn Store,
    before: &Record,
    watch: &dyn Watch,
) -> Result<Result<(), NotTaken>> {
    loop {
        // It is asked first whether it has ended: what it did is seen then.
        let ended = child.try_wait().ok().flatten();
        let now = store.record(&before.id)?.unwrap_or_else(|| before.clone());
        let is_its = |holder: &Holder| now.holder != before.holder && is_of(child.id(), holder.pid);
        if now.holder.as_ref().is_some_and(is_its) || watch.cancelled() {
            return Ok(Ok(()));
        }
        if let Some(status) = ended {
            return Ok(Err(NotTaken { now, status }));
        }
        std::thread::sleep(LOOK);
    }
}

/// Whether a process is one that was started here, or was started by it: the program may be a script around the real one.
fn is_of(child: u32, process: u32) -> bool {
    #[cfg(unix)]
    if child != process {
        use rustix::process::{Pid, getpgid};
        let number = |pid: u32| i32::try_from(pid).ok().and_then(Pid::from_raw);
        return number(child).is_some_and(|group| getpgid(number(process)).is_ok_and(|own| own == group));
    }
    child == process
}

/// What a process said that ended too early: the line that says why, or else the last one.
fn final_events(file: &Path, from: u64) -> String {
    let text = fs::read(file).unwrap_or_default();
    let text = text.get(usize::try_from(from).unwrap_or(usize::MAX)..).unwrap_or_default();
    let text = String::from_utf8_lossy(text);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines.clone().find(|line| line.starts_with("error")).or_else(|| lines.next_back());
    line.map_or_else(String::new, |line| format!(": {}", printable(line)))
}

/// This program, if it is the one that can run threads, or the one on the PATH.
fn own_program(project: &Path) -> Option<PathBuf> {
    let is_cuebook = |path: &PathBuf| path.file_stem().is_some_and(|stem| stem == "cuebook");
    let own = std::env::current_exe().ok().filter(is_cuebook);
    own.or_else(|| crate::environment::which("cuebook", project).map(PathBuf::from))
}
