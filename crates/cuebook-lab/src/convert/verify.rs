//! Reads what was written, renders it, and holds it against what it was made from.

mod by_message;
mod own_text;
mod samples;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::Value as Json;

use super::OutFile;
use super::draft::{Draft, Piece, RoleLines};
use super::report::Report;
use super::reported_differences::ComparisonRules;
use super::target_text::noun;
use crate::book::Book;
use crate::chat::Role;
use crate::convert::BuiltIn;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::files;
use crate::prepared::{Mode, Prepared};
use crate::source::Place;
use crate::template::parts::MissingValue;
use crate::template::python::is_space;
use crate::variables::Context;
use cuebook_text::sha256::hex;
use own_text::{ComparisonRender, Mask};
use samples::{Sample, samples};

/// Where results are read and rendered.
pub(super) struct Bench<'b> {
    pub(super) book: &'b Book,
    pub(super) source: &'b Prepared,
    pub(super) target: BuiltIn,
    pub(super) category: &'b str,
    pub(super) context: Arc<Context>,
}

/// What came of a comparison.
#[derive(Debug, Default)]
pub(super) struct Compared {
    /// How many renders were the same.
    pub(super) renders: usize,
    /// What did not count there, in words.
    pub(super) without: Vec<String>,
    /// Why nothing can be said to be the same, if nothing can.
    pub(super) why_not: Option<String>,
    /// Whether the texts differ, and nothing in the report explains that.
    pub(super) differs: bool,
}

/// Whether a result says what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It does.
    Same,
    /// It does but for white space.
    ButSpace,
    /// It does not.
    Other,
}

/// How closely two texts are looked at.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// All bytes.
    Bytes,
    /// Without values that notations write otherwise.
    Written,
    /// Without all that such inputs show.
    Shown,
}

/// How renders compare, as far as both could be rendered.
struct Outcome {
    same: usize,
    /// The first difference.
    difference: Option<String>,
    /// Why the source could not be rendered, if ever it could not.
    failure: Option<Error>,
}

