//! Many threads of one process at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use cuebook::Code;
use cuebook_run::Status;
use cuebook_run::store::Change;

use crate::support::*;

pub fn threads_at_once_never_overdraw(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(1.0)).unwrap();
    let began = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..32 {
            scope.spawn(|| match store.begin(&child(&root, 0.1)) {
                Ok(record) => {
                    began.fetch_add(1, Ordering::Relaxed);
                    append(store, &record, &with_hold(0.1)).unwrap();
                    append(store, &record, &with_cost(0.1)).unwrap();
                }
                Err(error) => assert_eq!(error.code(), Code::BudgetExhausted),
            });
        }
    });
    assert_eq!(began.into_inner(), 10);
    assert_eq!(figures(store, &root.id), (1.0, 0.0, 0.0, 0.0, 1.0, false));
    audit(store, false);
}

pub fn threads_at_once_keep_their_logs_whole(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(1000.0)).unwrap();
    std::thread::scope(|scope| {
        for number in 0..24 {
            let root = &root;
            scope.spawn(move || {
                for _ in 0..3 {
                    let record = store.begin(&child(root, 1.0)).unwrap();
                    for turn in 1..=4 {
                        append(store, &record, &with_hold(0.2)).unwrap();
                        append(store, &record, &with_cost(0.1 * f64::from(turn))).unwrap();
                    }
                    // One that is refused does not disturb those who share its transaction.
                    append(store, &record, &with_hold(5.0)).unwrap_err();
                    let end = if number % 2 == 0 { Status::Completed } else { Status::Error };
                    append(store, &record, &with_status(end)).unwrap();
                }
            });
        }
    });
    assert_eq!(store.account(&root.id).unwrap().unwrap().children, money(24.0 * 3.0 * 0.4));
    assert_eq!(store.record(&root.id).unwrap().unwrap().spawned, 72);
    audit(store, false);
}

pub fn two_who_take_up_one_thread_do_not_both_get_it(world: &Fixture) {
    let store = &*world.store;
    for _ in 0..5 {
        let record = store.begin(&new(1.0)).unwrap();
        append(store, &record, &with_status(Status::Suspended)).unwrap();
        let taken = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| match store.take(&record.id, &holder(), &[], &Change::default()) {
                    Ok(_) => drop(taken.fetch_add(1, Ordering::Relaxed)),
                    Err(error) => assert_eq!(error.code(), Code::ThreadBusy),
                });
            }
        });
        assert_eq!(taken.into_inner(), 1);
    }
}

pub fn children_started_during_a_cancel_are_stopped(world: &Fixture) {
    let store = &*world.store;
    let root = store.begin(&new(100.0)).unwrap();
    let middle = store.begin(&child(&root, 50.0)).unwrap();
    std::thread::scope(|scope| {
        for parent in [&root, &middle, &root, &middle] {
            scope.spawn(move || {
                for _ in 0..50 {
                    match store.begin(&child(parent, 0.1)) {
                        Ok(_) => {}
                        Err(error) => return assert_eq!(error.code(), Code::ThreadCancelled),
                    }
                }
            });
        }
        std::thread::sleep(Duration::from_millis(5));
        store.cancel(&root.id).unwrap();
    });
    for record in store.list(&Default::default()).unwrap() {
        assert!(record.cancel, "{}", record.id);
    }
    audit(store, false);
}

/// What a turn costs: not a test, but run with `--ignored --nocapture` it shows how long two appends take.
fn figures_of(world: &Fixture, threads: usize, turns: usize) {
    let store = &*world.store;
    let took = std::sync::Mutex::new(Vec::new());
    let began = std::time::Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let record = store.begin(&new(1000.0)).unwrap();
                let holder = record.holder.as_ref().unwrap();
                let text = "word ".repeat(200);
                let mut mine = Vec::new();
                for _ in 0..turns {
                    let began = std::time::Instant::now();
                    let entries = [nudge(&text), nudge(&text)];
                    store.append(&record.id, holder, &entries, &with_hold(0.2)).unwrap();
                    let entries = [nudge(&text), nudge(&text), nudge(&text)];
                    store.append(&record.id, holder, &entries, &with_cost(0.1)).unwrap();
                    mine.push(began.elapsed());
                }
                took.lock().unwrap().extend(mine);
            });
        }
    });
    let mut took = took.into_inner().unwrap();
    took.sort();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    let each = began.elapsed() / took.len() as u32;
    println!(
        "{}: {threads} threads: p50 {:?} p99 {:?} max {:?}, one each {each:?}",
        &world.place[..8],
        at(0.5),
        at(0.99),
        at(1.0)
    );
}

#[test]
#[ignore = "figures, not a test"]
fn how_long_a_turn_takes() {
    for (threads, turns) in [(1, 2000), (8, 300), (200, 20)] {
        figures_of(&Fixture::sqlite().unwrap(), threads, turns);
        if let Some(world) = Fixture::postgres() {
            figures_of(&world, threads, turns);
        }
    }
}
