//! Check: every problem in every prompt that is found, without running anything.
//!
//! A rule is a file here and a page among the error codes. What keeps a prompt from being read at all (a syntax error, a
//! missing include or parent) is found by reading it; the rules look at what could be read. Findings that several prompts
//! share, such as one in a partial, are reported once. A large library is looked at by every core at once; what is found, and in
//! which order, does not depend on that.

mod block;
mod callable;
mod cycle;
mod directive;
mod include;
mod item;
mod pack;
mod partial;
mod permission;
mod render_warnings;
mod resolution;
mod section;
mod skill;
mod speech;
mod text;
mod undeclared;
mod unused;
mod vocab;
mod written;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::num::NonZero;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;

use crate::book::Book;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity};
use crate::files::Buffers;
use crate::library::{Config, Found, Library, PROMPT_FILE, Reason, Root, RootKind, Survey};
use crate::prepared::{Mode, Prepared};
use crate::targets::place;

/// A rule that looks at one prompt.
type PromptRule = fn(&Prepared, &[String]) -> Vec<Diagnostic>;

/// In the order in which their findings are made; they are sorted by place afterwards.
const PROMPT_RULES: &[PromptRule] = &[
    undeclared::check,
    cycle::check,
    callable::check,
    text::check,
    speech::check,
    render_warnings::check,
    section::check,
    directive::check,
    include::check,
];

/// Rules that make sense only if every template is there: a missing one might use the variable or have the block.
const WHOLE_PROMPT_RULES: &[PromptRule] = &[block::check];

/// A rule that looks at the library as a whole.
type LibraryRule = fn(&Book, &Survey) -> Result<Vec<Diagnostic>>;

const LIBRARY_RULES: &[LibraryRule] = &[
    resolution::check,
    pack::check,
    partial::check,
    vocab::check,
    skill::check,
    item::check,
    written::check,
];

/// As many prompts in one place are checked by several threads.
const MANY: usize = 64;
/// So many of them a thread takes at once.
const AT_ONCE: usize = 16;
/// What a thread needs for the deepest templates: as much as the first thread of a program has.
const STACK: usize = 8 << 20;

/// What a check found, and how much it looked at.
#[derive(Debug, Default)]
pub struct Report {
    /// The findings, ordered by file and place.
    pub findings: Vec<Diagnostic>,
    /// How many prompts were looked at.
    pub prompts: usize,
}

impl Report {
    /// How many findings are errors.
    pub fn errors(&self) -> usize {
        self.findings.iter().filter(|finding| finding.severity == Severity::Error).count()
    }
}

/// Checks the prompts that are named (by id, or by a path to a file or folder), or the whole library if none is.
/// `progress` is called with every prompt before it is looked at.
pub fn check(book: &Book, targets: &[String], progress: impl FnMut(&str)) -> Result<Report> {
    let examined = examine(book, targets, progress)?;
    let prompts = examined.prompts.len();
    let findings = examined.prompts.into_iter().flat_map(|one| one.findings).chain(examined.findings);
    Ok(Report { findings: merged(findings.collect()), prompts })
}

/// Looks at the prompts that are named, or at the whole library. Editors keep what it gives back, and `check` tells it.
pub(crate) fn examine(
    book: &Book,
    targets: &[String],
    mut progress: impl FnMut(&str),
) -> Result<CheckedLibrary> {
    // One prompt is found faster without.
    let basis = if targets.is_empty() { Basis::of_library(book)? } else { Basis::of_prompts(book)? };
    let mut checker = Checker::new(book, &basis);
    if let Some(survey) = &basis.survey {
        for root in survey.roots() {
            checker.root(root, &mut progress);
        }
        checker.directives(survey, |_| true, &mut progress);
        for rule in LIBRARY_RULES {
            match rule(book, survey) {
                Ok(findings) => checker.findings.extend(findings),
                Err(error) => checker.fail(error),
            }
        }
    }
    for target in targets {
        if let Err(error) = checker.target(target, &mut progress) {
            checker.fail(error);
        }
    }
    let Checker { prompts, findings, .. } = checker;
    Ok(CheckedLibrary { basis, prompts, findings })
}

