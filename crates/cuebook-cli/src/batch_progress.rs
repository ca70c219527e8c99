//! How far a batch is, for the person in front of it: rows, rate, cost and the time left. A file or a pipe gets nothing of it.

use std::io::{IsTerminal, Write, stderr};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cuebook_batch::{BatchStep, Progress};
use cuebook_run::Money;

/// How often the line changes.
const PATIENCE: Duration = Duration::from_millis(300);

/// A line on stderr.
pub struct BatchProgress {
    currency: Option<String>,
    quiet: bool,
    state: Mutex<State>,
}

struct State {
    stage: Option<BatchStep>,
    began: Instant,
    /// How many rows were done when the step began.
    from: u64,
    last: Instant,
    shown: bool,
}

impl BatchProgress {
    pub fn new(currency: Option<String>, quiet: bool) -> BatchProgress {
        let now = Instant::now();
        let state = State { stage: None, began: now, from: 0, last: now, shown: false };
        BatchProgress { currency, quiet: quiet || !stderr().is_terminal(), state: Mutex::new(state) }
    }

    /// Takes the line away.
    pub fn end(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut state.shown) {
            let _ = write!(stderr(), "\r\x1b[2K");
        }
        state.stage = None;
    }
}

impl Progress for BatchProgress {
    fn step(&self, stage: BatchStep, done: u64, of: Option<u64>, spent: Money) {
        if self.quiet {
            return;
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if state.stage != Some(stage) {
            (state.stage, state.began, state.from, state.last) = (Some(stage), now, done, now);
            return;
        }
        if now.duration_since(state.last) < PATIENCE {
            return;
        }
        (state.last, state.shown) = (now, true);
        let elapsed = now.duration_since(state.began);
        let line = line(stage, done, of, (done - state.from.min(done), elapsed));
        let cost = match (&self.currency, stage) {
            (Some(currency), BatchStep::Ask) => format!("  {spent} {currency}"),
            _ => String::new(),
        };
        let _ = write!(stderr(), "\r\x1b[2K{line}{cost}");
    }
}

fn line(stage: BatchStep, done: u64, of: Option<u64>, (new, elapsed): (u64, Duration)) -> String {
    let word = match stage {
        BatchStep::Check => "checking",
        BatchStep::Ask => "asking",
        BatchStep::Write => "writing",
    };
    let rate = new as f64 / elapsed.as_secs_f64().max(0.001);
    let mut line = format!("{word} {done}");
    if let Some(of) = of {
        line.push_str(&format!("/{of}"));
    }
    line.push_str(&format!("  {rate:.1} rows/s"));
    if let Some(left) = of.map(|of| of.saturating_sub(done)).filter(|_| rate > 0.0) {
        line.push_str(&format!("  {} left", time(left as f64 / rate)));
    }
    line
}

fn time(seconds: f64) -> String {
    match seconds as u64 {
        seconds @ 0..=90 => format!("{seconds} s"),
        seconds @ 91..=5400 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_has_rate_and_time_left() {
        let shown = line(BatchStep::Ask, 150, Some(1000), (100, Duration::from_secs(10)));
        assert_eq!(shown, "asking 150/1000  10.0 rows/s  85 s left");
        assert_eq!((time(91.0), time(7200.0)), ("2 min".to_owned(), "2.0 h".to_owned()));
    }
}
