//! Code of the library that may run: read whole, approved, and watched for changes.
//!
//! A pack's code is given out only if the pack is approved with exactly the bytes that are on disk now. Nothing here runs it.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::Library;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files::{self, Stamp};
use crate::hooks::Script;
use crate::source::Place;
use crate::trust::{Approval, hex};

/// Files and folders that are watched for one script. A prompt with more code than this is started afresh for every call.
const MOST_WATCHED: usize = 4096;

/// A Python file that somebody wants to run.
#[derive(Debug, Clone)]
pub(crate) struct ScriptFile {
    /// Where it lies.
    pub(crate) path: PathBuf,
    /// The name that people know it by.
    pub(crate) name: String,
    /// The folder that it belongs to: its prompt's, or its pack's.
    pub(crate) folder: PathBuf,
    /// The pack that it came with.
    pub(crate) pack: Option<String>,
    /// What asks for it, for messages.
    pub(crate) place: Place,
}

/// Scripts that were read, and what they depend on.
#[derive(Debug, Default)]
pub(crate) struct Scripts(Mutex<HashMap<PathBuf, Known>>);

#[derive(Debug)]
struct Known {
    script: Arc<Script>,
    /// Everything whose change makes it another script. A folder's stamp tells of files that come and go.
    watched: Vec<(PathBuf, Option<Stamp>)>,
}

impl Scripts {
    /// The script in a file, as it is now.
    pub(crate) fn get(&self, library: &Library, file: &ScriptFile) -> Result<Arc<Script>> {
        let unchanged = |known: &Known| {
            known.watched.iter().all(|(path, stamp)| Stamp::proves_unchanged(&Stamp::of(path), stamp))
        };
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&file.path)
            && unchanged(known)
        {
            return Ok(known.script.clone());
        }
        drop(known);
        // Stamped before anything is read, so that a change in between is noticed.
        let mut watched = Vec::new();
        let complete = watch(&file.folder, file.pack.is_some(), &mut watched);
        let script = Arc::new(match &file.pack {
            Some(pack) => {
                let approvals = library.approvals_path();
                watched.push((approvals.clone(), Stamp::of(&approvals)));
                approved(library, file, pack)?
            }
            None => own(library, file)?,
        });
        if complete {
            let known = Known { script: script.clone(), watched };
            self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(file.path.clone(), known);
        }
        Ok(script)
    }
}

/// Stamps a folder and what is in it: all of a pack, the code of a prompt. `false` if there is too much of it.
fn watch(folder: &Path, everything: bool, watched: &mut Vec<(PathBuf, Option<Stamp>)>) -> bool {
    watched.push((folder.to_owned(), Stamp::of(folder)));
    // What cannot be listed has no stamp that stays the same, so it is looked at again next time.
    let Ok(entries) = fs::read_dir(folder) else { return false };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with('.') || name == "__pycache__" {
            continue;
        }
        if watched.len() >= MOST_WATCHED {
            return false;
        }
        let path = entry.path();
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            if !watch(&path, everything, watched) {
                return false;
            }
        } else if everything || name.ends_with(".py") {
            let stamp = Stamp::of(&path);
            watched.push((path, stamp));
        }
    }
    true
}

/// Code of the user's own, which needs nobody's approval.
fn own(library: &Library, file: &ScriptFile) -> Result<Script> {
    static VERSION: AtomicU64 = AtomicU64::new(0);
    let source = files::read_text(&file.path, &file.name, library.file_limit()?)?;
    // It is read again only when some code in its folder has changed, and then it is another script.
    let fingerprint = format!("own-{}", VERSION.fetch_add(1, Ordering::Relaxed));
    Ok(Script { source, path: resolved(&file.path), folder: resolved(&file.folder), pack: None, fingerprint })
}

/// Code of a pack, if the pack is approved as it is.
fn approved(library: &Library, file: &ScriptFile, pack: &str) -> Result<Script> {
    let content = library.content(pack)?;
    match library.approval_of(pack, &content)? {
        Approval::Approved { .. } => {}
        approval => return Err(not_approved(file, pack, &approval)),
    }
    let bytes = files::read_bytes(&file.path, &file.name, library.file_limit()?)?;
    let relative = file.path.strip_prefix(&file.folder).unwrap_or(&file.path);
    let relative = relative.to_string_lossy().replace('\\', "/");
    let sha256 = hex(&Sha256::digest(&bytes));
    if !content.files().any(|known| known.path == relative && known.sha256 == sha256) {
        let message = format!("{} changed while it was being looked at", file.name);
        let diagnostic = Diagnostic::new(Code::ApprovalRequired, message).hint("render again");
        return Err(Error::new(ErrorKind::PromptApprovalRequired, diagnostic));
    }
    Ok(Script {
        source: files::source_from_bytes(bytes, &file.name)?,
        path: resolved(&file.path),
        folder: resolved(&file.folder),
        pack: Some(pack.to_owned()),
        fingerprint: content.digest(),
    })
}

/// The path without links: where code is put into a sandbox, links may lead nowhere.
fn resolved(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn not_approved(file: &ScriptFile, pack: &str, approval: &Approval) -> Error {
    let message = match approval {
        Approval::Changed { .. } => format!("the pack `{pack}` has changed since its code was approved"),
        _ => format!("the code of the pack `{pack}` has not been approved"),
    };
    let mut hint = String::new();
    let mut error_fields = Vec::new();
    if let Approval::Changed { added, removed, changed } = approval {
        for (word, files) in [("new", added), ("gone", removed), ("changed", changed)] {
            if !files.is_empty() {
                hint.push_str(&format!("{word}: {}\n", files.join(", ")));
            }
        }
        error_fields =
            vec![("added", added.clone()), ("removed", removed.clone()), ("changed", changed.clone())];
    }
    hint.push_str(&format!("look at it and let it run: cuebook pack approve {pack}"));
    let mut diagnostic = Diagnostic::new(Code::ApprovalRequired, message).at(file.place.clone()).hint(hint);
    if file.place.file() != file.name {
        diagnostic = diagnostic.label(format!("needs {}", file.name));
    }
    let error = Error::new(ErrorKind::PromptApprovalRequired, diagnostic)
        .with("pack_id", pack)
        .with("approval", approval.as_str());
    error_fields.into_iter().fold(error, |error, (name, files)| error.with(name, files))
}
