//! Load: an item as it is, and a copy of it in another space.
//!
//! What is loaded has been verified, and a copy has the same bytes, so its signature holds there as well.

use std::path::PathBuf;

use crate::limits::FILE_BYTES;
use serde_json::{Map, Value as Json, json};

use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, did_you_mean, nearest};
use crate::files;
use crate::items::{FOLDER, Item, ItemId, ItemType, SpaceKind, Spaces};
use crate::trust::{Trust, message_with_path};

/// What is to be loaded.
///
/// ```
/// use cuebook::actions::load::LoadRequest;
/// use cuebook::items::{ItemType, SpaceKind};
///
/// let request = LoadRequest::new(ItemType::Tool, "rye/file-system/read").copy_to(SpaceKind::Project);
/// assert_eq!(request.destination, Some(SpaceKind::Project));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadRequest {
    /// The type of the item.
    pub item_type: ItemType,
    /// Its id.
    pub item_id: String,
    /// The only space to look into.
    pub source: Option<SpaceKind>,
    /// The space that gets a copy.
    pub destination: Option<SpaceKind>,
    /// Whether a copy may take the place of another file.
    pub replace: bool,
}

/// What was loaded.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// The item.
    pub item: Item,
    /// Where the copy lies, if one was made.
    pub copy: Option<(SpaceKind, PathBuf)>,
}

impl LoadRequest {
    /// Loads an item from the first space that has it.
    pub fn new(item_type: ItemType, item_id: impl Into<String>) -> LoadRequest {
        LoadRequest { item_type, item_id: item_id.into(), source: None, destination: None, replace: false }
    }

    /// Looks into this space only.
    pub fn from_space(mut self, source: SpaceKind) -> LoadRequest {
        self.source = Some(source);
        self
    }

    /// Copies the item to a space.
    pub fn copy_to(mut self, destination: SpaceKind) -> LoadRequest {
        self.destination = Some(destination);
        self
    }

    /// Lets a copy replace another file.
    pub fn replace(mut self, replace: bool) -> LoadRequest {
        self.replace = replace;
        self
    }

    /// Reads a request as `rye_load` takes it.
    ///
    /// # Errors
    ///
    /// `CB407` for an unknown type or space.
    pub fn from_json(json: &Json) -> Result<LoadRequest> {
        let text = |name: &str| json[name].as_str();
        let space = |name: &str, allowed: &[SpaceKind]| {
            text(name).map(|given| space_named(given, allowed)).transpose()
        };
        Ok(LoadRequest {
            item_type: item_type(text("item_type").unwrap_or_default())?,
            item_id: text("item_id").unwrap_or_default().to_owned(),
            source: space("source", &SpaceKind::ALL)?,
            destination: space("destination", &WRITABLE)?,
            replace: json["replace"].as_bool().unwrap_or(false),
        })
    }
}

/// The spaces that take copies.
const WRITABLE: [SpaceKind; 2] = [SpaceKind::Project, SpaceKind::User];

/// Loads an item, and copies it if that is wanted.
///
/// # Errors
///
/// `CB116` if no space has the item, the errors of its signature, and `CB114` if the copy cannot be written.
pub fn load(spaces: &Spaces, trust: &Trust, request: &LoadRequest) -> Result<Loaded> {
    let (kind, id) = (request.item_type, ItemId::new(&request.item_id)?);
    let destination = request.destination;
    if let Some(destination) = destination {
        space_named(destination.as_str(), &WRITABLE)?;
    }
    let found = match request.source {
        None => spaces.find(kind, &id)?,
        Some(source) => spaces.space(source).map(|space| space.locate(kind, &id)).transpose()?.flatten(),
    };
    let Some(located) = found else {
        let near = spaces.not_found(kind, &id).diagnostic().hint.clone();
        let diagnostic = Diagnostic::new(Code::ItemNotFound, format!("Item not found: {id}")).hint_opt(near);
        let error = Error::new(ErrorKind::ItemNotFound, diagnostic);
        return Err(error.with("item_type", kind.as_str()).with("item_id", id.as_str()));
    };
    let item = located.read(FILE_BYTES)?;
    trust.verify(&item)?;
    let copy = match destination.filter(|destination| *destination != item.located.space) {
        Some(destination) => Some((destination, copy(spaces, &item, destination, request.replace)?)),
        None => None,
    };
    Ok(Loaded { item, copy })
}

