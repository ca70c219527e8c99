//! Stores of their own for tests, and what must be true of every store at any time.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuebook_run::store::{Account, Change, Cost, Filter, Holder, LogKey, New, Record, Store};
use cuebook_run::{Entry, Kind, Money, Status, ThreadId, verify};
use serde_json::json;

use crate::server;

/// The log key of all tests.
pub fn key() -> cuebook::Result<LogKey> {
    Ok(LogKey::from_bytes([7; 32]))
}

pub fn open(place: &str) -> cuebook::Result<Arc<dyn Store>> {
    cuebook_run::store::open(place, key())
}

/// A store of one test.
pub struct Fixture {
    pub place: String,
    pub store: Arc<dyn Store>,
    folder: Option<tempfile::TempDir>,
    schema: Option<String>,
}

impl Fixture {
    pub fn sqlite() -> Option<Fixture> {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("deep/threads.db").to_str().unwrap().to_owned();
        let store = open(&place).unwrap();
        Some(Fixture { place, store, folder: Some(folder), schema: None })
    }

    pub fn postgres() -> Option<Fixture> {
        let (place, schema) = fresh_schema()?;
        let store = open(&place).unwrap();
        Some(Fixture { place, store, folder: None, schema: Some(schema) })
    }

    pub fn file(&self) -> PathBuf {
        PathBuf::from(&self.place)
    }

    /// Changes the tables as an attacker would who can write to them.
    pub fn change(&self, statements: &str) {
        if self.schema.is_none() {
            return rusqlite::Connection::open(self.file()).unwrap().execute_batch(statements).unwrap();
        }
        let place = format!("{}&sslmode=disable", self.place);
        postgres::Client::connect(&place, postgres::NoTls).unwrap().batch_execute(statements).unwrap();
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        drop(self.folder.take());
        if let Some(schema) = &self.schema {
            let _ = admin().batch_execute(&format!("DROP SCHEMA {schema} CASCADE"));
        }
    }
}

/// A connection to the server that is not the store's.
pub fn admin() -> postgres::Client {
    let url = &server::server().unwrap().url;
    let separator = if url.contains('?') { '&' } else { '?' };
    postgres::Client::connect(&format!("{url}{separator}sslmode=disable"), postgres::NoTls).unwrap()
}

/// The address of an empty schema of the server.
pub fn fresh_schema() -> Option<(String, String)> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let url = &server::server()?.url;
    let schema = format!("cuebook_test_{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    admin().batch_execute(&format!("CREATE SCHEMA {schema}")).unwrap();
    let separator = if url.contains('?') { '&' } else { '?' };
    Some((format!("{url}{separator}options=-csearch_path%3D{schema}"), schema))
}

pub fn holder() -> Holder {
    Holder::of_this_process()
}

pub fn money(units: f64) -> Money {
    Money::from_units(units)
}

/// A thread of `demo/greet` that this process runs.
pub fn new(spend: f64) -> New {
    New {
        prompt: "demo/greet".to_owned(),
        parent: None,
        parent_holder: None,
        parent_spawns: None,
        spend: money(spend),
        model: None,
        unpriced: false,
        continuation_of: None,
        holder: Some(holder()),
        entries: vec![Entry::new(Kind::Started, json!({"inputs": {"name": "Dunedin"}}))],
    }
}

pub fn child(parent: &Record, spend: f64) -> New {
    New { parent: Some(parent.id.clone()), ..new(spend) }
}

pub fn nudge(text: &str) -> Entry {
    Entry::new(Kind::Nudge, json!({"text": text}))
}

pub fn with_status(status: Status) -> Change {
    Change { status: Some(status), ..Change::default() }
}

pub fn with_cost(spend: f64) -> Change {
    let cost = Cost { turns: 1, input_tokens: 10, output_tokens: 5, spend: money(spend), ..Cost::default() };
    Change { cost: Some(cost), ..Change::default() }
}

pub fn with_hold(hold: f64) -> Change {
    Change { hold: Some(money(hold)), ..Change::default() }
}

/// A thing that one does with a thread that one holds.
pub fn append(store: &dyn Store, record: &Record, change: &Change) -> cuebook::Result<()> {
    store.append(&record.id, record.holder.as_ref().unwrap(), &[nudge("x")], change).map(drop)
}

/// An account in numbers: limit, spent, children, held, reserved, settled.
pub fn figures(store: &dyn Store, id: &ThreadId) -> (f64, f64, f64, f64, f64, bool) {
    let account = store.account(id).unwrap().unwrap();
    let Account { limit, spent, children, held, reserved, settled, .. } = account;
    (limit.units(), spent.units(), children.units(), held.units(), reserved.units(), settled)
}

pub fn status(store: &dyn Store, id: &ThreadId) -> Status {
    store.record(id).unwrap().unwrap().status
}

/// The kinds of a thread's events.
pub fn kinds(store: &dyn Store, id: &ThreadId) -> Vec<Kind> {
    store.events(id, 0, usize::MAX).unwrap().iter().map(|event| event.kind).collect()
}

/// What must be true of every store at any time: every log is whole and as long as the registry says, and every account
/// agrees with those of its children. Only if `overspent` may one have used more than its limit.
pub fn audit(store: &dyn Store, overspent: bool) {
    let records = store.list(&Filter::default()).unwrap();
    let accounts: BTreeMap<ThreadId, Account> = records
        .iter()
        .map(|record| (record.id.clone(), store.account(&record.id).unwrap().unwrap()))
        .collect();
    for record in &records {
        let events = store.events(&record.id, 0, usize::MAX).unwrap();
        let last = Some((record.last.0, record.last.1.as_str()));
        verify(store.key(), &record.id, &events, last).unwrap();
        let account = &accounts[&record.id];
        let id = &record.id;
        assert_eq!(account.spent, record.cost.spend, "{id}");
        let used = |account: &Account| account.spent + account.children + account.held + account.reserved;
        assert!(overspent || used(account) <= account.limit, "{id}: {account:?}");
        let children = || accounts.values().filter(|child| child.parent.as_ref() == Some(id));
        let claim = |child: &Account| match child.limit {
            Money::MAX => Money::ZERO,
            limit => limit.max(used(child)),
        };
        let reserved: Money = children().filter(|child| !child.settled).map(claim).sum();
        let spent: Money =
            children().filter(|child| child.settled).map(|child| child.spent + child.children).sum();
        assert_eq!((account.reserved, account.children), (reserved, spent), "{id}");
        let due = record.status.is_settled() && children().all(|child| child.settled);
        assert_eq!(account.settled, due, "{id}: {}", record.status);
        assert!(account.held == Money::ZERO || record.status == Status::Running, "{id}");
    }
}
