//! Watches a fenced program, and ends it.

use std::path::PathBuf;
use std::process::{Child, ExitStatus};
use std::time::{Duration, Instant};

/// How long the launcher may take to clean up after a program that was killed.
const PATIENCE: Duration = Duration::from_secs(5);

/// A fenced program as a process, with its launcher. Dropping it ends the program and everything that it has started.
#[derive(Debug)]
pub struct Process {
    launcher: Child,
    /// The number of the program, as we see it.
    pid: i32,
    /// A handle on the program that stays right when its number is given to another.
    #[cfg(target_os = "linux")]
    program: Option<std::os::fd::OwnedFd>,
    /// Whether the program is the first process of a namespace, so that whatever loses its parent in there becomes its child.
    #[cfg(target_os = "linux")]
    alone: bool,
    /// A temporary folder to remove at the end.
    temp: Option<PathBuf>,
    ending: Option<Ending>,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum Ending {
    /// By itself, with this code.
    Exited(i32),
    /// By this signal: 9 is what the system sends to a program that uses more memory or CPU time than there is, and what
    /// [`Process::kill`] sends.
    Signal(i32),
}

impl std::fmt::Display for Ending {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Ending::Exited(code) => write!(f, "exited with {code}"),
            Ending::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "was killed by {name}"),
                None => write!(f, "was killed by signal {signal}"),
            },
        }
    }
}

/// The name of a signal that ends programs. These numbers are the same on every Unix.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        4 => "SIGILL",
        6 => "SIGABRT",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        _ => return None,
    })
}

impl Process {
    #[cfg(unix)]
    pub(super) fn new(launcher: Child, pid: i32, alone: bool, temp: Option<PathBuf>) -> Process {
        #[cfg(target_os = "linux")]
        let program = linux::handle(pid, launcher.id());
        #[cfg(not(target_os = "linux"))]
        let _ = alone;
        Process {
            launcher,
            pid,
            #[cfg(target_os = "linux")]
            program,
            #[cfg(target_os = "linux")]
            alone,
            temp,
            ending: None,
        }
    }

    /// The number of the program, as we see it.
    pub fn id(&self) -> i32 {
        self.pid
    }

    /// The number of the launcher, which ends right after the program.
    pub fn launcher_id(&self) -> u32 {
        self.launcher.id()
    }

    /// Asks a tool, and what is in its group, to end.
    pub fn terminate(&self) {
        #[cfg(target_os = "linux")]
        linux::terminate_children(self.pid);
    }

    /// Whether the program has exactly one thread and no children now. `false` when in doubt.
    pub fn is_quiet(&self) -> bool {
        #[cfg(target_os = "linux")]
        return linux::is_quiet(self.pid, if self.alone { None } else { Some(self.launcher.id()) });
        #[cfg(not(target_os = "linux"))]
        return false;
    }

    /// Waits until the program has ended, but no longer than this; `None` if it has not.
    pub fn wait(&mut self, timeout: Duration) -> Option<Ending> {
        // A time too far away to be written is the same as none.
        let deadline = Instant::now().checked_add(timeout);
        let mut pause = Duration::from_micros(200);
        while self.ending.is_none() {
            match self.launcher.try_wait() {
                Ok(Some(status)) => self.finish(status),
                Ok(None) => {
                    let left = deadline
                        .map_or(timeout, |deadline| deadline.saturating_duration_since(Instant::now()));
                    if left.is_zero() {
                        return None;
                    }
                    std::thread::sleep(pause.min(left));
                    pause = (pause * 2).min(Duration::from_millis(10));
                }
                // Other code has waited for our child; it is gone, and its end is unknown.
                Err(_) => self.ending = Some(Ending::Signal(9)),
            }
        }
        self.ending
    }

    /// Ends the program and everything that it has started.
    pub fn kill(&mut self) -> Ending {
        if let Some(ending) = self.wait(Duration::ZERO) {
            return ending;
        }
        // The launcher sees that the program has ended, ends what is left of its children, and passes on how it ended.
        if self.kill_program()
            && let Some(ending) = self.wait(PATIENCE)
        {
            return ending;
        }
        let _ = self.launcher.kill();
        match self.launcher.wait() {
            Ok(status) => self.finish(status),
            Err(_) => self.ending = Some(Ending::Signal(9)),
        }
        self.ending.unwrap_or(Ending::Signal(9))
    }

