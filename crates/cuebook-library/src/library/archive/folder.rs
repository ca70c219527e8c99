//! A pack that is a folder: the same checks as for an archive, because what is installed must not depend on the way.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::{FILES_ONLY, Failure, Writer};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;

impl Writer<'_> {
    pub(super) fn copy_folder(&mut self, from: &Path) -> Result<()> {
        let name = self.name;
        let unreadable = |error: io::Error| files::io_error(name, &error);
        let (source, target) =
            (fs::canonicalize(from).map_err(unreadable)?, fs::canonicalize(self.into).map_err(unreadable)?);
        if target.starts_with(&source) {
            let message = "the folder contains the target of the copy";
            let diagnostic = Diagnostic::new(Code::ArchiveRefused, message).file(name);
            let hint = "name the pack's own folder, the one with pack.json";
            return Err(Error::new(ErrorKind::Pack, diagnostic.hint(hint)));
        }
        let mut waiting = vec![(from.to_owned(), String::new())];
        while let Some((folder, prefix)) = waiting.pop() {
            for (path, relative) in self.listing(&folder, &prefix)? {
                let Some(parts) = self.admit(&relative)? else { continue };
                let entry = parts.join("/");
                let in_error = format!("{name}/{entry}");
                let metadata =
                    fs::symlink_metadata(&path).map_err(|error| files::io_error(&in_error, &error))?;
                if metadata.is_dir() {
                    self.folder(&parts, true)?;
                    waiting.push((path, entry));
                } else if metadata.is_file() {
                    let mut file = open_plain(&path).map_err(|error| files::io_error(&in_error, &error))?;
                    self.file(&parts, &mut file, is_executable(&metadata)).map_err(
                        |failure| match failure {
                            Failure::Reported(error) => error,
                            Failure::Read(error) => files::io_error(&in_error, &error),
                        },
                    )?;
                } else if metadata.is_symlink() {
                    return Err(self.refused(&entry, "is a symbolic link", FILES_ONLY));
                } else {
                    return Err(self.refused(&entry, "is a device, a pipe or a socket", FILES_ONLY));
                }
            }
        }
        Ok(())
    }

    /// What lies in a folder, in the order of the names, each with its path relative to the pack.
    fn listing(&self, folder: &Path, prefix: &str) -> Result<Vec<(PathBuf, Vec<u8>)>> {
        let shown = if prefix.is_empty() { self.name.to_owned() } else { format!("{}/{prefix}", self.name) };
        let unreadable = |error: io::Error| files::io_error(&shown, &error);
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let mut relative = prefix.as_bytes().to_vec();
            if !prefix.is_empty() {
                relative.push(b'/');
            }
            relative.extend_from_slice(entry.file_name().as_encoded_bytes());
            found.push((entry.path(), relative));
            if self.entries + found.len() > self.limits.entries {
                return Err(self.too_many_entries());
            }
        }
        found.sort_by(|a, b| a.1.cmp(&b.1));
        Ok(found)
    }
}

/// Whether the owner of a file may run it.
fn is_executable(metadata: &fs::Metadata) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o100 != 0;
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
}

/// Opens a file that was seen to be a plain one, and does not follow a link or wait for a pipe put there since.
fn open_plain(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    if file.metadata()?.is_file() {
        Ok(file)
    } else {
        Err(io::Error::other("the file was replaced meanwhile"))
    }
}
