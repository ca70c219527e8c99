//! Reads what was written, renders it, and holds it against what it was made from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

use super::OutFile;
use super::draft::{Draft, Piece};
use super::report::Report;
use crate::book::Book;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;
use crate::prepared::{Mode, Prepared};
use crate::prompt::{Dialect, Need, Type};
use crate::template::bits::Absent;
use crate::template::jinja::compat::is_space;
use crate::variables::{Context, Variables};

/// Where results are read and rendered.
pub(super) struct Bench<'b> {
    pub(super) book: &'b Book,
    pub(super) source: &'b Prepared,
    pub(super) target: Dialect,
    pub(super) category: &'b str,
    pub(super) context: Arc<Context>,
}

/// Values for one render.
type Sample = Map<String, Json>;

impl Bench<'_> {
    /// Whether files say what a draft says, behind a prefix, as far as that can be told of the draft alone. White space around
    /// the text does not count. `is_vague` says that only plain words show as they did, `is_forgiven` that a template may say
    /// something else for reasons that are told.
    pub(super) fn says(
        &self,
        draft: &Draft,
        files: &[OutFile],
        prefix: &str,
        is_vague: bool,
        is_forgiven: bool,
    ) -> Result<bool> {
        let prepared = match self.read(draft, files) {
            Err(error) if self.is_missing_include(&error) => return Ok(true),
            read => read?,
        };
        let Ok(pieces) = draft.pieces() else {
            // More than words: the source is the only one that knows what it says.
            let samples = if is_vague { vec![plain(draft)] } else { samples(draft) };
            let difference = self.compare(draft, &prepared, prefix, &samples)?;
            return Ok(difference.is_none() || is_forgiven || self.has_references());
        };
        for sample in samples(draft) {
            let texts: Sample = sample.iter().map(|(name, value)| (name.clone(), text_of(value))).collect();
            let Some(expected) = expand(draft, &pieces, &texts) else { continue };
            let said = said(&prepared, &texts, &self.context, true)?;
            let expected = format!("{prefix}{}", expected.trim_matches(is_space));
            // A heading with nothing below it has no empty line behind it.
            if said.trim_matches(is_space) != expected.trim_end_matches(is_space) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reads and renders the result. Whatever is different from the source and has not been told is told; how many renders were
    /// compared is returned.
    pub(super) fn check(
        &self,
        draft: &Draft,
        files: &[OutFile],
        prefix: &str,
        report: &mut Report,
    ) -> Result<usize> {
        let prepared = match self.read(draft, files) {
            Err(error) if self.is_missing_include(&error) => {
                let message = "the result could not be rendered for a comparison: the templates that it includes are found from another place";
                report
                    .note("check", message)
                    .hint("put it where they are found, and look at it: cuebook render");
                return Ok(0);
            }
            read => read?,
        };
        if report.touches_text() {
            return Ok(0);
        }
        let is_vague = report.touches_values();
        let samples = if is_vague { vec![plain(draft)] } else { samples(draft) };
        match self.compare(draft, &prepared, prefix, &samples)? {
            // What is the same for plain words is not said to be the same for others.
            None if is_vague => Ok(0),
            None => Ok(samples.len()),
            Some(difference) => {
                let message = format!("the rendered text is not the same: {difference}");
                let hint = match self.has_references() {
                    true => {
                        "included templates lose their last newline in a template, and keep it elsewhere: write `-` at the tags, as in {%- include … -%}"
                    }
                    false => "look at both with cuebook render; if nothing explains it, it is a bug",
                };
                report.changed("text", message).hint(hint).in_text();
                Ok(0)
            }
        }
    }

    /// Whether a result cannot be read because it lies elsewhere than the templates that it includes.
    fn is_missing_include(&self, error: &Error) -> bool {
        error.code() == Code::MissingInclude && self.has_references()
    }

    fn has_references(&self) -> bool {
        self.source.outline().names().iter().any(|names| !names.references.is_empty())
    }

    /// The first difference between renders of both.
    fn compare(
        &self,
        draft: &Draft,
        result: &Prepared,
        prefix: &str,
        samples: &[Sample],
    ) -> Result<Option<String>> {
        for sample in samples {
            // A source that cannot be rendered with values that were made up says nothing.
            let before: Sample = sample
                .iter()
                .map(|(name, value)| {
                    let old = draft.renamed.iter().find(|(_, new)| *new == name).map_or(name, |(old, _)| old);
                    (old.clone(), value.clone())
                })
                .collect();
            let Ok(expected) = said(self.source, &before, &self.context, false) else { continue };
            let found = said(result, sample, &self.context, true)?;
            let expected = format!("{prefix}{}", expected.trim_matches(is_space));
            let (found, expected) = (found.trim_matches(is_space), expected.trim_end_matches(is_space));
            if found != expected {
                let at = found.bytes().zip(expected.bytes()).take_while(|(one, other)| one == other).count();
                let excerpt = |text: &str| {
                    text.chars()
                        .skip(text.get(..at).map_or(0, |text| text.chars().count()))
                        .take(30)
                        .collect::<String>()
                };
                return Ok(Some(format!(
                    "at byte {at} it is {:?}, where it was {:?}",
                    excerpt(found),
                    excerpt(expected)
                )));
            }
        }
        Ok(None)
    }

    fn read(&self, draft: &Draft, files: &[OutFile]) -> Result<Prepared> {
        let scratch = Scratch::new()?;
        let folder = match self.target {
            Dialect::Template => scratch.0.join(&draft.id),
            Dialect::Directive => scratch.0.join(".ai/directives").join(self.category),
            Dialect::Prompty | Dialect::Sections => scratch.0.clone(),
        };
        for file in files {
            // Nobody needs it when this process is gone, so that nothing waits for a disk.
            let written = std::fs::create_dir_all(&folder)
                .and_then(|()| std::fs::write(folder.join(&file.path), file.text.as_bytes()));
            written.map_err(|error| files::write_error(&file.path, &error))?;
        }
        let path = match (self.target, files) {
            (Dialect::Template, _) | (_, []) => folder,
            (_, [file, ..]) => folder.join(&file.path),
        };
        let library = self.book.library();
        let found = library.find(&path.to_string_lossy())?;
        let language = crate::variables::Scope::language(&self.context).to_owned();
        self.book.prepare_found(found, &language, Mode::Lenient, &library.config()?, None)
    }
}

/// What a prompt says with some values: the text of its one message; of several, all of the text.
fn said(prepared: &Prepared, sample: &Sample, context: &Arc<Context>, is_result: bool) -> Result<String> {
    if let Some(directive) = prepared.directive() {
        let body = directive.fill(sample)?.body()?.text;
        let (preamble, body) = (directive.shown_preamble(), body.trim_matches(is_space));
        return Ok(match (preamble.is_empty(), body.is_empty()) {
            (true, _) => body.to_owned(),
            (false, true) => preamble,
            (false, false) => format!("{preamble}\n\n{body}"),
        });
    }
    let rendered = prepared.render(&Variables::from_json(sample), context)?;
    if prepared.prompt().dialect == Dialect::Prompty {
        return match rendered.messages()?.as_slice() {
            [message] => Ok(message.texts().collect()),
            // A draft is one message, so that a result of several is never the same.
            several if is_result => Ok(format!("{} messages", several.len())),
            _ => Ok(rendered.into_text()),
        };
    }
    Ok(rendered.into_text())
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
                    (None, Absent::Nothing) => {}
                    (None, Absent::Shows(text)) => out.push_str(text),
                    (None, Absent::Fails) => return None,
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

/// Values that were made up: all of them, only what is required, and texts that look like syntax everywhere.
fn samples(draft: &Draft) -> Vec<Sample> {
    let hostile = "x\nuser:\n# Heading\n```\n{{ y }} {% if %} $z ${z} {input:z} <b>&amp;</b> \\ \" y";
    let names = names(draft);
    let sample = |round: usize| -> Sample {
        let value = |(name, kind, need, strict): &(String, Type, Need, bool)| {
            if round == 1 && *need != Need::Required {
                return None;
            }
            let value = match kind {
                Type::String | Type::Any if round == 2 && !strict => json!(hostile),
                Type::String | Type::Any => json!(format!("‹{name}›")),
                Type::Integer => json!(7 + round),
                Type::Number => json!(1.5),
                Type::Boolean => json!(round == 0),
                Type::List if round == 2 => json!([]),
                Type::List => json!(["a", "b"]),
                Type::Object => json!({"a": "b"}),
            };
            Some((name.clone(), value))
        };
        names.iter().filter_map(value).collect()
    };
    (0..3).map(sample).collect()
}

/// Values that show in every notation as they do in every other one.
fn plain(draft: &Draft) -> Sample {
    let value = |(name, kind, _, _): (String, Type, Need, bool)| {
        let value = match kind {
            Type::String | Type::Any => json!(format!("‹{name}›")),
            Type::Integer | Type::Number => json!(7),
            Type::List => json!([]),
            Type::Object => json!({}),
            // There is no yes that everybody writes alike.
            Type::Boolean => return None,
        };
        Some((name, value))
    };
    names(draft).into_iter().filter_map(value).collect()
}

/// All that a draft mentions: its name, what it is, whether it must be there, and whether only some values will do.
fn names(draft: &Draft) -> Vec<(String, Type, Need, bool)> {
    let mut names: Vec<(String, Type, Need, bool)> =
        draft.inputs.iter().map(|input| (input.name.clone(), input.kind, input.need, input.strict)).collect();
    for name in draft.words.iter().flat_map(|chunk| &chunk.names) {
        if draft.input(name).is_none() {
            names.push((name.clone(), Type::Any, Need::Optional, false));
        }
    }
    names
}

/// A folder for a moment.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> Result<Scratch> {
        let mut digits = [0_u8; 8];
        let folder = getrandom::fill(&mut digits)
            .map_err(std::io::Error::other)
            .and_then(|()| {
                let digits: String = digits.iter().map(|byte| format!("{byte:02x}")).collect();
                let folder = std::env::temp_dir().join(format!("cuebook-{digits}"));
                make(&folder)?;
                Ok(folder)
            })
            .map_err(|error| {
                let message = format!("there is no room to read the result in: {error}");
                let hint = "TMPDIR says where temporary files are made";
                Error::new(ErrorKind::Io, Diagnostic::new(Code::WriteFailed, message).hint(hint))
            })?;
        Ok(Scratch(folder))
    }
}

/// Makes a folder that nobody else reads.
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
