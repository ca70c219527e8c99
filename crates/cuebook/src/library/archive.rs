//! Packs on their way in: a folder, a `.tar.gz` or a `.zip` becomes a folder that holds plain files and nothing else.
//!
//! An archive comes from a stranger, so every entry must prove itself before a byte of it is written:
//!
//! - its path is relative, portable and inside the pack, and no other entry has it (not even in other letter case);
//! - it is a file or a folder: links, devices, pipes, sparse and encrypted entries are refused, and so is an archive of
//!   which two programs could see different entries;
//! - sizes count as they arrive. What a header declares is compared with what came, and never believed.
//!
//! Entries with a part that begins with a dot, and `__pycache__` and `__MACOSX`, are left out and reported: the library
//! never looks at such names, so they could only be clutter or a trap. Modes, owners and times are not kept, so nothing
//! becomes executable. What was refused is an error; the caller then removes the folder that was unpacked into.
//!
//! This module writes below the folder that it was given and nowhere else. It does not read the manifest.

use std::cell::Cell;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use flate2::bufread::MultiGzDecoder;
use zip::result::ZipError;

use super::json::quoted;
use super::portable;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;

/// How much a pack may hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveLimits {
    /// Bytes of all files together; an archive may not be larger either.
    pub total_bytes: u64,
    /// Bytes of one file.
    pub file_bytes: u64,
    /// Files, folders and whatever else is listed.
    pub entries: usize,
    /// Parts of one path.
    pub depth: usize,
    /// Bytes of one path.
    pub path_bytes: usize,
    /// How many times its own size an archive may unpack to, once it is beyond the first mebibyte.
    pub ratio: u64,
}

impl Default for ArchiveLimits {
    fn default() -> Self {
        ArchiveLimits {
            total_bytes: 64 << 20,
            file_bytes: 16 << 20,
            entries: 10_000,
            depth: portable::MOST_PARTS,
            path_bytes: portable::MOST_PATH_BYTES,
            ratio: 100,
        }
    }
}

/// Small archives of very repetitive text are no bombs, so the ratio does not count below this.
const RATIO_FREE_BYTES: u64 = 1 << 20;

/// Bytes of headers that one entry of a tar archive may have: the `tar` crate holds them in memory.
const HEADER_BYTES: u64 = 1 << 20;

/// What was unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// The folder that holds `pack.json`: the one unpacked into, or the one folder in it.
    pub root: PathBuf,
    /// Files that were written.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Paths that were left out, each with everything below it.
    pub skipped: Vec<String>,
}

/// Copies a folder, or unpacks an archive, into a folder that exists and is empty.
///
/// `name` is what people call the folder or archive. What kind of archive it is, its content decides.
pub fn unpack(from: &Path, name: &str, into: &Path, limits: &ArchiveLimits) -> Result<Unpacked> {
    let mut target = fs::read_dir(into).map_err(|error| files::write_error(name, &error))?;
    if target.next().is_some() {
        let full = io::Error::new(io::ErrorKind::DirectoryNotEmpty, "the folder to unpack into is not empty");
        return Err(files::write_error(name, &full));
    }
    let metadata = fs::metadata(from).map_err(|error| files::io_error(name, &error))?;
    let mut writer = Writer::new(name, into, limits);
    if metadata.is_dir() {
        writer.copy_folder(from)?;
    } else if metadata.is_file() {
        writer.unpack_archive(from)?;
    } else {
        let diagnostic = Diagnostic::new(Code::ArchiveRefused, "neither a folder nor an archive").file(name);
        return Err(Error::new(ErrorKind::Pack, diagnostic.hint(PACK_FORMS)));
    }
    writer.finish()
}

const PACK_FORMS: &str = "a pack is a folder, a .tar.gz or a .zip with a pack.json in it";
const UNTRUSTED: &str = "get the pack from someone you trust: a sound archive holds no such entry";
const FILES_ONLY: &str = "put the file itself in its place: a pack holds files and folders only";
const RENAME: &str = "rename it, so that the pack can be installed everywhere";
const DAMAGED: &str = "fetch or make the archive again";

/// A path that an entry has claimed.
struct Known {
    path: String,
    folder: bool,
    /// Whether an entry has this very path; other folders are there because something lies in them.
    listed: bool,
}

/// Checks entries and writes what passes.
struct Writer<'u> {
    name: &'u str,
    into: &'u Path,
    limits: &'u ArchiveLimits,
    /// Bytes that may be unpacked in all: the limit, or less if the archive is small.
    budget: u64,
    /// By lower-cased path, because that is one file on many systems.
    known: HashMap<String, Known>,
    entries: usize,
    files: usize,
    bytes: u64,
    /// Bytes that were unpacked only to be left out; they cost as much as the others.
    bytes_left_out: u64,
    skipped: BTreeSet<String>,
}

