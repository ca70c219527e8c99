//! Where threads are kept: the registry, the logs and the ledger, in one place, so that they change together or not at all.
//!
//! A [`Store`] is a SQLite file or a PostgreSQL database; both keep the same tables and pass the same tests. The code that runs a
//! thread holds it with a [`Holder`], and every write names the holder: a process that lost its thread to another one can no
//! longer write to it.
//!
//! # The ledger
//!
//! Every thread has an account. Its limit is reserved from its parent's account when it begins; what it has left over goes back
//! when it and all its children have settled, in the same transaction as the event that says so. Before a model is asked, the most
//! that the answer can cost is *held*; what it did cost replaces it together with the answer's event. So at any moment
//! `spent + held + reserved for children ≤ limit`, after any crash, and nothing is counted twice.
//!
//! What a model did cost is recorded as it was, also when it is more than was held or than the limit; it then shows in every
//! account above at once, and no more can be held. What a thread still holds when it comes to rest counts as
//! spent, because the true figure is unknown. If the process died while a model was asked, what was read for that and the text that had come count, as the log
//! tells it, and the rest of what was held is let go. A thread that ended and is taken up again claims its limit anew: if its parent has
//! settled too, that one's account is opened first, and so on upwards, and if one of them has too little left, nothing is.

mod address;
mod book;
mod cancel_watch;
mod checkpoint;
mod error;
mod group;
mod heartbeat;
mod ledger;
mod pool;
mod postgres;
mod queue;
mod rates;
mod row;
mod rows;
mod schema;
mod sql;
mod sqlite;

use std::fmt::Debug;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cuebook_text::Result;
use jiff::Timestamp;
use serde_json::{Map, Value as Json, json};

use crate::money::Money;
use crate::record::{Entry, Event, Kind, Status, ThreadId};

pub use crate::record::{Cost, Holder, LOG_KEY, LogKey, lives};
use address::Address;
pub use book::Book;
#[doc(hidden)]
pub use cancel_watch::{CancelWatch, Watched};
#[doc(hidden)]
pub use error::{damaged, moved, not_own};
pub use heartbeat::{Heartbeat, HeartbeatGuard};
pub use postgres::{Postgres, PostgresStore};
pub use queue::{Claim, ClaimLimits, Place, Queue, QueueState, WorkerRow, WorkerState};
#[doc(hidden)]
pub use queue::{can_run, failed_to_start};
pub use sqlite::{Sqlite, SqliteStore};

/// The variable that says where threads are kept.
pub const STORE: &str = "CUEBOOK_STORE";

/// A row of the registry.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The thread.
    pub id: ThreadId,
    /// The directive or other prompt that it carries out.
    pub prompt: String,
    /// The thread that started it.
    pub parent: Option<ThreadId>,
    /// The thread's status.
    pub status: Status,
    /// When it was registered.
    pub created_at: Timestamp,
    /// When something last changed.
    pub updated_at: Timestamp,
    /// When it came to rest.
    pub completed_at: Option<Timestamp>,
    /// Who runs it, or ran it last.
    pub holder: Option<Holder>,
    /// When its holder last gave a sign of life.
    pub beat_at: Option<Timestamp>,
    /// Whether it is asked to stop.
    pub cancel: bool,
    /// The model.
    pub model: Option<String>,
    /// What it used so far.
    pub cost: Cost,
    /// How many children it has started.
    pub spawned: u32,
    /// What came of it.
    pub result: Option<Json>,
    /// The thread whose conversation it goes on with.
    pub continuation_of: Option<ThreadId>,
    /// The thread that goes on with its conversation.
    pub continued_by: Option<ThreadId>,
    /// The number of its last event, and its hash.
    pub last: (u64, String),
    /// Whether its row was written with the user's log key.
    pub authenticity: Authenticity,
}

/// Whether the user's log key authenticates a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Authenticity {
    /// It was written with this key.
    Own,
    /// It was written with another key: by another user, or on a machine with another key.
    Foreign,
    /// It was written by an earlier version, without a key.
    Old,
    /// It was changed from outside, or cannot be understood: why.
    Damaged(String),
}

impl Authenticity {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            Authenticity::Own => "own",
            Authenticity::Foreign => "foreign",
            Authenticity::Old => "old",
            Authenticity::Damaged(_) => "damaged",
        }
    }

    /// What a reader has to know about a log that the key does not authenticate.
    pub fn warning(&self) -> Option<String> {
        match self {
            Authenticity::Own => None,
            Authenticity::Foreign => Some("not written with your log key".to_owned()),
            Authenticity::Old => {
                Some("unauthenticated (old): an earlier version wrote it without a key".to_owned())
            }
            Authenticity::Damaged(why) => Some(format!("damaged: {why}")),
        }
    }
}

