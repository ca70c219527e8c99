//! The ledger.

use cuebook::Code;
use cuebook_run::store::{Change, New, lives};
use cuebook_run::{Kind, Money, Status};

use crate::support::*;

pub fn a_child_has_what_its_parent_gives(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(3.0)).unwrap();
    let first = store.begin(&child(&root, 1.0)).unwrap();
    assert_eq!(figures(store, &root.id), (3.0, 0.0, 0.0, 0.0, 1.0, false));
    append(store, &first, &with_cost(0.4)).unwrap();
    append(store, &root, &with_cost(0.1)).unwrap();
    assert_eq!(figures(store, &root.id), (3.0, 0.1, 0.0, 0.0, 1.0, false));
    append(store, &first, &with_status(Status::Completed)).unwrap();
    assert_eq!(figures(store, &root.id), (3.0, 0.1, 0.4, 0.0, 0.0, false));
    assert_eq!(store.account(&root.id).unwrap().unwrap().remaining(), money(2.5));
    let record = store.record(&root.id).unwrap().unwrap();
    assert_eq!((record.cost.spend, record.cost.tokens(), record.spawned), (money(0.1), 15, 1));
    audit(store, false);
}

pub fn too_little_is_said_with_figures(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(3.0)).unwrap();
    store.begin(&child(&root, 1.0)).unwrap();
    let error = store.begin(&child(&root, 2.5)).unwrap_err();
    assert_eq!(error.code(), Code::BudgetExhausted);
    let message = &error.diagnostic().message;
    assert_eq!(*message, format!("Insufficient budget: parent={} remaining=2.00 requested=2.50", root.id));
    assert!(error.diagnostic().hint.is_some());
    let error = append(store, &root, &with_hold(2.1)).unwrap_err();
    assert_eq!(error.code(), Code::BudgetExhausted);
    assert!(error.to_string().contains("remaining=2.00 requested=2.10"), "{error}");
    let error = store.begin(&New { spend: Money::MAX, ..child(&root, 0.0) }).unwrap_err();
    assert!(error.to_string().contains("requested=unlimited"), "{error}");
    assert_eq!(store.record(&root.id).unwrap().unwrap().spawned, 1, "what was refused does not count");
    audit(store, false);
}

pub fn a_hold_becomes_the_cost(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(1.0)).unwrap();
    append(store, &root, &with_hold(0.9)).unwrap();
    assert_eq!(figures(store, &root.id), (1.0, 0.0, 0.0, 0.9, 0.0, false));
    assert_eq!(store.begin(&child(&root, 0.2)).unwrap_err().code(), Code::BudgetExhausted);
    // A new hold takes the place of the one before.
    append(store, &root, &with_hold(1.0)).unwrap();
    append(store, &root, &with_cost(0.3)).unwrap();
    assert_eq!(figures(store, &root.id), (1.0, 0.3, 0.0, 0.0, 0.0, false));
    append(store, &root, &Change { hold: Some(money(0.7)), ..with_cost(0.3) }).unwrap();
    assert_eq!(figures(store, &root.id), (1.0, 0.3, 0.0, 0.7, 0.0, false));
    append(store, &root, &with_hold(0.0)).unwrap();
    assert_eq!(figures(store, &root.id), (1.0, 0.3, 0.0, 0.0, 0.0, false));
    audit(store, false);
}

