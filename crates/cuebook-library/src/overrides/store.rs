//! Where overrides are kept: a folder with one file per prompt and tag.
//!
//! Every write is made under the lock of its file, and whole or not at all, so that processes that write at the same time
//! lose nothing. Reading needs no lock. A name that leads out of the folder, and a link that does, are refused before
//! anything is touched.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use crate::limits::FILE_BYTES;
use crate::sha256::{Sha256, hex};
use indexmap::IndexMap;

use super::descriptor::Descriptor;
use super::entry::{Override, Overrides, SectionOverride, TaskExampleChange, ToolOverride};
use super::file;
use super::names::Names;
use super::resolve::{Resolved, Stale, Target, fit};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity};
use crate::files::{self, Lock, Stamp};
use crate::json::quoted;
use crate::source::Source;

/// Where a project keeps its overrides.
const OURS: &str = ".cuebook/overrides";
/// Where WINK does.
const WINK: &str = ".weakincentives/prompts/overrides";

/// Files whose contents are remembered.
const MAX_REMEMBERED: usize = 1000;

/// A folder with overrides.
#[derive(Debug)]
pub struct Store {
    root: PathBuf,
    /// What names of files are relative to in messages.
    base: PathBuf,
    limit: u64,
    read: Mutex<HashMap<PathBuf, CachedOverrides>>,
}

/// What was read from a file, with the stamp that the file had before.
type CachedOverrides = (Option<Stamp>, Arc<Overrides>);

/// What the author wrote, for [`Store::seed`].
#[derive(Debug, Clone, Default)]
pub struct Originals {
    /// The templates of sections, by path.
    pub sections: IndexMap<Vec<String>, String>,
    /// The descriptions of tools and of their parameters, by name.
    pub tools: IndexMap<String, (String, IndexMap<String, String>)>,
}

/// A file of a store, for a list.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct OverrideFile {
    /// Where it lies.
    pub path: PathBuf,
    /// The name for people.
    pub name: String,
    /// The namespace, as its folders say.
    pub ns: String,
    /// The key, as its folder says.
    pub key: String,
    /// The tag, as its name says.
    pub tag: String,
    /// When it was changed.
    pub modified: Option<SystemTime>,
    /// The hash of its bytes; `None` if it cannot be read.
    pub sha256: Option<String>,
    /// What it holds, or why it cannot be used.
    pub counts: Result<Counts>,
}

/// How many overrides a file holds, fitting or not.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Of sections.
    pub sections: usize,
    /// Of tools.
    pub tools: usize,
    /// Of examples of tasks.
    pub task_examples: usize,
}

impl Store {
    /// The store in exactly this folder, which need not exist yet.
    pub fn open(root: impl Into<PathBuf>) -> Store {
        Store::below(PathBuf::new(), root.into())
    }

    /// The store of a project: `.cuebook/overrides`. A project that has none, and has the folder in which WINK keeps its
    /// overrides, uses that one, so that both see the same. If it has both, it is ambiguous.
    pub fn of_project(project: &Path) -> Result<Store> {
        let (ours, wink) = (project.join(OURS), project.join(WINK));
        let is_there = |path: &Path, name: &str| {
            files::look(path).map(|found| found.is_some()).map_err(|error| files::io_error(name, &error))
        };
        let root = match (is_there(&ours, OURS)?, is_there(&wink, WINK)?) {
            (true, true) => {
                let message = format!("the project has overrides in both {OURS} and {WINK}");
                let hint = format!("move them to one folder; WINK reads only {WINK}");
                return Err(refused(Diagnostic::new(Code::BadOverride, message).file(OURS).hint(hint)));
            }
            (false, true) => wink,
            _ => ours,
        };
        Ok(Store::below(project.to_owned(), root))
    }

    fn below(base: PathBuf, root: PathBuf) -> Store {
        Store { root, base, limit: FILE_BYTES, read: Mutex::default() }
    }

