//! Knowledge: Markdown with a block of YAML that says what it is, or YAML alone.
//!
//! ````text
//! <!-- rye:signed:… -->
//! ```yaml
//! name: deploying
//! title: How we deploy
//! ```
//! Everything behind the block is what there is to know.
//! ````
//!
//! Four forms are read: the block; front matter between lines `---`, which most tools for Markdown write; a file of YAML; and plain
//! Markdown, whose text is the body. (Rye refuses the second inside of an answer that says success, and finds no body in the last.)

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::directive::stripped;
use super::fence::{self, Found};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::node::{Data, to_object};
use crate::source::Source;
use crate::yaml;

/// A piece of knowledge.
#[derive(Debug, Clone)]
pub struct Knowledge {
    /// What its YAML says.
    pub data: Map<String, Json>,
    /// The file.
    pub source: Arc<Source>,
    body: Range<usize>,
}

/// Reads a piece of knowledge.
///
/// ```
/// use cuebook::{dialect::knowledge, source::Source};
///
/// let text = "```yaml\nname: tea\ntitle: Tea\n```\n\n# Tea\n\nFour minutes.\n";
/// let knowledge = knowledge::read(&Source::new("tea.md", text))?;
/// assert_eq!((knowledge.text("title"), knowledge.body()), (Some("Tea"), "# Tea\n\nFour minutes."));
/// # Ok::<(), cuebook::Error>(())
/// ```
pub fn read(source: &Arc<Source>) -> Result<Knowledge> {
    let text = source.text();
    let knowledge =
        |data, body: Range<usize>| Knowledge { data, source: source.clone(), body: stripped(text, body) };
    if let Some((inside, after)) = front_matter(source)? {
        let data = table(source, inside)?.unwrap_or_default();
        return Ok(knowledge(data, after..text.len()));
    }
    match fence::find(text, "yaml") {
        Found::Block(block) => {
            let data = table(source, block.inside)?.unwrap_or_default();
            Ok(knowledge(data, block.after..text.len()))
        }
        Found::Unclosed(opened) => {
            let diagnostic = Diagnostic::new(Code::BadKnowledge, "the YAML block is not closed")
                .at(source.place(opened))
                .hint("close it with a line ``` without indentation");
            Err(Error::new(ErrorKind::PromptRead, diagnostic))
        }
        Found::Nothing => {
            let start = after_signature(text);
            let is_yaml = [".yaml", ".yml"].iter().any(|end| source.name().ends_with(end));
            match table(source, start..text.len()) {
                Ok(Some(data)) if is_yaml || !is_prose(&text[start..], &data) => {
                    Ok(knowledge(data, text.len()..text.len()))
                }
                // What is to be YAML must be; anything else is text that happens not to be.
                Err(error) if is_yaml => Err(error),
                Ok(None) if is_yaml && !text[start..].trim().is_empty() => {
                    let diagnostic = Diagnostic::new(Code::BadKnowledge, "the YAML must be a map")
                        .at(source.place(start..start + 1))
                        .hint("write `key: value`, one per line");
                    Err(Error::new(ErrorKind::PromptRead, diagnostic))
                }
                _ => Ok(knowledge(Map::new(), start..text.len())),
            }
        }
    }
}

/// The keys and values of a part of a file; `None` if it is YAML of another shape.
fn table(source: &Arc<Source>, range: Range<usize>) -> Result<Option<Map<String, Json>>> {
    let root = yaml::Document::parse(source, range, Code::BadKnowledge, ErrorKind::PromptRead)?.into_root();
    Ok(match &root.data {
        Data::Map(entries) => Some(to_object(entries)),
        _ => None,
    })
}

/// Whether a text is Markdown that happens to be YAML: under a heading, which is a comment there, or with words before a colon.
fn is_prose(text: &str, data: &Map<String, Json>) -> bool {
    text.trim_start().starts_with('#') || data.keys().any(|key| key.contains(char::is_whitespace))
}

/// Where the text begins behind a signature.
fn after_signature(text: &str) -> usize {
    let line = text.find('\n').map_or(text.len(), |end| end + 1);
    let is_signature = ["<!-- rye:signed:", "# rye:signed:"].iter().any(|start| text.starts_with(start));
    if is_signature { line } else { 0 }
}

