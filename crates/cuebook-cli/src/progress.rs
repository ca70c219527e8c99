//! How far a long batch is, for the person in front of it. A file or a pipe gets nothing of it.

use std::io::{IsTerminal, Write, stderr};
use std::time::{Duration, Instant};

/// How long nothing is shown, and how often it changes after that.
const PATIENCE: Duration = Duration::from_millis(300);

/// A line on stderr that counts.
pub struct Progress {
    what: &'static str,
    last: Instant,
    shown: bool,
}

impl Progress {
    /// Nothing is shown yet.
    pub fn new(what: &'static str) -> Progress {
        Progress { what, last: Instant::now(), shown: false }
    }

    /// So many are done, of so many.
    pub fn show(&mut self, done: usize, of: usize) {
        if !stderr().is_terminal() || (self.last.elapsed() < PATIENCE && done < of) {
            return;
        }
        if done < of {
            self.last = Instant::now();
            self.shown = true;
            let _ = write!(stderr(), "\r{} {done}/{of}", self.what);
        } else if self.shown {
            self.shown = false;
            let _ = write!(stderr(), "\r\x1b[2K");
        }
    }
}
