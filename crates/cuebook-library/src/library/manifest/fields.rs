//! The fields of `pack.json`, one after the other.
//!
//! A problem with one field does not hide those with another: what is wrong is noted and gets its default, and reading
//! goes on.

mod providers;

use std::collections::{HashMap, HashSet};

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::spelling::{
    is_id, is_item_id, is_semver_like, not_a_vocab_name, not_an_id, not_an_item_id, suggestion, vocab_parts,
};
use super::{Manifest, PackKind, Replaces};
use crate::error::{Code, Diagnostic, Severity, did_you_mean, nearest};
use crate::items::ItemId;
use crate::json::Step::{Index, Key};
use crate::json::{Document, MAX_FINDINGS, Step, kind_of, quoted};
use crate::library::normalize_id;
use crate::library::portable;
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

/// Collects what is wrong while the fields are read.
#[doc(hidden)]
pub struct ManifestReader<'d> {
    document: &'d Document,
    /// What makes the manifest unusable.
    pub(super) problems: Vec<Diagnostic>,
    /// What does not.
    pub(super) warnings: Vec<Diagnostic>,
}

impl<'d> ManifestReader<'d> {
    pub(super) fn new(document: &'d Document) -> ManifestReader<'d> {
        ManifestReader { document, problems: Vec::new(), warnings: Vec::new() }
    }

    /// Reads every field. The result is good only if there are no problems afterwards.
    pub(super) fn manifest(&mut self) -> Manifest {
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
            document: self.document.clone(),
        };
        let Some(root) = self.object(self.document.value(), &[], Some(FIELDS)) else { return empty };
        let pack_id = self.pack_id(root);
        let name = self.line(root, "name", &[]).unwrap_or_else(|| pack_id.clone());
        let prompts = self.prompts(root);
        let replaces = self.replaces(root, &prompts);
        Manifest {
            name,
            version: self.version(root).unwrap_or(empty.version),
            kind: self.kind(root),
            description: self.prose(root, "description", &[]),
            author: self.line(root, "author", &[]),
            license: self.line(root, "license", &[]),
            tags: self.list(root, "tags", |reader, path, tag| reader.one_line(path, tag)),
            partials: self.list(root, "partials", |reader, path, file| reader.pack_path(path, file, ".md")),
            tools: self.list(root, "tools", |reader, path, id| reader.item_id(path, id)),
            agents: self.list(root, "agents", |reader, path, id| reader.item_id(path, id)),
            variable_providers: self.providers(root),
            vocab: self.vocab(root),
            pack_id,
            prompts,
            replaces,
            document: empty.document,
        }
    }

    /// Notes a problem. Its parts are made only if they will be shown, because finding a place takes its time.
    fn note(
        &mut self,
        place: impl FnOnce(&Document) -> Place,
        reported: impl FnOnce() -> (String, String, String),
    ) {
        if self.problems.len() < MAX_FINDINGS {
            let (message, label, hint) = reported();
            let diagnostic = Diagnostic::new(Code::BadManifest, message).at(place(self.document));
            self.problems.push(diagnostic.label(label).hint(hint));
        }
    }

