//! Measuring two things against each other.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// How often the two take turns: often enough that each finds a quiet moment on a busy machine.
const ROUNDS: usize = 800;
/// How long one turn lasts, about.
const TURN: Duration = Duration::from_millis(1);

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
    for _ in 0..ROUNDS {
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
    for _ in 0..ROUNDS {
        best.peer = best.peer.min(peer()?);
        best.ours = best.ours.min(turn(&mut ours, our_calls));
    }
    Ok(best)
}

/// The best time of one call, in nanoseconds.
pub fn time<T>(mut call: impl FnMut() -> T) -> f64 {
    let calls = calls_per_turn(&mut call);
    (0..ROUNDS).map(|_| turn(&mut call, calls)).fold(f64::MAX, f64::min)
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