impl Record {
    /// The row as scripts see it.
    pub fn to_json(&self) -> Json {
        let id = |id: &Option<ThreadId>| id.as_ref().map(ThreadId::as_str).map(str::to_owned);
        let moment = |at: Timestamp| at.to_string();
        let mut object = Map::new();
        let mut say = |name: &str, value: Json| drop(object.insert(name.to_owned(), value));
        say("thread_id", json!(self.id.as_str()));
        say("directive", json!(self.prompt));
        say("parent_id", json!(id(&self.parent)));
        say("status", json!(self.status.as_str()));
        say("created_at", json!(moment(self.created_at)));
        say("updated_at", json!(moment(self.updated_at)));
        say("completed_at", json!(self.completed_at.map(moment)));
        say("model", json!(self.model));
        say("cost", self.cost.to_json());
        say("spawn_count", json!(self.spawned));
        say("pid", json!(self.holder.as_ref().map(|holder| holder.pid)));
        say("cancel_requested", json!(self.cancel));
        say("continuation_of", json!(id(&self.continuation_of)));
        say("continuation_thread_id", json!(id(&self.continued_by)));
        say("events", json!(self.last.0));
        say("result", self.result.clone().unwrap_or(Json::Null));
        if self.authenticity != Authenticity::Own {
            say("authenticity", json!(self.authenticity.as_str()));
            say("warning", json!(self.authenticity.warning()));
        }
        Json::Object(object)
    }
}

/// A thread that is to be registered.
#[derive(Debug, Clone)]
pub struct New {
    /// The prompt that it carries out. Its id is made of that and of the moment.
    pub prompt: String,
    /// The thread that starts it.
    pub parent: Option<ThreadId>,
    /// Who runs the parent, if the thread is started for the parent: one that another process continued meanwhile
    /// starts nothing any more. `None` if that is not known, as of a program that a tool started.
    pub parent_holder: Option<Holder>,
    /// How many children its parent may start in all.
    pub parent_spawns: Option<u64>,
    /// The most that it may spend, which is reserved from its parent. [`Money::MAX`] is no limit, which only a parent without
    /// one can give.
    pub spend: Money,
    /// The model, if it is known yet.
    pub model: Option<String>,
    /// Whether the price of that is not known: then neither is what the thread spends, nor what those above it spend in all.
    pub unpriced: bool,
    /// The thread whose conversation it goes on with.
    pub continuation_of: Option<ThreadId>,
    /// Who runs it at once; none yet if it is missing.
    pub holder: Option<Holder>,
    /// Its first events.
    pub entries: Vec<Entry>,
}

/// What changes together with the events that are appended. What is `None` stays.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Change {
    /// The thread's status now. One that [is settled](Status::is_settled) closes the account. A thread at rest holds
    /// nothing: what it does not let go of, by `cost` or `hold`, counts as spent.
    pub status: Option<Status>,
    /// What it has used now, in all. Its spend replaces what was spent before, and takes the place of what was held.
    pub cost: Option<Cost>,
    /// What is held for an answer that is asked for now; [`Money::ZERO`] lets go of it.
    pub hold: Option<Money>,
    /// What came of it.
    pub result: Option<Json>,
    /// The model.
    pub model: Option<String>,
    /// Whether a model is asked from now on whose price is not known. What was not known once stays so.
    pub unpriced: bool,
    /// The thread that goes on with its conversation.
    pub continued_by: Option<ThreadId>,
    /// The number of the last event that the author of the change knows. If others were written since, nothing
    /// changes: what was decided may no longer be right.
    pub behind: Option<u64>,
    /// A new limit of its account, which is reserved from its parent. It is never less than what is used already.
    pub spend_limit: Option<Money>,
    /// When it is taken up: a log that this key did not write becomes one that it wrote. The user vouches for it.
    pub adopt: bool,
}

/// An account of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The thread.
    pub id: ThreadId,
    /// Its parent.
    pub parent: Option<ThreadId>,
    /// The most that it and its children may spend.
    pub limit: Money,
    /// What it spent itself.
    pub spent: Money,
    /// What its settled children spent, and theirs.
    pub children: Money,
    /// What is held for the answer that it waits for.
    pub held: Money,
    /// What is reserved for children that have not settled.
    pub reserved: Money,
    /// Whether it has settled: what it did not spend went back to its parent.
    pub settled: bool,
}

impl Account {
    /// What it and its children can still spend. Less than nothing if something cost more than was held for it; without a
    /// limit it is always [`Money::MAX`].
    pub fn remaining(&self) -> Money {
        if self.limit == Money::MAX {
            return Money::MAX;
        }
        self.limit - self.spent - self.children - self.held - self.reserved
    }

