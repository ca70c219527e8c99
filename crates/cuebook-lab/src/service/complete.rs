//! What can be written at a cursor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cuebook_template::{Group, reference};

use super::Service;
use super::cursor::{Inside, inside, is_word};
use super::hover;
use super::layout::{Notation, front_matter, tags};
use super::tokens::ROLES;
use crate::schema;
use crate::variables::SYSTEM_NAMES;

/// What kind of thing is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompletionKind {
    /// A variable.
    Variable,
    /// A filter, a test or a function.
    Function,
    /// A tag of a template, or a role.
    Keyword,
    /// Another template, or a prompt.
    File,
    /// A key of front matter, or an attribute.
    Key,
    /// One of the words that a value can be.
    Value,
    /// A block or an XML element.
    Element,
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

/// As many files and ids are offered.
const MOST_FILES: usize = 1_000;

/// The elements of a directive, with their attributes.
const ELEMENTS: [(&str, &[&str]); 24] = [
    ("directive", &["name", "version", "extends"]),
    ("metadata", &[]),
    ("description", &[]),
    ("category", &[]),
    ("author", &[]),
    ("model", &["tier", "id", "provider", "fallback"]),
    ("limits", &["turns", "tokens", "spend", "spawns", "duration_seconds"]),
    ("permissions", &[]),
    ("execute", &[]),
    ("search", &[]),
    ("load", &[]),
    ("sign", &[]),
    ("tool", &[]),
    ("knowledge", &[]),
    ("context", &[]),
    ("hooks", &[]),
    ("hook", &["event"]),
    ("inputs", &[]),
    ("input", &["name", "type", "required", "default"]),
    ("outputs", &[]),
    ("output", &["name", "type", "required"]),
    ("process", &[]),
    ("step", &["name"]),
    ("success_criteria", &[]),
];

/// The names that `prompt.py` can define, and the keys of their dictionaries.
const PYTHON: [(&str, &[&str]); 5] = [
    ("METADATA", &["id", "name", "version", "type", "extends", "template", "description", "author", "tags"]),
    ("VARIABLES", &["required", "optional", "custom", "name", "type", "description", "default", "source"]),
    ("PERMISSIONS", &["read_file", "http_request", "llm_call", "session_state"]),
    ("LIMITS", &["max_output_size", "max_execution_time"]),
    ("TEMPLATE", &[]),
];

impl Service {
    /// What can be written at a byte of a file.
    pub fn complete(&self, path: &Path, offset: usize) -> Vec<Completion> {
        let is_settings =
            matches!(path.file_name().and_then(|name| name.to_str()), Some("pack.json" | "cuebook.toml"));
        if is_settings && path.starts_with(self.book().library().root()) {
            return self.text(path).map(|text| settings_keys(path, &text, offset)).unwrap_or_default();
        }
        let Some(text) = self.text(path).filter(|_| self.owns(path)) else { return Vec::new() };
        let offset = super::cursor::floor(&text, offset);
        let notation = Notation::of(path);
        let front =
            front_matter(&text).filter(|_| matches!(notation, Notation::Prompty | Notation::Sections));
        if front.as_ref().is_some_and(|front| (front.start..=front.end).contains(&offset)) {
            return if notation == Notation::Prompty {
                front_matter_words(&text, offset)
            } else {
                Vec::new()
            };
        }
        match notation {
            Notation::Python => return python(&text, offset),
            Notation::Cases => return self.case_inputs(path, &text, offset),
            Notation::Directive => {
                if let Some(found) = elements(&text, offset) {
                    return found;
                }
            }
            _ => {}
        }
        match inside(&text, offset) {
            Inside::Text => roles(notation, &text, offset),
            Inside::Tag(word) => TAGS
                .iter()
                .filter(|tag| tag.starts_with(word))
                .map(|tag| plain(tag, CompletionKind::Keyword, "tag"))
                .collect(),
            Inside::Filter(word) => callables(Group::Filter, word),
            Inside::Test(word) => callables(Group::Test, word),
            Inside::Path(typed) => self.paths(path, typed),
            Inside::Name { before: "", word } => {
                let lead = text[..offset - word.len()].trim_end();
                if lead.ends_with("block") {
                    return self.blocks(path, word);
                }
                let mut all = self.variables(path, &text[..offset], word);
                all.extend(callables(Group::Function, word));
                all
            }
            Inside::Name { before: "system", word } => SYSTEM_NAMES
                .iter()
                .filter(|name| name.starts_with(word))
                .map(|name| plain(name, CompletionKind::Variable, "supplied by the system"))
                .collect(),
            Inside::Name { before: "self", word } => self.blocks(path, word),
            Inside::Name { before, word } => self.parts(path, before, word),
        }
    }

