//! Settings: YAML that is read strictly, every value with the place where it stands.
//!
//! A file of settings is Cuebook's own, so an unknown key is a mistake of its author, and is reported with the key
//! that was probably meant. This module knows no file's keys: the reader of a file names them.
//!
//! ```
//! use cuebook_text::settings::Setting;
//! use cuebook_text::source::Source;
//! use cuebook_text::{Code, ErrorKind};
//!
//! let source = Source::new("a.yaml", "attempts: 3\n");
//! let root = Setting::parse(&source, Code::BadProviderFile, ErrorKind::Config)?;
//! let fields = root.fields(&["attempts", "base"])?;
//! assert_eq!(fields["attempts"].whole()?, 3);
//!
//! let source = Source::new("a.yaml", "attemps: 3\n");
//! let root = Setting::parse(&source, Code::BadProviderFile, ErrorKind::Config)?;
//! let error = root.fields(&["attempts", "base"]).unwrap_err();
//! assert_eq!(error.diagnostic().hint.as_deref(), Some("did you mean `attempts`?"));
//! # Ok::<(), cuebook_text::Error>(())
//! ```

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value as Json;

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::node::{Data, Node};
use crate::source::{Place, Source};
use crate::yaml::Document;

/// A value of a file of settings.
#[derive(Debug, Clone)]
pub struct Setting {
    node: Node,
    /// Where its key stands, or the value itself where it is missing.
    key: Place,
    /// Its name, with those of the maps around it, as in `retry.attempts`; empty for the whole file.
    path: String,
    code: Code,
    kind: ErrorKind,
}

impl Setting {
    /// Reads a file. Whatever is wrong with it has this code and kind.
    pub fn parse(source: &Arc<Source>, code: Code, kind: ErrorKind) -> Result<Setting> {
        let node = Document::parse(source, 0..source.text().len(), code, kind)?.into_root();
        Ok(Setting { key: node.place.clone(), node, path: String::new(), code, kind })
    }

    /// Whether nothing stands here.
    pub fn is_null(&self) -> bool {
        self.node.is_null()
    }

    /// Its path in the file, as in `retry.attempts`.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Where it stands.
    pub fn place(&self) -> Place {
        self.node.opening()
    }

    /// The value without its places.
    pub fn json(&self) -> Json {
        self.node.to_json()
    }

    /// Where the value stands that names, and numbers of list items, lead to from here. If they lead nowhere: where the last one
    /// on the way begins.
    pub fn place_of(&self, path: &[&str]) -> Place {
        let (found, node) = self.find(path);
        if found == path.len() { node.place.clone() } else { node.opening() }
    }

    /// Where the name of such a value stands; where the value begins if it has none.
    pub fn name_place_of(&self, path: &[&str]) -> Place {
        let Some((last, folder)) = path.split_last() else { return self.node.opening() };
        match self.find(folder) {
            (found, node) if found == folder.len() => {
                node.entry(last).map_or_else(|| self.place_of(path), |(key, _)| key.place.clone())
            }
            _ => self.place_of(path),
        }
    }

    /// How many steps of a path could be taken, and where they lead.
    fn find(&self, path: &[&str]) -> (usize, &Node) {
        let mut node = &self.node;
        for (taken, step) in path.iter().enumerate() {
            let next = match &node.data {
                Data::Map(_) => node.get(step),
                Data::List(items) => step.parse().ok().and_then(|index: usize| items.get(index)),
                _ => None,
            };
            match next {
                Some(next) => node = next,
                None => return (taken, node),
            }
        }
        (path.len(), node)
    }

    /// The values of a map that has only these keys. Nothing at all is a map without keys.
    pub fn fields(&self, known: &[&str]) -> Result<IndexMap<String, Setting>> {
        let entries = self.entries()?;
        let mut wrong = Vec::new();
        for (name, setting) in entries.iter().filter(|(name, _)| !known.contains(&name.as_str())) {
            let within = if self.path.is_empty() { String::new() } else { format!(" in `{}`", self.path) };
            let near = did_you_mean(&nearest(name, known.iter().copied()));
            let hint = near.unwrap_or_else(|| format!("known: {}", known.join(", ")));
            let message = format!("unknown key `{name}`{within}");
            wrong.push(Diagnostic::new(self.code, message).at(setting.key.clone()).hint(hint));
        }
        if wrong.is_empty() { Ok(entries) } else { Err(Error::all(self.kind, wrong)) }
    }

    /// The values of a map, whatever its keys. Nothing at all is a map without keys.
    pub fn entries(&self) -> Result<IndexMap<String, Setting>> {
        let entries = match &self.node.data {
            Data::Null => return Ok(IndexMap::new()),
            Data::Map(entries) => entries,
            _ => return Err(self.must_be("a map")),
        };
        let entry = |(key, node): &(crate::node::Key, Node)| {
            let path =
                if self.path.is_empty() { key.name.clone() } else { format!("{}.{}", self.path, key.name) };
            let setting = Setting {
                node: node.clone(),
                key: key.place.clone(),
                path,
                code: self.code,
                kind: self.kind,
            };
            (key.name.clone(), setting)
        };
        Ok(entries.iter().map(entry).collect())
    }

