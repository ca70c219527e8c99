//! The registry and the logs.

use std::sync::Arc;

use cuebook::Code;
use cuebook_run::store::{Change, Filter, New, lives};
use cuebook_run::{Entry, Kind, Status, ThreadId, verify};
use serde_json::{Value as Json, json};

use crate::support::*;

pub fn a_thread_is_registered_with_its_first_events(world: &Fixture) {
    let store = &*world.store;
    let new = New { model: Some("small".to_owned()), ..new(2.0) };
    let record = store.begin(&new).unwrap();
    assert_eq!(store.record(&record.id).unwrap(), Some(record.clone()));
    assert!(record.id.as_str().starts_with("demo/greet/greet-"), "{}", record.id);
    assert_eq!((record.status, record.last.0, record.spawned), (Status::Running, 1, 0));
    assert_eq!((record.model.as_deref(), &record.holder), (Some("small"), &new.holder));
    assert_eq!(record.beat_at, Some(record.created_at), "beginning is a sign of life");
    let events = store.events(&record.id, 0, 10).unwrap();
    assert_eq!(events[0].payload, json!({"inputs": {"name": "Dunedin"}}));
    let created = store.begin(&New { holder: None, ..new.clone() }).unwrap();
    assert_eq!((created.status, created.holder, created.beat_at), (Status::Created, None, None));
    audit(store, false);
}

pub fn threads_of_one_millisecond_get_numbers(world: &Fixture) {
    let mut ids: Vec<String> =
        (0..40).map(|_| world.store.begin(&new(1.0)).unwrap().id.to_string()).collect();
    ids.sort();
    let all = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), all);
    // Stores are faster than the clock, unless the disk is very slow.
    let parts = |id: &String| id.rsplit('/').next().unwrap().split('-').count();
    assert!(ids.iter().all(|id| (2..=3).contains(&parts(id))), "{ids:?}");
}

pub fn only_the_holder_of_a_thread_writes_to_it(world: &Fixture) {
    let store = &*world.store;
    let record = store.begin(&new(1.0)).unwrap();
    append(store, &record, &Change::default()).unwrap();
    let other = holder();
    let error = store.append(&record.id, &other, &[nudge("no")], &Change::default()).unwrap_err();
    assert_eq!(error.code(), Code::ThreadBusy);
    assert_eq!(store.record(&record.id).unwrap().unwrap().last.0, 2);
    let error = store.take(&record.id, &other, &[], &Change::default()).unwrap_err();
    assert_eq!(error.code(), Code::ThreadBusy);
    let said = error.to_string();
    assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
}

pub fn no_process_writes_to_a_thread_at_rest(world: &Fixture) {
    let store = &*world.store;
    for at_rest in Status::ALL.into_iter().filter(|status| status.is_at_rest()) {
        let record = store.begin(&new(1.0)).unwrap();
        let change = Change { result: Some(json!({"said": "hello"})), ..with_status(at_rest) };
        append(store, &record, &change).unwrap();
        let after = store.record(&record.id).unwrap().unwrap();
        assert_eq!((after.status, after.result), (at_rest, Some(json!({"said": "hello"}))));
        assert!(after.completed_at.is_some());
        let error = append(store, &record, &Change::default()).unwrap_err();
        assert_eq!(error.code(), Code::ThreadBusy);
        assert!(error.to_string().contains(at_rest.as_str()), "{error}");
    }
    audit(store, false);
}

pub fn events_are_read_from_where_one_left_off(world: &Fixture) {
    let store = &*world.store;
    let record = store.begin(&new(1.0)).unwrap();
    let entries: Vec<Entry> = (0..120).map(|number| nudge(&format!("{number}"))).collect();
    let written =
        store.append(&record.id, record.holder.as_ref().unwrap(), &entries, &Change::default()).unwrap();
    assert_eq!((written[0].seq, written[119].seq), (2, 121));
    let read = store.events(&record.id, 100, 5).unwrap();
    assert_eq!(read, written[99..104]);
    assert!(store.events(&record.id, 121, 5).unwrap().is_empty());
    assert!(store.events(&record.id, u64::MAX, 5).unwrap().is_empty());
    audit(store, false);
}

