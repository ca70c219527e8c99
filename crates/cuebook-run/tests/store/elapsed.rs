//! How long a thread ran whose process died.

use std::time::Duration;

use cuebook_run::store::{Change, Cost, Holder, Store};
use cuebook_run::{Entry, Event, Kind, Money, Status, ThreadId};
use serde_json::json;

use crate::support::*;

/// A process that is no more.
fn gone() -> Holder {
    Holder { began: holder().began + 1, ..holder() }
}

fn write(store: &dyn Store, id: &ThreadId, holder: &Holder, kind: Kind, change: &Change) -> Event {
    // Long enough for a clock that counts milliseconds.
    std::thread::sleep(Duration::from_millis(3));
    store.append(id, holder, &[Entry::new(kind, json!({}))], change).unwrap().remove(0)
}

fn between(one: jiff::Timestamp, other: jiff::Timestamp) -> Duration {
    Duration::try_from(other.duration_since(one)).unwrap()
}

pub fn a_request_of_a_dead_thread_counts_as_read(world: &Fixture) {
    let store = &*world.store;
    let tokens = |answered: bool| {
        let begun = store.begin(&cuebook_run::store::New { holder: Some(gone()), ..new(1.0) }).unwrap();
        let asked = Entry::new(Kind::CognitionIn, json!({"messages": [], "tokens": 321}));
        store.append(&begun.id, &gone_as(&begun), &[asked], &Change::default()).unwrap();
        if answered {
            write(store, &begun.id, &gone_as(&begun), Kind::CognitionOut, &Change::default());
        }
        store.sweep(&|_, _| false).unwrap();
        let cost = store.record(&begun.id).unwrap().unwrap().cost;
        let reported = store.last_of(&begun.id, Kind::Interrupted).unwrap().unwrap().payload;
        assert_eq!(reported["cost"]["input_tokens"], json!(cost.input_tokens), "{reported:#}");
        assert_eq!(reported["estimated"]["input"].as_u64().unwrap_or(0), cost.estimated, "{reported:#}");
        (cost.input_tokens, cost.estimated)
    };
    assert_eq!(tokens(false), (321, 321));
    assert_eq!(tokens(true), (0, 0));
}

pub fn money_for_a_lost_answer_is_released(world: &Fixture) {
    let store = &*world.store;
    let spent = |asked: serde_json::Value, held: f64| {
        let begun = store.begin(&cuebook_run::store::New { holder: Some(gone()), ..new(1.0) }).unwrap();
        let hold = Change { hold: Some(Money::from_units(held)), ..Change::default() };
        store.append(&begun.id, &gone_as(&begun), &[Entry::new(Kind::CognitionIn, asked)], &hold).unwrap();
        store.sweep(&|_, _| false).unwrap();
        let cost = store.record(&begun.id).unwrap().unwrap().cost;
        let account = store.account(&begun.id).unwrap().unwrap();
        let reported = store.last_of(&begun.id, Kind::Interrupted).unwrap().unwrap().payload;
        assert_eq!((account.spent, account.held), (cost.spend, Money::ZERO));
        assert_eq!(reported["cost"]["spend_nanos"], json!(cost.spend.nanos()), "{reported:#}");
        (cost.input_tokens, cost.spend.nanos(), reported["estimated"].clone())
    };
    let asked = json!({"messages": [], "tokens": 321, "spend_nanos": 321_000});
    let guess = json!({"input": 321, "output": 0, "spend": 0.000_321});
    assert_eq!(spent(asked.clone(), 0.5), (321, 321_000, guess));
    // Nothing is held for a question to which there is an answer, or none that is waited for.
    assert_eq!(spent(asked, 0.0), (0, 0, json!(null)));
    // Where the log does not say what reading costs, it is unknown what was spent.
    assert_eq!(spent(json!({"messages": [], "tokens": 321}), 0.5).1, 500_000_000);
}