    /// The values of a list.
    pub fn items(&self) -> Result<Vec<Setting>> {
        let items = match &self.node.data {
            Data::Null => return Ok(Vec::new()),
            Data::List(items) => items,
            _ => return Err(self.must_be("a list")),
        };
        let item = |(index, node): (usize, &Node)| Setting {
            node: node.clone(),
            key: node.place.clone(),
            path: format!("{}[{index}]", self.path),
            code: self.code,
            kind: self.kind,
        };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// A text that says something.
    pub fn text(&self) -> Result<&str> {
        match self.node.text() {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(self.wrong("must not be empty", None)),
            None => Err(self.must_be("a string")),
        }
    }

    /// `true` or `false`.
    pub fn boolean(&self) -> Result<bool> {
        match &self.node.data {
            Data::Bool(value) => Ok(*value),
            _ => Err(self.must_be("true or false")),
        }
    }

    /// A whole number of zero or more.
    pub fn whole(&self) -> Result<u64> {
        match &self.node.data {
            Data::Number(number) if number.as_u64().is_some() => Ok(number.as_u64().unwrap_or_default()),
            _ => Err(self.must_be("a whole number of at least 0")),
        }
    }

    /// A number of zero or more.
    pub fn amount(&self) -> Result<f64> {
        match &self.node.data {
            Data::Number(number) => match number.as_f64() {
                Some(amount) if amount.is_finite() && amount >= 0.0 => Ok(amount),
                _ => Err(self.must_be("a number of at least 0")),
            },
            _ => Err(self.must_be("a number of at least 0")),
        }
    }

    /// One of some words; the index of the one that is meant.
    pub fn word(&self, words: &[&str]) -> Result<usize> {
        let text = self.text()?;
        words.iter().position(|word| *word == text).ok_or_else(|| {
            let near = did_you_mean(&nearest(text, words.iter().copied()));
            let hint = near.unwrap_or_else(|| format!("known: {}", words.join(", ")));
            self.wrong(format!("has the unknown value `{text}`"), Some(hint))
        })
    }

    /// That something is wrong with it: `` `retry.attempts` must be … ``.
    pub fn wrong(&self, what: impl AsRef<str>, hint: Option<String>) -> Error {
        let name = if self.path.is_empty() { "the file".to_owned() } else { format!("`{}`", self.path) };
        let diagnostic = Diagnostic::new(self.code, format!("{name} {}", what.as_ref()));
        Error::new(self.kind, diagnostic.at(self.node.opening()).hint_opt(hint))
    }

    /// The same without showing the line, which holds a secret.
    pub fn wrong_unseen(&self, what: impl AsRef<str>, hint: Option<String>) -> Error {
        let place = self.node.opening();
        let message = format!("`{}` {} (line {})", self.path, what.as_ref(), place.line());
        let diagnostic = Diagnostic::new(self.code, message).file(place.file());
        Error::new(self.kind, diagnostic.hint_opt(hint))
    }

    fn must_be(&self, what: &str) -> Error {
        // A number is no secret, and says more than that it is one.
        let is = match &self.node.data {
            Data::Number(number) => number.to_string(),
            _ => self.node.describe().to_owned(),
        };
        self.wrong(format!("must be {what}, but is {is}"), None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Setting> {
        Setting::parse(&Source::new("s.yaml", text), Code::BadProviderFile, ErrorKind::Config)
    }

    #[test]
    fn an_unknown_key_is_an_error_at_its_place() {
        let root = read("retry:\n  atempts: 1\n").unwrap();
        let retry = &root.fields(&["retry"]).unwrap()["retry"];
        let error = retry.fields(&["attempts"]).unwrap_err();
        let place = error.diagnostic().place.clone().unwrap();
        assert_eq!((place.line(), place.column()), (2, 3));
        assert_eq!(error.diagnostic().message, "unknown key `atempts` in `retry`");
    }

    #[test]
    fn values_of_another_kind_are_reported_with_their_path() {
        let root = read("a: {b: [1, x]}\nc: -1\n").unwrap();
        let fields = root.entries().unwrap();
        let items = fields["a"].entries().unwrap()["b"].items().unwrap();
        assert_eq!(
            items[1].whole().unwrap_err().diagnostic().message,
            "`a.b[1]` must be a whole number of at least 0, but is a string"
        );
        assert!(fields["c"].amount().is_err());
        assert_eq!(items[1].word(&["y", "x"]).unwrap(), 1);
        assert!(items[1].boolean().is_err());
        assert_eq!(fields["a"].json(), serde_json::json!({"b": [1, "x"]}));
    }

    #[test]
    fn values_and_names_are_found_where_they_stand() {
        let root = read("a:\n  - b: 1\n  - c:\n      d: x\n").unwrap();
        let at = |place: Place| (place.line(), place.column());
        assert_eq!(at(root.place_of(&["a", "1", "c", "d"])), (4, 10));
        assert_eq!(at(root.name_place_of(&["a", "1", "c", "d"])), (4, 7));
        assert_eq!(at(root.place_of(&["a", "0", "zz", "y"])), (2, 5));
        assert_eq!(at(root.place_of(&["a", "7"])), (2, 3));
        assert_eq!(at(root.place_of(&[])), (1, 1));
    }

    #[test]
    fn invalid_yaml_has_the_code_of_its_file() {
        let source = Source::new("s.yaml", "a: [1");
        let error = Setting::parse(&source, Code::BadHook, ErrorKind::Config).unwrap_err();
        assert_eq!((error.code(), error.kind()), (Code::BadHook, ErrorKind::Config));
    }

    #[test]
    fn nothing_is_a_map_without_keys() {
        assert!(read("").unwrap().fields(&[]).unwrap().is_empty());
        assert!(read("- a\n").unwrap().fields(&[]).is_err());
    }
}
