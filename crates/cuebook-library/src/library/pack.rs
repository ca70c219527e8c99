//! Packs: installing, listing and removing distributable folders.
//!
//! A pack is unpacked into a staging folder beside its place, checked there, and moved to its place in one step. Whatever
//! happens in between, the library holds the old pack or the new one. Installing runs nothing and decides no conflict; what
//! a pack would replace is only proposed.

mod folder;
mod install;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::Timestamp;

use super::archive::ArchiveLimits;
use super::manifest::{Manifest, VariableProvider};
use super::{Library, PACKS, PROMPT_FILE, Vocab, portable};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity, did_you_mean, nearest};
use crate::files::{self, Lock};
use crate::notation;
use crate::prompt::Permissions;
use crate::source::Source;
use crate::trust::approval::ApprovalsFile;
use crate::trust::approved::Texts;
use crate::trust::{Approval, ContentDigest, approval};

pub use folder::{FolderKind, StagedFolder, StagedPackage};
#[doc(hidden)]
pub use install::exchange as exchange_folders;
pub use install::{Installation, Proposal};

pub(super) const MANIFEST: &str = "pack.json";
pub(super) const SKILL_FILE: &str = "SKILL.md";
const STAGING: &str = ".staging-";
/// Below a staging folder: the pack that makes room for its successor, where the two cannot be exchanged in one step.
const ASIDE: &str = "aside";

/// A pack that is installed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct InstalledPack {
    /// Its id, which is the name of its folder.
    pub id: String,
    /// Its manifest.
    pub manifest: Manifest,
    /// What is odd about the manifest or the files that it speaks of.
    pub findings: Vec<Diagnostic>,
    /// Whether its code may run.
    pub approval: Approval,
}

/// A file that changed since its pack was approved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChange {
    /// Its path inside the pack.
    pub path: String,
    /// `added`, `removed` or `changed`.
    pub change: &'static str,
    /// Its text when it was approved; `None` if there was none, or it was not kept.
    pub before: Option<String>,
    /// Its text now; `None` if it is missing, or it is too large to show.
    pub after: Option<String>,
}

/// A Python file of a pack, for a user who is asked to approve it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PackCode {
    /// Its path inside the pack.
    pub path: String,
    /// Its content.
    pub text: String,
    /// What it may do when it runs.
    pub permissions: Permissions,
    /// What it is: `prompt`, `provider` or `module`.
    pub role: &'static str,
}

/// A folder of our own beside the packs. Its lock tells other processes that we are alive.
#[derive(Debug)]
struct Staging {
    folder: PathBuf,
    _alive: File,
}

/// The variable providers by pack, and the errors of packs whose manifest cannot be read.
pub(crate) type Providers = (Vec<(String, VariableProvider)>, Vec<Error>);

impl Staging {
    /// Makes the folder, and clears away those of processes that died. Both happen only under the packs' lock: the process that
    /// holds it knows that a folder without its own lock is abandoned, and not one that is just being made.
    fn new(_packs_lock: &Lock, packs: &Path, name: &str) -> Result<Staging> {
        Staging::sweep(packs);
        let make = || -> io::Result<Staging> {
            fs::create_dir_all(packs)?;
            let unique = files::temporary_beside(&packs.join("pack"));
            let unique = unique.file_name().unwrap_or_default().to_string_lossy().replace('.', "");
            let folder = packs.join(format!("{STAGING}{unique}"));
            fs::create_dir(&folder)?;
            let alive = File::create(folder.join(".lock"))?;
            alive.lock()?;
            Ok(Staging { folder, _alive: alive })
        };
        make().map_err(|error| files::write_error(name, &error))
    }

    /// Removes what processes left behind that died, and puts back a pack that one of them had set aside.
    fn sweep(packs: &Path) {
        let Ok(entries) = fs::read_dir(packs) else { return };
        for entry in entries.flatten() {
            if !entry.file_name().to_string_lossy().starts_with(STAGING) {
                continue;
            }
            let folder = entry.path();
            let is_dead = match File::options().write(true).open(folder.join(".lock")) {
                Ok(lock) => lock.try_lock().is_ok(),
                Err(error) => error.kind() == io::ErrorKind::NotFound,
            };
            // What cannot be put back or removed now is tried again next time.
            if is_dead && restore(&folder, packs).is_ok() && folder::restore(&folder, packs).is_ok() {
                let _ = fs::remove_dir_all(folder);
            }
        }
    }
}

