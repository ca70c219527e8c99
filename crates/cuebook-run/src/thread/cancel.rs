//! Stops a thread and those below it, and does not say so before they have stopped.
//!
//! The process that runs a thread is asked through the store, and stops it within a moment. A process that does not, because it was
//! stopped it or it hangs, is woken, asked to end and then ended, if it is one of this machine and of our own program and runs nothing else.

use std::path::Path;
use std::time::{Duration, Instant};

use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use serde_json::Value as Json;

use super::left_tools::{self, STOPPED, stop_left};
use super::log::not_found;
use super::{Kind, Status, ThreadId};
use crate::engine::Engine;
use crate::processes::{self, ProcessSignal};
use crate::store::{Authenticity, Filter, Holder, Record, Store};

/// How long the process of a thread may take to stop it.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long a process may take to end after a request.
const GRACE: Duration = Duration::from_secs(2);
/// How often it is looked whether threads have stopped.
const LOOK: Duration = Duration::from_millis(50);

/// What came of cancelling a thread.
#[derive(Debug)]
pub struct Cancelled {
    /// The thread.
    pub record: Record,
    /// It and those below it that had not ended before, as they are now.
    pub stopped: Vec<Record>,
    /// How many tools were left running by processes that died, and stopped.
    pub tools: usize,
}

impl Engine {
    /// Stops a thread and all threads below it, and returns when they have stopped. A thread that has ended is left as it is;
    /// those below it that still run are stopped. `take_over` takes threads from processes that do not stop them.
    ///
    /// # Errors
    ///
    /// `CB712` if it is missing, `CB728` if all of them have ended, `CB713` if one of them still runs.
    pub fn cancel(&self, project: Option<&Path>, id: &ThreadId, take_over: bool) -> Result<Cancelled> {
        let store = &*self.threads_so_far(project)?;
        let before = store.tree(id)?;
        let Some(named) = before.iter().find(|record| record.id == *id) else {
            return Err(not_found(store, id));
        };
        let open: Vec<&Record> = before.iter().filter(|record| !record.status.is_settled()).collect();
        if open.is_empty() {
            return Err(ended(named));
        }
        let mut tools = 0;
        for record in open.iter().filter(|record| record.status == Status::Interrupted) {
            tools += stop_left(store, record)? + stopped_before(store, &record.id)?;
        }
        store.cancel(id)?;
        let mut running = before.clone();
        for (push, patience) in
            [(ProcessSignal::Wake, PATIENCE), (ProcessSignal::End, GRACE), (ProcessSignal::Kill, GRACE)]
        {
            let reported = running.iter().filter(|record| send_signal(store, record, push, &running)).count();
            if reported == 0 && push != ProcessSignal::Wake {
                continue;
            }
            running = rest(store, id, patience, &mut tools)?;
            if running.is_empty() {
                break;
            }
        }
        if take_over && !running.is_empty() {
            for record in running.iter().filter(|record| record.status == Status::Running) {
                store.release(&record.id, record.holder.as_ref())?;
            }
            running = rest(store, id, PATIENCE, &mut tools)?;
        }
        if let Some(record) = running.first() {
            return Err(still_runs(record));
        }
        let now = store.tree(id)?;
        let was_open = |record: &&Record| open.iter().any(|before| before.id == record.id);
        let stopped = now.iter().filter(was_open).cloned().collect();
        let record = now.into_iter().find(|record| record.id == *id).ok_or_else(|| not_found(store, id))?;
        Ok(Cancelled { record, stopped, tools })
    }
}

/// How many tools were stopped when a thread was found without its process.
fn stopped_before(store: &dyn Store, id: &ThreadId) -> Result<usize> {
    let event = store.last_of(id, Kind::Interrupted)?;
    let count = event.and_then(|event| event.payload.get(STOPPED).and_then(Json::as_u64)).unwrap_or(0);
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}

/// Waits until a thread and all below it have ended. Returns those that have not.
fn rest(store: &dyn Store, id: &ThreadId, patience: Duration, tools: &mut usize) -> Result<Vec<Record>> {
    let began = Instant::now();
    loop {
        let dead = left_tools::sweep(store)?;
        let tree = store.tree(id)?;
        let is_below = |dead: &&left_tools::DeadThread| tree.iter().any(|record| record.id == dead.id);
        *tools += dead.iter().filter(is_below).map(|dead| dead.tools).sum::<usize>();
        let open: Vec<Record> = tree.into_iter().filter(|record| !record.status.is_settled()).collect();
        if open.is_empty() || began.elapsed() >= patience {
            return Ok(open);
        }
        if open.iter().any(|record| record.status != Status::Running) {
            // It came to rest in another way meanwhile, and waits no more.
            store.cancel(id)?;
            continue;
        }
        std::thread::sleep(LOOK);
    }
}

/// Sends a signal to the process of a thread, if that is to be done from here. Says whether it was sent.
fn send_signal(store: &dyn Store, record: &Record, push: ProcessSignal, stopping: &[Record]) -> bool {
    // A row that another program changed could name any process.
    let is_sure = record.status == Status::Running && record.authenticity == Authenticity::Own;
    let Some(holder) = record.holder.as_ref().filter(|holder| is_sure && holder.is_here()) else {
        return false;
    };
    (push == ProcessSignal::Wake || may_end(store, holder, stopping)) && processes::push(holder, push)
}

/// Whether a process may be ended: it is one of ours, and all that it runs is to stop.
fn may_end(store: &dyn Store, holder: &Holder, stopping: &[Record]) -> bool {
    let is_same =
        |other: &Holder| (&other.host, other.pid, other.began) == (&holder.host, holder.pid, holder.began);
    let all = store.list(&Filter { status: vec![Status::Running], ..Filter::default() }).unwrap_or_default();
    let mut its = all.iter().filter(|record| record.holder.as_ref().is_some_and(is_same));
    processes::is_cuebook(holder.pid) && its.all(|record| stopping.iter().any(|other| other.id == record.id))
}

fn ended(record: &Record) -> Error {
    let message = format!("`{}` is {} already", record.id, record.status);
    let hint = match &record.continued_by {
        Some(next) => Hint::run("another thread continues it", format!("cuebook thread cancel {next}")),
        None => "you can cancel a thread that runs or waits".into(),
    };
    Error::new(ErrorKind::Execute, Diagnostic::new(Code::CannotResume, message).hint(hint))
}

fn still_runs(record: &Record) -> Error {
    let pid = record.holder.as_ref().map_or(0, |holder| holder.pid);
    let (place, hint) = match record.holder.as_ref().is_some_and(Holder::is_here) {
        true => ("", format!("kill its process, then cancel the thread again: kill -9 {pid}").into()),
        false => (
            " on another machine",
            Hint::run(
                "it stops when its process reads the request; if you know that the process is gone",
                format!("cuebook thread cancel {} --take-over", record.id),
            ),
        ),
    };
    let message =
        format!("`{}` still runs: process {pid}{place} was asked to stop it and did not", record.id);
    let diagnostic = Diagnostic::new(Code::ThreadBusy, message).hint(hint);
    Error::new(ErrorKind::Execute, diagnostic).with("thread_id", record.id.as_str())
}
