//! The queue: threads that wait for a worker, and the workers.
//!
//! A row of the queue says that its user wants a thread to be run, and is sealed with the user's log key: a worker runs only what
//! the owner of its key has queued. A worker claims a row with a [`Holder`], and takes the thread with the same one. Its token is
//! the fencing token: every write of a thread names it, and a worker whose thread was taken over can no longer write. The row
//! stays until the thread rests; when its worker dies or ends, the claim is released together with the thread.

mod claim;
mod workers;

use cuebook_text::Hint;
use std::time::Duration;

use cuebook_text::Result;
use jiff::Timestamp;

use super::book::{self, Book, ParentRelation};
use super::rows::Rows;
use super::sql::{Cell, Tables};
use super::{Authenticity, Holder, LogKey, New, Record, error};
use crate::record::{Entry, Kind, Status, ThreadId, cost_json, short_error_json};

pub use claim::{Claim, ClaimLimits};
pub use workers::{QueueState, WorkerRow, WorkerState};

/// What the seal of a row of the queue is made for.
const PURPOSE: &str = "cuebook queue 1";
/// After so many workers died with a thread, no other worker takes it: it may be what kills them.
const MAX_DEATHS: i64 = 5;

/// The place of a thread in the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The queue: workers take threads of one queue.
    pub queue: String,
    /// Threads with a higher priority start first.
    pub priority: i64,
    /// The earliest start; at once if it is `None`.
    pub due_at: Option<Timestamp>,
    /// What names the key of the provider: requests with one key share its rate limits.
    pub provider_key: String,
    /// Whether tools of the thread run in the sandbox.
    pub sandbox: bool,
}

/// Keeps the threads that wait for workers. Every call is one transaction.
pub trait Queue {
    /// Registers a thread as [`Store::begin`](super::Store::begin) does, and queues it.
    ///
    /// # Errors
    ///
    /// Those of [`Store::begin`](super::Store::begin).
    fn enqueue(&self, new: &New, place: &Place) -> Result<Record>;

    /// Queues a thread that rests and can be resumed. `behind` is the number of its last event that the caller knows.
    ///
    /// # Errors
    ///
    /// `CB712` if it is missing, `CB713` if it runs or has newer events, `CB728` if it has ended.
    fn requeue(&self, id: &ThreadId, behind: u64, place: &Place) -> Result<Record>;

    /// Claims threads that are due for a worker: those with the highest priority first, then those that are due the longest. No
    /// two workers claim the same one.
    fn claim(&self, queue: &str, most: usize, limits: &ClaimLimits) -> Result<Vec<Claim>>;

    /// Gives a claim back whose thread was not taken. With `forget` the thread leaves the queue.
    fn unclaim(&self, claim: &Claim, forget: bool) -> Result<bool>;

    /// A worker's sign of life, which registers it. Says `false` if the store did not know it: it is new, or others found it dead.
    fn worker_beats(&self, worker: &WorkerState) -> Result<bool>;

    /// A worker has ended. Claims that it did not use are released.
    fn worker_ends(&self, worker: &Holder) -> Result<()>;

    /// Takes the threads from workers that have died or do not answer for longer than their lease: they are interrupted, and
    /// wait for another worker.
    fn take_over(&self) -> Result<Vec<ThreadId>>;

    /// What waits and runs in a queue, or in all queues of the user.
    fn queue_state(&self, queue: Option<&str>) -> Result<QueueState>;

    /// Waits until something was queued, or for so long. It may return early.
    fn wait_for_work(&self, most: Duration);
}

impl<T: Tables> Queue for Book<T> {
    fn enqueue(&self, new: &New, place: &Place) -> Result<Record> {
        let (new, place) = (new.clone(), place.clone());
        self.change(move |rows| {
            let id = book::begin(rows, &new, ParentRelation::Child)?;
            insert(rows, &id, &new.prompt, &place)?;
            let mut row = rows.get(&id)?;
            row.record.status = Status::Queued;
            rows.put(row);
            rows.get(&id).map(|row| row.record)
        })
    }

    fn requeue(&self, id: &ThreadId, behind: u64, place: &Place) -> Result<Record> {
        let (id, place) = (id.clone(), place.clone());
        self.change(move |rows| {
            let mut row = rows.own(&id)?;
            let record = &row.record;
            match record.status {
                Status::Running => {
                    return Err(error::runs(&id, record.holder.as_ref().map(|holder| holder.pid)));
                }
                status if !status.can_resume() => {
                    return Err(error::ended(&id, status, record.continued_by.as_ref()));
                }
                status if record.last.0 != behind => return Err(error::moved(&id, status)),
                _ => {}
            }
            rows.sql.run(
                "DELETE FROM cuebook_queue WHERE thread = $1 AND token IS NULL",
                &[id.as_str().into()],
            )?;
            insert(rows, &id, &record.prompt.clone(), &place)?;
            row.record.status = Status::Queued;
            row.record.cancel = false;
            row.record.completed_at = None;
            row.record.updated_at = rows.now;
            rows.put(row.clone());
            Ok(row.record)
        })
    }

