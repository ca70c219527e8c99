//! The front matter of a `.prompt` file, and its template.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::schema::map_of;
use super::{picoschema, wrong};
use crate::error::{Code, Diagnostic, ErrorKind, Result, Severity, did_you_mean, nearest};
use crate::node::{Data, Node};
use crate::source::Source;
use crate::yaml;

/// The keys that dotprompt knows.
const KEYS: [&str; 12] = [
    "config",
    "description",
    "ext",
    "input",
    "model",
    "name",
    "output",
    "raw",
    "toolDefs",
    "tools",
    "variant",
    "version",
];

/// A file, taken apart.
#[derive(Debug)]
pub struct Front {
    /// The front matter; null if there is none.
    pub(super) root: Node,
    /// The template.
    pub template: Arc<Source>,
    has_carriage_returns: bool,
}

impl Front {
    /// Takes a file apart. The template behind front matter has no white space around it.
    pub fn read(source: &Arc<Source>) -> Result<Front> {
        let has_carriage_returns = source.has_carriage_returns();
        let Some((front, body)) = split(source)? else {
            let root = Node::new(Data::Null, source.place(0..0));
            return Ok(Front { root, template: source.clone(), has_carriage_returns });
        };
        let text = &source.text()[body.clone()];
        let start = body.start + text.len() - text.trim_start().len();
        let template = Source::inside(source, start..(body.start + text.trim_end().len()).max(start));
        let document = yaml::Document::parse(source, front, Code::BadFrontMatter, ErrorKind::PromptRead)?;
        let root = document.into_root();
        match &root.data {
            Data::Map(_) | Data::Null => Ok(Front { root, template, has_carriage_returns }),
            _ => {
                let found = root.describe();
                Err(wrong(
                    root.opening(),
                    format!("the front matter must be a map, but is {found}"),
                    "write `model: …`, `input: …` and other keys, one per line",
                ))
            }
        }
    }

    /// What is odd about the file.
    pub(super) fn notes(&self) -> Vec<Diagnostic> {
        let mut notes = Vec::new();
        let Data::Map(entries) = &self.root.data else { return self.line_ends().into_iter().collect() };
        for (key, _) in entries {
            let near = nearest(&key.name, KEYS);
            if !KEYS.contains(&key.name.as_str())
                && !key.name.contains('.')
                && let Some(hint) = did_you_mean(&near)
            {
                let message = format!("the front matter has the unknown key `{}`", key.name);
                let note = Diagnostic::new(Code::BadFrontMatter, message).severity(Severity::Warning);
                notes.push(note.at(key.place.clone()).hint(hint));
            }
        }
        notes.extend(self.line_ends());
        notes
    }

    fn line_ends(&self) -> Option<Diagnostic> {
        let message = "the file has Windows line endings, which Cuebook renders as plain newlines";
        let hint = "save it with Unix line endings; `git config core.autocrlf input` keeps Windows line endings out of the repository";
        let note = Diagnostic::new(Code::CarriageReturns, message).severity(Severity::Warning);
        self.has_carriage_returns.then(|| note.file(self.template.name()).hint(hint))
    }

    fn entries(&self) -> Map<String, Json> {
        match self.root.to_json() {
            Json::Object(entries) => entries,
            _ => Map::new(),
        }
    }

    /// What a template sees as `@metadata.prompt`: all but the input.
    pub(super) fn shown(&self) -> Json {
        let mut entries = self.entries();
        entries.shift_remove("input");
        Json::Object(entries)
    }

    /// What a list shows besides name and description.
    pub(super) fn other(&self) -> Map<String, Json> {
        let mut entries = self.entries();
        for known in ["config", "description", "input", "model", "name", "output", "toolDefs", "tools"] {
            entries.shift_remove(known);
        }
        entries
    }

    /// The front matter in the words of dotprompt: known keys with their schemas as JSON Schema, `ext` with the keys that have a
    /// namespace, and `raw`. `names` knows schemas by their names.
    pub fn to_json(&self, names: &dyn Fn(&str) -> Result<Option<Json>>) -> Result<Json> {
        let raw = self.entries();
        let mut pruned = Map::new();
        let mut ext: Map<String, Json> = Map::new();
        for (key, value) in &raw {
            if KEYS.contains(&key.as_str()) {
                pruned.insert(key.clone(), value.clone());
            } else if let Some((space, name)) = key.rsplit_once('.')
                && let Json::Object(names) = ext.entry(space).or_insert_with(|| Json::Object(Map::new()))
            {
                names.insert(name.to_owned(), value.clone());
            }
        }
        pruned.insert("ext".into(), Json::Object(ext));
        pruned.entry("config").or_insert_with(|| Json::Object(Map::new()));
        for key in ["input", "output"] {
            if let Some(node) = map_of(&self.root, key)?.and_then(|half| half.get("schema"))
                && let Some(half) = pruned.get_mut(key)
            {
                half["schema"] = picoschema::to_json_schema(node, names)?;
            }
        }
        pruned.insert("raw".into(), Json::Object(raw));
        Ok(Json::Object(pruned))
    }
}

/// The front matter and the template; `None` if there is no front matter. Blank lines and comments may stand before it.
fn split(source: &Arc<Source>) -> Result<Option<(Range<usize>, Range<usize>)>> {
    let text = source.text();
    let mut opened: Option<Range<usize>> = None;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let range = at..at + line.len();
        at = range.end;
        let is_fence = line.trim_end() == "---";
        match &opened {
            None if is_fence => opened = Some(range),
            None if line.starts_with('#') || line.trim().is_empty() => {}
            None => return Ok(None),
            Some(open) if is_fence => return Ok(Some((open.end..range.start, range.end..text.len()))),
            Some(_) => {}
        }
    }
    match opened {
        None => Ok(None),
        Some(open) => Err(wrong(
            source.place(open.start..open.start + 3),
            "the front matter is not closed",
            "write a line `---` between the front matter and the template",
        )),
    }
}
