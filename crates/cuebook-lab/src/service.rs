//! The language service: what editors ask about a library, with unsaved texts on top of the files.
//!
//! It keeps what [`crate::check`] found of each prompt, and looks again at those that a changed text is a part of: [`Service::change`]
//! notes a change, and [`Service::work`] looks, a few prompts at a time, at the one that the author edits first. What it tells is what
//! `check` tells. Nothing here runs hooks, tools or other code of a project, and nothing is written.

mod actions;
mod complete;
mod cursor;
mod declare;
mod definition;
mod folding;
mod format;
mod front;
mod handlebars;
mod hints;
mod hover;
mod index;
mod layout;
mod moves;
mod names;
mod preview;
mod quick_fixes;
mod references;
mod rename;
mod signature;
mod spots;
mod symbols;
mod tokens;
mod words;

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

pub use actions::{Action, ActionKind};
pub use complete::{Completion, CompletionKind};
pub use folding::Fold;
pub use hints::{Hint, Lens, LensKind};
pub use preview::{Part, Preview, with_placeholders};
pub use rename::{Edit, Renaming};
pub use signature::Signature;
pub use symbols::{Symbol, SymbolKind};
pub use tokens::{Token, TokenKind};

use self::index::{Index, Source};
use crate::book::Book;
use crate::check::{self, Basis};
use crate::error::{Diagnostic, Error};
use crate::files::Buffers;
use crate::items::ItemType;
use crate::library::{CONFIG_FILE, Found, PROMPT_FILE, RootKind, TEMPLATE_FILE};
use crate::prepared::Prepared;
use crate::source::Place;
use crate::targets::place;

/// A rule that looks at more than prompts, such as files of providers.
pub type MoreFindings = Arc<dyn Fn(&Book) -> Vec<Diagnostic> + Send + Sync>;

/// As many of the prompts that share a file are asked about what stands in it.
const FEW: usize = 8;
/// As many compiled prompts are kept until the next change.
const KEPT: usize = 64;

/// A range of bytes in a file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The absolute path of the file.
    pub path: PathBuf,
    /// The first byte of the file that belongs to it.
    pub start: usize,
    /// The byte behind the last one.
    pub end: usize,
}

impl Location {
    fn new(path: impl Into<PathBuf>, range: Range<usize>) -> Location {
        Location { path: path.into(), start: range.start, end: range.end }
    }

    /// The bytes of the file.
    pub fn range(&self) -> Range<usize> {
        self.start..self.end
    }

    /// Whether a byte of a file is in it or directly behind it.
    fn touches(&self, path: &Path, offset: usize) -> bool {
        self.path == path && (self.start..=self.end).contains(&offset)
    }
}

/// A library and the texts that an editor has open.
pub struct Service {
    book: Arc<Book>,
    buffers: Buffers,
    basis: Option<Basis>,
    index: Index,
    /// Findings about the library as a whole.
    findings: Vec<Diagnostic>,
    /// Prompts to look at again, those first whose own file was changed.
    waiting: VecDeque<Source>,
    /// The same, to find one quickly.
    is_waiting: HashSet<Source>,
    /// Changed files of which nothing has been reported since.
    changed: BTreeSet<PathBuf>,
    /// Whether files came or went, or settings changed, so that the whole library must be looked at.
    is_stale: bool,
    /// Whether something keeps prompts from being looked at, such as a wrong key in the settings.
    is_blocked: bool,
    /// Compiled prompts, until the next change.
    compiled: Mutex<HashMap<Source, Arc<Vec<Prepared>>>>,
    /// The last state of a prompt that could be compiled, of those that are open.
    last: Mutex<HashMap<Source, Arc<Vec<Prepared>>>>,
}

impl fmt::Debug for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Service").field("root", &self.book.library().root()).finish_non_exhaustive()
    }
}

/// Everything that is known of a library, or what keeps it from being looked at. It is made on another thread, because it takes long.
#[derive(Debug)]
pub struct Survey(std::result::Result<check::CheckedLibrary, Vec<Diagnostic>>);

impl Survey {
    /// Looks at every prompt of a library, with the unsaved texts.
    pub fn of(book: &Book, buffers: &Buffers, more: &[MoreFindings]) -> Survey {
        let examine = || {
            let mut everything = check::examine(book, &[], |_| {}).map_err(Error::into_diagnostics)?;
            everything.findings.extend(more.iter().flat_map(|rule| rule(book)));
            Ok(everything)
        };
        Survey(buffers.during(examine))
    }
}

