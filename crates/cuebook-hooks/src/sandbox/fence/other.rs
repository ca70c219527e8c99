//! The fence on a Unix that is not Linux: limits, and a group of processes of its own. Everything else is missing.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::Path;

use rustix::process::Pid;

use super::{RunningFence, end, limits, wanted};
use crate::sandbox::Protection;
use crate::sandbox::wire::{self, Fenced, Order};

/// A fence while it is put up, and while it stands.
pub struct Fence;

impl Fence {
    /// Puts up what has to be there before the program's process exists.
    pub fn outside(_: &Order, _: &UnixStream) -> io::Result<Fence> {
        Ok(Fence)
    }

    /// Completes the fence, in the process that becomes the program.
    pub fn inside(self, order: &Order) -> io::Result<RunningFence> {
        rustix::process::setsid()?;
        for path in order.readable() {
            path.metadata()
                .map_err(|error| wire::explain(error, format_args!("cannot show {}", path.display())))?;
        }
        std::env::set_current_dir(order.folder()).map_err(|error| {
            wire::explain(error, format_args!("cannot start in {}", order.folder().display()))
        })?;
        let mut missing: Vec<(Protection, String)> = [
            (Protection::View, "views of the file system"),
            (Protection::Files, "rules for files"),
            (Protection::Network, "rules for the network"),
            (Protection::Processes, "namespaces of processes"),
            (Protection::ProcessLimit, "limits for groups of processes"),
            (Protection::SystemCalls, "filters for system calls"),
            (Protection::Privileges, "way to drop privileges permanently"),
        ]
        .map(|(protection, what)| (protection, format!("this system has no {what} that Cuebook can use")))
        .to_vec();
        let limited = wanted(order, Protection::Resources).and_then(|()| limits::resources(order));
        missing.extend(limited.err().map(|why| (Protection::Resources, why)));
        Ok((Fenced { missing, temp: None }, Vec::new()))
    }

    /// Ends the program and everything that it has started.
    pub fn end(&self, pid: Pid) {
        end::group(pid);
    }

    /// Ends what the program has left behind, now that it has ended itself and been waited for.
    pub fn end_rest(&self, pid: Pid) {
        // A number is not given to another process while a group has it, and if no group has it nothing happens.
        let _ = rustix::process::kill_process_group(pid, rustix::process::Signal::KILL);
    }

    /// Removes what would be left behind.
    pub fn clean_up(&self, _: Option<&Path>) {}
}

/// There is no network of a tool's own.
pub fn own_network(_: bool, _: &UnixStream) -> io::Result<Option<u16>> {
    Ok(None)
}