impl<'u> Writer<'u> {
    fn new(name: &'u str, into: &'u Path, limits: &'u ArchiveLimits) -> Writer<'u> {
        Writer {
            name,
            into,
            limits,
            budget: limits.total_bytes,
            known: HashMap::new(),
            entries: 0,
            files: 0,
            bytes: 0,
            bytes_left_out: 0,
            skipped: BTreeSet::new(),
        }
    }

    fn refused(&self, entry: &str, reason: impl AsRef<str>, hint: &str) -> Error {
        let message = format!("the entry {} {}", quoted(entry), reason.as_ref());
        let diagnostic = Diagnostic::new(Code::ArchiveRefused, message).file(self.name).hint(hint);
        let entry: String = entry.chars().take(self.limits.path_bytes).collect();
        Error::new(ErrorKind::Pack, diagnostic).with("entry", entry)
    }

    fn over_limit(&self, message: String, hint: &str) -> Error {
        let diagnostic = Diagnostic::new(Code::ArchiveRefused, message).file(self.name).hint(hint);
        Error::new(ErrorKind::Limit, diagnostic)
    }

    fn damaged(&self, reason: impl std::fmt::Display) -> Error {
        let message = format!("the archive is damaged: {reason}");
        let diagnostic = Diagnostic::new(Code::ArchiveRefused, message).file(self.name).hint(DAMAGED);
        Error::new(ErrorKind::Pack, diagnostic)
    }

    fn ambiguous(&self, reason: impl std::fmt::Display) -> Error {
        let message = format!("the archive means different things to different programs: {reason}");
        let diagnostic = Diagnostic::new(Code::ArchiveRefused, message).file(self.name).hint(UNTRUSTED);
        Error::new(ErrorKind::Pack, diagnostic)
    }

    /// Checks the path of one more entry and takes it apart. `None`: there is nothing to write for it.
    fn admit<'p>(&mut self, raw: &'p [u8]) -> Result<Option<Vec<&'p str>>> {
        self.entries += 1;
        if self.entries > self.limits.entries {
            return Err(self.too_many_entries());
        }
        let Ok(path) = std::str::from_utf8(raw) else {
            return Err(self.refused(&String::from_utf8_lossy(raw), "has a name that is not UTF-8", RENAME));
        };
        if path.len() > self.limits.path_bytes {
            let reason =
                format!("has a path of {} bytes, and the limit is {}", path.len(), self.limits.path_bytes);
            return Err(self.refused(path, reason, "shorten the names"));
        }
        let parts = portable::parts(path).map_err(|reason| {
            let outside = ["absolute", "drive letter", "`..`"].iter().any(|word| reason.contains(word));
            self.refused(path, reason, if outside { UNTRUSTED } else { RENAME })
        })?;
        if parts.len() > self.limits.depth {
            let reason = format!("lies {} folders deep, and the limit is {}", parts.len(), self.limits.depth);
            return Err(self.refused(path, reason, "move it further up"));
        }
        if let Some(at) = parts.iter().position(|part| portable::is_left_out(part)) {
            self.skipped.insert(parts[..=at].join("/"));
            return Ok(None);
        }
        Ok(if parts.is_empty() { None } else { Some(parts) })
    }

    fn too_many_entries(&self) -> Error {
        let message = format!("holds more than {} files and folders", self.limits.entries);
        self.over_limit(message, "a pack holds prompts: leave everything else out")
    }

    /// Claims a path, and says whether it is new.
    fn claim(&mut self, path: &str, folder: bool, listed: bool) -> Result<bool> {
        let key = path.to_lowercase();
        let reason = match self.known.get_mut(&key) {
            None => {
                self.known.insert(key, Known { path: path.to_owned(), folder, listed });
                return Ok(true);
            }
            Some(known) if known.path != path => {
                format!("differs from {} only in the case of its letters", quoted(&known.path))
            }
            Some(known) if known.folder != folder => "is a file and a folder at once".to_owned(),
            Some(known) if folder && !(known.listed && listed) => {
                known.listed |= listed;
                return Ok(false);
            }
            Some(_) => "is there twice".to_owned(),
        };
        Err(self.refused(path, reason, "keep one of the two"))
    }

    /// Makes a folder, and those that it lies in.
    fn folder(&mut self, parts: &[&str], listed: bool) -> Result<PathBuf> {
        let mut path = String::new();
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                path.push('/');
            }
            path.push_str(part);
            let last = index + 1 == parts.len();
            if self.claim(&path, true, listed && last)? {
                make_folder(&self.into.join(&path)).map_err(|error| self.write_error(&path, &error))?;
            }
        }
        Ok(self.into.join(path))
    }

    /// Writes a file, and gives the number of its bytes.
    fn file(&mut self, parts: &[&str], content: &mut dyn Read) -> Result<u64, Failure> {
        let path = parts.join("/");
        if let [folders @ .., _] = parts
            && !folders.is_empty()
        {
            self.folder(folders, false)?;
        }
        self.claim(&path, false, true)?;
        let mut file = make_file(&self.into.join(&path)).map_err(|error| self.write_error(&path, &error))?;
        let bytes = self.copy(&path, content, Some(&mut file))?;
        file.sync_all().map_err(|error| self.write_error(&path, &error))?;
        self.files += 1;
        Ok(bytes)
    }

    /// Reads to the end of an entry that is left out, within the same limits as any other.
    fn pass_over(&mut self, content: &mut dyn Read) -> Result<u64, Failure> {
        self.copy("", content, None)
    }

    fn copy(
        &mut self,
        path: &str,
        content: &mut dyn Read,
        mut file: Option<&mut File>,
    ) -> Result<u64, Failure> {
        let mut buffer = [0u8; 16 << 10];
        let mut size = 0u64;
        loop {
            let count = match content.read(&mut buffer) {
                Ok(0) => return Ok(size),
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(Failure::Read(error)),
            };
            size += count as u64;
            let counted = if file.is_some() { &mut self.bytes } else { &mut self.bytes_left_out };
            *counted += count as u64;
            if file.is_some() && size > self.limits.file_bytes {
                let message =
                    format!("the entry {} has more than {} bytes", quoted(path), self.limits.file_bytes);
                return Err(self.over_limit(message, "a pack holds prompts: leave large files out").into());
            }
            if self.bytes + self.bytes_left_out > self.budget {
                return Err(self.over_budget().into());
            }
            if let Some(file) = file.as_deref_mut() {
                file.write_all(&buffer[..count]).map_err(|error| self.write_error(path, &error))?;
            }
        }
    }

    fn over_budget(&self) -> Error {
        if self.budget < self.limits.total_bytes {
            let message = format!("unpacks to more than {} times its size", self.limits.ratio);
            return self.over_limit(message, UNTRUSTED);
        }
        let message = format!("holds more than {} bytes", self.limits.total_bytes);
        self.over_limit(message, "a pack holds prompts: leave large files out")
    }

    fn write_error(&self, path: &str, error: &io::Error) -> Error {
        // What was claimed is new by name; that the system knows it nevertheless means that it spells names its own way.
        if error.kind() == io::ErrorKind::AlreadyExists {
            let reason = "has the name of another entry on this file system";
            return self.refused(path, reason, "keep one of the two");
        }
        files::write_error(&format!("{}: {}", self.name, quoted(path)), error)
    }

    fn copy_folder(&mut self, from: &Path) -> Result<()> {
        let name = self.name;
        let unreadable = |error: io::Error| files::io_error(name, &error);
        let (source, target) =
            (fs::canonicalize(from).map_err(unreadable)?, fs::canonicalize(self.into).map_err(unreadable)?);
        if target.starts_with(&source) {
            let message = "the folder contains the place that it would be copied to";
            let diagnostic = Diagnostic::new(Code::ArchiveRefused, message).file(name);
            let hint = "name the pack's own folder, the one that holds pack.json";
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
                    self.file(&parts, &mut file).map_err(|failure| match failure {
                        Failure::Told(error) => error,
                        Failure::Read(error) => files::io_error(&in_error, &error),
                    })?;
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

    fn unpack_archive(&mut self, from: &Path) -> Result<()> {
        let unreadable = |error: io::Error| files::io_error(self.name, &error);
        let mut file = File::open(from).map_err(unreadable)?;
        let mut head = Vec::new();
        (&mut file).take(512).read_to_end(&mut head).map_err(unreadable)?;
        let size = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
        file.rewind().map_err(unreadable)?;
        if size > self.limits.total_bytes {
            let message =
                format!("the archive has {size} bytes, and the limit is {}", self.limits.total_bytes);
            return Err(self.over_limit(message, "a pack holds prompts: leave large files out"));
        }
        let unpacked = size.saturating_mul(self.limits.ratio).max(RATIO_FREE_BYTES);
        self.budget = unpacked.min(self.limits.total_bytes);
        if head.starts_with(&[0x1f, 0x8b]) {
            self.unpack_tar(file)
        } else if head.starts_with(b"PK\x03\x04") || head.starts_with(b"PK\x05\x06") {
            self.unpack_zip(file)
        } else {
            let message = no_archive(&head);
            let diagnostic = Diagnostic::new(Code::ArchiveRefused, message).file(self.name).hint(PACK_FORMS);
            Err(Error::new(ErrorKind::Pack, diagnostic))
        }
    }

    fn unpack_tar(&mut self, file: File) -> Result<()> {
        let meter = Rc::new(Meter::default());
        // Headers and what is left out count here and nowhere else, hence the allowance.
        let most = self.budget.saturating_add(self.limits.total_bytes);
        let decoder = MultiGzDecoder::new(BufReader::new(file));
        let mut archive = tar::Archive::new(Metered { inner: decoder, meter: meter.clone() });
        let mut entries = archive.entries().map_err(|error| self.damaged(error))?;
        loop {
            meter.allow((meter.taken.get() + HEADER_BYTES).min(most));
            let Some(entry) = entries.next() else { break };
            meter.allow(most);
            let mut entry = entry.map_err(|error| self.tar_error(&meter, error))?;
            self.tar_entry(&mut entry, &meter)?;
        }
        let mut rest = archive.into_inner();
        meter.allow(most);
        let mut buffer = [0u8; 16 << 10];
        // To the very end, because the checksum comes last; and nothing may hide there.
        loop {
            match rest.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(count) if buffer[..count].iter().all(|byte| *byte == 0) => {}
                Ok(_) => return Err(self.ambiguous("there is something behind its end")),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.tar_error(&meter, error)),
            }
        }
    }

    fn tar_error(&self, meter: &Meter, error: io::Error) -> Error {
        if !meter.passed.get() {
            return self.damaged(error);
        }
        // Content runs into the writer's own limits first, so what was too much is a header, or the empty end.
        let message = format!("the headers behind entry {} are too large", self.entries);
        self.over_limit(message, UNTRUSTED)
    }

    fn tar_entry<R: Read>(&mut self, entry: &mut tar::Entry<'_, R>, meter: &Meter) -> Result<()> {
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
            self.entries += 1;
            return Ok(());
        }
        let read = |writer: &Self, failure: Failure| match failure {
            Failure::Told(error) => error,
            Failure::Read(error) => writer.tar_error(meter, error),
        };
        let Some(parts) = self.admit(&raw)? else {
            self.pass_over(entry).map_err(|failure| read(self, failure))?;
            return Ok(());
        };
        if kind.is_dir() {
            if declared > 0 {
                return Err(self.refused(&shown, "is a folder with content of its own", UNTRUSTED));
            }
            self.folder(&parts, true)?;
        } else if kind.is_file() {
            if raw.ends_with(b"/") {
                return Err(self.refused(&shown, "is a file with the name of a folder", UNTRUSTED));
            }
            let size = self.file(&parts, entry).map_err(|failure| read(self, failure))?;
            if size != declared {
                return Err(self.damaged(format!("{} is cut short", quoted(&shown))));
            }
        } else {
            let reason = match kind {
                tar::EntryType::Symlink => "is a symbolic link".to_owned(),
                tar::EntryType::Link => "is a hard link".to_owned(),
                tar::EntryType::Char | tar::EntryType::Block => "is a device".to_owned(),
                tar::EntryType::Fifo => "is a pipe".to_owned(),
                tar::EntryType::GNUSparse => "is a sparse file".to_owned(),
                _ => format!("is of the unknown kind `{}`", kind.as_byte().escape_ascii()),
            };
            return Err(self.refused(&shown, reason, FILES_ONLY));
        }
        Ok(())
    }

    fn unpack_zip(&mut self, mut file: File) -> Result<()> {
        // The crate reads the whole directory into memory, so its entries are counted before: each begins like this.
        let signatures =
            count(&mut file, b"PK\x01\x02").map_err(|error| files::io_error(self.name, &error))?;
        if signatures > self.limits.entries {
            return Err(self.too_many_entries());
        }
        let mut archive =
            zip::ZipArchive::new(BufReader::new(file)).map_err(|error| self.zip_error(&error))?;
        if archive.offset() != 0 {
            return Err(self.ambiguous("there is something in front of it"));
        }
        if archive.has_duplicate_names() {
            return Err(self.ambiguous("it lists one entry twice"));
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
            _ => Some("is of an unknown kind"),
        };
        if let Some(reason) = reason {
            return Err(self.refused(&shown, reason, FILES_ONLY));
        }
        if encrypted {
            return Err(self.refused(&shown, "is encrypted", "make the archive without a password"));
        }
        if !matches!(method, zip::CompressionMethod::Stored | zip::CompressionMethod::Deflated) {
            let hint = "make the archive with the usual method, deflate";
            return Err(self.refused(&shown, "is compressed in a way that Cuebook does not read", hint));
        }
        if folder {
            if declared > 0 {
                return Err(self.refused(&shown, "is a folder with content of its own", UNTRUSTED));
            }
            self.folder(&parts, true)?;
            return Ok(());
        }
        let mut content = archive.by_index(index).map_err(|error| self.zip_error(&error))?;
        let size = self.file(&parts, &mut content).map_err(|failure| match failure {
            Failure::Told(error) => error,
            Failure::Read(error) => self.damaged(format!("{}: {error}", quoted(&shown))),
        })?;
        if size != declared {
            return Err(self.damaged(format!("{} has not the size that it should", quoted(&shown))));
        }
        Ok(())
    }

    /// Makes the folders durable and finds the manifest.
    fn finish(self) -> Result<Unpacked> {
        let sync = |folder: &Path| files::sync_folder(folder);
        for known in self.known.values().filter(|known| known.folder) {
            sync(&self.into.join(&known.path)).map_err(|error| self.write_error(&known.path, &error))?;
        }
        sync(self.into).map_err(|error| self.write_error(".", &error))?;
        let root = self.root()?;
        let skipped = self.skipped.into_iter().collect();
        Ok(Unpacked { root, files: self.files, bytes: self.bytes, skipped })
    }

    fn is_file(&self, path: &str) -> bool {
        self.known.get(&path.to_lowercase()).is_some_and(|known| !known.folder && known.path == path)
    }

    fn root(&self) -> Result<PathBuf> {
        const MANIFEST: &str = "pack.json";
        if self.is_file(MANIFEST) {
            return Ok(self.into.to_owned());
        }
        let mut top = self.known.values().filter(|known| !known.path.contains('/'));
        if let (Some(only), None) = (top.next(), top.next())
            && self.is_file(&format!("{}/{MANIFEST}", only.path))
        {
            return Ok(self.into.join(&only.path));
        }
        let message = if self.known.is_empty() { "holds nothing" } else { "holds no pack.json" };
        let mut elsewhere: Vec<&str> = self
            .known
            .values()
            .filter(|known| !known.folder && known.path.to_lowercase().ends_with(MANIFEST))
            .map(|known| known.path.as_str())
            .filter(|path| path.rsplit('/').next().is_some_and(|file| file.eq_ignore_ascii_case(MANIFEST)))
            .collect();
        elsewhere.sort_by_key(|path| (path.matches('/').count(), *path));
        let hint = match elsewhere.first() {
            Some(path) => format!(
                "there is {}: pack.json belongs at the top, or in the only folder at the top",
                quoted(path)
            ),
            None => PACK_FORMS.to_owned(),
        };
        let diagnostic = Diagnostic::new(Code::BadManifest, message).file(self.name).hint(hint);
        Err(Error::new(ErrorKind::Pack, diagnostic))
    }
}

