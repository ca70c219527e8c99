//! Front matter of Prompty 1, and of the versions between 1 and 2, in the words of Prompty 2.
//!
//! [`upgrade`] works on front matter as it was written, before references are followed, and every value keeps its place. What
//! reads the result needs to know one version only.

mod model;
mod property;
mod tool;

use super::reference::Reference;
use crate::error::{Code, Diagnostic, Hint, Severity};
use crate::node::{Data, Key, Node};
use crate::source::Place;

/// Keys at the top that became metadata.
const METADATA: [&str; 4] = ["authors", "tags", "version", "id"];

/// The version that a file is written for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    /// Prompty 1. Its runtime uses no defaults, asks for no outputs, and skips empty messages.
    One,
    /// A version between 1 and 2: the names of 1, the meaning of 2.
    Between,
}

/// What a file is upgraded for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To be read as its own version reads it.
    Read,
    /// To be written as a file of Prompty 2.
    Migrate {
        /// Whether the template leaves the role of a message to a value.
        roles_of_values: bool,
        /// Whether the template shows what no input declares.
        shows_undeclared: bool,
    },
}

/// What an upgrade did with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It has another name.
    Renamed,
    /// Prompty 2 does something else with it.
    Differs,
    /// Prompty 2 has no key for it.
    Lost,
}

/// One change.
#[derive(Debug, Clone)]
pub struct Change {
    /// What it does to a reader.
    pub effect: Effect,
    /// Where it was written.
    pub place: Place,
    /// What changed.
    pub message: String,
}

/// What is known about an old file.
#[derive(Debug, Clone)]
pub(crate) struct OldFile {
    pub(crate) version: Version,
    /// The first key that Prompty 2 does not have.
    mark: Place,
    pub(crate) changes: Vec<Change>,
    /// Whether Prompty 2 refuses the file, so that Prompty 1 alone makes messages of it.
    refused: bool,
    /// Inputs whose defaults Prompty 1 does not use, each with its place.
    pub(super) unused_defaults: Vec<(String, Place)>,
}

impl OldFile {
    /// What `check` reports about the file.
    pub(super) fn notes(&self) -> Vec<Diagnostic> {
        let version = match self.version {
            Version::One => "Prompty 1",
            Version::Between => "a version between Prompty 1 and Prompty 2",
        };
        let mut notes = vec![
            Diagnostic::new(
                Code::PromptyV1,
                format!("the file uses the format of {version}, and Cuebook reads it as that version"),
            )
            .at(self.mark.clone())
            .label("Prompty 2 has no such key here")
            .hint(
                Hint::command_line("`cuebook convert … --to prompty` rewrites it for Prompty 2")
                    .for_programs("convert it to Prompty 2"),
            ),
        ];
        if let Some((_, place)) = self.unused_defaults.first() {
            let names: Vec<String> =
                self.unused_defaults.iter().map(|(name, _)| format!("`{name}`")).collect();
            let message = format!("Prompty 1 does not use the default of {}", names.join(", "));
            notes.push(
                Diagnostic::new(Code::PromptyV1, message)
                    .at(place.clone())
                    .hint("give a value, or rewrite the file for Prompty 2, which uses defaults"),
            );
        }
        let lost = self.changes.iter().filter(|change| change.effect == Effect::Lost);
        notes.extend(
            lost.map(|change| {
                Diagnostic::new(Code::PromptyV1, change.message.clone()).at(change.place.clone())
            }),
        );
        notes.into_iter().map(|note| note.severity(Severity::Warning)).collect()
    }
}

/// Front matter in the words of Prompty 2, and what was changed; nothing if it is that of Prompty 2 already. `follow` gives what a
/// value refers to in another file, or the value itself.
pub(super) fn upgrade(
    root: Node,
    purpose: Purpose,
    follow: &mut dyn FnMut(&Node) -> Node,
) -> (Node, Option<OldFile>) {
    let Node { data: Data::Map(mut entries), place, from_environment } = root else { return (root, None) };
    for (_, node) in entries.iter_mut().filter(|(key, _)| key.name == "model") {
        *node = followed(node, follow);
    }
    let mut upgrade = match recognise(&entries) {
        Some((version, mark)) => Upgrade {
            purpose,
            follow,
            old: OldFile {
                version,
                mark,
                refused: is_refused(&entries),
                changes: Vec::new(),
                unused_defaults: Vec::new(),
            },
        },
        None => return (Node { data: Data::Map(entries), place, from_environment }, None),
    };
    let entries = upgrade.top(entries);
    (Node { data: Data::Map(entries), place, from_environment }, Some(upgrade.old))
}

