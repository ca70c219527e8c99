//! The log key: the user's secret that authenticates the logs and rows of threads.
//!
//! The key lies in the user's own space, in a file that only the user can open, and never in a project or in a store. Every
//! event's hash and every row's seal is an HMAC with it, so a program that can write to a store but cannot read the key cannot
//! change a log unnoticed. It can still replace a whole store by an older copy of it.

use std::fmt;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use cuebook_library::items::Spaces;
use cuebook_text::files::{self, Lock};
use cuebook_text::sha256::hex;
use cuebook_text::{Code, Diagnostic, Error, ErrorKind, Result};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest, Sha256};

/// The environment variable that names another file with the key.
pub const LOG_KEY: &str = "CUEBOOK_LOG_KEY";
/// The key's file below the user's `.ai`.
const FILE: &str = "config/keys/log.key";
/// The largest file that can be a key.
const LARGEST: u64 = 4096;
const BYTES: usize = 32;

/// The key that authenticates logs.
#[derive(Clone)]
pub struct LogKey {
    bytes: [u8; BYTES],
    id: String,
}

impl fmt::Debug for LogKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogKey").field("id", &self.id).finish_non_exhaustive()
    }
}

impl LogKey {
    /// A key of these bytes.
    pub fn from_bytes(bytes: [u8; BYTES]) -> LogKey {
        let mut hasher = Sha256::new();
        hasher.update(b"cuebook log key\n");
        hasher.update(bytes);
        LogKey { id: hex(&hasher.finalize()[..8]), bytes }
    }

    /// The user's key, which is made if it is missing. `CUEBOOK_LOG_KEY` names another file, which must exist.
    ///
    /// # Errors
    ///
    /// `CB736` if there is no place for it, or the file is not a key that only its user can read.
    pub fn of(spaces: &Spaces) -> Result<LogKey> {
        if let Some(path) = std::env::var_os(LOG_KEY).filter(|path| !path.is_empty()) {
            let name = Path::new(&path).display().to_string();
            return read(Path::new(&path), &name)?
                .ok_or_else(|| wrong(&name, "there is no such file").with("variable", LOG_KEY));
        }
        let Some(folder) = spaces.user_folder() else {
            let message = "the user space is missing, so there is no log key";
            let hint = format!(
                "set HOME, or set USER_SPACE to the directory of your .ai, or set {LOG_KEY} to a file"
            );
            let diagnostic = Diagnostic::new(Code::BadLogKey, message).hint(hint);
            return Err(Error::new(ErrorKind::Config, diagnostic));
        };
        let path = folder.join(FILE);
        let name = path.display().to_string();
        match read(&path, &name)? {
            Some(key) => Ok(key),
            None => create(&path, &name),
        }
    }

    /// No key, for a store in which nothing is and nothing is written.
    #[doc(hidden)]
    pub fn none() -> Result<LogKey> {
        let diagnostic = Diagnostic::new(Code::BadLogKey, "this store is open read-only, without a log key");
        Err(Error::new(ErrorKind::Config, diagnostic))
    }

    /// What identifies the key without revealing it.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Authenticates bytes for one purpose: what is made for one does not fit another.
    pub(crate) fn mac<'b>(&self, purpose: &str, parts: impl IntoIterator<Item = &'b [u8]>) -> String {
        #[expect(clippy::expect_used, reason = "an HMAC takes a key of any length")]
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.bytes).expect("any length is a key");
        mac.update(purpose.as_bytes());
        mac.update(b"\n");
        parts.into_iter().for_each(|part| mac.update(part));
        hex(&mac.finalize().into_bytes())
    }
}

/// The key in a file; `None` if there is no such file.
fn read(path: &Path, name: &str) -> Result<Option<LogKey>> {
    let Some(metadata) = files::look(path).map_err(|error| files::io_error(name, &error))? else {
        return Ok(None);
    };
    #[cfg(unix)]
    if std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o077 != 0 {
        return Err(wrong(name, "other users can read it"));
    }
    #[cfg(not(unix))]
    let _ = metadata;
    let bytes = files::read_bytes(path, name, LARGEST)?;
    let digits = std::str::from_utf8(&bytes).unwrap_or_default().trim();
    let mut key = [0; BYTES];
    let is_hex = digits.len() == 2 * BYTES && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if !is_hex {
        return Err(wrong(name, "it does not hold 64 hexadecimal digits"));
    }
    for (place, pair) in key.iter_mut().zip(digits.as_bytes().chunks(2)) {
        // The digits were checked above.
        *place =
            std::str::from_utf8(pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok()).unwrap_or(0);
    }
    Ok(Some(LogKey::from_bytes(key)))
}

/// Makes a key, unless another process was faster: both then use the same one.
fn create(path: &Path, name: &str) -> Result<LogKey> {
    let failed = |error: &std::io::Error| files::write_error(name, error);
    private_folder(path).map_err(|error| failed(&error))?;
    let _lock = Lock::acquire(path, name)?;
    if let Some(key) = read(path, name)? {
        return Ok(key);
    }
    let mut bytes = [0; BYTES];
    if getrandom::fill(&mut bytes).is_err() {
        return Err(wrong(name, "the system has no random numbers"));
    }
    write_private(path, format!("{}\n", hex(&bytes)).as_bytes()).map_err(|error| failed(&error))?;
    Ok(LogKey::from_bytes(bytes))
}

fn private_folder(path: &Path) -> std::io::Result<()> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn write_private(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let temporary: PathBuf = files::temporary_beside(path);
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = (|| {
        let mut file = options.open(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // That the leftover cannot be removed either would hide the reason.
        let _ = std::fs::remove_file(&temporary);
    }
    written?;
    path.parent().map_or(Ok(()), files::sync_folder)
}

fn wrong(name: &str, why: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::BadLogKey, format!("cannot use the log key: {why}"))
        .file(name)
        .hint(format!(
            "run `chmod 600` on the file, or copy the key from where it was created; {LOG_KEY} names another file"
        ));
    Error::new(ErrorKind::Config, diagnostic)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_creation_of_the_key_agrees() {
        let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let spaces = Spaces::new(project.path(), Some(user.path()));
        let ids: Vec<String> = std::thread::scope(|scope| {
            let one = || LogKey::of(&spaces).unwrap().id().to_owned();
            let all: Vec<_> = (0..8).map(|_| scope.spawn(one)).collect();
            all.into_iter().map(|one| one.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            let file = user.path().join(".ai").join(FILE);
            assert_eq!(std::fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o600);
        }
    }

    #[test]
    fn a_file_that_is_no_private_key_is_refused() {
        let (project, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let spaces = Spaces::new(project.path(), Some(user.path()));
        let file = user.path().join(".ai").join(FILE);
        LogKey::of(&spaces).unwrap();
        std::fs::write(&file, "short\n").unwrap();
        assert_eq!(LogKey::of(&spaces).unwrap_err().code(), Code::BadLogKey);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            std::fs::write(&file, "ab".repeat(32)).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
            assert_eq!(LogKey::of(&spaces).unwrap_err().code(), Code::BadLogKey);
        }
    }
}