/// Puts back the packs that are set aside in a staging folder and have no successor in their place.
fn restore(staging: &Path, packs: &Path) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(staging.join(ASIDE)) else { return Ok(()) };
    for entry in entries.flatten() {
        let place = packs.join(entry.file_name());
        if fs::symlink_metadata(&place).is_err() {
            fs::rename(entry.path(), place)?;
        }
    }
    Ok(())
}

impl Drop for Staging {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

impl Library {
    /// The folder that packs are installed in.
    #[doc(hidden)]
    pub fn packs_folder(&self) -> PathBuf {
        self.root.join(PACKS)
    }

    /// Waits for the lock of the folder that packs are installed in, and takes it. A link of the project must not lead to another
    /// folder, where files of a pack would be those of the user.
    pub(super) fn lock_packs(&self) -> Result<(PathBuf, Lock)> {
        let packs = self.packs_folder();
        let name = self.name(&packs);
        files::stays_inside(&self.root, &packs, &name)?;
        let lock = Lock::acquire(&packs, &name)?;
        Ok((packs, lock))
    }

    /// The installed pack that a path without links lies in.
    #[doc(hidden)]
    pub fn pack_that_holds(&self, path: &Path) -> Option<String> {
        let packs = fs::canonicalize(self.packs_folder()).ok()?;
        let pack = path.strip_prefix(packs).ok()?.components().next()?;
        Some(pack.as_os_str().to_string_lossy().into_owned())
    }

    /// The file in the user's space that holds the approvals of this project's packs.
    #[doc(hidden)]
    pub fn approvals_file(&self) -> Option<ApprovalsFile> {
        ApprovalsFile::of(self.spaces())
    }

    /// A file `approvals.json` of the project, which counts for nothing: a clone could bring its own approvals.
    #[doc(hidden)]
    pub fn unused_approvals(&self) -> Option<Diagnostic> {
        let path = self.packs_folder().join("approvals.json");
        path.is_file().then(|| {
            let message = "Cuebook ignores approvals in a project; yours are in your own space";
            Diagnostic::new(Code::BadApprovals, message)
                .severity(Severity::Warning)
                .file(self.name(&path))
                .hint(Hint::run("delete the file; approve packs with", "cuebook pack approve PACK"))
        })
    }

    fn read_manifest(&self, folder: &Path) -> Result<(Manifest, Vec<Diagnostic>)> {
        let path = folder.join(MANIFEST);
        let bounds = self.pack_bounds(folder);
        Manifest::read(&files::read_text_inside(&bounds, &path, &self.name(&path), self.file_limit()?)?)
    }

    /// The folder that the files of a pack must lie in: the pack, or the project if a link leads from there to a pack elsewhere.
    pub(crate) fn pack_bounds(&self, folder: &Path) -> PathBuf {
        let leads_out = || match (fs::canonicalize(&self.root), fs::canonicalize(folder)) {
            (Ok(root), Ok(folder)) => !folder.starts_with(root),
            _ => false,
        };
        if folder.starts_with(self.packs_folder()) && leads_out() {
            self.root.clone()
        } else {
            folder.to_owned()
        }
    }

    /// Every installed pack; a pack whose manifest is wrong is an error in its place.
    pub fn packs(&self) -> Result<Vec<(String, Result<InstalledPack>)>> {
        Ok(self.pack_ids()?.into_iter().map(|id| (id.clone(), self.pack(&id))).collect())
    }

    /// An installed pack.
    pub fn pack(&self, id: &str) -> Result<InstalledPack> {
        let (manifest, findings) = self.inspect_pack(id)?;
        let approval = self.approval(id)?;
        Ok(InstalledPack { id: id.to_owned(), manifest, findings, approval })
    }