    /// The blocks of a template's parents and of the template itself.
    fn blocks(&self, path: &Path, word: &str) -> Vec<Completion> {
        let mut names = BTreeSet::new();
        for prepared in self.prepared(path).iter().flat_map(|all| all.iter()) {
            let outline = prepared.outline();
            let blocks = outline.names().iter().flat_map(|names| &names.blocks);
            names.extend(blocks.map(|block| block.name.clone()));
        }
        names.retain(|name| name.starts_with(word));
        names.iter().map(|name| plain(name, CompletionKind::Element, "block")).collect()
    }

    /// The inputs of the prompt that a file of cases lies beside, and the settings of a case.
    fn case_inputs(&self, path: &Path, text: &str, offset: usize) -> Vec<Completion> {
        let before = &text[..offset];
        let line = before.rsplit('\n').next().unwrap_or_default();
        let fences: Vec<&str> = before.lines().filter(|line| line.trim_start().starts_with("```")).collect();
        let Some(open) = fences.last().filter(|_| fences.len() % 2 == 1) else { return Vec::new() };
        if !line.chars().all(is_word) {
            return Vec::new();
        }
        match open.split_whitespace().nth(1) {
            Some("settings") => {
                let schema = schema::schema("cases").unwrap_or_default();
                from_schema(&schema, &schema, line)
            }
            Some("inputs") => {
                let file = self.prompt_of_cases(path).unwrap_or_else(|| path.to_owned());
                let mut all = self.variables(&file, "", line);
                all.retain(|one| one.kind == CompletionKind::Variable);
                all
            }
            _ => Vec::new(),
        }
    }

    /// Variables that the prompt declares or reads, and names that the text before the cursor sets.
    fn variables(&self, path: &Path, before: &str, word: &str) -> Vec<Completion> {
        let mut found: BTreeMap<String, Completion> = BTreeMap::new();
        for name in local_names(before) {
            found.insert(name.clone(), plain(&name, CompletionKind::Variable, "set in this template"));
        }
        for prepared in self.prepared(path).iter().flat_map(|all| all.iter()) {
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
        found.retain(|name, _| name.starts_with(word) && (name != word || !word.is_empty()));
        found.into_values().collect()
    }

    /// Parts of a variable that templates of the prompt name somewhere.
    fn parts(&self, path: &Path, before: &str, word: &str) -> Vec<Completion> {
        let lead = format!("{before}.");
        let mut names = BTreeSet::new();
        for prepared in self.prepared(path).iter().flat_map(|all| all.iter()) {
            for (read, _) in prepared.reads() {
                let rest = read.path.strip_prefix(&lead);
                names.extend(rest.and_then(|rest| rest.split(['.', '[']).next()).map(str::to_owned));
            }
        }
        let fits = |name: &String| !name.is_empty() && name.starts_with(word);
        let part = |name: String| plain(&name, CompletionKind::Variable, &format!("part of {before}"));
        names.into_iter().filter(fits).map(part).collect()
    }

    /// Files that a template can include, and ids of prompts. Prompts are known from the survey, so that no folder is listed whole.
    fn paths(&self, path: &Path, typed: &str) -> Vec<Completion> {
        let mut names = BTreeSet::new();
        if let Some(id) = typed.strip_prefix("prompt:") {
            let ids = self.index.prompts().map(|(_, one)| one.found.id.as_str());
            names.extend(
                ids.filter(|known| known.starts_with(id)).take(MOST_FILES).map(|id| format!("prompt:{id}")),
            );
        } else if "prompt:".starts_with(typed) {
            names.insert("prompt:".to_owned());
        }
        let library = self.book().library();
        let (folder, start) = typed.rsplit_once('/').unwrap_or(("", typed));
        let roots = library.roots().unwrap_or_default();
        let roots = roots.iter().filter_map(|root| root.folder()).filter(|root| path.starts_with(root));
        for root in roots {
            for entry in std::fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if name.starts_with('.') || !name.starts_with(start) || names.len() >= MOST_FILES {
                    continue;
                }
                let whole = if folder.is_empty() { name.clone() } else { format!("{folder}/{name}") };
                let ends = [".md", ".txt", ".j2", ".jinja", ".jinja2"];
                if ends.iter().any(|end| name.ends_with(end)) {
                    names.insert(whole);
                } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    names.insert(format!("{whole}/"));
                }
            }
        }
        let file = |name: String| plain(&name, CompletionKind::File, "");
        names.into_iter().map(file).collect()
    }
}

