//! The rows that one transaction has in its hands. A row is read once, and written once when all is done.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use cuebook_text::Result;
use jiff::Timestamp;
use serde_json::{Map, Value as Json};

use super::LogKey;
use super::row::{self, Indexed, LARGEST_EVENT, Row};
use super::sql::{Cell, Sql};
use super::{Authenticity, Holder, error};
use crate::money::Money;
use crate::record::{Entry, Event, Kind, Status, ThreadId, first_hash};

/// How deep a payload may be nested. What is deeper is kept as text, because it could not be read again.
const DEEPEST: usize = 100;

/// A thread and all below it, as a table. `UNION` drops what is there already, so a circle of parents comes to an end.
pub(crate) const BELOW: &str = "WITH RECURSIVE below (id) AS (
        SELECT id FROM cuebook_threads WHERE id = $1
        UNION
        SELECT t.id FROM cuebook_threads t JOIN below ON t.parent = below.id
    )";

/// The key of a store, or why it is missing.
pub(crate) type Key = Arc<Result<LogKey>>;

pub(crate) struct Rows<'s> {
    pub(crate) sql: &'s mut dyn Sql,
    pub(crate) now: Timestamp,
    key: Key,
    rows: BTreeMap<ThreadId, Row>,
    /// The rows to write, in the order in which they were first put back.
    changed: Vec<ThreadId>,
    is_changed: BTreeSet<ThreadId>,
    /// By what rows were found when they were read.
    found: BTreeMap<ThreadId, Indexed>,
}

/// A question to a model without a known answer.
#[derive(Debug, Default)]
pub(crate) struct UnansweredRequest {
    /// How many tokens the model got.
    pub(crate) read: u64,
    /// What reading them costs; logs of earlier versions do not say it.
    pub(crate) reading: Option<Money>,
    /// How many tokens had come of the answer when that was last written down.
    pub(crate) written: u64,
    /// What they cost.
    pub(crate) writing: Money,
}

impl<'s> Rows<'s> {
    pub(crate) fn new(sql: &'s mut dyn Sql, now: Timestamp, key: Key) -> Rows<'s> {
        // Microseconds are what is kept, and what hashes are made of.
        let now = Timestamp::from_microsecond(now.as_microsecond()).unwrap_or(now);
        Rows {
            sql,
            now,
            key,
            rows: BTreeMap::new(),
            changed: Vec::new(),
            is_changed: BTreeSet::new(),
            found: BTreeMap::new(),
        }
    }

    /// The key that authenticates what is written; an error if it is missing.
    pub(crate) fn key(&self) -> Result<&LogKey> {
        self.key.as_ref().as_ref().map_err(Clone::clone)
    }

    fn known_key(&self) -> Option<&LogKey> {
        self.key.as_ref().as_ref().ok()
    }

    /// A row that no other transaction changes until this one ends.
    pub(crate) fn find(&mut self, id: &ThreadId) -> Result<Option<Row>> {
        if let Some(row) = self.rows.get(id) {
            return Ok(Some(row.clone()));
        }
        // No store can keep this sign, so nothing can have such a name.
        if id.as_str().contains('\0') {
            return Ok(None);
        }
        let statement = format!("{} WHERE id = $1{}", row::SELECT.as_str(), self.sql.for_update());
        let found = self.sql.rows(&statement, &[id.as_str().into()])?;
        let Some(cells) = found.into_iter().next() else { return Ok(None) };
        let row = Row::read(cells, self.known_key());
        self.found.insert(id.clone(), row.indexed());
        self.rows.insert(id.clone(), row.clone());
        Ok(Some(row))
    }

    /// Checks that every store can keep some names.
    pub(crate) fn check<'t>(&self, names: impl IntoIterator<Item = Option<&'t str>>) -> Result<()> {
        if names.into_iter().flatten().any(|name| name.contains('\0')) {
            let why = "the name of a prompt, a model or a thread contains a NUL character";
            return Err(error::failed(self.sql.place(), why, "give it another name"));
        }
        Ok(())
    }

    /// A row that must be there, and may be written: a row with another key's seal or none must not get a seal of ours.
    pub(crate) fn get(&mut self, id: &ThreadId) -> Result<Row> {
        let row = self.find(id)?.ok_or_else(|| error::not_found(id))?;
        match &row.record.authenticity {
            Authenticity::Own | Authenticity::Old => Ok(row),
            other => Err(error::not_own(id, other)),
        }
    }

    /// A row that must be there, and that our key authenticates.
    pub(crate) fn own(&mut self, id: &ThreadId) -> Result<Row> {
        let row = self.get(id)?;
        match row.record.authenticity {
            Authenticity::Own => Ok(row),
            other => Err(error::not_own(id, &other)),
        }
    }

    /// The row of a thread that has a holder.
    pub(crate) fn held(&mut self, id: &ThreadId, holder: &Holder) -> Result<Row> {
        let row = self.get(id)?;
        if row.record.status != Status::Running || row.record.holder.as_ref() != Some(holder) {
            return Err(error::lost(id, row.record.status));
        }
        Ok(row)
    }