pub fn hostile_words_are_kept_as_they_are(world: &Fixture) {
    let store = &*world.store;
    let hostile = "'; DROP TABLE cuebook_threads; -- \u{0}\u{1}\u{7f}\u{202e}\"\\\r\n$1 ?1 🦀";
    let record = store.begin(&new(1.0)).unwrap();
    let payload = json!({hostile: [hostile, 1e300, 0.1, u64::MAX, i64::MIN, null, {"": ""}]});
    let change = Change { result: Some(payload.clone()), ..Change::default() };
    let holder = record.holder.as_ref().unwrap();
    store.append(&record.id, holder, &[Entry::new(Kind::ToolResult, payload.clone())], &change).unwrap();
    assert_eq!(store.events(&record.id, 1, 1).unwrap()[0].payload, payload);
    assert_eq!(store.record(&record.id).unwrap().unwrap().result, Some(payload));
    let visible = hostile.replace('\0', "");
    let named =
        store.begin(&New { prompt: visible.clone(), model: Some(visible.clone()), ..new(1.0) }).unwrap();
    assert_eq!((&named.prompt, named.model.as_ref()), (&visible, Some(&visible)));
    assert_eq!(store.list(&Filter { prompt: Some(visible), ..Filter::default() }).unwrap(), [named]);
    // A sign that one kind of store cannot keep is kept by none.
    for new in
        [New { prompt: "a\0b".to_owned(), ..new(1.0) }, New { model: Some("a\0b".to_owned()), ..new(1.0) }]
    {
        assert_eq!(store.begin(&new).unwrap_err().code(), Code::StoreFailed);
    }
    let change = Change { model: Some("a\0b".to_owned()), ..Change::default() };
    assert_eq!(append(store, &record, &change).unwrap_err().code(), Code::StoreFailed);
    let never = ThreadId::known("a\0b");
    assert_eq!(store.record(&never).unwrap(), None);
    assert!(store.events(&never, 0, 1).unwrap().is_empty());
    assert!(store.list(&Filter { parent: Some(never), ..Filter::default() }).unwrap().is_empty());
    audit(store, false);
}

pub fn too_deep_values_are_kept_as_text(world: &Fixture) {
    let store = &*world.store;
    let record = store.begin(&new(1.0)).unwrap();
    let deep = (0..500).fold(json!("core"), |inner, _| json!([inner]));
    let change = Change { result: Some(deep.clone()), ..Change::default() };
    let holder = record.holder.as_ref().unwrap();
    store.append(&record.id, holder, &[Entry::new(Kind::ToolResult, deep)], &change).unwrap();
    let read = &store.events(&record.id, 1, 1).unwrap()[0];
    assert!(read.text.contains("core"));
    assert!(store.record(&record.id).unwrap().unwrap().result.unwrap().to_string().contains("core"));
    audit(store, false);
}

pub fn threads_are_listed_newest_first(world: &Fixture) {
    let store = &*world.store;
    let first = store.begin(&new(5.0)).unwrap();
    let second = store.begin(&child(&first, 1.0)).unwrap();
    let third = store.begin(&New { prompt: "other".to_owned(), ..new(1.0) }).unwrap();
    append(store, &second, &with_status(Status::Completed)).unwrap();
    let ids = |filter: Filter| -> Vec<ThreadId> {
        store.list(&filter).unwrap().into_iter().map(|record| record.id).collect()
    };
    assert_eq!(ids(Filter::default()), [third.id.clone(), second.id.clone(), first.id.clone()]);
    assert_eq!(ids(Filter { most: Some(1), ..Filter::default() }), std::slice::from_ref(&third.id));
    assert_eq!(
        ids(Filter { parent: Some(first.id.clone()), ..Filter::default() }),
        std::slice::from_ref(&second.id)
    );
    assert_eq!(ids(Filter { prompt: Some("other".to_owned()), ..Filter::default() }), [third.id]);
    let status = vec![Status::Completed, Status::Error];
    let filter = Filter { status, prompt: Some("demo/greet".to_owned()), most: Some(9), ..Filter::default() };
    assert_eq!(ids(filter), [second.id]);
}

