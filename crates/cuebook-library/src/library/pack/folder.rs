//! Skills and prompts that come from elsewhere: unpacked beside the packs like a pack, then moved to `skills/NAME` or `prompts/NAME`
//! in one step.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::install::{Installation, exchange};
use super::{ASIDE, Staging};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;
use crate::library::Library;
use crate::library::archive::{ArchiveLimits, Unpacked};
use crate::trust::ContentDigest;

/// What a folder holds that is no pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FolderKind {
    /// A skill, below `skills`.
    Skill,
    /// A prompt, below `prompts`.
    Prompt,
}

impl FolderKind {
    /// The folder of a project that holds those of this kind.
    fn home(self) -> &'static str {
        match self {
            FolderKind::Skill => "skills",
            FolderKind::Prompt => "prompts",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            FolderKind::Skill => "skill",
            FolderKind::Prompt => "prompt",
        }
    }
}

/// A package that has been unpacked, but not yet moved to its place. Dropping it leaves the library as it was.
#[derive(Debug)]
pub enum StagedPackage<'l> {
    /// A folder with `pack.json`.
    Pack(Box<Installation<'l>>),
    /// A skill or a prompt.
    Folder(StagedFolder<'l>),
}

/// A skill or a prompt that has been unpacked, but not yet moved to its place.
#[derive(Debug)]
pub struct StagedFolder<'l> {
    library: &'l Library,
    staging: Staging,
    content: PathBuf,
    skipped: Vec<String>,
    executables: Vec<String>,
    files: usize,
    bytes: u64,
}

impl<'l> StagedFolder<'l> {
    pub(super) fn new(library: &'l Library, staging: Staging, unpacked: Unpacked) -> StagedFolder<'l> {
        let Unpacked { root, files, bytes, skipped, executables } = unpacked;
        StagedFolder { library, staging, content: root, skipped, executables, files, bytes }
    }

    pub(super) fn written<'f>(
        library: &'l Library,
        staging: Staging,
        id: &str,
        files: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<StagedFolder<'l>> {
        let content = staging.folder.join(FolderKind::Prompt.home()).join(id);
        let failed = |error: io::Error| files::write_error(&library.name(&content), &error);
        fs::create_dir_all(&content).map_err(failed)?;
        let (mut count, mut bytes) = (0, 0);
        for (name, text) in files {
            fs::write(content.join(name), text).map_err(failed)?;
            (count, bytes) = (count + 1, bytes + text.len() as u64);
        }
        files::sync_folder(&content).map_err(failed)?;
        let (skipped, executables) = (Vec::new(), Vec::new());
        Ok(StagedFolder { library, staging, content, skipped, executables, files: count, bytes })
    }

    /// The folder that it is in until it is committed.
    pub fn folder(&self) -> &Path {
        &self.content
    }

    /// Files that were left out, such as hidden ones.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Files that are executable in the source, but not in the copy.
    pub fn executables(&self) -> &[String] {
        &self.executables
    }

    /// How many files it has, and how many bytes.
    pub fn size(&self) -> (usize, u64) {
        (self.files, self.bytes)
    }

    /// Its files, with their digests.
    pub fn digest(&self) -> Result<ContentDigest> {
        ContentDigest::of(&self.content, "the package", ArchiveLimits::default().total_bytes)
    }

    /// Gives its folder the name that the format asks for. The name is one part of a path.
    pub fn named(mut self, kind: FolderKind, name: &str) -> Result<StagedFolder<'l>> {
        let folder = self.staging.folder.join(kind.home()).join(name);
        let moved = fs::create_dir(self.staging.folder.join(kind.home()))
            .and_then(|()| fs::rename(&self.content, &folder));
        moved.map_err(|error| files::write_error(&self.library.name(&folder), &error))?;
        self.content = folder;
        Ok(self)
    }

    /// Moves it to its place. `replace` allows to replace the folder of the same name.
    pub fn commit(self, kind: FolderKind, name: &str, replace: bool) -> Result<()> {
        let library = self.library;
        let target = library.added_folder(kind, name);
        let (shown, home) = (library.name(&target), library.root().join(kind.home()));
        let failed = |error: io::Error| files::write_error(&shown, &error);
        files::stays_inside(library.root(), &home, &shown)?;
        let (_, lock) = library.lock_packs()?;
        fs::create_dir_all(&home).map_err(failed)?;
        if target.symlink_metadata().is_err() {
            fs::rename(&self.content, &target).map_err(failed)?;
        } else if !target.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        } else if replace {
            exchange(&self.content, &target, &self.staging.folder.join(kind.home())).map_err(failed)?;
        } else {
            let message = format!("there is a {} `{name}` already", kind.noun());
            let diagnostic = Diagnostic::new(Code::PackExists, message);
            let hint = format!("rename the folder {shown}, or delete it");
            return Err(Error::new(ErrorKind::Pack, diagnostic.file(&shown).hint(hint)));
        }
        files::sync_folder(&home).map_err(failed)?;
        drop(self.staging);
        drop(lock);
        Ok(())
    }
}

impl Library {
    /// The folder of a skill or prompt that was added to the project.
    #[doc(hidden)]
    pub fn added_folder(&self, kind: FolderKind, name: &str) -> PathBuf {
        self.root().join(kind.home()).join(name)
    }

    /// Removes a skill or a prompt of the project.
    #[doc(hidden)]
    pub fn remove_added(&self, kind: FolderKind, name: &str) -> Result<()> {
        let folder = self.added_folder(kind, name);
        let (shown, home) = (self.name(&folder), self.root().join(kind.home()));
        files::stays_inside(self.root(), &folder, &shown)?;
        let (packs, lock) = self.lock_packs()?;
        let staging = Staging::new(&lock, &packs, &shown)?;
        fs::rename(&folder, staging.folder.join("removed"))
            .and_then(|()| files::sync_folder(&home))
            .map_err(|error| files::write_error(&shown, &error))?;
        // A folder that is empty now goes as well; one with other files stays.
        let _ = fs::remove_dir(home);
        Ok(())
    }
}

/// Puts back the folders that are set aside in a staging folder and have no successor in their place.
pub(super) fn restore(staging: &Path, packs: &Path) -> io::Result<()> {
    let Some(project) = packs.parent().and_then(Path::parent) else { return Ok(()) };
    for home in [FolderKind::Skill, FolderKind::Prompt].map(FolderKind::home) {
        let Ok(entries) = fs::read_dir(staging.join(home).join(ASIDE)) else { continue };
        for entry in entries.flatten() {
            let place = project.join(home).join(entry.file_name());
            if fs::symlink_metadata(&place).is_err() {
                fs::rename(entry.path(), place)?;
            }
        }
    }
    Ok(())
}