impl Service {
    /// A service for a book, which takes paths from here on.
    pub fn new(book: Book) -> Service {
        Service {
            book: Arc::new(book.with_paths(true)),
            buffers: Buffers::default(),
            basis: None,
            index: Index::default(),
            findings: Vec::new(),
            waiting: VecDeque::new(),
            is_waiting: HashSet::new(),
            changed: BTreeSet::new(),
            is_stale: false,
            is_blocked: false,
            compiled: Mutex::default(),
            last: Mutex::default(),
        }
    }

    /// The book.
    pub fn book(&self) -> &Arc<Book> {
        &self.book
    }

    /// The texts that are open.
    pub fn buffers(&self) -> &Buffers {
        &self.buffers
    }

    /// Takes over what a survey found; what has changed since is looked at again. Returns the files whose findings may differ.
    pub fn install(&mut self, survey: Survey) -> BTreeSet<PathBuf> {
        let mut changed = self.files_with_findings();
        let root = self.book.library().root().to_owned();
        self.is_blocked = survey.0.is_err();
        match survey.0 {
            Ok(check::CheckedLibrary { basis, prompts, findings }) => {
                self.basis = Some(basis);
                self.index = Index::default();
                for one in prompts {
                    self.index.set(placed(&self.book, one), |finding| file_of(&root, finding));
                }
                self.findings = findings;
            }
            // What was known before still leads from name to name.
            Err(findings) => {
                self.index.forget_findings();
                self.findings = findings;
            }
        }
        self.forget_compiled();
        changed.extend(self.files_with_findings());
        let open: Vec<PathBuf> = self.buffers.paths().cloned().collect();
        open.iter().for_each(|path| self.look_later(path));
        changed
    }

    /// A text was opened or changed.
    pub fn change(&mut self, path: &Path, text: impl Into<Arc<str>>) {
        self.buffers.set(path.to_owned(), text);
        self.touched(path);
    }

    /// A text was closed, or its file changed on disk.
    pub fn close(&mut self, path: &Path) {
        self.buffers.remove(path);
        let sources: Vec<Source> = self.index.users(path).cloned().collect();
        let mut last = lock(&self.last);
        sources.iter().for_each(|source| drop(last.remove(source)));
        drop(last);
        // A prompt that was never saved is gone.
        self.is_stale |= !path.exists() && self.concerns(path);
        self.touched(path);
    }

    /// A file was saved, or appeared or went. If it is none that a prompt is known to be made from, the whole library is looked at.
    pub fn saved(&mut self, path: &Path) {
        let is_known = self.index.uses(path) && path.exists();
        if !is_known && self.concerns(path) {
            self.is_stale = true;
        }
        if is_known && self.buffers.get(path).is_none() {
            self.touched(path);
        }
    }

    /// Whether the whole library must be looked at again. Asking takes the wish back.
    pub fn take_stale(&mut self) -> bool {
        std::mem::take(&mut self.is_stale)
    }

    fn touched(&mut self, path: &Path) {
        self.is_stale |= self.is_setting(path);
        self.forget_compiled();
        self.look_later(path);
    }

