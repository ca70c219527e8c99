//! The caller that waits for a call: it hears of progress, and may want it to stop.

use std::time::Duration;

use crate::record::{Cost, Event, ThreadId};
use crate::stop::Stop;

/// What a thread does at the moment, for observers.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Activity<'a> {
    /// An event was written.
    Event(&'a Event),
    /// The model said something more.
    Text(&'a str),
    /// The model thought something more.
    Thinking(&'a str),
    /// How far it is.
    Pulse {
        /// What it used so far.
        cost: Cost,
        /// What it waits for: the model, or the names of tools.
        doing: String,
    },
    /// A request failed and is sent again after a pause.
    Retry {
        /// How often it was sent.
        attempt: u32,
        /// The pause.
        pause: Duration,
        /// Why it failed.
        why: String,
    },
}

/// Watches a call.
pub trait Watch: Sync {
    /// Whether the call is to stop. It is asked often, so it should only look at something.
    fn cancelled(&self) -> bool {
        false
    }

    /// The same question in a form that can be kept while a request waits. A watch that has none is asked by a thread of its own
    /// for as long as a model answers.
    fn stop(&self) -> Option<Stop> {
        None
    }

    /// Whether the request to stop does not wait until it has ended on its own.
    fn impatient(&self) -> bool {
        false
    }

    /// Whether it is this process that is to end, and not the thread: what runs is stopped as if the
    /// thread were [cancelled](Watch::cancelled), and the thread is interrupted, so that another process continues it.
    fn leaving(&self) -> bool {
        false
    }

    /// Whether a thread is to stop before it calls its model again, because its process is to end: nothing that runs is stopped, and
    /// the thread is interrupted, so that another process continues it.
    fn draining(&self, _thread: &ThreadId) -> bool {
        false
    }

    /// Says about once in a second that the call still runs, and what it does.
    fn progress(&self, _message: &str) {}

    /// Tells what a thread does, its own or one below it.
    fn activity(&self, _thread: &ThreadId, _news: &Activity<'_>) {}
}

/// There is no observer.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ignore;

impl Watch for Ignore {
    fn stop(&self) -> Option<Stop> {
        Some(Stop::when(|| false))
    }
}
