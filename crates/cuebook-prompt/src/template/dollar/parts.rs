//! A body as words and names.

use super::scan::Step;
use super::{Missing, Template};
use crate::template::parts::{MissingValue, NotPlain, TemplatePart};

impl Template {
    /// What it writes. Ranges are bytes of the source.
    pub fn parts(&self, missing: Missing) -> Result<Vec<TemplatePart>, NotPlain> {
        let text = |range: &std::ops::Range<usize>| self.text[range.clone()].to_owned();
        let bit = |step: &Step| match step {
            Step::Literal(range) => {
                Ok(TemplatePart::Text { text: text(range), range: self.map.range(range.clone()) })
            }
            Step::Value { placeholder, range } => {
                let absent = match missing {
                    Missing::Error => MissingValue::Fails,
                    Missing::Keep => MissingValue::Shows(text(range)),
                };
                let name = self.placeholders[*placeholder].clone();
                Ok(TemplatePart::Value { name, absent, escaped: false, range: self.map.range(range.clone()) })
            }
            Step::Invalid(at) => {
                let range = self.map.range(*at..at + 1);
                match missing {
                    Missing::Keep => Ok(TemplatePart::Text { text: "$".to_owned(), range }),
                    Missing::Error => {
                        Err(NotPlain { range, what: "a `$` that does not begin a name".to_owned() })
                    }
                }
            }
        };
        self.steps.iter().map(bit).collect()
    }
}