/// Roles where a message can begin.
fn roles(notation: Notation, text: &str, offset: usize) -> Vec<Completion> {
    let line = text[..offset].rsplit('\n').next().unwrap_or_default();
    let fits = notation == Notation::Prompty && !line.is_empty() && line.chars().all(is_word);
    let roles = ROLES.iter().filter(|role| fits && role.starts_with(line));
    roles.map(|role| plain(&format!("{role}:"), CompletionKind::Keyword, "begins a message")).collect()
}

/// The keys around a line of YAML, the outermost first.
pub(super) fn key_path(text: &str, offset: usize) -> Vec<String> {
    let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
    let indent_of = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    let mut indent = text[start..offset].len().min(indent_of(&text[start..]));
    let mut path = Vec::new();
    for line in text[..start].lines().rev() {
        let here = indent_of(line);
        if line.trim() == "---" {
            break;
        }
        if line.trim().is_empty() || here >= indent {
            continue;
        }
        let Some((key, _)) = line.trim_start_matches([' ', '-']).split_once(':') else { continue };
        path.insert(0, key.trim().to_owned());
        indent = here;
    }
    path
}

/// Keys and values of front matter.
fn front_matter_words(text: &str, offset: usize) -> Vec<Completion> {
    let schema = schema::schema("prompty").unwrap_or_default();
    let line = text[..offset].rsplit('\n').next().unwrap_or_default();
    let written = line.trim_start_matches([' ', '-']);
    let mut path = key_path(text, offset);
    match written.split_once(':') {
        Some((key, value)) => {
            path.push(key.trim().to_owned());
            let Some(level) = schema::at(&schema, &path) else { return Vec::new() };
            let value = value.trim();
            let words = schema::words(&schema, level).into_iter().filter(|word| word.starts_with(value));
            words.map(|word| plain(&word, CompletionKind::Value, "")).collect()
        }
        None => match schema::at(&schema, &path) {
            Some(level) => from_schema(&schema, level, written),
            None => Vec::new(),
        },
    }
}

fn from_schema(root: &serde_json::Value, level: &serde_json::Value, typed: &str) -> Vec<Completion> {
    let keys = schema::keys(root, level).into_iter().filter(|(key, _)| key.starts_with(typed));
    keys.map(|(key, about)| Completion { documentation: about, ..plain(&key, CompletionKind::Key, "key") })
        .collect()
}

/// Keys of `pack.json` and `cuebook.toml`.
fn settings_keys(path: &Path, text: &str, offset: usize) -> Vec<Completion> {
    let offset = super::cursor::floor(text, offset);
    let Some(schema) = schema::of_file(path) else { return Vec::new() };
    let line = text[..offset].rsplit('\n').next().unwrap_or_default().trim_start();
    let is_toml = path.extension().is_some_and(|end| end == "toml");
    if is_toml && line.starts_with('[') {
        return from_schema(&schema, &schema, line.trim_start_matches('['));
    }
    let typed = line.trim_start_matches(['"', '{', ',']);
    if !typed.chars().all(is_word) {
        return Vec::new();
    }
    let table =
        text[..offset].lines().rev().find_map(|line| line.trim().strip_prefix('[')?.strip_suffix(']'));
    let path: Vec<String> = table.filter(|_| is_toml).into_iter().map(str::to_owned).collect();
    schema::at(&schema, &path).map(|level| from_schema(&schema, level, typed)).unwrap_or_default()
}