/// Everything that was looked at.
#[derive(Debug)]
pub(crate) struct CheckedLibrary {
    pub(crate) basis: Basis,
    /// The prompts, each with its findings.
    pub(crate) prompts: Vec<CheckedPrompt>,
    /// Findings about the library as a whole.
    pub(crate) findings: Vec<Diagnostic>,
}

/// What is known of a prompt that was looked at.
#[derive(Debug, Clone)]
pub(crate) struct CheckedPrompt {
    pub(crate) found: Found,
    /// The files that it is made from; those of the last time, if it cannot be read.
    pub(crate) files: BTreeSet<PathBuf>,
    /// What is wrong with it. Another prompt that shares a file may have the same findings.
    pub(crate) findings: Vec<Diagnostic>,
}

/// What prompts are checked with.
#[derive(Debug, Clone)]
pub(crate) struct Basis {
    config: Arc<Config>,
    /// Everything that the library offers, if all of it is checked.
    survey: Option<Arc<Survey>>,
    /// Namespaces that variable providers of packs fill.
    namespaces: Arc<[String]>,
    /// The items that permissions can be for.
    ids: Arc<permission::Ids>,
}

impl Basis {
    /// For the whole library.
    pub(crate) fn of_library(book: &Book) -> Result<Basis> {
        let survey = Arc::new(book.library().survey()?);
        Basis::with(book, Some(survey))
    }

    /// For a few prompts.
    pub(crate) fn of_prompts(book: &Book) -> Result<Basis> {
        Basis::with(book, None)
    }

    fn with(book: &Book, survey: Option<Arc<Survey>>) -> Result<Basis> {
        let namespaces = namespaces(book.library(), survey.as_deref()).into();
        Ok(Basis { config: book.library().config()?, survey, namespaces, ids: Arc::default() })
    }

    /// What the library offers, if all of it was looked at.
    pub(crate) fn survey(&self) -> Option<&Arc<Survey>> {
        self.survey.as_ref()
    }

    /// What is wrong with a file that need not be a part of any prompt; `None` if it is no such file.
    pub(crate) fn other_file(&self, book: &Book, path: &Path) -> Option<Vec<Diagnostic>> {
        let item = || item::check_file(book.library().spaces(), path);
        partial::check_file(&self.config, self.survey.as_ref()?, path).or_else(item)
    }

    /// Looks at one prompt.
    pub(crate) fn examine(&self, book: &Book, found: &Found) -> CheckedPrompt {
        let mut checker = Checker::new(book, self);
        checker.prompt(found);
        let nothing = || CheckedPrompt { found: found.clone(), files: BTreeSet::new(), findings: Vec::new() };
        checker.prompts.pop().unwrap_or_else(nothing)
    }

    /// Compiles a prompt in every language that it has a template for, as far as it can be read.
    pub(crate) fn prepare(&self, book: &Book, found: &Found) -> Vec<Prepared> {
        let prepare = |language: String| {
            let survey = self.survey.clone();
            book.prepare_found(found.clone(), &language, Mode::DespiteErrors, &self.config, survey).ok()
        };
        languages(found).into_iter().filter_map(prepare).collect()
    }
}

/// A pack whose manifest is wrong has its own finding and supplies no names.
fn namespaces(library: &Library, survey: Option<&Survey>) -> Vec<String> {
    let providers = match survey {
        Some(survey) => survey.providers(library).to_vec(),
        None => library.providers(|_| {}).unwrap_or_default().0,
    };
    providers.into_iter().map(|(_, provider)| provider.namespace).collect()
}

/// A check under way.
struct Checker<'r> {
    book: &'r Book,
    basis: &'r Basis,
    prompts: Vec<CheckedPrompt>,
    findings: Vec<Diagnostic>,
}

