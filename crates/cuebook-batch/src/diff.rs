//! What is different between two outputs: which rows, and which sentence of which file caused it.

mod cause;
mod show;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Map, Value as Json};

use crate::rows::{self, Rows};
use crate::sources::{self, Sentence};
pub use cause::{Cause, ChangedSentence, Reason};

/// The most causes that are kept apart; rows with others are counted together.
const MAX_CAUSES: usize = 1000;

/// What is to be compared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiffOptions {
    /// The column that both have for the same row; `None` for the number of the row.
    pub key: Option<String>,
    /// Columns with verdicts; none for the outputs of judges.
    pub verdicts: Vec<String>,
    /// What stands before the names of the columns that `cuebook batch` added.
    pub prefix: String,
    /// How many rows of each cause are kept whole.
    pub shown: usize,
}

/// What a row is in numbers: how many rows have another text, answer or verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Rows.
    pub rows: u64,
    /// Rows whose prompt renders to another text.
    pub texts: u64,
    /// Rows with another answer or error.
    pub answers: u64,
    /// Rows with another verdict.
    pub verdicts: u64,
}

/// A column with two values.
#[derive(Debug, Clone, PartialEq)]
pub struct Changed {
    /// The column.
    pub column: String,
    /// Its value in the first output.
    pub before: Json,
    /// Its value in the second one.
    pub after: Json,
}

/// A row that has changed.
#[derive(Debug, Clone, PartialEq)]
pub struct ChangedRow {
    /// Its number or key.
    pub row: Json,
    /// Answers and verdicts that are different.
    pub changes: Vec<Changed>,
}

/// What is different between two outputs.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputDiff {
    /// The first output.
    pub before: String,
    /// The second one.
    pub after: String,
    /// Rows that both have.
    pub rows: u64,
    /// Rows that only the first one has, and only the second one.
    pub only: (u64, u64),
    /// The rows that have changed.
    pub changed: Counts,
    /// Why, the cause of most rows first.
    pub causes: Vec<Cause>,
}

type Line = Map<String, Json>;

/// One of the two outputs, while it is read.
struct OutputReader {
    path: PathBuf,
    rows: Box<dyn Rows>,
    is_over: bool,
    /// Rows whose other half did not come yet, by their keys.
    waiting: HashMap<String, Line>,
}

impl OutputReader {
    fn open(path: &Path) -> Result<OutputReader> {
        let rows = rows::open(path)?;
        Ok(OutputReader { path: path.to_owned(), rows, is_over: false, waiting: HashMap::new() })
    }

    fn next(&mut self, key: &str) -> Result<Option<(String, Line)>> {
        let Some(row) = self.rows.next_row().transpose()? else {
            self.is_over = true;
            return Ok(None);
        };
        if let Some(fault) = row.fault {
            return Err(fault);
        }
        match row.values.get(key) {
            Some(value) => Ok(Some((value.to_string(), row.values))),
            None => {
                let columns = row.values.keys().map(String::as_str);
                let hint = did_you_mean(&nearest(key, columns)).unwrap_or_else(|| {
                    "name a column of both outputs with --key, or their --prefix".to_owned()
                });
                let message = format!("row {} has no column `{key}`", row.number);
                let diagnostic = Diagnostic::new(Code::BadColumns, message).file(self.path.to_string_lossy());
                Err(Error::new(ErrorKind::Usage, diagnostic.hint(hint)))
            }
        }
    }

    /// Keeps a row until its other half comes.
    fn wait(&mut self, key: String, line: Line) -> Result<()> {
        match self.waiting.insert(key.clone(), line) {
            None => Ok(()),
            Some(_) => {
                let message = format!("two rows have the key {key}");
                let diagnostic = Diagnostic::new(Code::BadColumns, message).file(self.path.to_string_lossy());
                let hint = "name a column that has another value in each row, or leave out --key to compare by row number";
                Err(Error::new(ErrorKind::Usage, diagnostic.hint(hint)))
            }
        }
    }
}