    /// Puts a row back that was changed.
    pub(crate) fn put(&mut self, row: Row) {
        let id = row.record.id.clone();
        if self.is_changed.insert(id.clone()) {
            self.changed.push(id.clone());
        }
        self.rows.insert(id, row);
    }

    /// Writes a new row. Says `false` if the name is taken.
    pub(crate) fn insert(&mut self, row: &Row) -> Result<bool> {
        let key = Arc::clone(&self.key);
        let inserted = row.insert(self.sql, key.as_ref().as_ref().ok())?;
        if inserted {
            self.rows.insert(row.record.id.clone(), row.clone());
        }
        Ok(inserted)
    }

    /// Writes events behind the last one of a thread.
    pub(crate) fn enter(&mut self, row: &mut Row, entries: &[Entry]) -> Result<Vec<Event>> {
        let mut events: Vec<Event> = Vec::with_capacity(entries.len());
        let key = Arc::clone(&self.key);
        let key = match row.log_key {
            Some(_) => Some(key.as_ref().as_ref().map_err(Clone::clone)?),
            None => None,
        };
        for entry in entries {
            let (seq, previous) = &row.record.last;
            let readable = readable(&entry.payload).map(|payload| Entry::new(entry.kind, payload));
            let entry = readable.as_ref().unwrap_or(entry);
            let event = Event::chain(key, &row.record.id, previous, seq + 1, self.now, entry);
            if event.text.len() > LARGEST_EVENT {
                let why = format!("an event has {} bytes; the limit is {LARGEST_EVENT}", event.text.len());
                return Err(error::failed(self.sql.place(), &why, "make the tool or the model return less"));
            }
            row.record.last = (event.seq, event.hash.clone());
            events.push(event);
        }
        row::insert_events(self.sql, &row.record.id, &events)?;
        Ok(events)
    }

    /// When the last event of a thread was written, or the last one of some kinds.
    pub(crate) fn last_at(&mut self, id: &ThreadId, kinds: &[Kind]) -> Result<Option<Timestamp>> {
        let at = self.last("at", id, kinds)?.into_iter().flatten().next();
        Ok(match at {
            Some(Cell::Int(micros)) => Timestamp::from_microsecond(micros).ok(),
            _ => None,
        })
    }

    fn last(&mut self, columns: &str, id: &ThreadId, kinds: &[Kind]) -> Result<Vec<Vec<Cell>>> {
        let mut cells: Vec<Cell> = vec![id.as_str().into()];
        cells.extend(kinds.iter().map(|kind| Cell::from(kind.as_str())));
        let places: Vec<String> = (2..=cells.len()).map(|number| format!("${number}")).collect();
        let of_kinds = match kinds {
            [] => String::new(),
            _ => format!(" AND kind IN ({})", places.join(", ")),
        };
        let statement = format!(
            "SELECT {columns} FROM cuebook_events WHERE thread = $1{of_kinds} ORDER BY seq DESC LIMIT 1"
        );
        self.sql.rows(&statement, &cells)
    }

    /// The last event of a thread, or the last one of some kinds.
    pub(crate) fn last_of(&mut self, id: &ThreadId, kinds: &[Kind]) -> Result<Option<(Kind, Json)>> {
        let rows = self.last("kind, payload", id, kinds)?;
        // A log that was changed from outside is reported when it is read.
        Ok(match rows.first().map(Vec::as_slice) {
            Some([Cell::Text(kind), Cell::Text(payload)]) => {
                Kind::named(kind).zip(serde_json::from_str::<Json>(payload).ok())
            }
            _ => None,
        })
    }

    /// The question to a model of which the log does not say what came; nothing if it is missing.
    pub(crate) fn unanswered(&mut self, id: &ThreadId) -> Result<UnansweredRequest> {
        let kinds = [Kind::CognitionIn, Kind::CognitionOut, Kind::CognitionPartial, Kind::Interrupted];
        let Some((Kind::CognitionIn, asked)) = self.last_of(id, &kinds)? else {
            return Ok(UnansweredRequest::default());
        };
        let tokens = |payload: &Json| payload["tokens"].as_u64().unwrap_or(0);
        let spend =
            |payload: &Json| payload["spend_nanos"].as_i64().map(|nanos| Money::from_nanos(nanos.max(0)));
        let mut unanswered = UnansweredRequest {
            read: tokens(&asked),
            reading: spend(&asked),
            ..UnansweredRequest::default()
        };
        // What had come of an attempt that failed is counted with that.
        let statement = "SELECT payload FROM cuebook_events WHERE thread = $1 AND kind = $2 AND seq > \
                         (SELECT MAX(seq) FROM cuebook_events WHERE thread = $3 AND kind IN ($4, $5))";
        let [delta, asked, again] = [Kind::TokenDelta, Kind::CognitionIn, Kind::Retry].map(Kind::as_str);
        let cells = [id.as_str(), delta, id.as_str(), asked, again].map(Cell::from);
        for row in self.sql.rows(statement, &cells)? {
            let Some(Cell::Text(payload)) = row.into_iter().next() else { continue };
            // A log that was changed from outside is reported when it is read.
            let said: Json = serde_json::from_str(&payload).unwrap_or_default();
            unanswered.written = unanswered.written.saturating_add(tokens(&said));
            unanswered.writing = unanswered.writing + spend(&said).unwrap_or_default();
        }
        Ok(unanswered)
    }

