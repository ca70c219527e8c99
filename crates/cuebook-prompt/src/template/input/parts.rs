//! A body as words and names, unless it shows what another item says.

use super::Template;
use super::scan::{Fallback, Kind, Step};
use crate::template::parts::{MissingValue, NotPlain, TemplatePart};

/// The name of an input that is never given, so its default is literal text. `{input:_:{}` writes a brace that begins nothing.
pub const LITERAL_INPUT: &str = "_";

impl Template {
    /// What it writes. Names of inputs that cannot be given are text, as `is_given` knows.
    pub fn parts(&self, is_given: impl Fn(&str) -> bool) -> Result<Vec<TemplatePart>, NotPlain> {
        let text = self.source.text();
        let bit = |step: &Step| {
            Ok(match step {
                Step::Include { range, .. } => {
                    return Err(NotPlain { range: range.clone(), what: "an `{include:…}`".to_owned() });
                }
                Step::Literal(range) => {
                    TemplatePart::Text { text: text[range.clone()].to_owned(), range: range.clone() }
                }
                Step::Value { kind, key, fallback, range } => {
                    let name = text[key.clone()].to_owned();
                    let otherwise = match fallback {
                        Fallback::Keep => text[range.clone()].to_owned(),
                        Fallback::Text(default) => text[default.clone()].to_owned(),
                    };
                    let range = range.clone();
                    match kind {
                        Kind::Env => TemplatePart::Environment { name, otherwise, range },
                        Kind::Input if !is_given(&name) => TemplatePart::Text { text: otherwise, range },
                        Kind::Input => {
                            let absent = match otherwise.is_empty() {
                                true => MissingValue::Nothing,
                                false => MissingValue::Shows(otherwise),
                            };
                            TemplatePart::Value { name, absent, escaped: false, range }
                        }
                    }
                }
            })
        };
        self.steps.iter().map(bit).collect()
    }
}
