//! Installing a pack: unpacked and checked in a staging folder, shown to the user, then moved to its place in one step.
//!
//! What a pack would replace is only proposed. What the user accepted from one version is asked again for a version with other
//! content; until then the old version stays.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use indexmap::IndexMap;
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use super::{ASIDE, MANIFEST, StagedFolder, StagedPackage, Staging};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::files;
use crate::library::archive::{self, ArchiveLimits, Unpacked};
use crate::library::replaced::replacement_request;
use crate::library::resolution::{Resolution, timestamp};
use crate::library::{Library, Manifest, PACKS};
use crate::trust::{Approval, ContentDigest, Request};

/// Something that a pack offers to replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// `prompt`, `tool` or `flow`.
    pub kind: &'static str,
    /// What is replaced.
    pub target: String,
    /// What replaces it.
    pub replacement: String,
}

impl Proposal {
    /// The proposal as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({"kind": self.kind, "target": self.target, "replacement": self.replacement})
    }

    /// The key of the recorded choice.
    fn key(&self) -> String {
        match self.kind {
            "prompt" => self.target.clone(),
            kind => format!("{kind}.{}", self.target),
        }
    }

    /// The replacement's source, as a recorded choice names it.
    fn source(&self, pack: &str) -> String {
        format!("{PACKS}/{pack}/{}s/{}", self.kind, self.replacement)
    }

    /// The proposal that a recorded choice accepted from a pack.
    fn accepted(key: &str, choice: &Resolution, pack: &str) -> Option<Proposal> {
        let inside = choice.source.strip_prefix(&format!("{PACKS}/{pack}/"))?;
        let (folder, replacement) = inside.split_once('/')?;
        let kind =
            ["prompt", "tool", "flow"].into_iter().find(|kind| folder.strip_suffix('s') == Some(kind))?;
        let target = if kind == "prompt" { key } else { key.split_once('.')?.1 };
        Some(Proposal { kind, target: target.to_owned(), replacement: replacement.to_owned() })
    }
}

/// A pack that has been unpacked and checked, but not yet moved to its place. Dropping it leaves the library as it was.
#[derive(Debug)]
pub struct Installation<'l> {
    library: &'l Library,
    staging: Staging,
    content: PathBuf,
    manifest: Manifest,
    findings: Vec<Diagnostic>,
    skipped: Vec<String>,
    files: usize,
    bytes: u64,
    replaces_version: Option<String>,
}

impl Library {
    /// Unpacks a folder or an archive beside the packs and checks it. [`Installation::commit`] moves it to its place.
    pub fn stage_pack(&self, from: &Path) -> Result<Installation<'_>> {
        let name = from.to_string_lossy();
        match self.stage_package(from, &name)? {
            StagedPackage::Pack(installation) => Ok(*installation),
            StagedPackage::Folder(_) => {
                let diagnostic = Diagnostic::new(Code::BadManifest, "has no pack.json, but is a skill");
                let hint = Hint::run("add the skill", format!("cuebook add {name}"));
                Err(Error::new(ErrorKind::Pack, diagnostic.file(name).hint(hint)))
            }
        }
    }

    /// Unpacks a folder or an archive with a pack or a skill beside the packs and checks it. `name` is what people call it.
    #[doc(hidden)]
    pub fn stage_package(&self, from: &Path, name: &str) -> Result<StagedPackage<'_>> {
        let (packs, lock) = self.lock_packs()?;
        let staging = Staging::new(&lock, &packs, &self.name(&packs))?;
        drop(lock);
        let into = staging.folder.join("pack");
        fs::create_dir(&into).map_err(|error| files::write_error(&self.name(&into), &error))?;
        let unpacked = archive::unpack(from, name, &into, &ArchiveLimits::default())?;
        match unpacked.root.join(MANIFEST).symlink_metadata() {
            Ok(_) => {
                let installation = self.checked(staging, unpacked, &into, name)?;
                Ok(StagedPackage::Pack(Box::new(installation)))
            }
            Err(_) => Ok(StagedPackage::Folder(StagedFolder::new(self, staging, unpacked))),
        }
    }

    /// Writes the files of a prompt beside the packs. Each has a plain name and a text.
    #[doc(hidden)]
    pub fn stage_prompt<'f>(
        &self,
        id: &str,
        files: impl IntoIterator<Item = (&'f str, &'f str)>,
    ) -> Result<StagedFolder<'_>> {
        let (packs, lock) = self.lock_packs()?;
        let staging = Staging::new(&lock, &packs, &self.name(&packs))?;
        drop(lock);
        StagedFolder::written(self, staging, id, files)
    }

    fn checked(
        &self,
        staging: Staging,
        unpacked: Unpacked,
        into: &Path,
        name: &str,
    ) -> Result<Installation<'_>> {
        let packs = self.packs_folder();
        // People know the pack by where they have it from, not by our staging folder.
        let inside =
            unpacked.root.strip_prefix(into).unwrap_or(Path::new("")).to_string_lossy().replace('\\', "/");
        let shown = if inside.is_empty() { name.to_owned() } else { format!("{name}/{inside}") };
        let manifest_path = unpacked.root.join(MANIFEST);
        let source = files::read_text(&manifest_path, &format!("{shown}/{MANIFEST}"), self.file_limit()?)?;
        let (manifest, mut findings) = Manifest::read(&source)?;
        findings.extend(manifest.verify_contents(&unpacked.root, &shown, self.claims()));
        if findings.iter().all(|finding| finding.code != Code::MissingPackPrompt) {
            for provider in &manifest.variable_providers {
                findings.extend(self.provider_problems(&unpacked.root, &shown, &provider.file));
            }
        }
        let wrong: Vec<Diagnostic> =
            findings.iter().filter(|f| f.severity == crate::error::Severity::Error).cloned().collect();
        if !wrong.is_empty() {
            return Err(Error::all(ErrorKind::Pack, wrong));
        }
        let replaces_version = match packs.join(&manifest.pack_id).is_dir() {
            true => Some(
                self.read_manifest(&packs.join(&manifest.pack_id)).map_or("?".into(), |(m, _)| m.version),
            ),
            false => None,
        };
        Ok(Installation {
            library: self,
            staging,
            content: unpacked.root,
            manifest,
            findings,
            skipped: unpacked.skipped,
            files: unpacked.files,
            bytes: unpacked.bytes,
            replaces_version,
        })
    }
}

