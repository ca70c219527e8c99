//! What is known of something under a cursor, as Markdown.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use cuebook_template::{Entry, Group, reference};
use globset::GlobBuilder;

use super::Service;
use super::cursor::{Inside, inside, word_at};
use super::layout::Notation;
use super::names::Thing;
use super::words::{element, section_key};
use crate::items::ItemType;
use crate::prepared::Prepared;
use crate::prompt::{Need, Variable};
use crate::schema;
use crate::sections::Body;
use crate::tokens::Tokenizer;
use crate::variables::{Context, Layer, SYSTEM, Variables};

impl Service {
    /// What is known of what stands at a byte of a file.
    pub fn hover(&self, path: &Path, offset: usize) -> Option<String> {
        let text = self.text(path).filter(|_| self.owns(path))?;
        let word = word_at(&text, offset);
        let name = text.get(word.clone()).unwrap_or_default();
        if let Some(spot) = self.spot_at(path, &text, offset) {
            return self.target(&spot.thing);
        }
        let notation = Notation::of(path);
        let front = notation.front_matter(&text);
        if front.as_ref().is_some_and(|front| front.contains(&offset)) {
            let declared = match self.thing_at(path, offset) {
                Some(Thing::Variable(name)) => self.variable(path, &name),
                _ => None,
            };
            return declared
                .or_else(|| super::front::about(path, &text, &word))
                .or_else(|| section_key(&text, &word).filter(|_| notation == Notation::Sections))
                .or_else(|| front_matter_key(&text, &word).filter(|_| notation == Notation::Prompty));
        }
        match notation {
            Notation::Skill | Notation::Knowledge => return None,
            Notation::Sections => {
                if let Some(about) = section_key(&text, &word) {
                    return Some(about);
                }
            }
            Notation::Directive => {
                if let Some(about) = element(&text, &word) {
                    return Some(about);
                }
            }
            _ => {}
        }
        match inside(&text, word.end) {
            Inside::Filter(_) => callable(Group::Filter, name),
            Inside::Test(_) => callable(Group::Test, name),
            Inside::Path(_) => self.included(path, offset),
            Inside::Name { before: "", .. } if name.is_empty() => None,
            Inside::Name { .. } => match self.thing_at(path, offset)? {
                Thing::Variable(root) if root == SYSTEM => {
                    Some(format!("**{SYSTEM}**\n\nSupplied by the system."))
                }
                Thing::Variable(_) if notation == Notation::Dotprompt && is_helper(&text, &word) => {
                    super::handlebars::about(name)
                }
                Thing::Variable(root) => {
                    self.variable(path, &root).or_else(|| callable(Group::Function, name))
                }
                Thing::Local(name) => {
                    let of_macro = self.macro_named(path, &name);
                    let signature = of_macro.and_then(|name| self.macro_signature(path, &name));
                    let set = || format!("**{name}**\n\nSet in this template.");
                    Some(signature.map_or_else(set, |line| format!("**{line}**")))
                }
                Thing::Macro(name) => self.macro_signature(path, &name).map(|line| format!("**{line}**")),
                Thing::Block(name) => Some(format!("**block {name}**")),
                _ => None,
            },
            Inside::Tag(_) | Inside::Text => match self.thing_at(path, offset)? {
                Thing::Variable(name) => self.variable(path, &name),
                _ => None,
            },
        }
    }

    fn variable(&self, path: &Path, name: &str) -> Option<String> {
        let prepared = self.prepared(path);
        let mut all = prepared.iter().flat_map(|all| all.iter());
        let declared = all.clone().find_map(|one| Some((one, one.prompt().variable(name)?)));
        let Some((prepared, variable)) = declared else {
            let reads = all.any(|one| one.known_names().contains(name));
            return reads.then(|| format!("**{name}**\n\nNot declared: the caller passes it."));
        };
        let mut parts = vec![format!("**{name}**: {}", declaration(variable))];
        parts.extend(variable.description.clone());
        let defaults = self.book().library().defaults().ok();
        let of_library = defaults.and_then(|defaults| defaults.variables.get(name));
        parts.push(layers(prepared, variable, of_library));
        if let Some(parent) = &variable.inherited_from {
            parts.push(format!("Inherited from `{parent}`."));
        }
        if let Some(place) = &variable.place {
            parts.push(format!("Declared in {}:{}.", place.file(), place.line()));
        }
        Some(parts.join("\n\n"))
    }

