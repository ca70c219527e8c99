//! Diff: two versions of a prompt by what they do.
//!
//! A [`Version`] is a prompt of a book; the two of a comparison can be of two books (a project now and as it was, a pack and its
//! next version) or of one. Both are rendered with the same values, at the same moment and with the same nonces, so what
//! differs is theirs. A [`Diff`] holds what their files declare (variables, model, tools, outputs, sections, permissions, limits,
//! hooks), the texts line by line with where each line came from, the roles of their messages, and their tokens.
//!
//! What keeps a version from being rendered does not keep the rest from being compared, and is reported: values that are missing
//! are stood in for ([`AssumedVariable`]), code that may not run is not run ([`NotRun`]), and where all that does not help the files
//! themselves are compared ([`Basis::Files`]). Nothing here starts a process or knows of revisions: the code that opens books at
//! other places says by [`Names`] what their files are called.

mod declared;
mod entry;
mod json;
mod names;
mod rendering;
#[cfg(test)]
mod tests;
mod version;

use std::sync::Arc;

pub use entry::{Aspect, Detail, Entry, Kind};
pub use names::Names;
pub use rendering::{AssumedVariable, Basis, NotRun};
pub use version::Version;

use crate::changes::{Change, Line, compare_with};
use crate::error::Error;
use crate::ledger::Ledger;
use crate::prompt::Traits;
use crate::variables::{Clock, FixedClock};
use rendering::Outcome;

/// What is different between two versions of a prompt.
#[derive(Debug)]
#[non_exhaustive]
pub struct Diff {
    /// The first version.
    pub before: VersionReport,
    /// The second one.
    pub after: VersionReport,
    /// What their files declare differently, by aspect and in the order of the files.
    pub entries: Vec<Entry>,
    /// What was compared as text.
    pub basis: Basis,
    /// The lines that differ, with some around them; nothing, if the texts are the same.
    pub text: Vec<Line>,
}

/// What is known of one version.
#[derive(Debug)]
pub struct VersionReport {
    /// What it was asked for as.
    pub label: String,
    /// Its id.
    pub id: String,
    /// The place that offers it.
    pub source: String,
    /// The pack that it is of.
    pub pack: Option<String>,
    /// The notation that it is written in.
    pub dialect: &'static Traits,
    /// The roles of its messages, in order; `None` if they are unknown.
    pub roles: Option<Vec<String>>,
    /// Its tokens; `None` if they could not be counted.
    pub ledger: Option<Ledger>,
    /// Required variables without a value, with what stood in for them.
    pub assumed: Vec<AssumedVariable>,
    /// Variables that its templates read, that have no value, and that can do without: they were absent.
    pub absent: Vec<String>,
    /// Code that takes part in its renders and was not run.
    pub not_run: Vec<NotRun>,
    /// Why it could not be rendered, if it could not.
    pub failure: Option<Error>,
}

/// A clock that stands at this moment: the versions of one comparison share it.
pub fn stopped_clock() -> Arc<dyn Clock> {
    Arc::new(FixedClock::stopped())
}

/// What one version is, rendered with its values. Required values that are missing have placeholders ([`VersionReport::assumed`]).
pub fn describe(version: &Version<'_>) -> VersionReport {
    reported(version, rendering::render_one(version))
}

/// What a prompt says of itself and its notation decides.
const NOTATION: [&str; 2] = ["type", "category"];

/// Compares two versions.
pub fn compare(before: &Version<'_>, after: &Version<'_>) -> Diff {
    let (one, other) = rendering::render_both(before, after);
    let mut entries = entry::compare(declared::of(before, &one, &other), declared::of(after, &other, &one));
    if before.prepared().prompt().dialect != after.prepared().prompt().dialect {
        // How something is written is no effect; what comes of it shows in the text and in the roles.
        entries.retain(|entry| {
            let is_notation = entry.aspect == Aspect::Format
                || entry.aspect == Aspect::About && NOTATION.contains(&entry.name.as_str());
            !is_notation
        });
    }
    let (basis, text) = text(before, after, &one, &other);
    let (before, after) = (reported(before, one), reported(after, other));
    if let (Some(one), Some(other)) = (&before.roles, &after.roles)
        && one != other
    {
        entries.push(entry::roles(one, other));
    }
    Diff { before, after, entries, basis, text }
}

/// The difference between the texts: of the renders, or of the files if one of the renders failed.
fn text(before: &Version<'_>, after: &Version<'_>, one: &Outcome, other: &Outcome) -> (Basis, Vec<Line>) {
    let (Ok(old), Ok(new)) = (&one.rendered, &other.rendered) else {
        let (old, new) = (before.files(), after.files());
        let lines = compare_with(&old.text, &new.text, &|at| old.origin(at), &|at| new.origin(at));
        return (Basis::Files, lines);
    };
    let lines =
        compare_with(old.text(), new.text(), &|at| before.origin(old, at), &|at| after.origin(new, at));
    let assumed = !one.assumed.is_empty() || !other.assumed.is_empty();
    (if assumed { Basis::Placeholders } else { Basis::Rendered }, lines)
}

fn reported(version: &Version<'_>, outcome: Outcome) -> VersionReport {
    let found = version.prepared().found();
    let mut reported = VersionReport {
        label: version.label().to_owned(),
        id: found.id.clone(),
        source: found.candidate.source.clone(),
        pack: found.candidate.pack_id.clone(),
        dialect: version.prepared().prompt().dialect,
        roles: None,
        ledger: None,
        assumed: outcome.assumed,
        absent: outcome.absent,
        not_run: outcome.not_run,
        failure: None,
    };
    let counted = outcome.rendered.and_then(|rendered| {
        let messages = rendered.messages()?;
        reported.roles = Some(messages.iter().map(|message| message.role.to_string()).collect());
        Ledger::of(&rendered)
    });
    match counted {
        Ok(ledger) => reported.ledger = Some(ledger),
        Err(error) => reported.failure = Some(version.rename_files(error)),
    }
    reported
}

impl Diff {
    /// Whether both versions do the same, as far as could be compared.
    pub fn is_same(&self) -> bool {
        self.entries.is_empty() && self.text.is_empty()
    }

    /// How many lines are new, and how many are gone.
    pub fn lines(&self) -> (usize, usize) {
        let count = |wanted| self.text.iter().filter(|line| line.change == wanted).count();
        (count(Change::New), count(Change::Gone))
    }

    /// The tokens of both, if they could be counted.
    pub fn totals(&self) -> Option<(usize, usize)> {
        Some((self.before.ledger.as_ref()?.total(), self.after.ledger.as_ref()?.total()))
    }

    /// What is different, in one line.
    pub fn summary(&self) -> String {
        let mut parts: Vec<String> = Vec::new();
        for aspect in Aspect::ALL {
            let count = self.entries.iter().filter(|entry| entry.aspect == aspect).count();
            if count > 0 {
                parts.push(aspect.counted(count));
            }
        }
        if !self.text.is_empty() {
            let (new, gone) = self.lines();
            let what = if self.basis == Basis::Files { "files" } else { "text" };
            parts.push(format!("{what} (+{new} -{gone})"));
        }
        if parts.is_empty() {
            return "no difference".to_owned();
        }
        if let Some((before, after)) = self.totals().filter(|(before, after)| before != after) {
            parts.push(format!("{before} → {after} tokens"));
        }
        parts.join(", ")
    }
}