/// Compares two outputs. Memory holds only rows whose order differs, and those of one output alone.
///
/// # Errors
///
/// That one of them cannot be read, or lacks a column that is wanted.
pub fn diff(before: &Path, after: &Path, wanted: &DiffOptions) -> Result<OutputDiff> {
    let (mut one, mut other) = (OutputReader::open(before)?, OutputReader::open(after)?);
    let mut known = sources::read(&sources::path_of(before))?;
    known.extend(sources::read(&sources::path_of(after))?);
    let own = format!("{}row", wanted.prefix);
    let key = wanted.key.as_deref().unwrap_or(&own);
    let mut comparison = Comparison::new(wanted, known);
    let mut rows = 0;
    while !(one.is_over && other.is_over) {
        for is_first in [true, false] {
            let (this, that) = if is_first { (&mut one, &mut other) } else { (&mut other, &mut one) };
            if this.is_over {
                continue;
            }
            let Some((name, line)) = this.next(key)? else { continue };
            match that.waiting.remove(&name) {
                Some(twin) => {
                    rows += 1;
                    let (old, new) = if is_first { (&line, &twin) } else { (&twin, &line) };
                    comparison.row(key, old, new);
                }
                None => this.wait(name, line)?,
            }
        }
    }
    comparison.check_verdicts(after)?;
    let name = |path: &Path| path.to_string_lossy().into_owned();
    let only = (one.waiting.len() as u64, other.waiting.len() as u64);
    let (changed, mut causes) = (comparison.changed, comparison.causes);
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.counts.rows));
    Ok(OutputDiff { before: name(before), after: name(after), rows, only, changed, causes })
}

/// Compares rows.
struct Comparison<'a> {
    wanted: &'a DiffOptions,
    /// The sentences of each hash.
    known: HashMap<String, Vec<Sentence>>,
    changed: Counts,
    causes: Vec<Cause>,
    places: HashMap<Reason, usize>,
    /// Columns that a row had.
    columns: HashSet<String>,
}

/// What a column is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Text,
    Answer,
    Verdict,
    Input,
    Other,
}