/// The version of a file that is older than Prompty 2, and the first key that says so.
fn recognise(entries: &[(Key, Node)]) -> Option<(Version, Place)> {
    let mut first: Option<Place> = None;
    let mut version = Version::Between;
    for (key, node) in entries {
        let (mark, is_one) = match key.name.as_str() {
            "sample" => (Some(key.place.clone()), true),
            "base" => (Some(key.place.clone()), false),
            name if METADATA.contains(&name) => (Some(key.place.clone()), false),
            "model" => model::mark(node),
            "inputs" | "outputs" => (property::mark(node), false),
            "tools" => (tool::mark(node), false),
            _ => (None, false),
        };
        first = first.or(mark);
        if is_one {
            version = Version::One;
        }
    }
    first.map(|place| (version, place))
}

/// Whether Prompty 2 refuses what it does not ignore: inputs without a kind, and a template that is a text.
fn is_refused(entries: &[(Key, Node)]) -> bool {
    entries.iter().any(|(key, node)| match key.name.as_str() {
        "inputs" => property::mark(node).is_some(),
        "template" => node.text().is_some(),
        _ => false,
    })
}

/// An upgrade of one file.
struct Upgrade<'f> {
    purpose: Purpose,
    follow: &'f mut dyn FnMut(&Node) -> Node,
    old: OldFile,
}

impl Upgrade<'_> {
    fn top(&mut self, entries: Vec<(Key, Node)>) -> Vec<(Key, Node)> {
        let mut top: Vec<(Key, Node)> = Vec::new();
        let (mut metadata, mut sample, mut tools) = (Vec::new(), None, None);
        for (key, node) in entries {
            match key.name.as_str() {
                name if METADATA.contains(&name) => {
                    self.renamed(&key, format!("`{name}` is `metadata.{name}`"));
                    metadata.push((key, node));
                }
                "base" => self.lost(&key, "`base` is ignored: a prompt takes no front matter from another"),
                "sample" => sample = Some((key, self.follow(&node))),
                "model" => {
                    let (model, found) = self.model(node);
                    tools = tools.or(found);
                    top.push((key, model));
                }
                "inputs" => {
                    let node = self.follow(&node);
                    let node = self.properties(node, "inputs");
                    top.push((key, node));
                }
                "outputs" if self.reads_one() => {
                    self.differs(&key, "`outputs` is not sent to the model, as in Prompty 1");
                }
                "outputs" => {
                    if self.old.version == Version::One {
                        self.differs(&key, "the model is asked for `outputs`: Prompty 1 does not send them");
                    }
                    let node = self.follow(&node);
                    let node = self.properties(node, "outputs");
                    top.push((key, node));
                }
                "tools" => tools = Some((key, node)),
                "template" => {
                    let node = self.template(&key, node);
                    top.push((key, node));
                }
                _ => top.push((key, node)),
            }
        }
        if let Some((key, node)) = tools {
            let node = self.tools(node);
            top.push((named("tools", &key), node));
        }
        if let Some((key, node)) = sample {
            self.samples(&key, node, &mut top);
        }
        merge(&mut top, "metadata", metadata);
        self.ways(&mut top);
        top
    }

    /// Whether the file is to be read as Prompty 1 reads it.
    fn reads_one(&self) -> bool {
        self.old.version == Version::One && self.purpose == Purpose::Read
    }

    fn follow(&mut self, node: &Node) -> Node {
        followed(node, self.follow)
    }

    fn template(&mut self, key: &Key, node: Node) -> Node {
        let place = node.place.clone();
        match node.data {
            Data::Text(_) => {
                self.renamed(key, "`template` is `template.format`".into());
                map(vec![(named("format", key), node)], place)
            }
            Data::Map(entries) => {
                let rename = |(key, node): (Key, Node)| match key.name.as_str() {
                    "type" => {
                        self.renamed(&key, "`template.type` is `template.format`".into());
                        (named("format", &key), node)
                    }
                    _ => (key, node),
                };
                map(entries.into_iter().map(rename).collect(), place)
            }
            _ => node,
        }
    }

    /// Says what old files do otherwise than those of Prompty 2: how values print, what becomes of empty messages, and that
    /// a value may choose between roles.
    fn ways(&mut self, top: &mut Vec<(Key, Node)>) {
        let at = Key { name: String::new(), place: self.old.mark.clone() };
        let text = |text: &str| Node::new(Data::Text(text.into()), at.place.clone());
        let option = |(name, value): (&str, &str)| (named(name, &at), text(value));
        let mut parser = Vec::new();
        if !matches!(self.purpose, Purpose::Migrate { roles_of_values: false, .. }) {
            parser.push(("roles", "values"));
        }
        if self.reads_one() {
            parser.push(("empty", if self.old.refused { "skip" } else { "skip-bare" }));
        }
        let mut format = Vec::new();
        let shows_undeclared = !matches!(self.purpose, Purpose::Migrate { shows_undeclared: false, .. });
        if self.old.version == Version::One && (shows_undeclared || has_other_than_text(top)) {
            format.push(("scalars", "python"));
        }
        let template = top.iter().position(|(key, _)| key.name == "template");
        let mut halves = match template.map(|at| top.remove(at)) {
            Some((_, Node { data: Data::Map(halves), .. })) => halves,
            Some((key, node)) if !node.is_null() => return top.push((key, node)),
            _ => Vec::new(),
        };
        for (name, options) in [("format", format), ("parser", parser)] {
            let index = halves.iter().position(|(key, _)| key.name == name);
            let half = index.map(|index| halves.remove(index).1);
            let kind = match half {
                None => text(""),
                Some(half) if half.text().is_some() => half,
                Some(half) => {
                    halves.push((named(name, &at), half));
                    continue;
                }
            };
            let is_jinja = matches!(kind.text(), Some("" | "*" | "jinja2" | "jinja" | "nunjucks"));
            let options: Vec<(Key, Node)> = match name {
                "format" if !is_jinja => Vec::new(),
                _ => options.into_iter().map(option).collect(),
            };
            if !options.is_empty() {
                let options = map(options, at.place.clone());
                let half = vec![(named("kind", &at), kind), (named("options", &at), options)];
                halves.push((named(name, &at), map(half, at.place.clone())));
            } else if kind.text() != Some("") {
                halves.push((named(name, &at), kind));
            }
        }
        if !halves.is_empty() {
            top.push((named("template", &at), map(halves, at.place.clone())));
        }
    }

    fn renamed(&mut self, key: &Key, message: String) {
        self.change(Effect::Renamed, key, message);
    }

    fn differs(&mut self, key: &Key, message: impl Into<String>) {
        self.change(Effect::Differs, key, message.into());
    }

    fn lost(&mut self, key: &Key, message: impl Into<String>) {
        self.change(Effect::Lost, key, message.into());
    }

    fn change(&mut self, effect: Effect, key: &Key, message: String) {
        self.old.changes.push(Change { effect, place: key.place.clone(), message });
    }
}

