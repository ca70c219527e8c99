//! Adds, restores, updates and removes the packages of a project.
//!
//! A change has two parts: the package's folder and the lockfile. The folder is exchanged in one step by the library. A note of the
//! new lockfile is written before, and removed after both are done. The next command finds the note of a process that died, and
//! finishes what it began: if the folder is the new one, the lockfile becomes the new one too; otherwise both stay the old ones.

mod pending;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use cuebook::files::{self, Lock};
use cuebook::library::{FolderKind, Proposal, StagedFolder, StagedPackage};
use cuebook::source::Source as Text;
use cuebook::trust::{ContentDigest, PublicKey, Trust};
use cuebook::{Book, Code, Context, Diagnostic, Error, ErrorKind, Hint, Prepared, Result};

use crate::fetch::Fetched;
use crate::langfuse::PulledPrompt;
use crate::lock::{LOCK_FILE, LockedPackage, PackageKind, PackageLock, is_name, text_of};
use crate::publisher;
use crate::source::{Source, wrong};
use pending::Pending;

/// The version of a prompt that does not give itself one.
const DEFAULT_VERSION: &str = "1.0.0";

/// The packages of a project. No other process changes them while this is there, unless it only looks.
pub struct Packages<'b> {
    book: &'b Book,
    text: Option<Arc<Text>>,
    lock: PackageLock,
    _guard: Option<Lock>,
}

/// A package that was fetched and checked, but not yet moved to its place.
pub struct Change<'b> {
    /// What the lockfile will say.
    pub package: LockedPackage,
    /// What it says now.
    pub before: Option<LockedPackage>,
    /// The key of its publisher.
    pub key: KeyState,
    /// The package.
    pub staged: StagedPackage<'b>,
    /// What is different in the files of a pulled prompt.
    pub notes: Vec<String>,
}

/// What is known about the key of a package's publisher.
#[derive(Debug, Clone)]
pub enum KeyState {
    /// The package is not signed.
    Unsigned,
    /// The lockfile has this key, or the user trusts it.
    Known(PublicKey),
    /// The key is new: the user must accept it for this package.
    New(PublicKey),
}

/// How an installed package compares with the lockfile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PackageState {
    /// Every file is as it was locked.
    Same,
    /// The package is not installed.
    Missing,
    /// Files differ.
    Changed {
        /// Files that the lockfile does not have.
        added: Vec<String>,
        /// Files that are gone.
        removed: Vec<String>,
        /// Files with other content.
        changed: Vec<String>,
    },
}

impl PackageState {
    /// The word for it.
    pub fn as_str(&self) -> &'static str {
        match self {
            PackageState::Same => "same",
            PackageState::Missing => "missing",
            PackageState::Changed { .. } => "changed",
        }
    }

    /// The difference between the files that are wanted and those that are there.
    pub fn between(wanted: &ContentDigest, found: &ContentDigest) -> PackageState {
        let map = |content: &ContentDigest| -> std::collections::BTreeMap<String, String> {
            content.files().map(|file| (file.path, file.sha256)).collect()
        };
        let (wanted, found) = (map(wanted), map(found));
        let added: Vec<String> = found.keys().filter(|path| !wanted.contains_key(*path)).cloned().collect();
        let removed: Vec<String> = wanted.keys().filter(|path| !found.contains_key(*path)).cloned().collect();
        let is_changed = |path: &&String| found.get(*path).is_some_and(|hash| wanted[*path] != *hash);
        let changed: Vec<String> = wanted.keys().filter(is_changed).cloned().collect();
        match added.is_empty() && removed.is_empty() && changed.is_empty() {
            true => PackageState::Same,
            false => PackageState::Changed { added, removed, changed },
        }
    }
}

