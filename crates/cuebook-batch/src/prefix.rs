//! How much two questions have in common at their beginning, and rows in an order in which neighbours have much in common.
//!
//! A provider's cache keeps the beginning of a question for some minutes. Rows are put in order in groups, so that memory does not grow
//! with the file.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hasher as _};

use cuebook::Result;
use cuebook::chat::{Api, Message};
use cuebook_lab::ledger::{Provider, kept};
use cuebook_run::PromptModel;

use crate::rows::{Row, Rows};

/// The bytes that are compared at once.
const STEP: usize = 512;
/// The most steps: what is behind them counts as different.
const STEPS: usize = 64;
/// The most rows of a group, and about how many bytes they may have.
const ROWS: usize = 8192;
const BYTES: usize = 16 << 20;

/// The beginning of a question, as hashes of ever longer parts.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Prefix {
    hashes: Vec<u32>,
    /// All bytes of the question.
    length: usize,
}

impl Prefix {
    pub(crate) fn of(conversation: &[Message]) -> Prefix {
        let mut hasher = DefaultHasher::new();
        let (mut hashes, mut length) = (Vec::new(), 0);
        let mut rest = STEP;
        for message in conversation {
            let text = message.to_json().to_string();
            length += text.len();
            let mut bytes = text.as_bytes();
            while bytes.len() >= rest && hashes.len() < STEPS {
                let (step, more) = bytes.split_at(rest);
                hasher.write(step);
                hashes.push(hasher.finish() as u32);
                (bytes, rest) = (more, STEP);
            }
            hasher.write(bytes);
            rest = rest.saturating_sub(bytes.len()).max(1);
        }
        Prefix { hashes, length }
    }

    /// The share of this question that another one begins with too.
    fn shared(&self, other: &Prefix) -> f64 {
        let steps = self.hashes.iter().zip(&other.hashes).take_while(|(one, other)| one == other).count();
        (steps * STEP) as f64 / self.length.max(1) as f64
    }
}

/// Counts the tokens that a cache can keep while questions come one after the other.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shares {
    /// Questions of a group that is put in order before they are counted.
    group: Vec<(Prefix, u64)>,
    last: Option<Prefix>,
    pub(crate) tokens: u64,
}

impl Shares {
    /// Counts the next question.
    pub(crate) fn add(&mut self, prefix: Prefix, tokens: u64, is_sorted: bool, model: &PromptModel) {
        self.group.push((prefix, tokens));
        if !is_sorted || self.group.len() >= ROWS {
            self.finish(model);
        }
    }

    /// Counts the last group.
    pub(crate) fn finish(&mut self, model: &PromptModel) {
        self.group.sort();
        let provider = match model.chosen().profile.api {
            Api::Anthropic => Provider::Anthropic,
            Api::Gemini => Provider::Gemini,
            _ => Provider::OpenAi,
        };
        for (prefix, tokens) in self.group.drain(..) {
            let share = self.last.as_ref().map_or(0.0, |last| prefix.shared(last)).min(1.0);
            let stable = (share * tokens as f64) as usize;
            self.tokens += kept(provider, Some(&model.chosen().model), stable) as u64;
            self.last = Some(prefix);
        }
    }
}

/// Rows in the order of their beginnings, in groups.
pub(crate) struct ByPrefix<F> {
    rows: Box<dyn Rows>,
    /// What the question of a row begins with; `None` if it cannot be asked.
    prefix: F,
    group: VecDeque<Row>,
    failed: Option<cuebook::Error>,
}

impl<F: Fn(&Row) -> Option<Prefix>> ByPrefix<F> {
    pub(crate) fn new(rows: Box<dyn Rows>, prefix: F) -> ByPrefix<F> {
        ByPrefix { rows, prefix, group: VecDeque::new(), failed: None }
    }

    fn fill(&mut self) {
        let (mut group, mut bytes) = (Vec::new(), 0);
        while group.len() < ROWS && bytes < BYTES {
            match self.rows.next_row() {
                None => break,
                Some(Err(error)) => {
                    self.failed = Some(error);
                    break;
                }
                Some(Ok(row)) => {
                    bytes +=
                        row.values.values().map(|value| value.as_str().map_or(16, str::len)).sum::<usize>();
                    // A row that does not render is not asked, so its place does not matter.
                    let prefix = (self.prefix)(&row).unwrap_or_default();
                    group.push((prefix, row));
                }
            }
        }
        group.sort_by(|(one, first), (other, second)| one.cmp(other).then(first.number.cmp(&second.number)));
        self.group = group.into_iter().map(|(_, row)| row).collect();
    }
}

impl<F: Fn(&Row) -> Option<Prefix> + Send> Rows for ByPrefix<F> {
    fn next_row(&mut self) -> Option<Result<Row>> {
        if self.group.is_empty() && self.failed.is_none() {
            self.fill();
        }
        match self.group.pop_front() {
            Some(row) => Some(Ok(row)),
            None => self.failed.take().map(Err),
        }
    }

    fn columns(&self) -> Option<&[String]> {
        self.rows.columns()
    }

    fn are_texts(&self) -> bool {
        self.rows.are_texts()
    }
}

#[cfg(test)]
mod tests {
    use cuebook::chat::Role;

    use super::*;

    fn prefix(texts: &[&str]) -> Prefix {
        let messages: Vec<Message> = texts.iter().map(|text| Message::text(Role::User, *text)).collect();
        Prefix::of(&messages)
    }

    #[test]
    fn questions_share_what_they_begin_with() {
        let long = "a".repeat(2000);
        let (one, other) = (prefix(&[&long, "one"]), prefix(&[&long, "other"]));
        assert!(one.shared(&other) > 0.7 && one.shared(&other) < 1.0, "{}", one.shared(&other));
        assert_eq!(one.hashes[..3], other.hashes[..3]);
        let different = prefix(&["b", &long]);
        assert_eq!(one.shared(&different), 0.0);
        assert_eq!(prefix(&["short"]).shared(&prefix(&["short"])), 0.0);
        assert_eq!(prefix(&[&"a".repeat(1 << 20)]).hashes.len(), STEPS);
    }

    #[test]
    fn where_messages_end_does_not_move_the_steps() {
        let text = "x".repeat(300);
        let (one, other) = (prefix(&[&text, &text, &text, "a"]), prefix(&[&text, &text, &text, "b"]));
        assert!(one.hashes.len() >= 2);
        assert_eq!(one.hashes[0], other.hashes[0]);
    }
}
