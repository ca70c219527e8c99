//! A row while it is being made: everybody takes turns, ours too.

use crate::measure::{Turns, race, rounds};
use crate::table::{Peer, Row};

/// Contestants of a row.
pub struct Race<'a> {
    row: Row,
    contestants: Vec<Result<Turns<'a>, String>>,
    floor: bool,
    rounds: usize,
}

impl<'a> Race<'a> {
    /// A race that ours takes part in.
    pub fn new(
        name: impl Into<String>,
        what: impl Into<String>,
        ours: Result<Turns<'a>, String>,
    ) -> Race<'a> {
        let row = Row::new(name, what, Err("not measured yet".into()));
        Race { row, contestants: vec![ours], floor: false, rounds: rounds() }
    }

    /// The least there is to do. It comes before the peers.
    pub fn floor(mut self, what: &str, turns: Result<Turns<'a>, String>) -> Race<'a> {
        self.row = self.row.floor(what, Err("not measured yet".into()));
        self.contestants.insert(1, turns);
        self.floor = true;
        self
    }

    /// Adds a peer; what it did is filled in later.
    pub fn peer(mut self, peer: Peer, turns: Result<Turns<'a>, String>) -> Race<'a> {
        self.row = self.row.peer(peer);
        self.contestants.push(turns);
        self
    }

    /// Takes so many rounds instead of the usual number, and says so.
    pub fn rounds(mut self, rounds: usize) -> Race<'a> {
        self.rounds = rounds.max(1);
        let times = if self.rounds == 1 { "once".to_owned() } else { format!("best of {}", self.rounds) };
        self.row.what = format!("{} ({times})", self.row.what);
        self
    }

    /// Lets them run. What is missing has its reason.
    pub fn run(self) -> Row {
        let mut row = self.row;
        say(&row.name);
        let mut outcomes = race(self.rounds, self.contestants).into_iter();
        if let Some(ours) = outcomes.next() {
            row.ours = ours;
        }
        if self.floor
            && let Some((floor, outcome)) = row.floor.as_mut().zip(outcomes.next())
        {
            floor.outcome = outcome;
        }
        for (peer, outcome) in row.peers.iter_mut().zip(outcomes) {
            peer.outcome = outcome;
        }
        row
    }
}

/// Reports what is being measured.
pub fn say(what: &str) {
    eprintln!("… {what}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_goes_to_whom_it_belongs() {
        let always = |time: f64| -> Result<Turns<'static>, String> { Ok(Box::new(move || Ok(time))) };
        let peer = |name| Peer::new(name, "1");
        let row = Race::new("row", "what", always(1.0))
            .peer(peer("a"), always(2.0))
            .floor("least", always(0.5))
            .peer(peer("b"), Err("gone".into()))
            .peer(peer("c"), always(3.0))
            .rounds(2)
            .run();
        assert_eq!(row.what, "what (best of 2)");
        assert_eq!(row.ours, Ok(1.0));
        assert_eq!(row.floor.map(|floor| floor.outcome), Some(Ok(0.5)));
        let outcomes: Vec<_> = row.peers.into_iter().map(|peer| peer.outcome).collect();
        assert_eq!(outcomes, [Ok(2.0), Err("gone".into()), Ok(3.0)]);
    }
}