/// Names and keys of `prompt.py`.
fn python(text: &str, offset: usize) -> Vec<Completion> {
    let line = text[..offset].rsplit('\n').next().unwrap_or_default();
    if line.chars().all(is_word) {
        let names = PYTHON.iter().map(|(name, _)| *name).chain(["pre_render", "post_render"]);
        let names = names.filter(|name| name.starts_with(line));
        return names.map(|name| plain(name, CompletionKind::Variable, "of a prompt")).collect();
    }
    let typed = line.rsplit(['"', '\'']).next().unwrap_or_default();
    let is_open = line.matches(['"', '\'']).count() % 2 == 1 && typed.chars().all(is_word);
    let owner = text[..offset].lines().rev().find_map(|line| {
        PYTHON
            .iter()
            .find(|(name, _)| line.strip_prefix(name).is_some_and(|rest| rest.trim_start().starts_with('=')))
    });
    let keys = owner.into_iter().filter(|_| is_open).flat_map(|(_, keys)| keys.iter());
    keys.filter(|key| key.starts_with(typed)).map(|key| plain(key, CompletionKind::Key, "key")).collect()
}

/// Elements and attributes of a directive's XML; `None` elsewhere.
fn elements(text: &str, offset: usize) -> Option<Vec<Completion>> {
    let open = text.find("```xml")? + 6;
    let close = text[open..].find("\n```").map_or(text.len(), |found| open + found);
    if !(open..=close).contains(&offset) {
        return None;
    }
    let before = &text[open..offset];
    let start = before.rfind('<').filter(|start| !before[*start..].contains('>'))?;
    let inside = &before[start + 1..];
    let mut words = inside.trim_start_matches('/').splitn(2, char::is_whitespace);
    let element = words.next().unwrap_or_default();
    let Some(rest) = words.next() else {
        let fitting = ELEMENTS.iter().filter(|(name, _)| name.starts_with(element));
        return Some(fitting.map(|(name, _)| plain(name, CompletionKind::Element, "element")).collect());
    };
    if rest.matches('"').count() % 2 == 1 {
        return Some(Vec::new());
    }
    let typed = rest.rsplit(char::is_whitespace).next().unwrap_or_default();
    let attributes =
        ELEMENTS.iter().find(|(name, _)| *name == element).map_or(&[][..], |(_, attributes)| *attributes);
    let fitting =
        attributes.iter().filter(|name| name.starts_with(typed) && !rest.contains(&format!("{name}=")));
    Some(fitting.map(|name| plain(name, CompletionKind::Key, "attribute")).collect())
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

/// Names that loops, `set`, `with`, imports and macros give in a text.
pub(super) fn local_names(text: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for tag in tags(text, 0) {
        let keyword = tag.keyword(text);
        let inside = text[tag.inside].trim_start();
        let rest = inside.strip_prefix(keyword).unwrap_or_default();
        let targets = match keyword {
            "set" | "with" => rest.split('=').next().unwrap_or_default(),
            "import" | "from" => rest
                .rsplit(" import ")
                .next()
                .filter(|_| keyword == "from")
                .unwrap_or_else(|| rest.rsplit(" as ").next().unwrap_or_default()),
            "for" => rest.split(" in ").next().unwrap_or_default(),
            "macro" => rest,
            _ => "",
        };
        let words = targets.split(|letter: char| !is_word(letter));
        let is_name = |word: &&str| word.starts_with(|first: char| first.is_alphabetic() || first == '_');
        names.extend(words.filter(is_name).map(str::to_owned));
    }
    names
}
