//! Stores that a user changed who does not have the user's log key.

use cuebook::Code;
use cuebook_run::store::{Authenticity, Change, Filter, Holder, LogKey, Record, Store};
use cuebook_run::{Entry, Event, Kind, Status, first_hash, verify, whole_log};
use serde_json::json;

use crate::support::*;

/// A thread at rest with some events.
fn stopped(store: &dyn Store) -> Record {
    let record = store.begin(&new(1.0)).unwrap();
    for _ in 0..3 {
        append(store, &record, &Change::default()).unwrap();
    }
    append(store, &record, &with_status(Status::Suspended)).unwrap();
    store.record(&record.id).unwrap().unwrap()
}

fn seen(store: &dyn Store, record: &Record) -> Record {
    store.record(&record.id).unwrap().unwrap()
}

/// That a thread is neither read nor taken up.
fn is_refused(store: &dyn Store, record: &Record, what: &str) {
    let now = seen(store, record);
    assert_eq!(whole_log(store, &now).unwrap_err().code(), Code::BrokenLog, "{what}");
}

/// Statements that give a thread's events other hashes, made without a key, and its row the last of them.
fn rehashed(record: &Record, events: &[Event], with_row: &str) -> String {
    let (id, mut previous, mut statements) = (&record.id, first_hash(), String::new());
    for event in events {
        let entry = Entry::new(event.kind, event.payload.clone());
        let event = Event::chain(None, id, &previous, event.seq, event.at, &entry);
        statements += &format!(
            "UPDATE cuebook_events SET payload = '{}', hash = '{}' WHERE thread = '{id}' AND seq = {};",
            event.text, event.hash, event.seq
        );
        previous = event.hash;
    }
    statements + &format!("UPDATE cuebook_threads SET last_hash = '{previous}'{with_row} WHERE id = '{id}';")
}

pub fn a_log_that_was_changed_and_hashed_again_is_detected(world: &Fixture) {
    let store = &*world.store;
    let record = stopped(store);
    let mut events = whole_log(store, &record).unwrap();
    events[0].payload = json!({"capabilities": ["rye.execute.tool.rye.bash.*"]});
    world.change(&rehashed(&record, &events, ""));
    // The forged log agrees with itself, and with the row.
    let forged = store.events(&record.id, 0, 99).unwrap();
    verify(None, &record.id, &forged, Some((forged.len() as u64, &forged[forged.len() - 1].hash))).unwrap();
    is_refused(store, &record, "rehashed");
    assert!(matches!(seen(store, &record).authenticity, Authenticity::Damaged(_)));
    let error = store.take(&record.id, &holder(), &[], &Change::default()).unwrap_err();
    assert_eq!(error.code(), Code::BrokenLog);
    // Without the name of a key it is a log of an earlier version, which is not resumed silently.
    world.change(&rehashed(&record, &events, ", log_key = NULL, seal = NULL"));
    assert_eq!(seen(store, &record).authenticity, Authenticity::Old);
    let error = store.take(&record.id, &holder(), &[], &Change::default()).unwrap_err();
    assert_eq!(error.code(), Code::NotYourLog);
}

pub fn events_that_were_cut_moved_or_borrowed_are_detected(world: &Fixture) {
    let store = &*world.store;
    let id = |record: &Record| record.id.as_str().to_owned();
    let cut = stopped(store);
    world.change(&format!(
        "DELETE FROM cuebook_events WHERE thread = '{}' AND seq = {}",
        id(&cut),
        cut.last.0
    ));
    is_refused(store, &cut, "cut");
    // Also if the row says so.
    let hash = &store.events(&cut.id, cut.last.0 - 2, 1).unwrap()[0].hash;
    world.change(&format!(
        "UPDATE cuebook_threads SET last_seq = {}, last_hash = '{hash}' WHERE id = '{}'",
        cut.last.0 - 1,
        id(&cut)
    ));
    is_refused(store, &cut, "cut with its row");
    let moved = stopped(store);
    let at = |from: u64, to: u64| {
        format!("UPDATE cuebook_events SET seq = {to} WHERE thread = '{}' AND seq = {from};", id(&moved))
    };
    world.change(&(at(2, 99) + &at(3, 2) + &at(99, 3)));
    is_refused(store, &moved, "moved");
    // A whole log of another thread, with its row's words.
    let (rich, poor) = (stopped(store), stopped(store));
    world.change(&format!(
        "DELETE FROM cuebook_events WHERE thread = '{poor}'; \
         UPDATE cuebook_events SET thread = '{poor}' WHERE thread = '{rich}'; \
         UPDATE cuebook_threads SET last_seq = {}, last_hash = '{}', seal = (SELECT seal FROM cuebook_threads \
         WHERE id = '{rich}') WHERE id = '{poor}'",
        rich.last.0,
        rich.last.1,
        poor = id(&poor),
        rich = id(&rich),
    ));
    is_refused(store, &poor, "borrowed");
}

