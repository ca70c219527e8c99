//! A worker: a process that runs the threads of a queue.
//!
//! It claims threads that are due and runs each as `thread resume` would, from its log. It gives signs of life, and takes the
//! threads of workers that have died. If it is asked to end it takes no more threads, and lets those that run come to a point where
//! nothing is lost. Everything that decides which worker runs a thread is in the store, so any number of workers share one.

mod job;
mod metrics;
mod scrape;

use std::collections::HashMap;
use std::net::TcpListener;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use cuebook::{Book, Error, Result};

use crate::engine::Engine;
use crate::record::{Status, ThreadId};
use crate::store::{Claim, ClaimLimits, Holder, Store, WorkerState};
use crate::thread::give_back;

use metrics::Metrics;

/// After how long without a sign of life others take the threads of a worker.
pub const DEFAULT_LEASE: Duration = Duration::from_secs(7);
/// A shorter lease would end while a busy machine only takes its time.
pub const MIN_LEASE: Duration = Duration::from_secs(2);
/// How long threads may take to come to a point where they can be left.
pub const DEFAULT_GRACE: Duration = Duration::from_secs(30);
/// So many signs of life fit into a lease.
const BEATS: u32 = 5;
/// How often a worker looks at everything, when nothing wakes it.
const LOOK: Duration = Duration::from_millis(100);
/// How often it looks for threads that are due, when nothing wakes it.
const CLAIM: Duration = Duration::from_millis(500);
/// For how long one wait for work lasts.
const LISTEN: Duration = Duration::from_millis(500);

/// How a worker works.
#[derive(Debug, Clone)]
pub struct WorkerOptions {
    /// A name for people.
    pub name: String,
    /// Where it takes threads from; the queue of the project's folder if it is `None`.
    pub queue: Option<String>,
    /// How many threads it runs at once.
    pub concurrency: usize,
    /// How many run at once on all workers.
    pub limits: ClaimLimits,
    /// After how long without a sign of life others take its threads over.
    pub lease: Duration,
    /// How long threads may take to come to a point where they can be left, after it was asked to end.
    pub grace: Duration,
    /// Whether it ends when no thread of its queue is due and none runs.
    pub until_empty: bool,
}

/// What a worker reports.
#[derive(Debug)]
#[non_exhaustive]
pub enum WorkerNote<'n> {
    /// It has claimed a thread.
    Took(&'n ThreadId),
    /// A thread rests.
    Ended(&'n crate::thread::Finished),
    /// A thread that it had claimed cannot begin, or is not its own any more.
    Lost(&'n ThreadId, &'n Error),
    /// Threads of dead workers wait for another one.
    TookOver(&'n [ThreadId]),
    /// The store cannot be used at the moment.
    Trouble(&'n Error),
    /// It takes no more threads, and so many run.
    Draining(usize),
}

/// Who asks a worker to end, and hears of what it does.
pub trait WorkerWatch: Sync {
    /// How many requests to end there were. After one: it takes no more threads, and each stops before its next request. After two: what runs is
    /// stopped.
    fn end_requests(&self) -> usize;

    /// Hears of something.
    fn note(&self, _note: &WorkerNote<'_>) {}
}

/// Runs the threads of a queue.
pub struct Worker<'w> {
    engine: &'w Engine,
    /// For threads that were queued without the sandbox, if the worker's user allows that too.
    unsandboxed: Option<&'w Engine>,
    book: Option<&'w Book>,
    options: WorkerOptions,
    metrics_at: Option<TcpListener>,
}

impl std::fmt::Debug for Worker<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Worker").field("options", &self.options).finish_non_exhaustive()
    }
}

/// What the threads of a worker share.
struct Shared<'w> {
    worker: &'w Worker<'w>,
    store: Arc<dyn Store>,
    project: std::path::PathBuf,
    queue: String,
    holder: Holder,
    watch: &'w dyn WorkerWatch,
    state: Mutex<State>,
    changed: Condvar,
    metrics: Metrics,
    /// No more threads are taken.
    draining: AtomicBool,
    /// What runs is stopped.
    ending: Arc<AtomicBool>,
    /// All is done.
    over: AtomicBool,
}

#[derive(Default)]
struct State {
    /// The threads that run, by the tokens of their claims, and what is set when they are lost.
    running: HashMap<String, Arc<AtomicBool>>,
    /// Claims that could not be given back yet.
    broken: Vec<Claim>,
    /// Something was queued.
    woken: bool,
}

