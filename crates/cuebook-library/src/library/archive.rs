//! Packs on their way in: a folder, a `.tar.gz` or a `.zip` becomes a folder that holds plain files and nothing else.
//!
//! An archive comes from a stranger, so every entry must prove itself before a byte of it is written:
//!
//! - its path is relative, portable and inside the pack, and no other entry has it (not even in other letter case, or with
//!   accents in another encoding);
//! - it is a file or a folder: links, devices, pipes, sparse and encrypted entries are refused, and so is an archive of
//!   which two programs could see different entries;
//! - sizes count as they arrive. What a header declares is compared with what came, and never believed.
//!
//! Entries with a part that begins with a dot, and `__pycache__` and `__MACOSX`, are left out and reported: the library
//! never looks at such names, so they could only be clutter or a trap. Modes, owners and times are not kept, so nothing
//! becomes executable. What was refused is an error; the caller then removes the folder that was unpacked into.
//!
//! This module writes below the folder that it was given and nowhere else. It does not read the manifest.

mod folder;
#[cfg(feature = "packs")]
mod tar;
#[cfg(feature = "packs")]
mod zip;

#[cfg(test)]
#[cfg(feature = "packs")]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::pack::SKILL_FILE;
use super::portable;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;
use crate::json::quoted;

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
            depth: portable::MAX_PARTS,
            path_bytes: portable::MAX_PATH_BYTES,
            ratio: 100,
        }
    }
}

/// Small archives of very repetitive text are no bombs, so the ratio does not count below this.
const RATIO_FREE_BYTES: u64 = 1 << 20;

/// What was unpacked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unpacked {
    /// The folder that holds `pack.json` or `SKILL.md`: the one unpacked into, or the one folder in it.
    pub root: PathBuf,
    /// Files that were written.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Paths that were left out, each with everything below it.
    pub skipped: Vec<String>,
    /// Files that their owner could run where they come from, by their paths below `root`. They are written without that right.
    pub executables: Vec<String>,
}