impl Installation<'_> {
    /// The pack's manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What is odd about it without keeping it from working.
    pub fn findings(&self) -> &[Diagnostic] {
        &self.findings
    }

    /// Files that were left out, such as hidden ones.
    pub fn skipped(&self) -> &[String] {
        &self.skipped
    }

    /// How many files it has, and how many bytes.
    pub fn size(&self) -> (usize, u64) {
        (self.files, self.bytes)
    }

    /// The version that is installed already.
    pub fn installed_version(&self) -> Option<&str> {
        self.replaces_version.as_deref()
    }

    /// The folder that it is in until it is committed.
    pub fn folder(&self) -> &Path {
        &self.content
    }

    /// Its files, with their digests.
    pub fn digest(&self) -> Result<ContentDigest> {
        ContentDigest::of(&self.content, &self.manifest.pack_id, ArchiveLimits::default().total_bytes)
    }

    /// Whether its code may run once it is installed.
    pub fn approval(&self) -> Result<Approval> {
        self.library.approval_of(&self.manifest.pack_id, &self.digest()?)
    }

    /// The replacements that the user accepted from the installed version.
    pub fn held(&self) -> Result<Vec<Proposal>> {
        let (id, resolutions) = (&self.manifest.pack_id, self.library.resolutions()?);
        let of_pack = |key: &str| {
            let choice = resolutions.get(key).filter(|choice| choice.replaced_by.as_ref() == Some(id))?;
            Proposal::accepted(key, &choice, id)
        };
        Ok(resolutions.ids().filter_map(of_pack).collect())
    }

    /// The accepted replacements whose text this version may change. A template includes other files of its pack, so any changed
    /// file counts.
    pub fn changed_replacements(&self) -> Result<Vec<Proposal>> {
        let held = self.held()?;
        let id = &self.manifest.pack_id;
        let is_same = held.is_empty()
            || !self.library.packs_folder().join(id).is_dir()
            || self.library.content(id)? == self.digest()?;
        Ok(if is_same { Vec::new() } else { held })
    }

    /// An error if the user accepted a replacement from the installed version, and has not accepted what this version makes of it.
    fn require_consent(&self, accepted: &[Proposal]) -> Result<()> {
        let same = |a: &Proposal, b: &Proposal| a.kind == b.kind && a.target == b.target;
        let changed = self.changed_replacements()?;
        let Some(open) = changed.iter().find(|held| !accepted.iter().any(|yes| same(yes, held))) else {
            return Ok(());
        };
        let id = &self.manifest.pack_id;
        let message = format!(
            "the pack `{id}` is not upgraded: the new version changes the replacement of the {} `{}`",
            open.kind, open.target
        );
        let hint = Hint::command_line("accept the change with --yes, or answer yes; nothing was changed")
            .for_programs("answer yes; nothing was changed");
        let diagnostic = Diagnostic::new(Code::ConsentNeeded, message).hint(hint);
        Err(Error::new(ErrorKind::Pack, diagnostic).with("replaces", open.to_json()))
    }

    /// What the pack proposes to replace.
    pub fn proposals(&self) -> Vec<Proposal> {
        let replaces = &self.manifest.replaces;
        let of = |kind: &'static str, entries: &IndexMap<String, String>| -> Vec<Proposal> {
            entries
                .iter()
                .map(|(target, replacement)| Proposal {
                    kind,
                    target: target.clone(),
                    replacement: replacement.clone(),
                })
                .collect()
        };
        [of("prompt", &replaces.prompts), of("tool", &replaces.tools), of("flow", &replaces.flows)].concat()
    }

    /// Moves the pack to its place and records the proposals that were accepted. `upgrade` allows to replace an installed
    /// pack of the same id. A replacement that the user accepted before, and that the upgrade would change, must be among the
    /// accepted ones again: otherwise nothing changes.
    pub fn commit(self, upgrade: bool, accepted: &[Proposal]) -> Result<()> {
        let library = self.library;
        let packs = library.packs_folder();
        let id = &self.manifest.pack_id;
        let target = packs.join(id);
        let name = library.name(&target);
        // Whatever would keep the choices from being recorded has to show before the pack is in its place.
        if !accepted.is_empty() {
            library.roots()?;
            library.resolutions()?;
        }
        let (_, lock) = library.lock_packs()?;
        let moved = if target.symlink_metadata().is_err() {
            fs::rename(&self.content, &target)
        } else if !target.is_dir() {
            return Err(files::write_error(&name, &io::ErrorKind::NotADirectory.into()));
        } else if upgrade {
            self.require_consent(accepted)?;
            exchange(&self.content, &target, &self.staging.folder)
        } else {
            let message = match &self.replaces_version {
                Some(version) => format!("the pack `{id}` is already installed, in version {version}"),
                None => format!("another process installed the pack `{id}` meanwhile"),
            };
            let diagnostic = Diagnostic::new(Code::PackExists, message).file(&name);
            let hint = Hint::run("replace it", "cuebook pack install PATH --upgrade")
                .or(Hint::run("or remove it", format!("cuebook pack remove {id}")));
            return Err(Error::new(ErrorKind::Pack, diagnostic.hint(hint)));
        };
        moved.and_then(|()| files::sync_folder(&packs)).map_err(|error| files::write_error(&name, &error))?;
        // What was exchanged lies in the staging folder now and goes with it.
        drop(self.staging);
        drop(lock);
        let now = timestamp(Timestamp::now());
        let mut choices = Vec::new();
        for proposal in accepted {
            let (key, source) = (proposal.key(), proposal.source(id));
            let mut candidates = Vec::new();
            if proposal.kind == "prompt" {
                candidates = library.search(&proposal.target)?.into_iter().map(|c| c.source).collect();
            }
            if !candidates.contains(&source) {
                candidates.push(source.clone());
            }
            let resolution = Resolution {
                source,
                resolved_at: Some(now.clone()),
                candidates: Some(candidates),
                replaced_by: Some(id.clone()),
            };
            choices.push((key, resolution));
        }
        if choices.is_empty() {
            return Ok(());
        }
        library.record(&choices)?;
        let tools = accepted.iter().filter(|proposal| proposal.kind == "tool");
        let requests: Vec<Request> =
            tools.map(|tool| replacement_request(&tool.target, &tool.replacement, id)).collect();
        if requests.is_empty() { Ok(()) } else { library.grants()?.allow(&requests, Timestamp::now()) }
    }
}