impl<'r> Checker<'r> {
    fn new(book: &'r Book, basis: &'r Basis) -> Checker<'r> {
        Checker { book, basis, prompts: Vec::new(), findings: Vec::new() }
    }

    fn library(&self) -> &'r Library {
        self.book.library()
    }

    fn fail(&mut self, error: Error) {
        self.findings.extend(error.into_diagnostics());
    }

    /// Every prompt below a place. What ships inside the binary is not the user's to mend.
    fn root(&mut self, root: &Arc<Root>, progress: &mut dyn FnMut(&str)) {
        if root.kind == RootKind::Builtin {
            return;
        }
        let prompts = match self.below(root) {
            Ok(prompts) => prompts,
            Err(error) => return self.fail(error),
        };
        self.findings.extend(root.misnamed(self.library().claims()));
        match prompts.len() >= MANY {
            true => self.together(&prompts, progress),
            false => {
                for found in &prompts {
                    progress(&found.candidate.source);
                    self.prompt(found);
                }
            }
        }
    }

    /// Every prompt below a place.
    fn below(&self, root: &Arc<Root>) -> Result<Vec<Found>> {
        if let Some(prompts) = self.basis.survey.as_ref().and_then(|survey| survey.below(root)) {
            return Ok(prompts);
        }
        let mut prompts = Vec::new();
        for (id, candidates) in self.library().all_below(root)? {
            let found = |candidate| Found { id: id.clone(), candidate, reason: Reason::Given };
            prompts.extend(candidates.into_iter().map(found));
        }
        Ok(prompts)
    }

    /// Many prompts, by as many threads as there are cores. This one tells how it goes.
    fn together<'p>(&mut self, prompts: &'p [Found], progress: &mut dyn FnMut(&str)) {
        let (book, basis, buffers) = (self.book, self.basis, Buffers::active());
        let next = AtomicUsize::new(0);
        let work = |sender: Sender<&'p [Found]>| {
            let mut done = Vec::new();
            loop {
                let start = next.fetch_add(AT_ONCE, Ordering::Relaxed);
                let mine = prompts.get(start..prompts.len().min(start + AT_ONCE)).unwrap_or_default();
                if mine.is_empty() {
                    return done;
                }
                // The receiver lives for as long as one of these threads works.
                let _ = sender.send(mine);
                let mut part = Checker::new(book, basis);
                mine.iter().for_each(|found| part.prompt(found));
                done.push((start, part.prompts));
            }
        };
        let (sender, receiver) = std::sync::mpsc::channel();
        let mut parts: Vec<(usize, Vec<CheckedPrompt>)> = std::thread::scope(|scope| {
            let mut workers = Vec::new();
            for _ in 0..std::thread::available_parallelism().map_or(1, NonZero::get) {
                let (sender, work, buffers) = (sender.clone(), &work, &buffers);
                let thread = std::thread::Builder::new().stack_size(STACK);
                // Without another thread the others do its share.
                workers.extend(thread.spawn_scoped(scope, move || buffers.during(|| work(sender))));
            }
            // If there is no other thread at all, this one works.
            let mut parts = if workers.is_empty() { work(sender.clone()) } else { Vec::new() };
            drop(sender);
            receiver.iter().flatten().for_each(|found| progress(&found.candidate.source));
            for worker in workers {
                parts.extend(worker.join().unwrap_or_else(|panic| resume_unwind(panic)));
            }
            parts
        });
        parts.sort_by_key(|(start, _)| *start);
        self.prompts.extend(parts.into_iter().flat_map(|(_, part)| part));
    }

    /// The directives of the project's and the user's spaces that are wanted. What is shadowed is not in use.
    fn directives(
        &mut self,
        survey: &Survey,
        wanted: impl Fn(&Path) -> bool,
        progress: &mut dyn FnMut(&str),
    ) {
        for (id, candidates) in survey.ids() {
            for candidate in candidates {
                let folder = candidate.root.folder().filter(|_| candidate.dialect.is_item);
                let file = folder.map(|folder| folder.join(format!("{id}.md")));
                if candidate.shadowed_by.is_none() && file.is_some_and(|file| wanted(&file)) {
                    progress(&candidate.source);
                    let candidate = candidate.clone();
                    self.prompt(&Found { id: id.to_owned(), candidate, reason: Reason::Given });
                }
            }
        }
    }

    fn target(&mut self, target: &str, progress: &mut dyn FnMut(&str)) -> Result<()> {
        let folder = std::path::absolute(Path::new(target)).ok();
        let folder = folder.filter(|path| self.book.takes_paths() && path.is_dir());
        match self.book.find(target) {
            Ok(found) => {
                progress(&found.candidate.source);
                self.prompt(&found);
                Ok(())
            }
            // A folder that is no prompt may hold some.
            Err(error) => match folder {
                Some(folder) => self.folder(&folder, error, progress),
                None => Err(error),
            },
        }
    }

    /// Everything below a folder: a pack, places of the library, prompts that lie there.
    fn folder(&mut self, folder: &Path, error: Error, progress: &mut dyn FnMut(&str)) -> Result<()> {
        let before = (self.prompts.len(), self.findings.len());
        if folder.join("pack.json").is_file() {
            let installed =
                folder.file_name().filter(|_| folder.parent() == Some(&self.library().packs_folder()));
            let inspected = match installed {
                Some(id) => self.library().inspect_pack(&id.to_string_lossy()),
                None => self.library().inspect_pack_at(folder),
            };
            let id = installed.map(|id| id.to_string_lossy().into_owned());
            match inspected {
                Ok((manifest, findings)) => {
                    let providers =
                        pack::providers(self.library(), id.as_deref(), folder, &manifest, &findings);
                    self.findings.extend(findings);
                    self.findings.extend(providers);
                }
                Err(error) => self.fail(error),
            }
        }
        let mut below: Vec<Arc<Root>> = self
            .library()
            .roots()?
            .into_iter()
            .filter(|root| root.folder().is_some_and(|place| place.starts_with(folder)))
            .collect();
        for place in [folder.to_owned(), folder.join("prompts")] {
            if below.iter().all(|root| root.folder() != Some(place.as_path())) {
                let name = self.library().name(&place);
                below.push(Arc::new(Root::on_disk(RootKind::Given, name, place)));
            }
        }
        for root in below {
            self.root(&root, progress);
        }
        let survey = self.library().survey()?;
        self.directives(&survey, |file| file.starts_with(folder), progress);
        let nothing = (self.prompts.len(), self.findings.len()) == before;
        // A pack may bring nothing but providers, and nothing may be wrong with them.
        match nothing && !folder.join("pack.json").is_file() {
            true => Err(error),
            false => Ok(()),
        }
    }

    /// Checks one prompt in every language that it has a template for.
    fn prompt(&mut self, found: &Found) {
        let mut one = CheckedPrompt {
            found: found.clone(),
            files: place(&found.candidate).into_iter().collect(),
            findings: Vec::new(),
        };
        // A variable is unused only if it is unused in every language.
        let mut unused: Option<Vec<Diagnostic>> = None;
        for language in languages(found) {
            match self.prepare(found, &language, Mode::Lenient) {
                Ok(prepared) => {
                    self.note_files(&mut one, &prepared);
                    let here = unused::check(&prepared, &[]);
                    let is_here =
                        |finding: &Diagnostic| here.iter().any(|other| other.message == finding.message);
                    unused = Some(match unused.take() {
                        Some(before) => before.into_iter().filter(is_here).collect(),
                        None => here,
                    });
                    one.findings.extend(prepared.notes().iter().cloned());
                    self.apply(PROMPT_RULES, &prepared, &mut one);
                    self.apply(WHOLE_PROMPT_RULES, &prepared, &mut one);
                    let permissions = permission::check(&prepared, self.library().spaces(), &self.basis.ids);
                    one.findings.extend(permissions);
                }
                Err(error) => {
                    unused = Some(Vec::new());
                    self.rest(found, &language, &error, &mut one);
                    // A conflict that the prompt runs into is reported once, where the library is looked at.
                    let conflict = matches!(error.code(), Code::PromptConflict | Code::StaleResolution);
                    if !(conflict && error.field("prompt_id").is_some()) {
                        one.findings.extend(error.into_diagnostics());
                    }
                }
            }
        }
        one.findings.extend(unused.unwrap_or_default());
        self.prompts.push(one);
    }

    /// Looks at what can be read of a prompt that is half written.
    fn rest(&self, found: &Found, language: &str, error: &Error, one: &mut CheckedPrompt) {
        for finding in error.diagnostics() {
            let name = finding.file_name().filter(|_| error.kind() == ErrorKind::PromptRead);
            one.files.extend(name.map(|name| self.library().root().join(name)));
        }
        let is_half_written = matches!(error.code(), Code::MissingInclude | Code::TemplateSyntax);
        if is_half_written && let Ok(prepared) = self.prepare(found, language, Mode::DespiteErrors) {
            self.note_files(one, &prepared);
            one.findings.extend(prepared.notes().iter().cloned());
            self.apply(PROMPT_RULES, &prepared, one);
        }
    }

    fn prepare(&self, found: &Found, language: &str, mode: Mode) -> Result<Prepared> {
        let Basis { config, survey, .. } = self.basis;
        self.book.prepare_found(found.clone(), language, mode, config, survey.clone())
    }

    /// Notes the files that a prompt is made from.
    fn note_files(&self, one: &mut CheckedPrompt, prepared: &Prepared) {
        let root = self.library().root();
        let outline = prepared.outline();
        one.files.extend(outline.units().iter().map(|unit| root.join(unit.source().name())));
        let prompt = prepared.prompt();
        let declared = prompt.variables.iter().filter_map(|variable| variable.place.as_ref());
        one.files.extend(declared.map(|place| root.join(place.file())));
        one.files.extend(prompt.code.iter().map(|code| root.join(code.name())));
    }

    fn apply(&self, rules: &[PromptRule], prepared: &Prepared, one: &mut CheckedPrompt) {
        for rule in rules {
            one.findings.extend(rule(prepared, &self.basis.namespaces));
        }
    }
}

