//! A pack that is a `.zip`.
//!
//! A zip archive lists its entries twice, and readers that believe different lists see different archives. The `zip`
//! crate compares the two lists here, and an archive in which they differ is refused.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};

use zip::result::ZipError;

use super::{FILES_ONLY, Failure, UNTRUSTED, Writer};
use crate::error::{Error, Result};
use crate::files;
use crate::json::quoted;

impl Writer<'_> {
    pub(super) fn unpack_zip(&mut self, mut file: File) -> Result<()> {
        // The crate reads the whole directory into memory, so its entries are counted before: each begins like this.
        let signatures =
            count(&mut file, b"PK\x01\x02").map_err(|error| files::io_error(self.name, &error))?;
        if signatures > self.limits.entries {
            return Err(self.too_many_entries());
        }
        let mut archive =
            zip::ZipArchive::new(BufReader::new(file)).map_err(|error| self.zip_error(&error))?;
        if archive.offset() != 0 {
            return Err(self.ambiguous("there is data before it"));
        }
        if archive.has_duplicate_names() {
            return Err(self.ambiguous("it lists an entry twice"));
        }
        archive.validate_header_consistency().map_err(|error| self.zip_error(&error))?;
        for index in 0..archive.len() {
            self.zip_entry(&mut archive, index)?;
        }
        Ok(())
    }

    fn zip_error(&self, error: &ZipError) -> Error {
        match error {
            ZipError::InvalidArchive(reason) => {
                match reason.strip_prefix("header inconsistency detected: ") {
                    Some(reason) => self.ambiguous(reason),
                    None => self.damaged(reason),
                }
            }
            ZipError::Io(error) => self.damaged(error),
            other => self.damaged(other),
        }
    }

    fn zip_entry<R: Read + Seek>(&mut self, archive: &mut zip::ZipArchive<R>, index: usize) -> Result<()> {
        let entry = archive.by_index_data(index).map_err(|error| self.zip_error(&error))?;
        let raw = entry.name_raw().to_vec();
        let shown = String::from_utf8_lossy(&raw).into_owned();
        let (mode, encrypted) = (entry.external_attributes() >> 16, entry.encrypted());
        let (method, declared) = (entry.compression(), entry.size());
        let Some(parts) = self.admit(&raw)? else { return Ok(()) };
        // The type of a file is in the upper bits of its Unix mode; systems without modes leave them empty.
        let folder = raw.ends_with(b"/");
        let reason = match mode & 0o170_000 {
            0 => None,
            0o100_000 if folder => Some("is a file with the name of a folder"),
            0o040_000 if !folder => Some("is a folder with the name of a file"),
            0o100_000 | 0o040_000 => None,
            0o120_000 => Some("is a symbolic link"),
            0o020_000 | 0o060_000 => Some("is a device"),
            0o010_000 => Some("is a pipe"),
            0o140_000 => Some("is a socket"),
            _ => Some("has an unknown kind"),
        };
        if let Some(reason) = reason {
            return Err(self.refused(&shown, reason, FILES_ONLY));
        }
        if encrypted {
            return Err(self.refused(&shown, "is encrypted", "create the archive without a password"));
        }
        if !matches!(method, zip::CompressionMethod::Stored | zip::CompressionMethod::Deflated) {
            let hint = "create the archive with deflate";
            return Err(self.refused(&shown, "uses a compression that Cuebook does not support", hint));
        }
        if folder {
            if declared > 0 {
                return Err(self.refused(&shown, "is a folder with its own content", UNTRUSTED));
            }
            self.folder(&parts, true)?;
            return Ok(());
        }
        let mut content = archive.by_index(index).map_err(|error| self.zip_error(&error))?;
        let size = self.file(&parts, &mut content, mode & 0o100 != 0).map_err(|failure| match failure {
            Failure::Reported(error) => error,
            Failure::Read(error) => self.damaged(format!("{}: {error}", quoted(&shown))),
        })?;
        if size != declared {
            return Err(self.damaged(format!("{} has the wrong size", quoted(&shown))));
        }
        Ok(())
    }
}

/// How often four bytes occur in a file; leaves the file at its beginning.
fn count(file: &mut File, signature: &[u8; 4]) -> io::Result<usize> {
    let wanted = u32::from_be_bytes(*signature);
    let (mut last, mut found) = (0u32, 0);
    let mut buffer = [0u8; 16 << 10];
    loop {
        let read = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        for byte in &buffer[..read] {
            last = last << 8 | u32::from(*byte);
            found += usize::from(last == wanted);
        }
    }
    file.rewind()?;
    Ok(found)
}
