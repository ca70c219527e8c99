//! Processes of this machine that others have started: found by a variable of their environment, and stopped.
//!
//! Only Linux says what is in the environment of a process, and only of those of the same user. Elsewhere nothing is found.

use std::time::Duration;

use crate::record::Holder;

/// How long a process may take to end by itself.
const GRACE: Duration = Duration::from_millis(500);
/// How long the system may take to end it.
const END: Duration = Duration::from_secs(2);
/// How often it is looked whether processes have ended.
const LOOK: Duration = Duration::from_millis(10);

/// A process that carries a mark.
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux is asked"))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MarkedProcess {
    pid: u32,
    /// The group that it is in.
    group: u32,
    /// The value of the variable.
    pub(crate) mark: String,
}

/// A message for a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProcessSignal {
    /// To continue after a stop.
    Wake,
    /// To end.
    End,
    /// Nothing any more.
    Kill,
}

/// The processes whose environment has a variable, except for those of the group of this process: its caller must not be
/// stopped by it.
pub(crate) fn marked(variable: &str) -> Vec<MarkedProcess> {
    #[cfg(target_os = "linux")]
    {
        linux::marked(variable)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = variable;
        Vec::new()
    }
}

/// Stops the processes that are found, with their groups: they are asked to end, and after a grace they are ended. Returns the
/// marks that they had, each once.
pub(crate) fn stop(find: &dyn Fn() -> Vec<MarkedProcess>) -> Vec<String> {
    let mut marks: Vec<String> = Vec::new();
    let mut push = ProcessSignal::End;
    let mut began = std::time::Instant::now();
    let mut reported: Vec<u32> = Vec::new();
    loop {
        let found = find();
        if found.is_empty() {
            return marks;
        }
        for process in &found {
            if !marks.contains(&process.mark) {
                marks.push(process.mark.clone());
            }
        }
        match push {
            ProcessSignal::End if began.elapsed() >= GRACE => {
                push = ProcessSignal::Kill;
                began = std::time::Instant::now();
            }
            ProcessSignal::Kill if began.elapsed() >= END => {
                tracing::warn!(count = found.len(), "cannot stop tools that were left running");
                return marks;
            }
            _ => {}
        }
        // Processes that were asked to end are not asked again; those that they have started meanwhile are.
        let new: Vec<&MarkedProcess> =
            found.iter().filter(|one| push == ProcessSignal::Kill || !reported.contains(&one.pid)).collect();
        reported.extend(new.iter().map(|one| one.pid));
        #[cfg(target_os = "linux")]
        linux::push_groups(&new, &found, push);
        std::thread::sleep(LOOK);
    }
}

/// Sends a signal to the process that holds a thread, if it is the right one. Says whether it was sent.
pub(crate) fn push(holder: &Holder, push: ProcessSignal) -> bool {
    #[cfg(target_os = "linux")]
    {
        linux::push(holder, push)
    }
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (holder, push);
        false
    }
}

/// Whether a process is one of our program, and not one with other work.
pub(crate) fn is_cuebook(pid: u32) -> bool {
    // Where its program lies is not shown to others: it keeps its environment from them.
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim_end() == "cuebook")
}

#[cfg(target_os = "linux")]
mod linux {
    use std::fs;

    use rustix::process::{
        Pid, PidfdFlags, Signal, getpgrp, kill_process, kill_process_group, pidfd_open, pidfd_send_signal,
    };

    use super::{MarkedProcess, ProcessSignal};
    use crate::record::{Holder, process_stat};

    pub(super) fn marked(variable: &str) -> Vec<MarkedProcess> {
        let start = format!("{variable}=");
        let (own, own_group) = (std::process::id(), getpgrp().as_raw_nonzero().get().unsigned_abs());
        let pids = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let look = |pid: u32| {
            let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
            let value =
                environ.split(|byte| *byte == 0).find_map(|entry| entry.strip_prefix(start.as_bytes()))?;
            let stat = process_stat(pid).filter(|stat| stat.runs() && stat.group != own_group)?;
            Some(MarkedProcess { pid, group: stat.group, mark: String::from_utf8_lossy(value).into_owned() })
        };
        pids.filter(|pid| *pid != own).filter_map(look).collect()
    }

    pub(super) fn push_groups(processes: &[&MarkedProcess], all: &[MarkedProcess], push: ProcessSignal) {
        let number = |pid: u32| Pid::from_raw(i32::try_from(pid).ok().filter(|pid| *pid > 1)?);
        let signals: &[Signal] = match push {
            ProcessSignal::Wake => &[Signal::CONT],
            // One that was stopped hears of it only when it goes on.
            ProcessSignal::End => &[Signal::TERM, Signal::CONT],
            ProcessSignal::Kill => &[Signal::KILL],
        };
        let mut groups: Vec<u32> = Vec::new();
        for process in processes {
            // A group is the tool's own if a tool leads it, or has led it. Whatever else a tool has joined is not ended with it.
            let is_own =
                all.iter().any(|other| other.pid == process.group) || process_stat(process.group).is_none();
            if is_own && groups.contains(&process.group) {
                continue;
            }
            for signal in signals {
                let _ = match is_own {
                    true => number(process.group).map(|group| kill_process_group(group, *signal)),
                    false => number(process.pid).map(|pid| kill_process(pid, *signal)),
                };
            }
            groups.extend(is_own.then_some(process.group));
        }
    }

    pub(super) fn push(holder: &Holder, push: ProcessSignal) -> bool {
        if holder.pid == std::process::id() {
            return false;
        }
        let Some(pid) = i32::try_from(holder.pid).ok().and_then(Pid::from_raw) else { return false };
        // What is held here stays this process, also when its number is used again.
        let Ok(process) = pidfd_open(pid, PidfdFlags::empty()) else { return false };
        let Some(stat) = process_stat(holder.pid).filter(|stat| stat.began == holder.began) else {
            return false;
        };
        let signals: &[Signal] = match push {
            ProcessSignal::Wake if !"Tt".contains(stat.state) => return false,
            ProcessSignal::Wake => &[Signal::CONT],
            ProcessSignal::End => &[Signal::TERM, Signal::CONT],
            ProcessSignal::Kill => &[Signal::KILL],
        };
        signals.iter().all(|signal| pidfd_send_signal(&process, *signal).is_ok())
    }
}
