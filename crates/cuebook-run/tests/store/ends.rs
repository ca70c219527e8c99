//! What is known of threads that end, and of those below them.

use std::sync::Arc;

use cuebook::Code;
use cuebook_run::store::{Change, Filter, Holder, New, Record, lives};
use cuebook_run::{Conversation, Kind, Status, ThreadId, spent_below};
use serde_json::{Map, json};

use crate::support::{
    Fixture, append, audit, child, figures, holder, money, new, status, with_cost, with_status,
};

pub fn a_tree_is_one_question(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(10.0)).unwrap();
    let first = store.begin(&child(&root, 1.0)).unwrap();
    let below = store.begin(&child(&first, 0.5)).unwrap();
    store.begin(&new(1.0)).unwrap();
    let ids = |id: &ThreadId| -> Vec<ThreadId> {
        let mut ids: Vec<ThreadId> = store.tree(id).unwrap().into_iter().map(|record| record.id).collect();
        ids.sort();
        ids
    };
    let mut all = vec![root.id.clone(), first.id.clone(), below.id.clone()];
    all.sort();
    assert_eq!(ids(&root.id), all);
    assert_eq!(ids(&below.id), std::slice::from_ref(&below.id));
    assert_eq!(store.tree(&below.id).unwrap()[0].parent.as_ref(), Some(&first.id));
    for nobody in ["no/such/such-1", "a\0b"] {
        assert!(store.tree(&ThreadId::known(nobody)).unwrap().is_empty());
    }
}

pub fn a_list_knows_what_children_spent(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(10.0)).unwrap();
    let below = store.begin(&child(&root, 2.0)).unwrap();
    append(store, &below, &with_cost(0.5)).unwrap();
    append(store, &below, &with_status(Status::Completed)).unwrap();
    let all = store.list_accounts(&Filter::default()).unwrap();
    let records: Vec<&Record> = all.iter().map(|(record, _)| record).collect();
    assert_eq!(records, store.list(&Filter::default()).unwrap().iter().collect::<Vec<_>>());
    for (record, account) in &all {
        assert_eq!(Some(account), store.account(&record.id).unwrap().as_ref());
    }
    let (_, account) = all.iter().find(|(record, _)| record.id == root.id).unwrap();
    assert_eq!(account.children, money(0.5));
}

pub fn sums_include_all_settled_money(world: &Fixture) {
    let store = &*world.store;
    let known = |record: &Record| store.record(&record.id).unwrap().unwrap();
    let below = |record: &Record| spent_below(store, &known(record)).unwrap();
    let root = store.begin(&new(10.0)).unwrap();
    assert_eq!((below(&root), Conversation::of(store, &root).unwrap()), (money(0.0), None));
    append(store, &root, &with_cost(1.0)).unwrap();
    let ended = store.begin(&child(&root, 2.0)).unwrap();
    append(store, &ended, &with_cost(0.5)).unwrap();
    append(store, &ended, &with_status(Status::Completed)).unwrap();
    let open = store.begin(&child(&root, 2.0)).unwrap();
    append(store, &open, &with_cost(0.25)).unwrap();
    let under = store.begin(&child(&open, 1.0)).unwrap();
    append(store, &under, &with_cost(0.125)).unwrap();
    append(store, &under, &with_status(Status::Completed)).unwrap();
    append(store, &open, &with_status(Status::Suspended)).unwrap();
    assert_eq!(below(&root), money(0.875));
    // The ledger keeps all that an open child may spend.
    assert_eq!(figures(store, &root.id), (10.0, 1.0, 0.5, 0.0, 2.0, false));
    // A conversation that goes on elsewhere is one conversation, from wherever one looks.
    let words = Arc::new(|_: &ThreadId| Vec::new());
    let holder = root.holder.clone().unwrap();
    let next = store.hand_over(&root.id, &holder, words, &Change::default(), &new(3.0)).unwrap();
    append(store, &next, &with_cost(0.5)).unwrap();
    for record in [&root, &next] {
        let whole = Conversation::of(store, &known(record)).unwrap().unwrap();
        assert_eq!(whole.threads, [root.id.clone(), next.id.clone()]);
        assert_eq!((whole.cost.turns, whole.cost.tokens()), (2, 30));
        assert_eq!((whole.cost.spend, whole.children), (money(1.5), money(0.875)));
        assert_eq!(whole.to_json()["threads"], 2);
    }
    audit(store, false);
}

pub fn details_of_a_dead_thread_are_in_its_log(world: &Fixture) {
    let store = &*world.store;
    let gone = Holder { began: holder().began + 1, ..holder() };
    let dead = store.begin(&New { holder: Some(gone.clone()), ..new(1.0) }).unwrap();
    let living = store.begin(&new(1.0)).unwrap();
    let tell = |record: &Record| {
        assert_eq!((&record.id, record.holder.as_ref()), (&dead.id, Some(&gone)), "it is not dead");
        assert_eq!(status(store, &record.id), Status::Running, "it is told of first");
        let mut said = Map::new();
        said.insert("tools_stopped".into(), json!(2));
        Ok(said)
    };
    assert_eq!(store.sweep_with(&lives, &tell).unwrap(), std::slice::from_ref(&dead.id));
    let event = store.last_of(&dead.id, Kind::Interrupted).unwrap().unwrap();
    assert_eq!((&event.payload["tools_stopped"], &event.payload["pid"]), (&json!(2), &json!(gone.pid)));
    assert_eq!(status(store, &living.id), Status::Running);
    audit(store, false);
}

pub fn work_that_must_stop_does_not_continue(world: &Fixture) {
    let store = &*world.store;
    let first = store.begin(&new(4.0)).unwrap();
    let holder = first.holder.clone().unwrap();
    store.cancel(&first.id).unwrap();
    let words = Arc::new(|_: &ThreadId| Vec::new());
    let refused = store.hand_over(&first.id, &holder, words, &Change::default(), &new(1.0));
    assert_eq!(refused.unwrap_err().code(), Code::ThreadCancelled);
    assert_eq!(status(store, &first.id), Status::Running, "whoever runs it stops it");
    assert_eq!(store.list(&Filter::default()).unwrap().len(), 1);
    append(store, &first, &with_status(Status::Cancelled)).unwrap();
    audit(store, false);
}