    /// The account as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "thread_id": self.id.as_str(),
            "parent_thread_id": self.parent.as_ref().map(ThreadId::as_str),
            "limit": self.limit.to_json(),
            "spent": self.spent.to_json(),
            "spent_by_children": self.children.to_json(),
            "held": self.held.to_json(),
            "reserved_for_children": self.reserved.to_json(),
            "remaining": self.remaining().to_json(),
            "settled": self.settled,
        })
    }
}

/// Which threads are wanted, newest first.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only those with one of these; all if it is empty.
    pub status: Vec<Status>,
    /// Only those of a prompt.
    pub prompt: Option<String>,
    /// Only children of a thread.
    pub parent: Option<ThreadId>,
    /// At most so many; all if it is `None`.
    pub most: Option<usize>,
}

/// The last events of a thread, made with the name of the one that goes on with its conversation. They may be made more than
/// once, if a transaction is tried again.
pub type FinalEvents = Arc<dyn Fn(&ThreadId) -> Vec<Entry> + Send + Sync>;

/// Gives the new state of a key's requests and tokens, and how long to wait. It takes the state in the store, if there is one, and the
/// milliseconds by which the store's clock is ahead of ours. The store may call it more than once, and writes no text that is as before.
pub type RateChange = Arc<dyn Fn(Option<&str>, i64) -> (String, Option<Duration>) + Send + Sync>;

/// Opens a store: `postgres://…` and `postgresql://…` name a database, `sqlite:PATH` and paths a file. Without a key threads can be
/// listed and shown; the key's error is reported when a thread is to be written.
///
/// # Errors
///
/// `CB724` if it cannot be used, or if its address is invalid.
pub fn open(place: &str, key: Result<LogKey>) -> Result<Arc<dyn Store>> {
    match file(place)? {
        Some(path) => Ok(Arc::new(SqliteStore::open(path, key)?)),
        None => Ok(Arc::new(PostgresStore::connect(place, key)?)),
    }
}

/// The file that a place means; `None` for a database on a server.
#[doc(hidden)]
pub fn file(place: &str) -> Result<Option<&Path>> {
    if place.trim().is_empty() {
        let hint = "name a file or a database, or leave out both to use .ai/state/threads.db in the project";
        return Err(error::failed("--store or CUEBOOK_STORE", "it is empty", hint));
    }
    if place.starts_with("postgres://") || place.starts_with("postgresql://") {
        return Ok(None);
    }
    if place.trim() != place {
        return Err(not_an_address("it starts or ends with a space"));
    }
    if let Some(path) = place.strip_prefix("sqlite:") {
        return Ok(Some(Path::new(path.strip_prefix("//").unwrap_or(path))));
    }
    refuse_misspelt(place)?;
    Ok(Some(Path::new(place)))
}

/// Refuses an invalid address: its password would become the name of a file otherwise.
fn refuse_misspelt(place: &str) -> Result<()> {
    let is_scheme = |scheme: &str| {
        // One letter is a drive of Windows.
        scheme.len() > 1
            && scheme.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && scheme.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-.".contains(letter))
    };
    if let Some((scheme, rest)) = place.split_once(':').filter(|(scheme, _)| is_scheme(scheme)) {
        let is_near = scheme.to_ascii_lowercase().starts_with("postgres");
        return Err(not_an_address(&match rest.starts_with("//") {
            true if is_near => {
                format!("an address starts with postgres:// or postgresql://, not with {scheme}://")
            }
            _ if is_near => "an address starts with postgres:// or postgresql://".to_owned(),
            true => format!("unsupported `{scheme}`: threads are stored in SQLite files or in PostgreSQL"),
            false => "it is not a path or a database address".to_owned(),
        }));
    }
    let is_path = |place: &str| ["/", "./", "../", "\\", ".\\"].iter().any(|start| place.starts_with(start));
    if place.starts_with("//") || (place.contains('@') && !is_path(place)) {
        return Err(not_an_address("it is not a path or a database address"));
    }
    if !place.contains(['/', '\\']) && Path::new(place).extension().is_none() {
        return Err(not_an_address(
            "it does not look like a path; for a file with this name, write ./ before it",
        ));
    }
    Ok(())
}

/// `CB724`: a place that is no store. It may hold a password, so it is not shown.
fn not_an_address(why: &str) -> cuebook_text::Error {
    let hint = "name a file by its path, or a database as in postgres://USER:PASSWORD@HOST:PORT/DATABASE";
    error::failed("--store or CUEBOOK_STORE", why, hint)
}

/// The password that the address of a database holds. All of an address that cannot be understood is one.
#[doc(hidden)]
pub fn password(place: &str) -> Option<String> {
    match file(place) {
        Ok(Some(_)) => return None,
        Ok(None) => {}
        Err(_) => return Some(place.to_owned()),
    }
    match Address::read(place) {
        Ok(address) => Some(String::from_utf8_lossy(address.config.get_password()?).into_owned()),
        Err(_) => Some(place.to_owned()),
    }
}