    /// A thread and all below it, the lowest first.
    pub(crate) fn tree(&mut self, id: &ThreadId) -> Result<Vec<ThreadId>> {
        let statement =
            format!("{BELOW} SELECT id, parent FROM cuebook_threads WHERE id IN (SELECT id FROM below)");
        let mut children: HashMap<String, Vec<String>> = HashMap::new();
        let mut is_there = false;
        for row in self.sql.rows(&statement, &[id.as_str().into()])? {
            match <[Cell; 2]>::try_from(row) {
                Ok([Cell::Text(child), _]) if child == id.as_str() => is_there = true,
                Ok([Cell::Text(child), Cell::Text(parent)]) => {
                    children.entry(parent).or_default().push(child)
                }
                _ => {}
            }
        }
        if !is_there {
            return Ok(Vec::new());
        }
        // Level by level. Every thread has one parent, and the first one is no child here, so none comes twice.
        let mut tree = vec![ThreadId::known(id.as_str())];
        let mut next = 0;
        while let Some(parent) = tree.get(next) {
            let mut below = children.remove(parent.as_str()).unwrap_or_default();
            below.sort_unstable();
            tree.extend(below.into_iter().map(ThreadId::known));
            next += 1;
        }
        tree.reverse();
        Ok(tree)
    }

    /// Makes the log of a thread one that our key has written. The user vouches for what it says.
    pub(crate) fn adopt(&mut self, row: &mut Row) -> Result<()> {
        let key = self.key()?.clone();
        let (id, mut previous, mut seq) = (row.record.id.clone(), first_hash(), 0);
        let statement = format!(
            "{} WHERE thread = $1 AND seq > $2 AND seq <= $3 ORDER BY seq LIMIT 100",
            row::SELECT_EVENTS.as_str()
        );
        loop {
            let cells = [id.as_str().into(), row::kept(seq).into(), row::kept(row.record.last.0).into()];
            let events = self.sql.rows(&statement, &cells)?;
            if events.is_empty() {
                break;
            }
            for cells in events {
                let event = row::read_event(&id, cells)?;
                seq = event.seq;
                previous = event.hashed(Some(&key), &id, &previous);
                let cells = [previous.as_str().into(), id.as_str().into(), row::kept(seq).into()];
                let statement = "UPDATE cuebook_events SET hash = $1 WHERE thread = $2 AND seq = $3";
                self.sql.run(statement, &cells)?;
            }
        }
        row.record.last = (seq, previous);
        row.record.authenticity = Authenticity::Own;
        row.log_key = Some(key.id().to_owned());
        Ok(())
    }

    /// Writes every row that was changed.
    pub(crate) fn finish(self) -> Result<()> {
        let key = self.key.as_ref().as_ref().ok();
        for id in &self.changed {
            if let Some(row) = self.rows.get(id) {
                row.update(self.sql, self.found.get(id), key)?;
            }
        }
        Ok(())
    }
}

/// Goes from thread to thread upwards. A store that was changed from outside can lead in a circle.
#[derive(Default)]
pub(crate) struct Ancestors(BTreeSet<ThreadId>);

impl Ancestors {
    /// Notes a thread on the way; an error if it was there before.
    pub(crate) fn step(&mut self, id: &ThreadId) -> Result<()> {
        match self.0.insert(id.clone()) {
            true => Ok(()),
            false => Err(error::circle(id)),
        }
    }
}

/// What is kept instead of a value that could not be read again, if it is such a one.
pub(crate) fn readable(json: &Json) -> Option<Json> {
    is_deep(json, DEEPEST).then(|| flat(json, DEEPEST))
}

/// Whether a value is nested deeper than this.
fn is_deep(json: &Json, left: usize) -> bool {
    match json {
        Json::Array(items) => left == 0 || items.iter().any(|item| is_deep(item, left - 1)),
        Json::Object(fields) => left == 0 || fields.values().any(|field| is_deep(field, left - 1)),
        _ => false,
    }
}

/// The value, with what is nested deeper than this as text.
fn flat(json: &Json, left: usize) -> Json {
    match json {
        Json::Array(_) | Json::Object(_) if left == 0 => Json::String(json.to_string()),
        Json::Array(items) => items.iter().map(|item| flat(item, left - 1)).collect(),
        Json::Object(fields) => {
            let field = |(name, value): (&String, &Json)| (name.clone(), flat(value, left - 1));
            Json::Object(fields.iter().map(field).collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}
