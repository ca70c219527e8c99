//! Threads that run in the background of a program: follow one, stop it, wait for it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use cuebook::error::catch_panic;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Result};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json};

use super::drive::Finished;
use super::resume::Resume;
use super::run::{RunRequest, ThreadRun};
use super::{Event, Kind, Status, ThreadId};
use crate::engine::Engine;
use crate::record::Cost;
use crate::stop::Stop;
use crate::watch::{Activity, Watch};

/// A thread that runs in the background of this program.
///
/// Dropping it does not stop the thread. If the program ends first, the thread is interrupted, and
/// [`Engine::resume`] continues it.
///
/// ```no_run
/// use std::sync::Arc;
///
/// use cuebook::items::Spaces;
/// use cuebook_run::{Engine, RunRequest, Update};
///
/// let engine = Arc::new(Engine::new(Spaces::of_project("/home/ada/thread_tools".as_ref())));
/// let thread = engine.start(&engine.book()?, RunRequest::new("reply").var("letter", "Where is order 7?"))?;
/// for update in thread.updates() {
///     if let Update::Text(text) = update.update {
///         print!("{text}");
///     }
/// }
/// if !thread.is_finished() {
///     thread.cancel();
/// }
/// let finished = thread.join()?.completed()?;
/// println!("{} cost {}", finished.id, finished.cost.spend);
/// # Ok::<(), cuebook::Error>(())
/// ```
#[derive(Debug)]
pub struct Thread {
    id: ThreadId,
    stop: Arc<AtomicBool>,
    queue: Arc<UpdateQueue>,
    running: JoinHandle<Result<Finished>>,
}

impl Thread {
    /// Its id.
    pub fn id(&self) -> &ThreadId {
        &self.id
    }

    /// What it and the threads below it do, from the beginning. The iterator waits for the next update, and ends with the thread.
    /// Each update is given once, also if this is called again.
    pub fn updates(&self) -> Updates {
        self.queue.lock().readers += 1;
        Updates(self.queue.clone())
    }

    /// The events that it and the threads below it write to their logs, as [`updates`](Thread::updates) gives them.
    pub fn events(&self) -> impl Iterator<Item = Event> + Send + use<> {
        self.updates().filter_map(|update| match update.update {
            Update::Event(event) => Some(event),
            _ => None,
        })
    }

    /// Stops it and the threads below it soon. [`join`](Thread::join) waits for that.
    pub fn cancel(&self) {
        self.stop.store(true, Ordering::SeqCst);
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.running.is_finished()
    }

    /// Waits for its end. How it ended, well or not, is in [`Finished`].
    ///
    /// # Errors
    ///
    /// Only if its end could not be written: the store failed, or another process took the thread over.
    pub fn join(self) -> Result<Finished> {
        self.queue.forget();
        joined(self.running)
    }
}

fn joined(running: JoinHandle<Result<Finished>>) -> Result<Finished> {
    running.join().unwrap_or_else(|_| Err(panicked("no message")))
}

fn panicked(message: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::ToolFailed, format!("the thread panicked: {message}"));
    Error::new(ErrorKind::Execute, diagnostic.hint("resume the thread from its log, and report the panic"))
}

/// What a thread does at the moment.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Update {
    /// An event was written to the log.
    Event(Event),
    /// The model wrote more text.
    Text(String),
    /// The model reasoned, and the provider shows it.
    Thinking(String),
    /// How far the thread is.
    Progress {
        /// What it used so far.
        cost: Cost,
        /// What it waits for: the model, or the names of tools.
        waits_for: String,
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

impl From<&Activity<'_>> for Update {
    fn from(activity: &Activity<'_>) -> Update {
        match activity {
            Activity::Event(event) => Update::Event((*event).clone()),
            Activity::Text(text) => Update::Text((*text).to_owned()),
            Activity::Thinking(text) => Update::Thinking((*text).to_owned()),
            Activity::Pulse { cost, doing } => Update::Progress { cost: *cost, waits_for: doing.clone() },
            Activity::Retry { attempt, pause, why } => {
                Update::Retry { attempt: *attempt, pause: *pause, why: why.clone() }
            }
        }
    }
}