fn copy(spaces: &Spaces, item: &Item, destination: SpaceKind, replace: bool) -> Result<PathBuf> {
    let located = &item.located;
    let Some(folder) = spaces.space(destination).and_then(|space| space.folder()) else {
        let message = format!("there is no {} space to copy to", destination.as_str());
        let diagnostic = Diagnostic::new(Code::BadInput, message).hint("set USER_SPACE to a folder");
        return Err(Error::new(ErrorKind::Usage, diagnostic));
    };
    let below = format!("{}/{}.{}", located.kind.folder(), located.id, located.extension);
    let path = folder.join(&below);
    let start = if destination == SpaceKind::User { "~/" } else { "" };
    let name = format!("{start}{FOLDER}/{below}");
    if files::look(&path).map_err(|error| files::io_error(&name, &error))?.is_some() {
        if files::read_bytes(&path, &name, FILE_BYTES).is_ok_and(|bytes| bytes == item.bytes) {
            return Ok(path);
        }
        if !replace {
            let message = "another file has this name";
            let diagnostic = Diagnostic::new(Code::WriteFailed, message).file(name);
            let hint = Hint::option("move it away, or replace it", "--replace");
            return Err(Error::new(ErrorKind::Io, diagnostic.hint(hint)));
        }
    }
    if destination == SpaceKind::Project {
        files::stays_inside(spaces.project(), &path, &name)?;
    }
    files::write_atomic(&path, &name, &item.bytes)?;
    Ok(path)
}

impl Loaded {
    /// The answer of `rye_load`.
    pub fn to_json(&self) -> Json {
        let located = &self.item.located;
        let path = located.path().map_or_else(|| located.name.clone(), |path| path.display().to_string());
        let content = String::from_utf8_lossy(&self.item.bytes);
        let mut metadata = Map::new();
        metadata.insert("name".into(), located.id.name().into());
        metadata.insert("path".into(), path.clone().into());
        metadata.insert("extension".into(), format!(".{}", located.extension).into());
        if let Some(version) = version(&content) {
            metadata.insert("version".into(), version.into());
        }
        let mut answer = json!({
            "status": "success",
            "content": content,
            "metadata": metadata,
            "path": path,
            "source": located.space.as_str(),
        });
        if let Some((space, path)) = &self.copy {
            answer["copied_to"] = space.as_str().into();
            answer["destination_path"] = path.display().to_string().into();
        }
        answer
    }
}

/// The answer of `rye_load` to the arguments of a call, also if it fails.
pub fn answer(spaces: &Spaces, trust: &Trust, arguments: &Json) -> Json {
    match LoadRequest::from_json(arguments).and_then(|request| load(spaces, trust, &request)) {
        Ok(loaded) => loaded.to_json(),
        Err(error) => {
            let text = |name: &str| arguments[name].as_str().unwrap_or_default();
            let mut answer = json!({"status": "error", "error": message_with_path(&error)});
            if error.kind() == ErrorKind::ItemNotFound {
                answer["item_type"] = text("item_type").into();
            }
            if !text("item_id").is_empty() && ItemType::named(text("item_type")).is_some() {
                answer["item_id"] = text("item_id").into();
            }
            answer
        }
    }
}

/// The type of items that a name means.
///
/// # Errors
///
/// `CB407` for any other name.
pub fn item_type(name: &str) -> Result<ItemType> {
    ItemType::named(name).ok_or_else(|| {
        let near = did_you_mean(&nearest(name, ItemType::ALL.map(ItemType::as_str)));
        let hint = near.unwrap_or_else(|| "use directive, tool or knowledge".to_owned());
        let diagnostic = Diagnostic::new(Code::BadInput, format!("Unknown item type: {name}")).hint(hint);
        Error::new(ErrorKind::Usage, diagnostic)
    })
}

/// A space by its name.
pub(super) fn space_named(name: &str, allowed: &[SpaceKind]) -> Result<SpaceKind> {
    let found = SpaceKind::named(name).filter(|space| allowed.contains(space));
    found.ok_or_else(|| {
        let names: Vec<&str> = allowed.iter().map(|space| space.as_str()).collect();
        let message = format!("invalid space `{name}`");
        let hint = did_you_mean(&nearest(name, names.iter().copied()));
        let hint = hint.unwrap_or_else(|| format!("use {}", names.join(", ")));
        Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint))
    })
}

