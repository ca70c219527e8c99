//! What became of a prompt on its way into another notation: everything that was lost or is different now, with its place.

use std::collections::{BTreeSet, HashSet};

use serde_json::{Value as Json, json};

use super::reported_differences::ReportedDifference;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity};
use crate::source::Place;

/// What became of something that a prompt says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntryKind {
    /// The target cannot say it.
    Lost,
    /// The target says it in another way, which makes a difference.
    Changed,
    /// It makes no difference to what is said, and is good to know.
    Note,
}

impl EntryKind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            EntryKind::Lost => "lost",
            EntryKind::Changed => "changed",
            EntryKind::Note => "note",
        }
    }
}

/// One thing that became of a prompt.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What became of it.
    pub fate: EntryKind,
    /// What it is about, in a word: `hooks`, `model`, `text` and so on.
    pub about: &'static str,
    /// What happened, where, and what to do.
    pub finding: Diagnostic,
    /// What a comparison has to leave out because of it, if the rendered text can differ.
    pub(super) reported_differences: Option<ReportedDifference>,
}

/// Everything that became of a prompt on its way.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// One by one, in the order in which they were found.
    pub entries: Vec<Entry>,
    /// The messages that there are, with their places.
    known: HashSet<(String, Option<(usize, usize)>)>,
}

impl Report {
    /// Whether nothing was lost and nothing changed.
    pub fn is_lossless(&self) -> bool {
        self.losses().next().is_none()
    }

    /// What was lost or changed.
    pub fn losses(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.fate != EntryKind::Note)
    }

    /// An error if anything was lost or changed: everything that was.
    pub fn strictly(&self, prompt: &str) -> Result<()> {
        let findings: Vec<Diagnostic> =
            self.losses().map(|entry| entry.finding.clone().severity(Severity::Error)).collect();
        match findings.is_empty() {
            true => Ok(()),
            false => Err(Error::all(ErrorKind::PromptRead, findings)
                .with("prompt_id", prompt)
                .with("report", self.to_json())),
        }
    }

    /// The report as scripts see it.
    pub fn to_json(&self) -> Json {
        self.entries.iter().map(Entry::to_json).collect()
    }

    /// What a comparison has to leave out because it can differ, each once.
    pub(super) fn reported_differences(&self) -> BTreeSet<ReportedDifference> {
        self.entries.iter().filter_map(|entry| entry.reported_differences.clone()).collect()
    }

    pub(super) fn lost(&mut self, about: &'static str, message: impl Into<String>) -> Adding<'_> {
        self.add(EntryKind::Lost, about, message)
    }

    pub(super) fn changed(&mut self, about: &'static str, message: impl Into<String>) -> Adding<'_> {
        self.add(EntryKind::Changed, about, message)
    }

    pub(super) fn note(&mut self, about: &'static str, message: impl Into<String>) -> Adding<'_> {
        self.add(EntryKind::Note, about, message)
    }

    fn add(&mut self, fate: EntryKind, about: &'static str, message: impl Into<String>) -> Adding<'_> {
        let severity = if fate == EntryKind::Note { Severity::Note } else { Severity::Warning };
        let finding = Diagnostic::new(Code::NotCarriedOver, message).severity(severity);
        Adding { report: self, entry: Entry { fate, about, finding, reported_differences: None } }
    }
}

/// An entry that is being written. It is in the report when this goes.
pub(super) struct Adding<'r> {
    report: &'r mut Report,
    entry: Entry,
}

impl Adding<'_> {
    pub(super) fn at(mut self, place: Option<Place>) -> Self {
        if let Some(place) = place {
            self.entry.finding.place = Some(place);
        }
        self
    }

    pub(super) fn hint(mut self, hint: impl Into<Hint>) -> Self {
        self.entry.finding.hint = Some(hint.into());
        self
    }

    /// The rendered text can differ because of it, and is compared without that.
    pub(super) fn spares(mut self, reported_differences: ReportedDifference) -> Self {
        self.entry.reported_differences = Some(reported_differences);
        self
    }
}

impl Drop for Adding<'_> {
    fn drop(&mut self) {
        let finding = &self.entry.finding;
        let range = finding.place.as_ref().map(|place| (place.range().start, place.range().end));
        if self.report.known.insert((finding.message.clone(), range)) {
            self.report.entries.push(self.entry.clone());
        }
    }
}

impl Entry {
    fn to_json(&self) -> Json {
        let mut object = self.finding.to_json();
        object.insert("fate".into(), json!(self.fate.as_str()));
        object.insert("about".into(), json!(self.about));
        Json::Object(object)
    }
}
