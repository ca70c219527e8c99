//! What two versions declare, compared name by name and field by field.

use std::collections::HashMap;

use serde_json::{Map, Value as Json};

use crate::changes::{Line, compare as compare_lines};

/// What a difference is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Aspect {
    /// What the prompt says of itself: its name, version, description and the like.
    About,
    /// What it takes.
    Variable,
    /// Which model, and how it is asked.
    Model,
    /// How its text is written and taken apart.
    Format,
    /// What a model may call.
    Tool,
    /// What an answer is to hold.
    Output,
    /// Parts of a tree of sections.
    Section,
    /// What its hooks, or threads that follow it, may do.
    Permission,
    /// How far they may go.
    Limit,
    /// Code that takes part in its renders, and what is to happen at certain moments of a thread.
    Hook,
    /// Namespaces that packs fill.
    Provider,
    /// Knowledge and actions of a directive.
    Context,
    /// The roles of the messages.
    Role,
}

impl Aspect {
    /// Every aspect, in the order in which they are reported.
    pub const ALL: [Aspect; 13] = [
        Aspect::About,
        Aspect::Variable,
        Aspect::Model,
        Aspect::Format,
        Aspect::Tool,
        Aspect::Output,
        Aspect::Section,
        Aspect::Permission,
        Aspect::Limit,
        Aspect::Hook,
        Aspect::Provider,
        Aspect::Context,
        Aspect::Role,
    ];

    /// Its name, for several of them.
    pub fn as_str(self) -> &'static str {
        match self {
            Aspect::About => "about",
            Aspect::Variable => "variables",
            Aspect::Model => "model",
            Aspect::Format => "format",
            Aspect::Tool => "tools",
            Aspect::Output => "outputs",
            Aspect::Section => "sections",
            Aspect::Permission => "permissions",
            Aspect::Limit => "limits",
            Aspect::Hook => "hooks",
            Aspect::Provider => "providers",
            Aspect::Context => "context",
            Aspect::Role => "roles",
        }
    }

    /// So many differences of it, in words.
    pub(super) fn counted(self, count: usize) -> String {
        match self {
            Aspect::About | Aspect::Model | Aspect::Format | Aspect::Context | Aspect::Role => {
                self.as_str().to_owned()
            }
            _ if count == 1 => format!("1 {}", self.as_str().trim_end_matches('s')),
            _ => format!("{count} {}", self.as_str()),
        }
    }
}

/// Whether something was added, removed or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Only the second version has it.
    Added,
    /// Only the first version has it.
    Removed,
    /// Both have it, and it is not the same.
    Changed,
}

impl Kind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Added => "added",
            Kind::Removed => "removed",
            Kind::Changed => "changed",
        }
    }

    /// The sign in front of it.
    pub fn sign(self) -> &'static str {
        match self {
            Kind::Added => "+",
            Kind::Removed => "-",
            Kind::Changed => "~",
        }
    }
}

/// Something that the two versions declare differently.
#[derive(Debug, Clone)]
pub struct Entry {
    /// What it is about.
    pub aspect: Aspect,
    /// Its name.
    pub name: String,
    /// What became of it.
    pub kind: Kind,
    /// What is different about it, field by field; what was added or removed has all its fields here.
    pub details: Vec<Detail>,
}

/// One field that is different.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Detail {
    /// The way to it, as in `parameters.number.description`; empty if there are no fields.
    pub path: String,
    /// What it was, as it may be shown.
    pub before: Option<Json>,
    /// What it is.
    pub after: Option<Json>,
    /// Whether what is different may not be shown.
    pub is_secret: bool,
    /// The lines that differ, if it is a longer text.
    pub lines: Vec<Line>,
}

/// Something that a version declares.
pub(super) struct Declared {
    pub(super) aspect: Aspect,
    pub(super) name: String,
    /// As it is.
    pub(super) value: Json,
    /// As it may be shown.
    pub(super) shown: Json,
}

impl Declared {
    pub(super) fn new(aspect: Aspect, name: impl Into<String>, value: Json) -> Declared {
        Declared { aspect, name: name.into(), shown: value.clone(), value }
    }

    fn fields(&self) -> Map<String, Json> {
        let mut fields = Map::new();
        flatten("", &self.value, &mut fields);
        fields
    }

    fn shown_fields(&self) -> Map<String, Json> {
        let mut fields = Map::new();
        flatten("", &self.shown, &mut fields);
        fields
    }
}