/// An update, and the thread that it is about.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ThreadUpdate {
    /// The thread: the one that was started, or one below it.
    pub thread: ThreadId,
    /// What it does.
    pub update: Update,
}

/// The updates of a thread: an iterator that waits, and with the feature `stream` a `Stream`.
#[derive(Debug)]
pub struct Updates(Arc<UpdateQueue>);

impl Iterator for Updates {
    type Item = ThreadUpdate;

    fn next(&mut self) -> Option<ThreadUpdate> {
        let mut state = self.0.lock();
        loop {
            if let Some(update) = state.updates.pop_front() {
                return Some(update);
            }
            if state.ended {
                return None;
            }
            state = self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(feature = "stream")]
impl futures_core::Stream for Updates {
    type Item = ThreadUpdate;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<ThreadUpdate>> {
        let mut state = self.0.lock();
        match state.updates.pop_front() {
            Some(update) => std::task::Poll::Ready(Some(update)),
            None if state.ended => std::task::Poll::Ready(None),
            None => {
                state.waker = Some(context.waker().clone());
                std::task::Poll::Pending
            }
        }
    }
}

impl Drop for Updates {
    fn drop(&mut self) {
        self.0.lock().readers -= 1;
    }
}

/// Updates on their way from the thread to the program.
#[derive(Debug, Default)]
struct UpdateQueue {
    state: Mutex<PendingUpdates>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct PendingUpdates {
    updates: VecDeque<ThreadUpdate>,
    ended: bool,
    /// How many iterators there are.
    readers: usize,
    /// The handle is gone: without a reader, updates have no use.
    forgotten: bool,
    #[cfg(feature = "stream")]
    waker: Option<std::task::Waker>,
}

impl UpdateQueue {
    fn lock(&self) -> MutexGuard<'_, PendingUpdates> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut PendingUpdates)) {
        let mut state = self.lock();
        change(&mut state);
        if state.forgotten && state.readers == 0 {
            state.updates.clear();
        }
        #[cfg(feature = "stream")]
        let waker = state.waker.take();
        drop(state);
        self.changed.notify_all();
        #[cfg(feature = "stream")]
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    fn forget(&self) {
        self.change(|state| state.forgotten = true);
    }
}

/// Passes on what a thread reports, and that it is to stop.
struct UpdateRelay {
    queue: Arc<UpdateQueue>,
    stop: Arc<AtomicBool>,
    /// Takes the id of the thread as soon as it is known.
    began: Mutex<Option<Sender<ThreadId>>>,
    wanted: TargetThread,
}

/// The thread that was asked for, as opposed to one that a hook starts before it.
enum TargetThread {
    Prompt(String),
    Known(ThreadId),
}

impl TargetThread {
    fn is(&self, thread: &ThreadId, event: &Event) -> bool {
        match self {
            TargetThread::Known(id) => thread == id,
            TargetThread::Prompt(prompt) => {
                event.kind == Kind::Started
                    && event.payload["parent_id"].is_null()
                    && event.payload["directive"] == prompt.as_str()
            }
        }
    }
}

impl Watch for UpdateRelay {
    fn cancelled(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    fn stop(&self) -> Option<Stop> {
        Some(Stop::flag(self.stop.clone()))
    }

    fn activity(&self, thread: &ThreadId, activity: &Activity<'_>) {
        if let Activity::Event(event) = activity
            && self.wanted.is(thread, event)
            && let Some(began) = self.began.lock().unwrap_or_else(PoisonError::into_inner).take()
        {
            // A program that no longer waits has stopped.
            let _ = began.send(thread.clone());
        }
        let update = ThreadUpdate { thread: thread.clone(), update: activity.into() };
        self.queue.change(|state| state.updates.push_back(update));
    }
}

/// Ends the updates when the thread has ended, in whatever way.
struct CloseOnDrop(Arc<UpdateQueue>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.change(|state| state.ended = true);
    }
}

fn spawn(
    wanted: TargetThread,
    work: impl FnOnce(&dyn Watch) -> Result<ThreadRun> + Send + 'static,
) -> Result<Thread> {
    let (queue, stop) = (Arc::<UpdateQueue>::default(), Arc::<AtomicBool>::default());
    let (sender, receiver) = channel();
    let relay =
        UpdateRelay { queue: queue.clone(), stop: stop.clone(), began: Mutex::new(Some(sender)), wanted };
    let at_end = CloseOnDrop(queue.clone());
    let run = move || {
        let _at_end = at_end;
        let relay = relay;
        let began = catch_panic(|| work(&relay)).unwrap_or_else(|message| Err(panicked(&message)));
        match began? {
            ThreadRun::Finished(finished) => Ok(*finished),
            ThreadRun::Detached { id, .. } => Err(elsewhere(&id)),
        }
    };
    let running = std::thread::Builder::new().name("cuebook thread".into()).spawn(run).map_err(|error| {
        let message = format!("cannot start a thread of the system: {error}");
        Error::new(ErrorKind::Io, Diagnostic::new(Code::CannotStart, message))
    })?;
    match receiver.recv() {
        Ok(id) => Ok(Thread { id, stop, queue, running }),
        // It ended before it began.
        Err(_) => Err(joined(running).err().unwrap_or_else(|| elsewhere(&ThreadId::known("")))),
    }
}

fn elsewhere(id: &ThreadId) -> Error {
    let diagnostic = Diagnostic::new(Code::ThreadBusy, format!("`{id}` runs in another process"));
    Error::new(ErrorKind::Execute, diagnostic)
}

impl Engine {
    /// The prompts of the engine's project, with their Python hooks and the tools of directives.
    ///
    /// # Errors
    ///
    /// `CB710` if the project is not a directory.
    pub fn book(&self) -> Result<Arc<Book>> {
        self.project(None).map(|project| project.shared_book())
    }

    /// Starts a prompt of any dialect in a thread, and returns as soon as the thread is registered. [`Thread`] has an example.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from beginning.
    pub fn start(self: &Arc<Self>, book: &Arc<Book>, request: RunRequest) -> Result<Thread> {
        let prompt = book.prepare(&request.prompt, &request.context)?.prompt().id.clone();
        let request = RunRequest { is_async: false, ..request };
        let (engine, book) = (self.clone(), book.clone());
        spawn(TargetThread::Prompt(prompt), move |watch| engine.run(&book, &request, watch))
    }

    /// Continues a thread from its log. Say how, and then [`start`](ResumeBuilder::start).
    ///
    /// ```no_run
    /// # use std::sync::Arc;
    /// # use cuebook::items::Spaces;
    /// # use cuebook_run::{Engine, ThreadId};
    /// let engine = Arc::new(Engine::new(Spaces::of_project("/home/ada/thread_tools".as_ref())));
    /// let id = ThreadId::known("reply/reply-1739820456123");
    /// let thread = engine.resume(&id).limit("turns", 20).start()?;
    /// let finished = thread.join()?;
    /// // Another user's log, a prompt's permissions, and a thread of a process that has ended each need consent.
    /// let finished = engine.resume(&id).trust_log().allow_again().take_over().start()?.join()?;
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn resume(self: &Arc<Self>, id: &ThreadId) -> ResumeBuilder {
        ResumeBuilder { engine: self.clone(), book: None, id: id.clone(), how: Resume::default() }
    }
}

/// How a thread is continued.
#[derive(Debug, Clone)]
#[must_use = "nothing is continued before `start`"]
pub struct ResumeBuilder {
    engine: Arc<Engine>,
    book: Option<Arc<Book>>,
    id: ThreadId,
    how: Resume,
}

impl ResumeBuilder {
    /// Looks for its prompt in this book instead of the engine's.
    pub fn book(mut self, book: &Arc<Book>) -> ResumeBuilder {
        self.book = Some(book.clone());
        self
    }

    /// Changes a limit: `turns`, `tokens`, `spend`, `duration_seconds`, `spawns`, `depth` or `calls`.
    pub fn limit(mut self, name: &str, most: impl Into<Json>) -> ResumeBuilder {
        self.how.limit_overrides.insert(name.to_owned(), most.into());
        self
    }

    /// Asks another model.
    pub fn model(mut self, model: impl Into<String>) -> ResumeBuilder {
        self.how.model = Some(model.into());
        self
    }

    /// Allows a prompt's thread again what it was allowed at first.
    pub fn allow_again(mut self) -> ResumeBuilder {
        self.how.allow_again = true;
        self
    }

    /// Vouches for a log that the user's key did not write.
    pub fn trust_log(mut self) -> ResumeBuilder {
        self.how.trust_log = true;
        self
    }

    /// Takes the thread from a process that seems to run it.
    pub fn take_over(mut self) -> ResumeBuilder {
        self.how.take_over = true;
        self
    }

    /// Continues it.
    ///
    /// # Errors
    ///
    /// `CB712` if it is missing, `CB713` if it runs, `CB714` if its log was changed, `CB728` if it has ended, `CB735` if the user's
    /// key did not write its log, `CB737` if a prompt's thread had permissions that were not allowed again.
    pub fn start(self) -> Result<Thread> {
        let ResumeBuilder { engine, book, id, how } = self;
        spawn(TargetThread::Known(id.clone()), move |watch| {
            engine.resume_with(None, book.as_deref(), &id, &how, watch)
        })
    }
}

impl RunRequest {
    /// Runs a prompt, given by its id.
    pub fn new(prompt: impl Into<String>) -> RunRequest {
        RunRequest { prompt: prompt.into(), ..RunRequest::default() }
    }

    /// Gives a variable its value.
    pub fn var(mut self, name: impl Into<String>, value: impl serde::Serialize) -> RunRequest {
        self.variables = self.variables.set(name, value);
        self
    }

    /// Asks this model instead of the prompt's own.
    pub fn model(mut self, model: impl Into<String>) -> RunRequest {
        self.model = Some(model.into());
        self
    }

    /// Sets a limit: `turns`, `tokens`, `spend`, `duration_seconds`, `spawns`, `depth` or `calls`.
    pub fn limit(mut self, name: &str, most: impl Into<Json>) -> RunRequest {
        self.limit_overrides.insert(name.to_owned(), most.into());
        self
    }

    /// Runs an item where the prompt's model calls a tool, and allows that.
    pub fn tool(mut self, name: impl Into<String>, item_id: impl Into<String>) -> RunRequest {
        self.tools.insert(name.into(), item_id.into());
        self
    }

    /// Lets the model open a skill, given by its id.
    pub fn skill(mut self, id: impl Into<String>) -> RunRequest {
        self.skills.push(id.into());
        self
    }

    /// Allows the thread more, as a pattern such as `rye.execute.tool.rye.file-system.*`.
    pub fn allow(mut self, pattern: impl Into<String>) -> RunRequest {
        self.allow.push(pattern.into());
        self
    }
}

impl Finished {
    /// The same thread, if it completed.
    ///
    /// # Errors
    ///
    /// Why it did not complete. [`Error::field`] has its `thread_id` and `thread_status`.
    pub fn completed(self) -> Result<Finished> {
        match self.error {
            Some(error) => {
                let error = error.with("thread_id", self.id.as_str());
                Err(error.with("thread_status", self.status.as_str()))
            }
            None if self.status == Status::Completed => Ok(self),
            None => {
                let message = format!("`{}` is {}", self.id, self.status);
                Err(Error::new(ErrorKind::Execute, Diagnostic::new(Code::CannotResume, message)))
            }
        }
    }

    /// Its outputs as a type of the program.
    ///
    /// # Errors
    ///
    /// `CB607` if it has no outputs, or they do not fit the type.
    pub fn outputs_as<T: DeserializeOwned>(&self) -> Result<T> {
        let outputs = self.outputs.clone().unwrap_or_else(|| Json::Object(Map::new()));
        serde_json::from_value(outputs).map_err(|error| {
            let message = format!("the outputs of `{}` do not fit the type: {error}", self.id);
            let hint = "the type needs the fields that the prompt declares as outputs";
            let diagnostic = Diagnostic::new(Code::OutputMismatch, message).hint(hint);
            Error::new(ErrorKind::OutputParse, diagnostic).caused_by(error)
        })
    }
}
