//! Folders that hold prompts of one dialect, such as `.claude/skills`.

use std::path::Path;
use std::sync::Arc;

use super::Library;
use super::root::{Root, RootKind};
use crate::files;

impl Library {
    /// Those of the project, and those of the user.
    pub(super) fn dialect_folders(&self) -> Vec<Arc<Root>> {
        let home = self.spaces().home().filter(|home| *home != self.root);
        let project = self
            .claims
            .folders()
            .map(|folder| Root::on_disk(RootKind::Plain, folder, self.root.join(folder)).inside(&self.root));
        let user = home
            .into_iter()
            .flat_map(|home| self.claims.folders().map(|folder| Root::of_user(folder, home.join(folder))));
        existing(project.chain(user))
    }

    /// Those of a pack.
    pub(super) fn dialect_folders_of(&self, pack: &str) -> Vec<Arc<Root>> {
        existing(self.claims.folders().map(|folder| self.root_of_pack(pack, Some(folder))))
    }
}

fn existing(roots: impl Iterator<Item = Root>) -> Vec<Arc<Root>> {
    let is_there = |folder: &Path| folder.is_dir() || files::has_unsaved(folder);
    roots.filter(|root| root.folder().is_some_and(is_there)).map(Arc::new).collect()
}
