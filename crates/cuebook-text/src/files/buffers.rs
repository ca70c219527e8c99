//! Unsaved texts of an editor, which reading prefers to the files.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Result;

/// Unsaved texts by the absolute path of their file.
#[derive(Debug, Clone, Default)]
pub struct Buffers(Arc<HashMap<PathBuf, Arc<str>>>);

thread_local! {
    static ACTIVE: RefCell<Buffers> = RefCell::default();
}

impl Buffers {
    /// The same texts and one more.
    pub fn set(&mut self, path: PathBuf, text: impl Into<Arc<str>>) {
        Arc::make_mut(&mut self.0).insert(path, text.into());
    }

    /// Forgets a text, so that its file counts again.
    pub fn remove(&mut self, path: &Path) {
        Arc::make_mut(&mut self.0).remove(path);
    }

    /// The text of a file that is open.
    pub fn get(&self, path: &Path) -> Option<&Arc<str>> {
        self.0.get(path)
    }

    /// The paths of the files that are open.
    pub fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.keys()
    }

    /// The texts that this thread reads instead of their files.
    pub fn active() -> Buffers {
        ACTIVE.with_borrow(Buffers::clone)
    }

    /// Runs something that reads these texts instead of their files. Only this thread sees them.
    pub fn during<T>(&self, run: impl FnOnce() -> T) -> T {
        struct Back(Buffers);
        impl Drop for Back {
            fn drop(&mut self) {
                ACTIVE.with_borrow_mut(|active| std::mem::swap(active, &mut self.0));
            }
        }
        let _back = Back(ACTIVE.replace(self.clone()));
        run()
    }
}

/// Whether an editor has a file open, saved or not, that is at a path or below it. This thread reads its text.
pub fn has_unsaved(path: &Path) -> bool {
    ACTIVE
        .with_borrow(|active| active.get(path).is_some() || active.paths().any(|open| open.starts_with(path)))
}

/// The same for the file at a path.
pub fn is_unsaved(path: &Path) -> bool {
    ACTIVE.with_borrow(|active| active.get(path).is_some())
}

/// The names of the unsaved files and folders directly in a folder, and whether each is a file.
pub fn unsaved_in(folder: &Path) -> BTreeMap<String, bool> {
    let entry = |open: &PathBuf| {
        let mut below = open.strip_prefix(folder).ok()?.components();
        let name = below.next()?.as_os_str().to_str()?.to_owned();
        Some((name, below.next().is_none()))
    };
    ACTIVE.with_borrow(|active| active.paths().filter_map(entry).collect())
}

/// The unsaved bytes of a file, if an editor has it open.
pub(super) fn unsaved(path: &Path, name: &str, limit: u64) -> Option<Result<Vec<u8>>> {
    let text =
        ACTIVE.with_borrow(|active| if active.0.is_empty() { None } else { active.get(path).cloned() })?;
    Some(match text.len() as u64 > limit {
        true => Err(super::too_large(name, text.len() as u64, limit)),
        false => Ok(text.as_bytes().to_vec()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsaved_text_is_read_instead_of_the_file() {
        let folder = std::env::temp_dir().join(format!("cuebook-buffers-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("a.md");
        std::fs::write(&path, "saved").unwrap();
        let read = || super::super::read_text(&path, "a.md", 100).unwrap().text().to_owned();
        let mut buffers = Buffers::default();
        buffers.set(path.clone(), "unsaved");
        assert_eq!(buffers.during(read), "unsaved");
        assert_eq!(read(), "saved");
        assert!(buffers.during(|| super::super::read_text(&path, "a.md", 3)).is_err());
        buffers.remove(&path);
        assert_eq!(buffers.during(read), "saved");
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