    /// Sends the signal that nothing survives. `false` if it could not be sent; a program that has ended already is no failure.
    #[cfg(unix)]
    fn kill_program(&self) -> bool {
        use rustix::io::Errno;
        use rustix::process::{Pid, Signal};

        #[cfg(target_os = "linux")]
        let sent = match (&self.program, Pid::from_raw(self.pid)) {
            (Some(program), _) => rustix::process::pidfd_send_signal(program, Signal::KILL),
            // Linux before 5.3 has no such handles.
            (None, Some(pid)) if linux::is_child(self.pid, self.launcher.id()) => {
                rustix::process::kill_process(pid, Signal::KILL)
            }
            (None, _) => Ok(()),
        };
        // The program leads a group of its own.
        #[cfg(not(target_os = "linux"))]
        let sent = Pid::from_raw(self.pid)
            .map_or(Ok(()), |pid| rustix::process::kill_process_group(pid, Signal::KILL));
        matches!(sent, Ok(()) | Err(Errno::SRCH))
    }

    #[cfg(not(unix))]
    fn kill_program(&self) -> bool {
        false
    }

    /// The launcher has ended, and passes on how the program did.
    fn finish(&mut self, status: ExitStatus) {
        #[cfg(unix)]
        let signal = std::os::unix::process::ExitStatusExt::signal(&status);
        #[cfg(not(unix))]
        let signal = None;
        self.ending = Some(match (status.code(), signal) {
            (Some(code), _) => Ending::Exited(code),
            (None, signal) => Ending::Signal(signal.unwrap_or(9)),
        });
        if let Some(temp) = self.temp.take() {
            let _ = std::fs::remove_dir_all(temp);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::os::fd::OwnedFd;
    use std::os::unix::fs::MetadataExt;

    use rustix::process::{Pid, PidfdFlags, pidfd_open};

    /// A handle on the program, if that number is still the launcher's child.
    pub fn handle(pid: i32, launcher: u32) -> Option<OwnedFd> {
        let handle = pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok()?;
        is_child(pid, launcher).then_some(handle)
    }

    pub fn is_child(pid: i32, parent: u32) -> bool {
        let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
        // The second field is a name in parentheses, which may contain anything.
        let stat = String::from_utf8_lossy(&stat);
        let field = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1));
        field.is_some_and(|field| field == parent.to_string())
    }

    /// Sends SIGTERM to the groups that the children of a tool's first process lead. That process itself ignores the signal.
    pub fn terminate_children(first: i32) {
        let children = std::fs::read_to_string(format!("/proc/{first}/task/{first}/children"));
        for child in children.unwrap_or_default().split_whitespace() {
            if let Some(group) = child.parse().ok().and_then(Pid::from_raw) {
                let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
            }
        }
    }

    pub fn is_quiet(pid: i32, reaper: Option<u32>) -> bool {
        // A folder has two links and one for each folder in it; in this one there is a folder for each thread.
        let threads = std::fs::metadata(format!("/proc/{pid}/task")).map(|task| task.nlink());
        if !matches!(threads, Ok(3)) {
            return false;
        }
        let children =
            |pid: &dyn std::fmt::Display| std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
        let none = children(&pid).is_ok_and(|children| children.trim().is_empty());
        // Without a namespace, what has lost its parent becomes the launcher's child.
        let orphans = |reaper| children(&reaper).is_ok_and(|children| children.trim() == pid.to_string());
        none && reaper.is_none_or(orphans)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_reads_as_the_end_of_a_sentence() {
        assert_eq!(Ending::Exited(3).to_string(), "exited with 3");
        assert_eq!(Ending::Signal(9).to_string(), "was killed by SIGKILL");
        assert_eq!(Ending::Signal(64).to_string(), "was killed by signal 64");
    }
}