    /// What is known of a prompt, a section, a tool or an item.
    fn target(&self, thing: &Thing) -> Option<String> {
        match thing {
            Thing::Prompt(id) => {
                let found = self.book().find(id).ok()?;
                let compiled = self.compiled(&found.candidate.source.as_str().into());
                let about = compiled.first().and_then(|one| one.prompt().metadata.description.clone());
                let file = self.place_of(thing)?.path;
                let heading = format!("**{}**: prompt ({})", found.id, found.candidate.dialect.name);
                Some(
                    [Some(heading), about, self.size(&file)]
                        .into_iter()
                        .flatten()
                        .collect::<Vec<_>>()
                        .join("\n\n"),
                )
            }
            Thing::Section(id, path) => {
                let found = self.book().find(id).ok()?;
                let compiled = self.compiled(&found.candidate.source.as_str().into());
                let tree = compiled.first()?.tree()?;
                let node = tree.sections().iter().find(|node| node.dotted() == path)?;
                let tokens = match &node.section.body {
                    Body::Template { text, .. } => tokens_of(text.text()),
                    _ => 0,
                };
                let summary = node.section.summary.as_ref().map(|text| format!("\n\n{}", text.text().trim()));
                Some(format!(
                    "**{}**: section `{path}` of `{id}`, about {tokens} tokens without the sections below it{}",
                    node.section.title,
                    summary.unwrap_or_default()
                ))
            }
            Thing::Tool(file, name) => {
                let source = self.users(file, 1).into_iter().next()?;
                let compiled = self.compiled(&source);
                let prepared = compiled.first()?;
                let own = prepared.prompt().tools.iter().find(|tool| tool.name == *name);
                let nodes = prepared.tree().map(|tree| tree.sections()).unwrap_or_default();
                let tools = nodes.iter().flat_map(|node| &node.section.tools);
                let of_section = tools.filter(|tool| tool.name == *name).map(|tool| tool.description.clone());
                let about =
                    own.and_then(|tool| tool.description.clone()).or_else(|| of_section.into_iter().next());
                Some(format!("**{name}**: tool\n\n{}", about.unwrap_or_default()).trim_end().to_owned())
            }
            Thing::Item(kind, pattern) if pattern.contains(['*', '?', '[']) => {
                let ids = self.matching(*kind, pattern);
                let shown: Vec<String> = ids.iter().take(10).map(|id| format!("- `{id}`")).collect();
                Some(format!("**{pattern}** matches {} {kind} items\n\n{}", ids.len(), shown.join("\n")))
            }
            Thing::Item(kind, id) => {
                let size = self.item_file(*kind, id).and_then(|file| self.size(&file));
                let shown = size.or_else(|| {
                    let is_known = !self.matching(*kind, id).is_empty();
                    is_known.then(|| "It is part of the program.".to_owned())
                })?;
                Some(format!("**{}**: {kind}\n\n{shown}", id.replace('.', "/")))
            }
            _ => None,
        }
    }

    /// The ids of items that a permission is for.
    fn matching(&self, kind: ItemType, pattern: &str) -> Vec<String> {
        let escaped = pattern.replace('{', "[{]").replace('}', "[}]");
        let Ok(glob) = GlobBuilder::new(&escaped).literal_separator(false).build() else { return Vec::new() };
        let (glob, spaces) = (glob.compile_matcher(), self.book().library().spaces());
        let items = spaces.all().iter().filter_map(|space| spaces.walk(kind, space).ok()).flatten();
        let ids = items.map(|item| item.id.as_str().to_owned());
        let found: BTreeSet<String> = ids.filter(|id| glob.is_match(id.replace('/', "."))).collect();
        found.into_iter().collect()
    }

