//! What can be written at a cursor.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use cuebook_template::{Group, reference};

use super::Service;
use super::cursor::{Inside, inside, is_word};
use super::hover;
use super::layout::{Notation, Tag, imports, tags};
use super::names::Thing;
use super::spots::unquoted;
use super::tokens::ROLES;
use super::words::{elements, from_schema, front_matter_words, python, section_words, settings_keys};
use crate::items::ItemType;
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
#[non_exhaustive]
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

/// What a loop knows of itself.
const LOOP: [(&str, &str); 12] = [
    ("index", "the number of the turn, from 1"),
    ("index0", "the number of the turn, from 0"),
    ("revindex", "how many turns are left, with this one"),
    ("revindex0", "how many turns are left"),
    ("first", "whether this is the first turn"),
    ("last", "whether this is the last turn"),
    ("length", "how many turns there are"),
    ("depth", "how deep the recursion is, from 1"),
    ("depth0", "how deep the recursion is, from 0"),
    ("previtem", "the item of the turn before"),
    ("nextitem", "the item of the next turn"),
    ("cycle", "one of its arguments after the other"),
];

/// As many files and ids are offered.
const MAX_FILES: usize = 1_000;

impl Service {
    /// What can be written at a byte of a file.
    pub fn complete(&self, path: &Path, offset: usize) -> Vec<Completion> {
        let name = path.file_name().and_then(|name| name.to_str());
        let is_settings = matches!(name, Some("pack.json" | "cuebook.toml"))
            && path.starts_with(self.book().library().root());
        if is_settings || (schema::is_provider(path) && self.is_in_space(path)) {
            return self.text(path).map(|text| settings_keys(path, &text, offset)).unwrap_or_default();
        }
        let Some(text) = self.text(path).filter(|_| self.owns(path)) else { return Vec::new() };
        let offset = super::cursor::floor(&text, offset);
        let notation = Notation::of(path);
        let front = notation.front_matter(&text);
        if front.as_ref().is_some_and(|front| (front.start..=front.end).contains(&offset)) {
            return match notation {
                Notation::Prompty => front_matter_words(&text, offset),
                Notation::Dotprompt | Notation::Skill | Notation::Knowledge => {
                    super::front::words(notation, &text, offset).unwrap_or_default()
                }
                _ => section_words(&text, offset, &[]).unwrap_or_default(),
            };
        }
        match notation {
            Notation::Python => return python(&text, offset),
            Notation::Cases => return self.case_inputs(path, &text, offset),
            Notation::Tool | Notation::Manifest | Notation::Skill | Notation::Knowledge => return Vec::new(),
            Notation::Dotprompt => return self.handlebars(path, &text, offset),
            Notation::Sections => {
                if let Some(found) = section_words(&text, offset, &self.tool_names(path, &text)) {
                    return found;
                }
            }
            Notation::Directive => {
                if let Some(found) = self.item_names(&text[..offset]).or_else(|| elements(&text, offset)) {
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
                // `$name` and `{input:name}` call nothing.
                if !lead.ends_with(['$', ':']) && !lead.ends_with("${") {
                    all.extend(callables(Group::Function, word));
                }
                all
            }
            Inside::Name { before: "system", word } => SYSTEM_NAMES
                .iter()
                .filter(|name| name.starts_with(word))
                .map(|name| plain(name, CompletionKind::Variable, "supplied by the system"))
                .collect(),
            Inside::Name { before: "self", word } => self.blocks(path, word),
            Inside::Name { before: "loop", word } => {
                let fitting = LOOP.iter().filter(|(name, _)| name.starts_with(word));
                fitting.map(|(name, about)| plain(name, CompletionKind::Variable, about)).collect()
            }
            Inside::Name { before, word } => match self.macros_of(path, &text, before) {
                Some(macros) => macros.into_iter().filter(|one| one.label.starts_with(word)).collect(),
                None => self.parts(path, before, word),
            },
        }
    }

    /// Variables, helpers, roles and partials in a `.prompt` file.
    fn handlebars(&self, path: &Path, text: &str, offset: usize) -> Vec<Completion> {
        match inside(text, offset) {
            Inside::Path(typed) => self.partials(path, typed),
            Inside::Name { before: "", word } => {
                let mut all = self.variables(path, "", word);
                all.extend(super::handlebars::words(&text[..offset], word).unwrap_or_default());
                all
            }
            Inside::Name { before, word } => self.parts(path, before, word),
            _ => {
                let typed = text[..offset].rsplit(|letter: char| !is_word(letter)).next().unwrap_or_default();
                super::handlebars::words(&text[..offset], typed).unwrap_or_default()
            }
        }
    }

    /// The partials of dotprompt that lie beside a file.
    fn partials(&self, path: &Path, typed: &str) -> Vec<Completion> {
        let entries = path.parent().and_then(|folder| std::fs::read_dir(folder).ok()).into_iter().flatten();
        let name = |entry: std::fs::DirEntry| {
            let name = entry.file_name().to_str()?.strip_prefix('_')?.strip_suffix(".prompt")?.to_owned();
            name.starts_with(typed).then_some(name)
        };
        let names: BTreeSet<String> = entries.flatten().filter_map(name).take(MAX_FILES).collect();
        names.iter().map(|name| plain(name, CompletionKind::File, "partial")).collect()
    }

    /// The tools that a file declares.
    fn tool_names(&self, path: &Path, text: &str) -> Vec<String> {
        let spots = self.spots(path, text).into_iter();
        let names = spots.filter_map(|spot| match spot.thing {
            Thing::Tool(_, name) => Some(name),
            _ => None,
        });
        names.collect::<BTreeSet<String>>().into_iter().collect()
    }

    /// Items, where a directive names one: in its permissions, its context and its text.
    fn item_names(&self, before: &str) -> Option<Vec<Completion>> {
        if let Some(at) = before.rfind("{include:").filter(|at| !before[*at..].contains(['}', '\n'])) {
            let typed = &before[at + "{include:".len()..];
            let (kind, typed, lead) = match typed.strip_prefix("directive:") {
                Some(typed) => (ItemType::Directive, typed, "directive:"),
                None => (ItemType::Knowledge, typed, ""),
            };
            let mut found = self.items(kind, typed, "/");
            if lead.is_empty() && "directive:".starts_with(typed) {
                found.push(plain("directive:", CompletionKind::Keyword, "includes a directive"));
            }
            return Some(found);
        }
        let open = before.rfind('<')?;
        let (name, typed) = before[open + 1..].split_once('>')?;
        let kind = match name {
            "system" | "before" | "after" => ItemType::Knowledge,
            name => ItemType::named(name)?,
        };
        Some(self.items(kind, typed.trim_start(), if name == kind.as_str() { "." } else { "/" }))
    }

    /// The ids of items that begin so.
    fn items(&self, kind: ItemType, typed: &str, separator: &str) -> Vec<Completion> {
        let spaces = self.book().library().spaces();
        let items = spaces.all().iter().filter_map(|space| spaces.walk(kind, space).ok()).flatten();
        let ids = items.map(|item| item.id.as_str().replace('/', separator));
        let fitting: BTreeSet<String> = ids.filter(|id| id.starts_with(typed)).take(MAX_FILES).collect();
        fitting.iter().map(|id| plain(id, CompletionKind::File, kind.as_str())).collect()
    }

    /// The sections of a prompt, by their paths.
    fn sections(&self, id: &str) -> Vec<String> {
        let found = self.book().find(id).ok();
        let compiled = found.map(|found| self.compiled(&found.candidate.source.as_str().into()));
        let prepared = compiled.as_ref().and_then(|all| all.first());
        let nodes = prepared.and_then(|one| one.tree()).map(|tree| tree.sections()).unwrap_or_default();
        nodes.iter().map(|node| node.dotted().to_owned()).collect()
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

    /// The macros of a template that another one imports under this name.
    fn macros_of(&self, path: &Path, text: &str, name: &str) -> Option<Vec<Completion>> {
        let (_, target, _) =
            imports(text).into_iter().find(|(alias, _, of)| alias == name && of.is_none())?;
        let target = Thing::Template(text[unquoted(text, &target)].to_owned());
        let text = self.text(&self.target_of(path, &target)?)?;
        let signature = |tag: Tag| {
            let inside = text[tag.inside.clone()].trim().strip_prefix("macro")?.trim();
            let name = inside.split(|letter: char| !is_word(letter)).next()?;
            Some(plain(name, CompletionKind::Function, inside))
        };
        Some(tags(&text, 0).into_iter().filter_map(signature).collect())
    }

    /// Files that a template can include, and ids of prompts. Prompts are known from the survey, so that no folder is listed whole.
    fn paths(&self, path: &Path, typed: &str) -> Vec<Completion> {
        let mut names = BTreeSet::new();
        let kinds = [("directive:", ItemType::Directive), ("knowledge:", ItemType::Knowledge)];
        for (lead, kind) in kinds {
            match typed.strip_prefix(lead) {
                Some(id) => names
                    .extend(self.items(kind, id, "/").into_iter().map(|one| format!("{lead}{}", one.label))),
                None if lead.starts_with(typed) => drop(names.insert(lead.to_owned())),
                None => {}
            }
        }
        if let Some((id, section)) = typed.strip_prefix("prompt:").and_then(|rest| rest.split_once('#')) {
            let paths = self.sections(id).into_iter().filter(|path| path.starts_with(section));
            names.extend(paths.map(|path| format!("prompt:{id}#{path}")));
        } else if let Some(id) = typed.strip_prefix("prompt:") {
            let ids = self.index.prompts().map(|(_, one)| one.found.id.as_str());
            names.extend(
                ids.filter(|known| known.starts_with(id)).take(MAX_FILES).map(|id| format!("prompt:{id}")),
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
                if name.starts_with('.') || !name.starts_with(start) || names.len() >= MAX_FILES {
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

pub(super) fn plain(label: &str, kind: CompletionKind, detail: &str) -> Completion {
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
