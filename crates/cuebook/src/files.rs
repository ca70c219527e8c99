//! The engine's way to the file system: bounded reads, atomic writes, locks, and stamps that tell whether a file changed.
//!
//! Everything that Cuebook writes goes through [`write_atomic`] under a [`Lock`], so that a reader sees the old file or
//! the new one and two writers lose nothing. Everything that it reads goes through [`read_text`] or [`read_bytes`], so
//! that no file is read without a limit. Names in errors are relative to the project's root where they can be.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::source::Source;

/// A path as people read it: relative to the root if it lies below, with `/` between the parts.
pub fn display_name(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path);
    let text = relative.to_string_lossy().replace('\\', "/");
    if text.is_empty() { ".".into() } else { text }
}

/// Turns what the file system said into an error that names the file and the way out.
pub fn io_error(name: &str, error: &io::Error) -> Error {
    // `io::ErrorKind` has no stable name for a circle of links yet, so the system's number decides.
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        let diagnostic = Diagnostic::new(Code::Unreadable, "symbolic links lead in a circle").file(name);
        let hint = "replace one of the links with the file that was meant";
        return Error::new(ErrorKind::Io, diagnostic.hint(hint));
    }
    let (message, hint) = match error.kind() {
        io::ErrorKind::NotFound => ("the file does not exist".to_owned(), None),
        io::ErrorKind::PermissionDenied => (
            "the file may not be read".to_owned(),
            Some(format!("give yourself the right to read it: chmod u+r {name}")),
        ),
        io::ErrorKind::IsADirectory => ("a file was expected, and this is a folder".to_owned(), None),
        _ => (error.to_string(), None),
    };
    Error::new(ErrorKind::Io, Diagnostic::new(Code::Unreadable, message).file(name).hint_opt(hint))
}

/// Reads a file whole, unless it is larger than the limit.
pub fn read_bytes(path: &Path, name: &str, limit: u64) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|error| io_error(name, &error))?;
    let metadata = file.metadata().map_err(|error| io_error(name, &error))?;
    if metadata.is_dir() {
        return Err(io_error(name, &io::ErrorKind::IsADirectory.into()));
    }
    if metadata.len() > limit {
        return Err(too_large(name, metadata.len(), limit));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    // The size is only what the file claims (a pipe or a growing log claims less), so the limit is kept here as well.
    let read = file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| io_error(name, &error))?;
    if read as u64 > limit {
        return Err(too_large(name, read as u64, limit));
    }
    Ok(bytes)
}

fn too_large(name: &str, size: u64, limit: u64) -> Error {
    let message = format!("the file has {size} bytes, and the limit is {limit}");
    let hint = "raise `limits.file_size` in cuebook.toml if the file is meant to be this large";
    Error::new(ErrorKind::Limit, Diagnostic::new(Code::FileTooLarge, message).file(name).hint(hint))
}

/// Reads a text file into a [`Source`].
pub fn read_text(path: &Path, name: &str, limit: u64) -> Result<Arc<Source>> {
    let bytes = read_bytes(path, name, limit)?;
    source_from_bytes(bytes, name)
}

/// Makes a source of bytes, or says where they stop being UTF-8.
pub fn source_from_bytes(bytes: Vec<u8>, name: &str) -> Result<Arc<Source>> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(Source::new(name, text)),
        Err(error) => {
            let valid = error.utf8_error().valid_up_to();
            let bytes = error.into_bytes();
            let wrong = bytes[valid];
            let hint = if bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]) {
                "the file looks like UTF-16: save it as UTF-8"
            } else {
                "save the file as UTF-8"
            };
            let source = Source::new(name, String::from_utf8_lossy(&bytes).into_owned());
            // Everything before the wrong byte is the same in the lossy text, bar a byte-order mark and line ends.
            let prefix = Source::new(name, String::from_utf8_lossy(&bytes[..valid]).into_owned());
            let at = prefix.text().len();
            let diagnostic =
                Diagnostic::new(Code::NotUtf8, format!("byte {valid} (0x{wrong:02x}) is not UTF-8"))
                    .at(source.place(at..at + '\u{fffd}'.len_utf8()))
                    .label("the text stops being UTF-8 here")
                    .hint(hint);
            Err(Error::new(ErrorKind::PromptRead, diagnostic))
        }
    }
}