impl<'b> Packages<'b> {
    /// Opens the packages of a project to change them: waits for other processes, and finishes what one that died began.
    pub fn open(book: &'b Book) -> Result<Packages<'b>> {
        let root = book.library().root();
        let guarded = root.join("user_data/packages");
        files::stays_inside(root, &guarded, "user_data/packages")?;
        let guard = Lock::acquire(&guarded, "user_data/packages")?;
        pending::finish(book)?;
        let text = text_of(root)?;
        let lock = text.as_ref().map_or_else(|| Ok(PackageLock::default()), PackageLock::read)?;
        Ok(Packages { book, text, lock, _guard: Some(guard) })
    }

    /// Opens them to look only, which writes nothing unless a process died in the middle of a change.
    pub fn look(book: &'b Book) -> Result<Packages<'b>> {
        if pending::is_there(book) {
            return Packages::open(book);
        }
        let text = text_of(book.library().root())?;
        let lock = text.as_ref().map_or_else(|| Ok(PackageLock::default()), PackageLock::read)?;
        Ok(Packages { book, text, lock, _guard: None })
    }

    /// What the lockfile says.
    pub fn lock(&self) -> &PackageLock {
        &self.lock
    }

    /// Whether the project has a lockfile.
    pub fn has_lock(&self) -> bool {
        self.text.is_some()
    }

    /// Compares every package with the lockfile.
    pub fn states(&self) -> Result<Vec<(&LockedPackage, PackageState)>> {
        self.lock.packages().map(|package| Ok((package, self.state(package)?))).collect()
    }

    /// Compares a package with the lockfile.
    pub fn state(&self, package: &LockedPackage) -> Result<PackageState> {
        Ok(match content(self.book, package.kind, &package.name)? {
            None => PackageState::Missing,
            Some(found) => PackageState::between(&package.files, &found),
        })
    }

    /// The installed packs that the lockfile does not have.
    pub fn unlocked(&self) -> Result<Vec<String>> {
        let packs = self.book.library().packs_folder();
        let Ok(entries) = std::fs::read_dir(&packs) else { return Ok(Vec::new()) };
        let mut found: Vec<String> = entries
            .flatten()
            .filter(|entry| entry.path().is_dir())
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| !name.starts_with('.') && self.lock.get(PackageKind::Pack, name).is_none())
            .collect();
        found.sort();
        Ok(found)
    }

    /// Fetches a package that the lockfile does not have. `name` is the id that a pulled prompt gets, if it is not its own name.
    pub fn add(&self, source: &Source, name: Option<&str>) -> Result<Change<'b>> {
        if let Some(name) = name.filter(|name| !is_name(name)) {
            let hint = "an id has only letters, digits, `-`, `_` and `.`";
            return Err(wrong(&source.to_string(), format!("cannot get the id `{name}`"), hint));
        }
        let change = self.fetch(source, None, None, name)?;
        let LockedPackage { name, kind, .. } = &change.package;
        if let Some(before) = self.lock.get(*kind, name) {
            let message = format!("the {} `{name}` is already there, from {}", kind.as_str(), before.source);
            let hint = match before.source == *source {
                true => Hint::run("look for a new version", format!("cuebook update {name}")),
                false => {
                    Hint::run("take it from here instead", format!("cuebook update {name} --source {source}"))
                }
            };
            return Err(exists(message, hint));
        }
        if let Some(found) = content(self.book, *kind, name)?
            && found != change.package.files
        {
            let message = format!("the project has another {} `{name}`", kind.as_str());
            let hint = match kind {
                PackageKind::Pack => Hint::run("remove it first", format!("cuebook pack remove {name}")),
                PackageKind::Skill => {
                    format!("rename or delete the folder {} first", kind.folder(name)).into()
                }
                PackageKind::Prompt => Hint::run(
                    format!("rename or delete the folder {}, or choose another id", kind.folder(name)),
                    format!("cuebook pull {source} --as ID"),
                ),
            };
            return Err(exists(message, hint));
        }
        // A pulled prompt replaces nothing: not a prompt of the project, and none of a pack or of Cuebook.
        let library = self.book.library();
        if *kind == PackageKind::Prompt
            && let Ok((id, candidates)) = library.resolve_id(name)
            && let Some(other) = candidates
                .iter()
                .find(|it| !format!("{}/", it.source).starts_with(&format!("{}/", kind.folder(name))))
        {
            let message = format!("the library has a prompt `{id}` already: {}", other.source);
            let hint = Hint::run("choose another id", format!("cuebook pull {source} --as ID"));
            return Err(exists(message, hint));
        }
        Ok(change)
    }