/// What is different between what two versions declare.
pub(super) fn compare(before: Vec<Declared>, after: Vec<Declared>) -> Vec<Entry> {
    let by_name = |list: &'_ [Declared]| -> HashMap<(Aspect, String), usize> {
        let names = list.iter().enumerate().rev();
        names.map(|(index, one)| ((one.aspect, one.name.clone()), index)).collect()
    };
    let (olds, news) = (by_name(&before), by_name(&after));
    let key = |one: &Declared| (one.aspect, one.name.clone());
    let mut entries = Vec::new();
    for aspect in Aspect::ALL {
        for old in before.iter().filter(|old| old.aspect == aspect) {
            match news.get(&key(old)).and_then(|index| after.get(*index)) {
                None => entries.push(entry(Some(old), None)),
                Some(new) if new.value != old.value => entries.push(entry(Some(old), Some(new))),
                Some(_) => {}
            }
        }
        for new in after.iter().filter(|new| new.aspect == aspect) {
            if !olds.contains_key(&key(new)) {
                entries.push(entry(None, Some(new)));
            }
        }
    }
    // Objects whose fields only stand in another order are the same.
    entries.retain(|entry| entry.kind != Kind::Changed || !entry.details.is_empty());
    entries
}

/// The roles of the messages.
pub(super) fn roles(before: &[String], after: &[String]) -> Entry {
    let list = |roles: &[String]| Some(Json::from(roles.to_vec()));
    let detail = Detail {
        path: String::new(),
        before: list(before),
        after: list(after),
        is_secret: false,
        lines: Vec::new(),
    };
    Entry { aspect: Aspect::Role, name: "messages".into(), kind: Kind::Changed, details: vec![detail] }
}

fn entry(before: Option<&Declared>, after: Option<&Declared>) -> Entry {
    let kind = match (before, after) {
        (None, _) => Kind::Added,
        (_, None) => Kind::Removed,
        _ => Kind::Changed,
    };
    let (aspect, name) = match after.or(before) {
        Some(declared) => (declared.aspect, declared.name.clone()),
        None => (Aspect::About, String::new()),
    };
    let fields = |declared: Option<&Declared>| declared.map(Declared::fields).unwrap_or_default();
    let shown = |declared: Option<&Declared>| declared.map(Declared::shown_fields).unwrap_or_default();
    let (old, new) = (fields(before), fields(after));
    let (old_shown, new_shown) = (shown(before), shown(after));
    let mut paths: Vec<&String> = old.keys().collect();
    paths.extend(new.keys().filter(|path| !old.contains_key(*path)));
    let details = paths
        .into_iter()
        .filter(|path| old.get(*path) != new.get(*path))
        .map(|path| {
            let (before, after) = (old_shown.get(path).cloned(), new_shown.get(path).cloned());
            let is_secret = old.get(path) != old_shown.get(path) || new.get(path) != new_shown.get(path);
            let lines = match (&before, &after) {
                (Some(Json::String(one)), Some(Json::String(other)))
                    if one.contains('\n') || other.contains('\n') =>
                {
                    compare_lines(one, other, None)
                }
                _ => Vec::new(),
            };
            Detail { path: path.clone(), before, after, is_secret, lines }
        })
        .collect();
    Entry { aspect, name, kind, details }
}

/// The fields of a value by their ways. Lists of things with names are taken by name, so that one more parameter does not
/// change all that follow.
fn flatten(path: &str, value: &Json, fields: &mut Map<String, Json>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Json::Object(object) if !object.is_empty() => {
            for (name, value) in object {
                flatten(&below(name), value, fields);
            }
        }
        Json::Array(items) if has_names(items) => {
            for item in items {
                let mut item = item.clone();
                let name = item.as_object_mut().and_then(|item| item.shift_remove("name"));
                flatten(&below(name.as_ref().and_then(Json::as_str).unwrap_or_default()), &item, fields);
            }
        }
        _ => drop(fields.insert(path.to_owned(), value.clone())),
    }
}

/// Whether all items have names, each its own.
fn has_names(items: &[Json]) -> bool {
    let mut names: Vec<&str> = items.iter().filter_map(|item| item["name"].as_str()).collect();
    if names.len() != items.len() || names.is_empty() {
        return false;
    }
    names.sort_unstable();
    names.dedup();
    names.len() == items.len()
}