pub fn a_changed_row_is_detected_and_never_sealed_again(world: &Fixture) {
    let store = &*world.store;
    for change in [
        "spend_limit = 9000000000000",
        "spent = -9000000000000",
        "parent = 'x'",
        "model = 'expensive'",
        "prompt = 'other/prompt'",
        "settled = 1",
        "spawned = 0, turns = 0, children = -5",
        "status = 'interrupted'",
        "result = '{}'",
    ] {
        let record = stopped(store);
        world.change(&format!("UPDATE cuebook_threads SET {change} WHERE id = '{}'", record.id));
        is_refused(store, &record, change);
        assert!(store.take(&record.id, &holder(), &[], &Change::default()).is_err(), "{change}");
        let _ = store.cancel(&record.id);
        let _ = store.sweep(&|_, _| false);
        is_refused(store, &record, change);
        // The user cannot vouch for what a user changed.
        let adopt = Change { adopt: true, ..Change::default() };
        assert_eq!(
            store.take(&record.id, &holder(), &[], &adopt).unwrap_err().code(),
            Code::BrokenLog,
            "{change}"
        );
    }
    // A thread that runs: its own process loses it, and those that it would start get nothing.
    let running = store.begin(&new(1.0)).unwrap();
    world.change(&format!(
        "UPDATE cuebook_threads SET spend_limit = 9000000000000 WHERE id = '{}'",
        running.id
    ));
    assert_eq!(append(store, &running, &with_cost(0.1)).unwrap_err().code(), Code::BrokenLog);
    assert_eq!(store.begin(&child(&running, 5.0)).unwrap_err().code(), Code::BrokenLog);
    // Anybody may ask it to stop.
    assert!(store.cancel(&running.id).is_ok());
    assert!(seen(store, &running).cancel);
}

pub fn a_log_of_another_key_is_shown_and_not_written(world: &Fixture) {
    let ours = &*world.store;
    let theirs = cuebook_run::store::open(&world.place, Ok(LogKey::from_bytes([8; 32]))).unwrap();
    let (theirs, record) = (&*theirs, stopped(&*theirs));
    let running = theirs.begin(&new(1.0)).unwrap();
    let now = seen(ours, &record);
    assert_eq!(now.authenticity, Authenticity::Foreign);
    assert_eq!(ours.list(&Filter::default()).unwrap().len(), 2);
    assert_eq!(whole_log(ours, &now).unwrap().len() as u64, now.last.0);
    for error in [
        ours.take(&record.id, &holder(), &[], &Change::default()).unwrap_err(),
        ours.begin(&child(&running, 0.1)).unwrap_err(),
        ours.cancel(&record.id).unwrap_err(),
        ours.release(&running.id, running.holder.as_ref()).unwrap_err(),
    ] {
        assert_eq!(error.code(), Code::NotYourLog, "{error}");
    }
    // A caller that looks does not sweep it away, and may ask it to stop.
    assert!(ours.sweep(&|_, _| false).unwrap().is_empty());
    ours.cancel(&running.id).unwrap();
    assert_eq!(seen(theirs, &running).authenticity, Authenticity::Own);
    append(theirs, &running, &with_status(Status::Cancelled)).unwrap();
    // A process without any key sees the same.
    let spaces = cuebook::items::Spaces::new(std::path::Path::new("/"), None);
    let nobody = cuebook_run::store::open(&world.place, LogKey::of(&spaces)).unwrap();
    assert_eq!(seen(&*nobody, &record).authenticity, Authenticity::Foreign);
    assert_eq!(nobody.begin(&new(1.0)).unwrap_err().code(), Code::BadLogKey);
    // The user vouches for it, and then it is theirs.
    let adopt = Change { adopt: true, ..Change::default() };
    let taken = ours.take(&record.id, &holder(), &[nudge("mine")], &adopt).unwrap();
    assert_eq!(seen(ours, &taken).authenticity, Authenticity::Own);
    assert_eq!(whole_log(ours, &seen(ours, &taken)).unwrap().len() as u64, now.last.0 + 1);
    assert_eq!(seen(theirs, &record).authenticity, Authenticity::Foreign);
}

pub fn an_old_log_is_taken_up_only_when_the_user_vouches(world: &Fixture) {
    let store = &*world.store;
    let record = stopped(store);
    let events = whole_log(store, &record).unwrap();
    world.change(&rehashed(&record, &events, ", log_key = NULL, seal = NULL"));
    let old = seen(store, &record);
    assert_eq!(old.authenticity, Authenticity::Old);
    assert_eq!(whole_log(store, &old).unwrap().len(), events.len());
    assert_eq!(
        store.take(&record.id, &holder(), &[], &Change::default()).unwrap_err().code(),
        Code::NotYourLog
    );
    let adopt = Change { adopt: true, ..Change::default() };
    let taken = store.take(&record.id, &holder(), &[nudge("on")], &adopt).unwrap();
    append(store, &taken, &with_status(Status::Completed)).unwrap();
    let done = seen(store, &record);
    assert_eq!(done.authenticity, Authenticity::Own);
    assert_eq!(whole_log(store, &done).unwrap().len(), events.len() + 2);
    audit(store, false);
}

