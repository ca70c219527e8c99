//! Reads the values of a file, whatever its notation, and collects all that is wrong with them.
//!
//! A reader of one kind of file wraps a [`ValueReader`]. It knows the file's fields; this module knows none.

use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity, did_you_mean, nearest};
use crate::json::{MAX_FINDINGS, quoted};
use crate::node::{Data, Key, Node};
use crate::source::Place;

/// The notation of a file. It decides the words of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Notation {
    /// Arrays and objects.
    Json,
    /// Lists and tables.
    Toml,
    /// Lists and maps.
    Yaml,
}

impl Notation {
    /// The word for a list.
    fn list(self) -> &'static str {
        match self {
            Notation::Json => "an array",
            Notation::Toml | Notation::Yaml => "a list",
        }
    }

    /// The word for a map.
    fn map(self) -> &'static str {
        match self {
            Notation::Json => "an object",
            Notation::Toml => "a table",
            Notation::Yaml => "a map",
        }
    }

    /// How a map is written.
    fn map_hint(self) -> &'static str {
        match self {
            Notation::Json => "write {…} with its fields",
            Notation::Toml => "write `key = value`, one per line, below the name of the table in brackets",
            Notation::Yaml => "write `key: value`, one per line and indented",
        }
    }

    /// How the text is written that should be here instead of a value.
    fn text_hint(self, found: &Node) -> String {
        match (self, &found.data) {
            (Notation::Yaml, Data::Bool(_) | Data::Number(_)) => {
                format!("put it in quotes: \"{}\"", found.place.text())
            }
            (Notation::Yaml, _) => {
                "write a string after the colon; quote it if it begins with `{` or `[`".to_owned()
            }
            _ => "write a string here, or remove it".to_owned(),
        }
    }

    /// What a value is, for a message.
    pub fn describe(self, node: &Node) -> &'static str {
        match &node.data {
            Data::Null if self == Notation::Json => "null",
            Data::List(_) => self.list(),
            Data::Map(_) => self.map(),
            _ => node.describe(),
        }
    }
}

/// Reads values, and collects what is wrong, so that all of it is reported at once.
#[derive(Debug)]
pub struct ValueReader {
    code: Code,
    kind: ErrorKind,
    notation: Notation,
    hint: Option<&'static str>,
    problems: Vec<Diagnostic>,
    notes: Vec<Diagnostic>,
}

impl ValueReader {
    /// A reader of files in a notation. Whatever is wrong with one has this code and kind.
    pub fn new(code: Code, kind: ErrorKind, notation: Notation) -> ValueReader {
        ValueReader { code, kind, notation, hint: None, problems: Vec::new(), notes: Vec::new() }
    }

    /// The same reader for a file that a program writes: there is one hint for every wrong value.
    pub fn with_hint(self, hint: &'static str) -> ValueReader {
        ValueReader { hint: Some(hint), ..self }
    }

    /// The code of what is wrong.
    pub fn code(&self) -> Code {
        self.code
    }

    /// How many problems there are.
    pub fn problems(&self) -> usize {
        self.problems.len()
    }

    /// The notes, if nothing was wrong.
    pub fn finish(&mut self) -> Result<Vec<Diagnostic>> {
        let (problems, notes) = (std::mem::take(&mut self.problems), std::mem::take(&mut self.notes));
        if problems.is_empty() {
            return Ok(notes);
        }
        // An author who fixes the file wants all problems at once.
        Err(Error::all(self.kind, problems.into_iter().chain(notes).collect()))
    }

    /// Adds a problem.
    pub fn problem(&mut self, diagnostic: Diagnostic) {
        if self.problems.len() < MAX_FINDINGS {
            self.problems.push(diagnostic);
        }
    }

    /// Adds a note, which keeps nothing from being read.
    pub fn note(&mut self, diagnostic: Diagnostic) {
        if self.notes.len() < MAX_FINDINGS {
            self.notes.push(diagnostic);
        }
    }

    /// Reports that something is wrong.
    pub fn wrong(&mut self, place: &Place, message: impl Into<String>, hint: impl Into<Hint>) {
        self.problem(Diagnostic::new(self.code, message).at(place.clone()).hint(hint));
    }

    /// Warns of something that works, but probably not as meant.
    pub fn strange(&mut self, place: &Place, message: impl Into<String>, hint: impl Into<Hint>) {
        let diagnostic = Diagnostic::new(self.code, message).severity(Severity::Warning);
        self.note(diagnostic.at(place.clone()).hint(hint));
    }

    /// Reports that a value has another type than is wanted here. A list or map is underlined at its beginning only.
    pub fn mismatch(&mut self, node: &Node, what: &str, wanted: &str, hint: impl Into<Hint>) {
        let hint = self.hint.map_or_else(|| hint.into(), Hint::from);
        self.problem(
            Diagnostic::new(self.code, format!("{what} must be {wanted}"))
                .at(node.opening())
                .label(format!("this is {}", self.notation.describe(node)))
                .hint(hint),
        );
    }