/// The error for a path that somebody gave and that leads to nothing, with what lies beside it and is spelt alike.
pub fn not_there(path: &Path, name: &str) -> Error {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    // This is for a hint: a folder that cannot be read offers none.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let beside: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let hint = if !folder.is_dir() {
        format!(
            "there is no folder {} either; paths are relative to the folder that you are in",
            folder.display()
        )
    } else {
        let near = nearest(&wanted, beside.iter().map(String::as_str));
        let near: Vec<String> =
            near.iter().map(|file| path.with_file_name(file).display().to_string()).collect();
        did_you_mean(&near).unwrap_or_else(|| "paths are relative to the folder that you are in".to_owned())
    };
    let diagnostic = Diagnostic::new(Code::Unreadable, "there is no such file or folder");
    Error::new(ErrorKind::Io, diagnostic.file(name).hint(hint))
}

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stamp {
    size: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    identity: (u64, u64, i64, i64),
    /// Taken so shortly after a change that another change could carry the same time.
    racy: bool,
}

/// File systems count time in ticks; two writes in one tick cannot be told apart by their times.
const TICK: Duration = Duration::from_millis(20);

impl Stamp {
    /// The stamp of what a path leads to now; `None` if there is nothing.
    pub fn of(path: &Path) -> Option<Stamp> {
        fs::metadata(path).ok().map(|metadata| Stamp::from_metadata(&metadata))
    }

    fn from_metadata(metadata: &fs::Metadata) -> Stamp {
        let modified = metadata.modified().ok();
        let age = modified.map(|modified| SystemTime::now().duration_since(modified).unwrap_or_default());
        Stamp {
            size: metadata.len(),
            modified,
            #[cfg(unix)]
            identity: {
                use std::os::unix::fs::MetadataExt;
                (metadata.dev(), metadata.ino(), metadata.ctime(), metadata.ctime_nsec())
            },
            racy: age.is_none_or(|age| age < TICK),
        }
    }

    /// Whether a file with this stamp is certainly in the state that `earlier` was taken of.
    pub fn proves_unchanged(now: &Option<Stamp>, earlier: &Option<Stamp>) -> bool {
        match (now, earlier) {
            (None, None) => true,
            (Some(now), Some(earlier)) => {
                !earlier.racy
                    && Stamp { racy: false, ..now.clone() } == Stamp { racy: false, ..earlier.clone() }
            }
            _ => false,
        }
    }
}

/// Writes a file whole: beside its target, synced, then renamed over it. The parent folder is made if need be.
pub fn write_atomic(path: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    write_whole(path, bytes).map_err(|error| write_error(name, &error))
}

fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let parent = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    let temporary = temporary_beside(path);
    let written = (|| {
        let mut file = OpenOptions::new().write(true).create_new(true).open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // The write has failed already; that the leftover cannot be removed either would hide the reason.
        let _ = fs::remove_file(&temporary);
    }
    written?;
    sync_folder(parent)
}

/// The error for a file or folder that could not be written.
pub fn write_error(name: &str, error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            Some("make the folder writable, or choose another project with --root".to_owned())
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            Some("a file stands where a folder is needed: move it away".to_owned())
        }
        io::ErrorKind::StorageFull => {
            Some("make room on the disk and try again; nothing was changed".to_owned())
        }
        _ => None,
    };
    let diagnostic = Diagnostic::new(Code::WriteFailed, format!("could not be written: {error}"));
    Error::new(ErrorKind::Io, diagnostic.file(name).hint_opt(hint))
}

