//! Skills that come from elsewhere: unpacked beside the packs like a pack, then moved to `skills/NAME` in one step.

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

/// The folder of a project that skills are added to.
const SKILLS: &str = "skills";

/// A pack or a skill that has been unpacked, but not yet moved to its place. Dropping it leaves the library as it was.
#[derive(Debug)]
pub enum StagedPackage<'l> {
    /// A folder with `pack.json`.
    Pack(Box<Installation<'l>>),
    /// A folder with `SKILL.md`.
    Skill(StagedSkill<'l>),
}

/// A skill that has been unpacked, but not yet moved to its place.
#[derive(Debug)]
pub struct StagedSkill<'l> {
    library: &'l Library,
    staging: Staging,
    content: PathBuf,
    skipped: Vec<String>,
    executables: Vec<String>,
    files: usize,
    bytes: u64,
}

impl<'l> StagedSkill<'l> {
    pub(super) fn new(library: &'l Library, staging: Staging, unpacked: Unpacked) -> StagedSkill<'l> {
        let Unpacked { root, files, bytes, skipped, executables } = unpacked;
        StagedSkill { library, staging, content: root, skipped, executables, files, bytes }
    }

    /// The folder that it is in until it is committed.
    pub fn folder(&self) -> &Path {
        &self.content
    }

    /// Files that were left out, such as hidden ones.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// Files that could be run where they come from, and cannot be run here.
    pub fn executables(&self) -> &[String] {
        &self.executables
    }

    /// How many files it has, and how many bytes.
    pub fn size(&self) -> (usize, u64) {
        (self.files, self.bytes)
    }

    /// Its files, with their digests.
    pub fn digest(&self) -> Result<ContentDigest> {
        ContentDigest::of(&self.content, SKILLS, ArchiveLimits::default().total_bytes)
    }

    /// Gives its folder the name of the skill, which the format asks for. The name is one part of a path.
    pub fn named(mut self, name: &str) -> Result<StagedSkill<'l>> {
        let folder = self.staging.folder.join(SKILLS).join(name);
        let moved = fs::create_dir(self.staging.folder.join(SKILLS))
            .and_then(|()| fs::rename(&self.content, &folder));
        moved.map_err(|error| files::write_error(&self.library.name(&folder), &error))?;
        self.content = folder;
        Ok(self)
    }

    /// Moves the skill to its place. `replace` allows to replace the skill of the same name.
    pub fn commit(self, name: &str, replace: bool) -> Result<()> {
        let library = self.library;
        let target = library.skill_folder(name);
        let (shown, skills) = (library.name(&target), library.root().join(SKILLS));
        let failed = |error: io::Error| files::write_error(&shown, &error);
        files::stays_inside(library.root(), &skills, &shown)?;
        let (_, lock) = library.lock_packs()?;
        fs::create_dir_all(&skills).map_err(failed)?;
        if target.symlink_metadata().is_err() {
            fs::rename(&self.content, &target).map_err(failed)?;
        } else if !target.is_dir() {
            return Err(failed(io::ErrorKind::NotADirectory.into()));
        } else if replace {
            exchange(&self.content, &target, &self.staging.folder.join(SKILLS)).map_err(failed)?;
        } else {
            let diagnostic = Diagnostic::new(Code::PackExists, format!("there is a skill `{name}` already"));
            let hint = format!("rename the folder {shown}, or delete it");
            return Err(Error::new(ErrorKind::Pack, diagnostic.file(&shown).hint(hint)));
        }
        files::sync_folder(&skills).map_err(failed)?;
        drop(self.staging);
        drop(lock);
        Ok(())
    }
}

impl Library {
    /// The folder of a skill that was added to the project.
    #[doc(hidden)]
    pub fn skill_folder(&self, name: &str) -> PathBuf {
        self.root().join(SKILLS).join(name)
    }

    /// Removes a skill of the project.
    #[doc(hidden)]
    pub fn remove_skill(&self, name: &str) -> Result<()> {
        let folder = self.skill_folder(name);
        let shown = self.name(&folder);
        files::stays_inside(self.root(), &folder, &shown)?;
        let (packs, lock) = self.lock_packs()?;
        let staging = Staging::new(&lock, &packs, &shown)?;
        fs::rename(&folder, staging.folder.join("skill"))
            .and_then(|()| files::sync_folder(&self.root().join(SKILLS)))
            .map_err(|error| files::write_error(&shown, &error))?;
        // A folder without skills goes as well; one with other files stays.
        let _ = fs::remove_dir(self.root().join(SKILLS));
        Ok(())
    }
}

/// Puts back the skills that are set aside in a staging folder and have no successor in their place.
pub(super) fn restore(staging: &Path, packs: &Path) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(staging.join(SKILLS).join(ASIDE)) else { return Ok(()) };
    let Some(project) = packs.parent().and_then(Path::parent) else { return Ok(()) };
    for entry in entries.flatten() {
        let place = project.join(SKILLS).join(entry.file_name());
        if fs::symlink_metadata(&place).is_err() {
            fs::rename(entry.path(), place)?;
        }
    }
    Ok(())
}
