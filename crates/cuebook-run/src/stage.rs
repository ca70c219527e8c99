//! Where items of the program lie while they run.
//!
//! An interpreter needs a file, and an item of the system's space has none. So its bytes are written to a folder that only
//! this user can open, once for each engine, and looked at again before each use.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cuebook::items::{Located, system_files};
use cuebook::{Result, files};

/// A private folder that goes when the engine does.
#[derive(Debug, Default)]
pub(crate) struct Stage(Mutex<Option<tempfile::TempDir>>);

impl Stage {
    /// The folder.
    pub(crate) fn folder(&self) -> Result<PathBuf> {
        let mut folder = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Somebody may have tidied up since.
        if let Some(folder) = folder.as_ref().filter(|folder| folder.path().is_dir()) {
            return Ok(folder.path().to_owned());
        }
        let made = tempfile::Builder::new().prefix("cuebook-").tempdir();
        let made = made.map_err(|error| files::write_error("the folder for temporary files", &error))?;
        let path = made.path().to_owned();
        *folder = Some(made);
        Ok(path)
    }

    /// The file of an item: its own, or one with its bytes.
    pub(crate) fn file(&self, located: &Located, bytes: &[u8]) -> Result<PathBuf> {
        if let Some(path) = located.path() {
            return Ok(path.to_owned());
        }
        let below = format!("{}/{}.{}", located.kind.folder(), located.id, located.extension);
        let path = self.folder()?.join(".ai").join(below);
        if std::fs::read(&path).is_ok_and(|there| there == bytes) {
            return Ok(path);
        }
        write(&path, bytes).map_err(|error| files::write_error(&located.name, &error))?;
        Ok(path)
    }
}

impl Stage {
    /// The library of a runtime of the program: what lies in the folder `lib` beside it.
    pub(crate) fn library(&self, runtime: &Located) -> Result<PathBuf> {
        let below = format!("{}/{}/lib/", runtime.kind.folder(), runtime.id.category());
        let root = self.folder()?.join(".ai");
        for (path, bytes) in system_files().iter().filter(|(path, _)| path.starts_with(&below)) {
            let file = root.join(path);
            if !std::fs::read(&file).is_ok_and(|there| there == *bytes) {
                write(&file, bytes).map_err(|error| files::write_error(path, &error))?;
            }
        }
        Ok(root.join(below.trim_end_matches('/')))
    }
}

/// Writes a file whole, without waiting for the disk: it is not to outlive this process.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let temporary = files::temporary_beside(path);
    std::fs::write(&temporary, bytes)?;
    std::fs::rename(&temporary, path)
}
