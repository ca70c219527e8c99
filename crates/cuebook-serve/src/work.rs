//! Work that takes time, away from the thread that speaks with clients.
//!
//! Everything that touches files or runs code goes through [`blocking`], on tokio's pool for blocking work. A call of a tool
//! goes through [`watched`], which also passes progress on and stops waiting when the client does. Only what reads one small
//! file is done [`at_once`]: the way to another thread and back takes longer than the work.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rmcp::model::{ErrorData, ProgressNotificationParam, ProgressToken};
use rmcp::service::{RequestContext, RoleServer};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::Watch;
use crate::faults::fault;
use crate::request_slots::{RequestSlot, RequestSlots};

/// Runs work on the pool when it is its turn. If it panics, the client gets an internal error, and the server goes on.
pub(crate) async fn blocking<T: Send + 'static>(
    request_slots: &RequestSlots,
    work: impl FnOnce() -> Result<T, ErrorData> + Send + 'static,
) -> Result<T, ErrorData> {
    let turn = request_slots.read().await.map_err(|error| fault(&error))?;
    let work = move || {
        let _turn = turn;
        work()
    };
    tokio::task::spawn_blocking(work).await.unwrap_or_else(|_| Err(broken()))
}

/// Does what takes a few microseconds where it is asked for. If it panics, the client hears of an internal error.
pub(crate) fn at_once<T>(work: impl FnOnce(&dyn Watch) -> T) -> Result<T, ErrorData> {
    std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&NoProgress))).map_err(|_| broken())
}

/// Reports no progress and cannot be cancelled.
struct NoProgress;

impl Watch for NoProgress {
    fn progress(&self, _: f64, _: Option<f64>, _: &str) {}

    fn is_cancelled(&self) -> bool {
        false
    }
}

pub(crate) fn broken() -> ErrorData {
    ErrorData::internal_error("the request failed with an internal error", None)
}

/// Progress that is on its way to the client.
pub(crate) struct Step {
    done: f64,
    total: Option<f64>,
    pub(crate) message: String,
}

/// Steps that may wait for a client that is slow to read; further ones are left out.
const WAITING: usize = 32;
/// Between two steps that are reported.
const PAUSE: Duration = Duration::from_millis(20);

/// One call, as the work sees it.
struct Call {
    cancelled: Arc<AtomicBool>,
    /// Absent if the client wants to hear of no progress.
    steps: Option<mpsc::Sender<Step>>,
    last: Mutex<Option<(f64, Instant)>>,
}

impl Watch for Call {
    fn progress(&self, done: f64, total: Option<f64>, message: &str) {
        let Some(steps) = &self.steps else { return };
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_end = total.is_some_and(|total| done >= total);
        // The protocol wants numbers that grow.
        let goes_on = match *last {
            None => done.is_finite(),
            Some((before, at)) => done > before && (is_end || at.elapsed() >= PAUSE),
        };
        if goes_on && steps.try_send(Step { done, total, message: message.to_owned() }).is_ok() {
            *last = Some((done, Instant::now()));
        }
    }

    fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }
}

/// Tells the work that there is no waiter any more, however the waiting ended.
struct CancelOnDrop(Arc<AtomicBool>);

/// Work on the pool. It is asked to stop when this is dropped.
pub(crate) struct Background<T> {
    pub(crate) work: JoinHandle<T>,
    pub(crate) steps: mpsc::Receiver<Step>,
    _guard: CancelOnDrop,
}

/// Runs work on the pool, with or without steps of progress. Work that was given up keeps its turn until it has ended.
pub(crate) fn in_background<T: Send + 'static>(
    has_steps: bool,
    turn: RequestSlot,
    work: impl FnOnce(&dyn Watch) -> T + Send + 'static,
) -> Background<T> {
    let cancelled = Arc::new(AtomicBool::new(false));
    let guard = CancelOnDrop(cancelled.clone());
    let (sender, steps) = mpsc::channel(WAITING);
    let call = Call { cancelled, steps: has_steps.then_some(sender), last: Mutex::default() };
    let work = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        work(&call)
    });
    Background { work, steps, _guard: guard }
}

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs the work of a call and tells the client of its progress, if the client asked for that. Ends at once when the client
/// cancels, or the server is asked to end; the work is notified, and what it still answers is dropped.
pub(crate) async fn watched<T: Send + 'static>(
    context: &RequestContext<RoleServer>,
    stop: &CancellationToken,
    turn: RequestSlot,
    work: impl FnOnce(&dyn Watch) -> T + Send + 'static,
) -> Result<T, ErrorData> {
    let token = context.meta.get_progress_token();
    let mut running = in_background(token.is_some(), turn, work);
    loop {
        tokio::select! {
            // Progress first, so that none comes after the answer.
            biased;
            Some(step) = running.steps.recv(), if token.is_some() => send_progress(context, token.as_ref(), step).await,
            done = &mut running.work => {
                while let Ok(step) = running.steps.try_recv() {
                    send_progress(context, token.as_ref(), step).await;
                }
                return done.map_err(|_| broken());
            }
            () = context.ct.cancelled() => return Err(gave_up()),
            () = stop.cancelled() => return Err(gave_up()),
        }
    }
}

/// Waits for the turn of a call, as long as the client does. The inner error is for the caller of the tool.
pub(crate) async fn turn(
    context: &RequestContext<RoleServer>,
    stop: &CancellationToken,
    request_slots: &RequestSlots,
) -> Result<cuebook::Result<RequestSlot>, ErrorData> {
    tokio::select! {
        turn = request_slots.call() => Ok(turn),
        () = context.ct.cancelled() => Err(gave_up()),
        () = stop.cancelled() => Err(gave_up()),
    }
}

pub(crate) fn gave_up() -> ErrorData {
    ErrorData::internal_error("the request was cancelled", None)
}

async fn send_progress(context: &RequestContext<RoleServer>, token: Option<&ProgressToken>, step: Step) {
    let Some(token) = token else { return };
    let mut progress = ProgressNotificationParam::new(token.clone(), step.done);
    progress.total = step.total;
    if !step.message.is_empty() {
        progress.message = Some(step.message);
    }
    // If the client cannot be notified, sending the answer fails too and reports it.
    let _ = context.peer.notify_progress(progress).await;
}