impl Bench<'_> {
    /// Whether files say what a draft says, behind a prefix. White space around the text does not count.
    pub(super) fn compare_pieces(
        &self,
        draft: &Draft,
        files: &[OutFile],
        prefix: &str,
        terms: &ComparisonRules,
    ) -> Result<Verdict> {
        let prepared = match self.read(draft, files) {
            Err(error) if self.is_missing_include(&error) => return Ok(Verdict::Same),
            read => read?,
        };
        let Ok(pieces) = draft.pieces() else {
            // More than words: the source is the only one that knows what it says.
            let outcome = self.compare(draft, &prepared, prefix, terms);
            return Ok(match outcome.difference {
                None => Verdict::Same,
                Some(_) if self.has_references() => Verdict::Same,
                Some(_)
                    if self.compare(draft, &prepared, prefix, &terms.spaceless()).difference.is_none() =>
                {
                    Verdict::ButSpace
                }
                Some(_) => Verdict::Other,
            });
        };
        let (none, nothing) = (BTreeSet::new(), BTreeMap::new());
        let mask = Mask { shown: &none, written: &nothing };
        let way = self.of_result(mask);
        for sample in samples(draft, &ComparisonRules::default()) {
            let texts: Sample = sample.iter().map(|(name, value)| (name.clone(), text_of(value))).collect();
            let Some(expected) = expand(draft, &pieces, &texts) else { continue };
            let own_text = way.own_text(&prepared, &texts)?;
            let expected = format!("{prefix}{}", expected.trim_matches(is_space));
            // A heading with nothing below it has no empty line behind it.
            if own_text.trim_matches(is_space) != expected.trim_end_matches(is_space) {
                return Ok(Verdict::Other);
            }
        }
        Ok(Verdict::Same)
    }

    /// Reads and renders the result. Unreported differences from the source are reported.
    pub(super) fn check(
        &self,
        draft: &Draft,
        files: &[OutFile],
        prefix: &str,
        report: &mut Report,
    ) -> Result<Compared> {
        self.messages_of_source(draft, report);
        self.check_text(draft, files, prefix, report)
    }

    /// The same, without a look at who says what in the source.
    pub(super) fn check_text(
        &self,
        draft: &Draft,
        files: &[OutFile],
        prefix: &str,
        report: &mut Report,
    ) -> Result<Compared> {
        let prepared = match self.read_result(draft, files, report)? {
            Ok(prepared) => prepared,
            Err(compared) => return Ok(compared),
        };
        let terms = ComparisonRules::new(report.reported_differences(), draft);
        let outcome = self.compare(draft, &prepared, prefix, &terms);
        if outcome.difference.is_some() && self.messages_of_result(draft, &prepared, &terms, report) {
            let why_not = Some("the renders differ".to_owned());
            return Ok(Compared { why_not, ..Compared::default() });
        }
        if let Some(difference) = outcome.difference {
            let message = format!("the rendered text differs: {difference}");
            let hint = match self.has_references() {
                true => Hint::from(
                    "an include loses its last newline in a template, but keeps it in other dialects: add `-` to the tags, as in {%- include … -%}",
                ),
                false => compare_both(),
            };
            report.changed("text", message).hint(hint);
            let why_not = Some("the renders differ".to_owned());
            return Ok(Compared { why_not, differs: true, ..Compared::default() });
        }
        let failure = outcome.failure.filter(|_| outcome.same == 0);
        let why_not = failure.map(|error| not_compared(&error, report));
        Ok(Compared { renders: outcome.same, without: terms.reported, why_not, differs: false })
    }

    /// Reads the result, or notes why it cannot be compared.
    fn read_result(
        &self,
        draft: &Draft,
        files: &[OutFile],
        report: &mut Report,
    ) -> Result<std::result::Result<Prepared, Compared>> {
        match self.read(draft, files) {
            Err(error) if self.is_missing_include(&error) => {
                let message = "Cuebook cannot render the result to compare it: the result finds its includes only in its \
                     final folder";
                report
                    .note("check", message)
                    .hint(Hint::run("move it to its final folder, and check it", "cuebook render"));
                let why_not =
                    "not compared: the result finds its includes only in its final folder".to_owned();
                Ok(Err(Compared { why_not: Some(why_not), ..Compared::default() }))
            }
            read => read.map(Ok),
        }
    }

    /// Whether a result cannot be read because it lies elsewhere than the templates that it includes.
    pub(super) fn is_missing_include(&self, error: &Error) -> bool {
        error.code() == Code::MissingInclude && self.has_references()
    }

    fn has_references(&self) -> bool {
        self.source.outline().names().iter().any(|names| !names.references.is_empty())
    }

    /// Tells of messages that only a render shows: those that something included begins, or a condition. A `.prompty` file alone
    /// has several.
    fn messages_of_source(&self, draft: &Draft, report: &mut Report) {
        if !self.source.prompt().dialect.has_roles || draft.opening == RoleLines::Several {
            return;
        }
        let terms = ComparisonRules::new(report.reported_differences(), draft);
        let (none, nothing) = (BTreeSet::new(), BTreeMap::new());
        let way = self.of_source(draft, &terms, Mask { shown: &none, written: &nothing });
        let renders = samples(draft, &terms).into_iter().map(|sample| {
            let sample = sample.into_iter().map(|(name, value)| (draft.name_before(&name), value)).collect();
            // Values that do not fit are reported where texts are compared.
            way.roles(self.source, &sample).unwrap_or_default()
        });
        let Some(roles) = other_roles(renders, draft) else { return };
        let target = noun(self.target);
        let message = match roles.as_slice() {
            [role] => format!(
                "the rendered prompt is a message with the role {}, but a {target} has no roles: the role \
                     line becomes text",
                role.as_str()
            ),
            roles => format!(
                "the rendered prompt is {} messages ({}), but a {target} is one message: the role lines \
                     become text",
                roles.len(),
                names_of(roles)
            ),
        };
        let hint = "only .prompty files can have several messages; split the prompt, or add the others in your \
             program";
        report.lost("roles", message).at(self.speaker()).hint(hint);
    }

    /// Tells of messages that a `.prompty` file makes of lines that were text, and says whether it does. Where the source has roles,
    /// such lines were no text.
    fn messages_of_result(
        &self,
        draft: &Draft,
        result: &Prepared,
        terms: &ComparisonRules,
        report: &mut Report,
    ) -> bool {
        if self.target != BuiltIn::Prompty || self.source.prompt().dialect.has_roles {
            return false;
        }
        let (none, nothing) = (BTreeSet::new(), BTreeMap::new());
        let way = self.of_result(Mask { shown: &none, written: &nothing });
        let renders = samples(draft, terms).into_iter();
        let renders = renders.map(|sample| way.roles(result, &sample).unwrap_or_default());
        let Some(roles) = other_roles(renders, draft) else { return false };
        let message = format!(
            "lines that were text begin messages in a .prompty file: the roles are {}",
            names_of(&roles)
        );
        let hint = "include a text without role lines to get one message";
        report.changed("roles", message).at(self.speaker()).hint(hint);
        true
    }

    /// Where something is included that begins messages.
    fn speaker(&self) -> Option<Place> {
        self.source
            .included_prompts()
            .iter()
            .find(|included| included.begins_messages())
            .map(|included| included.place.clone())
    }

    fn of_source<'w>(
        &'w self,
        draft: &Draft,
        terms: &ComparisonRules,
        mask: Mask<'w>,
    ) -> ComparisonRender<'w> {
        ComparisonRender {
            context: &self.context,
            is_result: false,
            unmarked: draft.opening == RoleLines::Taken,
            unfolded: terms.unfolded,
            unconditional: terms.unconditional,
            mask,
        }
    }

    fn of_result<'w>(&'w self, mask: Mask<'w>) -> ComparisonRender<'w> {
        let (unfolded, unconditional) = (false, false);
        ComparisonRender {
            context: &self.context,
            is_result: true,
            unmarked: true,
            unfolded,
            unconditional,
            mask,
        }
    }

    /// Renders both with values that were made up, up to the first difference.
    fn compare(&self, draft: &Draft, result: &Prepared, prefix: &str, terms: &ComparisonRules) -> Outcome {
        let before = |name: &String| draft.name_before(name);
        let mut outcome = Outcome { same: 0, difference: None, failure: None };
        for sample in samples(draft, terms) {
            let values: Sample = sample.iter().map(|(name, value)| (before(name), value.clone())).collect();
            // Byte by byte if they are the same, and else without the reported differences.
            let mut first = None;
            for step in [Step::Bytes, Step::Written, Step::Shown] {
                match self.step(draft, result, (&values, &sample), prefix, terms, (step, &before)) {
                    Err(error) => {
                        outcome.failure = Some(error);
                        break;
                    }
                    Ok(None) => {
                        first = None;
                        outcome.same += 1;
                        break;
                    }
                    Ok(Some(difference)) => first = Some(difference),
                }
                if terms.odd.is_empty() {
                    break;
                }
            }
            if first.is_some() {
                outcome.difference = first;
                break;
            }
        }
        outcome
    }

    /// The difference between one render of each. An error if the source cannot be rendered with values that were made up: then
    /// it says nothing.
    fn step(
        &self,
        draft: &Draft,
        result: &Prepared,
        (values, sample): (&Sample, &Sample),
        prefix: &str,
        terms: &ComparisonRules,
        (step, before): (Step, &dyn Fn(&String) -> String),
    ) -> Result<Option<String>> {
        let mut shown = terms.masked.clone();
        let mut written: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        match step {
            Step::Bytes => {}
            Step::Written => {
                for name in &terms.odd {
                    let forms = written.entry(name.clone()).or_default();
                    sample.get(name).into_iter().for_each(|value| own_text::forms(value, forms));
                }
            }
            Step::Shown => shown.extend(terms.odd.iter().cloned()),
        }
        let old_shown: BTreeSet<String> = shown.iter().map(before).collect();
        let old_written = written.iter().map(|(name, forms)| (before(name), forms.clone())).collect();
        let mask = Mask { shown: &old_shown, written: &old_written };
        let source = self.of_source(draft, terms, mask);
        let target = self.of_result(Mask { shown: &shown, written: &written });
        let expected = source.own_text(self.source, values)?;
        let expected = format!("{prefix}{}", expected.trim_matches(is_space));
        Ok(match target.own_text(result, sample) {
            Err(error) => Some(format!(
                "the result fails with values that the source accepts: {}",
                error.diagnostic().message
            )),
            Ok(found) => difference(&found, &expected, terms),
        })
    }

    fn read(&self, draft: &Draft, files: &[OutFile]) -> Result<Prepared> {
        let (_scratch, path) = self.lay(draft, files)?;
        let library = self.book.library();
        let found = library.find_path(&path)?;
        let language = crate::variables::Scope::language(&self.context).to_owned();
        self.book.prepare_found(found, &language, Mode::Lenient, &library.config()?, None)
    }

    /// Writes files to where they can be read for a moment, and says where the prompt is.
    pub(super) fn lay(&self, draft: &Draft, files: &[OutFile]) -> Result<(Scratch, PathBuf)> {
        let scratch = Scratch::new()?;
        let folder = match self.target {
            BuiltIn::Template => scratch.0.join(&draft.id),
            BuiltIn::Directive => scratch.0.join(".ai/directives").join(self.category),
            _ => scratch.0.clone(),
        };
        for file in files {
            // It is not needed when this process is gone, so nothing waits for a disk.
            let written = std::fs::create_dir_all(&folder)
                .and_then(|()| std::fs::write(folder.join(&file.path), file.text.as_bytes()));
            written.map_err(|error| files::write_error(&file.path, &error))?;
        }
        let path = match (self.target, files) {
            (BuiltIn::Template, _) | (_, []) => folder,
            (_, [file, ..]) => folder.join(&file.path),
        };
        Ok((scratch, path))
    }
}