impl<'w> Worker<'w> {
    /// A worker for the threads of an engine's project.
    pub fn new(engine: &'w Engine, options: WorkerOptions) -> Worker<'w> {
        Worker { engine, unsandboxed: None, book: None, options, metrics_at: None }
    }

    /// Runs threads that were queued without the sandbox without it. Others, and all if this is not called, run in the sandbox.
    pub fn unsandboxed(mut self, engine: &'w Engine) -> Worker<'w> {
        self.unsandboxed = Some(engine);
        self
    }

    /// Finds prompts in this book instead of the engine's.
    pub fn book(mut self, book: &'w Book) -> Worker<'w> {
        self.book = Some(book);
        self
    }

    /// Answers requests for metrics here.
    pub fn metrics_at(mut self, listener: TcpListener) -> Worker<'w> {
        self.metrics_at = Some(listener);
        self
    }

    /// Runs threads until it is asked to end, or its queue is empty if that is wanted.
    ///
    /// # Errors
    ///
    /// `CB724` if the store cannot be used at the beginning. Later it is tried again.
    pub fn run(&self, watch: &dyn WorkerWatch) -> Result<()> {
        let project: Option<&Path> = None;
        let store = self.engine.threads(project)?;
        let queue = match &self.options.queue {
            Some(queue) => queue.clone(),
            None => self.engine.queue_name(project)?,
        };
        let shared = Shared {
            worker: self,
            store,
            project: self.engine.project(project)?.spaces.project().to_owned(),
            queue,
            holder: Holder::of_this_process(),
            watch,
            state: Mutex::default(),
            changed: Condvar::new(),
            metrics: Metrics::default(),
            draining: AtomicBool::new(false),
            ending: Arc::default(),
            over: AtomicBool::new(false),
        };
        shared.store.worker_beats(&shared.words())?;
        std::thread::scope(|scope| {
            let over = Over(&shared);
            scope.spawn(|| shared.live());
            scope.spawn(|| shared.listen());
            if let Some(listener) = &self.metrics_at {
                scope.spawn(|| scrape::answer(listener, &shared));
            }
            shared.work(scope);
            drop(over);
        });
        shared.store.worker_ends(&shared.holder)
    }
}

/// Ends the helpers of a worker, in whatever way it ends.
struct Over<'s, 'w>(&'s Shared<'w>);

impl Drop for Over<'_, '_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::SeqCst);
    }
}

