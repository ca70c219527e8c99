//! What is known of something under a cursor, as Markdown.

use std::path::Path;
use std::sync::Arc;

use cuebook_template::{Entry, Group, reference};

use super::Service;
use super::cursor::{Inside, inside, word_at};
use super::layout::{Notation, front_matter};
use super::names::Thing;
use crate::prepared::Prepared;
use crate::prompt::{Need, Variable};
use crate::schema;
use crate::tokens::Tokenizer;
use crate::variables::{Context, Layer, SYSTEM, Variables};

impl Service {
    /// What is known of what stands at a byte of a file.
    pub fn hover(&self, path: &Path, offset: usize) -> Option<String> {
        let text = self.text(path).filter(|_| self.owns(path))?;
        let word = word_at(&text, offset);
        let name = text.get(word.clone()).unwrap_or_default();
        let notation = Notation::of(path);
        let front = front_matter(&text).filter(|_| notation == Notation::Prompty);
        if front.as_ref().is_some_and(|front| front.contains(&offset)) {
            let declared = match self.thing_at(path, offset) {
                Some(Thing::Variable(name)) => self.variable(path, &name),
                _ => None,
            };
            return declared.or_else(|| front_matter_key(&text, &word));
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
                Thing::Variable(root) => {
                    self.variable(path, &root).or_else(|| callable(Group::Function, name))
                }
                Thing::Local(name) => Some(format!("**{name}**\n\nSet in this template.")),
                Thing::Macro(name) => self.macro_signature(path, &name).map(|line| format!("**{line}**")),
                Thing::Block(name) => Some(format!("**block {name}**")),
                Thing::Template(_) => None,
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

    /// The template that a string names, and what it costs.
    fn included(&self, path: &Path, offset: usize) -> Option<String> {
        let file = self.definition(path, offset)?.path;
        let text = self.text(&file)?;
        let name = self.book().library().name(&file);
        let tokens = tokens_of(&text);
        let used = self.users(&file, usize::MAX).len();
        Some(format!(
            "`{name}`: {} lines, about {tokens} tokens before its variables are filled in\n\nUsed by {used} prompt{}.",
            text.lines().count(),
            if used == 1 { "" } else { "s" }
        ))
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
    let path = super::complete::key_path(text, word.start);
    let key = text.get(word.clone())?;
    let schema = schema::schema("prompty")?;
    let known = schema::keys(&schema, schema::at(&schema, &path)?);
    let (_, about) = known.into_iter().find(|(known, _)| known == key)?;
    Some(format!("**{key}**\n\n{about}"))
}

/// The beginning of a long text.
fn short(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