pub fn a_thread_that_ended_is_not_taken_up(world: &Fixture) {
    let store = &*world.store;
    for ended in [Status::Completed, Status::Continued] {
        let record = store.begin(&new(1.0)).unwrap();
        append(store, &record, &with_status(ended)).unwrap();
        let error = store.take(&record.id, &holder(), &[], &Change::default()).unwrap_err();
        assert_eq!(error.code(), Code::CannotResume);
    }
}

pub fn taking_up_makes_a_new_holder(world: &Fixture) {
    let store = &*world.store;
    for at_rest in [Status::Suspended, Status::Interrupted, Status::Error, Status::Cancelled] {
        let record = store.begin(&new(1.0)).unwrap();
        append(store, &record, &Change { result: Some(json!("old")), ..with_status(at_rest) }).unwrap();
        let holder = holder();
        let resumed = Entry::new(Kind::Resumed, json!({}));
        let taken = store.take(&record.id, &holder, &[resumed], &Change::default()).unwrap();
        assert_eq!((taken.status, taken.holder.as_ref()), (Status::Running, Some(&holder)));
        assert_eq!((taken.result, taken.completed_at, taken.cancel), (None, None, false));
        assert_eq!(append(store, &record, &Change::default()).unwrap_err().code(), Code::ThreadBusy);
        store.append(&record.id, &holder, &[nudge("on")], &Change::default()).unwrap();
        assert_eq!(kinds(store, &record.id), [Kind::Started, Kind::Nudge, Kind::Resumed, Kind::Nudge]);
    }
    audit(store, false);
}

pub fn a_tree_is_cancelled(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(10.0)).unwrap();
    let running = store.begin(&child(&root, 2.0)).unwrap();
    let waiting = store.begin(&New { holder: None, ..child(&running, 1.0) }).unwrap();
    let suspended = store.begin(&child(&root, 2.0)).unwrap();
    append(store, &suspended, &with_cost(0.5)).unwrap();
    append(store, &suspended, &with_status(Status::Suspended)).unwrap();
    let done = store.begin(&child(&root, 2.0)).unwrap();
    append(store, &done, &with_status(Status::Completed)).unwrap();
    let below = store.begin(&child(&running, 0.5)).unwrap();
    let beside = store.begin(&new(1.0)).unwrap();

    let cancelled = store.cancel(&root.id).unwrap();
    assert_eq!((cancelled.status, cancelled.cancel), (Status::Running, true));
    for id in [&root.id, &running.id, &below.id] {
        assert!(store.standing(id).unwrap().unwrap().0);
        assert_eq!(status(store, id), Status::Running, "whoever runs it stops it");
    }
    assert_eq!(status(store, &waiting.id), Status::Cancelled);
    assert_eq!(kinds(store, &waiting.id), [Kind::Started, Kind::Cancelled]);
    assert_eq!(status(store, &suspended.id), Status::Cancelled);
    assert_eq!(status(store, &done.id), Status::Completed);
    assert!(!store.standing(&beside.id).unwrap().unwrap().0);
    assert_eq!(figures(store, &root.id), (10.0, 0.0, 0.5, 0.0, 2.0, false));
    audit(store, false);
    // Once more changes nothing.
    let before = store.events(&waiting.id, 0, 9).unwrap();
    store.cancel(&root.id).unwrap();
    assert_eq!(store.events(&waiting.id, 0, 9).unwrap(), before);
    for record in [&below, &running, &root] {
        append(store, record, &with_status(Status::Cancelled)).unwrap();
    }
    assert_eq!(figures(store, &root.id), (10.0, 0.0, 0.5, 0.0, 0.0, true));
    audit(store, false);
}

pub fn one_query_lists_the_threads_that_a_process_must_stop(world: &Fixture) {
    let store = &*world.store;
    let (first, second) = (store.begin(&new(1.0)).unwrap(), store.begin(&new(1.0)).unwrap());
    assert!(store.to_stop(&holder()).unwrap().is_empty());
    store.cancel(&second.id).unwrap();
    assert_eq!(store.to_stop(&holder()).unwrap(), std::slice::from_ref(&second.id));
    let mut other = holder();
    other.pid += 1;
    assert!(store.to_stop(&other).unwrap().is_empty());
    append(store, &second, &with_status(Status::Cancelled)).unwrap();
    assert!(store.to_stop(&holder()).unwrap().is_empty());
    append(store, &first, &Change::default()).unwrap();
}

