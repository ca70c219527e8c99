//! Running `git` for a limited time.

use std::io::Read;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use cuebook::{Error, Result};

use super::{failed, limit_files, not_started};

/// How long one question may take. Git reads objects of a local repository, which takes milliseconds.
pub const LONGEST: Duration = Duration::from_secs(30);
/// What `git` may say at most when it is asked for a list.
const MAX_BYTES: u64 = 64 << 20;
/// How often a program that has said everything is asked whether it has ended.
const LOOK: Duration = Duration::from_millis(1);

/// A program with its pipes. It is ended when its time is over.
pub struct Running {
    /// What it reads.
    pub stdin: Option<ChildStdin>,
    /// What it prints.
    pub stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    child: Arc<Mutex<Child>>,
    is_late: Arc<AtomicBool>,
    longest: Duration,
    /// The watch ends when this is dropped.
    _done: Sender<()>,
}

impl Running {
    /// Starts a program.
    pub fn start(command: &mut Command, longest: Duration) -> Result<Running> {
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(command, 0);
        let mut child = command.spawn().map_err(|error| not_started(&error))?;
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        limit_files(&child);
        let child = Arc::new(Mutex::new(child));
        let is_late = Arc::new(AtomicBool::new(false));
        let (done, ended) = mpsc::channel::<()>();
        let (watched, late) = (child.clone(), is_late.clone());
        thread::spawn(move || {
            if ended.recv_timeout(longest) == Err(RecvTimeoutError::Timeout) {
                late.store(true, Ordering::Release);
                end(&watched);
            }
        });
        Ok(Running { stdin, stdout, stderr, child, is_late, longest, _done: done })
    }

    /// Ends it at once.
    pub fn end(&self) {
        end(&self.child);
    }

    /// Waits until it has ended.
    pub fn wait(&self) -> Result<ExitStatus> {
        loop {
            // Held for a moment only: the watch must be able to end it.
            let status = self.child.lock().unwrap_or_else(PoisonError::into_inner).try_wait();
            match status.map_err(|error| not_started(&error))? {
                Some(_) if self.is_late.load(Ordering::Acquire) => return Err(too_slow(self.longest)),
                Some(status) => return Ok(status),
                None => thread::sleep(LOOK),
            }
        }
    }
}

fn end(child: &Mutex<Child>) {
    let mut child = child.lock().unwrap_or_else(PoisonError::into_inner);
    #[cfg(unix)]
    // Only of a program that has not been waited for: its number may be another's by then.
    if let (Ok(None), Some(group)) =
        (child.try_wait(), rustix::process::Pid::from_raw(child.id().cast_signed()))
    {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill();
}

fn too_slow(longest: Duration) -> Error {
    failed(
        format!("git did not answer within {} seconds", longest.as_secs()),
        "check that git works here: a file may be a pipe, or on a disk or a server that is gone",
    )
}

/// Asks a question and waits for all of the answer.
pub fn ask(command: &mut Command, longest: Duration) -> Result<Output> {
    let mut running = Running::start(command, longest)?;
    let complaint = running.stderr.take().map(|stderr| thread::spawn(move || read(stderr, 1 << 16)));
    let stdout = running.stdout.take().map(|stdout| read(stdout, MAX_BYTES + 1)).unwrap_or_default();
    let is_too_much = stdout.len() as u64 > MAX_BYTES;
    if is_too_much {
        // It must not wait for a reader that has left.
        running.end();
    }
    let status = running.wait()?;
    let stderr = complaint.and_then(|complaint| complaint.join().ok()).unwrap_or_default();
    if is_too_much {
        return Err(failed("the repository has too many files to list", "compare two files instead"));
    }
    Ok(Output { status, stdout, stderr })
}

fn read(from: impl Read, most: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    // What could not be read to its end shows in what it says, or in how the program ended.
    let _ = from.take(most).read_to_end(&mut bytes);
    bytes
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::Stdio;

    use super::*;

    #[test]
    fn a_program_that_does_not_answer_is_ended_with_its_children() {
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 600 & sleep 600"]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let error = ask(&mut command, Duration::from_millis(50)).unwrap_err();
        assert!(error.to_string().contains("git did not answer"), "{error}");
    }
}