pub fn a_cost_higher_than_what_was_held_is_recorded(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(5.0)).unwrap();
    let middle = store.begin(&child(&root, 3.0)).unwrap();
    let low = store.begin(&child(&middle, 2.0)).unwrap();
    append(store, &low, &with_hold(2.0)).unwrap();
    append(store, &low, &with_cost(2.5)).unwrap();
    assert_eq!(figures(store, &low.id), (2.0, 2.5, 0.0, 0.0, 0.0, false));
    assert_eq!(store.account(&low.id).unwrap().unwrap().remaining(), money(-0.5));
    assert_eq!(figures(store, &middle.id), (3.0, 0.0, 0.0, 0.0, 2.5, false), "it shows above at once");
    append(store, &low, &with_cost(4.0)).unwrap();
    assert_eq!(figures(store, &root.id), (5.0, 0.0, 0.0, 0.0, 4.0, false));
    assert_eq!(append(store, &low, &with_hold(0.1)).unwrap_err().code(), Code::BudgetExhausted);
    audit(store, true);
    append(store, &low, &with_status(Status::Error)).unwrap();
    append(store, &middle, &with_status(Status::Completed)).unwrap();
    assert_eq!(figures(store, &root.id), (5.0, 0.0, 4.0, 0.0, 0.0, false));
    audit(store, true);
}

pub fn a_parent_settles_after_its_children(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(5.0)).unwrap();
    let middle = store.begin(&child(&root, 3.0)).unwrap();
    let low = store.begin(&child(&middle, 2.0)).unwrap();
    append(store, &middle, &with_cost(0.5)).unwrap();
    append(store, &middle, &with_status(Status::Completed)).unwrap();
    assert_eq!(figures(store, &middle.id), (3.0, 0.5, 0.0, 0.0, 2.0, false));
    assert_eq!(figures(store, &root.id), (5.0, 0.0, 0.0, 0.0, 3.0, false));
    append(store, &low, &with_cost(1.0)).unwrap();
    append(store, &root, &with_status(Status::Completed)).unwrap();
    assert!(!store.account(&root.id).unwrap().unwrap().settled);
    audit(store, false);
    append(store, &low, &with_status(Status::Completed)).unwrap();
    assert_eq!(figures(store, &middle.id), (3.0, 0.5, 1.0, 0.0, 0.0, true));
    assert_eq!(figures(store, &root.id), (5.0, 0.0, 1.5, 0.0, 0.0, true));
    audit(store, false);
}

pub fn spawns_are_counted(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(5.0)).unwrap();
    let limited = New { parent_spawns: Some(2), ..child(&root, 0.5) };
    for _ in 0..2 {
        let record = store.begin(&limited).unwrap();
        append(store, &record, &with_status(Status::Completed)).unwrap();
    }
    let error = store.begin(&limited).unwrap_err();
    assert_eq!((error.code(), error.field("limit_code")), (Code::LimitReached, Some(&"spawns".into())));
    assert_eq!(store.record(&root.id).unwrap().unwrap().spawned, 2);
    store.begin(&New { parent_spawns: Some(3), ..limited }).unwrap();
    audit(store, false);
}

pub fn a_settled_thread_asks_its_parent_again(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(3.0)).unwrap();
    let failed = store.begin(&child(&root, 2.0)).unwrap();
    append(store, &failed, &with_cost(0.5)).unwrap();
    append(store, &failed, &with_status(Status::Error)).unwrap();
    assert_eq!(figures(store, &root.id), (3.0, 0.0, 0.5, 0.0, 0.0, false));
    let other = store.begin(&child(&root, 1.5)).unwrap();
    let error = store.take(&failed.id, &holder(), &[], &Change::default()).unwrap_err();
    assert_eq!(error.code(), Code::BudgetExhausted);
    assert_eq!(status(store, &failed.id), Status::Error);
    audit(store, false);
    // With a smaller limit there is enough.
    let change = Change { spend_limit: Some(money(1.5)), ..Change::default() };
    let taken = store.take(&failed.id, &holder(), &[], &change).unwrap();
    assert_eq!(figures(store, &failed.id), (1.5, 0.5, 0.0, 0.0, 0.0, false));
    assert_eq!(figures(store, &root.id), (3.0, 0.0, 0.0, 0.0, 3.0, false));
    audit(store, false);
    append(store, &taken, &with_cost(0.75)).unwrap();
    append(store, &taken, &with_status(Status::Completed)).unwrap();
    append(store, &other, &with_status(Status::Completed)).unwrap();
    assert_eq!(figures(store, &root.id), (3.0, 0.0, 0.75, 0.0, 0.0, false), "nothing is counted twice");
    audit(store, false);
}

