//! Knowledge is verified and read. A dry run is the same: nothing happens anyway.

use cuebook::dialect::knowledge;
use cuebook::files;
use cuebook::items::{ItemId, ItemType};

use crate::engine::{Failure, Project, verified};
use crate::executed::Executed;

pub(super) fn execute(project: &Project, id: &ItemId) -> Result<Executed, Failure> {
    let item = verified(project, ItemType::Knowledge, id)?;
    let read =
        files::source_from_bytes(item.bytes, &item.located.name).and_then(|source| knowledge::read(&source));
    match read {
        Ok(knowledge) => Ok(Executed::Knowledge(id.clone(), knowledge)),
        Err(error) => Err(Failure::new(error).with_id(Some(id.as_str()))),
    }
}
