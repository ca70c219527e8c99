//! A body as words and names.

use super::scan::Step;
use super::{Missing, Template};
use crate::template::bits::{Absent, Beyond, Bit};

impl Template {
    /// What it writes. Ranges are bytes of the source.
    pub fn bits(&self, missing: Missing) -> Result<Vec<Bit>, Beyond> {
        let text = |range: &std::ops::Range<usize>| self.text[range.clone()].to_owned();
        let bit = |step: &Step| match step {
            Step::Literal(range) => Ok(Bit::Text { text: text(range), range: self.map.range(range.clone()) }),
            Step::Value { placeholder, range } => {
                let absent = match missing {
                    Missing::Error => Absent::Fails,
                    Missing::Keep => Absent::Shows(text(range)),
                };
                let name = self.placeholders[*placeholder].clone();
                Ok(Bit::Value { name, absent, escaped: false, range: self.map.range(range.clone()) })
            }
            Step::Invalid(at) => {
                let range = self.map.range(*at..at + 1);
                match missing {
                    Missing::Keep => Ok(Bit::Text { text: "$".to_owned(), range }),
                    Missing::Error => {
                        Err(Beyond { range, what: "a `$` that does not begin a name".to_owned() })
                    }
                }
            }
        };
        self.steps.iter().map(bit).collect()
    }
}
