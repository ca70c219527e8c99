//! The engine's way to the file system: bounded reads, atomic writes, locks, and stamps that tell whether a file changed.
//!
//! A file that several processes change is written by [`update`] or its [`Lock`], and a new one by [`write_atomic`], so that a
//! reader sees the old file or the new one and two writers lose nothing. Everything that Cuebook reads goes through
//! [`read_text`] and its kin, so that no file is read without a limit and nothing that is no file (a pipe, a device) keeps
//! a command waiting. Names in errors are relative to the project's root where they can be.

mod absent;
mod buffers;
mod inside;
mod stamp;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, did_you_mean, nearest};
use crate::source::Source;

#[doc(hidden)]
pub use absent::{absolute, is_absent, names_in};
#[doc(hidden)]
pub use buffers::unsaved_in;
pub use buffers::{Buffers, has_unsaved, is_unsaved};
pub use inside::{open_beneath, read_bytes_inside, read_text_inside, stays_inside};
pub use stamp::Stamp;

/// A path as people read it: relative to the root if it lies below, with `/` between the parts.
pub fn display_name(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path);
    let text = relative.to_string_lossy();
    // Elsewhere a backslash is a letter like any other.
    let text = if cfg!(windows) { text.replace('\\', "/") } else { text.into_owned() };
    if text.is_empty() { ".".into() } else { text }
}

/// Turns what the file system said into an error that names the file and the way out.
pub fn io_error(name: &str, error: &io::Error) -> Error {
    // `io::ErrorKind` has no stable name for a circle of links yet, so the system's number decides.
    #[cfg(unix)]
    if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) {
        let diagnostic = Diagnostic::new(Code::Unreadable, "symbolic links form a cycle").file(name);
        let hint = "replace one of the links with the file";
        return Error::new(ErrorKind::Io, diagnostic.hint(hint));
    }
    if let Some(closed) = error.get_ref().and_then(|inner| inner.downcast_ref::<Closed>()) {
        return folder_error(&closed.name(name), error);
    }
    let (message, hint) = match error.kind() {
        io::ErrorKind::NotFound if error.get_ref().is_some_and(|inner| inner.is::<BrokenLink>()) => {
            (error.to_string(), Some("replace the link with the file or folder".to_owned()))
        }
        io::ErrorKind::NotFound => ("the file does not exist".to_owned(), with_slashes(name)),
        io::ErrorKind::PermissionDenied => {
            ("permission denied".to_owned(), Some(format!("make the file readable: chmod u+r {name}")))
        }
        io::ErrorKind::IsADirectory => ("expected a file, found a folder".to_owned(), None),
        io::ErrorKind::NotADirectory => ("expected a folder, found a file".to_owned(), None),
        io::ErrorKind::InvalidInput if error.get_ref().is_some_and(|inner| inner.is::<Special>()) => {
            (error.to_string(), Some("replace it with a plain file".to_owned()))
        }
        _ => (error.to_string(), None),
    };
    let cause = match error.raw_os_error() {
        Some(code) => io::Error::from_raw_os_error(code),
        None => io::Error::new(error.kind(), error.to_string()),
    };
    let diagnostic = Diagnostic::new(Code::Unreadable, message).file(name).hint_opt(hint);
    Error::new(ErrorKind::Io, diagnostic).caused_by(cause)
}

/// The way out for a path that was written for another system.
fn with_slashes(name: &str) -> Option<String> {
    let slashes = name.replace('\\', "/");
    (!cfg!(windows) && slashes != name).then(|| format!("write `/` between folders: {slashes}"))
}

/// The error for a folder that cannot be looked into.
pub fn folder_error(name: &str, error: &io::Error) -> Error {
    if error.kind() != io::ErrorKind::PermissionDenied {
        return io_error(name, error);
    }
    let message = "permission denied to list the folder";
    let hint = format!("make the folder readable: chmod u+rx {name}");
    Error::new(ErrorKind::Io, Diagnostic::new(Code::Unreadable, message).file(name).hint(hint))
}

