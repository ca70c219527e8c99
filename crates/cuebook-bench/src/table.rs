//! The one table: what each row measures, ours, the peers', the floor, and whether the row's targets are met.
//!
//! Nothing here measures. A figure that could not be had keeps its place, with the reason why: a table never looks better
//! because a participant is missing from it.

mod figure;
mod plot;
mod print;
mod target;
#[cfg(test)]
mod tests;

use serde_json::{Value as Json, json};

pub use figure::{Unit, digits};
pub use target::{Target, Verdict};

/// A figure in the unit of its row, or why it is missing.
pub type Outcome = Result<f64, String>;

/// What one of the peers did.
#[derive(Debug, Clone)]
pub struct Peer {
    /// Its name; the column.
    pub name: &'static str,
    /// The exact version that ran.
    pub version: String,
    /// Best of all rounds.
    pub outcome: Outcome,
    /// What is different about what it does, if something is.
    pub note: String,
    /// Whether it is only a yardstick: something that does less than ours, and that we do not promise to beat.
    pub yardstick: bool,
}

impl Peer {
    /// One that does the same as ours, and is still to be measured.
    pub fn new(name: &'static str, version: impl Into<String>) -> Peer {
        let outcome = Err("it was not measured".into());
        Peer { name, version: version.into(), outcome, note: String::new(), yardstick: false }
    }

    /// Fills in what came of it.
    pub fn took(mut self, outcome: Outcome) -> Peer {
        self.outcome = outcome;
        self
    }

    /// Says what is different about it.
    pub fn note(mut self, note: impl Into<String>) -> Peer {
        self.note = note.into();
        self
    }

    /// Makes it a yardstick.
    pub fn yardstick(mut self) -> Peer {
        self.yardstick = true;
        self
    }

    /// Its name and its version.
    pub fn title(&self) -> String {
        format!("{} {}", self.name, self.version).trim_end().to_owned()
    }
}

/// The least that anything must do which does what the row says.
#[derive(Debug, Clone)]
pub struct Floor {
    /// What that is.
    pub what: String,
    /// What it takes.
    pub outcome: Outcome,
}

/// One row.
#[derive(Debug, Clone)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What is measured.
    pub what: String,
    /// What its figures are.
    pub unit: Unit,
    /// Ours.
    pub ours: Outcome,
    /// The peers that do this, also those that could not be had.
    pub peers: Vec<Peer>,
    /// The least there is to do.
    pub floor: Option<Floor>,
    /// What was promised.
    pub targets: Vec<Target>,
}

impl Row {
    /// A row without peers.
    pub fn new(name: impl Into<String>, what: impl Into<String>, ours: Outcome) -> Row {
        let (name, what) = (name.into(), what.into());
        Row { name, what, unit: Unit::Time, ours, peers: Vec::new(), floor: None, targets: Vec::new() }
    }

    /// Adds a peer.
    pub fn peer(mut self, peer: Peer) -> Row {
        self.peers.push(peer);
        self
    }

    /// Says what the least is.
    pub fn floor(mut self, what: impl Into<String>, outcome: Outcome) -> Row {
        self.floor = Some(Floor { what: what.into(), outcome });
        self
    }

    /// Adds a target.
    pub fn target(mut self, target: Target) -> Row {
        self.targets.push(target);
        self
    }

    /// Whether its targets are met, in their order.
    pub fn verdicts(&self) -> Vec<Verdict> {
        self.targets.iter().map(|target| target.verdict(self)).collect()
    }

    fn to_json(&self) -> Json {
        let figure = |outcome: &Outcome| match outcome {
            Ok(value) => json!({"value": value}),
            Err(why) => json!({"missing": why}),
        };
        let with = |mut figure: Json, more: Json| {
            if let (Some(figure), Json::Object(more)) = (figure.as_object_mut(), more) {
                figure.extend(more);
            }
            figure
        };
        let peers: Vec<Json> = self
            .peers
            .iter()
            .map(|peer| {
                let about = json!({"name": peer.name, "version": peer.version, "note": peer.note, "yardstick": peer.yardstick});
                with(about, figure(&peer.outcome))
            })
            .collect();
        let targets: Vec<Json> = self
            .targets
            .iter()
            .map(|target| {
                let verdict = target.verdict(self);
                json!({"target": target.to_string(), "verdict": verdict.word(), "because": verdict.because()})
            })
            .collect();
        json!({
            "name": self.name,
            "what": self.what,
            "unit": self.unit.name(),
            "ours": figure(&self.ours),
            "peers": peers,
            "floor": self.floor.as_ref().map(|floor| with(json!({"what": floor.what}), figure(&floor.outcome))),
            "targets": targets,
        })
    }
}

/// All rows, and how they were made.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// How they were made, as names and values.
    pub about: Vec<(&'static str, String)>,
    /// The rows.
    pub rows: Vec<Row>,
}

impl Table {
    /// All that is known, for programs. Times are nanoseconds, memory is bytes.
    pub fn to_json(&self) -> Json {
        let about: serde_json::Map<String, Json> =
            self.about.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        json!({"about": about, "rows": self.rows.iter().map(Row::to_json).collect::<Vec<_>>()})
    }

    /// A plot that reads well on light and on dark ground.
    pub fn to_svg(&self) -> String {
        plot::svg(self)
    }

    /// The names of all peers, each once, in the order in which they appear.
    fn columns(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for peer in self.rows.iter().flat_map(|row| &row.peers) {
            if !names.contains(&peer.name) {
                names.push(peer.name);
            }
        }
        names
    }
}