    fn forget_compiled(&mut self) {
        self.compiled.get_mut().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// Notes that every prompt is to be looked at that a file is a part of.
    fn look_later(&mut self, path: &Path) {
        if let Some(found) = self.own_prompt(path) {
            let examined = check::CheckedPrompt {
                found,
                files: BTreeSet::from([path.to_owned()]),
                findings: Vec::new(),
            };
            let root = self.book.library().root().to_owned();
            self.index.set(examined, |finding| file_of(&root, finding));
        }
        let users: Vec<Source> = self.index.users(path).cloned().collect();
        for source in users {
            let known = self.index.get(&source);
            let is_own = known.is_some_and(|one| is_own(&self.book, &one.found, path));
            if is_own || self.is_waiting.insert(source.clone()) {
                match is_own {
                    true => self.waiting.push_front(source),
                    false => self.waiting.push_back(source),
                }
            }
        }
        self.changed.insert(path.to_owned());
    }

    /// Looks again at up to so many prompts, those first whose own file was changed. Returns the files whose findings may differ;
    /// `None` if there is nothing left to do.
    pub fn work(&mut self, most: usize) -> Option<BTreeSet<PathBuf>> {
        if self.waiting.is_empty() && self.changed.is_empty() {
            return None;
        }
        let mut files = std::mem::take(&mut self.changed);
        if self.is_blocked {
            // The next survey looks at everything.
            self.waiting.clear();
            self.is_waiting.clear();
            return Some(files);
        }
        let basis = self.basis();
        let root = self.book.library().root().to_owned();
        for path in &files {
            let found =
                basis.as_ref().and_then(|basis| self.buffers.during(|| basis.other_file(&self.book, path)));
            if let Some(found) = found {
                self.findings.retain(|finding| file_of(&root, finding) != *path);
                self.findings.extend(found);
            }
        }
        for _ in 0..most {
            let Some(source) = self.waiting.pop_front() else { break };
            self.is_waiting.remove(&source);
            let Some(found) = self.index.get(&source).map(|one| one.found.clone()) else { continue };
            let (Some(basis), book) = (&basis, &self.book) else { continue };
            let mut one = self.buffers.during(|| basis.examine(book, &found));
            // What cannot be read at all is still made from the same files.
            if one.files.len() <= 1
                && let Some(before) = self.index.get(&source)
            {
                one.files.extend(before.files.iter().cloned());
            }
            let one = placed(&self.book, one);
            let has_circle = one.findings.iter().any(check::is_circle);
            files.extend(self.index.set(one, |finding| file_of(&root, finding)));
            if has_circle {
                files.extend(self.index.circles().map(|finding| file_of(&root, finding)));
            }
        }
        Some(files)
    }

    /// How many prompts wait to be looked at.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// What prompts are looked at with: what a survey gave, and before there is one, little.
    fn basis(&mut self) -> Option<Basis> {
        if self.basis.is_none() {
            self.basis = Basis::of_prompts(&self.book).ok();
        }
        self.basis.clone()
    }

    /// Whether a file belongs to the library or is a prompt anywhere.
    pub fn owns(&self, path: &Path) -> bool {
        let end = path.extension();
        end.is_some_and(|end| end == "prompty")
            || self.index.uses(path)
            || self.is_in_library(path)
            || self.is_item(path)
    }

    /// Whether a file is an item of the project or of the user.
    fn is_item(&self, path: &Path) -> bool {
        let spaces = self.book.library().spaces();
        let kinds = [ItemType::Directive, ItemType::Tool, ItemType::Knowledge];
        kinds.into_iter().any(|kind| spaces.at_path(kind, path).is_some())
    }

    fn is_in_library(&self, path: &Path) -> bool {
        let is_below = |root: &Arc<crate::library::Root>| {
            root.kind != RootKind::Builtin && root.folder().is_some_and(|folder| path.starts_with(folder))
        };
        match self.basis.as_ref().and_then(Basis::survey) {
            Some(survey) => survey.roots().iter().any(is_below),
            None => self.book.library().roots().unwrap_or_default().iter().any(is_below),
        }
    }

    /// Whether a file can change what the library offers.
    fn concerns(&self, path: &Path) -> bool {
        let is_below = is_data(path) && path.starts_with(self.book.library().root());
        self.owns(path) || is_below || self.is_in_space(path)
    }

    /// Whether a file has settings, the manifest of a pack, a vocabulary or a provider. Every prompt may depend on it.
    fn is_setting(&self, path: &Path) -> bool {
        let root = self.book.library().root();
        let is_own = || path == root.join(CONFIG_FILE) || path.starts_with(root.join("user_data"));
        is_data(path) && (is_own() || self.is_in_space(path))
    }

    fn is_in_space(&self, path: &Path) -> bool {
        let spaces = self.book.library().spaces();
        spaces.all().iter().filter_map(|space| space.folder()).any(|folder| path.starts_with(folder))
    }

    /// The findings in a file, as `check` tells them.
    pub fn findings(&self, path: &Path) -> Vec<Diagnostic> {
        let root = self.book.library().root();
        let is_here = |finding: &&Diagnostic| file_of(root, finding) == path;
        let of_library = self.findings.iter().filter(is_here);
        let here = self.index.findings(path).filter(is_here).chain(of_library);
        let (circles, others): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
            here.partition(|finding| check::is_circle(finding));
        let mut findings: Vec<Diagnostic> = others.into_iter().cloned().collect();
        if !circles.is_empty() {
            // A circle is reported once, from whichever prompt it is found.
            let reported = check::merged(self.index.circles().cloned().collect());
            findings.extend(reported.into_iter().filter(|finding| is_here(&finding)));
        }
        check::merged(findings)
    }

    /// Every file that has findings.
    pub fn files_with_findings(&self) -> BTreeSet<PathBuf> {
        let root = self.book.library().root();
        let of_library = self.findings.iter().map(|finding| file_of(root, finding));
        self.index.files_with_findings().cloned().chain(of_library).collect()
    }

    /// Where a place is on disk.
    pub fn location(&self, place: &Place) -> Location {
        let path = self.book.library().root().join(place.file());
        Location::new(path, place.source().file_range(place.range()))
    }

    /// The text of a file: what is open, or else what is saved. Files that are larger than the library reads have none.
    pub fn text(&self, path: &Path) -> Option<Arc<str>> {
        if let Some(text) = self.buffers.get(path) {
            return Some(text.clone());
        }
        let library = self.book.library();
        let limits = library.config().map(|config| config.limits.clone()).unwrap_or_default();
        let limit = limits.file_size;
        // A project may have a pipe or a link that leads out of it here.
        let bytes = match path.starts_with(library.root()) {
            true => crate::files::read_bytes_inside(library.root(), path, "", limit),
            false => crate::files::read_bytes(path, "", limit),
        };
        String::from_utf8(bytes.ok()?).ok().map(Into::into)
    }

    /// The prompts that a file is a part of: its own first, and `most` of them.
    fn users(&self, path: &Path, most: usize) -> Vec<Source> {
        let (mut own, mut others) = (Vec::new(), Vec::new());
        for source in self.index.users(path) {
            let known = self.index.get(source);
            match known.is_some_and(|one| is_own(&self.book, &one.found, path)) {
                true => own.push(source.clone()),
                false if others.len() < most => others.push(source.clone()),
                false => {}
            }
        }
        own.extend(others);
        own.truncate(most);
        own
    }

    /// The prompt of a file that no survey has seen.
    fn own_prompt(&self, path: &Path) -> Option<Found> {
        if self.index.uses(path) || !self.owns(path) {
            return None;
        }
        let file = path.file_name()?.to_str()?;
        let is_template = file == PROMPT_FILE || (file.starts_with("template.") && file.ends_with(".md"));
        let target = if is_template { path.parent()? } else { path };
        let library = self.book.library();
        let is_claimed = || library.claims().of_path(&path.to_string_lossy()).is_some();
        let is_directive = || library.spaces().at_path(ItemType::Directive, path).is_some();
        let find = || self.buffers.during(|| self.book.find_path(target)).ok();
        (is_template || is_claimed() || is_directive()).then(find).flatten()
    }

    /// A few of the prompts that a file is a part of, compiled with the texts that are open.
    fn prepared(&self, path: &Path) -> Vec<Arc<Vec<Prepared>>> {
        self.users(path, FEW).iter().map(|source| self.compiled(source)).collect()
    }

    /// A prompt in every language, as far as it can be read; or else the last state that could be read.
    fn compiled(&self, source: &Source) -> Arc<Vec<Prepared>> {
        if let Some(known) = lock(&self.compiled).get(source) {
            return known.clone();
        }
        let found = self.index.get(source).map(|one| one.found.clone());
        let made = found.map(|found| {
            let basis = self.basis.clone().or_else(|| Basis::of_prompts(&self.book).ok());
            self.buffers.during(|| basis.map(|basis| basis.prepare(&self.book, &found)).unwrap_or_default())
        });
        let made = Arc::new(made.unwrap_or_default());
        if made.is_empty() {
            return lock(&self.last).get(source).cloned().unwrap_or(made);
        }
        let is_open = |path: &PathBuf| self.buffers.get(path).is_some();
        if self.index.get(source).is_some_and(|one| one.files.iter().any(is_open)) {
            lock(&self.last).insert(source.clone(), made.clone());
        }
        let mut compiled = lock(&self.compiled);
        if compiled.len() >= KEPT {
            compiled.clear();
        }
        compiled.insert(source.clone(), made.clone());
        made
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_data(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    matches!(end, "json" | "toml" | "yaml" | "yml")
}

/// The file that a finding is about. What belongs to no file is shown at the project's settings.
fn file_of(root: &Path, finding: &Diagnostic) -> PathBuf {
    root.join(finding.file_name().unwrap_or(CONFIG_FILE))
}

/// Shows what belongs to no file, such as a missing signature, in the file of its prompt.
fn placed(book: &Book, mut one: check::CheckedPrompt) -> check::CheckedPrompt {
    if one.findings.iter().all(|finding| finding.file_name().is_some()) {
        return one;
    }
    let Some(own) = place(&one.found.candidate) else { return one };
    let files = [TEMPLATE_FILE, PROMPT_FILE].map(|file| own.join(file));
    let own = if own.is_dir() { files.into_iter().find(|file| file.is_file()).unwrap_or(own) } else { own };
    let name = book.library().name(&own);
    let nowhere = one.findings.iter_mut().filter(|finding| finding.file_name().is_none());
    nowhere.for_each(|finding| finding.file = Some(name.clone()));
    one
}

/// Whether a file is one of a prompt's own: its one file, or a file in its folder.
fn is_own(book: &Book, found: &Found, path: &Path) -> bool {
    let Some(own) = place(&found.candidate) else { return false };
    let is_folder = found.candidate.template_file.is_none() && own != book.library().root();
    own == path || (is_folder && path.parent() == Some(own.as_path()))
}

#[cfg(test)]
mod tests;
