//! What a thread hears: its model as it speaks, and requests to stop one of its calls.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use cuebook::chat::reply::Chunk;
use serde_json::json;

use super::launch::ThreadKind;
use super::managed::Managed;
use super::{Kind, ThreadId};
use crate::provider::{Listener, RetryDecision, RetryNotice, Stop};
use crate::watch::{Activity, Watch};

/// How often text that comes is written to the log, for readers in other processes.
const SPOKEN: Duration = Duration::from_millis(500);

/// Hooks may take as long when the time of their thread is over, or almost: a hook may exist for just that. If the thread
/// may not take as long itself, then its hooks may take as long as it.
const HOOKS: Duration = Duration::from_secs(60);

/// Hears the answer of one turn.
pub(super) struct ModelListener<'m, 'e>(pub(super) &'m Managed<'e>);

impl Listener for ModelListener<'_, '_> {
    fn chunk(&self, chunk: &Chunk) {
        let thread = self.0;
        match chunk {
            Chunk::Text(text) => {
                thread.watch.activity(&thread.id, &Activity::Text(text));
                let mut state = thread.state();
                state.answer.spoken.push_str(text);
                if state.answer.spoke.elapsed() < SPOKEN {
                    return;
                }
                state.answer.spoke = Instant::now();
                let spoken = std::mem::take(&mut state.answer.spoken);
                drop(state);
                // If the answer is never known, at least this much of it came and is paid for.
                let tokens = thread.tokens_in(&spoken);
                let spend = thread.price_of(0, tokens).nanos();
                thread
                    .keep(Kind::TokenDelta, json!({"text": spoken, "tokens": tokens, "spend_nanos": spend}));
                // The process that lost the thread learns of it at the next barrier.
                let _ = thread.write();
            }
            Chunk::Thinking(text) => thread.watch.activity(&thread.id, &Activity::Thinking(text)),
            _ => {}
        }
    }

    fn retry(&self, again: &RetryNotice<'_>) -> RetryDecision {
        self.0.again(again)
    }

    fn cancelled(&self) -> bool {
        self.0.cancelled()
    }

    fn accepts_empty_answer(&self) -> bool {
        // A directive's model that says nothing is asked to continue.
        self.0.launch.kind == ThreadKind::Directive
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
    /// When it stops, if that is not when the thread's time is over.
    until: Option<Instant>,
    since: OnceLock<Instant>,
}

impl Watch for Watching<'_, '_> {
    fn cancelled(&self) -> bool {
        // A tool may take no more time than the thread has.
        let is_late = self.until.map_or_else(|| self.thread.is_late(), |until| Instant::now() >= until);
        let cancelled = is_late || self.thread.cancelled();
        if cancelled {
            self.since.get_or_init(Instant::now);
        }
        cancelled
    }

    fn stop(&self) -> Option<Stop> {
        let stop = ModelListener(self.thread).stop()?;
        match self.until.or_else(|| Instant::now().checked_add(self.thread.time_left())) {
            // What a child waits for is no more in time than its parent.
            Some(deadline) => Some(Stop::when(move || stop.is_set() || Instant::now() >= deadline)),
            None => Some(stop),
        }
    }

    fn impatient(&self) -> bool {
        self.thread.watch.impatient() || self.since.get().is_some_and(|since| since.elapsed() > PATIENCE)
    }

    fn leaving(&self) -> bool {
        self.thread.watch.leaving()
    }

    fn progress(&self, message: &str) {
        self.thread.watch.progress(message);
    }

    fn activity(&self, thread: &ThreadId, activity: &Activity<'_>) {
        self.thread.watch.activity(thread, activity);
    }
}

impl<'e> Managed<'e> {
    /// A watch for a call that the thread makes.
    pub(super) fn watching(&self) -> Watching<'_, 'e> {
        Watching { thread: self, until: None, since: OnceLock::new() }
    }

    /// A watch for what a hook does. It may just be about the time that is over, so it has a time of its own.
    pub(super) fn watching_hook(&self, until: Option<Instant>) -> Watching<'_, 'e> {
        Watching { until, ..self.watching() }
    }

    /// How much is left of its time.
    pub(super) fn time_left(&self) -> Duration {
        self.launch.limits.duration.saturating_sub(self.cost().elapsed)
    }

    /// How long the hooks of one moment may take together.
    pub(super) fn time_for_hooks(&self) -> Duration {
        self.time_left().max(HOOKS.min(self.launch.limits.duration))
    }
}
