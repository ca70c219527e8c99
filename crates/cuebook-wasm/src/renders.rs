//! The latest renders, about which JavaScript may ask more. It renders again what is not kept any more.

use std::collections::VecDeque;

use cuebook::explain::Explanation;

/// Renders that are kept.
const MAX_RENDERS: usize = 16;
/// The bytes of their texts.
const MAX_RENDERS_BYTES: usize = 4 << 20;

/// The latest renders by their numbers.
#[derive(Debug, Default)]
pub struct Renders {
    latest: VecDeque<(u64, Explanation)>,
    bytes: usize,
}

impl Renders {
    /// Adds a render. The newest one is always kept.
    pub fn add(&mut self, number: u64, explanation: Explanation) {
        self.bytes += explanation.rendered().text().len();
        self.latest.push_back((number, explanation));
        while self.latest.len() > MAX_RENDERS || self.bytes > MAX_RENDERS_BYTES && self.latest.len() > 1 {
            if let Some((_, oldest)) = self.latest.pop_front() {
                self.bytes -= oldest.rendered().text().len();
            }
        }
    }

    /// A render, if it is kept.
    pub fn get(&self, number: u64) -> Option<&Explanation> {
        self.latest.iter().rev().find(|(known, _)| *known == number).map(|(_, explanation)| explanation)
    }
}