pub fn threads_of_the_dead_are_swept(world: &Fixture) {
    let store = &*world.store;
    let mut gone = holder();
    gone.began += 1;
    let root = store.begin(&new(5.0)).unwrap();
    let dead = store.begin(&New { holder: Some(gone.clone()), ..child(&root, 2.0) }).unwrap();
    let wanted = store.begin(&New { holder: Some(gone.clone()), ..child(&root, 1.0) }).unwrap();
    append(store, &dead, &with_cost(0.25)).unwrap();
    append(store, &dead, &with_hold(0.5)).unwrap();
    store.cancel(&wanted.id).unwrap();
    assert!(lives(root.holder.as_ref().unwrap(), None), "this process lives");
    let mut swept = store.sweep(&lives).unwrap();
    swept.sort();
    let mut expected = vec![dead.id.clone(), wanted.id.clone()];
    expected.sort();
    assert_eq!(swept, expected);
    assert_eq!(status(store, &dead.id), Status::Interrupted);
    let last = store.events(&dead.id, 3, 9).unwrap();
    assert_eq!((last.len(), last[0].kind), (1, Kind::Interrupted));
    assert_eq!(last[0].payload["held_counted_as_spent"], 0.5);
    assert_eq!(last[0].payload["pid"], gone.pid);
    assert_eq!(figures(store, &dead.id), (2.0, 0.75, 0.0, 0.0, 0.0, false));
    assert_eq!(append(store, &dead, &Change::default()).unwrap_err().code(), Code::ThreadBusy);
    // No process was left to stop it.
    assert_eq!(status(store, &wanted.id), Status::Cancelled);
    assert_eq!(kinds(store, &wanted.id), [Kind::Started, Kind::Interrupted, Kind::Cancelled]);
    assert!(store.sweep(&lives).unwrap().is_empty());
    audit(store, false);
}

pub fn a_sign_of_life_keeps_threads_from_being_swept(world: &Fixture) {
    let store = &*world.store;
    let mut far = holder();
    far.host = "another machine".to_owned();
    let record = store.begin(&New { holder: Some(far.clone()), ..new(1.0) }).unwrap();
    assert!(store.sweep(&lives).unwrap().is_empty(), "it has just begun");
    let began = record.beat_at.unwrap();
    store.beat(&far).unwrap();
    let beat = store.record(&record.id).unwrap().unwrap().beat_at.unwrap();
    assert!(beat > began);
    let now = jiff::Timestamp::now();
    assert!(now.duration_since(beat).abs() < jiff::SignedDuration::from_secs(10));
    assert!(lives(&far, Some(now - jiff::SignedDuration::from_secs(20))));
    assert!(!lives(&far, Some(now - jiff::SignedDuration::from_secs(40))));
    assert!(!lives(&far, None));
    // Another process of that machine with the same number says nothing about this one.
    let mut later = far.clone();
    later.began += 1;
    store.beat(&later).unwrap();
    assert_eq!(store.record(&record.id).unwrap().unwrap().beat_at, Some(beat));
}

pub fn unknown_names_are_not_found(world: &Fixture) {
    let store = &*world.store;
    let nobody = ThreadId::known("no/such/such-1");
    assert_eq!(store.record(&nobody).unwrap(), None);
    assert_eq!(store.account(&nobody).unwrap(), None);
    let missing = |answer: cuebook::Result<()>| {
        let error = answer.unwrap_err();
        assert_eq!(error.code(), Code::ThreadNotFound);
        assert!(error.to_string().contains("no/such/such-1"), "{error}");
    };
    missing(store.append(&nobody, &holder(), &[], &Change::default()).map(drop));
    missing(store.take(&nobody, &holder(), &[], &Change::default()).map(drop));
    missing(store.cancel(&nobody).map(drop));
    assert!(store.standing(&nobody).unwrap().is_none());
    missing(store.begin(&New { parent: Some(nobody.clone()), ..new(1.0) }).map(drop));
    missing(store.begin(&New { continuation_of: Some(nobody.clone()), ..new(1.0) }).map(drop));
    assert!(store.list(&Filter::default()).unwrap().is_empty(), "nothing is left of what failed");
}

