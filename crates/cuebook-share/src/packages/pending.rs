//! The note of a change that is being made.

use std::path::PathBuf;

use cuebook::trust::{ContentDigest, PackFile};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Hint, Result, files};
use serde_json::{Value as Json, json};

use super::{content, step};
use crate::lock::{LOCK_FILE, MAX_BYTES, PackageKind, is_name, text_of};

const NAME: &str = "user_data/.packages.pending";

/// A change of one package and the lockfile.
pub(super) struct Pending {
    pub kind: PackageKind,
    pub name: String,
    /// The files that the package will have; none if it is removed.
    pub files: Option<ContentDigest>,
    /// The lockfile as it was.
    pub before: Option<String>,
    /// The lockfile as it will be.
    pub after: String,
}

impl Pending {
    pub fn write(&self, book: &Book) -> Result<()> {
        let files: Option<serde_json::Map<String, Json>> = self
            .files
            .as_ref()
            .map(|files| files.files().map(|file| (file.path, Json::from(file.sha256))).collect());
        let note = json!({
            "kind": self.kind.as_str(), "name": self.name, "files": files, "before": self.before, "after": self.after,
        });
        step("begun");
        files::write_atomic(&path(book), NAME, note.to_string().as_bytes())?;
        step("noted");
        Ok(())
    }

    fn read(text: &str) -> Option<Pending> {
        let note: Json = serde_json::from_str(text).ok()?;
        let files = match &note["files"] {
            Json::Null => None,
            files => Some(
                files
                    .as_object()?
                    .iter()
                    .map(|(path, hash)| {
                        Some(PackFile { path: path.clone(), sha256: hash.as_str()?.to_owned() })
                    })
                    .collect::<Option<ContentDigest>>()?,
            ),
        };
        let kind = PackageKind::read(note["kind"].as_str()?)?;
        Some(Pending {
            kind,
            name: note["name"].as_str().filter(|name| is_name(name))?.to_owned(),
            files,
            before: note["before"].as_str().map(str::to_owned),
            after: note["after"].as_str()?.to_owned(),
        })
    }
}

fn path(book: &Book) -> PathBuf {
    book.library().root().join(NAME)
}

/// Whether a process is in the middle of a change, or died there.
pub(super) fn is_there(book: &Book) -> bool {
    path(book).symlink_metadata().is_ok()
}

/// Finishes a change: the lockfile becomes the new one if the package is.
pub(super) fn finish(book: &Book) -> Result<()> {
    if !is_there(book) {
        return Ok(());
    }
    let (root, path) = (book.library().root(), path(book));
    let text = files::read_text_inside(root, &path, NAME, 4 * MAX_BYTES)?;
    let Some(pending) = Pending::read(text.text()) else {
        let diagnostic =
            Diagnostic::new(Code::BadPackageLock, "the note of an interrupted change is damaged");
        let hint = Hint::run(
            "delete the file, then compare the packages with cuebook.lock",
            "cuebook sync --dry-run",
        );
        return Err(Error::new(ErrorKind::Pack, diagnostic.file(NAME).hint(hint)));
    };
    let is_new = content(book, pending.kind, &pending.name)? == pending.files;
    let now = text_of(root)?.map(|text| text.text().to_owned());
    // Another program may have changed the lockfile meanwhile, such as `git pull`: its version stays.
    if is_new && now == pending.before {
        files::write_atomic(&root.join(LOCK_FILE), LOCK_FILE, pending.after.as_bytes())?;
        step("locked");
    }
    std::fs::remove_file(&path).map_err(|error| files::write_error(NAME, &error))?;
    step("finished");
    Ok(())
}
