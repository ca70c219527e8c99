//! Knowledge: read, and handed to whoever asked.

use cuebook::dialect::knowledge;
use cuebook::files;
use cuebook::items::{ItemId, ItemType};
use serde_json::{Map, Value as Json};

use crate::engine::{Failure, Project, verified};

/// What an answer says is to be done with it.
const DIRECTIONS: &str = "Use this knowledge to inform your decisions.";

/// A dry run is the same: nothing happens anyway.
pub(super) fn execute(project: &Project, id: &ItemId) -> Result<Map<String, Json>, Failure> {
    let item = verified(project, ItemType::Knowledge, id)?;
    let read =
        files::source_from_bytes(item.bytes, &item.located.name).and_then(|source| knowledge::read(&source));
    let knowledge = read.map_err(|error| Failure::new(error).with_id(Some(id.as_str())))?;
    let mut data = knowledge.to_json();
    if let Json::Object(data) = &mut data
        && !data.contains_key("name")
    {
        data.insert("name".to_owned(), id.as_str().into());
    }
    let mut response = Map::new();
    response.insert("status".to_owned(), "success".into());
    response.insert("type".to_owned(), "knowledge".into());
    response.insert("item_id".to_owned(), id.as_str().into());
    response.insert("data".to_owned(), data);
    response.insert("your_directions".to_owned(), DIRECTIONS.into());
    Ok(response)
}
