//! The private folder that tools run from.
//!
//! An interpreter opens files by path, and a file in a project can change after it was verified. So each call gets a folder
//! of its own that only this user can open, with copies of exactly the bytes that were verified. The folder goes when the
//! call ends.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use cuebook::{Result, files};
use sha2::{Digest, Sha256};

/// A file of a call's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
struct CallFile {
    bytes: Vec<u8>,
    executable: bool,
}

/// The files of a call, by their paths below its folder.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<PathBuf, CallFile>,
    size: u64,
}

impl Tree {
    /// Adds a file. The first one of a path stays.
    pub(crate) fn add(&mut self, path: PathBuf, bytes: Vec<u8>, executable: bool) {
        self.size += bytes.len() as u64;
        self.files.entry(path).or_insert(CallFile { bytes, executable });
    }

    /// The bytes of all files.
    pub(crate) fn size(&self) -> u64 {
        self.size
    }

    /// Writes the files into a new private folder.
    pub(crate) fn write(&self) -> Result<CallFolder> {
        let written = || -> std::io::Result<tempfile::TempDir> {
            let folder = private_folder()?;
            for (path, file) in &self.files {
                write(&folder.path().join(path), file)?;
            }
            Ok(folder)
        };
        let folder =
            written().map_err(|error| files::write_error("the folder for temporary files", &error))?;
        // Links in the way of the folder for temporary files would lead a sandbox astray.
        let path = folder.path().canonicalize().unwrap_or_else(|_| folder.path().to_owned());
        Ok(CallFolder { _folder: folder, path })
    }
}

/// The folder of one call; it is removed when this is dropped.
#[derive(Debug)]
pub(crate) struct CallFolder {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl CallFolder {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a program that the user granted, and gives its place.
    pub(crate) fn add_program(&self, name: &Path, bytes: Vec<u8>) -> Result<PathBuf> {
        let digest = Sha256::digest(&bytes);
        let folder = cuebook::sha256::hex(&digest[..8]);
        let path = self.path.join("granted").join(folder).join(name);
        if path.exists() {
            return Ok(path);
        }
        write(&path, &CallFile { bytes, executable: true })
            .map_err(|error| files::write_error("the folder for temporary files", &error))?;
        Ok(path)
    }
}

/// A folder that only this user can open, whatever the umask is.
fn private_folder() -> std::io::Result<tempfile::TempDir> {
    let mut builder = tempfile::Builder::new();
    builder.prefix("cuebook-");
    #[cfg(unix)]
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o700);
    #[cfg(unix)]
    builder.permissions(mode.clone());
    let folder = builder.tempdir()?;
    // A umask can take rights away that the owner needs.
    #[cfg(unix)]
    std::fs::set_permissions(folder.path(), mode)?;
    Ok(folder)
}

fn write(path: &Path, file: &CallFile) -> std::io::Result<()> {
    if let Some(parent) = path.parent() {
        let mut builder = std::fs::DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.recursive(true).create(parent)?;
    }
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, if file.executable { 0o700 } else { 0o600 });
    options.open(path)?.write_all(&file.bytes)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_folder_and_its_files_are_for_the_user_alone() {
        let mut tree = Tree::default();
        tree.add("a/b/run.sh".into(), b"x".to_vec(), true);
        tree.add("a/data.txt".into(), b"y".to_vec(), false);
        tree.add("a/data.txt".into(), b"z".to_vec(), false);
        let call_folder = tree.write().unwrap();
        let mode =
            |below: &str| call_folder.path().join(below).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(["", "a", "a/b"].map(mode), [0o700; 3]);
        assert_eq!(["a/b/run.sh", "a/data.txt"].map(mode), [0o700, 0o600]);
        assert_eq!(std::fs::read(call_folder.path().join("a/data.txt")).unwrap(), b"y");
        let path = call_folder.path().to_owned();
        drop(call_folder);
        assert!(!path.exists());
    }
}