/// The findings of several prompts, in the order of their places, and each once.
pub(crate) fn merged(mut findings: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let about = |finding: &Diagnostic| {
        let start = finding.place.as_ref().map_or(0, |place| place.range().start);
        (finding.file_name().unwrap_or_default().to_owned(), start, finding.code, finding.message.clone())
    };
    let key = |finding: &Diagnostic| (about(finding), includers(finding));
    findings.sort_by_key(key);
    // A finding that is a warning alone and an error for prompts that include it is reported as an error.
    let mut worst: HashMap<_, Severity> = HashMap::new();
    for finding in &findings {
        let known = worst.entry(about(finding)).or_insert(finding.severity);
        *known = finding.severity.max(*known);
    }
    findings.retain(|finding| worst.get(&about(finding)) == Some(&finding.severity));
    let mut seen = HashSet::new();
    findings.retain(|finding| seen.insert(key(finding)));
    // A circle is found from each prompt in it.
    let mut circles = HashSet::new();
    findings.retain(|finding| match cycle::places(finding) {
        Some(places) => circles.insert(places),
        None => true,
    });
    findings
}

/// Whether a finding is about a circle, which may be reported in another file.
pub(crate) fn is_circle(finding: &Diagnostic) -> bool {
    cycle::places(finding).is_some()
}