/// The same, if it may also be one above it that keeps everybody out.
pub fn closed_folder(path: &Path, name: &str, error: &io::Error) -> Error {
    match look(path) {
        Err(error) => io_error(name, &error),
        Ok(_) => folder_error(name, error),
    }
}

/// A folder on the way that may not be read: its content is unknown.
#[derive(Debug)]
struct Closed {
    folder: PathBuf,
    /// How many parts of the path lie below it.
    below: usize,
}

impl Closed {
    /// The folder that keeps a path from being looked at: the last one on the way that can be seen at all.
    fn before(path: &Path) -> Option<Closed> {
        let mut folders = path.ancestors().enumerate().skip(1);
        let (below, folder) = folders.find(|(_, folder)| folder.symlink_metadata().is_ok())?;
        Some(Closed { folder: folder.to_owned(), below })
    }

    /// Its name for people, by that of what lies below it.
    fn name(&self, of: &str) -> String {
        let parts: Vec<&str> = of.split('/').collect();
        match parts.len().checked_sub(self.below).filter(|left| *left > 0) {
            Some(left) => parts[..left].join("/"),
            None => self.folder.to_string_lossy().into_owned(),
        }
    }
}

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "permission denied to list {}", self.folder.display())
    }
}

impl std::error::Error for Closed {}

/// A link without a target.
#[derive(Debug)]
struct BrokenLink;

impl std::fmt::Display for BrokenLink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("broken symbolic link")
    }
}

impl std::error::Error for BrokenLink {}

/// Looks at what a path leads to; `None` if there is nothing. A link that leads nowhere is there, and is not what it seems.
pub fn look(path: &Path) -> io::Result<Option<fs::Metadata>> {
    // What is not there is the usual answer, and has to be a quick one.
    let found = match path.symlink_metadata() {
        Ok(found) => found,
        Err(error) => {
            if is_absent(&error) {
                return Ok(None);
            }
            let denied = error.kind() == io::ErrorKind::PermissionDenied;
            return Err(match Closed::before(path).filter(|_| denied) {
                Some(closed) => io::Error::new(io::ErrorKind::PermissionDenied, closed),
                None => error,
            });
        }
    };
    if !found.is_symlink() {
        return Ok(Some(found));
    }
    match fs::metadata(path) {
        Ok(metadata) => Ok(Some(metadata)),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(None),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(io::Error::new(io::ErrorKind::NotFound, BrokenLink))
        }
        Err(error) => Err(error),
    }
}

/// Something that is neither a file nor a folder.
#[derive(Debug)]
struct Special(&'static str);

impl std::fmt::Display for Special {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected a file, found {}", self.0)
    }
}

impl std::error::Error for Special {}

/// Why what lies at a path is no plain file; `None` if it is one.
pub fn not_a_file(metadata: &fs::Metadata) -> Option<io::Error> {
    if metadata.is_file() {
        return None;
    }
    if metadata.is_dir() {
        return Some(io::ErrorKind::IsADirectory.into());
    }
    #[cfg(unix)]
    let what = {
        use std::os::unix::fs::FileTypeExt;
        let kind = metadata.file_type();
        if kind.is_fifo() {
            "a pipe"
        } else if kind.is_socket() {
            "a socket"
        } else {
            "a device"
        }
    };
    #[cfg(not(unix))]
    let what = "a special file";
    Some(io::Error::new(io::ErrorKind::InvalidInput, Special(what)))
}

/// Opens a plain file and nothing else. The open itself does not wait: that of a pipe without a writer would, for ever.
fn open_plain(path: &Path) -> io::Result<(File, fs::Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = match options.open(path) {
        Ok(file) => file,
        // A socket cannot be opened at all; what it is says more than that.
        Err(error) => return Err(fs::metadata(path).ok().and_then(|m| not_a_file(&m)).unwrap_or(error)),
    };
    let metadata = file.metadata()?;
    match not_a_file(&metadata) {
        Some(error) => Err(error),
        None => Ok((file, metadata)),
    }
}

