//! The vocabulary: other names for prompts, tools and the rest, from the user and from packs.
//!
//! A vocabulary is a JSON object from a name to its aliases, all of them with a namespace in front (`prompt.`, `tool.`).
//! Entries of other namespaces are kept, because the file is shared with other programs.

use std::sync::Arc;

use indexmap::IndexMap;
use serde_json::Value as Json;

use super::id::normalize_id;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;

/// Names and their aliases.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Vocab {
    entries: IndexMap<String, Vec<String>>,
}

impl Vocab {
    /// Reads a vocabulary file.
    pub fn read(source: &Arc<Source>) -> Result<Vocab> {
        let wrong = |message: String| {
            let diagnostic = Diagnostic::new(Code::BadVocab, message)
                .file(source.name())
                .hint("write {\"prompt.greeting\": [\"prompt.hello\", \"prompt.welcome\"]}");
            Error::new(ErrorKind::Config, diagnostic)
        };
        let json: Json =
            serde_json::from_str(source.text()).map_err(|error| wrong(format!("not valid JSON: {error}")))?;
        let Json::Object(object) = json else { return Err(wrong("a JSON object was expected".into())) };
        let mut entries = IndexMap::new();
        for (name, aliases) in object {
            let Json::Array(list) = aliases else {
                return Err(wrong(format!("the aliases of `{name}` must be a list")));
            };
            let aliases = list
                .into_iter()
                .map(|alias| match alias {
                    Json::String(alias) => Ok(alias),
                    other => Err(wrong(format!("an alias of `{name}` must be a string, not {other}"))),
                })
                .collect::<Result<Vec<_>>>()?;
            entries.insert(name, aliases);
        }
        Ok(Vocab { entries })
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
    fn a_wrong_file_says_what_was_expected() {
        let error = Vocab::read(&Source::new("v.json", r#"{"prompt.a": "b"}"#)).unwrap_err();
        assert_eq!(
            error.to_string(),
            "ConfigError: v.json: the aliases of `prompt.a` must be a list [CB106]"
        );
    }
}