    /// Fetches what the source of a package has now, or another source; `None` if nothing is new.
    pub fn update(&self, package: &LockedPackage, source: Option<&Source>) -> Result<Option<Change<'b>>> {
        let change = self.fetch(source.unwrap_or(&package.source), None, Some(package), None)?;
        let is_same = change.package == *package && self.state(package)? == PackageState::Same;
        Ok((!is_same).then_some(change))
    }

    /// Fetches the version of a package that the lockfile has.
    pub fn restore(&self, package: &LockedPackage) -> Result<Change<'b>> {
        let pinned = match package.kind {
            PackageKind::Prompt => package.version.as_deref(),
            _ => package.commit.as_deref(),
        };
        let change = self.fetch(&package.source, pinned, Some(package), None)?;
        if change.package.files == package.files {
            return Ok(change);
        }
        let LockedPackage { name, source, .. } = package;
        let message = format!("{source} now has other files for `{name}` than {LOCK_FILE}");
        let hint = Hint::run("see what changed, and accept it", format!("cuebook update {name}"));
        let diagnostic = Diagnostic::new(Code::PackagesDiffer, message).hint(hint);
        Err(Error::new(ErrorKind::Pack, diagnostic).with("package", name))
    }

    fn fetch(
        &self,
        source: &Source,
        pinned: Option<&str>,
        before: Option<&LockedPackage>,
        name: Option<&str>,
    ) -> Result<Change<'b>> {
        let library = self.book.library();
        let shown = source.to_string();
        let id = id_of(source, before, name)?;
        let fetched = Fetched::get(source, pinned, library.root(), &id)?;
        let at_home = fetched.path().and_then(|path| path.canonicalize().ok()).is_some_and(|path| {
            let homes = [library.packs_folder(), library.root().join("skills")];
            homes.iter().any(|home| home.canonicalize().is_ok_and(|home| path.starts_with(home)))
        });
        if at_home {
            return Err(wrong(&shown, "is where added packages go", "name the place that it comes from"));
        }
        let (kind, name, version, staged) = match (fetched.prompt(), fetched.path()) {
            (None, Some(path)) => self.identify(library.stage_package(path, &shown)?, &shown)?,
            (prompt, _) => self.pulled(prompt, &shown, &id)?,
        };
        if let Some(before) = before.filter(|before| (before.kind, &before.name) != (kind, &name)) {
            let message = format!("{shown} now holds the {} `{name}`, not `{}`", kind.as_str(), before.name);
            let hint = Hint::run("add it as another package", format!("cuebook add {shown}"));
            let diagnostic = Diagnostic::new(Code::PackagesDiffer, message).hint(hint);
            return Err(Error::new(ErrorKind::Pack, diagnostic));
        }
        let (folder, files) = match &staged {
            StagedPackage::Pack(pack) => (pack.folder(), pack.digest()?),
            StagedPackage::Folder(folder) => (folder.folder(), folder.digest()?),
        };
        let signer = publisher::key_of(folder, &shown, kind, &name, &files)?;
        let key = self.key_state(signer, before, &name)?;
        let recorded = match &key {
            KeyState::Unsigned => None,
            KeyState::Known(key) | KeyState::New(key) => Some(key.fingerprint().to_owned()),
        };
        let package = LockedPackage {
            name,
            kind,
            version,
            source: source.clone(),
            commit: fetched.commit().map(str::to_owned),
            key: recorded,
            files,
        };
        let notes = fetched.prompt().map(|prompt| prompt.notes.clone()).unwrap_or_default();
        Ok(Change { package, before: before.cloned(), key, staged, notes })
    }

    /// The kind, name and version of a package.
    fn identify(
        &self,
        staged: StagedPackage<'b>,
        shown: &str,
    ) -> Result<(PackageKind, String, Option<String>, StagedPackage<'b>)> {
        let checked = |name: &str| match is_name(name) {
            true => Ok(()),
            false => Err(wrong(
                shown,
                format!("holds a package with the name `{name}`"),
                "a name has only letters, digits, `-`, `_` and `.`",
            )),
        };
        match staged {
            StagedPackage::Pack(pack) => {
                let (name, version) = (pack.manifest().pack_id.clone(), pack.manifest().version.clone());
                checked(&name)?;
                Ok((PackageKind::Pack, name, Some(version), StagedPackage::Pack(pack)))
            }
            StagedPackage::Folder(skill) => {
                let prepared = self.prepared(&skill, "SKILL.md", shown)?;
                let metadata = &prepared.prompt().metadata;
                let name = metadata.name.clone();
                checked(&name)?;
                // The library has a default for the version, which is nothing that the skill says.
                let says = prepared.prompt().metadata.extra.contains_key("version");
                let version = (says || metadata.version != DEFAULT_VERSION).then(|| metadata.version.clone());
                let skill = skill.named(FolderKind::Skill, &name)?;
                Ok((PackageKind::Skill, name, version, StagedPackage::Folder(skill)))
            }
        }
    }

    /// A prompt of a registry, which is the file that was just made of it.
    fn pulled(
        &self,
        prompt: Option<&PulledPrompt>,
        shown: &str,
        id: &str,
    ) -> Result<(PackageKind, String, Option<String>, StagedPackage<'b>)> {
        let files = prompt.map(|prompt| prompt.files.as_slice()).unwrap_or_default();
        let files = files.iter().map(|file| (file.path.as_str(), file.text.as_str()));
        let folder = self.book.library().stage_prompt(id, files)?;
        let kind = PackageKind::Prompt;
        self.prepared(&folder, &kind.file(id).unwrap_or_default(), shown)?;
        let version = prompt.map(|prompt| prompt.version.clone());
        Ok((kind, id.to_owned(), version, StagedPackage::Folder(folder)))
    }

    /// Reads the file of a staged folder. People know it by where they have it from, not by our staging folder.
    fn prepared(&self, folder: &StagedFolder<'b>, file: &str, shown: &str) -> Result<Arc<Prepared>> {
        let path = folder.folder().join(file);
        self.book.prepare_path(&path, &Context::default()).map_err(|error| {
            let name = format!("{shown}/{file}");
            error.map(|found| match found.place.clone() {
                Some(place) => found.at(place.renamed(name.clone())),
                None => found.file(name.clone()),
            })
        })
    }

    fn key_state(
        &self,
        signer: Option<PublicKey>,
        before: Option<&LockedPackage>,
        name: &str,
    ) -> Result<KeyState> {
        let changed = |message: String| {
            let command = format!("cuebook remove {name}");
            let ask = "ask the publisher; if the new key is right";
            let hint = Hint::command_line(format!("{ask}: {command}, and add it again"))
                .for_programs(format!("{ask}, remove the package, and add it again"))
                .with_command(command);
            let diagnostic = Diagnostic::new(Code::PublisherKey, message).hint(hint);
            Err(Error::new(ErrorKind::Integrity, diagnostic).with("package", name))
        };
        let recorded = before.and_then(|before| before.key.as_deref());
        match (recorded, signer) {
            (None, None) => Ok(KeyState::Unsigned),
            (Some(old), None) => changed(format!("`{name}` is no longer signed; its key was {old}")),
            (Some(old), Some(key)) if old != key.fingerprint() => changed(format!(
                "`{name}` is signed with the key {}, but its key was {old}",
                key.fingerprint()
            )),
            (Some(_), Some(key)) => Ok(KeyState::Known(key)),
            (None, Some(key)) => {
                let trust = Trust::new(self.book.library().spaces());
                Ok(match trust.trusts(key.fingerprint())? {
                    Some(_) => KeyState::Known(key),
                    None => KeyState::New(key),
                })
            }
        }
    }

    /// Moves a package to its place, and records it. `accepted` are replacements that the user accepted.
    pub fn commit(&mut self, change: Change<'b>, accepted: &[Proposal]) -> Result<()> {
        let Change { package, staged, .. } = change;
        let lock = self.lock.with(package.clone());
        let found = content(self.book, package.kind, &package.name)?;
        let pending = Pending {
            kind: package.kind,
            name: package.name.clone(),
            files: Some(package.files.clone()),
            before: self.text.as_ref().map(|text| text.text().to_owned()),
            after: lock.text(),
        };
        pending.write(self.book)?;
        let moved = match (found == Some(package.files.clone()), staged) {
            // A kept replacement needs no new consent when its files are the same.
            (true, _) => Ok(()),
            (false, StagedPackage::Pack(pack)) => pack.commit(found.is_some(), accepted),
            (false, StagedPackage::Folder(folder)) => {
                let kind = package.kind.folder_kind().unwrap_or(FolderKind::Skill);
                folder.commit(kind, &package.name, found.is_some())
            }
        };
        step("moved");
        self.conclude(moved, lock)
    }

    /// Removes a package and its entry.
    pub fn remove(&mut self, package: &LockedPackage) -> Result<()> {
        let lock = self.lock.without(package);
        let pending = Pending {
            kind: package.kind,
            name: package.name.clone(),
            files: None,
            before: self.text.as_ref().map(|text| text.text().to_owned()),
            after: lock.text(),
        };
        pending.write(self.book)?;
        let library = self.book.library();
        let moved = match (content(self.book, package.kind, &package.name)?, package.kind.folder_kind()) {
            (None, _) => Ok(()),
            (Some(_), None) => library.remove_pack(&package.name),
            (Some(_), Some(kind)) => library.remove_added(kind, &package.name),
        };
        step("moved");
        self.conclude(moved, lock)
    }

    /// Writes the lockfile, if the folder is the new one.
    fn conclude(&mut self, moved: Result<()>, lock: PackageLock) -> Result<()> {
        let finished = pending::finish(self.book);
        moved?;
        finished?;
        self.text = text_of(self.book.library().root())?;
        self.lock = lock;
        Ok(())
    }
}

