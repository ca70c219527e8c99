//! The vocabulary: other names for prompts, tools and the rest, from the user and from packs.
//!
//! A vocabulary is a JSON object from a name to its aliases, all of them with a namespace in front (`prompt.`, `tool.`).
//! Entries of other namespaces are kept, because the file is shared with other programs.

use std::path::PathBuf;
use std::sync::Arc;

use indexmap::IndexMap;
use indexmap::map::Entry;
use serde_json::Value as Json;

use super::Library;
use super::id::normalize_id;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity, did_you_mean, nearest};
use crate::files;
use crate::json::Step::{Index, Key};
use crate::json::{Document, MAX_FINDINGS, Problems, quoted};
use crate::source::Source;

/// Where the user's vocabulary is if no setting says another place.
const VOCAB: &str = "user_data/shared/vocab.json";

/// What the names of prompts begin with.
const PROMPT: &str = "prompt.";

/// Refuses aliases that mean two prompts: either choice would be wrong for one of them.
fn refuse_ambiguous(document: &Document, entries: &IndexMap<String, Vec<String>>) -> Result<()> {
    let mut owners: IndexMap<String, (&str, usize)> = IndexMap::new();
    let mut found = Vec::new();
    for (name, aliases) in entries.iter().filter(|(name, _)| name.starts_with(PROMPT)) {
        for (index, alias) in aliases.iter().enumerate() {
            let Some(bare) = alias.strip_prefix(PROMPT) else { continue };
            let (owner, earlier) = match owners.entry(normalize_id(bare)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(free) => {
                    free.insert((name, index));
                    continue;
                }
            };
            if owner == name || found.len() == MAX_FINDINGS {
                continue;
            }
            let message =
                format!("{} is an alias of both {} and {}", quoted(alias), quoted(owner), quoted(name));
            let diagnostic = Diagnostic::new(Code::BadVocab, message)
                .at(document.place(&[Key(name), Index(index)]))
                .label("second one here")
                .related(document.place(&[Key(owner), Index(earlier)]), "first one here")
                .hint("remove one of them");
            found.push(diagnostic);
        }
    }
    match found.is_empty() {
        true => Ok(()),
        false => Err(Error::all(ErrorKind::Config, found)),
    }
}

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
        problems.or(())?;
        refuse_ambiguous(&document, &entries)?;
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

impl Library {
    /// The user's vocabulary, if there is one. One that a setting names must be there.
    #[doc(hidden)]
    pub fn user_vocab(&self) -> Result<Option<Arc<Source>>> {
        let config = self.config()?;
        let path = self.vocab_path()?;
        if files::look(&path).map_err(|error| files::io_error(&self.name(&path), &error))?.is_some() {
            let (name, limit) = (self.name(&path), config.limits.file_size);
            // One that lies outside by its name was granted.
            let read = match path.starts_with(&self.root) {
                true => files::read_text_inside(&self.root, &path, &name, limit),
                false => files::read_text(&path, &name, limit),
            };
            return read.map(Some);
        }
        match config.library.vocab {
            Some(_) => Err(files::io_error(&self.name(&path), &std::io::ErrorKind::NotFound.into())),
            None => Ok(None),
        }
    }

    pub(super) fn vocab_path(&self) -> Result<PathBuf> {
        let config = self.config()?;
        Ok(self.root.join(config.library.vocab.clone().unwrap_or_else(|| VOCAB.into())))
    }

    /// Asks the user's vocabulary, then those of the packs, what a name means.
    pub(super) fn look_up(&self, raw: &str) -> Result<Option<String>> {
        if let Some(source) = self.user_vocab()?
            && let Some(name) = Vocab::read(&source)?.resolve("prompt", raw)
        {
            return Ok(Some(name.to_owned()));
        }
        let mut found: Option<(String, String)> = None;
        for pack in self.pack_ids()? {
            let Some(vocab) = self.pack_vocab(&pack)? else { continue };
            let Some(name) = vocab.resolve("prompt", raw) else { continue };
            match &found {
                Some((other, known)) if known != name => {
                    let message = format!(
                        "`{raw}` means `{known}` in the pack `{other}`, but `{name}` in the pack `{pack}`"
                    );
                    let hint = format!(
                        "choose in {}: {{\"prompt.{known}\": [\"prompt.{raw}\"]}}",
                        self.name(&self.vocab_path()?)
                    );
                    let diagnostic = Diagnostic::new(Code::BadVocab, message).hint(hint);
                    return Err(Error::new(ErrorKind::Config, diagnostic));
                }
                Some(_) => {}
                None => found = Some((pack, name.to_owned())),
            }
        }
        Ok(found.map(|(_, name)| name))
    }
}