    /// The same store with another limit for the size of a file (4 MiB by default).
    #[must_use]
    pub fn with_limit(mut self, bytes: u64) -> Store {
        self.limit = bytes;
        self
    }

    /// The folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The overrides that fit a prompt, and word of those that do not. Nothing at all if there is no file.
    pub fn resolve(&self, descriptor: &Descriptor, tag: &str) -> Result<Resolved> {
        let names = Names::new(&descriptor.ns, &descriptor.key, tag)?;
        Ok(self.overrides(&names)?.map(|overrides| fit(&overrides, descriptor)).unwrap_or_default())
    }

    /// Everything that a file holds, fitting or not; `None` if there is no file.
    pub fn read(&self, ns: &str, key: &str, tag: &str) -> Result<Option<Arc<Overrides>>> {
        self.overrides(&Names::new(ns, key, tag)?)
    }

    /// Writes what the author wrote into a new file, as a start for changes. If there is a file, it stays,
    /// and it is an error if nothing of it fits.
    pub fn seed(&self, descriptor: &Descriptor, tag: &str, originals: &Originals) -> Result<Resolved> {
        let names = Names::new(&descriptor.ns, &descriptor.key, tag)?;
        let (path, name) = self.file(&names)?;
        files::update(&path, &name, self.limit, |text| {
            if let Some(text) = text {
                let resolved = fit(&file::read(&text, &names)?, descriptor);
                return match resolved.stale.first() {
                    Some(stale) if resolved.is_empty() => Err(nothing_fits(&name, &names, stale)),
                    _ => Ok((None, resolved)),
                };
            }
            let overrides = seeded(descriptor, &names, originals)?;
            let bytes = self.bytes(&overrides, &names, &name)?;
            Ok((Some(bytes), fit(&overrides, descriptor)))
        })
    }

    /// Writes these overrides and no others. All of them must fit.
    pub fn upsert(&self, descriptor: &Descriptor, overrides: &Overrides) -> Result<Resolved> {
        let names = Names::new(&descriptor.ns, &descriptor.key, &overrides.tag)?;
        for (what, theirs, ours) in
            [("namespace", &overrides.ns, &names.ns), ("key", &overrides.key, &names.key)]
        {
            if theirs.trim() != ours {
                let message = format!(
                    "the overrides are for the {what} {}, but the prompt has the {what} {}",
                    quoted(theirs),
                    quoted(ours)
                );
                let hint = "use the overrides of this prompt";
                return Err(refused(Diagnostic::new(Code::BadOverride, message).hint(hint)));
            }
        }
        let mut overrides = overrides.clone();
        (overrides.ns, overrides.key, overrides.tag) =
            (names.ns.clone(), names.key.clone(), names.tag.clone());
        let (path, name) = self.file(&names)?;
        let resolved = fitting(&overrides, descriptor)?;
        let bytes = self.bytes(&overrides, &names, &name)?;
        // What stands in the file is not looked at: this is also the way out of one that is broken.
        Lock::acquire(&path, &name)?.write(&name, &bytes)?;
        Ok(resolved)
    }

    /// Stores one override beside those that are there. It must fit; those that no longer do stay in the file. An override of
    /// the same section, tool or example is replaced, and an example that is added is added to others.
    pub fn store(&self, descriptor: &Descriptor, tag: &str, new: impl Into<Override>) -> Result<Resolved> {
        let new = new.into();
        let names = Names::new(&descriptor.ns, &descriptor.key, tag)?;
        let (path, name) = self.file(&names)?;
        let mut alone = empty(&names);
        insert(&mut alone, new.clone());
        let resolved = fitting(&alone, descriptor)?;
        // The position of an example of a task is where it stands now.
        let new = match (new, resolved.task_examples.into_iter().next()) {
            (Override::TaskExample(_), Some(example)) => Override::TaskExample(example),
            (new, _) => new,
        };
        files::update(&path, &name, self.limit, |text| {
            let mut overrides = match text {
                Some(text) => file::read(&text, &names)?,
                None => empty(&names),
            };
            insert(&mut overrides, new);
            let bytes = self.bytes(&overrides, &names, &name)?;
            Ok((Some(bytes), fit(&overrides, descriptor)))
        })
    }