    /// How long a file is, and how many prompts use it.
    fn size(&self, file: &Path) -> Option<String> {
        let text = self.text(file)?;
        let (name, tokens) = (self.book().library().name(file), tokens_of(&text));
        let (lines, used) = (text.lines().count(), self.users(file, usize::MAX).len());
        let many = |count: usize| if count == 1 { "" } else { "s" };
        Some(format!(
            "`{name}`: {lines} line{}, about {tokens} tokens before its variables are filled in\n\nUsed by {used} prompt{}.",
            many(lines),
            many(used)
        ))
    }

    /// The template that a string names, and what it costs.
    fn included(&self, path: &Path, offset: usize) -> Option<String> {
        self.size(&self.definition(path, offset)?.path)
    }
}

/// The tokens of a text, with the vocabulary that counts for no model in particular.
pub(super) fn tokens_of(text: &str) -> usize {
    Tokenizer::for_no_model().count(text)
}

/// The layers of a variable, as a list: who wins where the caller passes nothing, and who loses.
fn layers(prepared: &Prepared, variable: &Variable, of_library: Option<serde_json::Value>) -> String {
    let scope = prepared.scope(&Variables::new(), &Arc::new(Context::default()));
    let shown = |value: &serde_json::Value| short(&variable.shown(value).to_string());
    let winner = scope.get(&variable.name);
    let mut lines: Vec<String> = vec!["1. the caller, if it passes a value".to_owned()];
    if prepared.provides(&variable.name) {
        lines.push("1. a variable provider of a pack".to_owned());
    }
    let own = variable.default.as_ref().map(|value| {
        let layer = if variable.need == Need::Custom { Layer::Custom } else { Layer::Optional };
        (layer, value.clone())
    });
    let of_library = of_library.map(|value| (Layer::Defaults, value));
    let system = winner.clone().filter(|(layer, _)| *layer == Layer::System);
    for (layer, value) in system.into_iter().chain(own).chain(of_library) {
        let wins = winner.as_ref().is_some_and(|(winner, _)| *winner == layer);
        let mark = if wins { " ← used without a caller's value" } else { " (overridden)" };
        lines.push(format!("1. {}: `{}`{mark}", layer.describe(), shown(&value)));
    }
    format!("Layers, the first one wins:\n\n{}", lines.join("\n"))
}

/// How a variable is declared, in a few words.
pub(super) fn declaration(variable: &Variable) -> String {
    let kind = variable.rich.map_or(variable.kind.as_str(), |rich| rich.as_str());
    let need = variable.need.as_str();
    match &variable.default {
        Some(default) => format!("{need} {kind}, default `{}`", short(&variable.shown(default).to_string())),
        None => format!("{need} {kind}"),
    }
}

/// The documentation of a filter, a test or a function.
pub(super) fn documentation(entry: &Entry) -> String {
    match entry.example.is_empty() {
        true => entry.about.to_owned(),
        false => format!("{}\n\n```jinja\n{}\n```\n\ngives `{}`", entry.about, entry.example, entry.result),
    }
}

fn callable(group: Group, name: &str) -> Option<String> {
    let entry = reference().into_iter().find(|entry| entry.group == group && entry.name == name)?;
    Some(format!("**{}**\n\n{}", entry.signature, documentation(&entry)))
}

/// What the schema says of a key of front matter.
fn front_matter_key(text: &str, word: &std::ops::Range<usize>) -> Option<String> {
    let path = super::words::key_path(text, word.start);
    let key = text.get(word.clone())?;
    let schema = schema::schema("prompty")?;
    let known = schema::keys(&schema, schema::at(&schema, &path)?);
    let (_, about) = known.into_iter().find(|(known, _)| known == key)?;
    Some(format!("**{key}**\n\n{about}"))
}

/// Whether a word begins a tag of Handlebars and is no variable.
fn is_helper(text: &str, word: &std::ops::Range<usize>) -> bool {
    let begins = text[..word.start].trim_end_matches(['#', '/', '^', ' ']).ends_with(['{', '(']);
    begins && super::handlebars::about(&text[word.clone()]).is_some()
}

/// The beginning of a long text.
fn short(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
