//! An item that was found: where it lies, and its bytes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{ItemId, ItemType, SpaceKind};
use crate::error::Result;
use crate::files;
use crate::source::Source;

/// Says whether an item is what a trusted person signed.
pub trait Verifier {
    /// An error if it is not.
    fn verify_item(&self, item: &Item) -> Result<()>;
}

/// Where an item lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Located {
    /// What it is.
    pub kind: ItemType,
    /// Its id.
    pub id: ItemId,
    /// The space.
    pub space: SpaceKind,
    /// The name of its file as people see it.
    pub name: String,
    /// The extension of its file.
    pub extension: &'static str,
    pub(super) file: Place,
}

/// On disk, or in the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Place {
    Disk(PathBuf),
    Program(&'static [u8]),
}

/// An item with its bytes. They are read once: what is verified, read and run is the same.
#[derive(Debug, Clone)]
pub struct Item {
    /// Where it lies.
    pub located: Located,
    /// What its file holds.
    pub bytes: Vec<u8>,
}

impl Item {
    /// Its text.
    pub fn source(&self) -> Result<Arc<Source>> {
        files::source_from_bytes(self.bytes.clone(), &self.located.name)
    }
}

impl Located {
    /// The file, if it is on disk.
    pub fn path(&self) -> Option<&Path> {
        match &self.file {
            Place::Disk(path) => Some(path),
            Place::Program(_) => None,
        }
    }

    /// The folder that the file of a project's item must lie in, whatever links are on the way: the project's. Links of the user's
    /// own space are the user's choice.
    fn bounds<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        let parts = self.kind.folder().split('/').count() + self.id.as_str().split('/').count();
        path.ancestors().nth(parts + 1).filter(|_| self.space == SpaceKind::Project)
    }

    /// Reads the file.
    pub fn read(self, limit: u64) -> Result<Item> {
        let bytes = match &self.file {
            Place::Disk(path) => match self.bounds(path) {
                Some(project) => files::read_bytes_inside(project, path, &self.name, limit)?,
                None => files::read_bytes(path, &self.name, limit)?,
            },
            Place::Program(bytes) => bytes.to_vec(),
        };
        Ok(Item { located: self, bytes })
    }
}
