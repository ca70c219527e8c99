//! The queue: who gets which thread, and who may write to it.

use std::time::Duration;

use cuebook::Code;
use cuebook_run::store::{
    Change, Claim, ClaimLimits, Holder, LogKey, New, Place, Record, Store, WorkerState,
};
use cuebook_run::{Entry, Kind, Status};
use serde_json::json;

use crate::support::{Fixture, holder, new};

const QUEUE: &str = "tests";
const MINUTE: Duration = Duration::from_secs(60);

fn place(priority: i64) -> Place {
    Place {
        queue: QUEUE.to_owned(),
        priority,
        due_at: None,
        provider_key: "MOCK_KEY".to_owned(),
        sandbox: true,
    }
}

fn waiting(prompt: &str) -> New {
    New { prompt: prompt.to_owned(), holder: None, ..new(1.0) }
}

fn queued(store: &dyn Store, priority: i64) -> Record {
    store.enqueue(&waiting("demo/greet"), &place(priority)).unwrap()
}

fn claim(store: &dyn Store, most: usize) -> Vec<Claim> {
    store.claim(QUEUE, most, &ClaimLimits::default()).unwrap()
}

fn note() -> [Entry; 1] {
    [Entry::new(Kind::Nudge, json!({}))]
}

/// A worker on another machine, which can only be known by its signs of life.
fn elsewhere(lease: Duration) -> WorkerState {
    WorkerState {
        holder: Holder { host: "elsewhere".to_owned(), ..holder() },
        name: "other".to_owned(),
        queue: QUEUE.to_owned(),
        concurrency: 4,
        lease,
        draining: false,
    }
}

/// Writes a claim as that worker made it.
fn claimed_elsewhere(world: &Fixture, claim: &Claim, worker: &WorkerState) -> Holder {
    let Holder { host, pid, began, .. } = &worker.holder;
    world.change(&format!(
        "UPDATE cuebook_queue SET host = '{host}', pid = {pid}, began = {} WHERE thread = '{}'",
        began.cast_signed(),
        claim.id
    ));
    Holder { token: claim.holder.token.clone(), ..worker.holder.clone() }
}

pub fn threads_are_claimed_once_by_priority_and_age(world: &Fixture) {
    let store = &*world.store;
    let (low, first, second) = (queued(store, -1), queued(store, 5), queued(store, 5));
    let usual = queued(store, 0);
    assert_eq!((usual.status, usual.holder.clone()), (Status::Queued, None));
    let ids = |claims: &[Claim]| claims.iter().map(|claim| claim.id.clone()).collect::<Vec<_>>();
    assert_eq!(ids(&claim(store, 3)), [first.id, second.id, usual.id]);
    let state = store.queue_state(Some(QUEUE)).unwrap();
    assert_eq!((state.waiting, state.scheduled, state.running), (1, 0, 3));
    assert!(state.oldest_wait.is_some());
    assert!(store.claim("another", 3, &ClaimLimits::default()).unwrap().is_empty());
    assert_eq!(ids(&claim(store, 3)), [low.id]);
    assert!(claim(store, 3).is_empty());
}

pub fn two_workers_never_claim_one_thread(world: &Fixture) {
    let store = &world.store;
    let ids: Vec<_> = (0..40).map(|_| queued(&**store, 0).id).collect();
    let taken: Vec<_> = std::thread::scope(|scope| {
        let one = || {
            let mut taken = Vec::new();
            // One that others were about to claim may be passed over, so an empty answer is not the end.
            while store.queue_state(Some(QUEUE)).unwrap().waiting > 0 {
                taken.extend(claim(&**store, 3).into_iter().map(|claim| claim.id));
            }
            taken
        };
        let all: Vec<_> = (0..4).map(|_| scope.spawn(one)).collect();
        all.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });
    let mut sorted = taken.clone();
    sorted.sort();
    let mut expected = ids;
    expected.sort();
    assert_eq!(sorted, expected);
}

pub fn a_thread_that_is_due_later_waits(world: &Fixture) {
    let store = &*world.store;
    let due_at = Some(jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1));
    let later = store.enqueue(&waiting("demo/greet"), &Place { due_at, ..place(9) }).unwrap();
    assert!(claim(store, 1).is_empty());
    let state = store.queue_state(None).unwrap();
    assert_eq!((state.waiting, state.scheduled), (0, 1));
    assert!(state.next_due.is_some());
    // It is sealed when it is due, so another program cannot start it earlier.
    world.change("UPDATE cuebook_queue SET ready = 1");
    assert!(claim(store, 1).is_empty());
    let state = store.queue_state(None).unwrap();
    assert_eq!((state.waiting, state.scheduled, state.damaged), (0, 1, 0));
    assert_eq!(store.record(&later.id).unwrap().unwrap().status, Status::Queued);
    let soon = Some(jiff::Timestamp::now() + jiff::SignedDuration::from_millis(50));
    let soon = store.enqueue(&waiting("demo/greet"), &Place { due_at: soon, ..place(0) }).unwrap();
    let began = std::time::Instant::now();
    let claimed = loop {
        match claim(store, 1).pop() {
            Some(claimed) => break claimed,
            None => assert!(began.elapsed() < MINUTE),
        }
    };
    assert_eq!(claimed.id, soon.id);
}

