//! The workers of a store: which live, and what becomes of the threads of those that do not.

use std::collections::BTreeMap;
use std::time::Duration;

use cuebook_text::Result;
use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};

use super::super::book::{self, Book};
use super::super::rows::Rows;
use super::super::sql::{Cell, Sql, Tables};
use super::super::{Authenticity, Holder, row};
use super::RELEASE;
use crate::record::{ThreadId, has_ended};

/// What a worker says of itself with each sign of life.
#[derive(Debug, Clone)]
pub struct WorkerState {
    /// Its process. The token does not matter.
    pub holder: Holder,
    /// A name for people.
    pub name: String,
    /// Where it takes threads from.
    pub queue: String,
    /// How many threads it runs at once.
    pub concurrency: usize,
    /// After how long without a sign of life others take its threads over.
    pub lease: Duration,
    /// Whether it takes no more threads.
    pub draining: bool,
}

/// A worker, as others see it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct WorkerRow {
    /// What it says of itself.
    pub state: WorkerState,
    /// When it began.
    pub started_at: Timestamp,
    /// Its last sign of life.
    pub beat_at: Timestamp,
    /// Whether it lives.
    pub alive: bool,
    /// How many threads it has claimed.
    pub running: u64,
}

/// What waits and runs.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct QueueState {
    /// Threads that are due and wait.
    pub waiting: u64,
    /// Threads that are due later.
    pub scheduled: u64,
    /// Threads that workers have claimed.
    pub running: u64,
    /// Rows that another program wrote, which no worker runs.
    pub damaged: u64,
    /// How long the first of the waiting threads is due.
    pub oldest_wait: Option<Duration>,
    /// When the next of the scheduled threads is due.
    pub next_due: Option<Timestamp>,
    /// The workers, the oldest first.
    pub workers: Vec<WorkerRow>,
}

impl QueueState {
    /// The state as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "waiting": self.waiting,
            "scheduled": self.scheduled,
            "running": self.running,
            "damaged": self.damaged,
            "oldest_wait_seconds": self.oldest_wait.map(|wait| wait.as_secs_f64()),
            "next_due": self.next_due.map(|due| due.to_string()),
            "workers": self.workers.iter().map(WorkerRow::to_json).collect::<Vec<_>>(),
        })
    }
}

impl WorkerRow {
    fn to_json(&self) -> Json {
        let WorkerState { holder, name, queue, concurrency, lease, draining } = &self.state;
        json!({
            "name": name,
            "pid": holder.pid,
            "queue": queue,
            "concurrency": concurrency,
            "running": self.running,
            "lease_seconds": lease.as_secs_f64(),
            "draining": draining,
            "alive": self.alive,
            "started_at": self.started_at.to_string(),
            "last_sign_of_life": self.beat_at.to_string(),
        })
    }
}

const SELECT: &str = "SELECT host, pid, began, name, queue, concurrency, lease, draining, started_at, beat_at \
                      FROM cuebook_workers";

/// A worker that these cells are. One that another program wrote in another way counts as none.
fn read(cells: Vec<Cell>, now: Timestamp) -> Option<WorkerRow> {
    let Ok(
        [
            Cell::Text(host),
            Cell::Int(pid),
            Cell::Int(began),
            Cell::Text(name),
            Cell::Text(queue),
            Cell::Int(concurrency),
            Cell::Int(lease),
            Cell::Int(draining),
            Cell::Int(started),
            Cell::Int(beat),
        ],
    ) = <[Cell; 10]>::try_from(cells)
    else {
        return None;
    };
    let holder =
        Holder { host, pid: u32::try_from(pid).ok()?, began: began.cast_unsigned(), token: String::new() };
    let lease = Duration::from_micros(u64::try_from(lease).unwrap_or_default());
    let beat_at = Timestamp::from_microsecond(beat).ok()?;
    let silent = Duration::try_from(now.duration_since(beat_at)).unwrap_or_default();
    let alive = silent <= lease && !has_ended(&holder);
    let concurrency = usize::try_from(concurrency).unwrap_or_default();
    let state = WorkerState { holder, name, queue, concurrency, lease, draining: draining != 0 };
    Some(WorkerRow {
        state,
        started_at: Timestamp::from_microsecond(started).ok()?,
        beat_at,
        alive,
        running: 0,
    })
}