/// Swaps two folders in one step where the system can, so that there is never a moment without the folder.
pub fn exchange(new: &Path, installed: &Path, staging: &Path) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{CWD, RenameFlags, renameat_with};
        match renameat_with(CWD, new, CWD, installed, RenameFlags::EXCHANGE) {
            Ok(()) => return Ok(()),
            // File systems without it (some network ones) take the longer way below.
            Err(rustix::io::Errno::INVAL | rustix::io::Errno::NOSYS) => {}
            Err(error) => return Err(error.into()),
        }
    }
    exchange_by_two_moves(new, installed, staging)
}

/// The old pack is set aside under its own name, so that, should we die before the new one is in its place, the next
/// process can put it back.
fn exchange_by_two_moves(new: &Path, installed: &Path, staging: &Path) -> io::Result<()> {
    let aside = staging.join(ASIDE).join(installed.file_name().unwrap_or_default());
    fs::create_dir(staging.join(ASIDE))?;
    fs::rename(installed, &aside)?;
    fs::rename(new, installed).inspect_err(|_| {
        // The first error is the one that counts; what is still aside is put back by the next process.
        let _ = fs::rename(&aside, installed);
    })
}

#[cfg(test)]
mod tests {
    use super::super::restore;
    use super::*;

    #[test]
    fn two_moves_replace_a_pack_and_keep_the_old_one() {
        let root = tempfile::tempdir().unwrap();
        let (new, installed, staging) =
            (root.path().join("new"), root.path().join("mine"), root.path().join("staging"));
        for folder in [&new, &installed, &staging] {
            fs::create_dir(folder).unwrap();
        }
        fs::write(new.join("version"), "new").unwrap();
        exchange_by_two_moves(&new, &installed, &staging).unwrap();
        assert_eq!(fs::read(installed.join("version")).unwrap(), b"new");
        // A successor is in its place, so nothing comes back.
        restore(&staging, root.path()).unwrap();
        assert_eq!(fs::read(installed.join("version")).unwrap(), b"new");
    }
}