    /// The manifest of a pack, and what is odd about it or about the files that it speaks of.
    #[doc(hidden)]
    pub fn inspect_pack(&self, id: &str) -> Result<(Manifest, Vec<Diagnostic>)> {
        let folder = self.pack_folder(id)?;
        let name = self.name(&folder);
        let (manifest, mut findings) = self.inspect_pack_at(&folder)?;
        if manifest.pack_id != id {
            let message = format!("pack.json says `{}`, but the folder is `{id}`", manifest.pack_id);
            let hint = format!("rename the folder to {PACKS}/{}, or fix `pack_id`", manifest.pack_id);
            findings.push(
                Diagnostic::new(Code::BadManifest, message).file(format!("{name}/{MANIFEST}")).hint(hint),
            );
        }
        Ok((manifest, findings))
    }

    /// The same of a pack that lies anywhere, such as one that is still being written.
    #[doc(hidden)]
    pub fn inspect_pack_at(&self, folder: &Path) -> Result<(Manifest, Vec<Diagnostic>)> {
        let (manifest, mut findings) = self.read_manifest(folder)?;
        findings.extend(manifest.verify_contents(folder, &self.name(folder), self.claims()));
        Ok((manifest, findings))
    }

    fn pack_folder(&self, id: &str) -> Result<PathBuf> {
        let folder = self.packs_folder().join(id);
        let plain = !id.is_empty() && !id.contains(['/', '\\']) && !portable::is_reserved_id(id);
        if plain && folder.is_dir() {
            return Ok(folder);
        }
        let ids = self.pack_ids()?;
        let hint = did_you_mean(&nearest(id, ids.iter().map(String::as_str)))
            .map_or_else(|| Hint::run("list the packs", "cuebook pack list"), Hint::from);
        let diagnostic =
            Diagnostic::new(Code::PackNotFound, format!("no pack `{id}` is installed")).hint(hint);
        Err(Error::new(ErrorKind::Pack, diagnostic))
    }

    /// The vocabulary that a pack has in a file of its own.
    #[doc(hidden)]
    pub fn pack_vocab_file(&self, id: &str) -> Result<Option<Arc<Source>>> {
        let folder = self.packs_folder().join(id);
        let path = folder.join("vocab.json");
        match path.is_file() {
            true => {
                let bounds = self.pack_bounds(&folder);
                files::read_text_inside(&bounds, &path, &self.name(&path), self.file_limit()?).map(Some)
            }
            false => Ok(None),
        }
    }

    /// The vocabulary that a pack brings, in its manifest or as `vocab.json`.
    pub(super) fn pack_vocab(&self, id: &str) -> Result<Option<Vocab>> {
        if let Some(source) = self.pack_vocab_file(id)? {
            return Vocab::read(&source).map(Some);
        }
        let folder = self.packs_folder().join(id);
        if !folder.join(MANIFEST).is_file() {
            return Ok(None);
        }
        let (manifest, _) = match self.read_manifest(&folder) {
            // Removed since it was listed.
            Err(_) if !folder.exists() => return Ok(None),
            manifest => manifest?,
        };
        Ok(Some(Vocab::from_entries(manifest.vocab)))
    }

    /// The variable providers of all packs, by pack. Each manifest that is looked at is passed to `seen`.
    /// A pack whose manifest cannot be read provides nothing, and keeps no other from it.
    #[doc(hidden)]
    pub fn providers(&self, seen: impl Fn(PathBuf)) -> Result<Providers> {
        let (mut providers, mut broken) = (Vec::new(), Vec::new());
        for id in self.pack_ids()? {
            seen(self.packs_folder().join(&id).join(MANIFEST));
            match self.pack_providers(&id) {
                Ok(found) => providers.extend(found),
                Err(error) => broken.push(error),
            }
        }
        Ok((providers, broken))
    }

    /// The variable providers of a pack, with its id.
    pub(super) fn pack_providers(&self, id: &str) -> Result<Vec<(String, VariableProvider)>> {
        let folder = self.packs_folder().join(id);
        if !folder.join(MANIFEST).is_file() {
            return Ok(Vec::new());
        }
        let (manifest, _) = match self.read_manifest(&folder) {
            // Removed since it was listed.
            Err(_) if !folder.exists() => return Ok(Vec::new()),
            manifest => manifest?,
        };
        Ok(manifest.variable_providers.into_iter().map(|provider| (id.to_owned(), provider)).collect())
    }