pub fn what_had_come_of_an_answer_counts_once(world: &Fixture) {
    let store = &*world.store;
    let begun = store.begin(&cuebook_run::store::New { holder: Some(gone()), ..new(1.0) }).unwrap();
    let (id, holder) = (&begun.id, &gone_as(&begun));
    let enter = |holder: &Holder, kind: Kind, payload: serde_json::Value, hold: Option<f64>| {
        let change = Change { hold: hold.map(Money::from_units), ..Change::default() };
        store.append(id, holder, &[Entry::new(kind, payload)], &change).unwrap();
    };
    let delta = |tokens: u64| json!({"text": "…", "tokens": tokens, "spend_nanos": tokens * 10_000});
    let asked = json!({"messages": [], "tokens": 300, "spend_nanos": 300_000});
    // What came of the first attempt was counted when that failed.
    enter(holder, Kind::CognitionIn, asked.clone(), Some(0.5));
    enter(holder, Kind::TokenDelta, delta(1000), None);
    enter(holder, Kind::Retry, json!({"attempt": 1}), Some(0.5));
    for tokens in [20, 3] {
        enter(holder, Kind::TokenDelta, delta(tokens), None);
    }
    store.sweep(&|_, _| false).unwrap();
    let reported = || store.last_of(id, Kind::Interrupted).unwrap().unwrap().payload;
    let used = || {
        let cost = store.record(id).unwrap().unwrap().cost;
        (cost.input_tokens, cost.output_tokens, cost.estimated, cost.spend.nanos())
    };
    assert_eq!(used(), (300, 23, 323, 530_000));
    assert_eq!(reported()["estimated"], json!({"input": 300, "output": 23, "spend": 0.000_53}));
    assert!(
        reported()["note"].as_str().unwrap().contains("the known part of the answer"),
        "{:#}",
        reported()
    );
    // A process that dies before the model is asked again has heard nothing more.
    let again = Holder { pid: holder.pid + 1, ..gone() };
    store.take(id, &again, &[Entry::new(Kind::Resumed, json!({}))], &Change::default()).unwrap();
    store.sweep(&|_, _| false).unwrap();
    assert_eq!((used(), reported().get("estimated")), ((300, 23, 323, 530_000), None));
    // More than was held for it is not counted.
    let third = Holder { pid: holder.pid + 2, ..gone() };
    store.take(id, &third, &[Entry::new(Kind::Resumed, json!({}))], &Change::default()).unwrap();
    enter(&third, Kind::CognitionIn, asked, Some(0.0004));
    enter(&third, Kind::TokenDelta, delta(50), None);
    store.sweep(&|_, _| false).unwrap();
    assert_eq!(used(), (600, 73, 673, 930_000));
    audit(store, false);
}

fn gone_as(record: &cuebook_run::store::Record) -> Holder {
    record.holder.clone().unwrap()
}

pub fn the_time_of_a_dead_thread_goes_to_its_last_sign_of_life(world: &Fixture) {
    let store = &*world.store;
    let (first, second) = (gone(), Holder { pid: holder().pid + 1, ..gone() });
    let begun = store.begin(&cuebook_run::store::New { holder: Some(first.clone()), ..new(1.0) }).unwrap();
    let id = &begun.id;
    let elapsed = || store.record(id).unwrap().unwrap().cost.elapsed;
    let sweep = || {
        assert_eq!(store.sweep(&|_, _| false).unwrap(), std::slice::from_ref(id));
        assert_eq!(status(store, id), Status::Interrupted);
    };
    // What was counted with the answer, and from there to the last event.
    let second_long = Duration::from_secs(1);
    let cost = Cost { turns: 1, elapsed: second_long, ..Cost::default() };
    let counts = Change { cost: Some(cost), ..Change::default() };
    let answer = write(store, id, &first, Kind::CognitionOut, &counts);
    let last = write(store, id, &first, Kind::ToolStart, &Change::default());
    std::thread::sleep(Duration::from_millis(3));
    sweep();
    let so_far = second_long + between(answer.at, last.at);
    assert_eq!(elapsed(), so_far);
    // No process ran it until it was resumed. From then on, a beat is as good as an event.
    std::thread::sleep(Duration::from_millis(3));
    let taken = store.take(id, &second, &[Entry::new(Kind::Resumed, json!({}))], &Change::default()).unwrap();
    std::thread::sleep(Duration::from_millis(3));
    store.beat(&second).unwrap();
    let beat = store.record(id).unwrap().unwrap().beat_at.unwrap();
    sweep();
    let so_far = so_far + between(taken.updated_at, beat);
    assert_eq!(elapsed(), so_far);
    // The log says the same, to the microsecond, and it is all that is read when the thread goes on.
    let reported = store.last_of(id, Kind::Interrupted).unwrap().unwrap().payload;
    assert_eq!(reported["cost"]["elapsed_micros"], json!(so_far.as_micros() as u64), "{reported:#}");
    assert_eq!(reported["last_sign_of_life"], json!(beat.to_string()), "{reported:#}");
    audit(store, false);
}