/// The version that a text names: `__version__ = "…"`, or else the first `version="…"`.
fn version(text: &str) -> Option<&str> {
    let quoted = |rest: &'_ str| -> Option<usize> { rest.find(['"', '\'', '\n']) };
    for (name, spaced) in [("__version__", true), ("version", false)] {
        for (at, _) in text.match_indices(name) {
            let rest = &text[at + name.len()..];
            let rest = if spaced { rest.trim_start_matches(' ') } else { rest };
            let Some(rest) = rest.strip_prefix('=') else { continue };
            let rest = if spaced { rest.trim_start_matches(' ') } else { rest };
            let Some(rest) = rest.strip_prefix(['"', '\'']) else { continue };
            if let Some(end) = quoted(rest).filter(|end| *end > 0 && !rest[*end..].starts_with('\n')) {
                return Some(&rest[..end]);
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::{Purpose, SigningKey, sign_for};
    use std::fs;

    struct Fixture {
        project: tempfile::TempDir,
        user: tempfile::TempDir,
        spaces: Spaces,
        trust: Trust,
        key: SigningKey,
    }

    fn world() -> Fixture {
        let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let spaces = Spaces::new(project.path(), Some(user.path()));
        let trust = Trust::new(&spaces);
        let key = SigningKey::from_seed(&[1; 32]).unwrap();
        trust.add(SpaceKind::User, key.public(), "me", None, jiff::Timestamp::UNIX_EPOCH).unwrap();
        let tool = b"#!/usr/bin/env python3\n__version__ = \"1.2.0\"\n__category__ = \"demo\"\n";
        let purpose = Purpose::at("tools/demo/run.py").unwrap();
        let bytes = sign_for(&purpose, "py", tool, &key, jiff::Timestamp::UNIX_EPOCH).unwrap();
        fs::create_dir_all(user.path().join(".ai/tools/demo")).unwrap();
        fs::write(user.path().join(".ai/tools/demo/run.py"), bytes).unwrap();
        Fixture { project, user, spaces, trust, key }
    }

    impl Fixture {
        fn ask(&self, request: Json) -> Json {
            answer(&self.spaces, &self.trust, &request)
        }
    }

    #[test]
    fn an_item_is_loaded_as_it_is_and_copied_with_its_signature() {
        let world = world();
        let loaded = world.ask(json!({"item_type": "tool", "item_id": "demo/run", "destination": "project"}));
        assert_eq!(loaded["status"], "success", "{loaded}");
        assert_eq!((&loaded["source"], &loaded["copied_to"]), (&json!("user"), &json!("project")));
        assert_eq!(loaded["metadata"]["version"], "1.2.0");
        assert_eq!(loaded["metadata"]["extension"], ".py");
        let copy = world.project.path().join(".ai/tools/demo/run.py");
        assert_eq!(fs::read_to_string(&copy).unwrap(), loaded["content"]);
        let again = world.ask(json!({"item_type": "tool", "item_id": "demo/run"}));
        assert_eq!((&again["status"], &again["source"]), (&json!("success"), &json!("project")));
        // A second equal copy is not written, and another file is not lost.
        let request =
            json!({"item_type": "tool", "item_id": "demo/run", "source": "user", "destination": "project"});
        assert_eq!(world.ask(request.clone())["status"], "success");
        fs::write(&copy, "mine").unwrap();
        assert_eq!(world.ask(request.clone())["status"], "error");
        assert_eq!(fs::read_to_string(&copy).unwrap(), "mine");
        let mut replacing = request;
        replacing["replace"] = true.into();
        assert_eq!(world.ask(replacing)["status"], "success");
        assert_ne!(fs::read_to_string(&copy).unwrap(), "mine");
    }

    #[test]
    fn a_failed_load_is_reported_in_the_shape_of_other_answers() {
        let world = world();
        assert_eq!(
            world.ask(json!({"item_type": "tool", "item_id": "demo/run", "source": "project"})),
            json!({"status": "error", "error": "Item not found: demo/run", "item_type": "tool", "item_id": "demo/run"})
        );
        let path = world.user.path().join(".ai/tools/demo/run.py");
        fs::write(&path, "x").unwrap();
        assert_eq!(
            world.ask(json!({"item_type": "tool", "item_id": "demo/run"})),
            json!({"status": "error", "error": format!("Unsigned item: {}", path.display()), "item_id": "demo/run"})
        );
        let unknown = world.ask(json!({"item_type": "banana", "item_id": "x"}));
        assert_eq!(unknown, json!({"status": "error", "error": "Unknown item type: banana"}));
        for (id, source) in [("../x", None), ("demo/run", Some("nowhere"))] {
            let answer = world.ask(json!({"item_type": "tool", "item_id": id, "source": source}));
            assert_eq!(answer["status"], "error", "{answer}");
        }
        let system = world.ask(json!({"item_type": "tool", "item_id": "demo/run", "destination": "system"}));
        assert_eq!(system["status"], "error");
        assert_eq!(world.key.fingerprint().len(), 16);
    }

    #[test]
    fn a_version_is_found_where_it_is_written() {
        assert_eq!(version("x\n__version__ = '1.0'\n"), Some("1.0"));
        assert_eq!(version("<directive name=\"a\" version=\"2.0\">"), Some("2.0"));
        assert_eq!(version("version: 1\nversion=\n"), None);
        assert_eq!(version("version=\"no end\n__version__ = \"é\""), Some("é"));
    }
}