impl<'w> Shared<'w> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a sign of life says.
    fn words(&self) -> WorkerState {
        let options = &self.worker.options;
        WorkerState {
            holder: self.holder.clone(),
            name: options.name.clone(),
            queue: self.queue.clone(),
            concurrency: options.concurrency,
            lease: options.lease,
            draining: self.draining.load(Ordering::SeqCst),
        }
    }

    /// Gives signs of life, and takes the threads of workers that give none.
    fn live(&self) {
        let lease = self.worker.options.lease;
        let pause = lease / BEATS;
        // When the store last answered, and since when it has always answered.
        let (mut last, mut well, mut is_first) = (Instant::now(), None, true);
        while !self.over.load(Ordering::SeqCst) {
            match self.store.worker_beats(&self.words()) {
                Ok(known) => {
                    if !known || last.elapsed() > lease {
                        // Others may have its threads.
                        self.lose_all();
                    }
                    last = Instant::now();
                    // After trouble with the store, workers look dead that only could not reach it.
                    let well = *well.get_or_insert_with(Instant::now);
                    if is_first || well.elapsed() > lease {
                        self.take_over();
                    }
                    is_first = false;
                }
                Err(error) => {
                    (well, is_first) = (None, false);
                    self.watch.note(&WorkerNote::Trouble(&error));
                    if last.elapsed() > lease {
                        self.lose_all();
                    }
                }
            }
            self.give_back();
            let until = Instant::now() + pause;
            while Instant::now() < until && !self.over.load(Ordering::SeqCst) {
                std::thread::sleep(LOOK.min(pause));
            }
        }
    }

    fn take_over(&self) {
        match self.store.take_over() {
            Ok(taken) if taken.is_empty() => {}
            Ok(taken) => {
                self.metrics.took_over(taken.len());
                self.watch.note(&WorkerNote::TookOver(&taken));
                self.wake();
            }
            Err(error) => self.watch.note(&WorkerNote::Trouble(&error)),
        }
    }

    /// Stops what runs here, because others have it.
    fn lose_all(&self) {
        self.state().running.values().for_each(|lost| lost.store(true, Ordering::SeqCst));
    }

    /// Gives back what could not be given back before.
    fn give_back(&self) {
        let broken = std::mem::take(&mut self.state().broken);
        for claim in broken {
            if let Err(error) = give_back(&*self.store, &claim) {
                self.watch.note(&WorkerNote::Trouble(&error));
                self.state().broken.push(claim);
            }
        }
    }

    /// Wakes the worker when something is queued.
    fn listen(&self) {
        while !self.over.load(Ordering::SeqCst) {
            self.store.wait_for_work(LISTEN);
            self.wake();
        }
    }

    fn wake(&self) {
        self.state().woken = true;
        self.changed.notify_all();
    }

    /// Claims threads and runs them.
    fn work<'s>(&'s self, scope: &'s std::thread::Scope<'s, '_>) {
        let mut claimed_at: Option<Instant> = None;
        let mut drain_until: Option<Instant> = None;
        loop {
            let asked = self.watch.end_requests();
            if asked > 0 && drain_until.is_none() {
                self.draining.store(true, Ordering::SeqCst);
                drain_until = Some(Instant::now() + self.worker.options.grace);
                self.watch.note(&WorkerNote::Draining(self.state().running.len()));
                // Others see it soon, and not with the next sign of life.
                let _ = self.store.worker_beats(&self.words());
            }
            if asked > 1 || drain_until.is_some_and(|until| Instant::now() >= until) {
                self.ending.store(true, Ordering::SeqCst);
            }
            let (running, woken, broken) = {
                let mut state = self.state();
                (state.running.len(), std::mem::take(&mut state.woken), state.broken.len())
            };
            if drain_until.is_some() && running == 0 {
                self.give_back();
                return;
            }
            let free = self.worker.options.concurrency.saturating_sub(running);
            let is_time = woken || claimed_at.is_none_or(|at| at.elapsed() >= CLAIM);
            if drain_until.is_none() && free > 0 && is_time {
                claimed_at = Some(Instant::now());
                let taken = self.claim(free);
                let is_empty = taken.is_empty();
                for claim in taken {
                    self.start(scope, claim);
                }
                if is_empty && running == 0 && broken == 0 && self.is_done() {
                    return;
                }
            }
            let state = self.state();
            if !state.woken {
                drop(self.changed.wait_timeout(state, LOOK));
            }
        }
    }

    fn claim(&self, free: usize) -> Vec<Claim> {
        self.store.claim(&self.queue, free, &self.worker.options.limits).unwrap_or_else(|error| {
            self.watch.note(&WorkerNote::Trouble(&error));
            Vec::new()
        })
    }

    /// Whether nothing is due and nothing runs, and that is when it ends.
    fn is_done(&self) -> bool {
        self.worker.options.until_empty
            && self
                .store
                .queue_state(Some(&self.queue))
                .is_ok_and(|state| state.waiting == 0 && state.running == 0)
    }

    fn start<'s>(&'s self, scope: &'s std::thread::Scope<'s, '_>, claim: Claim) {
        self.watch.note(&WorkerNote::Took(&claim.id));
        self.metrics.took(&claim);
        let lost = Arc::new(AtomicBool::new(false));
        self.state().running.insert(claim.holder.token.clone(), lost.clone());
        let kept = claim.clone();
        let run = move || job::run(self, claim, lost);
        if let Err(error) = std::thread::Builder::new().name("cuebook thread".into()).spawn_scoped(scope, run)
        {
            tracing::warn!(%error, "cannot start a thread of the system");
            let mut state = self.state();
            state.running.remove(&kept.holder.token);
            state.broken.push(kept);
        }
    }

    /// A thread runs here no more.
    fn stopped(&self, claim: Claim, is_broken: bool) {
        let mut state = self.state();
        state.running.remove(&claim.holder.token);
        if is_broken {
            state.broken.push(claim);
        }
        // There is room for another one.
        state.woken = true;
        drop(state);
        self.changed.notify_all();
    }

    /// A thread has ended here.
    fn ended(&self, finished: &crate::thread::Finished) {
        self.metrics.ended(finished.status, &finished.cost);
        self.watch.note(&WorkerNote::Ended(finished));
    }

    fn lost(&self, claim: &Claim, error: &Error, status: Option<Status>) {
        if let Some(status) = status {
            self.metrics.ended(status, &crate::record::Cost::default());
        }
        self.watch.note(&WorkerNote::Lost(&claim.id, error));
    }
}
