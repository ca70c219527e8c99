//! The values of an override file, and what is wrong with them.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::{Deref, DerefMut};

use super::Action;
use crate::error::{Code, Diagnostic, ErrorKind, Result};
use crate::json::quoted;
use crate::node::{Data, Key, Node};
use crate::overrides::JsonText;
use crate::reader::{Notation, ValueReader};
use crate::source::Place;

/// Reads the values of an override file.
#[doc(hidden)]
pub struct OverridesReader(ValueReader);

impl Default for OverridesReader {
    fn default() -> Self {
        OverridesReader(ValueReader::new(Code::BadOverride, ErrorKind::Overrides, Notation::Json))
    }
}

impl Deref for OverridesReader {
    type Target = ValueReader;

    fn deref(&self) -> &ValueReader {
        &self.0
    }
}

impl DerefMut for OverridesReader {
    fn deref_mut(&mut self) -> &mut ValueReader {
        &mut self.0
    }
}

impl OverridesReader {
    /// Whether nothing was wrong so far.
    pub(super) fn finish(&mut self) -> Result<()> {
        self.0.finish().map(drop)
    }

    pub(super) fn version(&mut self, root: &Node, version: u64) {
        let hint = format!("this version of Cuebook reads and writes version {version}");
        match root.get("version") {
            None => self.wrong(&root.opening(), "the file has no `version`", &hint),
            Some(Node { data: Data::Number(number), .. }) if number.as_u64() == Some(version) => {}
            Some(other) => {
                let found = match &other.data {
                    Data::Number(number) => number.to_string(),
                    _ => Notation::Json.describe(other).to_owned(),
                };
                let message = format!("unknown version {found} of an override file");
                self.wrong(&other.opening(), message, hint);
            }
        }
    }

    /// Notes that the file says to be of another prompt or tag than its path does.
    pub(super) fn same_name(&mut self, root: &Node, field: &str, what: &str, wanted: &str) {
        let hint = "the path must match `ns`, `prompt_key` and `tag`: fix one of them";
        match root.get(field) {
            None => self.wrong(&root.opening(), format!("the file has no `{field}`"), hint),
            Some(node) if node.text() == Some(wanted) => {}
            Some(node) => {
                let message = format!("the path says that the file overrides the {what} {}", quoted(wanted));
                self.problem(
                    Diagnostic::new(Code::BadOverride, message)
                        .at(node.opening())
                        .label("the file says something else")
                        .hint(hint),
                );
            }
        }
    }