/// Reads a file whole, unless it is larger than the limit.
pub fn read_bytes(path: &Path, name: &str, limit: u64) -> Result<Vec<u8>> {
    if let Some(text) = buffers::unsaved(path, name, limit) {
        return text;
    }
    let (file, metadata) = open_plain(path).map_err(|error| io_error(name, &error))?;
    read_open(file, &metadata, name, limit)
}

/// Reads input of the command line, which may be a pipe as well: `--vars <(make-variables)`.
pub fn read_input(path: &Path, name: &str, limit: u64) -> Result<Arc<Source>> {
    let file = File::open(path).map_err(|error| io_error(name, &error))?;
    let metadata = file.metadata().map_err(|error| io_error(name, &error))?;
    if metadata.is_dir() {
        return Err(io_error(name, &io::ErrorKind::IsADirectory.into()));
    }
    source_from_bytes(read_open(file, &metadata, name, limit)?, name)
}

fn read_open(file: File, metadata: &fs::Metadata, name: &str, limit: u64) -> Result<Vec<u8>> {
    if metadata.len() > limit {
        return Err(too_large(name, metadata.len(), limit));
    }
    let mut bytes = Vec::with_capacity(metadata.len() as usize);
    // The size is only what the file claims (a pipe or a growing log claims less), so the limit is kept here as well.
    let read =
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(|error| io_error(name, &error))?;
    if read as u64 > limit {
        return Err(too_large(name, read as u64, limit));
    }
    Ok(bytes)
}

fn too_large(name: &str, size: u64, limit: u64) -> Error {
    let message = format!("the file has {size} bytes, but the limit is {limit}");
    let hint = Hint::run(
        "if you need a file of this size, raise `limits.file_size` in cuebook.toml, and grant it",
        "cuebook allow",
    );
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
                    .label("not UTF-8 from here")
                    .hint(hint);
            Err(Error::new(ErrorKind::PromptRead, diagnostic))
        }
    }
}

/// The error for a path that was given and leads to nothing, with similar names beside it.
pub fn not_there(path: &Path, name: &str) -> Error {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let wanted = path.file_name().unwrap_or_default().to_string_lossy();
    // This is for a hint: a folder that cannot be read offers none.
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let beside: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    let hint = if let Some(hint) = with_slashes(name) {
        hint
    } else if !folder.is_dir() {
        format!(
            "the folder {} does not exist either; paths are relative to the current folder",
            folder.display()
        )
    } else {
        let near = nearest(&wanted, beside.iter().map(String::as_str));
        let near: Vec<String> =
            near.iter().map(|file| path.with_file_name(file).display().to_string()).collect();
        did_you_mean(&near).unwrap_or_else(|| "paths are relative to the current folder".to_owned())
    };
    let diagnostic = Diagnostic::new(Code::Unreadable, "no such file or folder");
    Error::new(ErrorKind::Io, diagnostic.file(name).hint(hint))
}

/// Writes a file whole: beside its target, synced, then renamed over it. The parent folder is made if need be. A file that
/// several processes change is written with [`Lock::write`] instead.
pub fn write_atomic(path: &Path, name: &str, bytes: &[u8]) -> Result<()> {
    write_whole(path, &temporary_beside(path), bytes, false).map_err(|error| write_error(name, &error))
}

/// An error where a path holds something other than a plain file: writing would replace or follow a pipe, a device or a link,
/// as root even `/dev/null`. Every file that Cuebook writes is checked here.
pub fn plain_target(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Ok(found) if found.is_symlink() => {
            Err(io::Error::new(io::ErrorKind::InvalidInput, Special("a link")))
        }
        Ok(found) => not_a_file(&found).map_or(Ok(()), Err),
        // What is missing can be made. What cannot be seen fails below, with the reason.
        Err(_) => Ok(()),
    }
}