/// Copies a folder, or unpacks an archive, into a folder that exists and is empty.
///
/// `name` is what people call the folder or archive. What kind of archive it is, its content decides.
pub fn unpack(from: &Path, name: &str, into: &Path, limits: &ArchiveLimits) -> Result<Unpacked> {
    let mut target = fs::read_dir(into).map_err(|error| files::write_error(name, &error))?;
    if target.next().is_some() {
        let full = io::Error::new(io::ErrorKind::DirectoryNotEmpty, "the target folder is not empty");
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
const UNTRUSTED: &str = "get the pack from a source you trust: a valid archive has no such entry";
const FILES_ONLY: &str = "replace it with a plain file: a pack holds only files and folders";
const RENAME: &str = "rename it, so that the pack works on every system";
const DAMAGED: &str = "download or create the archive again";

/// A path that an entry has claimed.
struct ClaimedPath {
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
    /// By folded path: what differs only in case or in the encoding of accents is one file on many systems.
    known: HashMap<String, ClaimedPath>,
    entries: usize,
    files: usize,
    bytes: u64,
    /// Bytes that were unpacked only to be left out; they cost as much as the others.
    bytes_left_out: u64,
    skipped: BTreeSet<String>,
    executables: Vec<String>,
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
            executables: Vec::new(),
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
        let message = format!("the archive is ambiguous: {reason}");
        let diagnostic = Diagnostic::new(Code::ArchiveRefused, message).file(self.name).hint(UNTRUSTED);
        Error::new(ErrorKind::Pack, diagnostic)
    }

    /// Checks the path of one more entry and takes it apart. `None`: there is nothing to write for it.
    fn admit<'p>(&mut self, raw: &'p [u8]) -> Result<Option<Vec<&'p str>>> {
        self.count_entry()?;
        let Ok(path) = std::str::from_utf8(raw) else {
            return Err(self.refused(&String::from_utf8_lossy(raw), "has a name that is not UTF-8", RENAME));
        };
        if path.len() > self.limits.path_bytes {
            let message = format!(
                "the entry {} has a path of {} bytes, but the limit is {}",
                quoted(path),
                path.len(),
                self.limits.path_bytes
            );
            return Err(self.over_limit(message, "shorten the names"));
        }
        let parts = portable::parts(path).map_err(|reason| {
            let outside = ["absolute", "drive letter", "`..`"].iter().any(|word| reason.contains(word));
            self.refused(path, reason, if outside { UNTRUSTED } else { RENAME })
        })?;
        if parts.len() > self.limits.depth {
            let message = format!(
                "the entry {} is {} folders deep, but the limit is {}",
                quoted(path),
                parts.len(),
                self.limits.depth
            );
            return Err(self.over_limit(message, "move it up"));
        }
        if let Some(at) = parts.iter().position(|part| portable::is_left_out(part)) {
            self.skipped.insert(parts[..=at].join("/"));
            return Ok(None);
        }
        Ok(if parts.is_empty() { None } else { Some(parts) })
    }

    fn count_entry(&mut self) -> Result<()> {
        self.entries += 1;
        if self.entries > self.limits.entries { Err(self.too_many_entries()) } else { Ok(()) }
    }

    fn too_many_entries(&self) -> Error {
        let message = format!("has more than {} files and folders", self.limits.entries);
        self.over_limit(message, "a pack holds prompts: remove everything else")
    }

    /// Claims a path, and says whether it is new.
    fn claim(&mut self, path: &str, folder: bool, listed: bool) -> Result<bool> {
        let key = portable::folded(path);
        let reason = match self.known.get_mut(&key) {
            None => {
                self.known.insert(key, ClaimedPath { path: path.to_owned(), folder, listed });
                return Ok(true);
            }
            Some(known) if known.path != path && known.path.to_lowercase() == path.to_lowercase() => {
                format!("differs from {} only in case", quoted(&known.path))
            }
            Some(known) if known.path != path => {
                format!("has the same name as {} on some systems", quoted(&known.path))
            }
            Some(known) if known.folder != folder => "is both a file and a folder".to_owned(),
            Some(known) if folder && !(known.listed && listed) => {
                known.listed |= listed;
                return Ok(false);
            }
            Some(_) => "appears twice".to_owned(),
        };
        Err(self.refused(path, reason, "remove one of them"))
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
    fn file(&mut self, parts: &[&str], content: &mut dyn Read, executable: bool) -> Result<u64, Failure> {
        let path = parts.join("/");
        if executable {
            self.executables.push(path.clone());
        }
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
                    format!("the entry {} is larger than {} bytes", quoted(path), self.limits.file_bytes);
                return Err(self.over_limit(message, "a pack holds prompts: remove large files").into());
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
        let message = format!("is larger than {} bytes", self.limits.total_bytes);
        self.over_limit(message, "a pack holds prompts: remove large files")
    }

    fn write_error(&self, path: &str, error: &io::Error) -> Error {
        // What was claimed is new by name; that the system knows it nevertheless means that it spells names its own way.
        if error.kind() == io::ErrorKind::AlreadyExists {
            let reason = "has the same name as another entry on this file system";
            return self.refused(path, reason, "remove one of them");
        }
        files::write_error(&format!("{}: {}", self.name, quoted(path)), error)
    }

    #[cfg(not(feature = "packs"))]
    fn unpack_archive(&mut self, _: &Path) -> Result<()> {
        let error = Error::missing_feature(ErrorKind::Pack, "read archives", "packs");
        Err(error.map(|finding| finding.file(self.name)))
    }

    #[cfg(feature = "packs")]
    fn unpack_archive(&mut self, from: &Path) -> Result<()> {
        let unreadable = |error: io::Error| files::io_error(self.name, &error);
        let mut file = File::open(from).map_err(unreadable)?;
        let mut head = Vec::new();
        (&mut file).take(512).read_to_end(&mut head).map_err(unreadable)?;
        let size = file.seek(SeekFrom::End(0)).map_err(unreadable)?;
        file.rewind().map_err(unreadable)?;
        if size > self.limits.total_bytes {
            let message =
                format!("the archive has {size} bytes, but the limit is {}", self.limits.total_bytes);
            return Err(self.over_limit(message, "a pack holds prompts: remove large files"));
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

    /// Makes the folders durable and finds the manifest.
    fn finish(self) -> Result<Unpacked> {
        let sync = |folder: &Path| files::sync_folder(folder);
        for known in self.known.values().filter(|known| known.folder) {
            sync(&self.into.join(&known.path)).map_err(|error| self.write_error(&known.path, &error))?;
        }
        sync(self.into).map_err(|error| self.write_error(".", &error))?;
        let root = self.root()?;
        let skipped = self.skipped.into_iter().collect();
        let below =
            root.strip_prefix(self.into).map(|below| format!("{}/", below.display())).unwrap_or_default();
        let executables =
            self.executables.iter().map(|path| path.strip_prefix(&below).unwrap_or(path).to_owned());
        let mut executables: Vec<String> = executables.collect();
        executables.sort_unstable();
        Ok(Unpacked { root, files: self.files, bytes: self.bytes, skipped, executables })
    }

    fn is_file(&self, path: &str) -> bool {
        self.known.get(&portable::folded(path)).is_some_and(|known| !known.folder && known.path == path)
    }

    fn root(&self) -> Result<PathBuf> {
        const MANIFEST: &str = "pack.json";
        let mut top = self.known.values().filter(|known| !known.path.contains('/'));
        let only = match (top.next(), top.next()) {
            (Some(only), None) => Some(&only.path),
            _ => None,
        };
        for file in [MANIFEST, SKILL_FILE] {
            if self.is_file(file) {
                return Ok(self.into.to_owned());
            }
            if let Some(only) = only.filter(|only| self.is_file(&format!("{only}/{file}"))) {
                return Ok(self.into.join(only));
            }
        }
        let message = if self.known.is_empty() { "is empty" } else { "has no pack.json" };
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
                "found {}: pack.json must be at the top, or in the only folder at the top",
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
    Reported(Error),
    Read(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Reported(error)
    }
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
        Some(what) => format!("is {what}, which Cuebook cannot unpack"),
        None if head.is_empty() => "is an empty file".into(),
        None => "is not an archive".into(),
    }
}

/// Makes one folder that everybody may read.
fn make_folder(path: &Path) -> io::Result<()> {
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only on Unix it gets a mode"))]
    let mut builder = fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o755);
    builder.create(path)
}

/// Makes a file that was not there, readable for everyone and executable for no one.
fn make_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
    options.open(path)
}
