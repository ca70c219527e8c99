//! The language service: what editors ask about a library, with unsaved texts on top of the files.
//!
//! Findings are those of [`crate::check`]. Nothing here runs hooks, tools or other code of a project.

mod complete;
mod cursor;
mod hover;
mod names;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use complete::{Completion, CompletionKind};
pub use names::{Edit, Symbol, SymbolKind};

use crate::book::Book;
use crate::check;
use crate::error::{Diagnostic, Result};
use crate::files::Buffers;
use crate::library::{Found, PROMPT_FILE};
use crate::prepared::{Mode, Prepared};
use crate::source::Place;
use crate::targets::{self, place};

/// A range of bytes in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Location {
    /// The absolute path of the file.
    pub path: PathBuf,
    /// The bytes of the file.
    pub range: Range<usize>,
}

/// A library and the texts that an editor has open.
#[derive(Debug)]
pub struct Service {
    book: Arc<Book>,
    buffers: Buffers,
    /// The prompts, by the place that offers them.
    prompts: BTreeMap<String, Known>,
    /// Findings about the library as a whole.
    findings: Vec<Diagnostic>,
}

/// What is known of a prompt.
#[derive(Debug, Clone)]
pub struct Known {
    found: Found,
    /// The files that it is made from, as of the last time that it could be read.
    files: BTreeSet<PathBuf>,
    findings: Vec<Diagnostic>,
}

/// Everything that is known of a library.
#[derive(Debug, Default)]
pub struct Survey {
    prompts: Vec<Known>,
    findings: Vec<Diagnostic>,
}

impl Service {
    /// A service for a book, which takes paths from here on.
    pub fn new(book: Book) -> Service {
        let book = Arc::new(book.with_paths(true));
        Service { book, buffers: Buffers::default(), prompts: BTreeMap::new(), findings: Vec::new() }
    }

    /// The book.
    pub fn book(&self) -> &Arc<Book> {
        &self.book
    }

    /// The texts that are open.
    pub fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// Takes over what a survey found. What is open is looked at again.
    pub fn install(&mut self, survey: Survey) -> BTreeSet<PathBuf> {
        self.prompts =
            survey.prompts.into_iter().map(|known| (known.found.candidate.source.clone(), known)).collect();
        self.findings = survey.findings;
        let open: Vec<PathBuf> = self.buffers.paths().cloned().collect();
        let mut changed: BTreeSet<PathBuf> = self.with_findings();
        for path in open {
            changed.extend(self.look(&path));
        }
        changed
    }

    /// A text was opened or changed. Gives back the files whose findings may differ.
    pub fn change(&mut self, path: &Path, text: &str) -> BTreeSet<PathBuf> {
        self.buffers.set(path.to_owned(), text);
        self.look(path)
    }

    /// A text was closed, or its file changed on disk.
    pub fn close(&mut self, path: &Path) -> BTreeSet<PathBuf> {
        self.buffers.remove(path);
        self.look(path)
    }

    /// Whether a file belongs to the library or is a prompt anywhere.
    pub fn owns(&self, path: &Path) -> bool {
        let is_below = |known: &Known| known.files.contains(path) || is_own(&self.book, &known.found, path);
        path.extension().is_some_and(|end| end == "prompty") || self.prompts.values().any(is_below) || {
            let roots = self.book.library().roots().unwrap_or_default();
            roots.iter().any(|root| root.folder().is_some_and(|folder| path.starts_with(folder)))
        }
    }

    /// The findings in a file.
    pub fn findings(&self, path: &Path) -> Vec<&Diagnostic> {
        let all = self.prompts.values().flat_map(|known| &known.findings).chain(&self.findings);
        let mut found: Vec<&Diagnostic> = Vec::new();
        for finding in all.filter(|finding| self.file_of(finding).as_deref() == Some(path)) {
            let is_same = |other: &&Diagnostic| {
                (other.code, &other.message) == (finding.code, &finding.message)
                    && match (&other.place, &finding.place) {
                        (Some(one), Some(other)) => one.is_same(other),
                        (one, other) => one.is_none() && other.is_none(),
                    }
            };
            if !found.iter().any(is_same) {
                found.push(finding);
            }
        }
        found
    }

    /// The file that a finding is about.
    pub fn file_of(&self, finding: &Diagnostic) -> Option<PathBuf> {
        finding.file_name().map(|name| self.path_of(name))
    }

    /// Where a place is on disk.
    pub fn location(&self, place: &Place) -> Location {
        Location { path: self.path_of(place.file()), range: place.source().file_range(place.range()) }
    }

    /// The path of a file that findings and places name.
    fn path_of(&self, name: &str) -> PathBuf {
        self.book.library().root().join(name)
    }

    /// The text of a file: what is open, or else what is saved.
    pub fn text(&self, path: &Path) -> Option<Arc<str>> {
        match self.buffers.get(path) {
            Some(text) => Some(text.clone()),
            // A project may have a pipe or a link to a device here.
            None => self.book.library().read_named(path).ok().map(|source| source.text().into()),
        }
    }