/// Why an entry could not be written: already an error, or the reader's fault, which depends on what was read.
enum Failure {
    Told(Error),
    Read(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Told(error)
    }
}

/// What extended headers say against an entry, if anything. They can rename and resize it, and readers disagree on how.
fn pax_problem<R: Read>(entry: &mut tar::Entry<'_, R>, path: &[u8], size: u64) -> io::Result<Option<String>> {
    let global = entry.header().entry_type().is_pax_global_extensions();
    let Some(extensions) = entry.pax_extensions()? else { return Ok(None) };
    let mut seen = HashSet::new();
    for extension in extensions {
        let Ok(extension) = extension else {
            return Ok(Some("has an extended header that cannot be understood".into()));
        };
        let key = extension.key_bytes();
        if !seen.insert(key) {
            return Ok(Some("has an extended header with one field twice".into()));
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
struct Metered<R> {
    inner: R,
    meter: Rc<Meter>,
}

#[derive(Default)]
struct Meter {
    taken: Cell<u64>,
    allowed: Cell<u64>,
    passed: Cell<bool>,
}

impl Meter {
    fn allow(&self, total: u64) {
        self.allowed.set(total);
    }
}

impl<R: Read> Read for Metered<R> {
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

/// What a file is that is no archive Cuebook reads.
fn no_archive(head: &[u8]) -> String {
    let other = [
        (&b"\xfd7zXZ\0"[..], "an xz archive"),
        (b"\x28\xb5\x2f\xfd", "a zstd archive"),
        (b"BZh", "a bzip2 archive"),
        (b"7z\xbc\xaf\x27\x1c", "a 7z archive"),
        (b"Rar!", "a RAR archive"),
    ];
    let known = other.iter().find(|(magic, _)| head.starts_with(magic)).map(|(_, what)| *what);
    let tar =
        head.get(257..262).is_some_and(|magic| magic == b"ustar").then_some("a tar archive without gzip");
    match known.or(tar) {
        Some(what) => format!("is {what}, which Cuebook does not unpack"),
        None if head.is_empty() => "is an empty file".into(),
        None => "is not an archive".into(),
    }
}

/// Makes one folder that everybody may read.
fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o755);
    builder.create(path)
}

/// Makes a file that was not there, readable for everybody and executable for nobody.
fn make_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
    options.open(path)
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
        Err(io::Error::other("the file was exchanged meanwhile"))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use proptest::prelude::*;
    use tar::EntryType;
    use tempfile::TempDir;
    use zip::write::SimpleFileOptions;

    use super::*;

    const MANIFEST: &[u8] = b"{\"pack_id\": \"p\"}";

    /// A folder with an archive in it and an empty folder beside it.
    struct Trial {
        folder: TempDir,
    }

    impl Trial {
        fn new() -> Trial {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir(folder.path().join("into")).unwrap();
            Trial { folder }
        }

        fn target(&self) -> PathBuf {
            self.folder.path().join("into")
        }

        fn source(&self) -> PathBuf {
            self.folder.path().join("source")
        }

        fn unpack_with(&self, limits: &ArchiveLimits) -> Result<Unpacked> {
            let unpacked = unpack(&self.source(), "source", &self.target(), limits);
            let mut beside: Vec<_> =
                fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            beside.sort();
            assert_eq!(beside, ["into", "source"], "something was left outside");
            unpacked
        }

        fn unpack(&self) -> Result<Unpacked> {
            self.unpack_with(&ArchiveLimits::default())
        }

        /// All files below the folder that was unpacked into, in order.
        fn written(&self) -> Vec<String> {
            let mut found = Vec::new();
            let mut waiting = vec![self.target()];
            while let Some(folder) = waiting.pop() {
                for entry in fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    if path.is_dir() {
                        waiting.push(path);
                    } else {
                        found.push(files::display_name(&self.target(), &path));
                    }
                }
            }
            found.sort();
            found
        }
    }

    fn trial(bytes: &[u8]) -> Trial {
        let trial = Trial::new();
        fs::write(trial.source(), bytes).unwrap();
        trial
    }

    fn told(error: &Error) -> String {
        format!("{error}\n{}", error.diagnostic().hint.as_deref().unwrap_or("(no hint)"))
    }

    fn refusal(bytes: &[u8]) -> String {
        told(&trial(bytes).unpack().unwrap_err())
    }

    /// What the refusal of one entry looks like.
    fn entry_refused(entry: &str, reason: &str, hint: &str) -> String {
        format!("PackError: source: the entry `{entry}` {reason} [CB204]\n{hint}")
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    type TarEntry<'e> = (EntryType, &'e [u8], &'e [u8]);

    /// One entry of a tar archive with a name that no builder would write.
    fn tar_block((kind, name, content): TarEntry<'_>) -> Vec<u8> {
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[..name.len()].copy_from_slice(name);
        header.set_entry_type(kind);
        header.set_mode(0o777);
        header.set_size(content.len() as u64);
        if kind == EntryType::Symlink || kind == EntryType::Link {
            header.as_old_mut().linkname[..11].copy_from_slice(b"/etc/passwd");
        }
        header.set_cksum();
        let mut bytes = header.as_bytes().to_vec();
        bytes.extend_from_slice(content);
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        bytes
    }

    fn tar(entries: &[TarEntry<'_>]) -> Vec<u8> {
        let mut bytes: Vec<u8> = entries.iter().flat_map(|entry| tar_block(*entry)).collect();
        bytes.resize(bytes.len() + 1024, 0);
        bytes
    }

    fn tar_gz(entries: &[TarEntry<'_>]) -> Vec<u8> {
        gzip(&tar(entries))
    }

    fn file<'e>(name: &'e str, content: &'e [u8]) -> TarEntry<'e> {
        (EntryType::Regular, name.as_bytes(), content)
    }

    fn pax(key: &str, value: &str) -> Vec<u8> {
        let bare = key.len() + value.len() + 3;
        let length = (bare + 1..).find(|length| bare + length.to_string().len() == *length).unwrap();
        format!("{length} {key}={value}\n").into_bytes()
    }

    fn zip(entries: &[(&str, &[u8])]) -> Vec<u8> {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in entries {
            if name.ends_with('/') {
                writer.add_directory(*name, SimpleFileOptions::default()).unwrap();
            } else {
                writer.start_file(*name, SimpleFileOptions::default().unix_permissions(0o777)).unwrap();
                writer.write_all(content).unwrap();
            }
        }
        writer.finish().unwrap().into_inner()
    }

    /// Exchanges bytes for as many others: everywhere, or at the first occurrence only.
    fn patched(bytes: &[u8], old: &[u8], new: &[u8], everywhere: bool) -> Vec<u8> {
        assert_eq!(old.len(), new.len());
        let mut bytes = bytes.to_vec();
        let mut at = 0;
        let mut found = false;
        while at + old.len() <= bytes.len() && (everywhere || !found) {
            if bytes[at..].starts_with(old) {
                bytes[at..at + old.len()].copy_from_slice(new);
                found = true;
            }
            at += 1;
        }
        assert!(found);
        bytes
    }

    /// Sets bytes behind every header with the given signature that is followed by the given name.
    fn zip_header_patched(bytes: &[u8], signature: &[u8], offset: usize, new: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for at in 0..bytes.len() {
            if bytes[at..].starts_with(signature) {
                bytes[at + offset..at + offset + new.len()].copy_from_slice(new);
            }
        }
        bytes
    }

    const LOCAL: &[u8] = b"PK\x03\x04";
    const CENTRAL: &[u8] = b"PK\x01\x02";

    #[test]
    fn a_tar_archive_is_unpacked_with_its_manifest_at_the_root() {
        let trial = trial(&tar_gz(&[
            (EntryType::Directory, b"./", b""),
            file("./pack.json", MANIFEST),
            (EntryType::Directory, b"./prompts/", b""),
            file("./prompts/a/template.md", "Grüße".as_bytes()),
        ]));
        let unpacked = trial.unpack().unwrap();
        let wanted = Unpacked {
            root: trial.target(),
            files: 2,
            bytes: 23 + MANIFEST.len() as u64 - 16,
            skipped: vec![],
        };
        assert_eq!(unpacked, wanted);
        assert_eq!(trial.written(), ["pack.json", "prompts/a/template.md"]);
        assert_eq!(fs::read(trial.target().join("prompts/a/template.md")).unwrap(), "Grüße".as_bytes());
    }

    #[test]
    fn a_zip_archive_with_one_folder_at_the_top_is_unpacked_and_its_root_is_that_folder() {
        let trial = trial(&zip(&[
            ("p-1.0/", b""),
            ("p-1.0/pack.json", MANIFEST),
            ("p-1.0/prompts/ä/template.md", b"x"),
            ("__MACOSX/p-1.0/._pack.json", b"junk"),
        ]));
        let unpacked = trial.unpack().unwrap();
        assert_eq!(unpacked.root, trial.target().join("p-1.0"));
        assert_eq!(unpacked.skipped, ["__MACOSX"]);
        assert_eq!(trial.written(), ["p-1.0/pack.json", "p-1.0/prompts/ä/template.md"]);
    }

    #[test]
    fn a_folder_is_copied_without_what_tools_leave_in_it() {
        let trial = Trial::new();
        let source = trial.source();
        for folder in [".git/objects", "prompts/a/__pycache__", "variables"] {
            fs::create_dir_all(source.join(folder)).unwrap();
        }
        for path in [
            "pack.json",
            ".git/objects/x",
            "prompts/.DS_Store",
            "prompts/a/template.md",
            "prompts/a/__pycache__/x.pyc",
        ] {
            fs::write(source.join(path), MANIFEST).unwrap();
        }
        let unpacked = trial.unpack().unwrap();
        assert_eq!((unpacked.root, unpacked.files), (trial.target(), 2));
        assert_eq!(unpacked.skipped, [".git", "prompts/.DS_Store", "prompts/a/__pycache__"]);
        assert_eq!(trial.written(), ["pack.json", "prompts/a/template.md"]);
        assert!(trial.target().join("variables").is_dir());
    }

    #[cfg(unix)]
    #[test]
    fn nothing_becomes_executable() {
        use std::os::unix::fs::PermissionsExt;
        for bytes in [tar_gz(&[file("pack.json", MANIFEST)]), zip(&[("pack.json", MANIFEST)])] {
            let trial = trial(&bytes);
            trial.unpack().unwrap();
            let mode = fs::metadata(trial.target().join("pack.json")).unwrap().permissions().mode();
            assert_eq!(mode & 0o133, 0, "{mode:o}");
        }
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused_in_tar_and_zip() {
        let windows = "has `:` in its name, which Windows does not allow";
        for (name, reason, hint) in [
            ("../evil", "leads out of the pack with `..`", UNTRUSTED),
            ("a/../../evil", "leads out of the pack with `..`", UNTRUSTED),
            ("/etc/evil", "is an absolute path", UNTRUSTED),
            ("C:evil", "begins with a drive letter", UNTRUSTED),
            ("a\\..\\evil", "has a backslash in its name", RENAME),
            ("a/evil:x", windows, RENAME),
            ("a/aux.md", "has the part `aux.md`, which is the name of a device on Windows", RENAME),
            ("a//evil", "has an empty part between two slashes", RENAME),
            ("a/evil.", "has a part that ends with a dot or a space, which Windows drops", RENAME),
            (".git/../../evil", "leads out of the pack with `..`", UNTRUSTED),
        ] {
            let wanted = entry_refused(name, reason, hint);
            assert_eq!(refusal(&tar_gz(&[file("pack.json", MANIFEST), file(name, b"x")])), wanted);
            let placeholder = "z".repeat(name.len());
            let zipped = zip(&[("pack.json", MANIFEST), (&placeholder, b"x")]);
            assert_eq!(refusal(&patched(&zipped, placeholder.as_bytes(), name.as_bytes(), true)), wanted);
        }
    }

    #[test]
    fn names_with_nul_or_without_utf8_are_refused() {
        let nul = "has a control character (U+0000) in its name";
        let zipped = zip(&[("pack.json", MANIFEST), ("azb", b"x")]);
        assert_eq!(refusal(&patched(&zipped, b"azb", b"a\0b", true)), entry_refused("a\\u{0}b", nul, RENAME));
        let long = [(EntryType::GNULongName, &b"././@LongLink"[..], &b"a\0b\0"[..]), file("a", b"x")];
        assert_eq!(refusal(&tar_gz(&long)), entry_refused("a\\u{0}b", nul, RENAME));
        let wanted = entry_refused("a\u{fffd}b", "has a name that is not UTF-8", RENAME);
        assert_eq!(refusal(&tar_gz(&[(EntryType::Regular, b"a\xffb", b"x")])), wanted);
        assert_eq!(refusal(&patched(&zipped, b"azb", b"a\xffb", true)), wanted);
    }

    #[test]
    fn links_devices_and_pipes_are_refused_in_tar() {
        for (kind, reason) in [
            (EntryType::Symlink, "is a symbolic link"),
            (EntryType::Link, "is a hard link"),
            (EntryType::Char, "is a device"),
            (EntryType::Block, "is a device"),
            (EntryType::Fifo, "is a pipe"),
            (EntryType::new(b'7'), "is of the unknown kind `7`"),
            (EntryType::new(b'V'), "is of the unknown kind `V`"),
        ] {
            let bytes = tar_gz(&[file("pack.json", MANIFEST), (kind, b"evil", b"")]);
            assert_eq!(refusal(&bytes), entry_refused("evil", reason, FILES_ONLY));
        }
    }

    #[test]
    fn a_link_that_a_later_entry_writes_through_is_refused_before_that_entry() {
        let bytes = tar_gz(&[(EntryType::Symlink, b"d", b""), file("d/evil", b"x")]);
        assert_eq!(refusal(&bytes), entry_refused("d", "is a symbolic link", FILES_ONLY));
    }

    #[test]
    fn links_devices_and_pipes_are_refused_in_zip() {
        for (mode, reason) in [
            (0o120_777u32, "is a symbolic link"),
            (0o020_666, "is a device"),
            (0o060_666, "is a device"),
            (0o010_666, "is a pipe"),
            (0o140_666, "is a socket"),
            (0o040_755, "is a folder with the name of a file"),
            (0o170_000, "is of an unknown kind"),
        ] {
            let attributes = (mode << 16).to_le_bytes();
            let bytes = zip_header_patched(&zip(&[("evil", b"/etc/passwd")]), CENTRAL, 38, &attributes);
            assert_eq!(refusal(&bytes), entry_refused("evil", reason, FILES_ONLY), "{mode:o}");
            // Whatever system the entry claims to come from.
            let bytes = zip_header_patched(&bytes, CENTRAL, 5, &[0]);
            assert_eq!(refusal(&bytes), entry_refused("evil", reason, FILES_ONLY), "{mode:o}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn links_and_sockets_in_a_folder_are_refused() {
        let trial = Trial::new();
        fs::create_dir(trial.source()).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", trial.source().join("evil")).unwrap();
        let error = trial.unpack().unwrap_err();
        assert_eq!(told(&error), entry_refused("evil", "is a symbolic link", FILES_ONLY));

        let trial = Trial::new();
        fs::create_dir(trial.source()).unwrap();
        let _socket = std::os::unix::net::UnixListener::bind(trial.source().join("evil")).unwrap();
        let error = trial.unpack().unwrap_err();
        assert_eq!(told(&error), entry_refused("evil", "is a device, a pipe or a socket", FILES_ONLY));
    }

    #[test]
    fn two_entries_of_one_path_are_refused_also_in_other_letters() {
        let twice = tar_gz(&[file("a/b.md", b"1"), file("./a/b.md", b"2")]);
        assert_eq!(refusal(&twice), entry_refused("a/b.md", "is there twice", "keep one of the two"));
        let folders = tar_gz(&[(EntryType::Directory, b"a/", b""), (EntryType::Directory, b"a", b"")]);
        assert_eq!(refusal(&folders), entry_refused("a", "is there twice", "keep one of the two"));
        let differs = "differs from `straße/É.md` only in the case of its letters";
        let bytes = tar_gz(&[file("straße/É.md", b"1"), file("straße/é.md", b"2")]);
        assert_eq!(refusal(&bytes), entry_refused("straße/é.md", differs, "keep one of the two"));
        let differs = "differs from `prompts` only in the case of its letters";
        let bytes = zip(&[("prompts/a.md", b"1"), ("Prompts/b.md", b"2")]);
        assert_eq!(refusal(&bytes), entry_refused("Prompts", differs, "keep one of the two"));
        let bytes = patched(&zip(&[("a.md", b"1"), ("b.md", b"2")]), b"b.md", b"a.md", true);
        let wanted = "PackError: source: the archive means different things to different programs: it lists one entry \
                      twice [CB204]\n";
        assert_eq!(refusal(&bytes), format!("{wanted}{UNTRUSTED}"));
    }

    #[test]
    fn a_file_where_a_folder_is_needed_is_refused() {
        let wanted = entry_refused("a", "is a file and a folder at once", "keep one of the two");
        assert_eq!(refusal(&tar_gz(&[file("a", b"1"), file("a/b", b"2")])), wanted);
        assert_eq!(refusal(&tar_gz(&[file("a/b", b"2"), file("a", b"1")])), wanted);
        assert_eq!(refusal(&zip(&[("a", b"1"), ("a/", b"")])), wanted);
    }

    #[test]
    fn gnu_long_names_and_pax_paths_are_followed_and_checked_like_any_other() {
        let long = format!("{}/x.md", ["d".repeat(60), "e".repeat(60), "f".repeat(60)].join("/"));
        let with_nul = format!("{long}\0");
        let trial = trial(&tar_gz(&[
            file("pack.json", MANIFEST),
            (EntryType::GNULongName, b"././@LongLink", with_nul.as_bytes()),
            file("cut", b"1"),
            (EntryType::XHeader, b"PaxHeaders/x", &pax("path", "prompts/ü/template.md")),
            file("cut", b"2"),
        ]));
        trial.unpack().unwrap();
        assert_eq!(trial.written(), [long.as_str(), "pack.json", "prompts/ü/template.md"]);

        let out = entry_refused("../evil", "leads out of the pack with `..`", UNTRUSTED);
        let bytes = tar_gz(&[(EntryType::GNULongName, b"././@LongLink", b"../evil\0"), file("fine", b"1")]);
        assert_eq!(refusal(&bytes), out);
        let bytes = tar_gz(&[(EntryType::XHeader, b"x", &pax("path", "../evil")), file("fine", b"1")]);
        assert_eq!(refusal(&bytes), out);
        let longest = "x".repeat(600);
        let bytes = tar_gz(&[(EntryType::XHeader, b"x", &pax("path", &longest)), file("fine", b"1")]);
        let wanted = entry_refused(
            &format!("{}…", "x".repeat(100)),
            "has a path of 600 bytes, and the limit is 512",
            "shorten the names",
        );
        assert_eq!(refusal(&bytes), wanted);
    }

    #[test]
    fn an_entry_with_two_names_or_sizes_is_refused() {
        let path = pax("path", "b");
        let bytes = tar_gz(&[
            (EntryType::XHeader, b"x", &path),
            (EntryType::GNULongName, b"././@LongLink", b"a\0"),
            file("c", b"1"),
        ]);
        assert_eq!(refusal(&bytes), entry_refused("a", "has two names", UNTRUSTED));
        let twice = [pax("path", "a"), pax("path", "b")].concat();
        let bytes = tar_gz(&[(EntryType::XHeader, b"x", &twice), file("c", b"1")]);
        let reason = "has an extended header with one field twice";
        assert_eq!(refusal(&bytes), entry_refused("a", reason, UNTRUSTED));
        let bytes = tar_gz(&[(EntryType::XHeader, b"x", &pax("size", "1x")), file("c", b"1")]);
        assert_eq!(refusal(&bytes), entry_refused("c", "has two sizes", UNTRUSTED));
        let bytes = tar_gz(&[(EntryType::XHeader, b"x", b"99 path=../evil\n"), file("c", b"1")]);
        let reason = "has an extended header that cannot be understood";
        assert_eq!(refusal(&bytes), entry_refused("c", reason, UNTRUSTED));
    }

    #[test]
    fn a_global_header_may_comment_and_not_rename() {
        let trial = trial(&tar_gz(&[
            (EntryType::XGlobalHeader, b"pax_global_header", &pax("comment", "3828b88350c9e705")),
            file("pack.json", MANIFEST),
        ]));
        trial.unpack().unwrap();
        assert_eq!(trial.written(), ["pack.json"]);
        let bytes =
            tar_gz(&[(EntryType::XGlobalHeader, b"g", &pax("path", "evil")), file("pack.json", MANIFEST)]);
        let reason = "changes the names or sizes of all other entries";
        assert_eq!(refusal(&bytes), entry_refused("g", reason, UNTRUSTED));
    }

    #[test]
    fn sparse_files_are_refused_in_both_their_forms() {
        let bytes =
            tar_gz(&[(EntryType::XHeader, b"x", &pax("GNU.sparse.size", "99999999")), file("c", b"1")]);
        assert_eq!(refusal(&bytes), entry_refused("c", "is a sparse file", UNTRUSTED));
        let mut header = tar::Header::new_gnu();
        header.as_old_mut().name[0] = b'c';
        header.set_entry_type(EntryType::GNUSparse);
        header.set_size(0);
        let gnu = header.as_gnu_mut().unwrap();
        gnu.realsize[..11].copy_from_slice(b"77777777777");
        gnu.sparse[0].offset[..11].copy_from_slice(b"77777777777");
        gnu.sparse[0].numbytes[..11].copy_from_slice(b"00000000000");
        header.set_cksum();
        let bytes = gzip(&[header.as_bytes().as_slice(), &[0; 1024]].concat());
        assert_eq!(refusal(&bytes), entry_refused("c", "is a sparse file", FILES_ONLY));
    }

    #[test]
    fn a_folder_with_content_and_a_file_named_like_a_folder_are_refused() {
        let bytes = tar_gz(&[(EntryType::Directory, b"d/", b"content")]);
        assert_eq!(refusal(&bytes), entry_refused("d/", "is a folder with content of its own", UNTRUSTED));
        let bytes = tar_gz(&[file("d/", b"content")]);
        assert_eq!(refusal(&bytes), entry_refused("d/", "is a file with the name of a folder", UNTRUSTED));
    }

    #[test]
    fn encrypted_and_strangely_compressed_zip_entries_are_refused() {
        let plain = zip(&[("pack.json", MANIFEST)]);
        let flagged = zip_header_patched(&zip_header_patched(&plain, LOCAL, 6, &[1]), CENTRAL, 8, &[1]);
        let wanted = entry_refused("pack.json", "is encrypted", "make the archive without a password");
        assert_eq!(refusal(&flagged), wanted);
        let lzma = zip_header_patched(&zip_header_patched(&plain, LOCAL, 8, &[14]), CENTRAL, 10, &[14]);
        let reason = "is compressed in a way that Cuebook does not read";
        let hint = "make the archive with the usual method, deflate";
        assert_eq!(refusal(&lzma), entry_refused("pack.json", reason, hint));
    }

    #[test]
    fn a_zip_whose_two_directories_disagree_is_refused() {
        let plain = zip(&[("pack.json", MANIFEST), ("good.md", b"x")]);
        let wanted = "PackError: source: the archive means different things to different programs: ";
        let bytes = patched(&plain, b"good.md", b"evil.md", false);
        assert!(refusal(&bytes).starts_with(wanted), "{}", refusal(&bytes));
        let prefixed = [&zip(&[("hidden.md", b"y")])[..], &plain].concat();
        let told = refusal(&prefixed);
        assert!(told.starts_with(wanted), "{told}");
    }

    #[test]
    fn wrong_checksums_and_sizes_are_noticed() {
        let stored = {
            let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
            let options = SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
            writer.start_file("pack.json", options).unwrap();
            writer.write_all(MANIFEST).unwrap();
            writer.finish().unwrap().into_inner()
        };
        let told = refusal(&patched(&stored, b"pack_id", b"pack-id", false));
        let wanted = "PackError: source: the archive is damaged: `pack.json`: Invalid checksum [CB204]\n";
        assert_eq!(told, format!("{wanted}{DAMAGED}"));
        let mut bytes = tar_gz(&[file("pack.json", MANIFEST)]);
        let checksum = bytes.len() - 8;
        bytes[checksum] ^= 1;
        let told = refusal(&bytes);
        assert!(told.starts_with("PackError: source: the archive is damaged: "), "{told}");
    }

    #[test]
    fn an_archive_that_is_cut_short_anywhere_is_refused() {
        let tar = tar_gz(&[file("pack.json", MANIFEST), file("prompts/a/template.md", &[b'x'; 3000])]);
        let zip = zip(&[("pack.json", MANIFEST), ("prompts/a/template.md", &[b'x'; 3000])]);
        for whole in [tar, zip] {
            for length in (0..whole.len()).step_by(7).chain([whole.len() - 1]) {
                let error = trial(&whole[..length]).unpack().unwrap_err();
                assert_eq!(error.code(), Code::ArchiveRefused, "{length}: {error}");
            }
        }
        let plain = tar_block(file("pack.json", &[b'x'; 3000]));
        let told = refusal(&gzip(&plain[..1200]));
        let wanted = "PackError: source: the archive is damaged: `pack.json` is cut short [CB204]\n";
        assert_eq!(told, format!("{wanted}{DAMAGED}"));
    }

    #[test]
    fn what_is_no_archive_is_named_if_it_can_be() {
        let told = |what: &str| format!("PackError: source: {what} [CB204]\n{PACK_FORMS}");
        assert_eq!(refusal(b""), told("is an empty file"));
        assert_eq!(refusal(b"# Hello\n"), told("is not an archive"));
        assert_eq!(refusal(b"BZh91AY&SY"), told("is a bzip2 archive, which Cuebook does not unpack"));
        let tar = tar(&[file("pack.json", MANIFEST)]);
        assert_eq!(refusal(&tar), told("is a tar archive without gzip, which Cuebook does not unpack"));
        let error = unpack(Path::new("/nowhere"), "p.zip", &Trial::new().target(), &ArchiveLimits::default());
        assert_eq!(error.unwrap_err().to_string(), "IoError: p.zip: the file does not exist [CB110]");
    }

    #[test]
    fn something_behind_the_end_is_refused() {
        let mut bytes = tar(&[file("pack.json", MANIFEST)]);
        bytes.extend_from_slice(&tar_block(file("evil", b"x")));
        let wanted = "PackError: source: the archive means different things to different programs: there is something \
                      behind its end [CB204]\n";
        assert_eq!(refusal(&gzip(&bytes)), format!("{wanted}{UNTRUSTED}"));
    }

    #[test]
    fn a_pack_without_a_manifest_is_refused_and_one_in_the_wrong_place_is_mentioned() {
        let none = |message: &str, hint: &str| format!("PackError: source: {message} [CB201]\n{hint}");
        assert_eq!(refusal(&tar_gz(&[])), none("holds nothing", PACK_FORMS));
        assert_eq!(refusal(&gzip(b"")), none("holds nothing", PACK_FORMS));
        assert_eq!(refusal(&zip(&[])), none("holds nothing", PACK_FORMS));
        assert_eq!(refusal(&tar_gz(&[file(".git/x", b"")])), none("holds nothing", PACK_FORMS));
        assert_eq!(refusal(&zip(&[("a.md", b"x")])), none("holds no pack.json", PACK_FORMS));
        let hint = "there is `a/pack.json`: pack.json belongs at the top, or in the only folder at the top";
        let bytes = tar_gz(&[file("README.md", b""), file("a/pack.json", MANIFEST)]);
        assert_eq!(refusal(&bytes), none("holds no pack.json", hint));
        let hint = "there is `Pack.json`: pack.json belongs at the top, or in the only folder at the top";
        assert_eq!(refusal(&zip(&[("Pack.json", MANIFEST)])), none("holds no pack.json", hint));
    }

    #[test]
    fn every_limit_stops_the_work_and_is_told() {
        let small = ArchiveLimits {
            total_bytes: 100_000,
            file_bytes: 50_000,
            entries: 4,
            depth: 3,
            path_bytes: 40,
            ratio: 200,
        };
        let large = vec![b'x'; 60_000];
        let half = vec![b'x'; 40_000];
        let tests: [(Vec<(&str, &[u8])>, &str); 5] = [
            (vec![("a", &large)], "LimitError: source: the entry `a` has more than 50000 bytes [CB204]"),
            (
                vec![("a", &half), ("b", &half), ("c", &half)],
                "LimitError: source: holds more than 100000 bytes [CB204]",
            ),
            (
                vec![("a", b""), ("b", b""), ("c", b""), ("d", b""), ("e", b"")],
                "LimitError: source: holds more than 4 files and folders [CB204]",
            ),
            (
                vec![("a/b/c/d", b"")],
                "PackError: source: the entry `a/b/c/d` lies 4 folders deep, and the limit is 3 [CB204]",
            ),
            (
                vec![("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", b"")],
                "PackError: source: the entry `aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa` has a path of 45 bytes, \
                 and the limit is 40 [CB204]",
            ),
        ];
        for (entries, wanted) in tests {
            let in_tar: Vec<TarEntry<'_>> =
                entries.iter().map(|(name, content)| file(name, content)).collect();
            let from_tar = trial(&tar_gz(&in_tar)).unpack_with(&small).unwrap_err();
            assert_eq!(from_tar.to_string(), wanted);
            let from_zip = trial(&zip(&entries)).unpack_with(&small).unwrap_err();
            assert_eq!(from_zip.to_string(), wanted);
            let in_folder = Trial::new();
            for (name, content) in &entries {
                let path = in_folder.source().join(name);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, content).unwrap();
            }
            let from_folder = in_folder.unpack_with(&small).unwrap_err();
            assert_eq!(from_folder.to_string(), wanted);
        }
        let error = trial(&[b'x'; 100_001]).unpack_with(&small).unwrap_err();
        assert_eq!(
            error.to_string(),
            "LimitError: source: the archive has 100001 bytes, and the limit is 100000 [CB204]"
        );
    }

    #[test]
    fn a_bomb_is_stopped_by_its_ratio_long_before_it_is_whole() {
        let zeros = vec![0; 15 << 20];
        let wanted = "LimitError: source: unpacks to more than 50 times its size [CB204]";
        for bytes in
            [tar_gz(&[file("bomb", &zeros)]), zip(&[("bomb", &zeros)]), tar_gz(&[file(".bomb", &zeros)])]
        {
            let limits = ArchiveLimits { ratio: 50, ..ArchiveLimits::default() };
            let trial = trial(&bytes);
            let error = trial.unpack_with(&limits).unwrap_err();
            assert_eq!(error.to_string(), wanted, "{} bytes", bytes.len());
        }
    }

    #[test]
    fn a_header_that_never_ends_is_stopped() {
        let name = vec![b'x'; 3 << 20];
        let bytes = tar_gz(&[(EntryType::GNULongName, b"././@LongLink", &name), file("a", b"")]);
        let error = trial(&bytes).unpack().unwrap_err();
        assert_eq!(error.to_string(), "LimitError: source: the headers behind entry 0 are too large [CB204]");
    }

    #[test]
    fn a_target_that_is_not_empty_or_lies_in_the_source_is_refused() {
        let trial = trial(&zip(&[("pack.json", MANIFEST)]));
        fs::write(trial.target().join("old"), "").unwrap();
        assert_eq!(
            trial.unpack().unwrap_err().to_string(),
            "IoError: source: could not be written: the folder to unpack into is not empty [CB114]"
        );
        let folder = tempfile::tempdir().unwrap();
        let into = folder.path().join("packs/new");
        fs::create_dir_all(&into).unwrap();
        let error = unpack(folder.path(), ".", &into, &ArchiveLimits::default()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "PackError: .: the folder contains the place that it would be copied to [CB204]"
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn random_bytes_are_refused_without_a_panic(
            head in prop_oneof![Just(&b""[..]), Just(&b"\x1f\x8b\x08\0\0\0\0\0\0\0"[..]), Just(LOCAL), Just(&b"PK\x05\x06"[..])],
            bytes in prop::collection::vec(any::<u8>(), 0..600),
        ) {
            prop_assert!(trial(&[head, &bytes].concat()).unpack().is_err());
        }

        #[test]
        fn damage_to_a_sound_archive_never_panics_or_escapes(
            zipped: bool,
            damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        ) {
            let content = [b'x'; 700];
            let mut bytes = if zipped {
                zip(&[("p/pack.json", MANIFEST), ("p/prompts/a/template.md", &content)])
            } else {
                tar(&[file("p/pack.json", MANIFEST), file("p/prompts/a/template.md", &content)])
            };
            for (index, byte) in damage {
                let at = index.index(bytes.len());
                bytes[at] = byte;
            }
            // `unpack` itself asserts that nothing lies outside.
            let _ = trial(&if zipped { bytes } else { gzip(&bytes) }).unpack();
        }
    }
}
