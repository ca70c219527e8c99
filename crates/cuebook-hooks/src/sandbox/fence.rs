//! The protections.
//!
//! They go up in two steps: what has to be there before the program's process exists ([`Fence::outside`]), and what that
//! process does to itself before it becomes the program ([`Fence::inside`]).

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use rustix::process::{Pid, Signal};

use super::Protection;
use super::wire::{self, Fenced, Order};

/// A fence while it is put up.
pub struct Fence {
    fenced: Fenced,
}

impl Fence {
    pub fn outside(_order: &Order, _control: &UnixStream) -> Fence {
        let missing = Protection::ALL.map(|protection| (protection, "not built yet".to_owned())).to_vec();
        Fence { fenced: Fenced { missing, temp: None } }
    }

    /// Completes the fence. Gives what it is made of, and variables for the environment.
    pub fn inside(self, order: &Order) -> io::Result<(Fenced, Vec<(&'static str, PathBuf)>)> {
        std::env::set_current_dir(order.folder())
            .map_err(|error| wire::explain(error, order.folder().display()))?;
        Ok((self.fenced, Vec::new()))
    }

    /// Ends the program and everything that it has started.
    pub fn end(&self, pid: Pid) {
        let _ = rustix::process::kill_process(pid, Signal::KILL);
    }

    /// Removes what would be left behind.
    pub fn clean_up(&self) {}
}
