//! The fields of `pack.json`, one after the other.
//!
//! A problem with one field does not hide those with another: what is wrong is noted and gets its default, and reading
//! goes on.

mod providers;

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;

use super::spelling::{
    is_id, is_item_id, is_semver_like, not_a_vocab_name, not_an_id, not_an_item_id, suggestion, vocab_parts,
};
use super::{Manifest, PackKind, Replaces};
use crate::error::{Code, Diagnostic, ErrorKind, Severity, did_you_mean, nearest};
use crate::items::ItemId;
use crate::json::{Document, quoted};
use crate::library::normalize_id;
use crate::library::portable;
use crate::node::{Data, Key, Node};
use crate::reader::{Notation, ValueReader, unknown_key};
use crate::source::Place;

pub(super) const FIELDS: &[&str] = &[
    "pack_id",
    "name",
    "version",
    "type",
    "description",
    "author",
    "license",
    "tags",
    "prompts",
    "partials",
    "tools",
    "agents",
    "variable_providers",
    "replaces",
    "vocab",
    "$schema",
];
const REPLACES_FIELDS: &[&str] = &["prompts", "tools", "flows"];

/// A value of the manifest.
#[derive(Clone)]
pub(super) struct Field<'n> {
    node: &'n Node,
    key: Option<&'n Key>,
    /// As people write it: `variable_providers[0].file`; empty for the whole file.
    name: String,
}

impl<'n> Field<'n> {
    fn root(node: &'n Node) -> Field<'n> {
        Field { node, key: None, name: String::new() }
    }

    fn member(&self, entry: &'n (Key, Node)) -> Field<'n> {
        let (key, node) = entry;
        let name = match self.name.as_str() {
            "" => key.name.clone(),
            outer => format!("{outer}.{}", key.name),
        };
        Field { node, key: Some(key), name }
    }

    /// A member, if there is one.
    fn entry(&self, key: &str) -> Option<Field<'n>> {
        self.node.entry(key).map(|entry| self.member(entry))
    }

    /// A member that is there and not null.
    fn get(&self, key: &str) -> Option<Field<'n>> {
        self.entry(key).filter(|field| !field.node.is_null())
    }

    /// The members of an object, with their keys.
    fn members(&self) -> Vec<(&'n str, Field<'n>)> {
        let Data::Map(entries) = &self.node.data else { return Vec::new() };
        entries.iter().map(|entry| (entry.0.name.as_str(), self.member(entry))).collect()
    }

    /// The elements of an array; `None` if it is none.
    fn items(&self) -> Option<Vec<Field<'n>>> {
        let Data::List(items) = &self.node.data else { return None };
        let item = |(index, node): (usize, &'n Node)| Field {
            node,
            key: None,
            name: format!("{}[{index}]", self.name),
        };
        Some(items.iter().enumerate().map(item).collect())
    }

    fn place(&self) -> &'n Place {
        &self.node.place
    }

    /// Where its key stands; the value itself if it has none.
    fn key_place(&self) -> &'n Place {
        self.key.map_or(&self.node.place, |key| &key.place)
    }

    /// Its name in a message.
    fn shown(&self) -> String {
        if self.name.is_empty() { "pack.json".into() } else { quoted(&self.name) }
    }
}

/// Reads the fields, and collects what makes the manifest unusable, and warnings.
#[doc(hidden)]
pub struct ManifestReader {
    pub(super) values: ValueReader,
}

/// A message, a label and a hint.
type Problem = (String, String, String);

impl ManifestReader {
    pub(super) fn new() -> ManifestReader {
        ManifestReader { values: ValueReader::new(Code::BadManifest, ErrorKind::Pack, Notation::Json) }
    }

    /// Reads every field. The result is good only if there are no problems afterwards.
    pub(super) fn manifest(&mut self, document: &Document) -> Manifest {
        let empty = Manifest {
            pack_id: String::new(),
            name: String::new(),
            version: "1.0.0".into(),
            kind: PackKind::default(),
            description: None,
            author: None,
            license: None,
            tags: Vec::new(),
            prompts: Vec::new(),
            partials: Vec::new(),
            tools: Vec::new(),
            agents: Vec::new(),
            variable_providers: Vec::new(),
            replaces: Replaces::default(),
            vocab: IndexMap::new(),
            document: document.clone(),
        };
        let node = document.to_node();
        let root = &Field::root(&node);
        if !self.is_object(root, Some(FIELDS)) {
            return empty;
        }
        let pack_id = self.pack_id(root);
        let name = self.line(root, "name").unwrap_or_else(|| pack_id.clone());
        let prompts = self.prompts(root);
        let replaces = self.replaces(root, &prompts);
        Manifest {
            name,
            version: self.version(root).unwrap_or(empty.version),
            kind: self.kind(root),
            description: self.prose(root, "description"),
            author: self.line(root, "author"),
            license: self.line(root, "license"),
            tags: self.list(root, "tags", |reader, field, tag| reader.one_line(field, tag)),
            partials: self.list(root, "partials", |reader, field, file| reader.pack_path(field, file, ".md")),
            tools: self.list(root, "tools", |reader, field, id| reader.item_id(field, id)),
            agents: self.list(root, "agents", |reader, field, id| reader.item_id(field, id)),
            variable_providers: self.providers(root),
            vocab: self.vocab(root),
            pack_id,
            prompts,
            replaces,
            document: empty.document,
        }
    }

