//! Few looks at the file system that prove that nothing has changed.
//!
//! A prompt depends on files that were read and on many more that were looked for and were not there. A file that is there is
//! looked at. For what is not there, one look at the nearest folder that exists is enough: its time changes when an entry comes or
//! goes. So a prompt with three includes needs about ten looks, where finding it again needs forty.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Library, LibraryLoader, PACKS};
use crate::error::Result;
use crate::files::Stamp;
use crate::items::ItemType;

/// Files and folders as they were. If all are the same, then so is everything that the proof was made for.
#[derive(Debug)]
#[doc(hidden)]
pub struct Proof(Vec<(PathBuf, Option<Stamp>)>);

impl Proof {
    /// Looks at everything that a prompt depends on, before it is compared with its files. `None` if few looks prove nothing.
    #[doc(hidden)]
    pub fn of(library: &Library, loader: &LibraryLoader, ids: &[&str]) -> Option<Proof> {
        let (mut paths, found) = loader.looked_at()?;
        let ids: Vec<&str> = ids.iter().copied().chain(found.iter().map(String::as_str)).collect();
        paths.extend(library.looked_at(&ids).ok()??);
        Proof::at(paths)
    }

    /// The same for a directive and for what else it depends on.
    #[doc(hidden)]
    pub fn of_directive(
        library: &Library,
        loader: &LibraryLoader,
        id: &str,
        more: Vec<PathBuf>,
    ) -> Option<Proof> {
        let (mut paths, ids) = loader.looked_at()?;
        if !ids.is_empty() {
            return None;
        }
        paths.extend(more);
        paths.extend(library.settings_files());
        paths.push(library.defaults.path().to_owned());
        paths.extend(library.directive_files(id));
        Proof::at(paths)
    }

    /// Looks at what is there, and at the nearest folders of what is not.
    fn at(paths: Vec<PathBuf>) -> Option<Proof> {
        let anchors: BTreeSet<PathBuf> = paths.into_iter().map(anchor).collect::<Option<_>>()?;
        let stamped = |path: PathBuf| {
            let stamp = Stamp::of(&path);
            (path, stamp)
        };
        Some(Proof(anchors.into_iter().map(stamped).collect()))
    }

    /// Whether everything is as it was.
    #[doc(hidden)]
    pub fn holds(&self) -> bool {
        self.0.iter().all(|(path, earlier)| Stamp::holds(path, earlier))
    }
}

/// The path if something is there, or else the nearest folder above it that exists. A link that leads nowhere proves nothing: what it
/// leads to can come without a change here.
fn anchor(mut path: PathBuf) -> Option<PathBuf> {
    loop {
        match fs::metadata(&path) {
            Ok(_) => return Some(path),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if fs::symlink_metadata(&path).is_ok() || !path.pop() {
                    return None;
                }
            }
            Err(_) => return None,
        }
    }
}

impl Library {
    /// What it looks at to find prompts that have these ids. `None` if that depends on more than files and folders of these names.
    fn looked_at(&self, ids: &[&str]) -> Result<Option<Vec<PathBuf>>> {
        let packs = self.pack_ids()?;
        if !packs.is_empty() && ids.len() > 1 {
            return Ok(None);
        }
        let mut paths = self.settings_files();
        paths.extend([self.resolutions.path(), self.defaults.path()].map(Path::to_owned));
        paths.extend([self.root.join(PACKS), self.vocab_path()?]);
        for root in self.roots()? {
            paths.extend(root.path(""));
            paths.extend(ids.iter().filter_map(|id| root.path(id)));
        }
        paths.extend(ids.iter().flat_map(|id| self.directive_files(id)));
        Ok(Some(paths))
    }

    /// Where directives of an id lie, in every space.
    fn directive_files(&self, id: &str) -> Vec<PathBuf> {
        let folders = self.spaces().all().iter().filter_map(|space| space.folder());
        let folders = folders.map(|folder| folder.join(ItemType::Directive.folder()));
        let names = |folder: PathBuf| {
            ItemType::Directive.extensions().iter().map(move |end| folder.join(format!("{id}.{end}")))
        };
        folders.flat_map(names).collect()
    }
}