fn write_whole(path: &Path, temporary: &Path, bytes: &[u8], private: bool) -> io::Result<()> {
    plain_target(path)?;
    // A bare name has an empty parent, which no system can open.
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(parent)?;
    let written = (|| {
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        if private {
            std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        }
        #[cfg(not(unix))]
        let _ = private;
        let mut file = options.open(temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        drop(file);
        fs::rename(temporary, path)
    })();
    if written.is_err() {
        // The write has failed already; that the leftover cannot be removed either would hide the reason.
        let _ = fs::remove_file(temporary);
    }
    written?;
    sync_folder(parent)
}

/// The error for a file or folder that could not be written.
pub fn write_error(name: &str, error: &io::Error) -> Error {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Some(
            Hint::command_line("make the folder writable, or choose another project with --root")
                .for_programs("make the folder writable, or choose another project"),
        ),
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            Some("a file is where a folder is needed: move it away".into())
        }
        io::ErrorKind::IsADirectory => Some("name a file, not a folder".into()),
        io::ErrorKind::InvalidInput if error.get_ref().is_some_and(|inner| inner.is::<Special>()) => {
            Some("Cuebook writes only plain files: choose another path, or remove the special file".into())
        }
        io::ErrorKind::StorageFull => Some("free some disk space and try again; nothing was changed".into()),
        _ => None,
    };
    let diagnostic = Diagnostic::new(Code::WriteFailed, format!("cannot write the file: {error}"));
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
    guarded: PathBuf,
}

impl Lock {
    /// Waits for the lock that guards the given file or folder, and takes it.
    pub fn acquire(guarded: &Path, name: &str) -> Result<Lock> {
        let lock = || -> io::Result<File> {
            let parent = guarded.parent().unwrap_or(Path::new("."));
            fs::create_dir_all(parent)?;
            let file_name = guarded.file_name().unwrap_or_default().to_string_lossy();
            let path = parent.join(format!(".{file_name}.lock"));
            let mut options = OpenOptions::new();
            options.create(true).truncate(false).write(true);
            // Opening a pipe would wait for a reader, and a link would make a file elsewhere.
            #[cfg(unix)]
            {
                use std::os::unix::fs::OpenOptionsExt;
                let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW;
                options.custom_flags(flags.bits().cast_signed());
            }
            let file = options.open(path)?;
            file.lock()?;
            Ok(file)
        };
        let guarded = guarded.to_owned();
        lock().map(|file| Lock { _file: file, guarded }).map_err(|error| write_error(name, &error))
    }

    /// Writes the guarded file whole. No other process writes it meanwhile, so the file beside it has one name for all: what a
    /// process that died left there is written over by the next one, instead of staying for ever.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write_with(name, bytes, false)
    }

    /// The same for a file that only its owner may read.
    pub fn write_private(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.write_with(name, bytes, true)
    }

    fn write_with(&self, name: &str, bytes: &[u8], private: bool) -> Result<()> {
        let file_name = self.guarded.file_name().unwrap_or_default().to_string_lossy();
        let temporary = self.guarded.with_file_name(format!(".{file_name}.tmp"));
        match fs::remove_file(&temporary) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(write_error(name, &error)),
            _ => {}
        }
        write_whole(&self.guarded, &temporary, bytes, private).map_err(|error| write_error(name, &error))
    }
}