    /// Deletes the overrides of a prompt under a tag; whether there were any.
    pub fn delete(&self, ns: &str, key: &str, tag: &str) -> Result<bool> {
        let (path, name) = self.file(&Names::new(ns, key, tag)?)?;
        // Where there is no folder there is nothing to lock, and none is made for it.
        if !path.parent().is_some_and(Path::is_dir) {
            return Ok(false);
        }
        let _lock = Lock::acquire(&path, &name)?;
        match fs::remove_file(&path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(files::write_error(&name, &error)),
        }
        let folder = path.parent().unwrap_or(&self.root);
        files::sync_folder(folder).map_err(|error| files::write_error(&name, &error))?;
        Ok(true)
    }

    /// Every file of the store, in order. One that is broken is in the list, with what is wrong.
    pub fn list(&self) -> Result<Vec<OverrideFile>> {
        let mut found = Vec::new();
        let mut open = vec![self.root.clone()];
        while let Some(folder) = open.pop() {
            let name = self.name(&folder);
            let entries = match fs::read_dir(&folder) {
                Ok(entries) => entries,
                Err(error) if error.kind() == io::ErrorKind::NotFound && folder == self.root => break,
                Err(error) => return Err(files::io_error(&name, &error)),
            };
            for entry in entries {
                let entry = entry.map_err(|error| files::io_error(&name, &error))?;
                let file_name = entry.file_name();
                let file_name = file_name.to_string_lossy();
                let kind = entry.file_type().map_err(|error| files::io_error(&name, &error))?;
                // Locks and files that are being written begin with a dot. Links to folders are not followed: they
                // could lead in a circle.
                if file_name.starts_with('.') {
                    continue;
                } else if kind.is_dir() {
                    open.push(entry.path());
                } else if file_name.ends_with(".json") {
                    found.push(self.describe(entry.path()));
                }
            }
        }
        found.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(found)
    }

