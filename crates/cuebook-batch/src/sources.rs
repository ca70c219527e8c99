//! Which sentences of which files a row uses, so that a comparison of two outputs can name the sentence that caused a change.
//!
//! A row has a hash of its sentences in the column `sources`. A file beside the output, `.NAME.sources`, has the sentences of each hash: a
//! line of JSON for each. It only grows, so it also explains copies of earlier outputs.

use std::collections::{HashMap, HashSet};
use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cuebook::{Origin, Rendered, Result, files};
use serde_json::{Value as Json, json};

use crate::key::short_hash;

/// The most different sets of sentences that one output has; the rows of others say nothing about theirs.
const MAX_SETS: usize = 10_000;
/// The most bytes of the file that are read.
const FILE_BYTES: u64 = 1 << 30;
/// The most bytes of a sentence that are kept.
const SENTENCE_BYTES: usize = 1000;

/// A sentence that an author wrote, and where.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Sentence {
    /// The judge whose prompt has it; empty for the prompt of the batch.
    pub judge: String,
    /// The file.
    pub file: String,
    /// Its line in the file.
    pub line: usize,
    /// The sentence.
    pub text: String,
}

impl Sentence {
    fn to_json(&self) -> Json {
        json!([self.judge, self.file, self.line, self.text])
    }

    fn read(json: &Json) -> Option<Sentence> {
        let text = |index: usize| json[index].as_str().map(str::to_owned);
        let line = usize::try_from(json[2].as_u64()?).ok()?;
        Some(Sentence { judge: text(0)?, file: text(1)?, line, text: text(3)? })
    }
}

/// The file with the sentences of an output.
pub(crate) fn path_of(output: &Path) -> PathBuf {
    let name = output.file_name().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!(".{name}.sources"))
}

/// Writes the sentences that rows use.
pub(crate) struct Sources {
    name: String,
    state: Mutex<State>,
}

struct State {
    file: File,
    /// Hashes that the file has.
    written: HashSet<String>,
    /// Hashes of the sentences by a number that is found without making texts.
    known: HashMap<u64, String>,
}

impl Sources {
    /// Opens the file beside an output.
    pub(crate) fn open(output: &Path) -> Result<Sources> {
        let path = path_of(output);
        let name = path.to_string_lossy().into_owned();
        let written = read(&path)?.into_keys().collect();
        let open = || -> io::Result<File> {
            files::plain_target(&path)?;
            let mut file = OpenOptions::new().create(true).append(true).read(true).open(&path)?;
            let length = file.seek(SeekFrom::End(0))?;
            if length > 0 {
                // A process that was killed may have left a line without its end.
                let mut last = [0];
                file.seek(SeekFrom::Start(length - 1))?;
                file.read_exact(&mut last)?;
                if last != *b"\n" {
                    file.write_all(b"\n")?;
                }
            }
            Ok(file)
        };
        let file = open().map_err(|error| files::write_error(&name, &error))?;
        Ok(Sources { name, state: Mutex::new(State { file, written, known: HashMap::new() }) })
    }

    /// Notes the sentences of renders, each with the judge that it is for; says their hash.
    pub(crate) fn note(&self, renders: &[(&str, &Rendered)]) -> Result<Option<String>> {
        let number = number(renders);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hash) = state.known.get(&number) {
            return Ok(Some(hash.clone()));
        }
        if state.known.len() >= MAX_SETS {
            return Ok(None);
        }
        let sentences: Json = renders
            .iter()
            .flat_map(|(judge, rendered)| sentences(judge, rendered))
            .map(|one| one.to_json())
            .collect();
        let hash = short_hash(&[sentences.to_string().as_bytes()]);
        if !state.written.contains(&hash) {
            let line = format!("{}\n", json!({"sources": hash, "sentences": sentences}));
            let written = state.file.write_all(line.as_bytes());
            written.map_err(|error| files::write_error(&self.name, &error))?;
            state.written.insert(hash.clone());
        }
        state.known.insert(number, hash.clone());
        Ok(Some(hash))
    }

    /// Waits until all of them are on disk.
    pub(crate) fn finish(&self) -> Result<()> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.file.sync_data().map_err(|error| files::write_error(&self.name, &error))
    }
}

/// A number for the sentences of renders: it is the same for the same places in files.
fn number(renders: &[(&str, &Rendered)]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for (judge, rendered) in renders {
        judge.hash(&mut hasher);
        for span in rendered.spans() {
            if let Origin::Literal { source, range, .. } = &span.origin {
                source.name().hash(&mut hasher);
                source.file_range(range.clone()).hash(&mut hasher);
                range.len().hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}

/// The sentences that authors wrote of a render, each once, in the order of the text.
fn sentences(judge: &str, rendered: &Rendered) -> Vec<Sentence> {
    let mut found: Vec<Sentence> = Vec::new();
    let mut seen = HashSet::new();
    for span in rendered.spans() {
        let Origin::Literal { source, range, .. } = &span.origin else { continue };
        let Some(text) = source.text().get(range.clone()) else { continue };
        for (at, sentence) in split(text) {
            let (line, _) = source.line_column(range.start + at);
            let sentence = Sentence {
                judge: judge.to_owned(),
                file: source.name().to_owned(),
                line,
                text: cut(sentence).to_owned(),
            };
            if seen.insert(sentence.clone()) {
                found.push(sentence);
            }
        }
    }
    found
}

fn cut(text: &str) -> &str {
    match text.char_indices().find(|(at, letter)| at + letter.len_utf8() > SENTENCE_BYTES) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// The sentences of a text and where each begins. A line ends a sentence too.
fn split(text: &str) -> Vec<(usize, &str)> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut add = |start: usize, end: usize| {
        let sentence = text[start..end].trim();
        if !sentence.is_empty() {
            let at = start + text[start..end].len() - text[start..end].trim_start().len();
            sentences.push((at, sentence));
        }
    };
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        let next = letters.peek().map(|(_, next)| *next);
        let ends = matches!(letter, '.' | '!' | '?') && next.is_some_and(char::is_whitespace);
        if ends || matches!(letter, '\n' | '。' | '！' | '？') {
            let end = at + letter.len_utf8();
            add(start, end);
            start = end;
        }
    }
    add(start, text.len());
    sentences
}

/// The sentences of each hash that the file of an output has; none if there is no such file.
pub(crate) fn read(path: &Path) -> Result<HashMap<String, Vec<Sentence>>> {
    let name = path.to_string_lossy();
    let failed = |error: &io::Error| files::io_error(&name, error);
    let mut found = HashMap::new();
    if files::look(path).map_err(|error| failed(&error))?.is_none() {
        return Ok(found);
    }
    let file = File::open(path).map_err(|error| failed(&error))?;
    for line in BufReader::new(file.take(FILE_BYTES)).split(b'\n') {
        let line = line.map_err(|error| failed(&error))?;
        // A process that was killed leaves half a line, which no row names.
        let Ok(line) = serde_json::from_slice::<Json>(&line) else { continue };
        if let (Some(hash), Some(sentences)) = (line["sources"].as_str(), line["sentences"].as_array()) {
            found.insert(hash.to_owned(), sentences.iter().filter_map(Sentence::read).collect());
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_sentences_and_their_places() {
        let text = "  Be brief. Use 3.5 words!\nReally?";
        assert_eq!(split(text), [(2, "Be brief."), (12, "Use 3.5 words!"), (27, "Really?")]);
        assert_eq!(split(" \n "), []);
        assert_eq!(split("短い。長い"), [(0, "短い。"), (9, "長い")]);
    }
}
