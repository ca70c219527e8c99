//! Budgets of requests and tokens that processes on one store share. Every moment is given, so that nothing has to wait.

use cuebook_run::provider::{Budget, Rate};
use jiff::Timestamp;

use crate::support::{Fixture, open};

pub const RATE: Rate = Rate { requests: Some(60.0), tokens: None };

/// A budget of a process of its own: its store has its own connections.
pub fn budget(place: &str, key: &str, rate: Rate) -> Budget {
    Budget::on_store(open(place).unwrap(), "https://api.example.com", key, rate)
}

/// A moment. The store's clock may differ from ours by milliseconds, so no count here depends on them.
pub fn at(seconds: f64) -> Timestamp {
    Timestamp::from_millisecond(1_800_000_000_000 + (seconds * 1000.0) as i64).unwrap()
}

/// How many requests a budget grants until it holds one back.
pub fn granted(budget: &Budget, now: Timestamp) -> usize {
    (0..1_000).take_while(|_| budget.take(1, now).is_none()).count()
}

pub fn connections_to_one_store_share_a_budget(world: &Fixture) {
    let (one, two) = (budget(&world.place, "key", RATE), budget(&world.place, "key", RATE));
    assert!((0..20).all(|_| one.take(1, at(0.0)).is_none() && two.take(1, at(0.0)).is_none()));
    assert_eq!(granted(&two, at(0.0)) + granted(&one, at(0.0)), 20);
    assert_eq!(granted(&one, at(10.5)) + granted(&two, at(10.5)), 10);
    // Another key has a budget of its own.
    assert_eq!(granted(&budget(&world.place, "other", RATE), at(0.0)), 60);
    let tokens = Rate { requests: None, tokens: Some(600.0) };
    let (one, two) = (budget(&world.place, "tokens", tokens), budget(&world.place, "tokens", tokens));
    assert!(
        one.take(400, at(0.0)).is_none()
            && two.take(400, at(0.0)).is_some()
            && two.take(200, at(0.0)).is_none()
    );
}

pub fn threads_at_once_stay_within_a_budget(world: &Fixture) {
    let budgets = [budget(&world.place, "key", RATE), budget(&world.place, "key", RATE)];
    let total: usize = std::thread::scope(|scope| {
        let running: Vec<_> = budgets
            .iter()
            .flat_map(|budget| [budget; 3])
            .map(|budget| scope.spawn(|| granted(budget, at(0.0))))
            .collect();
        running.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(total, 60);
}

pub fn a_clock_behind_the_others_gives_nothing_twice(world: &Fixture) {
    let (ahead, behind) = (budget(&world.place, "key", RATE), budget(&world.place, "key", RATE));
    assert_eq!(granted(&ahead, at(30.0)), 60);
    for _ in 0..3 {
        assert_eq!(granted(&behind, at(0.0)), 0);
        assert_eq!(granted(&ahead, at(30.0)), 0);
    }
    assert_eq!(granted(&ahead, at(40.5)), 10);
}

pub fn what_one_process_learns_holds_for_all(world: &Fixture) {
    let (one, two) =
        (budget(&world.place, "key", Rate::default()), budget(&world.place, "key", Rate::default()));
    assert!(two.take(1, at(0.0)).is_none());
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    one.learn(
        &[header("x-ratelimit-limit-requests", "60"), header("x-ratelimit-remaining-requests", "2")],
        at(0.0),
    );
    assert_eq!(granted(&two, at(0.0)), 2);
    one.learn(&[header("retry-after", "30")], at(0.0));
    assert_eq!((granted(&two, at(29.0)), granted(&two, at(31.5))), (0, 1));
}

pub fn a_row_that_is_too_long_is_not_read(world: &Fixture) {
    let budget = budget(&world.place, "key", RATE);
    assert!(budget.take(1, at(0.0)).is_none());
    let spaces = " ".repeat(5_000);
    let state = r#"{"requests":{"size":60,"left":-600},"at":1800000000000}"#;
    world.change(&format!("UPDATE cuebook_rates SET state = '{state}'"));
    assert_eq!(granted(&budget, at(0.0)), 0);
    world.change(&format!("UPDATE cuebook_rates SET state = '{spaces}{state}'"));
    assert_eq!(granted(&budget, at(0.0)), 60);
    // The long text is gone.
    assert_eq!(granted(&budget, at(0.0)), 0);
}

pub fn a_damaged_row_starts_a_new_budget(world: &Fixture) {
    let budget = budget(&world.place, "key", RATE);
    assert_eq!(granted(&budget, at(0.0)), 60);
    world.change("UPDATE cuebook_rates SET state = '{\"requests\": '");
    assert_eq!(granted(&budget, at(0.0)), 60);
}