/// The front matter between lines `---`, if the file begins with one, and where the text begins behind it.
fn front_matter(source: &Arc<Source>) -> Result<Option<(Range<usize>, usize)>> {
    let text = source.text();
    let start = after_signature(text);
    let start = start + (text[start..].len() - text[start..].trim_start_matches('\n').len());
    let mut lines = text[start..].split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| line.trim_end() == "---") else { return Ok(None) };
    let inside = start + first.len();
    let mut at = inside;
    for line in lines {
        if line.trim_end() == "---" {
            return Ok(Some((inside..at, at + line.len())));
        }
        at += line.len();
    }
    // A line of dashes in a text without front matter is a rule across the page.
    let is_table = table(source, inside..text.len()).is_ok_and(|data| data.is_some());
    if !is_table {
        return Ok(None);
    }
    let diagnostic = Diagnostic::new(Code::BadKnowledge, "the front matter is not closed")
        .at(source.place(start..start + 3))
        .label("opened here")
        .hint("close it with another line `---`");
    Err(Error::new(ErrorKind::PromptRead, diagnostic))
}

impl Knowledge {
    /// What there is to know, without white space around it.
    pub fn body(&self) -> &str {
        &self.source.text()[self.body.clone()]
    }

    /// Where that begins in the file.
    pub(crate) fn body_start(&self) -> usize {
        self.body.start
    }

    /// The whole file.
    pub fn raw(&self) -> &str {
        self.source.text()
    }

    /// A text of its data.
    pub fn text(&self, key: &str) -> Option<&str> {
        self.data.get(key).and_then(Json::as_str)
    }

    /// Its data, with `body` and `raw` among them.
    pub fn to_json(&self) -> Json {
        let mut object = self.data.clone();
        object.insert("body".into(), self.body().into());
        // The reference prefers the file's own `raw`, which is hardly intended.
        object.insert("raw".into(), self.raw().into());
        Json::Object(object)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(name: &str, text: &str) -> Result<Knowledge> {
        read(&Source::new(name, text))
    }

    #[test]
    fn four_forms_are_read() {
        for (text, name, body) in [
            ("<!-- rye:signed:x -->\n```yaml\nname: k\n```\n\n# H\n\ntext\n", Some("k"), "# H\n\ntext"),
            ("<!-- rye:signed:x -->\n---\nname: k\n---\n\nbody", Some("k"), "body"),
            ("name: k\n", Some("k"), ""),
            ("# Hello\n\nplain text: with colons\n", None, "# Hello\n\nplain text: with colons"),
            ("# To do\n\nTODO: tea\n", None, "# To do\n\nTODO: tea"),
            ("Please note: tea\n", None, "Please note: tea"),
            ("<!-- rye:signed:x -->\nHello\n", None, "Hello"),
            ("---\n\nA rule, and text.", None, "---\n\nA rule, and text."),
            ("```yaml\n- a\n```\nbody", None, "body"),
            ("", None, ""),
        ] {
            let knowledge = read_text("k.md", text).unwrap();
            assert_eq!((knowledge.text("name"), knowledge.body()), (name, body), "{text:?}");
            assert_eq!(knowledge.to_json()["raw"], text);
        }
    }

    #[test]
    fn a_block_in_an_example_is_text() {
        let text = "```yaml\nname: k\n```\nWrite:\n````\n```yaml\nname: other\n```\n````\n";
        let knowledge = read_text("k.md", text).unwrap();
        assert_eq!(knowledge.text("name"), Some("k"));
        let knowledge = read_text("k.md", "Write:\n````\n```yaml\nname: other\n```\n````\n").unwrap();
        assert_eq!(knowledge.text("name"), None);
    }

    #[test]
    fn unreadable_parts_are_reported_with_their_place() {
        let error = |name, text| read_text(name, text).unwrap_err().diagnostic().to_string();
        assert_eq!(
            error("k.md", "```yaml\na: [1\n```\nbody"),
            "k.md:2:4: invalid YAML: `[` is not closed [CB327]"
        );
        assert_eq!(error("k.md", "---\na: 1\n"), "k.md:1:1: the front matter is not closed [CB327]");
        assert_eq!(error("k.md", "x\n```yaml\na: 1\n"), "k.md:2:1: the YAML block is not closed [CB327]");
        assert_eq!(error("k.yaml", "- a\n"), "k.yaml:1:1: the YAML must be a map [CB327]");
    }
}
