//! Whatever is done to a tree of threads, in whatever order, the ledger holds.

use std::collections::BTreeMap;

use cuebook_run::store::{Change, Cost, Filter, Holder, New, Record, Store};
use cuebook_run::{Money, Status, ThreadId};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::*;

#[derive(Debug, Clone)]
enum Step {
    Begin(usize, i64, bool),
    Hold(usize, i64),
    /// Adds to what was spent.
    Spend(usize, i64),
    Rest(usize, usize),
    Take(usize, Option<i64>),
    Limit(usize, i64),
    Cancel(usize),
    /// Every third process has died.
    Sweep(usize),
    HandOver(usize, i64),
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..12_usize;
    prop_oneof![
        6 => (which.clone(), 0..60_i64, any::<bool>()).prop_map(|(at, spend, run)| Step::Begin(at, spend, run)),
        4 => (which.clone(), 0..40_i64).prop_map(|(at, hold)| Step::Hold(at, hold)),
        5 => (which.clone(), 0..40_i64).prop_map(|(at, spend)| Step::Spend(at, spend)),
        4 => (which.clone(), 0..5_usize).prop_map(|(at, status)| Step::Rest(at, status)),
        4 => (which.clone(), prop::option::of(0..80_i64)).prop_map(|(at, limit)| Step::Take(at, limit)),
        2 => (which.clone(), 0..80_i64).prop_map(|(at, limit)| Step::Limit(at, limit)),
        1 => which.clone().prop_map(Step::Cancel),
        1 => which.clone().prop_map(Step::Sweep),
        1 => (which, 0..60_i64).prop_map(|(at, spend)| Step::HandOver(at, spend)),
    ]
}

/// What a thread spent as we know it, besides the store.
#[derive(Default, Clone, Copy)]
struct KnownThread {
    spent: i64,
    held: i64,
}

pub fn the_ledger_holds_whatever_is_done(world: &Fixture) {
    let cases = if world.place.starts_with("postgres") { 24 } else { 48 };
    let mut runner = TestRunner::new(Config { cases, failure_persistence: None, ..Config::default() });
    let store = &*world.store;
    let steps = prop::collection::vec(step(), 1..60);
    let prompt = std::cell::Cell::new(0);
    let run = runner.run(&steps, |steps| {
        prompt.set(prompt.get() + 1);
        let root = store.begin(&New { prompt: format!("case-{}", prompt.get()), ..new(0.0) }).unwrap();
        let limit = Change { spend_limit: Some(Money::from_nanos(100)), ..Change::default() };
        append(store, &root, &limit).unwrap();
        let mut known = BTreeMap::from([(root.id.clone(), KnownThread::default())]);
        for step in &steps {
            go(store, &root, step, &mut known);
        }
        check(store, &root, &known);
        end(store, &root, &mut known);
        Ok(())
    });
    run.unwrap();
    audit(store, true);
}

/// The threads of a case, oldest first.
fn tree(store: &dyn Store, known: &BTreeMap<ThreadId, KnownThread>) -> Vec<Record> {
    let mut all: Vec<Record> = known.keys().map(|id| store.record(id).unwrap().unwrap()).collect();
    all.sort_by_key(|record| record.created_at);
    all
}