    /// What is wrong with the file of a pack's provider.
    #[doc(hidden)]
    pub fn provider_problems(&self, folder: &Path, name: &str, file: &str) -> Vec<Diagnostic> {
        let read = || {
            let name = format!("{name}/{file}");
            let bounds = self.pack_bounds(folder);
            let source = files::read_text_inside(&bounds, &folder.join(file), &name, self.file_limit()?)?;
            notation::signature::provider_problems(&source)
        };
        read().unwrap_or_else(Error::into_diagnostics)
    }

    /// The packs that propose to replace a prompt: pack and source of the replacement.
    pub(super) fn proposed(&self, id: &str) -> Result<Vec<(String, String)>> {
        let mut proposed = Vec::new();
        for pack in self.pack_ids()? {
            let folder = self.packs_folder().join(&pack);
            if folder.join(MANIFEST).is_file()
                && let Ok((manifest, _)) = self.read_manifest(&folder)
                && let Some(replacement) = manifest.replaces.prompts.get(id)
            {
                proposed.push((pack.clone(), format!("{PACKS}/{pack}/prompts/{replacement}")));
            }
        }
        Ok(proposed)
    }

    /// Removes an installed pack, and the replacements that were accepted from it: another pack of the same id must ask
    /// anew. Choices between candidates stay, and become conflicts that say why.
    pub fn remove_pack(&self, id: &str) -> Result<()> {
        let (packs, lock) = self.lock_packs()?;
        let folder = self.pack_folder(id)?;
        let name = self.name(&folder);
        let staging = Staging::new(&lock, &packs, &name)?;
        fs::rename(&folder, staging.folder.join("pack"))
            .map_err(|error| files::write_error(&name, &error))?;
        files::sync_folder(&packs).map_err(|error| files::write_error(&name, &error))?;
        let resolutions = self.resolutions()?;
        let replaced =
            |key: &str| resolutions.get(key).is_some_and(|choice| choice.replaced_by.as_deref() == Some(id));
        let gone: Vec<&str> = resolutions.ids().filter(|key| replaced(key)).collect();
        if gone.is_empty() { Ok(()) } else { self.forget(&gone) }
    }

    /// The files of an installed pack, with their digests.
    pub fn content(&self, id: &str) -> Result<ContentDigest> {
        let folder = self.pack_folder(id)?;
        // A pack was limited as a whole when it was installed; a file of it may be as large as that.
        ContentDigest::of(&folder, &self.name(&folder), ArchiveLimits::default().total_bytes)
    }

    /// Whether a pack's code may run.
    pub fn approval(&self, id: &str) -> Result<Approval> {
        self.approval_of(id, &self.content(id)?)
    }

    /// Whether the code of a pack with this content may run.
    #[doc(hidden)]
    pub fn approval_of(&self, id: &str, content: &ContentDigest) -> Result<Approval> {
        approval::status(self.approvals_file().as_ref(), id, content)
    }

    /// The Python files of a pack, for a user who is asked to approve them, and the content that they are part of.
    #[doc(hidden)]
    pub fn pack_code(&self, id: &str) -> Result<(Vec<PackCode>, ContentDigest)> {
        // No process may exchange the pack between the digest and the text that is shown for it.
        let _lock = self.lock_packs()?;
        let folder = self.pack_folder(id)?;
        let content = self.content(id)?;
        if let Some(link) = content.links().next() {
            let message = "a pack with links cannot be approved: their targets can change without the pack";
            let diagnostic = Diagnostic::new(Code::ApprovalRequired, message)
                .file(format!("{}/{link}", self.name(&folder)))
                .hint("replace the link with the file");
            return Err(Error::new(ErrorKind::PromptApprovalRequired, diagnostic));
        }
        let (manifest, _) = self.read_manifest(&folder)?;
        let limit = self.file_limit()?;
        let mut code = Vec::new();
        for file in content.files().filter(|file| file.path.ends_with(".py")) {
            let path = folder.join(&file.path);
            let source =
                files::read_text_inside(&self.pack_bounds(&folder), &path, &self.name(&path), limit)?;
            let provider = manifest.variable_providers.iter().find(|provider| provider.file == file.path);
            let (role, permissions) = match provider {
                Some(provider) => ("provider", provider.permissions),
                None if file.path.rsplit('/').next() == Some(PROMPT_FILE) => {
                    ("prompt", notation::definition::permissions(&source)?)
                }
                None => ("module", Permissions::default()),
            };
            code.push(PackCode { path: file.path, text: source.text().to_owned(), permissions, role });
        }
        Ok((code, content))
    }