    fn claim(&self, queue: &str, most: usize, limits: &ClaimLimits) -> Result<Vec<Claim>> {
        claim::claim(self, queue, most, limits)
    }

    fn unclaim(&self, claim: &Claim, forget: bool) -> Result<bool> {
        let cells = [claim.id.as_str().into(), claim.holder.token.as_str().into()];
        self.tables.write(move |sql| match forget {
            true => Ok(sql.run("DELETE FROM cuebook_queue WHERE thread = $1 AND token = $2", &cells)? > 0),
            false => {
                let statement = format!("{RELEASE} WHERE thread = $1 AND token = $2");
                let released = sql.run(&statement, &cells)? > 0;
                sql.wake_workers()?;
                Ok(released)
            }
        })
    }

    fn worker_beats(&self, worker: &WorkerState) -> Result<bool> {
        workers::beats(self, worker)
    }

    fn worker_ends(&self, worker: &Holder) -> Result<()> {
        workers::ends(self, worker)
    }

    fn take_over(&self) -> Result<Vec<ThreadId>> {
        workers::take_over(self)
    }

    fn queue_state(&self, queue: Option<&str>) -> Result<QueueState> {
        workers::state(self, queue)
    }

    fn wait_for_work(&self, most: Duration) {
        self.tables.wait_for_work(most);
    }
}

/// Releases the claim of rows.
const RELEASE: &str =
    "UPDATE cuebook_queue SET host = NULL, pid = NULL, began = NULL, token = NULL, ready = 1";

/// The cells of a row that its seal covers.
#[derive(Debug, Clone)]
struct Sealed {
    thread: ThreadId,
    queue: String,
    log_key: String,
    prompt: String,
    provider_key: String,
    priority: i64,
    due_at: i64,
    queued_at: i64,
    sandbox: i64,
}

/// The columns of [`Sealed`], in its order.
const SEALED: &str = "thread, queue, log_key, prompt, provider_key, priority, due_at, queued_at, sandbox";

impl Sealed {
    fn cells(&self) -> Vec<Cell> {
        vec![
            self.thread.as_str().into(),
            self.queue.as_str().into(),
            self.log_key.as_str().into(),
            self.prompt.as_str().into(),
            self.provider_key.as_str().into(),
            self.priority.into(),
            self.due_at.into(),
            self.queued_at.into(),
            self.sandbox.into(),
        ]
    }

    /// The row of these cells, and whether the key has sealed it: the last cell is the seal.
    fn read(cells: Vec<Cell>, key: &LogKey) -> Option<(Sealed, bool)> {
        let Ok(
            [
                Cell::Text(thread),
                Cell::Text(queue),
                Cell::Text(log_key),
                Cell::Text(prompt),
                Cell::Text(provider_key),
                Cell::Int(priority),
                Cell::Int(due_at),
                Cell::Int(queued_at),
                Cell::Int(sandbox),
                Cell::Text(seal),
            ],
        ) = <[Cell; 10]>::try_from(cells)
        else {
            return None;
        };
        let thread = ThreadId::known(thread);
        let row =
            Sealed { thread, queue, log_key, prompt, provider_key, priority, due_at, queued_at, sandbox };
        let is_sealed = row.log_key == key.id() && row.seal(key) == seal;
        Some((row, is_sealed))
    }

    fn seal(&self, key: &LogKey) -> String {
        key.seal_for(PURPOSE, &self.cells())
    }
}

fn insert(rows: &mut Rows<'_>, id: &ThreadId, prompt: &str, place: &Place) -> Result<()> {
    rows.check([Some(place.queue.as_str()), Some(place.provider_key.as_str())])?;
    let key = rows.key()?.clone();
    let now = rows.now.as_microsecond();
    let row = Sealed {
        thread: id.clone(),
        queue: place.queue.clone(),
        log_key: key.id().to_owned(),
        prompt: prompt.to_owned(),
        provider_key: place.provider_key.clone(),
        priority: place.priority,
        due_at: place.due_at.map_or(now, |due| due.as_microsecond().max(now)),
        queued_at: now,
        sandbox: place.sandbox.into(),
    };
    let mut cells = row.cells();
    cells.push(row.seal(&key).as_str().into());
    cells.push(i64::from(row.due_at <= now).into());
    let statement = format!(
        "INSERT INTO cuebook_queue ({SEALED}, seal, ready, damaged, deaths) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, 0, 0) ON CONFLICT DO NOTHING"
    );
    if rows.sql.run(&statement, &cells)? == 0 {
        return Err(claimed(id, None));
    }
    rows.sql.wake_workers()
}

