//! What a thread hears: its model as it speaks, and whoever wants one of its calls to stop.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cuebook::Error;
use cuebook::chat::reply::Chunk;
use serde_json::json;

use super::managed::Managed;
use super::{Kind, ThreadId};
use crate::provider::{Listener, Stop};
use crate::watch::{News, Watch};

/// How often text that comes is written to the log, for whoever follows it from another process.
const SPOKEN: Duration = Duration::from_millis(500);

/// Hears the answer of one turn.
pub(super) struct Hearing<'m, 'e>(pub(super) &'m Managed<'e>);

impl Listener for Hearing<'_, '_> {
    fn chunk(&self, chunk: &Chunk) {
        let thread = self.0;
        match chunk {
            Chunk::Text(text) => {
                thread.watch.news(&thread.id, &News::Text(text));
                let mut state = thread.state();
                state.spoken.push_str(text);
                if state.spoke.elapsed() < SPOKEN {
                    return;
                }
                state.spoke = Instant::now();
                let spoken = std::mem::take(&mut state.spoken);
                drop(state);
                thread.keep(Kind::TokenDelta, json!({"text": spoken}));
                // Whoever lost the thread hears of it at the next barrier.
                let _ = thread.write();
            }
            Chunk::Thinking(text) => thread.watch.news(&thread.id, &News::Thinking(text)),
            _ => {}
        }
    }

    fn retry(&self, attempt: u32, pause: Duration, why: &Error) {
        let thread = self.0;
        let why = why.diagnostic().message.clone();
        thread.keep(
            Kind::Retry,
            json!({"attempt": attempt, "pause_seconds": pause.as_secs_f64(), "error": why}),
        );
        let _ = thread.write();
        thread.watch.news(&thread.id, &News::Retry { attempt, pause, why });
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }

    fn stop(&self) -> Option<Stop> {
        let (elsewhere, here) = (self.0.cancelled.clone(), self.0.watch.stop()?);
        Some(Stop::when(move || elsewhere.load(Ordering::SeqCst) || here.is_set()))
    }
}

/// How long a tool may take to stop by itself.
const PATIENCE: Duration = Duration::from_millis(400);

/// Watches the calls of a thread: they stop when the thread is to stop, and do not take their time about it.
pub(super) struct Watching<'m, 'e> {
    thread: &'m Managed<'e>,
    /// Whether it stops when the thread's time is over.
    in_time: bool,
    since: OnceLock<Instant>,
}

impl Watch for Watching<'_, '_> {
    fn cancelled(&self) -> bool {
        // A tool may take no more time than the thread has.
        let cancelled = (self.in_time && self.thread.is_late()) || self.thread.cancelled();
        if cancelled {
            self.since.get_or_init(Instant::now);
        }
        cancelled
    }

    fn stop(&self) -> Option<Stop> {
        let stop = Hearing(self.thread).stop()?;
        let left = self.thread.launch.limits.duration.saturating_sub(self.thread.cost().elapsed);
        match Instant::now().checked_add(left).filter(|_| self.in_time) {
            // What a child waits for is no more in time than its parent.
            Some(deadline) => Some(Stop::when(move || stop.is_set() || Instant::now() >= deadline)),
            None => Some(stop),
        }
    }

    fn impatient(&self) -> bool {
        self.thread.watch.impatient() || self.since.get().is_some_and(|since| since.elapsed() > PATIENCE)
    }

    fn progress(&self, message: &str) {
        self.thread.watch.progress(message);
    }

    fn news(&self, thread: &ThreadId, news: &News<'_>) {
        self.thread.watch.news(thread, news);
    }
}

impl<'e> Managed<'e> {
    /// A watch for a call that the thread makes.
    pub(super) fn watching(&self) -> Watching<'_, 'e> {
        Watching { thread: self, in_time: true, since: OnceLock::new() }
    }

    /// A watch for what a hook does. It may just be about the time that is over.
    pub(super) fn watching_hook(&self) -> Watching<'_, 'e> {
        Watching { in_time: false, ..self.watching() }
    }
}
