//! The vocabulary: other names for prompts, tools and the rest, from the user and from packs.
//!
//! A vocabulary is a JSON object from a name to its aliases, all of them with a namespace in front (`prompt.`, `tool.`).
//! Entries of other namespaces are kept, because the file is shared with other programs.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::id::normalize_id;
use crate::error::{Code, ErrorKind, Result};
use crate::json::Step::{Index, Key};
use crate::json::{Document, Problems, quoted};
use crate::source::Source;

/// Names and their aliases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocab {
    entries: IndexMap<String, Vec<String>>,
}

impl Vocab {
    /// Reads a vocabulary file.
    pub fn read(source: &Arc<Source>) -> Result<Vocab> {
        const FORM: &str = "write {\"prompt.greeting\": [\"prompt.hello\", \"prompt.welcome\"]}";
        let document = Document::parse(source, Code::BadVocab, ErrorKind::Config)?;
        let mut problems = Problems::new(&document);
        let mut entries = IndexMap::new();
        for (name, aliases) in document.object()? {
            let Json::Array(list) = aliases else {
                let what = format!("the aliases of {}", quoted(name));
                problems.wrong_type(&[Key(name)], aliases, &what, "an array of strings", FORM);
                continue;
            };
            let mut known = Vec::with_capacity(list.len());
            for (index, alias) in list.iter().enumerate() {
                match alias {
                    Json::String(alias) => known.push(alias.clone()),
                    other => {
                        let what = format!("an alias of {}", quoted(name));
                        problems.wrong_type(&[Key(name), Index(index)], other, &what, "a string", FORM);
                    }
                }
            }
            entries.insert(name.clone(), known);
        }
        problems.or(Vocab { entries })
    }

    /// A vocabulary from entries that were read elsewhere, such as in `pack.json`.
    pub fn from_entries(entries: IndexMap<String, Vec<String>>) -> Vocab {
        Vocab { entries }
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The name in a namespace that something is an alias of. The spelling may differ as it may for ids.
    pub fn resolve(&self, namespace: &str, raw: &str) -> Option<&str> {
        let wanted = normalize_id(raw);
        let strip = |name: &'_ str| {
            name.strip_prefix(namespace).and_then(|rest| rest.strip_prefix('.')).map(str::len)
        };
        let same = |name: &str| match strip(name) {
            Some(length) => {
                let bare = &name[name.len() - length..];
                bare == raw || normalize_id(bare) == wanted
            }
            None => false,
        };
        self.entries.iter().find_map(|(name, aliases)| {
            let length = strip(name)?;
            (same(name) || aliases.iter().any(|alias| same(alias))).then(|| &name[name.len() - length..])
        })
    }

    /// All names and aliases of a namespace, for suggestions.
    pub fn names(&self, namespace: &str) -> Vec<&str> {
        self.entries
            .iter()
            .flat_map(|(name, aliases)| std::iter::once(name).chain(aliases))
            .filter_map(|name| name.strip_prefix(namespace)?.strip_prefix('.'))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vocab() -> Vocab {
        Vocab::read(&Source::new(
            "vocab.json",
            r#"{"prompt.system_prompt": ["prompt.systemprompt", "prompt.SystemPrompt"],
                "prompt.coding_system": ["prompt.code_system"],
                "tool.file_read": ["tool.read_file"]}"#,
        ))
        .unwrap()
    }

    #[test]
    fn an_alias_leads_to_its_name_within_its_namespace() {
        assert_eq!(vocab().resolve("prompt", "systemprompt"), Some("system_prompt"));
        assert_eq!(vocab().resolve("prompt", "codeSystem"), Some("coding_system"));
        assert_eq!(vocab().resolve("prompt", "coding_system"), Some("coding_system"));
        assert_eq!(vocab().resolve("prompt", "read_file"), None);
        assert_eq!(vocab().resolve("tool", "read_file"), Some("file_read"));
    }

    #[test]
    fn a_wrong_file_says_what_was_expected_at_every_wrong_value() {
        let error =
            Vocab::read(&Source::new("v.json", "{\"prompt.a\": \"b\",\n \"prompt.c\": [1]}")).unwrap_err();
        assert_eq!(
            crate::json::shown(error.diagnostics()),
            "\
error v.json:1:14: the aliases of `prompt.a` must be an array of strings [CB106]
  at \"b\" -- this is a string
  help: write {\"prompt.greeting\": [\"prompt.hello\", \"prompt.welcome\"]}
error v.json:2:15: an alias of `prompt.c` must be a string [CB106]
  at 1 -- this is a number
  help: write {\"prompt.greeting\": [\"prompt.hello\", \"prompt.welcome\"]}
"
        );
    }
}
