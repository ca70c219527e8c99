//! What was promised, and whether it was kept.

use std::fmt;

use super::figure::digits;
use super::{Row, Unit};

/// A promise about a row.
#[derive(Debug, Clone)]
pub enum Target {
    /// At most so many times what a peer takes.
    AtMost {
        /// How many times.
        times: f64,
        /// The peer.
        peer: &'static str,
    },
    /// Less than a figure.
    Below(f64, Unit),
    /// At most so much more than the floor.
    AboveFloor(f64, Unit),
    /// Less than every peer that is no yardstick.
    Ahead,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::AtMost { times, peer } => write!(f, "≤ {times} × {peer}"),
            Target::Below(most, unit) => write!(f, "< {}", unit.show(*most)),
            Target::AboveFloor(most, unit) => write!(f, "≤ {} above the floor", unit.show(*most)),
            Target::Ahead => f.write_str("faster than each peer that does the same work"),
        }
    }
}

/// Whether a promise was kept, with the figure that says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It was.
    Met(String),
    /// It was not.
    Missed(String),
    /// A figure is missing, so the sum is unknown.
    Open(String),
}

impl Verdict {
    /// One word.
    pub fn word(&self) -> &'static str {
        match self {
            Verdict::Met(_) => "met",
            Verdict::Missed(_) => "missed",
            Verdict::Open(_) => "open",
        }
    }

    /// The figure, or what is missing.
    pub fn because(&self) -> &str {
        let (Verdict::Met(because) | Verdict::Missed(because) | Verdict::Open(because)) = self;
        because
    }
}

impl Target {
    /// Whether a row keeps it.
    pub fn verdict(&self, row: &Row) -> Verdict {
        let Ok(ours) = row.ours else { return Verdict::Open("ours was not measured".into()) };
        let decide = |kept: bool, because: String| {
            if kept { Verdict::Met(because) } else { Verdict::Missed(because) }
        };
        match self {
            Target::AtMost { times, peer } => {
                let found = row.peers.iter().find(|candidate| candidate.name == *peer);
                match found.map(|peer| &peer.outcome) {
                    Some(Ok(theirs)) => {
                        let ratio = ours / theirs;
                        // A ratio that misses its target does not look as if it met it.
                        let shown = digits(ratio);
                        let hidden = ratio > *times && shown.parse().is_ok_and(|shown: f64| shown <= *times);
                        decide(ratio <= *times, if hidden { format!("{ratio:.4}") } else { shown })
                    }
                    _ => Verdict::Open(format!("{peer} was not measured")),
                }
            }
            Target::Below(most, unit) => decide(ours < *most, unit.show(ours)),
            Target::AboveFloor(most, unit) => match row.floor.as_ref().map(|floor| &floor.outcome) {
                Some(Ok(floor)) => decide(ours - floor <= *most, unit.show((ours - floor).max(0.0))),
                _ => Verdict::Open("the floor was not measured".into()),
            },
            Target::Ahead => {
                let others = || row.peers.iter().filter(|peer| !peer.yardstick);
                let measured = others().filter_map(|peer| Some((peer, *peer.outcome.as_ref().ok()?)));
                let Some((nearest, theirs)) = measured.min_by(|left, right| left.1.total_cmp(&right.1))
                else {
                    return Verdict::Open("no peer was measured".into());
                };
                let because = format!("{} × {}", digits(theirs / ours), nearest.name);
                let missing: Vec<&str> =
                    others().filter(|peer| peer.outcome.is_err()).map(|peer| peer.name).collect();
                if ours < theirs && !missing.is_empty() {
                    return Verdict::Open(format!("{because}; without {}", missing.join(", ")));
                }
                decide(ours < theirs, because)
            }
        }
    }
}