pub fn an_old_thread_changes_no_account_of_ours(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(1.0)).unwrap();
    let below = store.begin(&child(&root, 0.5)).unwrap();
    append(store, &below, &with_status(Status::Suspended)).unwrap();
    let before = figures(store, &root.id);
    // As if an earlier version had written it, and it had earned money.
    world.change(&format!(
        "UPDATE cuebook_threads SET log_key = NULL, seal = NULL, spent = -9000000000 WHERE id = '{}'",
        below.id
    ));
    store.cancel(&below.id).unwrap();
    assert_eq!(status(store, &below.id), Status::Cancelled);
    assert_eq!(figures(store, &root.id), before);
}

pub fn a_circle_of_parents_comes_to_an_end(world: &Fixture) {
    let store = &*world.store;
    let adopt = Change { adopt: true, ..Change::default() };
    let unkeyed = "log_key = NULL, seal = NULL";
    // One that is its own parent, and two that are each other's.
    let alone = stopped(store);
    world.change(&format!("UPDATE cuebook_threads SET parent = id, {unkeyed} WHERE id = '{}'", alone.id));
    let (one, other) = (stopped(store), stopped(store));
    for (child, parent) in [(&one, &other), (&other, &one)] {
        world.change(&format!(
            "UPDATE cuebook_threads SET parent = '{}', {unkeyed}, settled = 1, status = 'cancelled' WHERE id = '{}'",
            parent.id, child.id
        ));
    }
    assert_eq!(store.tree(&alone.id).unwrap().len(), 1);
    assert_eq!(store.tree(&one.id).unwrap().len(), 2);
    for record in [&alone, &one] {
        let _ = store.take(&record.id, &holder(), &[], &adopt);
        let _ = store.cancel(&record.id);
        let _ = cuebook_run::spent_below(store, &seen(store, record));
    }
    assert_eq!(store.list(&Filter::default()).unwrap().len(), 3);
    store.sweep(&|_, _| false).unwrap();
}

pub fn one_bad_row_does_not_hide_the_others(world: &Fixture) {
    let store = &*world.store;
    let (bad, good) = (stopped(store), stopped(store));
    world.change(&format!(
        "UPDATE cuebook_threads SET status = 'dancing', result = '{{' WHERE id = '{}'",
        bad.id
    ));
    let listed = store.list(&Filter::default()).unwrap();
    assert_eq!(listed.len(), 2);
    for record in listed {
        let is_damaged = matches!(record.authenticity, Authenticity::Damaged(_));
        assert_eq!(is_damaged, record.id == bad.id, "{record:?}");
    }
    store.sweep(&|_, _| false).unwrap();
    assert_eq!(seen(store, &good).authenticity, Authenticity::Own);
}

pub fn an_event_that_is_too_large_is_not_read(world: &Fixture) {
    let store = &*world.store;
    let record = stopped(store);
    // A number that no payload has: its text is made by the database, and never comes here.
    let large = match world.place.starts_with("postgres") {
        true => "repeat('x', 140000000)".to_owned(),
        false => "hex(zeroblob(70000000))".to_owned(),
    };
    world.change(&format!(
        "UPDATE cuebook_events SET payload = {large} WHERE thread = '{}' AND seq = 2",
        record.id
    ));
    let error = store.events(&record.id, 0, 9).unwrap_err();
    assert_eq!(error.code(), Code::BrokenLog);
    assert!(error.to_string().contains("140000000 bytes"), "{error}");
}

pub fn a_thread_is_released_from_a_holder_that_seems_to_live(world: &Fixture) {
    let store = &*world.store;
    let elsewhere = Holder { host: "another machine".to_owned(), ..holder() };
    let new = cuebook_run::store::New { holder: Some(elsewhere.clone()), ..new(1.0) };
    let record = store.begin(&new).unwrap();
    let future = jiff::Timestamp::now().as_microsecond() + 1_000_000_000_000;
    world.change(&format!("UPDATE cuebook_threads SET taken_at = {future} WHERE id = '{}'", record.id));
    assert!(!store.release(&record.id, Some(&holder())).unwrap(), "another holder");
    assert!(store.release(&record.id, Some(&elsewhere)).unwrap());
    let now = seen(store, &record);
    assert_eq!(now.status, Status::Interrupted);
    assert!(now.cost.elapsed.as_secs() < 1000, "{:?}", now.cost);
    // If it does live, it can write nothing more.
    assert_eq!(append(store, &record, &Change::default()).unwrap_err().code(), Code::ThreadBusy);
    store.take(&record.id, &holder(), &[nudge("on")], &Change::default()).unwrap();
    assert_eq!(kinds(store, &record.id).last(), Some(&Kind::Nudge));
    // Nor does it keep the thread from being swept.
    let other = store.begin(&new).unwrap();
    world.change(&format!("UPDATE cuebook_threads SET taken_at = {future} WHERE id = '{}'", other.id));
    assert_eq!(store.sweep(&cuebook_run::store::lives).unwrap(), [other.id]);
}