pub fn parents_reopen_with_their_child(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(3.0)).unwrap();
    let middle = store.begin(&child(&root, 2.0)).unwrap();
    let low = store.begin(&child(&middle, 1.0)).unwrap();
    append(store, &low, &with_cost(0.25)).unwrap();
    append(store, &low, &with_status(Status::Error)).unwrap();
    append(store, &middle, &with_cost(0.5)).unwrap();
    append(store, &middle, &with_status(Status::Completed)).unwrap();
    assert_eq!(figures(store, &root.id), (3.0, 0.0, 0.75, 0.0, 0.0, false));
    let other = store.begin(&child(&root, 1.5)).unwrap();
    let error = store.take(&low.id, &holder(), &[], &Change::default()).unwrap_err();
    assert!(error.to_string().contains(&format!("parent={}", root.id)), "{error}");
    assert!(store.account(&middle.id).unwrap().unwrap().settled, "nothing reopened");
    audit(store, false);
    append(store, &other, &with_status(Status::Completed)).unwrap();
    append(store, &root, &with_status(Status::Completed)).unwrap();
    let taken = store.take(&low.id, &holder(), &[], &Change::default()).unwrap();
    assert_eq!(status(store, &middle.id), Status::Completed, "it stays ended");
    assert_eq!(figures(store, &middle.id), (2.0, 0.5, 0.0, 0.0, 1.0, false));
    assert_eq!(figures(store, &root.id), (3.0, 0.0, 0.0, 0.0, 2.0, false));
    audit(store, false);
    append(store, &taken, &with_cost(0.75)).unwrap();
    append(store, &taken, &with_status(Status::Completed)).unwrap();
    assert_eq!(figures(store, &root.id), (3.0, 0.0, 1.25, 0.0, 0.0, true));
    audit(store, false);
}

pub fn a_limit_is_changed_within_what_the_parent_has(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(3.0)).unwrap();
    let low = store.begin(&child(&root, 1.0)).unwrap();
    append(store, &low, &with_cost(0.5)).unwrap();
    let limit = |units: f64| Change { spend_limit: Some(money(units)), ..Change::default() };
    append(store, &low, &limit(3.0)).unwrap();
    assert_eq!(figures(store, &root.id).4, 3.0);
    assert_eq!(append(store, &low, &limit(3.1)).unwrap_err().code(), Code::BudgetExhausted);
    append(store, &low, &limit(0.1)).unwrap();
    assert_eq!(figures(store, &low.id).0, 0.5, "no less than what is spent");
    assert_eq!(figures(store, &root.id).4, 0.5);
    append(store, &root, &limit(0.0)).unwrap();
    assert_eq!(figures(store, &root.id).0, 0.5);
    append(store, &root, &limit(10.0)).unwrap();
    let both = Change { hold: Some(money(5.0)), ..limit(6.0) };
    append(store, &low, &both).unwrap();
    assert_eq!(figures(store, &low.id), (6.0, 0.5, 0.0, 5.0, 0.0, false));
    let endless = Change { spend_limit: Some(Money::MAX), ..Change::default() };
    assert_eq!(append(store, &low, &endless).unwrap_err().code(), Code::BudgetExhausted);
    // A thread that waits keeps what is reserved for it; when it goes on it can have more.
    append(store, &low, &with_status(Status::Suspended)).unwrap();
    audit(store, false);
    let error = store.take(&low.id, &holder(), &[], &limit(11.0)).unwrap_err();
    assert_eq!(error.code(), Code::BudgetExhausted);
    store.take(&low.id, &holder(), &[], &limit(9.0)).unwrap();
    assert_eq!(figures(store, &root.id).4, 9.0);
    audit(store, false);
}

