//! Knowledge as resources of the protocol.
//!
//! A resource is a piece of knowledge by its id: what the project has comes before what the user has, and that before what is
//! part of the program. A client gets the file without its signature line. An address can name nothing but knowledge, because ids cannot lead out
//! of their space.

use std::collections::BTreeMap;

use cuebook::items::{Item, ItemId, ItemType, Located, Spaces};
use cuebook::limits::FILE_BYTES;
use cuebook::trust::without_signature;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, dialect, files};
use rmcp::model::{MetaObject, Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::uri;

/// Everything there is to know, by address.
pub(crate) fn all(spaces: &Spaces) -> Result<BTreeMap<String, Located>> {
    let mut found = BTreeMap::new();
    for space in spaces.all() {
        for located in spaces.walk(ItemType::Knowledge, space)? {
            found.entry(uri::of(located.id.as_str())).or_insert(located);
        }
    }
    Ok(found)
}

/// A piece of knowledge as the list shows it.
pub(crate) fn listed(located: &Located) -> Resource {
    let id = located.id.as_str();
    let mut resource = Resource::new(uri::of(id), id).with_mime_type(media_type(located));
    // A file that cannot be read is still listed, and reading it gives the reason.
    if let Ok(item) = located.clone().read(FILE_BYTES) {
        resource.size = u64::try_from(text(&item).len()).ok();
        let source = files::source_from_bytes(item.bytes, &located.name);
        if let Ok(known) = source.and_then(|source| dialect::knowledge::read(&source)) {
            resource.title = known.text("title").map(str::to_owned);
            resource.description = known.text("description").map(str::to_owned);
        }
    }
    let mut meta = MetaObject::new();
    meta.0.insert("cuebook/space".into(), json!(located.space.as_str()));
    resource.meta = Some(meta);
    resource
}

/// The addresses of all of them.
pub(crate) fn template() -> ResourceTemplate {
    ResourceTemplate::new(uri::TEMPLATE, "knowledge")
        .with_title("Knowledge")
        .with_description("A knowledge item of the project, user or system space, by its id.")
        .with_mime_type("text/markdown")
}

/// The piece of knowledge at an address, with its bytes.
pub(crate) fn find(spaces: &Spaces, uri: &str) -> Result<Item> {
    let Some(id) = uri::id(uri) else {
        let message = format!("{uri:?} is not the address of a knowledge item");
        let hint = "addresses look like cuebook://knowledge/team/style; resources/list lists all of them";
        return Err(Error::new(
            ErrorKind::ItemNotFound,
            Diagnostic::new(Code::ItemNotFound, message).hint(hint),
        ));
    };
    let id = ItemId::new(&id)?;
    match spaces.find(ItemType::Knowledge, &id)? {
        Some(located) => located.read(FILE_BYTES),
        None => Err(spaces.not_found(ItemType::Knowledge, &id)),
    }
}

/// What a piece of knowledge holds. Bytes that are no text are shown as well as can be: knowledge is for reading.
pub(crate) fn contents(uri: &str, item: &Item) -> ResourceContents {
    ResourceContents::text(text(item), uri).with_mime_type(media_type(&item.located))
}

fn text(item: &Item) -> String {
    String::from_utf8_lossy(&without_signature(item.located.extension, &item.bytes)).into_owned()
}

fn media_type(located: &Located) -> &'static str {
    match located.extension {
        "md" => "text/markdown",
        _ => "application/yaml",
    }
}
