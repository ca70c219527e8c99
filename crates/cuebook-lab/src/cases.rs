//! Cases: what a prompt is expected to be, in Markdown beside it.
//!
//! `tests.md` in a prompt's folder, or `NAME.tests.md` beside a prompt that is one file. A case renders the prompt and compares;
//! nothing is written but what [`CaseFile::apply`] is asked to. Conversations and pictures get nonces that are the same each
//! time, so that what is expected can be written down.

mod read;
mod run;
pub(crate) mod settings;

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use crate::book::Book;
use crate::changes::Line;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;
use crate::library::Found;
use crate::prepared::{Mode, Prepared};
use crate::prompt::Claim;
use crate::source::{Place, Source};
use crate::targets::found_of;
use crate::variables::{Clock, Scope};

pub use crate::items::{CASES_END, CASES_FILE};

/// The digits of nonces in cases.
const DIGITS: &str = "0000000000000000";

/// A prompt and the file of its cases.
#[derive(Debug, Clone)]
pub struct CaseFile {
    /// The prompt's id.
    pub prompt: String,
    /// The place that offers it.
    pub source: String,
    /// The file of its cases, as people read it; there may be none.
    pub name: String,
    path: PathBuf,
    found: Found,
    /// The one case that is wanted.
    only: Option<String>,
}

/// What became of a case.
#[derive(Debug)]
pub struct Outcome {
    /// Its name.
    pub case: String,
    /// Where it stands.
    pub place: Place,
    /// Everything that is not as it was expected; nothing, if it passed.
    pub failures: Vec<Failure>,
    /// What the expected block would have to be.
    pub snapshot: Option<Snapshot>,
    /// How many tokens the text has, if that was limited.
    pub tokens: Option<usize>,
}

/// Something that is not as it was expected.
#[derive(Debug)]
pub struct Failure {
    /// What is wrong.
    pub what: String,
    /// The line of the case that says otherwise.
    pub place: Place,
    /// What was expected against what came out.
    pub diff: Vec<Line>,
    /// Where the text came from that should not be there.
    pub origin: Option<String>,
    /// Why it could not be rendered.
    pub error: Option<Error>,
}

/// What an expected block would have to be.
#[derive(Debug, Clone)]
pub struct Snapshot {
    /// What it says now against what it would say.
    pub diff: Vec<Line>,
    /// The part of the file that is replaced; empty if the block is new.
    range: Range<usize>,
    info: String,
    text: String,
}

impl Outcome {
    /// Whether everything was as expected.
    pub fn passed(&self) -> bool {
        self.failures.is_empty()
    }

    /// The outcome as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({
            "case": self.case,
            "file": self.place.file(),
            "line": self.place.line(),
            "passed": self.passed(),
            "tokens": self.tokens,
            "failures": self.failures.iter().map(Failure::to_json).collect::<Vec<_>>(),
        })
    }
}

impl Failure {
    fn new(what: String, place: &Place) -> Failure {
        Failure { what, place: place.clone(), diff: Vec::new(), origin: None, error: None }
    }

    fn to_json(&self) -> Json {
        let mut object = json!({"message": self.what, "line": self.place.line()});
        if !self.diff.is_empty() {
            object["diff"] = self.diff.iter().map(Line::to_json).collect();
        }
        if let Some(origin) = &self.origin {
            object["origin"] = json!(origin);
        }
        if let Some(error) = &self.error {
            object["error"] = error.to_json()["error"].clone();
        }
        object
    }
}

impl Snapshot {
    fn changed(block: &read::Block, text: String, diff: Vec<Line>) -> Snapshot {
        Snapshot { diff, range: block.whole.clone(), info: block.info.clone(), text }
    }

    fn added(at: usize, language: &str, text: String, diff: Vec<Line>) -> Snapshot {
        Snapshot { diff, range: at..at, info: format!("{language} expected"), text }
    }

    /// Whether there was none before.
    pub fn is_new(&self) -> bool {
        self.range.is_empty()
    }

    /// The block, in fences that nothing in its text can close.
    fn block(&self) -> String {
        let longest =
            self.text.lines().map(|line| line.bytes().take_while(|byte| *byte == b'`').count()).max();
        let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
        let end = if self.text.ends_with('\n') { "" } else { "\n" };
        format!("{fence}{}\n{}{end}{fence}\n", self.info, self.text)
    }
}

impl CaseFile {
    /// The same file with one case alone.
    pub fn only(self, case: impl Into<String>) -> CaseFile {
        CaseFile { only: Some(case.into()), ..self }
    }