    /// What changed in a pack since it was approved, file by file.
    #[doc(hidden)]
    pub fn changes_since_approval(&self, id: &str, content: &ContentDigest) -> Result<Vec<FileChange>> {
        let Approval::Changed { added, removed, changed } = self.approval_of(id, content)? else {
            return Ok(Vec::new());
        };
        let before = match self.approvals_file() {
            Some(approvals) => Texts::approved(&approvals, id)?,
            None => Texts::default(),
        };
        let after = Texts::of(&self.pack_folder(id)?, content);
        let lists = [("changed", changed), ("added", added), ("removed", removed)];
        let change = |change: &'static str, path: String| FileChange {
            before: before.get(&path).map(str::to_owned),
            after: after.get(&path).map(str::to_owned),
            change,
            path,
        };
        Ok(lists
            .into_iter()
            .flat_map(|(kind, paths)| paths.into_iter().map(move |path| (kind, path)))
            .map(|(kind, path)| change(kind, path))
            .collect())
    }

    /// Approves the code of a pack, as long as its content is still what was shown.
    pub fn approve_pack(&self, id: &str, shown: &ContentDigest) -> Result<()> {
        let _lock = self.lock_packs()?;
        if self.content(id)? != *shown {
            let message = format!("the pack `{id}` changed while Cuebook read it");
            let diagnostic = Diagnostic::new(Code::ApprovalRequired, message).hint("review it again");
            return Err(Error::new(ErrorKind::PromptApprovalRequired, diagnostic));
        }
        let approvals = self.approvals_file();
        if let Some(approvals) = &approvals {
            // First: an approval without the texts would leave those of an older one for the next comparison.
            Texts::of(&self.pack_folder(id)?, shown).keep(approvals, id)?;
        }
        approval::approve(approvals.as_ref(), id, shown, Timestamp::now())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pack_that_a_dead_process_moved_is_restored() {
        let root = tempfile::tempdir().unwrap();
        let library = Library::open(root.path());
        let packs = library.packs_folder();
        let staging = packs.join(".staging-dead");
        fs::create_dir_all(packs.join("mine")).unwrap();
        fs::write(packs.join("mine/version"), "old").unwrap();
        fs::create_dir_all(&staging).unwrap();
        // The new folder is not there, which is as good as dying between the two moves.
        fs::create_dir(staging.join(ASIDE)).unwrap();
        fs::rename(packs.join("mine"), staging.join(ASIDE).join("mine")).unwrap();
        let lock = Lock::acquire(&packs, "packs").unwrap();
        drop(Staging::new(&lock, &packs, "packs").unwrap());
        assert_eq!(fs::read(packs.join("mine/version")).unwrap(), b"old");
        assert!(!staging.exists());
    }

    #[test]
    fn a_staging_folder_without_a_lock_is_abandoned() {
        let root = tempfile::tempdir().unwrap();
        let packs = root.path().join("packs");
        fs::create_dir_all(packs.join(".staging-unlocked/pack")).unwrap();
        let lock = Lock::acquire(&packs, "packs").unwrap();
        let living = Staging::new(&lock, &packs, "packs").unwrap();
        let second = Staging::new(&lock, &packs, "packs").unwrap();
        assert!(living.folder.is_dir() && second.folder.is_dir(), "those of the living stay");
        assert!(!packs.join(".staging-unlocked").exists());
    }
}