pub fn a_conversation_is_handed_over(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(4.0)).unwrap();
    let first = store.begin(&child(&root, 4.0)).unwrap();
    append(store, &first, &with_cost(1.0)).unwrap();
    let open = store.begin(&child(&first, 0.5)).unwrap();
    let mut next = child(&root, 2.5);
    next.parent_spawns = Some(1);
    // The root has nothing left for anybody else.
    assert_eq!(store.begin(&child(&root, 0.1)).unwrap_err().code(), Code::BudgetExhausted);
    let words = Arc::new(|next: &ThreadId| vec![Entry::new(Kind::Handoff, json!({"to": next.as_str()}))]);
    let stranger = store.hand_over(&first.id, &holder(), words.clone(), &Change::default(), &next);
    assert_eq!(stranger.unwrap_err().code(), Code::ThreadBusy);
    let mut greedy = next.clone();
    greedy.spend = money(2.6);
    let holder = first.holder.clone().unwrap();
    let refused = store.hand_over(&first.id, &holder, words.clone(), &Change::default(), &greedy);
    assert_eq!(refused.unwrap_err().code(), Code::BudgetExhausted);
    assert_eq!(status(store, &first.id), Status::Running, "nothing has happened");
    let second = store.hand_over(&first.id, &holder, words, &Change::default(), &next).unwrap();
    let before = store.record(&first.id).unwrap().unwrap();
    assert_eq!((before.status, before.continued_by.as_ref()), (Status::Continued, Some(&second.id)));
    assert_eq!((second.continuation_of.as_ref(), second.status), (Some(&first.id), Status::Running));
    let events = store.events(&first.id, 2, 9).unwrap();
    assert_eq!(events[0].payload, json!({"to": second.id.as_str()}) as Json);
    assert_eq!(store.record(&root.id).unwrap().unwrap().spawned, 1);
    audit(store, false);
    append(store, &open, &with_status(Status::Completed)).unwrap();
    append(store, &second, &with_status(Status::Completed)).unwrap();
    assert_eq!(figures(store, &root.id), (4.0, 0.0, 1.0, 0.0, 0.0, false));
    let events = store.events(&first.id, 0, 9).unwrap();
    verify(store.key(), &first.id, &events, None).unwrap();
    audit(store, false);
}

pub fn a_parent_that_another_process_resumed_starts_nothing(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(4.0)).unwrap();
    let fenced = New { parent_holder: root.holder.clone(), ..child(&root, 1.0) };
    store.begin(&fenced).unwrap();
    append(store, &root, &with_status(Status::Suspended)).unwrap();
    assert_eq!(store.begin(&fenced).unwrap_err().code(), Code::ThreadBusy, "nobody runs it");
    let resumed = Entry::new(Kind::Resumed, json!({"limits": {"turns": 7}}));
    let again = holder();
    let stale = Change { behind: Some(1), ..Change::default() };
    let error = store.take(&root.id, &again, std::slice::from_ref(&resumed), &stale).unwrap_err();
    assert_eq!(error.code(), Code::ThreadBusy, "it has read one event, and there are two");
    store.take(&root.id, &again, &[resumed], &Change::default()).unwrap();
    assert_eq!(store.begin(&fenced).unwrap_err().code(), Code::ThreadBusy, "somebody else runs it");
    store.begin(&New { parent_holder: Some(again), ..fenced }).unwrap();
    assert_eq!(store.record(&root.id).unwrap().unwrap().spawned, 2);
    let last = store.last_of(&root.id, Kind::Resumed).unwrap().unwrap();
    assert_eq!(last.payload["limits"]["turns"], 7);
    assert_eq!(store.last_of(&root.id, Kind::Limit).unwrap(), None);
    audit(store, false);
}
