//! Reads a file of cases: Markdown with a heading per case and blocks that say what goes in and what comes out.
//!
//! ````text
//! # Anything                    what stands before the first case holds for all of them
//! ## The name of a case
//! ```yaml inputs                variables
//! ```yaml settings              how it is rendered, and limits
//! ```text expected              the whole text
//! ```json messages              messages, or a part of what they say
//! ```text contains              a snippet per line that must be there
//! ```text absent                a snippet per line that must not be there
//! ````
//!
//! A block with a language and nothing else is prose. An unknown word is an error: a check that never runs
//! is worse than none.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::settings::Settings;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, did_you_mean, nearest};
use crate::node::{Data, Node};
use crate::source::{Place, Source};
use crate::yaml::Document;

/// The words that make a block one of ours.
const BLOCKS: [&str; 6] = ["inputs", "settings", "expected", "messages", "contains", "absent"];

/// What a case says, or what holds for all cases of a file.
#[derive(Debug, Clone, Default)]
pub(super) struct CaseContent {
    pub(super) inputs: Map<String, Json>,
    /// The names of those inputs that the case itself gives.
    own: HashSet<String>,
    pub(super) settings: Settings,
    pub(super) expected: Option<Block>,
    pub(super) messages: Option<(Json, Place)>,
    pub(super) contains: Vec<(String, Place)>,
    pub(super) absent: Vec<(String, Place)>,
}

/// A block whose text is compared, and written anew by an update.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// With its fences.
    pub(super) whole: Range<usize>,
    pub(super) inside: Range<usize>,
    /// What stands behind the fence.
    pub(super) info: String,
    pub(super) place: Place,
}

/// A case.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) name: String,
    /// Its heading.
    pub(super) place: Place,
    pub(super) said: CaseContent,
    /// Where it ends, without the empty lines behind it.
    pub(super) end: usize,
}

/// The cases of a file.
pub(super) fn read(source: &Arc<Source>) -> Result<Vec<Case>> {
    let mut problems: Vec<Diagnostic> = Vec::new();
    let mut shared = CaseContent::default();
    let mut cases: Vec<Case> = Vec::new();
    for part in parts(source, &mut problems) {
        match part {
            Part::Heading { name, range } => {
                let place = source.place(range.clone());
                if name.is_empty() {
                    problems.push(wrong("the case has no name", place.clone(), "write the name after `##`"));
                }
                if let Some(other) = cases.iter().find(|case| case.name == name) {
                    let diagnostic =
                        wrong(format!("duplicate case `{name}`"), place.clone(), "rename one of them");
                    problems.push(diagnostic.related(other.place.clone(), "the other case"));
                }
                // What holds for all is said before the first of them.
                let said = CaseContent { own: HashSet::new(), ..shared.clone() };
                cases.push(Case { name, place, said, end: range.end });
            }
            Part::Block { what, block } => {
                let said = match cases.last_mut() {
                    Some(case) => {
                        case.end = block.whole.end;
                        &mut case.said
                    }
                    None if what == "expected" || what == "messages" => {
                        let hint = "move the block below the heading of its case";
                        problems.push(wrong("this block must belong to a case", block.place, hint));
                        continue;
                    }
                    None => &mut shared,
                };
                if let Err(error) = said.take(what, block, source) {
                    problems.extend(error.into_diagnostics());
                }
            }
            Part::Prose { end } => {
                if let Some(case) = cases.last_mut() {
                    case.end = end;
                }
            }
        }
    }
    if cases.is_empty() && problems.is_empty() {
        let hint =
            Hint::run("start each case with a heading, as in `## greets by name`", "cuebook help testing");
        problems
            .push(Diagnostic::new(Code::BadCases, "the file has no cases").file(source.name()).hint(hint));
    }
    problems.sort_by_key(|problem| problem.place.as_ref().map_or(0, |place| place.range().start));
    if problems.is_empty() { Ok(cases) } else { Err(Error::all(ErrorKind::Config, problems)) }
}