/// The holder of these cells: host, process, beginning, token.
pub(super) fn holder(cells: Vec<Cell>) -> Option<Holder> {
    match <[Cell; 4]>::try_from(cells) {
        Ok([Cell::Text(host), Cell::Int(pid), Cell::Int(began), Cell::Text(token)]) => {
            Some(Holder { host, pid: u32::try_from(pid).ok()?, began: began.cast_unsigned(), token })
        }
        _ => None,
    }
}

/// Whether a worker that has claimed something lives. A process that is no worker has claimed what it runs itself.
pub(super) fn is_alive(rows: &mut Rows<'_>, holder: &Holder) -> Result<bool> {
    let statement = format!("{SELECT} WHERE host = $1 AND pid = $2 AND began = $3");
    let found = rows.sql.rows(&statement, &book::process(holder))?;
    let now = rows.now;
    Ok(found.into_iter().find_map(|cells| read(cells, now)).is_some_and(|worker| worker.alive))
}

pub(super) fn beats<T: Tables>(book: &Book<T>, worker: &WorkerState) -> Result<bool> {
    let now: Cell = book.tables.now().as_microsecond().into();
    let log_key: Cell = book.write_key()?.id().into();
    let count = |number: u128| Cell::from(i64::try_from(number).unwrap_or(i64::MAX));
    let worker = worker.clone();
    book.tables.write(move |sql| {
        let draining: Cell = i64::from(worker.draining).into();
        let mut cells = vec![now.clone(), draining.clone()];
        cells.extend(book::process(&worker.holder));
        let statement = "UPDATE cuebook_workers SET beat_at = $1, draining = $2 \
                         WHERE host = $3 AND pid = $4 AND began = $5";
        if sql.run(statement, &cells)? > 0 {
            return Ok(true);
        }
        let mut cells = book::process(&worker.holder).to_vec();
        cells.extend([
            worker.name.as_str().into(),
            log_key.clone(),
            worker.queue.as_str().into(),
            count(worker.concurrency as u128),
            count(worker.lease.as_micros()),
            draining,
            now.clone(),
            now.clone(),
        ]);
        let statement = "INSERT INTO cuebook_workers (host, pid, began, name, log_key, queue, concurrency, \
                         lease, draining, started_at, beat_at) \
                         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT DO NOTHING";
        sql.run(statement, &cells).map(|_| false)
    })
}

pub(super) fn ends<T: Tables>(book: &Book<T>, worker: &Holder) -> Result<()> {
    let process = book::process(worker);
    book.tables.write(move |sql| {
        release(sql, &process)?;
        let statement = "DELETE FROM cuebook_workers WHERE host = $1 AND pid = $2 AND began = $3";
        sql.run(statement, &process).map(drop)
    })
}

/// Releases what a process has claimed and does not run.
fn release(sql: &mut dyn Sql, process: &[Cell; 3]) -> Result<()> {
    let statement = format!(
        "{RELEASE} WHERE token IS NOT NULL AND host = $1 AND pid = $2 AND began = $3 AND NOT EXISTS \
         (SELECT 1 FROM cuebook_threads t WHERE t.id = cuebook_queue.thread AND t.status = 'running')"
    );
    match sql.run(&statement, process)? {
        0 => Ok(()),
        _ => sql.wake_workers(),
    }
}