/// The places that include what a finding is about, where each of them has its own problem: what no trusted key has signed can be
/// looked at alone, and keeps from working whatever includes it. Anything else is fixed in one place, and reported once.
fn includers(finding: &Diagnostic) -> Vec<(String, usize)> {
    let is_signature = matches!(
        finding.code,
        Code::Unsigned
            | Code::ContentChanged
            | Code::ItemMoved
            | Code::UntrustedKey
            | Code::ForgedSignature
            | Code::BadSignature
            | Code::NarrowSignature
    );
    let places = finding.related.iter().filter(|_| is_signature).map(|(place, _)| place);
    places.map(|place| (place.file().to_owned(), place.range().start)).collect()
}

/// The languages that a prompt's folder has a template for: `template.ja.md` makes `ja`. The plain template is first.
pub(crate) fn languages(found: &Found) -> Vec<String> {
    let mut languages = BTreeSet::new();
    if let Some(path) = found.candidate.root.path(&found.candidate.entry)
        && found.candidate.template_file.is_none()
        && let Ok(entries) = std::fs::read_dir(path)
    {
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            if name == PROMPT_FILE {
                continue;
            }
            if let Some((_, language)) = name.strip_suffix(".md").and_then(|stem| stem.split_once('.')) {
                languages.insert(language.to_owned());
            }
        }
    }
    // A language without a variant gives the plain template.
    std::iter::once("zxx".to_owned()).chain(languages).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BookExt;

    fn codes(files: &[(&str, &str)]) -> Vec<&'static str> {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let report = Book::open(folder.path()).check(&[], |_| {}).unwrap();
        report.findings.iter().map(|finding| finding.code.as_str()).collect()
    }

    #[test]
    fn checking_many_prompts_equals_checking_each() {
        let folder = tempfile::tempdir().unwrap();
        let count = MANY * 3 + 5;
        for number in 0..count {
            let path = folder.path().join(format!("prompts/p{number:04}"));
            std::fs::create_dir_all(&path).unwrap();
            let template = if number % 3 == 0 { "{{ x|uper }}{{ y" } else { "{{ x|uper }}\n" };
            std::fs::write(path.join("template.md"), template).unwrap();
        }
        let book = Book::open(folder.path());
        let mut receiver = Vec::new();
        let report = book.check(&[], |source| receiver.push(source.to_owned())).unwrap();
        assert_eq!((report.prompts, receiver.len()), (count, count));
        receiver.sort();
        receiver.dedup();
        assert_eq!(receiver.len(), count, "each is told once");
        let said =
            |findings: &[Diagnostic]| findings.iter().map(|found| format!("{found:?}")).collect::<Vec<_>>();
        let mut alone = Vec::new();
        for number in 0..count {
            let report = book.check(&[format!("p{number:04}")], |_| {}).unwrap();
            assert_eq!(report.prompts, 1);
            alone.extend(report.findings);
        }
        assert!(alone.len() >= count);
        assert_eq!(said(&report.findings), said(&alone));
    }

    #[test]
    fn a_missing_template_hides_nothing_else_and_proves_nothing() {
        let python = "VARIABLES = {'optional': [{'name': 'a'}]}\n";
        let template =
            "{% extends 'gone.md' %}{% block b %}{{ x|uper }}{% include 'lost.md' %}{% endblock %}\n";
        assert_eq!(
            codes(&[("prompts/p/prompt.py", python), ("prompts/p/template.md", template)]),
            ["CB306", "CB402", "CB316", "CB306"]
        );
    }

    #[test]
    fn the_history_of_dotprompt_is_not_unused() {
        assert_eq!(codes(&[("prompts/hi.prompt", "Hello {{who}}.\n")]), [""; 0]);
        assert_eq!(
            codes(&[("prompts/hi.prompt", "---\ninput: {schema: {who: string}}\n---\nHello.\n")]),
            ["CB403"]
        );
    }

    #[test]
    fn self_include_is_a_warning_self_extend_an_error() {
        let includes = "{% if x %}{% include 'p/template.md' %}{% endif %}\n";
        assert_eq!(codes(&[("prompts/p/template.md", includes)]), ["CB307"]);
        let report = |text: &str| {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir_all(folder.path().join("prompts/p")).unwrap();
            std::fs::write(folder.path().join("prompts/p/template.md"), text).unwrap();
            Book::open(folder.path()).check(&[], |_| {}).unwrap().errors()
        };
        assert_eq!((report(includes), report("{% extends 'p/template.md' %}\n")), (0, 1));
    }
}