/// Whether an input is something else than text. Texts print alike everywhere.
fn has_other_than_text(top: &[(Key, Node)]) -> bool {
    let inputs = top.iter().filter(|(key, _)| key.name == "inputs");
    let kinds = inputs.flat_map(|(_, inputs)| property::each(inputs)).map(|input| match &input.data {
        Data::Map(_) => input.get("kind").and_then(Node::text).unwrap_or_default(),
        Data::Text(_) => "string",
        _ => "",
    });
    kinds.into_iter().any(|kind| kind != "string")
}

/// What a value refers to in another file, if that holds keys or a list; the value itself otherwise.
fn followed(node: &Node, follow: &mut dyn FnMut(&Node) -> Node) -> Node {
    if !is_reference(node) {
        return node.clone();
    }
    let found = follow(node);
    if matches!(found.data, Data::Map(_) | Data::List(_)) { found } else { node.clone() }
}

fn is_reference(node: &Node) -> bool {
    node.text().and_then(Reference::of).is_some()
}

/// A key of another name at the place of this one.
fn named(name: &str, at: &Key) -> Key {
    Key { name: name.to_owned(), place: at.place.clone() }
}

fn map(entries: Vec<(Key, Node)>, place: Place) -> Node {
    Node::new(Data::Map(entries), place)
}

/// Adds entries to the map of that name, behind its own; a key that it has stays.
fn merge(top: &mut Vec<(Key, Node)>, name: &str, more: Vec<(Key, Node)>) {
    let Some((first, node)) = more.first() else { return };
    let (key, place) = (named(name, first), node.place.clone());
    let at = top.iter().position(|(key, _)| key.name == name).unwrap_or_else(|| {
        top.push((key, map(Vec::new(), place)));
        top.len() - 1
    });
    if let Data::Map(entries) = &mut top[at].1.data {
        for (key, node) in more {
            if !entries.iter().any(|(known, _)| known.name == key.name) {
                entries.push((key, node));
            }
        }
    }
}