/// What of a vocabulary file does nothing: aliases of unknown prompts, and aliases that are ids themselves.
pub fn idle(source: &Arc<Source>, offers: impl Fn(&str) -> bool, ids: &[&str]) -> Result<Vec<Diagnostic>> {
    let vocab = Vocab::read(source)?;
    let document = Document::parse(source, Code::BadVocab, ErrorKind::Config)?;
    let warning = |message: String| Diagnostic::new(Code::BadVocab, message).severity(Severity::Warning);
    let mut found = Vec::new();
    for (name, aliases) in &vocab.entries {
        let Some(id) = name.strip_prefix(PROMPT) else { continue };
        if !offers(id) {
            let near = did_you_mean(&nearest(id, ids.iter().copied()));
            let message = format!("the aliases of {} have no prompt", quoted(id));
            let hint = near
                .map_or_else(|| Hint::run("use the id of an existing prompt", "cuebook list"), Hint::from);
            found.push(warning(message).at(document.key_place(&[Key(name)])).hint(hint));
            continue;
        }
        for (index, alias) in aliases.iter().enumerate() {
            let Some(bare) = alias.strip_prefix(PROMPT) else { continue };
            // Another spelling of the id itself is found without being an alias, and does no harm.
            let normal = normalize_id(bare);
            let Some(own) = [bare, normal.as_str()].into_iter().find(|own| *own != id && offers(own)) else {
                continue;
            };
            let message = format!("{} is a prompt, so it cannot be an alias of {}", quoted(own), quoted(id));
            let place = document.place(&[Key(name), Index(index)]);
            found.push(warning(message).at(place).hint("remove the alias, or rename it"));
        }
    }
    found.truncate(MAX_FINDINGS);
    Ok(found)
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
    fn an_alias_of_two_prompts_is_refused_with_both_places() {
        let read = |text: &str| Vocab::read(&Source::new("v.json", text));
        let error = read("{\"prompt.a\": [\"prompt.say_hello\"],\n \"prompt.d\": [\"prompt.sayHello\"]}")
            .unwrap_err();
        assert_eq!(
            crate::json::shown(error.diagnostics()),
            "\
error v.json:2:15: `prompt.sayHello` is an alias of both `prompt.a` and `prompt.d` [CB106]
  at \"prompt.sayHello\" -- second one here
  and v.json:1:15 \"prompt.say_hello\" -- first one here
  help: remove one of them
"
        );
        assert!(read("{\"prompt.a\": [\"prompt.b\", \"prompt.B\"]}").is_ok());
        assert!(read("{\"tool.a\": [\"tool.b\"], \"tool.c\": [\"tool.b\"]}").is_ok(), "of other programs");
    }

    #[test]
    fn dangling_and_unused_aliases_are_reported() {
        let text = "{\"prompt.a\": [\"prompt.A\", \"prompt.B\"],\n \"prompt.aa\": [\"prompt.x\"], \"tool.q\": [\"tool.b\"]}";
        let ids = ["a", "b"];
        let found = idle(&Source::new("v.json", text), |id| ids.contains(&id), &ids).unwrap();
        assert_eq!(
            crate::json::shown(&found),
            "\
warning v.json:1:27: `b` is a prompt, so it cannot be an alias of `a` [CB106]
  at \"prompt.B\" -- (no label)
  help: remove the alias, or rename it
warning v.json:2:2: the aliases of `aa` have no prompt [CB106]
  at \"prompt.aa\" -- (no label)
  help: did you mean `a`?
"
        );
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
