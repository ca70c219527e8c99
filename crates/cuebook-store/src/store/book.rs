//! What a store does, whatever its tables are in: every call of [`Store`] as one transaction.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use cuebook_text::Result;
use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};

use super::LogKey;
use super::row::{self, Row, kept};
use super::rows::{BELOW, Key, Rows, UnansweredRequest};
use super::sql::{Cell, Tables};
use super::{
    Account, Authenticity, Change, Cost, Filter, FinalEvents, Holder, New, RateChange, Record, Store, error,
    ledger, queue,
};
use crate::money::Money;
use crate::record::{Entry, Event, Kind, OpenHook, Status, ThreadId, cost_json, first_hash, stopped_json};

/// How many threads of one prompt can begin within one millisecond.
const MAX_AT_ONCE: u32 = 100_000;
/// How long a sign of life is kept.
const BEATS_KEPT: jiff::SignedDuration = jiff::SignedDuration::from_hours(24);

/// A store over tables.
#[derive(Debug)]
pub struct Book<T> {
    pub(super) tables: T,
    key: Key,
}

impl<T: Tables> Book<T> {
    pub(crate) fn over(tables: T, key: Result<LogKey>) -> Book<T> {
        Book { tables, key: Arc::new(key) }
    }

    /// Does something with rows, in one transaction.
    pub(super) fn change<R: Send + 'static>(
        &self,
        job: impl Fn(&mut Rows<'_>) -> Result<R> + Send + 'static,
    ) -> Result<R> {
        let now = self.tables.now();
        let key = Arc::clone(&self.key);
        self.tables.write(move |sql| {
            let mut rows = Rows::new(sql, now, Arc::clone(&key));
            let answer = job(&mut rows)?;
            rows.finish()?;
            Ok(answer)
        })
    }

    fn look(&self, id: &ThreadId) -> Result<Option<Row>> {
        self.tables.read(|sql| {
            // No store can keep this sign, so nothing can have such a name.
            if id.as_str().contains('\0') {
                return Ok(None);
            }
            let statement = format!("{} WHERE id = $1", row::SELECT.as_str());
            let rows = sql.rows(&statement, &[id.as_str().into()])?;
            Ok(rows.into_iter().next().map(|cells| Row::read(cells, self.known_key())))
        })
    }

    /// The key that authenticates what is written; an error if it is missing.
    pub(super) fn write_key(&self) -> Result<&LogKey> {
        self.key.as_ref().as_ref().map_err(Clone::clone)
    }

    fn known_key(&self) -> Option<&LogKey> {
        self.key.as_ref().as_ref().ok()
    }

    fn rows(&self, statement: &str, cells: &[Cell]) -> Result<Vec<Row>> {
        self.tables.read(|sql| {
            let rows = sql.rows(statement, cells)?;
            Ok(rows.into_iter().map(|cells| Row::read(cells, self.known_key())).collect())
        })
    }

    pub(super) fn records(&self, statement: &str, cells: &[Cell]) -> Result<Vec<Record>> {
        Ok(self.rows(statement, cells)?.into_iter().map(|row| row.record).collect())
    }
}

impl<T: Tables> Store for Book<T> {
    fn begin(&self, new: &New) -> Result<Record> {
        let new = new.clone();
        self.change(move |rows| {
            let id = begin(rows, &new, ParentRelation::Child)?;
            rows.get(&id).map(|row| row.record)
        })
    }

    fn hand_over(
        &self,
        id: &ThreadId,
        holder: &Holder,
        entries: FinalEvents,
        change: &Change,
        new: &New,
    ) -> Result<Record> {
        let (id, holder, change, new) = (id.clone(), holder.clone(), change.clone(), new.clone());
        self.change(move |rows| {
            let id = hand_over(rows, &id, &holder, &entries, &change, &new)?;
            rows.get(&id).map(|row| row.record)
        })
    }

    fn key(&self) -> Option<&LogKey> {
        self.known_key()
    }

    fn change_rate(&self, name: &str, change: RateChange) -> Result<Option<Duration>> {
        super::rates::change(&self.tables, name, &change)
    }

    fn record(&self, id: &ThreadId) -> Result<Option<Record>> {
        Ok(self.look(id)?.map(|row| row.record))
    }

    fn list(&self, filter: &Filter) -> Result<Vec<Record>> {
        let (clause, cells) = clause(filter);
        let statement = format!("{}{clause}", row::SELECT.as_str());
        self.records(&statement, &cells)
    }

