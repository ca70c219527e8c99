//! What can be written at a cursor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cuebook_template::{Group, reference};

use super::Service;
use super::cursor::{Inside, inside};
use super::hover;
use crate::variables::SYSTEM_NAMES;

/// What kind of thing is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionKind {
    /// A variable.
    Variable,
    /// A filter, a test or a function.
    Function,
    /// A tag of a template.
    Keyword,
    /// Another template, or a prompt.
    File,
}

/// Something that can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// What is written.
    pub label: String,
    /// What kind of thing it is.
    pub kind: CompletionKind,
    /// A few words about it.
    pub detail: String,
    /// Its documentation, as Markdown.
    pub documentation: String,
}

/// The tags of Jinja2, and those that Cuebook adds.
const TAGS: [&str; 30] = [
    "if",
    "elif",
    "else",
    "endif",
    "for",
    "endfor",
    "set",
    "endset",
    "macro",
    "endmacro",
    "call",
    "endcall",
    "filter",
    "endfilter",
    "include",
    "extends",
    "block",
    "endblock",
    "import",
    "from",
    "with",
    "endwith",
    "raw",
    "endraw",
    "do",
    "break",
    "continue",
    "autoescape",
    "fence",
    "endfence",
];

/// As many files are offered.
const MOST_FILES: usize = 1_000;

impl Service {
    /// What can be written at a byte of a file.
    pub fn complete(&self, path: &Path, offset: usize) -> Vec<Completion> {
        let Some(text) = self.text(path).filter(|_| self.owns(path)) else { return Vec::new() };
        match inside(&text, offset) {
            Inside::Text => Vec::new(),
            Inside::Tag(word) => TAGS
                .iter()
                .filter(|tag| tag.starts_with(word))
                .map(|tag| plain(tag, CompletionKind::Keyword, "tag"))
                .collect(),
            Inside::Filter(word) => callables(Group::Filter, word),
            Inside::Test(word) => callables(Group::Test, word),
            Inside::Path(typed) => self.paths(path, typed),
            Inside::Name { before: "", word } => {
                let mut all = self.variables(path, &text[..offset.min(text.len())], word);
                all.extend(callables(Group::Function, word));
                all
            }
            Inside::Name { before: "system", word } => SYSTEM_NAMES
                .iter()
                .filter(|name| name.starts_with(word))
                .map(|name| plain(name, CompletionKind::Variable, "supplied by the system"))
                .collect(),
            Inside::Name { before, word } => self.parts(path, before, word),
        }
    }

    /// Variables that the prompt declares or reads, and names that the text before the cursor sets.
    fn variables(&self, path: &Path, before: &str, word: &str) -> Vec<Completion> {
        let mut found: BTreeMap<String, Completion> = BTreeMap::new();
        for name in local_names(before) {
            found.insert(name.clone(), plain(&name, CompletionKind::Variable, "set in this template"));
        }
        for prepared in self.prepared(path) {
            for name in prepared.known_names() {
                found
                    .entry(name.clone())
                    .or_insert_with_key(|name| plain(name, CompletionKind::Variable, "variable"));
            }
            for variable in &prepared.prompt().variables {
                let mut one = plain(&variable.name, CompletionKind::Variable, &hover::declaration(variable));
                one.documentation = variable.description.clone().unwrap_or_default();
                found.insert(variable.name.clone(), one);
            }
        }
        found.into_values().filter(|one| one.label.starts_with(word)).collect()
    }

    /// Parts of a variable that templates of the prompt name somewhere.
    fn parts(&self, path: &Path, before: &str, word: &str) -> Vec<Completion> {
        let lead = format!("{before}.");
        let mut names = BTreeSet::new();
        for prepared in self.prepared(path) {
            for (read, _) in prepared.reads() {
                let rest = read.path.strip_prefix(&lead);
                names.extend(rest.and_then(|rest| rest.split(['.', '[']).next()).map(str::to_owned));
            }
        }
        let fits = |name: &String| !name.is_empty() && name.starts_with(word);
        let part = |name: String| plain(&name, CompletionKind::Variable, &format!("part of {before}"));
        names.into_iter().filter(fits).map(part).collect()
    }

    /// Files that a template can include, and ids of prompts.
    fn paths(&self, path: &Path, typed: &str) -> Vec<Completion> {
        let library = self.book().library();
        let mut names = BTreeSet::new();
        if typed.starts_with("prompt:") || typed.is_empty() {
            names.extend(library.ids().unwrap_or_default().into_iter().map(|id| format!("prompt:{id}")));
        }
        let folders = library.roots().unwrap_or_default();
        for folder in
            folders.iter().filter_map(|root| root.folder()).filter(|folder| path.starts_with(folder))
        {
            let mut waiting = vec![folder.to_owned()];
            while let Some(next) = waiting.pop() {
                for entry in std::fs::read_dir(&next).into_iter().flatten().flatten() {
                    let entry = entry.path();
                    let name = entry.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    if name.starts_with('.') || names.len() >= MOST_FILES {
                        continue;
                    }
                    // A link may lead back to a folder above.
                    if entry.is_dir() && !entry.is_symlink() {
                        waiting.push(entry);
                    } else if [".md", ".txt", ".j2", ".jinja", ".jinja2"]
                        .iter()
                        .any(|end| name.ends_with(end))
                    {
                        let relative = entry.strip_prefix(folder).unwrap_or(&entry).to_string_lossy();
                        names.insert(relative.into_owned());
                    }
                }
            }
        }
        let file = |name: String| plain(&name, CompletionKind::File, "");
        names.into_iter().filter(|name| name.starts_with(typed)).map(file).collect()
    }
}

fn plain(label: &str, kind: CompletionKind, detail: &str) -> Completion {
    Completion { label: label.to_owned(), kind, detail: detail.to_owned(), documentation: String::new() }
}

fn callables(group: Group, word: &str) -> Vec<Completion> {
    let entries = reference().into_iter();
    let fitting = entries.filter(|entry| entry.group == group && !entry.chat && entry.name.starts_with(word));
    fitting
        .map(|entry| Completion {
            label: entry.name.to_owned(),
            kind: CompletionKind::Function,
            detail: entry.signature.clone(),
            documentation: hover::documentation(&entry),
        })
        .collect()
}

/// Names that loops, `set` and macros give in a text.
fn local_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for tag in text.split("{%").skip(1) {
        let tag = tag.split("%}").next().unwrap_or_default().trim_start_matches(['-', '+']).trim();
        let (keyword, rest) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
        let targets = match keyword {
            "set" => rest.split('=').next().unwrap_or_default(),
            "for" => rest.split(" in ").next().unwrap_or_default(),
            "macro" => rest,
            _ => "",
        };
        let words = targets.split(|letter: char| !super::cursor::is_word(letter));
        let is_name = |word: &&str| word.starts_with(|first: char| first.is_alphabetic() || first == '_');
        names.extend(words.filter(is_name).map(str::to_owned));
    }
    names
}