pub fn limits_count_all_workers(world: &Fixture) {
    let store = &*world.store;
    let enqueue = |prompt: &str, key: &str| {
        let place = Place { provider_key: key.to_owned(), ..place(0) };
        store.enqueue(&waiting(prompt), &place).unwrap().id
    };
    let first = enqueue("demo/a", "ONE");
    let _second = enqueue("demo/a", "ONE");
    let other = enqueue("demo/b", "ONE");
    let third = enqueue("demo/c", "TWO");
    let per_prompt = ClaimLimits { per_prompt: Some(1), per_key: None };
    let both = ClaimLimits { per_prompt: Some(1), per_key: Some(1) };
    let ids = |limits: &ClaimLimits| {
        let claims = store.claim(QUEUE, 9, limits).unwrap();
        claims.into_iter().map(|claim| claim.id).collect::<Vec<_>>()
    };
    assert_eq!(ids(&both), [first.clone(), third]);
    assert_eq!(ids(&both), []);
    assert_eq!(ids(&per_prompt), [other]);
    assert_eq!(ids(&per_prompt), []);
    assert_eq!(store.queue_state(None).unwrap().waiting, 1);
}

pub fn a_row_that_another_program_wrote_is_not_claimed(world: &Fixture) {
    let store = &*world.store;
    let ids: Vec<_> = (0..3).map(|_| queued(store, 0).id).collect();
    world.change(&format!("UPDATE cuebook_queue SET sandbox = 0 WHERE thread = '{}'", ids[0]));
    world.change(&format!("UPDATE cuebook_queue SET priority = 99 WHERE thread = '{}'", ids[1]));
    let claims = claim(store, 9);
    assert_eq!(claims.len(), 1);
    assert_eq!(claims[0].id, ids[2]);
    let state = store.queue_state(None).unwrap();
    assert_eq!((state.waiting, state.running, state.damaged), (0, 1, 2));
}

pub fn a_worker_gets_only_what_its_own_user_queued(world: &Fixture) {
    let other = cuebook_run::store::open(&world.place, Ok(LogKey::from_bytes([8; 32]))).unwrap();
    queued(&*world.store, 0);
    assert!(claim(&*other, 1).is_empty());
    assert_eq!(other.queue_state(None).unwrap().waiting, 0);
    // The key's name can be forged, its seal cannot.
    world.change(&format!("UPDATE cuebook_queue SET log_key = '{}'", other.key().unwrap().id()));
    assert!(claim(&*other, 1).is_empty());
    assert_eq!(other.queue_state(None).unwrap().damaged, 1);
}

pub fn a_worker_that_lost_its_lease_cannot_write(world: &Fixture) {
    let store = &*world.store;
    let id = queued(store, 0).id;
    let mine = claim(store, 1).pop().unwrap();
    let lost = elsewhere(Duration::ZERO);
    assert!(!store.worker_beats(&lost).unwrap(), "it was not known before");
    let first = claimed_elsewhere(world, &mine, &lost);
    store.take(&id, &first, &note(), &Change::default()).unwrap();
    store.append(&id, &first, &note(), &Change::default()).unwrap();
    assert_eq!(store.take_over().unwrap(), std::slice::from_ref(&id));
    let record = store.record(&id).unwrap().unwrap();
    assert_eq!(record.status, Status::Interrupted);
    let last = store.last_of(&id, Kind::Interrupted).unwrap().unwrap();
    assert_eq!(last.payload["worker"], "other");
    let refused = store.append(&id, &first, &note(), &Change::default()).unwrap_err();
    assert_eq!(refused.code(), Code::ThreadBusy);
    let second = claim(store, 1).pop().unwrap();
    assert_eq!(second.id, id);
    // It cannot take it again either, now that another worker has claimed it.
    assert!(!store.worker_beats(&elsewhere(MINUTE)).unwrap());
    world.change(&format!("UPDATE cuebook_queue SET host = 'elsewhere' WHERE thread = '{id}'"));
    let refused = store.take(&id, &first, &note(), &Change::default()).unwrap_err();
    assert_eq!(refused.code(), Code::ThreadBusy, "{refused}");
    let behind = Change { behind: Some(record.last.0), ..Change::default() };
    store.take(&id, &second.holder, &note(), &behind).unwrap();
    let refused = store.append(&id, &first, &note(), &Change::default()).unwrap_err();
    assert_eq!(refused.code(), Code::ThreadBusy);
    let done = Change { status: Some(Status::Completed), ..Change::default() };
    store.append(&id, &second.holder, &note(), &done).unwrap();
    let state = store.queue_state(None).unwrap();
    assert_eq!((state.waiting, state.running), (0, 0), "it has left the queue");
}