    /// The entries of an object in a field; none if it is not there or null.
    pub(super) fn entries<'n>(&mut self, node: &'n Node, field: &str, what: &str) -> &'n [(Key, Node)] {
        match node.get(field) {
            Some(value) if !value.is_null() => self.object(value, what).unwrap_or_default(),
            _ => &[],
        }
    }

    /// The elements of an array in a field; none if it is not there or null.
    pub(super) fn items<'n>(&mut self, node: &'n Node, field: &str, what: &str) -> &'n [Node] {
        match node.get(field) {
            Some(value) if !value.is_null() => self.list(value, what).unwrap_or_default(),
            _ => &[],
        }
    }

    pub(super) fn string(&mut self, node: &Node, what: &str) -> Option<String> {
        self.text(node, what).map(str::to_owned)
    }

    /// A string in a field; none if it is not there or null.
    pub(super) fn optional_string(&mut self, node: &Node, field: &str) -> Option<String> {
        let value = node.get(field).filter(|value| !value.is_null())?;
        self.string(value, &format!("`{field}`"))
    }

    /// Notes that a field is missing. One that is there and wrong has been noted.
    pub(super) fn needed(
        &mut self,
        node: &Node,
        owner: &str,
        field: &str,
        found: Option<String>,
    ) -> Option<String> {
        if node.get(field).is_none_or(Node::is_null) {
            let message = format!("{owner} is added, but has no `{field}`");
            self.wrong(
                &node.opening(),
                &message,
                format!("add a `{field}`: there is no original to take it from"),
            );
        }
        found
    }

    /// JSON inside a string in a field; none if it is not there or null.
    pub(super) fn json_text(&mut self, node: &Node, field: &str) -> Option<JsonText> {
        let value = node.get(field).filter(|value| !value.is_null())?;
        let text = self.string(value, &format!("`{field}`"))?;
        match JsonText::parse(text) {
            Ok(text) => Some(text),
            Err(error) => {
                let finding = error.diagnostic();
                let hint = finding.hint.as_deref().unwrap_or_default();
                self.wrong(&value.place, format!("`{field}`: {}", finding.message), hint);
                None
            }
        }
    }

    pub(super) fn hash(&mut self, node: &Node, field: &str, owner: &str, place: &Place) -> Option<String> {
        let hint = "a hash has 64 digits: 0 to 9 and a to f";
        let Some(value) = node.get(field) else {
            let message = format!("{owner} has no `{field}`, the hash of the original text");
            self.wrong(place, message, hint);
            return None;
        };
        let Some(text) = value.text() else {
            self.mismatch(value, &format!("`{field}`"), "a string", hint);
            return None;
        };
        let is_digit = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'a'..=b'f');
        if text.len() != 64 || !text.bytes().all(is_digit) {
            self.wrong(&value.place, format!("`{field}` is not a SHA-256 hash"), hint);
            return None;
        }
        Some(text.to_owned())
    }

    /// A path of keys in the field `path`.
    pub(super) fn path(&mut self, node: &Node, what: &str, place: &Place) -> Option<Vec<String>> {
        let hint = "write the keys from the root to the section, such as [\"examples\", \"first\"]";
        let Some(value) = node.get("path") else {
            self.wrong(place, format!("{what} is missing"), hint);
            return None;
        };
        let Data::List(items) = &value.data else {
            self.mismatch(value, what, "an array of strings", hint);
            return None;
        };
        if items.is_empty() {
            self.wrong(&value.opening(), format!("{what} is empty"), hint);
            return None;
        }
        items.iter().map(|item| self.string(item, "a key of the path")).collect()
    }

    pub(super) fn index(&mut self, node: &Node, what: &str) -> Option<usize> {
        let index = match &node.data {
            Data::Number(number) => number.as_u64().and_then(|index| usize::try_from(index).ok()),
            _ => None,
        };
        if index.is_none() {
            let hint = "count from 0, in the author's list before any override";
            self.mismatch(node, what, "the number of an element", hint);
        }
        index
    }

    /// What the override of an example does, and to which one.
    pub(super) fn action(&mut self, node: &Node, owner: &str) -> Option<Action> {
        let words = "\"modify\", \"remove\" or \"append\"";
        let Some(action) = node.get("action") else {
            self.wrong(&node.opening(), format!("{owner} has no `action`"), format!("add one: {words}"));
            return None;
        };
        match action.text() {
            Some("append") => {
                if let Some(index) = node.get("index").filter(|index| !index.is_null())
                    && !matches!(&index.data, Data::Number(number) if number.as_i64() == Some(-1))
                {
                    let hint = "write -1: an added element goes to the end";
                    self.wrong(&index.opening(), "an added element has no number", hint);
                }
                if let Some(hash) = node.get("expected_hash").filter(|hash| !hash.is_null()) {
                    let hint = "write null: there is no original";
                    self.wrong(&hash.opening(), "an added element has no original", hint);
                }
                Some(Action::Append)
            }
            Some(word @ ("modify" | "remove")) => {
                let hash = self.hash(node, "expected_hash", owner, &node.opening());
                let index = match node.get("index") {
                    Some(index) => self.index(index, "`index`"),
                    None => {
                        let hint = "add the number of the element; the first one is 0";
                        self.wrong(&node.opening(), format!("{owner} has no `index`"), hint);
                        None
                    }
                };
                let (index, hash) = (index?, hash?);
                Some(if word == "modify" { Action::Modify(index, hash) } else { Action::Remove(index, hash) })
            }
            _ => {
                self.wrong(&action.opening(), format!("`action` must be {words}"), "use one of them");
                None
            }
        }
    }

    /// Notes that two entries are about the same thing.
    pub(super) fn once<K: Eq + Hash>(
        &mut self,
        seen: &mut HashMap<K, Place>,
        key: K,
        node: &Node,
        what: &str,
    ) {
        let place = node.opening();
        match seen.get(&key) {
            None => {
                seen.insert(key, place);
            }
            Some(first) => self.problem(
                Diagnostic::new(Code::BadOverride, format!("two entries override the same {what}"))
                    .at(place)
                    .label("second one here")
                    .related(first.clone(), "first one here")
                    .hint("merge them"),
            ),
        }
    }

    /// Notes fields that have no meaning for the action of their entry.
    pub(super) fn without(&mut self, node: &Node, fields: &[&str]) {
        let Data::Map(entries) = &node.data else { return };
        for (key, value) in entries {
            if fields.contains(&key.name.as_str()) && !value.is_null() {
                let message = format!("`{}` has no effect with this `action`", key.name);
                self.wrong(&key.place, message, "remove it, or change the `action`");
            }
        }
    }

    pub(super) fn changes_something(&mut self, node: &Node, owner: &str, fields: &[&str]) {
        if fields.iter().all(|field| node.get(field).is_none_or(Node::is_null)) {
            let hint = format!("add one of {}, or remove the entry", fields.join(", "));
            self.wrong(&node.opening(), format!("{owner} changes nothing"), hint);
        }
    }
}