    fn list_accounts(&self, filter: &Filter) -> Result<Vec<(Record, Account)>> {
        let (clause, cells) = clause(filter);
        let statement = format!("{}{clause}", row::SELECT.as_str());
        let rows = self.rows(&statement, &cells)?;
        Ok(rows.into_iter().map(|row| (row.record, row.account)).collect())
    }

    fn tree(&self, id: &ThreadId) -> Result<Vec<Record>> {
        if id.as_str().contains('\0') {
            return Ok(Vec::new());
        }
        let statement = format!(
            "{BELOW} {} WHERE t.id IN (SELECT id FROM below) ORDER BY created_at, id",
            row::SELECT.as_str()
        );
        self.records(&statement, &[id.as_str().into()])
    }

    fn take(&self, id: &ThreadId, holder: &Holder, entries: &[Entry], change: &Change) -> Result<Record> {
        let (id, holder, change) = (id.clone(), holder.clone(), change.clone());
        let entries = entries.to_vec();
        self.change(move |rows| {
            take(rows, &id, &holder, &entries, &change)?;
            rows.get(&id).map(|row| row.record)
        })
    }

    fn append(
        &self,
        id: &ThreadId,
        holder: &Holder,
        entries: &[Entry],
        change: &Change,
    ) -> Result<Vec<Event>> {
        let (id, holder, change) = (id.clone(), holder.clone(), change.clone());
        let entries = entries.to_vec();
        self.change(move |rows| {
            let mut row = rows.held(&id, &holder)?;
            if change.behind.is_some_and(|seen| seen != row.record.last.0) {
                return Err(error::moved(&id, row.record.status));
            }
            let events = rows.enter(&mut row, &entries)?;
            apply(rows, row, &change)?;
            Ok(events)
        })
    }

    fn events(&self, id: &ThreadId, after: u64, most: usize) -> Result<Vec<Event>> {
        if id.as_str().contains('\0') {
            return Ok(Vec::new());
        }
        let statement =
            format!("{} WHERE thread = $1 AND seq > $2 ORDER BY seq LIMIT $3", row::SELECT_EVENTS.as_str());
        let cells = [id.as_str().into(), kept(after).into(), kept(most as u64).into()];
        self.tables.read(|sql| {
            let rows = sql.rows(&statement, &cells)?;
            rows.into_iter().map(|cells| row::read_event(id, cells)).collect()
        })
    }

    fn last_of(&self, id: &ThreadId, kind: Kind) -> Result<Option<Event>> {
        if id.as_str().contains('\0') {
            return Ok(None);
        }
        let statement = format!(
            "{} WHERE thread = $1 AND kind = $2 ORDER BY seq DESC LIMIT 1",
            row::SELECT_EVENTS.as_str()
        );
        self.tables.read(|sql| {
            let rows = sql.rows(&statement, &[id.as_str().into(), kind.as_str().into()])?;
            rows.into_iter().next().map(|cells| row::read_event(id, cells)).transpose()
        })
    }

    fn cancel(&self, id: &ThreadId) -> Result<Record> {
        let id = id.clone();
        self.change(move |rows| {
            cancel(rows, &id)?;
            rows.find(&id)?.map(|row| row.record).ok_or_else(|| error::not_found(&id))
        })
    }

    fn release(&self, id: &ThreadId, holder: Option<&Holder>) -> Result<bool> {
        let (id, holder) = (id.clone(), holder.cloned());
        self.change(move |rows| {
            let beat = rows.get(&id)?.record.beat_at;
            interrupt(rows, &id, holder.as_ref(), beat, &Map::new())
        })
    }

    fn standing(&self, id: &ThreadId) -> Result<Option<(bool, Account)>> {
        Ok(self.look(id)?.map(|row| (row.record.cancel, row.account)))
    }

    fn to_stop(&self, holder: &Holder) -> Result<Vec<ThreadId>> {
        let statement = "SELECT id FROM cuebook_threads WHERE status = 'running' AND cancel = 1 \
                         AND host = $1 AND pid = $2 AND began = $3";
        self.tables.read(|sql| {
            let rows = sql.rows(statement, &process(holder))?;
            let id = |row: Vec<Cell>| match row.into_iter().next() {
                Some(Cell::Text(id)) => Some(ThreadId::known(id)),
                _ => None,
            };
            Ok(rows.into_iter().filter_map(id).collect())
        })
    }

