//! Items: directives, tools and pieces of knowledge, found by their ids in three spaces.
//!
//! An id is the path of a file below the folder of its type, without the extension: the directive `rye/core/init` is
//! `.ai/directives/rye/core/init.md`. The project's space comes before the user's, and that before the system's, which is
//! part of the program; the first file that is there is the item, and it shadows the others. Nothing here verifies or reads
//! what the file says: that is [`crate::trust`] and `cuebook::dialect`.

mod id;
mod item;
mod kind;
mod listed;
mod space;
#[cfg(feature = "items")]
mod system;
#[cfg(not(feature = "items"))]
mod system {
    /// A program without the feature `items` has no items of its own.
    pub(super) const FILES: &[(&str, &[u8])] = &[];
}

pub use id::ItemId;
pub use item::{Item, Located, Verifier};
pub use kind::ItemType;
pub use listed::file_hash;
#[doc(hidden)]
pub use listed::wrong_files;
pub(crate) use space::user_name;
pub use space::{CASES_END, CASES_FILE, FOLDER, Space, SpaceKind, Spaces};

/// The files of the system's space, by their paths below `.ai`: items, and what items need beside them.
pub fn system_files() -> &'static [(&'static str, &'static [u8])] {
    system::FILES
}

/// A file of the system's space by its path below `.ai`.
pub(crate) fn embedded(path: &str) -> Option<&'static [u8]> {
    system::FILES.iter().find(|(known, _)| *known == path).map(|(_, bytes)| *bytes)
}