/// The files of an installed package; `None` if it is not installed.
fn content(book: &Book, kind: PackageKind, name: &str) -> Result<Option<ContentDigest>> {
    let library = book.library();
    let folder = match kind.folder_kind() {
        None => library.packs_folder().join(name),
        Some(kind) => library.added_folder(kind, name),
    };
    let shown = kind.folder(name);
    match folder.symlink_metadata() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(files::io_error(&shown, &error)),
        Ok(found) if found.is_dir() => ContentDigest::of(&folder, &shown, crate::lock::MAX_BYTES).map(Some),
        Ok(_) => {
            let diagnostic =
                Diagnostic::new(Code::PackagesDiffer, "a file or a link is where a package belongs");
            Err(Error::new(
                ErrorKind::Pack,
                diagnostic.file(shown).hint(Hint::run("remove it, then", "cuebook sync")),
            ))
        }
    }
}

/// The id of a pulled prompt here: the locked one, that of the user, or its own name. Other packages have their names in their files.
fn id_of(source: &Source, before: Option<&LockedPackage>, name: Option<&str>) -> Result<String> {
    let Source::Langfuse(langfuse) = source else { return Ok(String::new()) };
    let given = before.map(|before| before.name.clone()).or_else(|| name.map(str::to_owned));
    given.or_else(|| langfuse.id()).ok_or_else(|| {
        let hint = Hint::run("choose an id", format!("cuebook pull {source} --as ID"));
        wrong(&source.to_string(), "has a name of which no id can be made", hint)
    })
}

fn exists(message: String, hint: Hint) -> Error {
    Error::new(ErrorKind::Pack, Diagnostic::new(Code::PackExists, message).hint(hint))
}

/// A point at which a process can die. A test lets it happen at each of them.
#[cfg(not(test))]
fn step(_: &str) {}

#[cfg(test)]
use tests::step;