pub fn without_a_limit_there_is_always_enough(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&New { spend: Money::MAX, ..new(0.0) }).unwrap();
    let endless = New { spend: Money::MAX, ..child(&root, 0.0) };
    let (first, second) = (store.begin(&endless).unwrap(), store.begin(&endless).unwrap());
    let third = store.begin(&child(&first, 1.0)).unwrap();
    append(store, &first, &with_cost(7.0)).unwrap();
    append(store, &third, &with_cost(0.5)).unwrap();
    append(store, &second, &with_hold(1e9)).unwrap();
    audit(store, false);
    append(store, &second, &with_cost(2.0)).unwrap();
    for record in [&third, &second, &first] {
        append(store, record, &with_status(Status::Completed)).unwrap();
    }
    let account = store.account(&root.id).unwrap().unwrap();
    assert_eq!((account.children, account.remaining()), (money(9.5), Money::MAX));
    audit(store, false);
}

pub fn an_unreleased_hold_counts_as_spent(world: &Fixture) {
    let store = &*world.store;
    for at_rest in [Status::Suspended, Status::Error, Status::Completed] {
        let record = store.begin(&new(1.0)).unwrap();
        append(store, &record, &with_hold(0.5)).unwrap();
        append(store, &record, &with_status(at_rest)).unwrap();
        assert_eq!(figures(store, &record.id).1, 0.5);
        let record = store.begin(&new(1.0)).unwrap();
        append(store, &record, &with_hold(0.5)).unwrap();
        append(store, &record, &Change { hold: Some(Money::ZERO), ..with_status(at_rest) }).unwrap();
        assert_eq!(figures(store, &record.id).1, 0.0);
        let record = store.begin(&new(1.0)).unwrap();
        append(store, &record, &with_hold(0.5)).unwrap();
        append(store, &record, &Change { status: Some(at_rest), ..with_cost(0.2) }).unwrap();
        assert_eq!(figures(store, &record.id).1, 0.2);
    }
    audit(store, false);
}

pub fn an_ended_or_cancelled_parent_has_no_more_children(world: &Fixture) {
    let store = &*world.store;
    let ended = store.begin(&new(3.0)).unwrap();
    store.begin(&child(&ended, 1.0)).unwrap();
    append(store, &ended, &with_status(Status::Completed)).unwrap();
    let error = store.begin(&child(&ended, 1.0)).unwrap_err();
    assert_eq!(error.code(), Code::BudgetExhausted);
    assert!(error.to_string().contains("completed"), "{error}");
    let stopped = store.begin(&new(3.0)).unwrap();
    store.cancel(&stopped.id).unwrap();
    assert_eq!(store.begin(&child(&stopped, 1.0)).unwrap_err().code(), Code::ThreadCancelled);
    audit(store, false);
}

pub fn negative_amounts_give_nothing(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(1.0)).unwrap();
    let low = store.begin(&child(&root, -5.0)).unwrap();
    assert_eq!(figures(store, &low.id).0, 0.0);
    append(store, &root, &with_hold(-5.0)).unwrap();
    append(store, &root, &with_cost(-5.0)).unwrap();
    assert_eq!(figures(store, &root.id), (1.0, 0.0, 0.0, 0.0, 0.0, false));
    append(store, &root, &Change { spend_limit: Some(money(-5.0)), ..Change::default() }).unwrap();
    assert_eq!(figures(store, &root.id).0, 0.0);
    audit(store, false);
}

pub fn a_failed_change_leaves_nothing_behind(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(1.0)).unwrap();
    let before = store.record(&root.id).unwrap();
    let change = Change { hold: Some(money(5.0)), model: Some("other".to_owned()), ..with_cost(0.5) };
    append(store, &root, &change).unwrap_err();
    assert_eq!(store.record(&root.id).unwrap(), before);
    assert_eq!(kinds(store, &root.id), [Kind::Started]);
    assert!(store.sweep(&lives).unwrap().is_empty());
    audit(store, false);
}