    /// A field of a map. Reports that it is missing.
    pub fn needed<'n>(&mut self, node: &'n Node, owner: &str, field: &str, hint: &str) -> Option<&'n Node> {
        let found = node.get(field);
        if found.is_none() {
            self.wrong(&node.opening(), format!("{owner} has no `{field}`"), hint);
        }
        found
    }

    /// Reports keys that mean nothing: what they were meant to say would be lost.
    pub fn known_keys(&mut self, node: &Node, owner: &str, known: &[&str]) {
        let Data::Map(entries) = &node.data else { return };
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
            self.problem(unknown_key(self.code, owner, key, known));
        }
    }

    /// The entries of a map.
    pub fn object<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [(Key, Node)]> {
        match &node.data {
            Data::Map(entries) => Some(entries),
            _ => {
                self.mismatch(node, what, self.notation.map(), self.notation.map_hint());
                None
            }
        }
    }

    /// The elements of a list.
    pub fn list<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n [Node]> {
        match &node.data {
            Data::List(items) => Some(items),
            _ => {
                self.mismatch(node, what, self.notation.list(), "write […], even around one element");
                None
            }
        }
    }

    /// A text.
    pub fn text<'n>(&mut self, node: &'n Node, what: &str) -> Option<&'n str> {
        let text = node.text();
        if text.is_none() {
            self.mismatch(node, what, "a string", self.notation.text_hint(node));
        }
        text
    }

    /// One of some words; the index of the one that is meant.
    pub fn one_of(&mut self, node: &Node, what: &str, words: &[&str]) -> Option<usize> {
        let text = self.text(node, what)?;
        let found = words.iter().position(|word| *word == text);
        if found.is_none() {
            let wanted: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
            let hint = did_you_mean(&nearest(text, words.iter().copied()));
            let hint = hint.or(self.hint.map(str::to_owned)).unwrap_or_else(|| "use one of them".to_owned());
            let message = format!("{what} must be {}, not {}", alternatives(&wanted), quoted(text));
            self.wrong(&node.place, message, hint);
        }
        found
    }
}

/// The problem of an unknown key.
pub fn unknown_key(code: Code, owner: &str, key: &Key, known: &[&str]) -> Diagnostic {
    let near = nearest(&key.name, known.iter().copied());
    let hint = did_you_mean(&near).unwrap_or_else(|| format!("known: {}", known.join(", ")));
    let message = format!("unknown key {} in {owner}", quoted(&key.name));
    Diagnostic::new(code, message).at(key.place.clone()).hint(hint)
}

/// `a, b or c`.
fn alternatives(words: &[String]) -> String {
    match words.split_last() {
        Some((last, before)) if !before.is_empty() => format!("{} or {last}", before.join(", ")),
        _ => words.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::Document;
    use crate::source::Source;
    use crate::yaml;

    fn yaml_of(text: &str) -> Node {
        let source = Source::new("a.yaml", text);
        let end = source.text().len();
        yaml::Document::parse(&source, 0..end, Code::BadHook, ErrorKind::Config).unwrap().into_root()
    }

    fn reported(mut reader: ValueReader) -> Vec<(String, Option<String>)> {
        let error = reader.finish().unwrap_err();
        error
            .diagnostics()
            .iter()
            .map(|found| (found.message.clone(), found.hint.as_deref().map(str::to_owned)))
            .collect()
    }

    #[test]
    fn all_wrong_values_are_reported_in_the_words_of_the_notation() {
        let source = Source::new("a.json", "{\"a\": [1], \"b\": {}, \"c\": 1, \"d\": \"on\"}");
        let json = Document::parse(&source, Code::BadOverride, ErrorKind::Overrides).unwrap().to_node();
        for (node, notation, list, map) in [
            (json, Notation::Json, "an array", "an object"),
            (yaml_of("a: [1]\nb: {}\nc: 1\nd: \"on\"\n"), Notation::Yaml, "a list", "a map"),
        ] {
            let mut reader = ValueReader::new(Code::BadHook, ErrorKind::Config, notation);
            let get = |name: &str| node.get(name).unwrap();
            assert!(reader.object(get("b"), "`b`").is_some() && reader.list(get("a"), "`a`").is_some());
            assert!(reader.object(get("a"), "`a`").is_none() && reader.list(get("b"), "`b`").is_none());
            assert!(reader.text(get("c"), "`c`").is_none());
            assert_eq!(reader.one_of(get("d"), "`d`", &["off", "on"]), Some(1));
            assert_eq!(reader.one_of(get("d"), "`d`", &["no", "yes", "one"]), None);
            assert!(reader.needed(&node, "the file", "e", "add it").is_none());
            reader.known_keys(&node, "the file", &["a", "b", "c", "dd"]);
            let messages: Vec<String> = reported(reader).into_iter().map(|(message, _)| message).collect();
            assert_eq!(
                messages,
                [
                    format!("`a` must be {map}"),
                    format!("`b` must be {list}"),
                    "`c` must be a string".to_owned(),
                    "`d` must be \"no\", \"yes\" or \"one\", not `on`".to_owned(),
                    "the file has no `e`".to_owned(),
                    "unknown key `d` in the file".to_owned(),
                ]
            );
        }
    }

    #[test]
    fn a_file_of_a_program_has_one_hint() {
        let node = yaml_of("a: 1\n");
        let reader = ValueReader::new(Code::BadHook, ErrorKind::Config, Notation::Toml);
        let mut reader = reader.with_hint("restore it");
        reader.text(node.get("a").unwrap(), "`a`");
        assert_eq!(reported(reader)[0].1.as_deref(), Some("restore it"));
    }
}