    /// The tags under which a prompt has overrides, in order. Nothing is read, so a tag may stand for a file that is broken.
    pub fn tags(&self, ns: &str, key: &str) -> Result<Vec<String>> {
        let (path, _) = self.file(&Names::new(ns, key, super::DEFAULT_TAG)?)?;
        let folder = path.parent().unwrap_or(&self.root);
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
                return Ok(Vec::new());
            }
            Err(error) => return Err(files::io_error(&self.name(folder), &error)),
        };
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let tag =
            |name: String| Some(name.strip_suffix(".json").filter(|tag| !tag.starts_with('.'))?.to_owned());
        let mut tags: Vec<String> = names.filter_map(tag).collect();
        tags.sort_unstable();
        Ok(tags)
    }

    fn describe(&self, path: PathBuf) -> OverrideFile {
        let name = self.name(&path);
        let below = path.strip_prefix(&self.root).unwrap_or(&path).with_extension("");
        let mut parts: Vec<String> = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        let tag = parts.pop().unwrap_or_default();
        let key = parts.pop().unwrap_or_default();
        let ns = parts.join("/");
        let bytes = self.inside(&path).and_then(|()| files::read_bytes(&path, &name, self.limit));
        let sha256 = bytes.as_ref().ok().map(|bytes| hex(&Sha256::digest(bytes)));
        let counts = bytes.and_then(|bytes| {
            let source = files::source_from_bytes(bytes, &name)?;
            let names = Names::new(&ns, &key, &tag).map_err(|_| {
                let message = "no prompt uses this file: overrides belong in NAMESPACE/KEY/TAG.json";
                let hint = "move it to the folder of its prompt, or delete it";
                refused(Diagnostic::new(Code::BadOverride, message).file(&name).hint(hint))
            })?;
            let overrides = file::read(&source, &names)?;
            Ok(Counts {
                sections: overrides.sections.len(),
                tools: overrides.tools.len(),
                task_examples: overrides.task_examples.len(),
            })
        });
        let modified = fs::metadata(&path).and_then(|metadata| metadata.modified()).ok();
        OverrideFile { path, name, ns, key, tag, modified, sha256, counts }
    }

    /// What the file says now. It is read again only if it may have changed: a render asks each time.
    fn overrides(&self, names: &Names) -> Result<Option<Arc<Overrides>>> {
        let path = names.file(&self.root);
        let name = self.name(&path);
        let found = files::look(&path).map_err(|error| files::io_error(&name, &error))?;
        let Some(metadata) = found else { return Ok(None) };
        let now = Some(Stamp::from_metadata(&metadata));
        {
            let remembered = self.read.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some((earlier, overrides)) = remembered.get(&path)
                && Stamp::proves_unchanged(&now, earlier)
            {
                return Ok(Some(overrides.clone()));
            }
        }
        self.inside(&path)?;
        let text = match files::read_text(&path, &name, self.limit) {
            Ok(text) => text,
            // It may have been deleted since.
            Err(error) => {
                return match files::look(&path) {
                    Ok(None) => Ok(None),
                    _ => Err(error),
                };
            }
        };
        let overrides = Arc::new(file::read(&text, names)?);
        let mut remembered = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(path, (now, overrides.clone()));
        Ok(Some(overrides))
    }

    /// The bytes of a file that holds these overrides, if it is one that can be read again.
    fn bytes(&self, overrides: &Overrides, names: &Names, name: &str) -> Result<Vec<u8>> {
        let text = file::write(overrides);
        if text.len() as u64 > self.limit {
            let message =
                format!("the overrides would need {} bytes, but the limit is {}", text.len(), self.limit);
            let hint = Hint::run(
                "override less, or raise `limits.file_size` in cuebook.toml, and grant it",
                "cuebook allow",
            );
            let diagnostic = Diagnostic::new(Code::FileTooLarge, message).file(name).hint(hint);
            return Err(Error::new(ErrorKind::Limit, diagnostic));
        }
        file::read(&Source::new(name, text.as_str()), names)?;
        Ok(text.into_bytes())
    }

    /// The path of a file and its name for people, if it lies inside.
    fn file(&self, names: &Names) -> Result<(PathBuf, String)> {
        let path = names.file(&self.root);
        self.inside(&path)?;
        let name = self.name(&path);
        Ok((path, name))
    }

    fn name(&self, path: &Path) -> String {
        files::display_name(&self.base, path)
    }

    /// Refuses a path that leads out of the store by a link. What is not there yet leads nowhere.
    fn inside(&self, path: &Path) -> Result<()> {
        if !self.base.as_os_str().is_empty() {
            files::stays_inside(&self.base, &self.root, &self.name(&self.root))?;
        }
        let Some(root) = real(&self.root).map_err(|error| files::io_error(&self.name(&self.root), &error))?
        else {
            return Ok(());
        };
        for part in path.ancestors().take_while(|part| *part != self.root) {
            match real(part).map_err(|error| files::io_error(&self.name(part), &error))? {
                None => {}
                Some(target) if target.starts_with(&root) => return Ok(()),
                Some(_) => {
                    let diagnostic =
                        Diagnostic::new(Code::BadOverride, "a link leads out of the overrides folder")
                            .file(self.name(part))
                            .hint("replace the link with the file or folder");
                    return Err(refused(diagnostic));
                }
            }
        }
        Ok(())
    }
}