    fn with_findings(&self) -> BTreeSet<PathBuf> {
        let all = self.prompts.values().flat_map(|known| &known.findings).chain(&self.findings);
        all.filter_map(|finding| self.file_of(finding)).collect()
    }

    /// Looks again at every prompt that a file is a part of.
    fn look(&mut self, path: &Path) -> BTreeSet<PathBuf> {
        let mut changed = BTreeSet::from([path.to_owned()]);
        if let Some(found) = self.own_prompt(path) {
            let source = found.candidate.source.clone();
            let unknown = Known { found, files: BTreeSet::new(), findings: Vec::new() };
            self.prompts.entry(source).or_insert(unknown);
        }
        for (source, found) in self.users(path) {
            let known = self.buffers.during(|| Known::of(&self.book, found, self.prompts.get(&source)));
            let before = self.prompts.get(&source).map(|known| known.findings.clone()).unwrap_or_default();
            changed.extend(before.iter().chain(&known.findings).filter_map(|finding| self.file_of(finding)));
            self.prompts.insert(source, known);
        }
        changed
    }

    /// The prompts that a file is a part of.
    fn users(&self, path: &Path) -> Vec<(String, Found)> {
        let uses = |known: &Known| known.files.contains(path) || is_own(&self.book, &known.found, path);
        let users = self.prompts.iter().filter(|(_, known)| uses(known));
        users.map(|(source, known)| (source.clone(), known.found.clone())).collect()
    }

    /// The prompt of a file that no survey has seen.
    fn own_prompt(&self, path: &Path) -> Option<Found> {
        if !self.owns(path) || !self.users(path).is_empty() {
            return None;
        }
        let is_prompty = path.extension().is_some_and(|end| end == "prompty");
        let file = path.file_name()?.to_str()?;
        let is_template = file == PROMPT_FILE || (file.starts_with("template.") && file.ends_with(".md"));
        let target = if is_template { path.parent()? } else { path };
        let is_prompt = is_prompty || is_template || file.ends_with(".sections.md");
        is_prompt.then(|| self.book.find_path(target).ok()).flatten()
    }

    /// The prompts that a file is a part of, compiled with the texts that are open.
    fn prepared(&self, path: &Path) -> Vec<Prepared> {
        let users = self.users(path);
        self.buffers.during(|| users.into_iter().flat_map(|(_, found)| prepare(&self.book, &found)).collect())
    }
}

impl Survey {
    /// Looks at every prompt of a library.
    pub fn of(book: &Book) -> Result<Survey> {
        let findings = check::check(book, &[], |_| {})?.findings;
        let mut survey = Survey { prompts: Vec::new(), findings };
        for found in targets::found_of(book, &[])? {
            survey.prompts.push(Known::of(book, found, None));
        }
        // What belongs to a prompt is looked at again with the prompt.
        let of_prompts = |finding: &Diagnostic| {
            let is_same = |other: &Diagnostic| {
                other.code == finding.code
                    && other.message == finding.message
                    && other.file_name() == finding.file_name()
            };
            survey.prompts.iter().any(|known| known.findings.iter().any(is_same))
        };
        let kept: Vec<bool> = survey.findings.iter().map(|finding| !of_prompts(finding)).collect();
        let mut kept = kept.into_iter();
        survey.findings.retain(|_| kept.next().unwrap_or(true));
        Ok(survey)
    }
}

impl Known {
    fn of(book: &Book, found: Found, before: Option<&Known>) -> Known {
        let findings = match check::check_found(book, &found) {
            Ok(report) => report.findings,
            Err(error) => error.into_diagnostics(),
        };
        let root = book.library().root();
        let mut files: BTreeSet<PathBuf> = place(&found.candidate).into_iter().collect();
        let prepared = prepare(book, &found);
        for prepared in &prepared {
            let outline = prepared.outline();
            files.extend(outline.units().iter().map(|unit| root.join(unit.source().name())));
            let variables = prepared.prompt().variables.iter();
            files.extend(variables.filter_map(|variable| Some(root.join(variable.place.as_ref()?.file()))));
        }
        if prepared.is_empty() {
            files.extend(before.iter().flat_map(|known| known.files.iter().cloned()));
        }
        Known { found, files, findings }
    }
}

/// Compiles a prompt in every language that it has a template for.
fn prepare(book: &Book, found: &Found) -> Vec<Prepared> {
    let Ok(config) = book.library().config() else { return Vec::new() };
    let languages = check::languages(found).into_iter();
    let prepared = languages.filter_map(|language| {
        book.prepare_found(found.clone(), &language, Mode::DespiteMissing, &config, None).ok()
    });
    prepared.collect()
}

/// Whether a file is one of a prompt's own: its one file, or a file in its folder.
fn is_own(book: &Book, found: &Found, path: &Path) -> bool {
    let Some(own) = place(&found.candidate) else { return false };
    let folder = if found.candidate.template_file.is_none() { Some(own.as_path()) } else { None };
    own == path
        || folder.is_some_and(|folder| folder != book.library().root() && path.parent() == Some(folder))
}

#[cfg(test)]
mod tests;
