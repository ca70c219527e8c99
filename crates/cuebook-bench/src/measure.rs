//! Measuring things against each other: they take turns, and the best time of each counts.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How often they take turns: often enough that each finds a quiet moment on a busy machine.
const ROUNDS: usize = 800;
/// Says how often instead: a few are enough to see whether everything works, and make no figures.
const CHOSEN: &str = "CUEBOOK_BENCH_ROUNDS";
/// How long one turn lasts, about.
const TURN: Duration = Duration::from_millis(1);

/// How often contestants take turns.
pub fn rounds() -> usize {
    std::env::var(CHOSEN).ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS).max(1)
}

/// Whether there are so few rounds that the figures mean nothing.
pub fn is_rehearsal() -> bool {
    rounds() < ROUNDS / 8
}

/// A participant that takes turns: each gives the nanoseconds of one call.
pub type Turns<'a> = Box<dyn FnMut() -> Result<f64, String> + 'a>;

/// Turns of a closure.
pub fn turns<'a, T>(mut call: impl FnMut() -> T + 'a) -> Turns<'a> {
    let calls = calls_per_turn(&mut call);
    Box::new(move || Ok(turn(&mut call, calls)))
}

/// Turns of a bare copy of some bytes: the least that anything must do which gives them.
pub fn memcpy(bytes: &[u8]) -> Turns<'_> {
    let mut copy = vec![0_u8; bytes.len()];
    turns(move || {
        copy.copy_from_slice(black_box(bytes));
        black_box(&copy).len()
    })
}

/// Lets all take turns for so many rounds and keeps the best time of each. A participant that cannot begin or fails is out, with the
/// reason; the others go on.
pub fn race(rounds: usize, contestants: Vec<Result<Turns<'_>, String>>) -> Vec<Result<f64, String>> {
    let mut running: Vec<Result<(Turns<'_>, f64), String>> =
        contestants.into_iter().map(|contestant| contestant.map(|turns| (turns, f64::MAX))).collect();
    for _ in 0..rounds {
        for contestant in &mut running {
            let failed = match contestant {
                Ok((turns, best)) => match turns() {
                    Ok(time) => {
                        *best = best.min(time);
                        continue;
                    }
                    Err(why) => why,
                },
                Err(_) => continue,
            };
            *contestant = Err(failed);
        }
    }
    running.into_iter().map(|contestant| contestant.map(|(_, best)| best)).collect()
}

/// Best times of one call, in nanoseconds.
pub struct Pair {
    /// The peer's.
    pub peer: f64,
    /// Ours.
    pub ours: f64,
}

impl Pair {
    /// How many times as long ours takes.
    pub fn ratio(&self) -> f64 {
        self.ours / self.peer
    }
}

/// Lets two closures take turns and keeps the best time of each.
pub fn compare<P, O>(mut peer: impl FnMut() -> P, mut ours: impl FnMut() -> O) -> Pair {
    let peer_calls = calls_per_turn(&mut peer);
    let our_calls = calls_per_turn(&mut ours);
    let mut best = Pair { peer: f64::MAX, ours: f64::MAX };
    for _ in 0..rounds() {
        best.peer = best.peer.min(turn(&mut peer, peer_calls));
        best.ours = best.ours.min(turn(&mut ours, our_calls));
    }
    best
}

/// The same with a peer that measures its own turns: `peer` gives the nanoseconds of one call.
pub fn compare_with<O, E>(
    mut peer: impl FnMut() -> Result<f64, E>,
    mut ours: impl FnMut() -> O,
) -> Result<Pair, E> {
    let our_calls = calls_per_turn(&mut ours);
    let mut best = Pair { peer: f64::MAX, ours: f64::MAX };
    for _ in 0..rounds() {
        best.peer = best.peer.min(peer()?);
        best.ours = best.ours.min(turn(&mut ours, our_calls));
    }
    Ok(best)
}

/// The best time of one call, in nanoseconds.
pub fn time<T>(mut call: impl FnMut() -> T) -> f64 {
    let calls = calls_per_turn(&mut call);
    (0..rounds()).map(|_| turn(&mut call, calls)).fold(f64::MAX, f64::min)
}

fn calls_per_turn<T>(call: &mut impl FnMut() -> T) -> u32 {
    let mut calls = 1;
    loop {
        let started = Instant::now();
        for _ in 0..calls {
            black_box(call());
        }
        if started.elapsed() >= TURN || calls >= 1 << 24 {
            return calls;
        }
        calls *= 2;
    }
}

fn turn<T>(call: &mut impl FnMut() -> T, calls: u32) -> f64 {
    let started = Instant::now();
    for _ in 0..calls {
        black_box(call());
    }
    started.elapsed().as_nanos() as f64 / f64::from(calls)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_round_counts_and_failures_are_named() {
        let mut times = [5.0, 3.0, 4.0].into_iter();
        let mut failing = [1.0].into_iter();
        let contestants: Vec<Result<Turns<'_>, String>> = vec![
            Ok(Box::new(move || times.next().ok_or_else(|| "too often".to_owned()))),
            Err("never began".into()),
            Ok(Box::new(move || failing.next().ok_or_else(|| "broke".to_owned()))),
        ];
        let results = race(3, contestants);
        assert_eq!(results, [Ok(3.0), Err("never began".into()), Err("broke".into())]);
    }
}
