//! Why rows have changed.

use std::collections::HashSet;

use super::{ChangedRow, Counts};
use crate::sources::Sentence;

/// A sentence that only one of the outputs uses.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChangedSentence {
    /// Whether it is new; otherwise it is gone.
    pub is_new: bool,
    /// The sentence and its place.
    pub sentence: Sentence,
}

/// Why a row has changed. Rows with the same reason are one cause.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Reason {
    /// Sentences that are new or gone.
    pub sentences: Vec<ChangedSentence>,
    /// Columns of the data that have other values.
    pub columns: Vec<String>,
    /// The models that answered, if they are different.
    pub models: Option<(String, String)>,
    /// Whether one of the outputs does not say which sentences a row uses.
    pub is_unknown: bool,
    /// What remains, if there is none of these.
    pub what: &'static str,
}

impl Reason {
    pub(super) fn is_empty(&self) -> bool {
        self.sentences.is_empty() && self.columns.is_empty() && self.models.is_none() && !self.is_unknown
    }
}

/// Rows that have changed for the same reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Cause {
    /// Why.
    pub reason: Reason,
    /// How many rows.
    pub counts: Counts,
    /// The first of them.
    pub rows: Vec<ChangedRow>,
}

/// The sentences that only one of two sets has, in the order of files and lines. A sentence that only moved to another line is the same.
pub(super) fn changed(
    before: &[Sentence],
    after: &[Sentence],
    counts: impl Fn(&Sentence) -> bool,
) -> Vec<ChangedSentence> {
    let named = |sentences: &[Sentence]| -> HashSet<(String, String, String)> {
        let name = |one: &Sentence| (one.judge.clone(), one.file.clone(), one.text.clone());
        sentences.iter().map(name).collect()
    };
    let (old, new) = (named(before), named(after));
    let missing = |from: &[Sentence], other: &HashSet<(String, String, String)>, is_new: bool| {
        let is_missing =
            |one: &&Sentence| !other.contains(&(one.judge.clone(), one.file.clone(), one.text.clone()));
        let wanted = from.iter().filter(|one| counts(one)).filter(is_missing);
        wanted.map(|one| ChangedSentence { is_new, sentence: one.clone() }).collect::<Vec<_>>()
    };
    let mut changed = missing(before, &new, false);
    changed.extend(missing(after, &old, true));
    let place = |one: &ChangedSentence| {
        let Sentence { judge, file, line, .. } = &one.sentence;
        (judge.clone(), file.clone(), *line, one.is_new)
    };
    changed.sort_by_key(place);
    changed
}