pub fn a_worker_that_lives_keeps_its_threads(world: &Fixture) {
    let store = &*world.store;
    let id = queued(store, 0).id;
    let worker = elsewhere(MINUTE);
    store.worker_beats(&worker).unwrap();
    assert!(store.worker_beats(&worker).unwrap());
    let holder = claimed_elsewhere(world, &claim(store, 1).pop().unwrap(), &worker);
    store.take(&id, &holder, &note(), &Change::default()).unwrap();
    assert!(store.take_over().unwrap().is_empty());
    store.append(&id, &holder, &note(), &Change::default()).unwrap();
    let state = store.queue_state(None).unwrap();
    assert_eq!(state.workers.len(), 1);
    assert!(state.workers[0].alive);
    assert_eq!((state.workers[0].running, state.running), (1, 1));
}

pub fn a_claim_without_a_thread_is_released(world: &Fixture) {
    let store = &*world.store;
    let id = queued(store, 0).id;
    let worker = elsewhere(Duration::ZERO);
    store.worker_beats(&worker).unwrap();
    claimed_elsewhere(world, &claim(store, 1).pop().unwrap(), &worker);
    assert!(store.take_over().unwrap().is_empty(), "nothing had begun");
    let again = claim(store, 1).pop().unwrap();
    assert_eq!(again.id, id);
    assert!(store.unclaim(&again, false).unwrap());
    assert!(!store.unclaim(&again, false).unwrap(), "it is no claim any more");
    let again = claim(store, 1).pop().unwrap();
    // A user who runs it at once takes it from nobody who lives, and no worker gets it.
    store.take(&id, &holder(), &[], &Change::default()).unwrap();
    assert!(claim(store, 1).is_empty());
    assert_eq!(again.id, id);
}

pub fn a_cancelled_thread_leaves_the_queue(world: &Fixture) {
    let store = &*world.store;
    let id = queued(store, 0).id;
    assert_eq!(store.cancel(&id).unwrap().status, Status::Cancelled);
    assert!(claim(store, 1).is_empty());
    let record = store.record(&id).unwrap().unwrap();
    let again = store.requeue(&id, record.last.0, &place(0)).unwrap();
    assert_eq!((again.status, again.cancel), (Status::Queued, false));
    let refused = store.requeue(&id, 0, &place(0)).unwrap_err();
    assert_eq!(refused.code(), Code::ThreadBusy);
    let claim = claim(store, 1).pop().unwrap();
    store.take(&id, &claim.holder, &[], &Change::default()).unwrap();
    let refused = store.requeue(&id, record.last.0, &place(0)).unwrap_err();
    assert_eq!(refused.code(), Code::ThreadBusy);
    // A thread that waits for a person is not taken again by itself.
    let parked = Change { status: Some(Status::Suspended), ..Change::default() };
    store.append(&id, &claim.holder, &note(), &parked).unwrap();
    assert_eq!(store.queue_state(None).unwrap().waiting, 0);
}

pub fn a_thread_that_kills_its_workers_is_left_alone(world: &Fixture) {
    let store = &*world.store;
    let id = queued(store, 0).id;
    let mut lives = 0;
    while let Some(claim) = claim(store, 1).pop() {
        let worker = elsewhere(Duration::ZERO);
        store.worker_beats(&worker).unwrap();
        let holder = claimed_elsewhere(world, &claim, &worker);
        store.take(&id, &holder, &note(), &Change::default()).unwrap();
        store.take_over().unwrap();
        lives += 1;
        assert!(lives < 20);
    }
    assert_eq!(lives, 5);
    assert_eq!(store.record(&id).unwrap().unwrap().status, Status::Interrupted);
}

/// Only PostgreSQL tells a listener; with a SQLite file, workers look again and again.
pub fn a_queued_thread_wakes_a_listener(world: &Fixture) {
    let store = &*world.store;
    // The first call begins to listen.
    store.wait_for_work(Duration::ZERO);
    std::thread::scope(|scope| {
        let listener = scope.spawn(|| {
            loop {
                // Nothing looks at the queue before the notification. Other tests may wake it too.
                store.wait_for_work(5 * MINUTE);
                if let Some(claimed) = claim(store, 1).pop() {
                    return claimed.id;
                }
            }
        });
        let queued = queued(store, 0).id;
        let began = std::time::Instant::now();
        while !listener.is_finished() {
            assert!(began.elapsed() < MINUTE, "it was not told");
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(listener.join().unwrap(), queued);
    });
}