    /// Notes a problem with a value.
    fn wrong(&mut self, path: &[Step<'_>], reported: impl FnOnce() -> (String, String, String)) {
        self.note(|document| document.place(path), reported);
    }

    /// Notes a problem with a key of an object.
    fn wrong_key(&mut self, path: &[Step<'_>], reported: impl FnOnce() -> (String, String, String)) {
        self.note(|document| document.key_place(path), reported);
    }

    /// Notes that an object has not what it needs.
    fn lacking(&mut self, path: &[Step<'_>], reported: impl FnOnce() -> (String, String)) {
        self.note(
            |document| document.opening(path),
            || {
                let (message, hint) = reported();
                (message, "it belongs in this object".into(), hint)
            },
        );
    }

    fn wrong_type(&mut self, path: &[Step<'_>], value: &Value, wanted: &str) {
        self.wrong(path, || {
            let message = format!("{} must be {wanted}", field_name(path));
            (message, format!("this is {}", kind_of(value)), format!("write {wanted} here"))
        });
    }

    fn twice(&mut self, path: &[Step<'_>], first: &[Step<'_>], what: String) {
        if self.problems.len() < MAX_FINDINGS {
            let diagnostic = Diagnostic::new(Code::BadManifest, format!("duplicate {what}"))
                .at(self.document.key_place(path))
                .label("second one here")
                .related(self.document.key_place(first), "first one here")
                .hint("remove one of them");
            self.problems.push(diagnostic);
        }
    }

    /// An object. If its keys are known ones, others are warned about.
    fn object(
        &mut self,
        value: &'d Value,
        path: &[Step<'_>],
        known: Option<&[&str]>,
    ) -> Option<&'d Map<String, Value>> {
        let Value::Object(map) = value else {
            self.wrong_type(path, value, "an object");
            return None;
        };
        for key in map.keys().filter(|key| known.is_some_and(|known| !known.contains(&key.as_str()))) {
            if self.warnings.len() == MAX_FINDINGS {
                break;
            }
            let known = known.unwrap_or_default();
            let near = nearest(key, known.iter().copied().filter(|name| !map.contains_key(*name)));
            let hint = did_you_mean(&near).unwrap_or_else(|| format!("known: {}", known.join(", ")));
            let whose = if path.is_empty() { "pack.json".to_owned() } else { field_name(path) };
            let mut place = path.to_vec();
            place.push(Key(key));
            let diagnostic =
                Diagnostic::new(Code::UnknownKey, format!("unknown key {} in {whose}", quoted(key)))
                    .at(self.document.key_place(&place))
                    .label("ignored")
                    .hint(hint);
            self.warnings.push(diagnostic);
        }
        Some(map)
    }

    /// A field that is there and not null.
    fn field(&self, map: &'d Map<String, Value>, key: &str) -> Option<&'d Value> {
        map.get(key).filter(|value| !value.is_null())
    }

    fn string(&mut self, value: &'d Value, path: &[Step<'_>]) -> Option<&'d str> {
        let text = value.as_str();
        if text.is_none() {
            self.wrong_type(path, value, "a string");
        }
        text
    }

    /// An optional text that may have several lines.
    fn prose(&mut self, map: &'d Map<String, Value>, key: &str, path: &[Step<'_>]) -> Option<String> {
        let path = joined(path, key);
        let text = self.field(map, key).and_then(|value| self.string(value, &path))?;
        if text.chars().any(|character| character.is_control() && !"\n\t".contains(character)) {
            self.control_character(&path);
            return None;
        }
        Some(text.to_owned())
    }

    /// An optional text of one line that is not empty.
    fn line(&mut self, map: &'d Map<String, Value>, key: &str, path: &[Step<'_>]) -> Option<String> {
        let path = joined(path, key);
        let text = self.field(map, key).and_then(|value| self.string(value, &path))?;
        self.one_line(&path, text).then(|| text.to_owned())
    }

    fn one_line(&mut self, path: &[Step<'_>], text: &str) -> bool {
        if text.trim().is_empty() {
            self.wrong(path, || {
                let message = format!("{} is empty", field_name(path));
                (message, "this is empty".into(), "write a value, or remove it".into())
            });
            return false;
        }
        let control = text.chars().any(char::is_control);
        if control {
            self.control_character(path);
        }
        !control
    }

    fn control_character(&mut self, path: &[Step<'_>]) {
        self.wrong(path, || {
            let message = format!("{} has a control character or a line break", field_name(path));
            (message, "in this text".into(), "remove the character".into())
        });
    }

    /// An optional list of different strings that pass a check.
    fn list(
        &mut self,
        map: &'d Map<String, Value>,
        key: &'d str,
        check: impl Fn(&mut Self, &[Step<'_>], &str) -> bool,
    ) -> Vec<String> {
        let Some(value) = self.field(map, key) else { return Vec::new() };
        let Value::Array(items) = value else {
            self.wrong_type(&[Key(key)], value, "an array of strings");
            return Vec::new();
        };
        let mut first: HashMap<&str, usize> = HashMap::new();
        let mut list = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let path = [Key(key), Index(index)];
            let Some(text) = self.string(item, &path) else { continue };
            if !check(self, &path, text) {
                continue;
            }
            if let Some(earlier) = first.get(text) {
                self.twice(&path, &[Key(key), Index(*earlier)], quoted(text));
                continue;
            }
            first.insert(text, index);
            list.push(text.to_owned());
        }
        list
    }

    fn pack_id(&mut self, root: &'d Map<String, Value>) -> String {
        let Some(value) = root.get("pack_id") else {
            self.lacking(&[], || {
                let unknown = root.keys().map(String::as_str).filter(|key| !FIELDS.contains(key));
                let hint = match nearest("pack_id", unknown).first() {
                    Some(key) => format!("rename {} to `pack_id`", quoted(key)),
                    None => "add it, for example: \"pack_id\": \"my_pack\"".to_owned(),
                };
                ("`pack_id` is missing".into(), hint)
            });
            return String::new();
        };
        let path = [Key("pack_id")];
        let Some(id) = self.string(value, &path) else { return String::new() };
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
        self.wrong(&path, || {
            let message = format!("invalid pack id {}", quoted(id));
            (message, format!("an id must have {reason}"), suggestion(id, "my_pack"))
        });
        String::new()
    }

    fn version(&mut self, root: &'d Map<String, Value>) -> Option<String> {
        let version = self.line(root, "version", &[])?;
        if !is_semver_like(&version) {
            let diagnostic =
                Diagnostic::new(Code::BadManifest, format!("unusual version {}", quoted(&version)))
                    .severity(Severity::Warning)
                    .at(self.document.place(&[Key("version")]))
                    .label("Cuebook cannot compare this version")
                    .hint("write three numbers separated by dots, as in 1.0.0");
            self.warnings.push(diagnostic);
        }
        Some(version)
    }

    fn kind(&mut self, root: &'d Map<String, Value>) -> PackKind {
        let path = [Key("type")];
        let Some(word) = self.field(root, "type").and_then(|value| self.string(value, &path)) else {
            return PackKind::default();
        };
        PackKind::ALL.into_iter().find(|kind| kind.as_str() == word).unwrap_or_else(|| {
            self.wrong(&path, || {
                let names = PackKind::ALL.map(PackKind::as_str);
                let hint = did_you_mean(&nearest(word, names));
                let known = format!("known: {}", names.join(", "));
                (format!("unknown pack type {}", quoted(word)), "this type".into(), hint.unwrap_or(known))
            });
            PackKind::default()
        })
    }

    fn prompts(&mut self, root: &'d Map<String, Value>) -> Vec<String> {
        let prompts = self.list(root, "prompts", |reader, path, id| reader.prompt_id(path, id));
        // Ids that differ in `-` and `_` only are one prompt to everybody who asks for it.
        let mut first: HashMap<String, &str> = HashMap::new();
        for id in &prompts {
            if let Some(earlier) = first.insert(normalize_id(id), id) {
                let Some(Value::Array(items)) = root.get("prompts") else { break };
                let index = |id: &str| items.iter().position(|item| item == id).unwrap_or_default();
                let (path, first) =
                    ([Key("prompts"), Index(index(id))], [Key("prompts"), Index(index(earlier))]);
                self.twice(&path, &first, format!("`{}`", normalize_id(id)));
            }
        }
        prompts
    }

    fn prompt_id(&mut self, path: &[Step<'_>], id: &str) -> bool {
        if id == "partials" {
            self.wrong(path, || {
                let message = "`partials` cannot be a prompt".to_owned();
                let label = "prompts/partials is the folder of partials".to_owned();
                (message, label, "remove it from the list, or list its files under `partials`".into())
            });
            return false;
        }
        let valid = is_id(id, |character| "_-".contains(character));
        if !valid {
            self.wrong(path, || not_an_id("a prompt id", id));
        }
        valid
    }

    /// The id of a tool, an agent or a flow.
    fn item_id(&mut self, path: &[Step<'_>], id: &str) -> bool {
        let valid = is_item_id(id);
        if !valid {
            self.wrong(path, || not_an_item_id(id));
        }
        valid
    }

    /// The path of a file inside the pack.
    fn pack_path(&mut self, path: &[Step<'_>], file: &str, ending: &str) -> bool {
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
        self.wrong(path, || {
            let message = format!("{} {reason}", quoted(file));
            let hint = format!(
                "write the path of a {ending} file relative to the pack's folder, with `/` between its parts"
            );
            (message, "this path".into(), hint)
        });
        false
    }

    fn replaces(&mut self, root: &'d Map<String, Value>, prompts: &[String]) -> Replaces {
        let path = [Key("replaces")];
        let value = self.field(root, "replaces");
        let Some(map) = value.and_then(|value| self.object(value, &path, Some(REPLACES_FIELDS))) else {
            return Replaces::default();
        };
        // A field that is no list has been complained about; its members need not be as well.
        let names: HashSet<&str> = prompts.iter().map(String::as_str).collect();
        let listed = self.field(root, "prompts").is_none_or(Value::is_array).then_some(&names);
        Replaces {
            prompts: self.replacements(map, "prompts", listed),
            tools: self.replacements(map, "tools", None),
            flows: self.replacements(map, "flows", None),
        }
    }

    fn replacements(
        &mut self,
        map: &'d Map<String, Value>,
        section: &'d str,
        listed: Option<&HashSet<&str>>,
    ) -> IndexMap<String, String> {
        let path = [Key("replaces"), Key(section)];
        let value = self.field(map, section);
        let Some(members) = value.and_then(|value| self.object(value, &path, None)) else {
            return IndexMap::new();
        };
        let prompts = section == "prompts";
        let mut first: HashMap<String, &str> = HashMap::new();
        let mut replacements = IndexMap::new();
        for (old, value) in members {
            let path = [Key("replaces"), Key(section), Key(old)];
            let Some(new) = self.string(value, &path) else { continue };
            let valid = |id: &str| match section {
                "prompts" => is_id(id, |other| "_-".contains(other)),
                // The ids of tools have folders.
                "tools" => ItemId::new(id).is_ok(),
                _ => is_item_id(id),
            };
            let reported = |id: &str| if prompts { not_an_id("a prompt id", id) } else { not_an_item_id(id) };
            if !valid(old) {
                self.wrong_key(&path, || reported(old));
                continue;
            }
            if !valid(new) {
                self.wrong(&path, || reported(new));
                continue;
            }
            let (old_key, new_key) =
                if prompts { (normalize_id(old), normalize_id(new)) } else { (old.clone(), new.to_owned()) };
            if old_key == new_key {
                self.wrong(&path, || {
                    let message = format!("{} would replace itself", quoted(old));
                    let hint = "rename the pack's own one, or remove the line".to_owned();
                    (message, "same id".into(), hint)
                });
                continue;
            }
            if let Some(listed) = listed
                && !listed.contains(new)
            {
                self.wrong(&path, || {
                    let message =
                        format!("{} replaces {}, but the pack does not list it", quoted(new), quoted(old));
                    let near = did_you_mean(&nearest(new, listed.iter().copied()));
                    let hint = near.unwrap_or_else(|| format!("add \"{new}\" to `prompts`"));
                    (message, "not a prompt of this pack".into(), hint)
                });
                continue;
            }
            if let Some(earlier) = first.insert(old_key, old) {
                let earlier = [Key("replaces"), Key(section), Key(earlier)];
                self.twice(&path, &earlier, quoted(old));
                continue;
            }
            replacements.insert(old.clone(), new.to_owned());
        }
        replacements
    }

    fn vocab(&mut self, root: &'d Map<String, Value>) -> IndexMap<String, Vec<String>> {
        let value = self.field(root, "vocab");
        let Some(members) = value.and_then(|value| self.object(value, &[Key("vocab")], None)) else {
            return IndexMap::new();
        };
        let mut owner: HashMap<&str, (&str, usize)> = HashMap::new();
        let mut vocab = IndexMap::new();
        for (name, value) in members {
            let path = [Key("vocab"), Key(name)];
            let Some((kind, _)) = vocab_parts(name) else {
                self.wrong_key(&path, || not_a_vocab_name(name));
                continue;
            };
            let Value::Array(items) = value else {
                self.wrong_type(&path, value, "an array of strings");
                continue;
            };
            let mut aliases = Vec::new();
            for (index, item) in items.iter().enumerate() {
                let path = [Key("vocab"), Key(name), Index(index)];
                let Some(alias) = self.string(item, &path) else { continue };
                match vocab_parts(alias) {
                    None => self.wrong(&path, || not_a_vocab_name(alias)),
                    Some((other, _)) if other != kind => self.wrong(&path, || {
                        let message = format!("{} cannot be an alias of {}", quoted(alias), quoted(name));
                        (
                            message,
                            format!("this is a `{other}`, but the original is a `{kind}`"),
                            "use the same kind for both".into(),
                        )
                    }),
                    Some(_) => {
                        if let Some((other, earlier)) = owner.get(alias) {
                            let first = [Key("vocab"), Key(other), Index(*earlier)];
                            self.twice(&path, &first, quoted(alias));
                            continue;
                        }
                        owner.insert(alias, (name, index));
                        aliases.push(alias.to_owned());
                    }
                }
            }
            vocab.insert(name.clone(), aliases);
        }
        vocab
    }
}

fn joined<'s>(path: &[Step<'s>], key: &'s str) -> Vec<Step<'s>> {
    let mut path = path.to_vec();
    path.push(Key(key));
    path
}

/// A path as people write it: `variable_providers[0].file`.
fn field_name(path: &[Step<'_>]) -> String {
    let mut name = String::new();
    for step in path {
        match step {
            Key(key) if name.is_empty() => name.push_str(key),
            Key(key) => {
                name.push('.');
                name.push_str(key);
            }
            Index(index) => name.push_str(&format!("[{index}]")),
        }
    }
    if name.is_empty() { "pack.json".into() } else { quoted(&name) }
}