    /// The file of cases of a prompt, if it lies on disk.
    pub(crate) fn of(found: Found, book: &Book) -> Option<CaseFile> {
        let candidate = &found.candidate;
        let file = match (&candidate.template_file, candidate.dialect.claim) {
            (None, _) | (Some(_), Claim::File(_)) => CASES_FILE.to_owned(),
            (Some(file), claim) => {
                let stem = claim.id(file).or_else(|| file.strip_suffix(".md")).unwrap_or(file);
                format!("{stem}{CASES_END}")
            }
        };
        let path = candidate.root.path(&candidate.file(&file))?;
        let name = files::display_name(book.library().root(), &path);
        Some(CaseFile {
            prompt: found.id.clone(),
            source: candidate.source.clone(),
            name,
            path,
            found,
            only: None,
        })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there are cases, or something keeps that from being known.
    pub fn exists(&self) -> bool {
        match self.path.symlink_metadata() {
            Ok(_) => true,
            Err(error) => {
                use std::io::ErrorKind::{NotADirectory, NotFound};
                !matches!(error.kind(), NotFound | NotADirectory)
            }
        }
    }

    pub(crate) fn read(&self, book: &Book) -> Result<Arc<Source>> {
        let candidate = &self.found.candidate;
        if let Some(error) = candidate.root.closed(&candidate.entry) {
            return Err(files::folder_error(&candidate.root.file_name(&candidate.entry), &error));
        }
        candidate.root.read_at(&self.path, &self.name, book.library().config()?.limits.file_size)
    }

    /// Writes what cases would have to expect, all of it at once. The file must be as it was when the cases were run.
    pub fn apply(&self, book: &Book, outcomes: &[&Outcome]) -> Result<()> {
        let limit = book.library().config()?.limits.file_size;
        let raw = files::read_bytes(&self.path, &self.name, limit)?;
        let source = files::source_from_bytes(raw.clone(), &self.name)?;
        let mut text = String::from_utf8_lossy(&raw).into_owned();
        let mut edits: Vec<(Range<usize>, &Snapshot)> = Vec::new();
        for outcome in outcomes {
            if outcome.place.source().text() != source.text() {
                let message = "the file changed while its cases ran";
                let diagnostic = Diagnostic::new(Code::WriteFailed, message).file(self.name.as_str());
                return Err(Error::new(ErrorKind::Io, diagnostic.hint("run the cases again")));
            }
            edits.extend(
                outcome.snapshot.iter().map(|snapshot| (source.file_range(snapshot.range.clone()), snapshot)),
            );
        }
        // From the end, so that what comes before stays where it is.
        edits.sort_by_key(|(range, _)| std::cmp::Reverse(range.start));
        for (mut range, snapshot) in edits {
            let mut block = snapshot.block();
            if range.is_empty() {
                // In front of an empty line means in front of all of its line end.
                if text[..range.start].ends_with('\r') && text[range.start..].starts_with('\n') {
                    range = range.start - 1..range.start - 1;
                }
                let gap = if text[..range.start].ends_with('\n') { "\n" } else { "\n\n" };
                block = format!("{gap}{block}");
            }
            if source.has_carriage_returns() {
                block = block.replace('\n', "\r\n");
            }
            text.replace_range(range, &block);
        }
        files::write_atomic(&self.path, &self.name, text.as_bytes())
    }
}

/// The prompts that are named (by id, by a path to a file or folder, or by the path of a file of cases), or all of the
/// library if none is, each with the file of its cases, which may not be there. What ships inside the binary has none.
pub fn case_files(book: &Book, targets: &[String]) -> Result<Vec<CaseFile>> {
    let found = found_of(book, targets)?;
    let mut list: Vec<CaseFile> = found.into_iter().filter_map(|found| CaseFile::of(found, book)).collect();
    list.sort_by(|one, other| (&one.name, &one.source).cmp(&(&other.name, &other.source)));
    list.dedup_by(|one, other| one.path == other.path && one.source == other.source);
    Ok(list)
}

/// The name and the inputs of each case of a file.
pub fn case_inputs(book: &Book, file: &CaseFile) -> Result<Vec<(String, Map<String, Json>)>> {
    let cases = read::read(&file.read(book)?)?;
    Ok(cases.into_iter().map(|case| (case.name, case.said.inputs)).collect())
}

/// Runs the cases of a file. `reported` hears of each as soon as it is done.
pub fn run_cases(book: &Book, file: &CaseFile, mut reported: impl FnMut(&Outcome)) -> Result<Vec<Outcome>> {
    let source = file.read(book)?;
    let cases = read::read(&source)?;
    let mut known: HashMap<String, Result<Arc<Prepared>>> = HashMap::new();
    // A file of the project, or of a place of the library, as templates name them.
    let mut roots = vec![book.library().root().to_owned()];
    roots.extend(book.library().roots()?.iter().filter_map(|root| root.folder().map(Path::to_owned)));
    let mut outcomes = Vec::new();
    let is_wanted = |name: &str| file.only.as_deref().is_none_or(|only| only == name);
    for case in cases.iter().filter(|case| is_wanted(&case.name)) {
        let settings = &case.said.settings;
        let clock = settings.now.clone().map(|clock| Arc::new(clock) as Arc<dyn Clock>);
        let book = book.for_cases(clock, DIGITS);
        let context = book.complete(&settings.context())?;
        let language = Scope::language(&context);
        // Cases at a time of their own are rare, and have a book of their own.
        let key = format!("{language}\n{}\n{:?}", context.strict, settings.now);
        let prepared = known.entry(key).or_insert_with(|| {
            let mode = if context.strict { Mode::Strict } else { Mode::Lenient };
            let config = book.library().config()?;
            book.prepare_found(file.found.clone(), language, mode, &config, None).map(Arc::new)
        });
        let context = Arc::unwrap_or_clone(context.clone());
        let outcome = run::run(prepared.clone(), case, source.text(), &roots, context);
        reported(&outcome);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}