/// Where a path leads by links; `None` if nothing is there.
fn real(path: &Path) -> io::Result<Option<PathBuf>> {
    match fs::canonicalize(path) {
        Ok(path) => Ok(Some(path)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn refused(diagnostic: Diagnostic) -> Error {
    Error::new(ErrorKind::Overrides, diagnostic)
}

fn empty(names: &Names) -> Overrides {
    Overrides { ns: names.ns.clone(), key: names.key.clone(), tag: names.tag.clone(), ..Overrides::default() }
}

/// Puts an override in the place of the one for the same original, or at the end.
fn insert(overrides: &mut Overrides, new: Override) {
    fn put<T>(list: &mut Vec<T>, new: T, is_same: impl Fn(&T) -> bool) {
        match list.iter_mut().find(|old| is_same(old)) {
            Some(old) => *old = new,
            None => list.push(new),
        }
    }
    match new {
        Override::Section(new) => {
            let path = new.path.clone();
            put(&mut overrides.sections, new, |old| old.path == path);
        }
        Override::Tool(new) => {
            let name = new.name.clone();
            put(&mut overrides.tools, new, |old| old.name == name);
        }
        Override::TaskExample(new) if matches!(new.change, TaskExampleChange::Append { .. }) => {
            overrides.task_examples.push(new);
        }
        Override::TaskExample(new) => {
            let path = new.path.clone();
            put(&mut overrides.task_examples, new, |old| {
                old.path == path && !matches!(old.change, TaskExampleChange::Append { .. })
            });
        }
    }
}

/// Overrides that say what the author said.
fn seeded(descriptor: &Descriptor, names: &Names, originals: &Originals) -> Result<Overrides> {
    let missing = |what: Target| {
        let message = format!("{what} has no original");
        refused(Diagnostic::new(Code::BadOverride, message).hint("pass the originals of the same prompt"))
    };
    let mut overrides = empty(names);
    for section in &descriptor.sections {
        let body = originals.sections.get(&section.path);
        let body = body.ok_or_else(|| missing(Target::Section(section.path.clone())))?;
        overrides.sections.push(SectionOverride {
            path: section.path.clone(),
            expected_hash: section.content_hash.clone(),
            body: Some(body.clone()),
            ..SectionOverride::default()
        });
    }
    for tool in &descriptor.tools {
        let original = originals.tools.get(&tool.name);
        let (description, param_descriptions) =
            original.ok_or_else(|| missing(Target::Tool(tool.name.clone())))?;
        overrides.tools.push(ToolOverride {
            name: tool.name.clone(),
            expected_contract_hash: tool.contract_hash.clone(),
            description: Some(description.clone()),
            param_descriptions: param_descriptions.clone(),
            ..ToolOverride::default()
        });
    }
    Ok(overrides)
}

/// The overrides, if all of them fit and none stands twice.
fn fitting(overrides: &Overrides, descriptor: &Descriptor) -> Result<Resolved> {
    let resolved = fit(overrides, descriptor);
    let mut wrong: Vec<Diagnostic> = resolved
        .stale
        .iter()
        .map(|stale| {
            let mut diagnostic = stale.diagnostic().severity(Severity::Error);
            diagnostic.code = Code::BadOverride;
            if let (Some(expected), Some(found)) = (&stale.expected, &stale.found) {
                diagnostic.message =
                    format!("{} has the hash {found}, but its override was made for {expected}", stale.what);
                diagnostic.hint = Some("make the override for the current text".into());
            }
            diagnostic
        })
        .collect();
    let (mut paths, mut names) = (HashSet::new(), HashSet::new());
    let is_once = overrides.sections.iter().all(|section| paths.insert(&section.path))
        && overrides.tools.iter().all(|tool| names.insert(&tool.name));
    if !is_once {
        let message = "two overrides are for the same section or tool";
        wrong.push(Diagnostic::new(Code::BadOverride, message).hint("merge them"));
    }
    if wrong.is_empty() { Ok(resolved) } else { Err(Error::all(ErrorKind::Overrides, wrong)) }
}

fn nothing_fits(name: &str, names: &Names, stale: &Stale) -> Error {
    let message = "all overrides in the file are stale";
    let hint = format!("check the file; to start again, delete it, or seed another tag than `{}`", names.tag);
    let diagnostic = Diagnostic::new(Code::BadOverride, message).file(name).hint(hint);
    refused(diagnostic).and(stale.diagnostic())
}