/// `CB713`: a worker is about to run it.
fn claimed(id: &ThreadId, pid: Option<u32>) -> cuebook_text::Error {
    let who = pid.map_or_else(String::new, |pid| format!(" (process {pid})"));
    let message = format!("a worker{who} has claimed `{id}` and is about to run it");
    let hint = Hint::command_line("follow it with `cuebook thread tail`")
        .for_programs("wait until it runs")
        .with_command(format!("cuebook thread tail {id}"));
    error::busy(id, message, hint)
}

/// A thread is taken: its claim has to be the holder's, if it is in the queue. One without a claim becomes the holder's, so that no
/// worker takes it meanwhile.
pub(super) fn taken(rows: &mut Rows<'_>, id: &ThreadId, holder: &Holder) -> Result<()> {
    let statement = format!(
        "SELECT host, pid, began, token FROM cuebook_queue WHERE thread = $1{}",
        rows.sql.for_update()
    );
    let Some(cells) = rows.sql.rows(&statement, &[id.as_str().into()])?.into_iter().next() else {
        return Ok(());
    };
    if let Some(other) = workers::holder(cells)
        && other.token != holder.token
        && workers::is_alive(rows, &other)?
    {
        return Err(claimed(id, Some(other.pid)));
    }
    claim::set(rows.sql, id, holder)
}

/// A thread rests: another worker can take it if its process has ended, and otherwise it leaves the queue.
pub(super) fn rests(rows: &mut Rows<'_>, id: &ThreadId, status: Status) -> Result<()> {
    let cells = [id.as_str().into()];
    if status != Status::Interrupted {
        return rows.sql.run("DELETE FROM cuebook_queue WHERE thread = $1", &cells).map(drop);
    }
    match rows.sql.run(&format!("{RELEASE} WHERE thread = $1"), &cells)? {
        0 => Ok(()),
        _ => rows.sql.wake_workers(),
    }
}

/// The process of a thread died.
pub(super) fn died(rows: &mut Rows<'_>, id: &ThreadId) -> Result<()> {
    let cells = [id.as_str().into()];
    if rows.sql.run("UPDATE cuebook_queue SET deaths = deaths + 1 WHERE thread = $1", &cells)? > 0 {
        let cells = [id.as_str().into(), MAX_DEATHS.into()];
        rows.sql.run("DELETE FROM cuebook_queue WHERE thread = $1 AND deaths >= $2", &cells)?;
    }
    Ok(())
}

/// The conversation of a thread goes on in another one, which has its place.
pub(super) fn hand_over(rows: &mut Rows<'_>, id: &ThreadId, next: &ThreadId, holder: &Holder) -> Result<()> {
    let statement =
        format!("SELECT {SEALED}, seal FROM cuebook_queue WHERE thread = $1{}", rows.sql.for_update());
    let Some(cells) = rows.sql.rows(&statement, &[id.as_str().into()])?.into_iter().next() else {
        return Ok(());
    };
    let key = rows.key()?.clone();
    let Some((row, true)) = Sealed::read(cells, &key) else { return Ok(()) };
    let row = Sealed { thread: next.clone(), ..row };
    let cells = [next.as_str().into(), row.seal(&key).as_str().into(), id.as_str().into()];
    rows.sql.run("UPDATE cuebook_queue SET thread = $1, seal = $2 WHERE thread = $3", &cells)?;
    claim::set(rows.sql, next, holder)
}

/// A thread that a worker has claimed and cannot start: it has failed, and says why.
pub fn failed_to_start(error: &cuebook_text::Error, record: &Record) -> (Vec<Entry>, serde_json::Value) {
    let reported = serde_json::json!({"error": short_error_json(error)});
    let mut payload = reported.clone();
    payload["cost"] = cost_json(&record.cost);
    (vec![Entry::new(Kind::Failed, payload)], reported)
}

/// Whether a record is one that a worker with our key may run.
pub fn can_run(record: &Record) -> bool {
    record.authenticity == Authenticity::Own && matches!(record.status, Status::Queued | Status::Interrupted)
}