/// Keeps threads. Every call is one transaction.
pub trait Store: Queue + Send + Sync + Debug {
    /// Registers a thread, reserves its limit from its parent's account, and writes its first events.
    ///
    /// # Errors
    ///
    /// `CB716` if the parent has started as many children as it may, `CB718` if too little is left in its account or it has
    /// ended, `CB727` if it was cancelled, `CB712` if there is no such parent, `CB713` if another process holds its parent.
    fn begin(&self, new: &New) -> Result<Record>;

    /// Ends a thread as [`Status::Continued`] and begins the one that goes on with its conversation, with the same parent. What
    /// the first has left is free for the second before anybody else can have it. It does not count as started by its parent.
    ///
    /// # Errors
    ///
    /// `CB713` if the holder no longer holds the thread, and those of [`begin`](Store::begin).
    fn hand_over(
        &self,
        id: &ThreadId,
        holder: &Holder,
        entries: FinalEvents,
        change: &Change,
        new: &New,
    ) -> Result<Record>;

    /// The key that authenticates its threads.
    fn key(&self) -> Option<&LogKey>;

    /// A thread's row.
    fn record(&self, id: &ThreadId) -> Result<Option<Record>>;

    /// Rows, newest first.
    fn list(&self, filter: &Filter) -> Result<Vec<Record>>;

    /// The same, each with its account, in one question.
    fn list_accounts(&self, filter: &Filter) -> Result<Vec<(Record, Account)>>;

    /// A thread and all threads below it, the oldest first; none if there is no such thread.
    fn tree(&self, id: &ThreadId) -> Result<Vec<Record>>;

    /// Takes a thread over: it is running from now on, and its holder is this one. It no longer has a result, and there is no request for it
    /// to stop. Opens its account again if it was settled, and those above it.
    ///
    /// # Errors
    ///
    /// `CB712` if it is missing, `CB713` if it runs or there are newer events than were seen, `CB728` if it ended, `CB718` if its parent has too little left.
    fn take(&self, id: &ThreadId, holder: &Holder, entries: &[Entry], change: &Change) -> Result<Record>;

    /// Appends events, and changes what they change.
    ///
    /// # Errors
    ///
    /// `CB713` if the holder no longer holds the thread, `CB718` if more is held than is left.
    fn append(
        &self,
        id: &ThreadId,
        holder: &Holder,
        entries: &[Entry],
        change: &Change,
    ) -> Result<Vec<Event>>;

    /// Events behind a number, in order, at most so many.
    fn events(&self, id: &ThreadId, after: u64, most: usize) -> Result<Vec<Event>>;

    /// The last event of a kind.
    fn last_of(&self, id: &ThreadId, kind: Kind) -> Result<Option<Event>>;

    /// Asks a thread and all threads below it to stop. One that no process runs is cancelled at once. Those that ended
    /// stay as they are.
    fn cancel(&self, id: &ThreadId) -> Result<Record>;

    /// Whether it is asked to stop, and its account: the check before each answer, in one question.
    fn standing(&self, id: &ThreadId) -> Result<Option<(bool, Account)>>;

    /// The threads of a process that are asked to stop: one question, however many it runs. The token does not matter.
    fn to_stop(&self, holder: &Holder) -> Result<Vec<ThreadId>>;

    /// A sign of life for all threads that a process holds. The token does not matter.
    fn beat(&self, holder: &Holder) -> Result<()>;

    /// Marks running threads as interrupted (or as cancelled, if they were asked to stop) whose holder does not live, as `lives` says of a holder and its last sign of life.
    /// Of what was held for an answer, what was read for it and what had come of it counts as spent, if the log says what that costs; otherwise all of it,
    /// because it is unknown.
    fn sweep(&self, lives: &dyn Fn(&Holder, Option<Timestamp>) -> bool) -> Result<Vec<ThreadId>> {
        self.sweep_with(lives, &|_| Ok(Map::new()))
    }

    /// The same; `dead` is called with each of them before it is marked, and its answer becomes a part of the event.
    fn sweep_with(
        &self,
        lives: &dyn Fn(&Holder, Option<Timestamp>) -> bool,
        dead: &dyn Fn(&Record) -> Result<Map<String, Json>>,
    ) -> Result<Vec<ThreadId>>;

    /// Takes a running thread from its holder, who may or may not live: it is interrupted from now on, and a holder that does live
    /// can no longer write to it. Says `false` if that holder no longer has it.
    fn release(&self, id: &ThreadId, holder: Option<&Holder>) -> Result<bool>;

    /// Changes what is left of the requests and tokens of a key, which all processes on this store share, and says how long to wait.
    fn change_rate(&self, name: &str, change: RateChange) -> Result<Option<Duration>>;

    /// A thread's account.
    fn account(&self, id: &ThreadId) -> Result<Option<Account>>;
}