    fn beat(&self, holder: &Holder) -> Result<()> {
        let now = self.tables.now();
        let mut cells = process(holder).to_vec();
        cells.push(now.as_microsecond().into());
        let old = (now - BEATS_KEPT).as_microsecond();
        self.tables.write(move |sql| {
            let statement = "INSERT INTO cuebook_beats (host, pid, began, at) VALUES ($1, $2, $3, $4) \
                             ON CONFLICT (host, pid, began) DO UPDATE SET at = excluded.at";
            sql.run(statement, &cells)?;
            sql.run("DELETE FROM cuebook_beats WHERE at < $1", &[old.into()]).map(drop)
        })
    }

    fn sweep_with(
        &self,
        lives: &dyn Fn(&Holder, Option<Timestamp>) -> bool,
        dead: &dyn Fn(&Record) -> Result<Map<String, Json>>,
    ) -> Result<Vec<ThreadId>> {
        let statement = format!("{} WHERE status = 'running'", row::SELECT.as_str());
        let running = self.records(&statement, &[])?;
        let mut swept = Vec::new();
        // A thread that the key does not authenticate is left to its owner: nothing here writes to it.
        for record in running.into_iter().filter(|record| record.authenticity == Authenticity::Own) {
            let beat = record.beat_at.map(|at| self.tables.here(at));
            if record.holder.as_ref().is_some_and(|holder| lives(holder, beat)) {
                continue;
            }
            let more = dead(&record)?;
            let Record { id, holder, beat_at, .. } = record;
            let name = id.clone();
            if self.change(move |rows| interrupt(rows, &name, holder.as_ref(), beat_at, &more))? {
                swept.push(id);
            }
        }
        Ok(swept)
    }

    fn account(&self, id: &ThreadId) -> Result<Option<Account>> {
        Ok(self.look(id)?.map(|row| row.account))
    }
}

pub(super) fn process(holder: &Holder) -> [Cell; 3] {
    [holder.host.as_str().into(), i64::from(holder.pid).into(), holder.began.cast_signed().into()]
}

/// What stands behind `SELECT … FROM` for a filter.
fn clause(filter: &Filter) -> (String, Vec<Cell>) {
    let mut cells: Vec<Cell> = Vec::new();
    let mut parts = Vec::new();
    let mut place = |cell: Cell| {
        cells.push(cell);
        format!("${}", cells.len())
    };
    if !filter.status.is_empty() {
        let words: Vec<String> = filter.status.iter().map(|status| place(status.as_str().into())).collect();
        parts.push(format!("status IN ({})", words.join(", ")));
    }
    // A name with a sign that no store can keep fits nothing.
    let names =
        [("prompt", filter.prompt.as_deref()), ("parent", filter.parent.as_ref().map(ThreadId::as_str))];
    for (column, name) in names {
        match name {
            Some(name) if name.contains('\0') => parts.push("1 = 0".to_owned()),
            Some(name) => parts.push(format!("{column} = {}", place(name.into()))),
            None => {}
        }
    }
    let mut clause = String::new();
    if !parts.is_empty() {
        let _ = write!(clause, " WHERE {}", parts.join(" AND "));
    }
    clause.push_str(" ORDER BY created_at DESC, id DESC");
    if let Some(most) = filter.most {
        let _ = write!(clause, " LIMIT {}", place(kept(most as u64).into()));
    }
    (clause, cells)
}

/// What a new thread is to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ParentRelation {
    /// One more child, which counts as started.
    Child,
    /// It takes the place of a child.
    Successor,
}