impl CaseContent {
    fn take(&mut self, what: &str, block: Block, source: &Arc<Source>) -> Result<()> {
        match what {
            "inputs" => {
                let node = yaml(source, &block)?;
                let Data::Map(entries) = &node.data else {
                    return match node.is_null() {
                        true => Ok(()),
                        false => Err(refuse(
                            "`inputs` must be a map of names and values",
                            &node,
                            "write `name: value`",
                        )),
                    };
                };
                for (key, value) in entries {
                    if self.settings.unset.iter().any(|(name, _)| *name == key.name) {
                        return Err(given_and_unset(&key.name, key.place.clone()));
                    }
                    self.inputs.insert(key.name.clone(), value.to_json());
                    self.own.insert(key.name.clone());
                }
            }
            "settings" => {
                self.settings.read(&yaml(source, &block)?)?;
                self.unset()?;
            }
            "expected" => self.expected = Some(block),
            "messages" => {
                let node = yaml(source, &block)?;
                if !matches!(node.data, Data::List(_)) {
                    let hint = "write [{\"role\": \"system\"}, …]; the content of a message is optional";
                    return Err(refuse("`messages` must be a list", &node, hint));
                }
                self.messages = Some((node.to_json(), block.place));
            }
            "contains" | "absent" => {
                let list = if what == "contains" { &mut self.contains } else { &mut self.absent };
                let mut at = block.inside.start;
                for line in source.text()[block.inside.clone()].split_inclusive('\n') {
                    let text = line.trim_end_matches('\n');
                    if !text.trim().is_empty() {
                        list.push((text.to_owned(), source.place(at..at + text.len())));
                    }
                    at += line.len();
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Takes away the inputs of the file that the case does not have.
    fn unset(&mut self) -> Result<()> {
        for (name, place) in &self.settings.unset {
            if self.own.contains(name) {
                return Err(given_and_unset(name, place.clone()));
            }
            if self.inputs.shift_remove(name).is_none() {
                let near = did_you_mean(&nearest(name, self.inputs.keys().map(String::as_str)));
                let hint = near.unwrap_or_else(|| {
                    "`unset` is for inputs that the file gives before its first case".into()
                });
                let message = format!("there is no input `{name}` to unset");
                return Err(Error::new(ErrorKind::Config, wrong(message, place.clone(), hint)));
            }
        }
        Ok(())
    }

    /// Whether it says anything about what comes out.
    pub(super) fn expects_something(&self) -> bool {
        self.expected.is_some()
            || self.messages.is_some()
            || !self.contains.is_empty()
            || !self.absent.is_empty()
            || self.settings.expects_something()
    }
}

fn given_and_unset(name: &str, place: Place) -> Error {
    let message = format!("the case gives the input `{name}` and unsets it");
    Error::new(ErrorKind::Config, wrong(message, place, "leave one of them out"))
}

fn yaml(source: &Arc<Source>, block: &Block) -> Result<Node> {
    Ok(Document::parse(source, block.inside.clone(), Code::BadCases, ErrorKind::Config)?.into_root())
}

pub(super) fn wrong(message: impl Into<String>, place: Place, hint: impl Into<Hint>) -> Diagnostic {
    Diagnostic::new(Code::BadCases, message).at(place).hint(hint)
}

pub(super) fn refuse(message: impl Into<String>, node: &Node, hint: impl Into<Hint>) -> Error {
    let label = format!("this is {}", node.describe());
    Error::new(ErrorKind::Config, wrong(message, node.opening(), hint).label(label))
}

/// What a file is made of.
enum Part {
    /// `## name`
    Heading { name: String, range: Range<usize> },
    /// One of our blocks.
    Block { what: &'static str, block: Block },
    /// Whatever else says something, and where it ends.
    Prose { end: usize },
}

fn parts(source: &Arc<Source>, problems: &mut Vec<Diagnostic>) -> Vec<Part> {
    let text = source.text();
    let mut parts = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let line = next_line(text, at);
        let bare = text[line.clone()].trim_end();
        let start = at;
        at = line.end;
        let length = fence(bare);
        if length < 3 {
            match bare.strip_prefix("## ").or((bare == "##").then_some("")) {
                Some(name) => parts
                    .push(Part::Heading { name: name.trim().to_owned(), range: start..start + bare.len() }),
                None if !bare.is_empty() => parts.push(Part::Prose { end: line.end }),
                None => {}
            }
            continue;
        }
        let inside = at;
        let closing = loop {
            if at >= text.len() {
                break None;
            }
            let line = next_line(text, at);
            let bare = text[line.clone()].trim_end();
            let begins = at;
            at = line.end;
            if closes(bare, &text[start..start + length]) {
                break Some(begins);
            }
        };
        let opened = source.place(start..start + bare.len());
        let Some(end) = closing else {
            problems.push(wrong(
                "the block is not closed",
                opened,
                format!("close it with {}", &bare[..length]),
            ));
            break;
        };
        let info = bare[length..].trim().to_owned();
        let Some(word) = info.split_whitespace().nth(1) else {
            parts.push(Part::Prose { end: at });
            continue;
        };
        let Some(what) = BLOCKS.into_iter().find(|known| *known == word) else {
            let near = did_you_mean(&nearest(word, BLOCKS));
            let hint = near.unwrap_or_else(|| {
                format!("known blocks: {}; a block with only a language is prose", BLOCKS.join(", "))
            });
            problems.push(wrong(format!("unknown block `{word}`"), opened, hint));
            continue;
        };
        let block = Block { whole: start..at, inside: inside..end, info, place: opened };
        parts.push(Part::Block { what, block });
    }
    parts
}

fn next_line(text: &str, at: usize) -> Range<usize> {
    at..text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

/// How long the fence is that a line begins with.
fn fence(line: &str) -> usize {
    let length = |mark: u8| line.bytes().take_while(|byte| *byte == mark).count();
    length(b'`').max(length(b'~'))
}

/// Whether a line closes a block that was opened with this fence.
fn closes(line: &str, opened: &str) -> bool {
    line.starts_with(opened) && line.bytes().all(|byte| opened.as_bytes().first() == Some(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Case>> {
        read(&Source::new("p.tests.md", text))
    }

    #[test]
    fn a_case_has_a_name_and_blocks_and_takes_what_holds_for_all() {
        let cases = read_text(
            "# Tests\n\n```yaml inputs\nname: Ada\nage: 3\n```\n\n## one\n\nProse.\n\n```text contains\nHi\n\nAda\n```\n\
             ## two\n```yaml inputs\nname: Bo\n```\n````text expected\n```\ncode\n```\n````\n```json\n{}\n```\n\n",
        )
        .unwrap();
        assert_eq!(cases.len(), 2);
        assert_eq!((cases[0].name.as_str(), cases[0].place.line()), ("one", 8));
        assert_eq!(cases[0].said.inputs["name"], "Ada");
        let snippets: Vec<(&str, usize)> =
            cases[0].said.contains.iter().map(|(text, place)| (text.as_str(), place.line())).collect();
        assert_eq!(snippets, [("Hi", 13), ("Ada", 15)]);
        assert_eq!((&cases[1].said.inputs["name"], &cases[1].said.inputs["age"]), (&"Bo".into(), &3.into()));
        let expected = cases[1].said.expected.clone().unwrap();
        assert_eq!(expected.inside.len(), "```\ncode\n```\n".len());
        assert!(cases[1].said.contains.is_empty());
    }

    #[test]
    fn mistakes_are_reported_with_line_and_suggestion() {
        let text = "## one\n```text expeted\nHi\n```\n## one\n```yaml settings\nmax_token: 3\nas: txt\n```\n## two\n```text expected\n";
        let error = read_text(text).unwrap_err();
        assert_eq!(
            crate::json::shown(error.diagnostics()),
            "\
error p.tests.md:2:1: unknown block `expeted` [CB515]
  at ```text expeted -- (no label)
  help: did you mean `expected`?
error p.tests.md:5:1: duplicate case `one` [CB515]
  at ## one -- (no label)
  and p.tests.md:1:1 ## one -- the other case
  help: rename one of them
error p.tests.md:7:1: unknown setting `max_token` [CB515]
  at max_token -- (no label)
  help: did you mean `max_tokens`?
error p.tests.md:8:5: unknown output format `txt` [CB515]
  at txt -- (no label)
  help: did you mean `text`?
error p.tests.md:11:1: the block is not closed [CB515]
  at ```text expected -- (no label)
  help: close it with ```
"
        );
        let error = read_text("Nothing.\n").unwrap_err();
        assert_eq!(error.diagnostic().message, "the file has no cases");
    }
}
