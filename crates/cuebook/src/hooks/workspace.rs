//! The folder that an agent works in, as hooks may read it.
//!
//! A path is opened below the folder by the kernel itself, so that no link on the way can lead out of it, also not one that
//! is put there while we look.

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::Refusal;
use crate::files;

/// The folder that a path leads to when all links are followed. Following them takes a step for every part of the path, so
/// the last answer is kept for as long as it is certainly right.
#[derive(Debug, Default)]
pub(crate) struct Resolved(Mutex<Option<(PathBuf, PathBuf, Identity)>>);

type Identity = (u64, u64);

impl Resolved {
    /// Follows the links of an absolute path.
    pub(crate) fn get(&self, path: &Path) -> io::Result<PathBuf> {
        let now = identity(&fs::metadata(path)?);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((given, folder, then)) = &*known
            && given == path
            && now == Some(*then)
            && (given == folder || fs::metadata(folder).is_ok_and(|metadata| identity(&metadata) == now))
        {
            return Ok(folder.clone());
        }
        let folder = fs::canonicalize(path)?;
        *known = now.map(|now| (path.to_owned(), folder.clone(), now));
        Ok(folder)
    }
}

/// What tells a folder from all others.
fn identity(metadata: &Metadata) -> Option<Identity> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        metadata.is_dir().then(|| (metadata.dev(), metadata.ino()))
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        None
    }
}

/// A workspace.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    folder: PathBuf,
    limit: u64,
}

impl Workspace {
    /// The workspace at an absolute path; files up to `limit` bytes can be read.
    pub(crate) fn new(folder: PathBuf, limit: u64) -> Workspace {
        Workspace { folder, limit }
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Reads a text file: a path below the workspace, or an absolute path that leads there.
    pub(crate) fn read(&self, path: &str) -> Result<String, Refusal> {
        let relative = self.relative(path)?;
        let file =
            files::open_beneath(&self.folder, &relative).map_err(|error| self.explain(path, &error))?;
        let metadata = file.metadata().map_err(|error| self.explain(path, &error))?;
        if !metadata.is_file() {
            let (exception, what) = if metadata.is_dir() {
                ("IsADirectoryError", "is a folder")
            } else {
                ("PermissionError", "is not a plain file")
            };
            return Err(Refusal::new(exception, format!("read_file: {path} {what}")));
        }
        let mut bytes = Vec::new();
        file.take(self.limit.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| self.explain(path, &error))?;
        if bytes.len() as u64 > self.limit {
            let message = format!("read_file: {path} is larger than {} bytes (limits.file_size)", self.limit);
            return Err(Refusal::new("OSError", message));
        }
        String::from_utf8(bytes)
            .map_err(|_| Refusal::new("ValueError", format!("read_file: {path} is not UTF-8")))
    }

    fn relative(&self, path: &str) -> Result<PathBuf, Refusal> {
        if path.contains('\0') {
            return Err(Refusal::new("ValueError", "read_file: a path cannot contain a null character"));
        }
        let given = Path::new(path);
        let below = match given.strip_prefix(&self.folder) {
            Ok(below) => below,
            Err(_) if given.is_absolute() => return Err(outside(path)),
            Err(_) => given,
        };
        // `a/../b` is `b` for people; what leads above the folder is refused before the kernel is asked.
        let mut relative = PathBuf::new();
        for component in below.components() {
            match component {
                Component::CurDir => {}
                Component::ParentDir if !relative.pop() => return Err(outside(path)),
                Component::ParentDir => {}
                Component::Normal(part) => relative.push(part),
                Component::Prefix(_) | Component::RootDir => return Err(outside(path)),
            }
        }
        if relative.as_os_str().is_empty() {
            relative.push(".");
        }
        Ok(relative)
    }

    fn explain(&self, path: &str, error: &std::io::Error) -> Refusal {
        match error.kind() {
            std::io::ErrorKind::CrossesDevices => outside(path),
            std::io::ErrorKind::NotFound => Refusal::new(
                "FileNotFoundError",
                format!("read_file: {path} does not exist in the workspace"),
            ),
            std::io::ErrorKind::PermissionDenied => {
                Refusal::permission(format!("read_file: {path} cannot be read: {error}"))
            }
            std::io::ErrorKind::NotADirectory => {
                Refusal::new("NotADirectoryError", format!("read_file: {path}: {error}"))
            }
            _ => Refusal::new("OSError", format!("read_file: {path}: {error}")),
        }
    }
}

fn outside(path: &str) -> Refusal {
    Refusal::permission(format!("read_file: {path} leads out of the workspace"))
}