pub(super) fn begin(rows: &mut Rows<'_>, new: &New, place: ParentRelation) -> Result<ThreadId> {
    rows.check([Some(new.prompt.as_str()), new.model.as_deref()])?;
    let log_key = rows.key()?.id().to_owned();
    let now = rows.now;
    let account = |id: &ThreadId| Account {
        id: id.clone(),
        parent: new.parent.clone(),
        limit: new.spend.max(Money::ZERO),
        spent: Money::ZERO,
        children: Money::ZERO,
        held: Money::ZERO,
        reserved: Money::ZERO,
        settled: false,
    };
    let milliseconds = now.as_millisecond();
    let mut claim = Money::ZERO;
    if let Some(id) = &new.parent {
        let mut parent = match &new.parent_holder {
            Some(holder) => rows.held(id, holder)?,
            None => rows.own(id)?,
        };
        if parent.record.authenticity != Authenticity::Own {
            return Err(error::not_own(id, &parent.record.authenticity));
        }
        if parent.record.cancel {
            return Err(error::cancelled(id));
        }
        if place == ParentRelation::Child {
            if !ledger::can_have_children(&parent) {
                return Err(error::closed(id, parent.record.status, new.spend));
            }
            match new.parent_spawns {
                Some(most) if u64::from(parent.record.spawned) >= most => {
                    return Err(error::spawns(id, parent.record.spawned, most));
                }
                _ => parent.record.spawned = parent.record.spawned.saturating_add(1),
            }
        }
        claim = ledger::reserve(&mut parent, &account(&ThreadId::known("")))?;
        parent.record.updated_at = now;
        rows.put(parent);
    }
    for again in 0..MAX_AT_ONCE {
        let id = ThreadId::new(&new.prompt, milliseconds, again);
        let record = Record {
            id: id.clone(),
            prompt: new.prompt.clone(),
            parent: new.parent.clone(),
            status: if new.holder.is_some() { Status::Running } else { Status::Created },
            created_at: now,
            updated_at: now,
            completed_at: None,
            holder: new.holder.clone(),
            beat_at: None,
            cancel: false,
            model: new.model.clone(),
            cost: Cost::default(),
            spawned: 0,
            result: None,
            continuation_of: new.continuation_of.clone(),
            continued_by: None,
            last: (0, first_hash()),
            authenticity: Authenticity::Own,
        };
        let (taken_at, log_key) = (new.holder.as_ref().map(|_| now), Some(log_key.clone()));
        let mut row = Row { record, account: account(&id), claim, open: 0, taken_at, log_key };
        row.record.beat_at = taken_at;
        if !rows.insert(&row)? {
            continue;
        }
        rows.enter(&mut row, &new.entries)?;
        if new.unpriced {
            ledger::unprice(rows, &mut row)?;
        }
        rows.put(row);
        if let Some(before) = &new.continuation_of {
            let mut before = rows.get(before)?;
            if before.record.continued_by.is_none() {
                before.record.continued_by = Some(id.clone());
                rows.put(before);
            }
        }
        return Ok(id);
    }
    let why = format!("{MAX_AT_ONCE} threads of `{}` began within one millisecond", new.prompt);
    Err(error::failed(rows.sql.place(), &why, "try again"))
}

/// Applies what changes, and brings the ledger into balance.
pub(super) fn apply(rows: &mut Rows<'_>, mut row: Row, change: &Change) -> Result<()> {
    ledger::change(rows, &mut row, change)?;
    if let Some(status) = change.status.filter(|status| status.is_at_rest()) {
        queue::rests(rows, &row.record.id, status)?;
    }
    if row.record.status.is_at_rest() {
        row.record.completed_at = Some(rows.now);
    }
    ledger::balance(rows, row)
}

fn take(
    rows: &mut Rows<'_>,
    id: &ThreadId,
    holder: &Holder,
    entries: &[Entry],
    change: &Change,
) -> Result<()> {
    let mut row = match change.adopt {
        true => rows.find(id)?.ok_or_else(|| error::not_found(id))?,
        false => rows.own(id)?,
    };
    if let Authenticity::Damaged(why) = &row.record.authenticity {
        return Err(error::damaged(id, why));
    }
    let status = row.record.status;
    if status == Status::Running {
        return Err(error::runs(id, row.record.holder.as_ref().map(|holder| holder.pid)));
    }
    if !status.can_resume() {
        return Err(error::ended(id, status, row.record.continued_by.as_ref()));
    }
    if change.behind.is_some_and(|seen| seen != row.record.last.0) {
        return Err(error::moved(id, status));
    }
    queue::taken(rows, id, holder)?;
    if row.record.authenticity != Authenticity::Own {
        rows.adopt(&mut row)?;
        rows.put(row.clone());
    }
    let mut change = Change { status: None, ..change.clone() };
    if row.account.settled {
        // It claims anew, so the new limit is all that it claims.
        if let Some(limit) = change.spend_limit.take() {
            row.account.limit = limit.max(row.account.spent + row.account.children);
            rows.put(row);
        }
        ledger::reopen(rows, id)?;
        row = rows.get(id)?;
    }
    let record = &mut row.record;
    record.status = Status::Running;
    record.holder = Some(holder.clone());
    record.beat_at = Some(rows.now);
    record.cancel = false;
    record.completed_at = None;
    record.result = None;
    row.taken_at = Some(rows.now);
    rows.enter(&mut row, entries)?;
    apply(rows, row, &change)
}

