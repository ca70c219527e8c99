//! Files that must lie below a folder: no link on the way to them may lead out of it.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::Arc;

#[cfg(not(target_os = "linux"))]
use super::open_plain;
use super::{buffers, io_error, not_a_file, read_open, source_from_bytes};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;

/// Reads a text file that has to lie below a folder, whatever links are on the way to it. The folder itself may be a link.
pub fn read_text_inside(folder: &Path, path: &Path, name: &str, limit: u64) -> Result<Arc<Source>> {
    source_from_bytes(read_bytes_inside(folder, path, name, limit)?, name)
}

/// The same for bytes.
pub fn read_bytes_inside(folder: &Path, path: &Path, name: &str, limit: u64) -> Result<Vec<u8>> {
    if let Some(text) = buffers::unsaved(path, name, limit) {
        return text;
    }
    let file = match open_inside(folder, path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            let message = "the symbolic link leads out of the project or pack";
            let diagnostic = Diagnostic::new(Code::Unreadable, message).file(name);
            return Err(Error::new(ErrorKind::Io, diagnostic.hint("replace the link with the file")));
        }
        // A socket cannot be opened at all; what it is says more than that.
        Err(error) => {
            let error = fs::metadata(path).ok().and_then(|m| not_a_file(&m)).unwrap_or(error);
            return Err(io_error(name, &error));
        }
    };
    let metadata = file.metadata().map_err(|error| io_error(name, &error))?;
    match not_a_file(&metadata) {
        Some(error) => Err(io_error(name, &error)),
        None => read_open(file, &metadata, name, limit),
    }
}

/// An error if a file would be written out of the folder that it has to lie below, because a link is on the way to it. What is
/// missing is made where its nearest folder lies, so that one counts; a link that leads nowhere could lead anywhere later.
pub fn stays_inside(folder: &Path, path: &Path, name: &str) -> Result<()> {
    let Ok(inside) = fs::canonicalize(folder) else { return Ok(()) };
    let there = path.ancestors().find(|part| part.symlink_metadata().is_ok()).unwrap_or(folder);
    if fs::canonicalize(there).is_ok_and(|real| real.starts_with(&inside)) {
        return Ok(());
    }
    let message = "cannot write the file: a link on the way to it leads out of the project";
    let diagnostic = Diagnostic::new(Code::WriteFailed, message).file(name);
    Err(Error::new(ErrorKind::Io, diagnostic.hint("replace the link with a folder")))
}

/// Opens a file below a folder. `CrossesDevices` says that a link leads out of it.
fn open_inside(folder: &Path, path: &Path) -> io::Result<File> {
    if let Ok(below) = path.strip_prefix(folder) {
        match open_beneath(folder, below) {
            // It may be a link with an absolute path that leads back inside.
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
            opened => return opened,
        }
    }
    let (inside, target) = (fs::canonicalize(folder)?, fs::canonicalize(path)?);
    match target.strip_prefix(&inside) {
        Ok(below) => open_beneath(&inside, below),
        Err(_) => Err(io::ErrorKind::CrossesDevices.into()),
    }
}

/// Opens a path below a folder without leaving it, also if links are exchanged meanwhile. It does not wait for a pipe.
#[cfg(target_os = "linux")]
pub fn open_beneath(folder: &Path, below: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags, ResolveFlags, open, openat, openat2};
    use rustix::io::Errno;

    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let folder = open(folder, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match openat2(&folder, below, flags, Mode::empty(), resolve) {
        // Another process renames things while the kernel looks: the kernel asks to try again.
        Err(Errno::AGAIN) => Ok(openat2(&folder, below, flags, Mode::empty(), resolve)?.into()),
        // Kernels before 5.6: step by step, and no links at all.
        Err(Errno::NOSYS) => {
            let mut at = folder;
            let mut parts = below.components().peekable();
            while let Some(part) = parts.next() {
                let last = parts.peek().is_none();
                let kind = if last { flags } else { OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC };
                at = openat(&at, part.as_os_str(), kind | OFlags::NOFOLLOW, Mode::empty())?;
            }
            Ok(at.into())
        }
        file => Ok(file?.into()),
    }
}

/// Without the kernel's help: the file that is open must be the one that lies inside when all links are followed.
#[cfg(not(target_os = "linux"))]
pub fn open_beneath(folder: &Path, below: &Path) -> io::Result<File> {
    let folder = folder.canonicalize()?;
    let target = folder.join(below).canonicalize()?;
    if !target.starts_with(&folder) {
        return Err(io::ErrorKind::CrossesDevices.into());
    }
    open_plain(&target).map(|(file, _)| file)
}
