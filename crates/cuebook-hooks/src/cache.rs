//! Keeps the worker's own text compiled, so that not every first call waits for that.
//!
//! Compiling takes a third of the time in which a worker becomes ready. What is kept is the byte code that an interpreter made
//! of our text before it had seen any script, in a folder that only the user can write to. It is tried and nothing more: if
//! it is damaged or of another Python, the worker does not become ready, and the next is started from the text.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use crate::python::Interpreter;

/// More than byte code of our text ever has, in hexadecimal digits.
const LARGEST: u64 = 100 << 10;

/// A folder of byte code.
#[derive(Debug, Clone)]
pub struct Cache {
    folder: PathBuf,
}

impl Cache {
    /// The byte code in a folder, which is made when it is needed.
    pub fn new(folder: PathBuf) -> Cache {
        Cache { folder }
    }

    /// The byte code of this text for this interpreter, in hexadecimal digits.
    pub fn get(&self, interpreter: &Interpreter, text: &str) -> Option<String> {
        let path = self.path(interpreter, text)?;
        if !is_ours(&self.folder) || !is_ours(&path) || fs::metadata(&path).ok()?.len() > LARGEST {
            return None;
        }
        let content = fs::read_to_string(&path).ok()?;
        let (sum, code) = content.split_once('\n')?;
        (sum == checksum(code) && is_hexadecimal(code)).then(|| code.to_owned())
    }

    /// Keeps byte code. That this fails is no reason for anything else to.
    pub fn put(&self, interpreter: &Interpreter, text: &str, code: &str) {
        let Some(path) = self.path(interpreter, text) else { return };
        if !is_hexadecimal(code) || code.len() as u64 > LARGEST / 2 {
            return;
        }
        let _ = make_folder(&self.folder);
        if !is_ours(&self.folder) {
            return;
        }
        // Others may do the same at the same time: whoever is last wins, and nobody sees half a file.
        let draft = path.with_extension(format!("{}", std::process::id()));
        let written = fs::write(&draft, format!("{}\n{code}", checksum(code)));
        if written.and_then(|()| fs::rename(&draft, &path)).is_err() {
            let _ = fs::remove_file(&draft);
        }
    }

    /// Forgets what did not work.
    pub fn remove(&self, interpreter: &Interpreter, text: &str) {
        if let Some(path) = self.path(interpreter, text) {
            let _ = fs::remove_file(path);
        }
    }

    /// The name says everything that byte code depends on.
    fn path(&self, interpreter: &Interpreter, text: &str) -> Option<PathBuf> {
        let program = fs::metadata(&interpreter.program).ok()?;
        let mut hasher = DefaultHasher::new();
        (text, &interpreter.program, interpreter.version).hash(&mut hasher);
        (program.len(), program.modified().ok()).hash(&mut hasher);
        let (major, minor) = interpreter.version;
        Some(self.folder.join(format!("worker-{major}.{minor}-{:016x}", hasher.finish())))
    }
}

fn checksum(code: &str) -> String {
    let mut hasher = DefaultHasher::new();
    code.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn is_hexadecimal(code: &str) -> bool {
    !code.is_empty() && code.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn make_folder(folder: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)
}

/// Whether nobody but the user can have written it.
fn is_ours(path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(path).is_ok_and(|metadata| {
        !metadata.is_symlink()
            && metadata.uid() == rustix::process::geteuid().as_raw()
            && metadata.mode() & 0o022 == 0
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn interpreter() -> Interpreter {
        let program = std::env::current_exe().unwrap();
        Interpreter { program, version: (3, 12), readable: Vec::new() }
    }

    #[test]
    fn what_was_kept_is_found_for_the_same_text_and_interpreter_only() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().join("made/when/needed"));
        let interpreter = interpreter();
        assert_eq!(cache.get(&interpreter, "text"), None);
        cache.put(&interpreter, "text", "00ff");
        assert_eq!(cache.get(&interpreter, "text").as_deref(), Some("00ff"));
        assert_eq!(cache.get(&interpreter, "other text"), None);
        let other = Interpreter { version: (3, 13), ..interpreter.clone() };
        assert_eq!(cache.get(&other, "text"), None);
        cache.remove(&interpreter, "text");
        assert_eq!(cache.get(&interpreter, "text"), None);
    }

    #[test]
    fn what_is_damaged_or_what_others_can_write_is_not_used() {
        let folder = tempfile::tempdir().unwrap();
        let cache = Cache::new(folder.path().to_owned());
        let interpreter = interpreter();
        cache.put(&interpreter, "text", "not digits");
        assert_eq!(cache.get(&interpreter, "text"), None);
        cache.put(&interpreter, "text", "00ff");
        let path = cache.path(&interpreter, "text").unwrap();
        let content = fs::read_to_string(&path).unwrap();
        fs::write(&path, content.replace("00ff", "00fe")).unwrap();
        assert_eq!(cache.get(&interpreter, "text"), None);
        fs::write(&path, &content).unwrap();
        assert!(cache.get(&interpreter, "text").is_some());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        assert_eq!(cache.get(&interpreter, "text"), None);
    }
}
