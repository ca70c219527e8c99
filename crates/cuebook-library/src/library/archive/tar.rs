//! A pack that is a `.tar.gz`.
//!
//! The `tar` crate reads headers and gives each entry its name; everything it might be talked into (long names, extended
//! headers, sparse maps) is bounded by a meter under it and checked again here.

use std::cell::Cell;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;

use super::{FILES_ONLY, Failure, UNTRUSTED, Writer};
use crate::error::{Error, Result};
use crate::json::quoted;

/// Bytes of headers that one entry of a tar archive may have: the `tar` crate holds them in memory.
const HEADER_BYTES: u64 = 1 << 20;

impl Writer<'_> {
    pub(super) fn unpack_tar(&mut self, file: File) -> Result<()> {
        // Headers and padding count here and nowhere else, hence the allowance beyond the budget for content.
        let most = self.budget.saturating_add(self.limits.total_bytes);
        let meter = Rc::new(ReadLimit::new(most));
        let decoder = MultiGzDecoder::new(BufReader::new(file));
        let mut archive = tar::Archive::new(LimitedReader { inner: decoder, meter: meter.clone() });
        let mut entries = archive.entries().map_err(|error| self.damaged(error))?;
        loop {
            meter.expect_headers();
            let Some(entry) = entries.next() else { break };
            let mut entry = entry.map_err(|error| self.tar_error(&meter, error))?;
            self.tar_entry(&mut entry, &meter)?;
        }
        let mut rest = archive.into_inner();
        meter.expect_content();
        let mut buffer = [0u8; 16 << 10];
        // To the very end, because the checksum comes last; and nothing may hide there.
        loop {
            match rest.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) if buffer[..count].iter().all(|byte| *byte == 0) => {}
                Ok(_) => return Err(self.ambiguous("there is data after its end")),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.tar_error(&meter, error)),
            }
        }
    }

    fn tar_error(&self, meter: &ReadLimit, error: io::Error) -> Error {
        if !meter.passed.get() {
            return self.damaged(error);
        }
        // Content runs into the writer's own limits first, so what was too much is a header, or the empty end.
        let message = format!("the headers after entry {} are too large", self.entries);
        self.over_limit(message, UNTRUSTED)
    }

    fn tar_entry<R: Read>(&mut self, entry: &mut tar::Entry<'_, R>, meter: &ReadLimit) -> Result<()> {
        let kind = entry.header().entry_type();
        let raw = entry.path_bytes().into_owned();
        let shown = String::from_utf8_lossy(&raw).into_owned();
        let declared = entry.size();
        if let Some(reason) =
            pax_problem(entry, &raw, declared).map_err(|error| self.tar_error(meter, error))?
        {
            return Err(self.refused(&shown, reason, UNTRUSTED));
        }
        if kind.is_pax_global_extensions() {
            // `git archive` writes one with the commit's id; it describes the archive and is no file.
            return self.count_entry();
        }
        meter.expect_content();
        let read = |writer: &Self, failure: Failure| match failure {
            Failure::Reported(error) => error,
            Failure::Read(error) => writer.tar_error(meter, error),
        };
        let Some(parts) = self.admit(&raw)? else {
            self.pass_over(entry).map_err(|failure| read(self, failure))?;
            return Ok(());
        };
        if kind.is_dir() {
            if declared > 0 {
                return Err(self.refused(&shown, "is a folder with its own content", UNTRUSTED));
            }
            self.folder(&parts, true)?;
        } else if kind.is_file() {
            if raw.ends_with(b"/") {
                return Err(self.refused(&shown, "is a file with the name of a folder", UNTRUSTED));
            }
            let is_executable = entry.header().mode().is_ok_and(|mode| mode & 0o100 != 0);
            let size = self.file(&parts, entry, is_executable).map_err(|failure| read(self, failure))?;
            if size != declared {
                return Err(self.damaged(format!("{} is truncated", quoted(&shown))));
            }
        } else {
            let reason = match kind {
                tar::EntryType::Symlink => "is a symbolic link".to_owned(),
                tar::EntryType::Link => "is a hard link".to_owned(),
                tar::EntryType::Char | tar::EntryType::Block => "is a device".to_owned(),
                tar::EntryType::Fifo => "is a pipe".to_owned(),
                tar::EntryType::GNUSparse => "is a sparse file".to_owned(),
                _ => format!("has the unknown kind `{}`", kind.as_byte().escape_ascii()),
            };
            return Err(self.refused(&shown, reason, FILES_ONLY));
        }
        Ok(())
    }
}

/// What extended headers say against an entry, if anything. They can rename and resize it, and readers disagree on how.
fn pax_problem<R: Read>(entry: &mut tar::Entry<'_, R>, path: &[u8], size: u64) -> io::Result<Option<String>> {
    let global = entry.header().entry_type().is_pax_global_extensions();
    let Some(extensions) = entry.pax_extensions()? else { return Ok(None) };
    let mut seen = HashSet::new();
    for extension in extensions {
        let Ok(extension) = extension else {
            return Ok(Some("has an invalid extended header".into()));
        };
        let key = extension.key_bytes();
        if !seen.insert(key) {
            return Ok(Some("has a duplicate field in an extended header".into()));
        }
        let value = extension.value_bytes();
        let problem = match key {
            b"path" | b"size" | b"linkpath" if global => "changes the names or sizes of all other entries",
            b"path" if value != path => "has two names",
            b"size" if std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()) != Some(size) => {
                "has two sizes"
            }
            _ if key.starts_with(b"GNU.sparse.") => "is a sparse file",
            _ => continue,
        };
        return Ok(Some(problem.into()));
    }
    Ok(None)
}

/// Counts what a reader has given, and stops it at a limit that can move.
struct LimitedReader<R> {
    inner: R,
    meter: Rc<ReadLimit>,
}

struct ReadLimit {
    most: u64,
    taken: Cell<u64>,
    allowed: Cell<u64>,
    passed: Cell<bool>,
}

impl ReadLimit {
    fn new(most: u64) -> ReadLimit {
        ReadLimit { most, taken: Cell::new(0), allowed: Cell::new(0), passed: Cell::new(false) }
    }

    /// What comes is held in memory.
    fn expect_headers(&self) {
        self.allowed.set((self.taken.get() + HEADER_BYTES).min(self.most));
    }

    /// What comes passes through, and other code counts it.
    fn expect_content(&self) {
        self.allowed.set(self.most);
    }
}

impl<R: Read> Read for LimitedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        let left = self.meter.allowed.get().saturating_sub(self.meter.taken.get());
        if left == 0 {
            self.meter.passed.set(true);
            return Err(io::Error::other("a limit was reached"));
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX).min(buffer.len());
        let count = self.inner.read(&mut buffer[..most])?;
        self.meter.taken.set(self.meter.taken.get() + count as u64);
        Ok(count)
    }
}