fn hand_over(
    rows: &mut Rows<'_>,
    id: &ThreadId,
    holder: &Holder,
    entries: &FinalEvents,
    change: &Change,
    new: &New,
) -> Result<ThreadId> {
    let mut row = rows.held(id, holder)?;
    if row.record.cancel {
        // A request to stop means that no process continues it.
        return Err(error::cancelled(id));
    }
    ledger::change(rows, &mut row, &Change { status: None, ..change.clone() })?;
    ledger::rest(&mut row);
    ledger::give_up(&mut row);
    ledger::balance(rows, row)?;
    let new = New { continuation_of: Some(id.clone()), ..new.clone() };
    let next = begin(rows, &new, ParentRelation::Successor)?;
    if let Some(holder) = &new.holder {
        queue::hand_over(rows, id, &next, holder)?;
    }
    let mut row = rows.get(id)?;
    rows.enter(&mut row, &entries(&next))?;
    let status = Some(Status::Continued);
    apply(rows, row, &Change { status, continued_by: Some(next.clone()), ..Change::default() })?;
    Ok(next)
}

/// Cancels threads that no process runs, and notifies the processes of the others.
fn cancel(rows: &mut Rows<'_>, id: &ThreadId) -> Result<()> {
    let mut seen = BTreeSet::new();
    loop {
        // The lowest first, as when accounts settle: transactions that lock rows in one order do not wait in a circle.
        // A child that began meanwhile is seen in the next round; from then on its parent starts no more.
        let tree: Vec<ThreadId> = rows.tree(id)?.into_iter().filter(|id| !seen.contains(id)).collect();
        if tree.is_empty() {
            return if seen.is_empty() { Err(error::not_found(id)) } else { Ok(()) };
        }
        for id in tree {
            stop(rows, &id)?;
            seen.insert(id);
        }
    }
}

fn stop(rows: &mut Rows<'_>, id: &ThreadId) -> Result<()> {
    let found = rows.find(id)?.ok_or_else(|| error::not_found(id))?.record;
    if found.status == Status::Running && !matches!(found.authenticity, Authenticity::Own | Authenticity::Old)
    {
        // Anybody may ask a thread to stop. The rest of the row stays as its owner sealed it.
        let statement = "UPDATE cuebook_threads SET cancel = 1 WHERE id = $1";
        return rows.sql.run(statement, &[id.as_str().into()]).map(drop);
    }
    let mut row = rows.get(id)?;
    match row.record.status {
        status if status.is_settled() => {}
        Status::Running => {
            row.record.cancel = true;
            row.record.updated_at = rows.now;
            rows.put(row);
        }
        status => {
            row.record.cancel = true;
            let said = json!({"while": status.as_str(), "cost": cost_json(&row.record.cost)});
            rows.enter(&mut row, &[Entry::new(Kind::Cancelled, said)])?;
            let when = match status {
                Status::Created => "cancelled before it began".to_owned(),
                status => format!("cancelled while it was {status}"),
            };
            let result = Some(stopped_json(id, &when, &row.record.cost));
            apply(rows, row, &Change { status: Some(Status::Cancelled), result, ..Change::default() })?;
        }
    }
    Ok(())
}

/// Events that are written together with what the thread has used so far.
const COUNTED: [Kind; 3] = [Kind::CognitionOut, Kind::CognitionPartial, Kind::Retry];

/// When the process of a thread last gave a sign of life: a beat, or an event. The time from when it was last counted until then is
/// counted now, or else a thread that dies often enough would run permanently. How long it lived after that is unknown.
fn last_sign(rows: &mut Rows<'_>, row: &mut Row) -> Result<Option<Timestamp>> {
    let id = &row.record.id;
    // A sign of life from the future is one from now.
    let last = row.record.beat_at.max(rows.last_at(id, &[])?).map(|last| last.min(rows.now));
    let counted = row.taken_at.max(rows.last_at(id, &COUNTED)?);
    if let (Some(last), Some(counted)) = (last, counted) {
        // Clocks can be set back.
        let more = Duration::try_from(last.duration_since(counted)).unwrap_or_default();
        row.record.cost.elapsed = row.record.cost.elapsed.saturating_add(more);
    }
    Ok(last)
}