/// Who says the first render that is anything else than the one message that a draft is.
fn other_roles(mut renders: impl Iterator<Item = Vec<Role>>, draft: &Draft) -> Option<Vec<Role>> {
    renders.find(|roles| !roles.is_empty() && *roles != [draft.role.clone()])
}

/// The hint where two renders differ.
fn compare_both() -> Hint {
    Hint::command_line("compare both with cuebook render")
        .for_programs("compare both renders")
        .or("if you cannot explain the difference, please report a bug")
}

/// Notes that no values were found that the source accepts, and gives the reason.
fn not_compared(error: &Error, report: &mut Report) -> String {
    let why = format!("not compared: the test values do not fit: {}", error.diagnostic().message);
    let hint = Hint::run("render both with your own values, and compare", "cuebook diff");
    report.note("check", why.clone()).hint(hint);
    why
}

fn names_of(roles: &[Role]) -> String {
    roles.iter().map(Role::as_str).collect::<Vec<_>>().join(", ")
}

/// The first difference between two texts, as far as they count.
fn difference(found: &str, expected: &str, terms: &ComparisonRules) -> Option<String> {
    let (found, expected) = match terms.no_space {
        true => (found.replace(is_space, ""), expected.replace(is_space, "")),
        false => (found.trim_matches(is_space).to_owned(), expected.trim_end_matches(is_space).to_owned()),
    };
    if found == expected {
        return None;
    }
    let at = found.bytes().zip(expected.bytes()).take_while(|(one, other)| one == other).count();
    let excerpt = |text: &str| {
        let start = text.floor_char_boundary(at);
        text[start..].chars().take(30).collect::<String>()
    };
    let place = if terms.is_exact() { format!("at byte {at} ") } else { String::new() };
    Some(format!("{place}it is {:?}, but was {:?}", excerpt(&found), excerpt(&expected)))
}

