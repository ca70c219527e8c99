//! A body as words and names, unless it shows what another item says.

use super::Template;
use super::scan::{Fallback, Kind, Step};
use crate::template::bits::{Absent, Beyond, Bit};

/// The name of an input that no one has: what is behind it is text. `{input:_:{}` writes a brace that begins nothing.
pub const NOBODY: &str = "_";

impl Template {
    /// What it writes. Names of inputs that cannot be given are text, as `is_given` knows.
    pub fn bits(&self, is_given: impl Fn(&str) -> bool) -> Result<Vec<Bit>, Beyond> {
        let text = self.source.text();
        let bit = |step: &Step| {
            Ok(match step {
                Step::Include { range, .. } => {
                    return Err(Beyond { range: range.clone(), what: "an `{include:…}`".to_owned() });
                }
                Step::Literal(range) => {
                    Bit::Text { text: text[range.clone()].to_owned(), range: range.clone() }
                }
                Step::Value { kind, key, fallback, range } => {
                    let name = text[key.clone()].to_owned();
                    let otherwise = match fallback {
                        Fallback::Keep => text[range.clone()].to_owned(),
                        Fallback::Text(default) => text[default.clone()].to_owned(),
                    };
                    let range = range.clone();
                    match kind {
                        Kind::Env => Bit::Environment { name, otherwise, range },
                        Kind::Input if !is_given(&name) => Bit::Text { text: otherwise, range },
                        Kind::Input => {
                            let absent = match otherwise.is_empty() {
                                true => Absent::Nothing,
                                false => Absent::Shows(otherwise),
                            };
                            Bit::Value { name, absent, escaped: false, range }
                        }
                    }
                }
            })
        };
        self.steps.iter().map(bit).collect()
    }
}