/// How a thread has ended whose holder had only to carry out what its hooks want at the end.
fn ended(rows: &mut Rows<'_>, row: &Row) -> Result<Option<Status>> {
    let id = &row.record.id;
    // Whatever a thread does but for its hooks begins with one of these.
    let kinds = [
        Kind::Completed,
        Kind::Failed,
        Kind::Cancelled,
        Kind::Suspended,
        Kind::Started,
        Kind::Resumed,
        Kind::CognitionIn,
        Kind::ToolStart,
    ];
    if rows.last_at(id, &kinds)? < row.taken_at {
        // That was in an earlier life.
        return Ok(None);
    }
    Ok(match rows.last_of(id, &kinds)? {
        Some((Kind::Completed, _)) => Some(Status::Completed),
        Some((Kind::Failed, _)) => Some(Status::Error),
        Some((Kind::Cancelled, _)) => Some(Status::Cancelled),
        Some((Kind::Suspended, _)) => Some(Status::Suspended),
        _ => None,
    })
}

/// Brings a thread to rest that had ended and whose holder died while a hook ran. That hook may have done what it does.
fn come_to_rest(rows: &mut Rows<'_>, mut row: Row, status: Status, more: &Map<String, Json>) -> Result<()> {
    if let Some((Kind::HookStart, payload)) = rows.last_of(&row.record.id, &[])? {
        let mut said = OpenHook::of(&payload).to_json();
        for (name, value) in more {
            said[name] = value.clone();
        }
        rows.enter(&mut row, &[Entry::new(Kind::HookUnknown, said)])?;
    }
    apply(rows, row, &Change { status: Some(status), ..Change::default() })
}

/// Marks a thread whose holder died, unless something has happened to it meanwhile.
pub(super) fn interrupt(
    rows: &mut Rows<'_>,
    id: &ThreadId,
    holder: Option<&Holder>,
    beat: Option<Timestamp>,
    more: &Map<String, Json>,
) -> Result<bool> {
    let mut row = rows.get(id)?;
    let record = &row.record;
    if record.status != Status::Running || record.holder.as_ref() != holder || record.beat_at != beat {
        return Ok(false);
    }
    queue::died(rows, id)?;
    if let Some(status) = ended(rows, &row)? {
        return come_to_rest(rows, row, status, more).map(|()| true);
    }
    let last = last_sign(rows, &mut row)?;
    let held = row.account.held;
    let UnansweredRequest { mut read, reading, mut written, writing } = rows.unanswered(id)?;
    let unknown = match reading {
        // Nothing is held, so there was no request.
        Some(reading) if reading > Money::ZERO && held == Money::ZERO => {
            (read, written) = (0, 0);
            Money::ZERO
        }
        Some(reading) => (reading + writing).min(held),
        // How much of it was spent is unknown.
        None => held,
    };
    row.account.held = unknown;
    ledger::rest(&mut row);
    let cost = &mut row.record.cost;
    cost.input_tokens = cost.input_tokens.saturating_add(read);
    cost.output_tokens = cost.output_tokens.saturating_add(written);
    cost.estimated = cost.estimated.saturating_add(read).saturating_add(written);
    let mut said = json!({
        "pid": holder.map(|holder| holder.pid),
        "last_sign_of_life": last.map(|at| at.to_string()),
        "cost": cost_json(&row.record.cost),
    });
    if read > 0 {
        said["estimated"] = json!({"input": read, "output": written});
    }
    match reading {
        Some(_) if read > 0 => {
            said["estimated"]["spend"] = unknown.to_json();
            let known = match written {
                0 => "the tokens that the model read count",
                _ => "the tokens that the model read, and the known part of the answer, count",
            };
            said["note"] = json!(format!(
                "a request was sent and the answer is unknown: {known} as an estimate; the rest of the reservation is released"
            ));
        }
        None if unknown > Money::ZERO => {
            said["held_counted_as_spent"] = unknown.to_json();
            said["note"] = json!("a request was sent and the answer is unknown, so it counts as paid");
        }
        _ => {}
    }
    for (name, value) in more {
        said[name] = value.clone();
    }
    rows.enter(&mut row, &[Entry::new(Kind::Interrupted, said)])?;
    let cancel = row.record.cancel;
    apply(rows, row, &Change { status: Some(Status::Interrupted), ..Change::default() })?;
    if cancel {
        // No process is left to do the requested work.
        stop(rows, id)?;
    }
    Ok(true)
}