/// A name beside the target that no other process uses. Readers and scans skip names with a leading dot.
pub fn temporary_beside(path: &Path) -> PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    let count = COUNTER.fetch_add(1, Ordering::Relaxed);
    let nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{}-{count}-{nanos:x}.tmp", std::process::id()))
}

/// Makes a rename in a folder durable.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    #[cfg(unix)]
    File::open(folder)?.sync_all()?;
    #[cfg(not(unix))]
    let _ = folder;
    Ok(())
}

/// An exclusive lock between processes, held until it is dropped. The system frees it when a process dies.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits for the lock that guards the given file or folder, and takes it.
    pub fn acquire(guarded: &Path, name: &str) -> Result<Lock> {
        let lock = || -> io::Result<File> {
            let parent = guarded.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(parent)?;
            let file_name = guarded.file_name().unwrap_or_default().to_string_lossy();
            let path = parent.join(format!(".{file_name}.lock"));
            let file = OpenOptions::new().create(true).truncate(false).write(true).open(path)?;
            file.lock()?;
            Ok(file)
        };
        lock().map(|file| Lock { _file: file }).map_err(|error| write_error(name, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_that_is_not_utf8_is_refused_with_the_place_of_the_first_wrong_byte() {
        let error = source_from_bytes(b"one\ntwo \xff three".to_vec(), "t.md").unwrap_err();
        assert_eq!(error.code(), Code::NotUtf8);
        assert_eq!(error.to_string(), "PromptReadError: t.md:2:5: byte 8 (0xff) is not UTF-8 [CB113]");
    }

    #[test]
    fn utf16_is_recognised() {
        let error = source_from_bytes(b"\xff\xfeh\0i\0".to_vec(), "t.md").unwrap_err();
        assert!(error.diagnostic().hint.as_ref().unwrap().contains("UTF-16"));
    }

    #[test]
    fn a_file_over_the_limit_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("large.md");
        File::create(&path).unwrap().set_len(200 << 20).unwrap();
        let error = read_bytes(&path, "large.md", 1 << 20).unwrap_err();
        assert_eq!(error.code(), Code::FileTooLarge);
        assert_eq!(error.kind(), ErrorKind::Limit);
    }

    #[test]
    fn a_path_that_leads_to_nothing_comes_with_what_lies_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("inputs.json"), "{}").unwrap();
        let hint = |path: &str| {
            let error = not_there(&folder.path().join(path), path);
            error.diagnostic().hint.clone().unwrap().replace(&*folder.path().to_string_lossy(), "")
        };
        assert_eq!(hint("input.json"), "did you mean `/inputs.json`?");
        assert_eq!(hint("zebra"), "paths are relative to the folder that you are in");
        assert!(hint("none/x").starts_with("there is no folder /none either"));
    }

    #[cfg(unix)]
    #[test]
    fn a_circle_of_links_is_named_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        std::os::unix::fs::symlink(&b, &a).unwrap();
        std::os::unix::fs::symlink(&a, &b).unwrap();
        let error = read_bytes(&a, "a", 10).unwrap_err();
        assert!(error.to_string().contains("links lead in a circle"), "{error}");
    }

    #[test]
    fn a_written_file_has_all_its_bytes_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/place/file.json");
        write_atomic(&path, "file.json", b"one").unwrap();
        write_atomic(&path, "file.json", b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn a_stamp_changes_with_the_file_and_a_fresh_one_proves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        assert!(Stamp::proves_unchanged(&Stamp::of(&path), &None));
        fs::write(&path, "one").unwrap();
        let fresh = Stamp::of(&path);
        assert!(!Stamp::proves_unchanged(&Stamp::of(&path), &fresh), "just written: cannot be sure");
        std::thread::sleep(TICK * 2);
        let settled = Stamp::of(&path);
        assert!(Stamp::proves_unchanged(&Stamp::of(&path), &settled));
        fs::write(&path, "two").unwrap();
        assert!(!Stamp::proves_unchanged(&Stamp::of(&path), &settled));
    }
}
