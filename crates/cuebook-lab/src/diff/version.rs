//! One of the two versions of a comparison: where it is found, and what is said of it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use super::names::Names;
use crate::book::Book;
use crate::changes::origin_named;
use crate::error::{Code, Error, Result};
use crate::library::{Candidate, Found, Reason};
use crate::prepared::{Mode, Prepared};
use crate::render::Rendered;
use crate::variables::{Clock, Context, Scope, Variables};

/// The digits of nonces in a comparison: the same ones in both renders.
const DIGITS: &str = "0000000000000000";

/// A version of a prompt.
#[derive(Debug)]
pub struct Version<'n> {
    label: String,
    prepared: Prepared,
    variables: Variables,
    context: Arc<Context>,
    names: Option<&'n Names>,
    runs_code: bool,
}

/// The texts of a version's files.
pub(super) struct Files {
    pub(super) text: String,
    /// Where each file begins in the text, with its name.
    begins: Vec<(usize, String)>,
    /// Where the lines of the text end: thousands of changes ask for theirs.
    ends: Vec<usize>,
}

impl Files {
    pub(super) fn origin(&self, at: usize) -> Option<String> {
        let file = self.begins.partition_point(|(start, _)| *start <= at).checked_sub(1)?;
        let (start, name) = &self.begins[file];
        let lines_before = |at: usize| self.ends.partition_point(|end| *end < at);
        Some(format!("{name}:{}", lines_before(at) - lines_before(*start) + 1))
    }
}

impl<'n> Version<'n> {
    /// Finds a version in a book: by an id, a path, the source of a candidate (as `cuebook candidates` lists them), or
    /// `PACK/ID`. Both versions of a comparison need the same clock, see [`super::stopped_clock`].
    pub fn find(book: &Book, wanted: &str, context: &Context, clock: &Arc<dyn Clock>) -> Result<Version<'n>> {
        let book = book.for_cases(Some(clock.clone()), DIGITS);
        let context = book.complete(context)?;
        let config = book.library().config()?;
        let mode = if context.strict { Mode::Strict } else { Mode::Lenient };
        let found = find(&book, wanted)?;
        let prepared = book.prepare_found(found, Scope::language(&context), mode, &config, None)?;
        let label = wanted.to_owned();
        Ok(Version { label, prepared, variables: Variables::new(), context, names: None, runs_code: true })
    }

    /// The version under another name.
    pub fn labelled(mut self, label: impl Into<String>) -> Version<'n> {
        self.label = label.into();
        self
    }

    /// The version under another name, with other names for its files.
    pub fn called(mut self, label: impl Into<String>, names: &'n Names) -> Version<'n> {
        (self.label, self.names) = (label.into(), Some(names));
        self
    }

    /// The version without its hooks and variable providers: they are not approved there.
    pub fn without_code(mut self) -> Version<'n> {
        self.runs_code = false;
        self
    }

    /// The version with values and circumstances. The language and strictness of the circumstances count when it is found.
    pub fn with(mut self, variables: Variables, context: Context) -> Version<'n> {
        let language = self.context.language.clone();
        let mut context = context;
        context.language = context.language.or(language);
        (self.variables, self.context) = (variables, Arc::new(context));
        self
    }

    /// The prompt.
    pub fn prepared(&self) -> &Prepared {
        &self.prepared
    }

    /// Whether it is part of the program, and lies in no folder.
    pub fn is_built_in(&self) -> bool {
        self.prepared.found().candidate.root.folder().is_none()
    }

    /// Whether it lies in a folder, and not somewhere else where the library looks as well.
    pub fn lies_in(&self, folder: &Path) -> bool {
        self.prepared.found().candidate.root.folder().is_some_and(|root| root.starts_with(folder))
    }

    /// What it was asked for as.
    pub fn label(&self) -> &str {
        &self.label
    }

    pub(super) fn variables(&self) -> &Variables {
        &self.variables
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }

    pub(super) fn runs_code(&self) -> bool {
        self.runs_code
    }

    /// An error about it, in the words of the caller.
    pub(super) fn rename_files(&self, error: Error) -> Error {
        match self.names {
            Some(names) => names.rename_files(error),
            None => error,
        }
    }

    /// The name of a file of it.
    pub(super) fn file(&self, name: &str) -> String {
        self.names.map_or_else(|| name.to_owned(), |names| names.file(name))
    }

    /// Where a byte of its render came from.
    pub(super) fn origin(&self, rendered: &Rendered, at: usize) -> Option<String> {
        origin_named(rendered, at, &|name| self.file(name))
    }

    /// What its files say, one behind the other.
    pub(super) fn files(&self) -> Files {
        let mut files = Files { text: String::new(), begins: Vec::new(), ends: Vec::new() };
        let mut seen: HashSet<String> = HashSet::new();
        for unit in self.prepared.outline().units() {
            // A part of a file stands for all of it.
            let source = unit.source().place(0..0).source().clone();
            if !seen.insert(source.name().to_owned()) {
                continue;
            }
            if !files.text.is_empty() && !files.text.ends_with('\n') {
                files.text.push('\n');
            }
            files.begins.push((files.text.len(), self.file(source.name())));
            files.text.push_str(source.text());
        }
        files.ends = files.text.match_indices('\n').map(|(at, _)| at).collect();
        files
    }
}

/// Finds a prompt also behind another recorded choice.
fn find(book: &Book, wanted: &str) -> Result<Found> {
    let library = book.library();
    let error = match book.find(wanted) {
        Ok(found) => return Ok(found),
        Err(error) => error,
    };
    // A path that exists and an id with two candidates are reported unchanged.
    if !matches!(error.code(), Code::PromptNotFound | Code::Unreadable | Code::InvalidId) {
        return Err(error);
    }
    let trimmed = wanted.trim_end_matches('/').trim_start_matches("./");
    let Some((place, last)) = trimmed.rsplit_once('/') else { return Err(error) };
    let id = last.split('.').next().unwrap_or(last);
    let Ok((id, candidates)) = library.resolve_id(id) else { return Err(error) };
    let is_meant =
        |candidate: &Candidate| candidate.source == trimmed || candidate.pack_id.as_deref() == Some(place);
    let mut meant: Vec<Candidate> = candidates.into_iter().filter(is_meant).collect();
    match meant.len() {
        1 => Ok(Found { id, candidate: meant.swap_remove(0), reason: Reason::Given }),
        _ => Err(error),
    }
}