impl<'a> Comparison<'a> {
    fn new(wanted: &'a DiffOptions, known: HashMap<String, Vec<Sentence>>) -> Comparison<'a> {
        let changed = Counts::default();
        Comparison {
            wanted,
            known,
            changed,
            causes: Vec::new(),
            places: HashMap::new(),
            columns: HashSet::new(),
        }
    }

    fn own<'l>(&self, line: &'l Line, name: &str) -> &'l Json {
        line.get(&format!("{}{name}", self.wanted.prefix)).unwrap_or(&Json::Null)
    }

    fn kind(&self, column: &str, lines: [&Line; 2]) -> Column {
        if self.wanted.verdicts.iter().any(|verdict| verdict == column) {
            return Column::Verdict;
        }
        let Some(plain) = column.strip_prefix(&self.wanted.prefix) else { return Column::Input };
        match plain {
            "text" | "messages" | "wire" | "render_hash" => return Column::Text,
            "answer" | "error" => return Column::Answer,
            "row" | "sources" | "model" | "finish" | "input_tokens" | "output_tokens" | "cached_tokens"
            | "cost" | "seconds" | "error_message" => return Column::Other,
            _ if plain.starts_with("answer_") => return Column::Answer,
            _ => {}
        }
        // A judge has columns for its cost and its errors.
        let has =
            |name: &str| lines.iter().any(|line| line.contains_key(&format!("{}{name}", self.wanted.prefix)));
        let is_judge = |name: &str| has(&format!("{name}_cost")) && has(&format!("{name}_error"));
        let judge =
            plain.match_indices('_').map(|(at, _)| &plain[..at]).chain([plain]).find(|name| is_judge(name));
        match judge {
            Some(judge) if plain == format!("{judge}_cost") => Column::Other,
            Some(_) if self.wanted.verdicts.is_empty() => Column::Verdict,
            Some(_) => Column::Other,
            None => Column::Input,
        }
    }

    fn row(&mut self, key: &str, before: &Line, after: &Line) {
        let mut names: Vec<&String> = before.keys().collect();
        names.extend(after.keys().filter(|name| !before.contains_key(*name)));
        let mut counts = Counts { rows: 1, ..Counts::default() };
        let (mut inputs, mut changes) = (Vec::new(), Vec::new());
        for name in names {
            if !self.columns.contains(name) {
                self.columns.insert(name.clone());
            }
            let (old, new) =
                (before.get(name).unwrap_or(&Json::Null), after.get(name).unwrap_or(&Json::Null));
            // A column of only one output says nothing about the rows, unless it is what they are compared by.
            let in_both = before.contains_key(name) && after.contains_key(name);
            if old == new || !in_both {
                continue;
            }
            match self.kind(name, [before, after]) {
                Column::Text => counts.texts = 1,
                Column::Answer => counts.answers = 1,
                Column::Verdict => counts.verdicts = 1,
                Column::Input => inputs.push(name.clone()),
                Column::Other => {}
            }
            if matches!(self.kind(name, [before, after]), Column::Answer | Column::Verdict) {
                changes.push(Changed { column: name.clone(), before: old.clone(), after: new.clone() });
            }
        }
        if counts.texts + counts.answers + counts.verdicts == 0 {
            return;
        }
        let reason = self.reason(&counts, inputs, before, after);
        let row = ChangedRow { row: before[key].clone(), changes };
        self.add(reason, counts, row);
    }

    fn reason(&self, counts: &Counts, inputs: Vec<String>, before: &Line, after: &Line) -> Reason {
        let sentences =
            |line: &Line| self.own(line, "sources").as_str().and_then(|hash| self.known.get(hash));
        let (old, new) = (sentences(before), sentences(after));
        let is_input = counts.texts + counts.verdicts > 0;
        let mut reason = Reason { columns: if is_input { inputs } else { Vec::new() }, ..Reason::default() };
        if let (Some(old), Some(new)) = (old, new) {
            // The prompt explains a text, and the prompt of a judge only its verdicts.
            let counts_here = |sentence: &Sentence| match sentence.judge.is_empty() {
                true => counts.texts > 0,
                false => counts.verdicts > 0,
            };
            reason.sentences = cause::changed(old, new, counts_here);
        }
        reason.is_unknown = counts.texts > 0 && (old.is_none() || new.is_none());
        let (model, other) = (self.own(before, "model"), self.own(after, "model"));
        if model != other && !model.is_null() && !other.is_null() {
            let name = |model: &Json| model.as_str().unwrap_or_default().to_owned();
            reason.models = Some((name(model), name(other)));
        }
        if reason.is_empty() {
            reason.what = match (counts.texts > 0, counts.answers > 0) {
                (true, _) => "values that are not in the row: defaults, --var, hooks or the time",
                (_, true) => "the prompt is the same: the model or its settings answered differently",
                _ => "the answer is the same: the judge answered differently",
            };
        }
        reason
    }

    fn add(&mut self, reason: Reason, counts: Counts, row: ChangedRow) {
        self.changed.add(&counts);
        let reason = match self.places.contains_key(&reason) || self.causes.len() < MAX_CAUSES {
            true => reason,
            false => Reason { what: "other causes", ..Reason::default() },
        };
        let place = *self.places.entry(reason.clone()).or_insert_with(|| {
            self.causes.push(Cause { reason, counts: Counts::default(), rows: Vec::new() });
            self.causes.len() - 1
        });
        let cause = &mut self.causes[place];
        cause.counts.add(&counts);
        if cause.rows.len() < self.wanted.shown {
            cause.rows.push(row);
        }
    }

    fn check_verdicts(&self, after: &Path) -> Result<()> {
        let Some(missing) = self.wanted.verdicts.iter().find(|name| !self.columns.contains(*name)) else {
            return Ok(());
        };
        if self.columns.is_empty() {
            return Ok(());
        }
        let message = format!("the outputs have no column `{missing}`");
        let near = did_you_mean(&nearest(missing, self.columns.iter().map(String::as_str)));
        let diagnostic =
            Diagnostic::new(Code::BadColumns, message).file(after.to_string_lossy()).hint_opt(near);
        Err(Error::new(ErrorKind::Usage, diagnostic))
    }
}

impl Counts {
    fn add(&mut self, other: &Counts) {
        self.rows += other.rows;
        self.texts += other.texts;
        self.answers += other.answers;
        self.verdicts += other.verdicts;
    }
}

impl OutputDiff {
    /// Whether all rows of both are the same.
    pub fn is_same(&self) -> bool {
        self.changed.rows == 0 && self.only == (0, 0)
    }
}

#[cfg(test)]
mod tests;
