//! Models whose price is not known: what a store says of those who asked them.

use cuebook_run::store::{Change, New, PostgresStore, Record, SqliteStore, Store};
use cuebook_run::{Entry, Kind, Status};
use serde_json::json;

use crate::support::*;

fn unpriced(store: &dyn Store, record: &Record) -> bool {
    let record = store.record(&record.id).unwrap().unwrap();
    assert_eq!(record.to_json()["cost"]["spend_known"] == false, record.cost.unpriced);
    record.cost.unpriced
}

pub fn a_model_without_a_price_makes_all_sums_above_it_unknown(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(5.0)).unwrap();
    let priced = store.begin(&child(&root, 1.0)).unwrap();
    let parent = store.begin(&child(&root, 1.0)).unwrap();
    assert!(!unpriced(store, &root) && !unpriced(store, &parent));
    let leaf = store.begin(&New { unpriced: true, ..child(&parent, 0.5) }).unwrap();
    assert!(leaf.cost.unpriced);
    let known = [&root, &priced, &parent, &leaf].map(|record| unpriced(store, record));
    assert_eq!(known, [true, false, true, true]);
    // A caller that counts what it used itself does not make it known again, and neither does the end.
    for record in [&leaf, &parent, &root] {
        append(store, record, &with_cost(0.1)).unwrap();
        append(store, record, &with_status(Status::Completed)).unwrap();
        assert!(unpriced(store, record));
    }
    // Nor does another model: what was not known once stays so.
    let other = store.begin(&New { holder: None, ..new(1.0) }).unwrap();
    let from_now_on = Change { unpriced: true, ..Change::default() };
    let taken = store.take(&other.id, &holder(), &[nudge("x")], &from_now_on).unwrap();
    assert!(taken.cost.unpriced);
    append(store, &taken, &with_status(Status::Suspended)).unwrap();
    assert!(store.take(&other.id, &holder(), &[nudge("x")], &Change::default()).unwrap().cost.unpriced);
    audit(store, false);
}

pub fn usage_of_a_dead_process_is_unknown_at_first(world: &Fixture) {
    let store = &*world.store;
    let mut gone = holder();
    gone.began += 1;
    let begun = store.begin(&New { holder: Some(gone.clone()), unpriced: true, ..new(1.0) }).unwrap();
    let asked = Entry::new(Kind::CognitionIn, json!({"messages": [], "tokens": 321, "spend_nanos": 0}));
    store.append(&begun.id, &gone, &[asked], &Change::default()).unwrap();
    store.sweep(&|_, _| false).unwrap();
    let reported = store.last_of(&begun.id, Kind::Interrupted).unwrap().unwrap().payload;
    assert_eq!(reported["cost"]["spend_known"], false, "{reported:#}");
    assert!(unpriced(store, &begun));
}

/// Threads of a store of an earlier version: one with a child whose model has no price, and one without.
fn earlier(store: &dyn Store) -> [Record; 4] {
    let root = store.begin(&new(5.0)).unwrap();
    let parent = store.begin(&child(&root, 1.0)).unwrap();
    // Words of an input are not taken for what the log says.
    let said = json!({"inputs": {"text": "\"unpriced\":true"}, "unpriced": false});
    let priced = New { entries: vec![Entry::new(Kind::Started, said)], ..child(&root, 0.5) };
    let priced = store.begin(&priced).unwrap();
    let entries = vec![Entry::new(Kind::Started, json!({"unpriced": true}))];
    let leaf = store.begin(&New { entries, ..child(&parent, 0.5) }).unwrap();
    [root, parent, priced, leaf]
}

const DROP: &str = "DROP TABLE cuebook_queue; DROP TABLE cuebook_workers; DROP TABLE cuebook_rates; \
                    ALTER TABLE cuebook_threads DROP COLUMN seal; \
                    ALTER TABLE cuebook_threads DROP COLUMN log_key; \
                    ALTER TABLE cuebook_threads DROP COLUMN unpriced";

#[test]
fn a_store_of_an_earlier_version_learns_it_from_its_logs() {
    let world = Fixture::sqlite().unwrap();
    let records = earlier(&*world.store);
    let file = rusqlite::Connection::open(world.file()).unwrap();
    file.execute_batch(DROP).unwrap();
    file.pragma_update(None, "user_version", 2).unwrap();
    let store = SqliteStore::open(&world.file(), key()).unwrap();
    assert_eq!(records.map(|record| unpriced(&store, &record)), [true, true, false, true]);
    let Some((place, schema)) = fresh_schema() else { return };
    let records = earlier(&PostgresStore::connect(&place, key()).unwrap());
    let table = DROP.replace(" cuebook_", &format!(" {schema}.cuebook_"));
    admin().batch_execute(&format!("{table}; UPDATE {schema}.cuebook_schema SET version = 2")).unwrap();
    let store = PostgresStore::connect(&place, key()).unwrap();
    assert_eq!(records.map(|record| unpriced(&store, &record)), [true, true, false, true]);
}