pub(super) fn take_over<T: Tables>(book: &Book<T>) -> Result<Vec<ThreadId>> {
    let log_key = book.write_key()?.id().to_owned();
    let mut taken = Vec::new();
    for worker in all(book, &log_key)?.into_iter().filter(|worker| !worker.alive) {
        let process = book::process(&worker.state.holder);
        let statement = format!(
            "{} WHERE status = 'running' AND host = $1 AND pid = $2 AND began = $3",
            row::SELECT.as_str()
        );
        let running = book.records(&statement, &process)?;
        // What our key did not write is left to its owner.
        for record in running.into_iter().filter(|record| record.authenticity == Authenticity::Own) {
            let name = record.id.clone();
            let (holder, beat) = (record.holder, record.beat_at);
            let more = Map::from_iter([("worker".to_owned(), worker.state.name.clone().into())]);
            if book.change(move |rows| book::interrupt(rows, &name, holder.as_ref(), beat, &more))? {
                taken.push(record.id);
            }
        }
        let seen: Cell = worker.beat_at.as_microsecond().into();
        book.tables.write(move |sql| {
            release(sql, &process)?;
            let cells = [&process[..], std::slice::from_ref(&seen)].concat();
            let statement =
                "DELETE FROM cuebook_workers WHERE host = $1 AND pid = $2 AND began = $3 AND beat_at = $4";
            sql.run(statement, &cells).map(drop)
        })?;
    }
    Ok(taken)
}

/// The workers with this key.
fn all<T: Tables>(book: &Book<T>, log_key: &str) -> Result<Vec<WorkerRow>> {
    let now = book.tables.now();
    let statement = format!("{SELECT} WHERE log_key = $1 ORDER BY started_at, name");
    book.tables.read(|sql| {
        let rows = sql.rows(&statement, &[log_key.into()])?;
        Ok(rows.into_iter().filter_map(|cells| read(cells, now)).collect())
    })
}

pub(super) fn state<T: Tables>(book: &Book<T>, queue: Option<&str>) -> Result<QueueState> {
    let log_key = book.write_key()?.id().to_owned();
    let now = book.tables.now();
    let mut cells: Vec<Cell> = vec![log_key.as_str().into()];
    let mut of_queue = "";
    if let Some(queue) = queue {
        cells.push(queue.into());
        of_queue = " AND queue = $2";
    }
    let counts = format!(
        "SELECT damaged, CASE WHEN token IS NOT NULL THEN 2 WHEN ready = 1 THEN 1 ELSE 0 END AS place, \
         count(*), min(due_at) FROM cuebook_queue WHERE log_key = $1{of_queue} GROUP BY damaged, place"
    );
    let claims = "SELECT host, pid, began, count(*) FROM cuebook_queue \
                  WHERE log_key = $1 AND token IS NOT NULL GROUP BY host, pid, began";
    let (counts, claims) = book
        .tables
        .read(|sql| Ok((sql.rows(&counts, &cells)?, sql.rows(claims, &[log_key.as_str().into()])?)))?;
    let mut state = QueueState::default();
    for row in counts {
        let Ok([Cell::Int(damaged), Cell::Int(place), Cell::Int(count), Cell::Int(due)]) =
            <[Cell; 4]>::try_from(row)
        else {
            continue;
        };
        let count = u64::try_from(count).unwrap_or_default();
        let due = Timestamp::from_microsecond(due).unwrap_or(now);
        match (damaged, place) {
            (0, 2) => state.running = count,
            (0, 1) => {
                state.waiting = count;
                state.oldest_wait = Some(Duration::try_from(now.duration_since(due)).unwrap_or_default());
            }
            (0, _) => {
                state.scheduled = count;
                state.next_due = Some(book.tables.here(due));
            }
            _ => state.damaged += count,
        }
    }
    let mut running: BTreeMap<(String, i64, i64), u64> = BTreeMap::new();
    for row in claims {
        if let Ok([Cell::Text(host), Cell::Int(pid), Cell::Int(began), Cell::Int(count)]) =
            <[Cell; 4]>::try_from(row)
        {
            running.insert((host, pid, began), u64::try_from(count).unwrap_or_default());
        }
    }
    state.workers = all(book, &log_key)?;
    state.workers.retain(|worker| queue.is_none_or(|queue| worker.state.queue == queue));
    for worker in &mut state.workers {
        let Holder { host, pid, began, .. } = &worker.state.holder;
        let claims = running.get(&(host.clone(), i64::from(*pid), began.cast_signed()));
        worker.running = claims.copied().unwrap_or_default();
    }
    Ok(state)
}