fn go(store: &dyn Store, root: &Record, step: &Step, known: &mut BTreeMap<ThreadId, KnownThread>) {
    let nanos = Money::from_nanos;
    let all = tree(store, known);
    let pick = |at: usize| all[at % all.len()].clone();
    let holds = |record: &Record| record.holder.clone().filter(|_| record.status == Status::Running);
    let held = |at: usize| Some(pick(at)).and_then(|record| holds(&record).map(|holder| (record, holder)));
    let write = |record: &Record, holder: &Holder, change: &Change| {
        store.append(&record.id, holder, &[nudge("x")], change).is_ok()
    };
    match *step {
        Step::Begin(at, spend, run) => {
            let parent = pick(at);
            let holder = run.then(holder);
            let new = New { parent: Some(parent.id), spend: nanos(spend), holder, ..new(0.0) };
            if let Ok(record) = store.begin(&New { prompt: root.prompt.clone(), ..new }) {
                known.insert(record.id, KnownThread::default());
            }
        }
        Step::Hold(at, hold) => {
            let Some((record, holder)) = held(at) else { return };
            if write(&record, &holder, &Change { hold: Some(nanos(hold)), ..Change::default() }) {
                known.get_mut(&record.id).unwrap().held = hold;
            }
        }
        Step::Spend(at, spend) => {
            let Some((record, holder)) = held(at) else { return };
            let known = known.get_mut(&record.id).unwrap();
            let cost = Cost { spend: nanos(known.spent + spend), ..record.cost };
            assert!(write(&record, &holder, &Change { cost: Some(cost), ..Change::default() }));
            *known = KnownThread { spent: known.spent + spend, held: 0 };
        }
        Step::Rest(at, status) => {
            let Some((record, holder)) = held(at) else { return };
            let ends =
                [Status::Completed, Status::Error, Status::Cancelled, Status::Suspended, Status::Interrupted];
            assert!(write(&record, &holder, &with_status(ends[status])));
            rest(known.get_mut(&record.id).unwrap());
        }
        Step::Take(at, limit) => {
            let change = Change { spend_limit: limit.map(nanos), ..Change::default() };
            let _ = store.take(&pick(at).id, &holder(), &[nudge("again")], &change);
        }
        Step::Limit(at, limit) => {
            let Some((record, holder)) = held(at) else { return };
            write(&record, &holder, &Change { spend_limit: Some(nanos(limit)), ..Change::default() });
        }
        Step::Cancel(at) => drop(store.cancel(&pick(at).id).unwrap()),
        Step::Sweep(which) => {
            let dead: Vec<Holder> =
                all.iter().skip(which % 3).step_by(3).filter_map(|record| record.holder.clone()).collect();
            for id in store.sweep(&|holder, _| !dead.contains(holder)).unwrap() {
                rest(known.get_mut(&id).unwrap());
            }
        }
        Step::HandOver(at, spend) => {
            let Some((record, holder)) = held(at) else { return };
            let next = New {
                prompt: root.prompt.clone(),
                parent: record.parent.clone(),
                spend: nanos(spend),
                ..new(0.0)
            };
            if record.parent.is_none() {
                return;
            }
            let words = std::sync::Arc::new(|_: &ThreadId| vec![nudge("bye")]);
            if let Ok(next) = store.hand_over(&record.id, &holder, words, &Change::default(), &next) {
                rest(known.get_mut(&record.id).unwrap());
                known.insert(next.id, KnownThread::default());
            }
        }
    }
}

fn rest(known: &mut KnownThread) {
    *known = KnownThread { spent: known.spent + known.held, held: 0 };
}

/// Accounts are what we know, and agree with each other.
fn check(store: &dyn Store, root: &Record, known: &BTreeMap<ThreadId, KnownThread>) {
    for (id, known) in known {
        let account = store.account(id).unwrap().unwrap();
        assert_eq!(
            (account.spent.nanos(), account.held.nanos()),
            (known.spent, known.held),
            "{id} of {}",
            root.id
        );
    }
    let _ = store.list(&Filter { prompt: Some(root.prompt.clone()), ..Filter::default() }).unwrap();
    audit(store, true);
}

/// Ends everything, after which the root's account says what everything cost.
fn end(store: &dyn Store, root: &Record, known: &mut BTreeMap<ThreadId, KnownThread>) {
    for record in tree(store, known) {
        if record.status == Status::Running {
            let holder = record.holder.clone().unwrap();
            store.append(&record.id, &holder, &[], &with_status(Status::Completed)).unwrap();
        } else if !record.status.is_settled() {
            store.cancel(&record.id).unwrap();
        }
        rest(known.get_mut(&record.id).unwrap());
    }
    for record in tree(store, known) {
        if record.status == Status::Running {
            let holder = record.holder.clone().unwrap();
            store.append(&record.id, &holder, &[], &with_status(Status::Cancelled)).unwrap();
        }
    }
    check(store, root, known);
    let account = store.account(&root.id).unwrap().unwrap();
    assert!(account.settled);
    let sum: i64 = known.values().map(|known| known.spent).sum();
    assert_eq!((account.spent + account.children).nanos(), sum);
    assert_eq!((account.held, account.reserved), (Money::ZERO, Money::ZERO));
}
