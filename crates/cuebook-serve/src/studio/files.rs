//! Reads and saves files of the project for the editor of the page.

use std::path::{Component, Path, PathBuf};

use cuebook::error::ErrorKind;
use cuebook::files::{self, read_text_inside};
use cuebook::items::{ItemId, ItemType};
use cuebook::limits::FILE_BYTES;
use cuebook::sha256::{Sha256, hex};
use cuebook::{Book, Code, Diagnostic, Error, Result};
use serde_json::{Value as Json, json};

use super::{invalid, text};

/// The most files that a page has open.
const MAX_OPEN: usize = 200;

/// Files that an author of prompts writes. Settings, keys and other files are for other editors.
const ENDINGS: &[&str] =
    &["md", "prompty", "py", "json", "yaml", "yml", "txt", "jinja", "jinja2", "j2", "mustache"];

/// A file's text, and the hash that [`save`] expects.
pub(super) fn read(book: &Book, arguments: &Json) -> Result<Json> {
    let name = text(arguments, "file")?;
    if let Some(text) = directive_of_others(book, name) {
        return Ok(json!({"text": text, "hash": null, "read_only": true}));
    }
    if let Some(text) = built_in(book, name) {
        return Ok(json!({"text": text, "hash": null, "read_only": true}));
    }
    let path = inside(book, Path::new(name))?;
    let source = read_text_inside(book.library().root(), &path, name, FILE_BYTES)?;
    Ok(json!({"text": source.text(), "hash": hash(source.text())}))
}

/// The hashes of files as they are now, by their names; null for one that cannot be read. The page asks for those that it has open.
pub(super) fn hashes(book: &Book, arguments: &Json) -> Result<Json> {
    let mut hashes = serde_json::Map::new();
    for name in arguments["files"].as_array().into_iter().flatten().filter_map(Json::as_str).take(MAX_OPEN) {
        let path = inside(book, Path::new(name))?;
        let source = read_text_inside(book.library().root(), &path, name, FILE_BYTES);
        hashes.insert(name.to_owned(), source.map_or(Json::Null, |source| hash(source.text()).into()));
    }
    Ok(Json::Object(hashes))
}

/// Saves a file if it still has the text that the editor started from. Otherwise the answer has `conflict` with the text that the
/// file has now, and nothing is written.
pub(super) fn save(book: &Book, arguments: &Json) -> Result<Json> {
    let (name, text) = (text(arguments, "file")?, text(arguments, "text")?);
    let path = inside(book, Path::new(name))?;
    let root = book.library().root();
    let lock = files::Lock::acquire(&path, name)?;
    let now = match read_text_inside(root, &path, name, FILE_BYTES) {
        Ok(source) => Some(source),
        Err(_) if !path.exists() => None,
        Err(error) => return Err(error),
    };
    let known = arguments["hash"].as_str();
    let current = now.as_ref().map(|source| hash(source.text()));
    if current.as_deref() != known {
        return Ok(
            json!({"conflict": {"text": now.map(|source| source.text().to_owned()), "hash": current}}),
        );
    }
    lock.write(name, text.as_bytes())?;
    Ok(json!({"hash": hash(text)}))
}

/// The absolute path of a file of the project. Refuses everything else: other places, links, and files that carry trust.
pub(super) fn inside(book: &Book, file: &Path) -> Result<PathBuf> {
    let root = book.library().root();
    let below = file.strip_prefix(root).unwrap_or(file);
    let is_plain = below.components().all(|part| matches!(part, Component::Normal(_)));
    let parts: Vec<&str> = below.components().filter_map(|part| part.as_os_str().to_str()).collect();
    let is_hidden = parts.iter().enumerate().any(|(at, part)| {
        part.starts_with('.')
            && !(at == 0 && *part == ".ai" && parts.get(1).is_some_and(|kind| *kind == "directives"))
    });
    let is_known =
        below.extension().and_then(|ending| ending.to_str()).is_some_and(|ending| ENDINGS.contains(&ending));
    if !is_plain || is_hidden || !is_known {
        let message = format!("the studio does not open `{}`", file.display());
        let hint = "it opens the files of prompts in the project; use another editor for this one";
        return Err(Error::new(ErrorKind::Io, Diagnostic::new(Code::Unreadable, message).hint(hint)));
    }
    let path = root.join(below);
    // A link could lead anywhere, also one above the file.
    let mut at = root.to_owned();
    for part in below.components() {
        at.push(part);
        if at.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(invalid(format!("`{}` is a link; the studio opens plain files only", at.display())));
        }
    }
    Ok(path)
}

/// The text of a directive of the user or of the program, which is no file of the project.
fn directive_of_others(book: &Book, name: &str) -> Option<String> {
    let below = ["system:cuebook/directives/", "~/.ai/directives/"]
        .iter()
        .find_map(|space| name.strip_prefix(space))?;
    let id = ItemId::new(below.strip_suffix(".md")?).ok()?;
    let located = book.library().spaces().find(ItemType::Directive, &id).ok()??;
    let item = (located.name == name).then(|| located.read(FILE_BYTES).ok())??;
    String::from_utf8(item.bytes).ok()
}

/// The text of a file of a built-in prompt, which is not on disk.
fn built_in(book: &Book, name: &str) -> Option<&'static str> {
    let below = name.strip_prefix("ecosystem/default/prompts/")?;
    if book.library().root().join(name).exists() { None } else { cuebook::library::builtin::file(below) }
}

fn hash(text: &str) -> String {
    hex(&Sha256::digest(text))
}