/// What a draft says with some texts. `None` if a value is missing without which it says nothing.
fn expand(draft: &Draft, pieces: &[Piece], sample: &Sample) -> Option<String> {
    let mut out = String::new();
    for piece in pieces {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Value { name, absent } => {
                let default = || draft.input(name)?.default.clone();
                match (sample.get(name).cloned().or_else(default), absent) {
                    (Some(Json::String(text)), _) => out.push_str(&text),
                    (Some(Json::Number(number)), _) if !number.is_f64() => out.push_str(&number.to_string()),
                    // How others read is another question.
                    (Some(_), _) => return None,
                    (None, MissingValue::Nothing) => {}
                    (None, MissingValue::Shows(text)) => out.push_str(text),
                    (None, MissingValue::Fails) => return None,
                }
            }
        }
    }
    Some(out)
}

fn text_of(value: &Json) -> Json {
    match value {
        Json::String(_) => value.clone(),
        other => Json::String(format!("x{other}")),
    }
}

/// A folder for a moment.
pub(super) struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        let mut digits = [0_u8; 8];
        let folder = getrandom::fill(&mut digits)
            .map_err(std::io::Error::other)
            .and_then(|()| {
                let folder = std::env::temp_dir().join(format!("cuebook-{}", hex(&digits)));
                make(&folder)?;
                Ok(folder)
            })
            .map_err(|error| {
                let message = format!("cannot create a temporary folder: {error}");
                let hint = "set TMPDIR to a writable folder";
                Error::new(ErrorKind::Io, Diagnostic::new(Code::WriteFailed, message).hint(hint))
            })?;
        Ok(Scratch(folder))
    }
}

/// Makes a folder that only this user reads.
fn make(folder: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is the system's to remove.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