/// Changes a file that several processes write: takes its lock, shows the text as it is now (`None` if there is no file)
/// and writes what comes back. If nothing comes back, or an error does, the file stays as it is.
pub fn update<T>(
    path: &Path,
    name: &str,
    limit: u64,
    change: impl FnOnce(Option<Arc<Source>>) -> Result<(Option<Vec<u8>>, T)>,
) -> Result<T> {
    let lock = Lock::acquire(path, name)?;
    let found = look(path).map_err(|error| io_error(name, &error))?;
    let text = found.map(|_| read_text(path, name, limit)).transpose()?;
    let (bytes, result) = change(text)?;
    if let Some(bytes) = bytes {
        lock.write(name, &bytes)?;
    }
    Ok(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_utf8_is_refused_at_its_first_byte() {
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
        assert_eq!(hint("zebra"), "paths are relative to the current folder");
        assert!(hint("none/x").starts_with("the folder /none does not exist either"));
    }

    #[cfg(unix)]
    #[test]
    fn a_circle_of_links_is_named_as_such() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        std::os::unix::fs::symlink(&b, &a).unwrap();
        std::os::unix::fs::symlink(&a, &b).unwrap();
        let error = read_bytes(&a, "a", 10).unwrap_err();
        assert!(error.to_string().contains("links form a cycle"), "{error}");
    }

    #[test]
    fn a_write_is_complete_and_leaves_no_temporary_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("new/place/file.json");
        write_atomic(&path, "file.json", b"one").unwrap();
        write_atomic(&path, "file.json", b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn leftovers_of_a_dead_process_are_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file.json");
        fs::write(folder.path().join(".file.json.tmp"), "half of a longer te").unwrap();
        Lock::acquire(&path, "file.json").unwrap().write("file.json", b"whole").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"whole");
        let mut names: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort_unstable();
        assert_eq!(names, [".file.json.lock", "file.json"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_a_socket_and_a_device_are_refused_without_waiting() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        for (path, what) in [(&*pipe, "a pipe"), (&*socket, "a socket"), (Path::new("/dev/zero"), "a device")]
        {
            let error = read_bytes(path, "t.md", 10).unwrap_err();
            let wanted = format!("IoError: t.md: expected a file, found {what} [CB110]");
            assert_eq!(error.to_string(), wanted);
        }
    }

    #[cfg(unix)]
    #[test]
    fn only_a_plain_file_is_written_over() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, 0o600.into(), 0)
            .unwrap();
        fs::create_dir(at("folder")).unwrap();
        fs::write(at("file"), "old").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        std::os::unix::fs::symlink("nowhere", at("dangling")).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for name in ["pipe", "folder", "link", "dangling", "socket"] {
            let before = at(name).symlink_metadata().unwrap().file_type();
            let error = write_atomic(&at(name), name, b"new").unwrap_err();
            assert_eq!(
                (error.code(), error.diagnostic().hint.is_some()),
                (Code::WriteFailed, true),
                "{name}"
            );
            let error = Lock::acquire(&at(name), name).unwrap().write(name, b"new").unwrap_err();
            assert_eq!(error.code(), Code::WriteFailed, "{name}");
            assert_eq!(at(name).symlink_metadata().unwrap().file_type(), before, "{name}");
        }
        assert_eq!(fs::read(at("file")).unwrap(), b"old");
        write_atomic(&at("file"), "file", b"new").unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_link_out_of_a_folder_is_refused_and_one_inside_is_followed() {
        let folder = tempfile::tempdir().unwrap();
        let pack = folder.path().join("pack");
        fs::create_dir(&pack).unwrap();
        fs::write(folder.path().join("secret"), "secret").unwrap();
        fs::write(pack.join("own"), "own").unwrap();
        std::os::unix::fs::symlink("../secret", pack.join("out")).unwrap();
        std::os::unix::fs::symlink("own", pack.join("in")).unwrap();
        assert_eq!(read_text_inside(&pack, &pack.join("in"), "in", 10).unwrap().text(), "own");
        let error = read_text_inside(&pack, &pack.join("out"), "out", 10).unwrap_err();
        assert_eq!(
            error.to_string(),
            "IoError: out: the symbolic link leads out of the project or pack [CB110]"
        );
    }
}