    fn wrong(&mut self, place: &Place, (message, label, hint): Problem) {
        let diagnostic = Diagnostic::new(Code::BadManifest, message).at(place.clone());
        self.values.problem(diagnostic.label(label).hint(hint));
    }

    /// Reports that an object has not what it needs.
    fn lacking(&mut self, field: &Field<'_>, message: String, hint: String) {
        self.wrong(&field.node.opening(), (message, "it belongs in this object".into(), hint));
    }

    fn wrong_type(&mut self, field: &Field<'_>, wanted: &str) {
        self.values.mismatch(field.node, &field.shown(), wanted, format!("write {wanted} here"));
    }

    fn twice(&mut self, second: &Place, first: &Place, what: &str) {
        let diagnostic = Diagnostic::new(Code::BadManifest, format!("duplicate {what}"))
            .at(second.clone())
            .label("second one here")
            .related(first.clone(), "first one here")
            .hint("remove one of them");
        self.values.problem(diagnostic);
    }

    /// Whether it is an object. If its keys are known ones, others are warned about.
    fn is_object(&mut self, field: &Field<'_>, known: Option<&[&str]>) -> bool {
        let Data::Map(entries) = &field.node.data else {
            self.wrong_type(field, "an object");
            return false;
        };
        let Some(known) = known else { return true };
        for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
            let warning = unknown_key(Code::UnknownKey, &field.shown(), key, known).label("ignored");
            let near =
                nearest(&key.name, known.iter().copied().filter(|name| field.node.get(name).is_none()));
            let hint = did_you_mean(&near).unwrap_or_else(|| format!("known: {}", known.join(", ")));
            self.values.note(warning.hint(hint));
        }
        true
    }

    fn string<'n>(&mut self, field: &Field<'n>) -> Option<&'n str> {
        let text = field.node.text();
        if text.is_none() {
            self.wrong_type(field, "a string");
        }
        text
    }

    /// An optional text that may have several lines.
    fn prose(&mut self, object: &Field<'_>, key: &str) -> Option<String> {
        let field = object.get(key)?;
        let text = self.string(&field)?;
        if text.chars().any(|character| character.is_control() && !"\n\t".contains(character)) {
            self.control_character(&field);
            return None;
        }
        Some(text.to_owned())
    }

    /// An optional text of one line that is not empty.
    fn line(&mut self, object: &Field<'_>, key: &str) -> Option<String> {
        let field = object.get(key)?;
        let text = self.string(&field)?;
        self.one_line(&field, text).then(|| text.to_owned())
    }

    fn one_line(&mut self, field: &Field<'_>, text: &str) -> bool {
        if text.trim().is_empty() {
            let message = format!("{} is empty", field.shown());
            self.wrong(
                field.place(),
                (message, "this is empty".into(), "write a value, or remove it".into()),
            );
            return false;
        }
        let control = text.chars().any(char::is_control);
        if control {
            self.control_character(field);
        }
        !control
    }

    fn control_character(&mut self, field: &Field<'_>) {
        let message = format!("{} has a control character or a line break", field.shown());
        self.wrong(field.place(), (message, "in this text".into(), "remove the character".into()));
    }

    /// An optional list of different strings that pass a check.
    fn list(
        &mut self,
        root: &Field<'_>,
        key: &str,
        check: impl Fn(&mut Self, &Field<'_>, &str) -> bool,
    ) -> Vec<String> {
        let Some(field) = root.get(key) else { return Vec::new() };
        let Some(items) = field.items() else {
            self.wrong_type(&field, "an array of strings");
            return Vec::new();
        };
        let mut first: HashMap<&str, &Place> = HashMap::new();
        let mut list = Vec::new();
        for item in items {
            let Some(text) = self.string(&item) else { continue };
            if !check(self, &item, text) {
                continue;
            }
            if let Some(earlier) = first.get(text) {
                self.twice(item.place(), earlier, &quoted(text));
                continue;
            }
            first.insert(text, item.place());
            list.push(text.to_owned());
        }
        list
    }

    fn pack_id(&mut self, root: &Field<'_>) -> String {
        let Some(field) = root.entry("pack_id") else {
            let members = root.members();
            let unknown = members.iter().map(|(key, _)| *key).filter(|key| !FIELDS.contains(key));
            let hint = match nearest("pack_id", unknown).first() {
                Some(key) => format!("rename {} to `pack_id`", quoted(key)),
                None => "add it, for example: \"pack_id\": \"my_pack\"".to_owned(),
            };
            self.lacking(root, "`pack_id` is missing".into(), hint);
            return String::new();
        };
        let Some(id) = self.string(&field) else { return String::new() };
        let reason = if !is_id(id, |character| "_.-".contains(character)) {
            "lowercase letters, digits, `_`, `.` and `-`, starting with a letter or digit"
        } else if id.len() > 64 {
            "at most 64 characters"
        } else if id.contains("..") || portable::parts(id).is_err() {
            "a name that works as a folder on every system"
        } else if portable::is_reserved_id(id) {
            "no file extension, such as `.json`"
        } else {
            return id.to_owned();
        };
        let message = format!("invalid pack id {}", quoted(id));
        let label = format!("an id must have {reason}");
        self.wrong(field.place(), (message, label, suggestion(id, "my_pack")));
        String::new()
    }

    fn version(&mut self, root: &Field<'_>) -> Option<String> {
        let version = self.line(root, "version")?;
        if let Some(field) = root.get("version").filter(|_| !is_semver_like(&version)) {
            let diagnostic =
                Diagnostic::new(Code::BadManifest, format!("unusual version {}", quoted(&version)))
                    .severity(Severity::Warning)
                    .at(field.place().clone())
                    .label("Cuebook cannot compare this version")
                    .hint("write three numbers separated by dots, as in 1.0.0");
            self.values.note(diagnostic);
        }
        Some(version)
    }

    fn kind(&mut self, root: &Field<'_>) -> PackKind {
        let Some(field) = root.get("type") else { return PackKind::default() };
        let Some(word) = self.string(&field) else { return PackKind::default() };
        PackKind::ALL.into_iter().find(|kind| kind.as_str() == word).unwrap_or_else(|| {
            let names = PackKind::ALL.map(PackKind::as_str);
            let hint = did_you_mean(&nearest(word, names));
            let hint = hint.unwrap_or_else(|| format!("known: {}", names.join(", ")));
            let message = format!("unknown pack type {}", quoted(word));
            self.wrong(field.place(), (message, "this type".into(), hint));
            PackKind::default()
        })
    }

    fn prompts(&mut self, root: &Field<'_>) -> Vec<String> {
        let prompts = self.list(root, "prompts", |reader, field, id| reader.prompt_id(field, id));
        // Ids that differ in `-` and `_` only are one prompt to everybody who asks for it.
        let mut first: HashMap<String, &str> = HashMap::new();
        for id in &prompts {
            if let Some(earlier) = first.insert(normalize_id(id), id) {
                let items = root.get("prompts").and_then(|field| field.items()).unwrap_or_default();
                let place =
                    |id: &str| items.iter().find(|item| item.node.text() == Some(id)).map(Field::place);
                if let (Some(second), Some(first)) = (place(id), place(earlier)) {
                    self.twice(second, first, &format!("`{}`", normalize_id(id)));
                }
            }
        }
        prompts
    }

    fn prompt_id(&mut self, field: &Field<'_>, id: &str) -> bool {
        if id == "partials" {
            let message = "`partials` cannot be a prompt".to_owned();
            let label = "prompts/partials is the folder of partials".to_owned();
            let hint = "remove it from the list, or list its files under `partials`".to_owned();
            self.wrong(field.place(), (message, label, hint));
            return false;
        }
        let valid = is_id(id, |character| "_-".contains(character));
        if !valid {
            self.wrong(field.place(), not_an_id("a prompt id", id));
        }
        valid
    }

    /// The id of a tool, an agent or a flow.
    fn item_id(&mut self, field: &Field<'_>, id: &str) -> bool {
        let valid = is_item_id(id);
        if !valid {
            self.wrong(field.place(), not_an_item_id(id));
        }
        valid
    }

    /// The path of a file inside the pack.
    fn pack_path(&mut self, field: &Field<'_>, file: &str, ending: &str) -> bool {
        let reason = match portable::parts(file) {
            Err(reason) => reason,
            Ok(_) if file.len() > portable::MAX_PATH_BYTES => "is too long".to_owned(),
            Ok(parts) if parts.len() > portable::MAX_PARTS => "is nested too deeply".to_owned(),
            Ok(parts) if parts.is_empty() || file.ends_with('/') => "is a folder".to_owned(),
            Ok(_) if file.starts_with("./") => "starts with `./`".to_owned(),
            Ok(parts) if parts.iter().any(|part| portable::is_left_out(part)) => {
                "has a part that packs leave out".to_owned()
            }
            Ok(_) if !file.ends_with(ending) => format!("does not end with {ending}"),
            Ok(_) => return true,
        };
        let message = format!("{} {reason}", quoted(file));
        let hint = format!(
            "write the path of a {ending} file relative to the pack's folder, with `/` between its parts"
        );
        self.wrong(field.place(), (message, "this path".into(), hint));
        false
    }

    fn replaces(&mut self, root: &Field<'_>, prompts: &[String]) -> Replaces {
        let field = root.get("replaces").filter(|field| self.is_object(field, Some(REPLACES_FIELDS)));
        let Some(map) = &field else { return Replaces::default() };
        // A field that is no list has been complained about; its members need not be as well.
        let names: HashSet<&str> = prompts.iter().map(String::as_str).collect();
        let listed = root.get("prompts").is_none_or(|field| field.items().is_some()).then_some(&names);
        Replaces {
            prompts: self.replacements(map, "prompts", listed),
            tools: self.replacements(map, "tools", None),
            flows: self.replacements(map, "flows", None),
        }
    }

    fn replacements(
        &mut self,
        map: &Field<'_>,
        section: &str,
        listed: Option<&HashSet<&str>>,
    ) -> IndexMap<String, String> {
        let Some(map) = map.get(section).filter(|field| self.is_object(field, None)) else {
            return IndexMap::new();
        };
        let prompts = section == "prompts";
        let mut first: HashMap<String, &Place> = HashMap::new();
        let mut replacements = IndexMap::new();
        for (old, field) in map.members() {
            let Some(new) = self.string(&field) else { continue };
            let valid = |id: &str| match section {
                "prompts" => is_id(id, |other| "_-".contains(other)),
                // The ids of tools have folders.
                "tools" => ItemId::new(id).is_ok(),
                _ => is_item_id(id),
            };
            let reported = |id: &str| if prompts { not_an_id("a prompt id", id) } else { not_an_item_id(id) };
            if !valid(old) {
                self.wrong(field.key_place(), reported(old));
                continue;
            }
            if !valid(new) {
                self.wrong(field.place(), reported(new));
                continue;
            }
            let (old_key, new_key) = if prompts {
                (normalize_id(old), normalize_id(new))
            } else {
                (old.to_owned(), new.to_owned())
            };
            if old_key == new_key {
                let message = format!("{} would replace itself", quoted(old));
                let hint = "rename the pack's own one, or remove the line".to_owned();
                self.wrong(field.place(), (message, "same id".into(), hint));
                continue;
            }
            if let Some(listed) = listed
                && !listed.contains(new)
            {
                let message =
                    format!("{} replaces {}, but the pack does not list it", quoted(new), quoted(old));
                let near = did_you_mean(&nearest(new, listed.iter().copied()));
                let hint = near.unwrap_or_else(|| format!("add \"{new}\" to `prompts`"));
                self.wrong(field.place(), (message, "not a prompt of this pack".into(), hint));
                continue;
            }
            if let Some(earlier) = first.insert(old_key, field.key_place()) {
                self.twice(field.key_place(), earlier, &quoted(old));
                continue;
            }
            replacements.insert(old.to_owned(), new.to_owned());
        }
        replacements
    }

    fn vocab(&mut self, root: &Field<'_>) -> IndexMap<String, Vec<String>> {
        let Some(map) = root.get("vocab").filter(|field| self.is_object(field, None)) else {
            return IndexMap::new();
        };
        let mut owner: HashMap<&str, &Place> = HashMap::new();
        let mut vocab = IndexMap::new();
        for (name, field) in map.members() {
            let Some((kind, _)) = vocab_parts(name) else {
                self.wrong(field.key_place(), not_a_vocab_name(name));
                continue;
            };
            let Some(items) = field.items() else {
                self.wrong_type(&field, "an array of strings");
                continue;
            };
            let mut aliases = Vec::new();
            for item in items {
                let Some(alias) = self.string(&item) else { continue };
                match vocab_parts(alias) {
                    None => self.wrong(item.place(), not_a_vocab_name(alias)),
                    Some((other, _)) if other != kind => {
                        let message = format!("{} cannot be an alias of {}", quoted(alias), quoted(name));
                        let label = format!("this is a `{other}`, but the original is a `{kind}`");
                        self.wrong(item.place(), (message, label, "use the same kind for both".into()));
                    }
                    Some(_) => {
                        if let Some(earlier) = owner.get(alias) {
                            self.twice(item.place(), earlier, &quoted(alias));
                            continue;
                        }
                        owner.insert(alias, item.place());
                        aliases.push(alias.to_owned());
                    }
                }
            }
            vocab.insert(name.to_owned(), aliases);
        }
        vocab
    }
}
