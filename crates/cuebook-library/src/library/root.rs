//! The places of a library: folders that hold prompts, on disk and inside the binary.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::id::why_no_id;
use super::{Claims, PROMPT_FILE, PROMPTY_END, TEMPLATE_FILE, builtin};
use crate::error::{Code, Diagnostic, Result, Severity};
use crate::files;
use crate::items::{self, ItemType, Space, SpaceKind};
use crate::source::Source;

/// What kind of place it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum RootKind {
    /// `user_data/shared/prompts`
    Shared,
    /// `prompts`, for people who want no ceremony.
    Plain,
    /// A folder that `cuebook.toml` names.
    Configured,
    /// `user_data/packs/<id>/prompts`
    Pack(String),
    /// `ecosystem/default/prompts` on disk.
    Ecosystem,
    /// `ecosystem/default/prompts` inside the binary.
    Builtin,
    /// The directives of a space, on disk or inside the binary.
    Space(SpaceKind),
    /// The folder around a prompt that was given by its path.
    Given,
}

/// A folder that holds prompts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// What kind of place it is.
    pub kind: RootKind,
    /// Its name in a candidate's source, as in `user_data/shared/prompts`.
    pub name: String,
    folder: PathBuf,
    /// The folder that no file of this place may lie outside of, also not by way of links.
    bounds: Option<PathBuf>,
}

/// What lies directly in a place, looked at once.
#[derive(Debug)]
pub(crate) struct Listing {
    /// The ids that can be offered there, sorted.
    pub(crate) ids: Vec<String>,
    /// The names of all files and folders; `None` if the place is not on disk.
    names: Option<HashSet<String>>,
}

impl Listing {
    /// Whether something of this name can be there.
    pub(crate) fn may_have(&self, name: &str) -> bool {
        self.names.as_ref().is_none_or(|names| names.contains(name))
    }
}

impl Root {
    /// A folder with prompts. No link in it may lead out of it: it could show a file of the user's to a model.
    pub fn on_disk(kind: RootKind, name: impl Into<String>, folder: PathBuf) -> Root {
        Root { kind, name: name.into(), bounds: Some(folder.clone()), folder }
    }

    /// The same folder, whose links may lead anywhere in another one that holds it.
    pub(crate) fn inside(mut self, bounds: &Path) -> Root {
        self.bounds = Some(bounds.to_owned());
        self
    }

    /// A folder of a pack.
    pub(crate) fn of_pack(id: &str, packs: &Path, packs_name: &str, below: Option<&str>) -> Root {
        let pack = packs.join(id);
        let (name, folder) = match below {
            Some(below) => (format!("{packs_name}/{id}/{below}"), pack.join(below)),
            None => (format!("{packs_name}/{id}"), pack.clone()),
        };
        Root { kind: RootKind::Pack(id.to_owned()), name, folder, bounds: Some(pack) }
    }

    pub(crate) fn builtin() -> Root {
        let name = "ecosystem/default/prompts".into();
        Root { kind: RootKind::Builtin, name, folder: PathBuf::new(), bounds: None }
    }

    /// A folder of the user's. Its links are the user's choice.
    pub(crate) fn of_user(name: &str, folder: PathBuf) -> Root {
        Root { kind: RootKind::Configured, name: format!("~/{name}"), bounds: None, folder }
    }

    /// The directives of a space.
    pub(crate) fn of_space(space: &Space) -> Root {
        let below = ItemType::Directive.folder();
        let folder = space.folder().map(|folder| folder.join(below)).unwrap_or_default();
        let name = format!("{}/{below}", space.name());
        // Links of the user's own space are the user's choice.
        let project = space.folder().filter(|_| space.kind() == SpaceKind::Project).and_then(Path::parent);
        Root { kind: RootKind::Space(space.kind()), name, bounds: project.map(Path::to_owned), folder }
    }

    /// A file that is part of the program.
    fn embedded(&self, relative: &str) -> Option<&'static str> {
        match self.kind {
            RootKind::Builtin => builtin::file(relative),
            RootKind::Space(SpaceKind::System) => {
                let bytes = items::embedded(&format!("{}/{relative}", ItemType::Directive.folder()))?;
                std::str::from_utf8(bytes).ok()
            }
            _ => None,
        }
    }

    /// The pack that it belongs to.
    pub fn pack_id(&self) -> Option<&str> {
        match &self.kind {
            RootKind::Pack(id) => Some(id),
            _ => None,
        }
    }

    /// The folder on disk.
    pub fn folder(&self) -> Option<&Path> {
        let embedded = matches!(self.kind, RootKind::Builtin | RootKind::Space(SpaceKind::System));
        (!embedded).then_some(self.folder.as_path())
    }

    /// The path on disk of something below.
    pub fn path(&self, relative: &str) -> Option<PathBuf> {
        self.folder().map(|folder| folder.join(relative))
    }

    /// Whether there is a file of this name below.
    pub(crate) fn has_file(&self, relative: &str) -> bool {
        match self.path(relative) {
            Some(path) => path.is_file() || files::is_unsaved(&path),
            None => self.embedded(relative).is_some(),
        }
    }

    /// Whether something is there that cannot be read as a file (no right to, a circle of links, a pipe), as opposed to
    /// nothing.
    #[doc(hidden)]
    pub fn trouble(&self, relative: &str) -> Option<io::Error> {
        let path = self.path(relative)?;
        match files::look(&path) {
            Err(error) => Some(error),
            Ok(None) => None,
            // A folder is no file of that name, unless its name is one that only files have.
            Ok(Some(metadata)) if metadata.is_dir() => {
                let for_files = [".md", ".py", PROMPTY_END].iter().any(|end| relative.ends_with(end));
                for_files.then(|| io::ErrorKind::IsADirectory.into())
            }
            Ok(Some(metadata)) => files::not_a_file(&metadata),
        }
    }

    /// Whether there is a folder of this name below, or something that cannot be looked at. An error if nothing below can be.
    pub(crate) fn may_have_folder(&self, relative: &str) -> Result<bool> {
        let Some(path) = self.path(relative) else { return Ok(builtin::has_folder(relative)) };
        match files::look(&path) {
            Ok(found) => Ok(found.map_or_else(|| files::has_unsaved(&path), |found| found.is_dir())),
            Err(_) => match self.closed("") {
                Some(error) => Err(files::closed_folder(self.folder().unwrap_or(&path), &self.name, &error)),
                None => Ok(true),
            },
        }
    }

    /// Why nothing in a folder below can be looked at, if that is so: nothing in it may count as missing or as there.
    pub fn closed(&self, relative: &str) -> Option<io::Error> {
        let inside = self.path(relative)?.join(".");
        match fs::metadata(inside) {
            Ok(_) => None,
            Err(error) if files::is_absent(&error) => None,
            Err(error) => Some(error),
        }
    }

    pub(crate) fn has_folder(&self, relative: &str) -> bool {
        match self.path(relative) {
            Some(path) => path.is_dir() || files::has_unsaved(&path),
            None => builtin::has_folder(relative),
        }
    }

    /// The name of a file below, for people and for origins.
    pub fn file_name(&self, relative: &str) -> String {
        if self.name.is_empty() || self.name == "." {
            relative.to_owned()
        } else if self.name.ends_with('/') {
            format!("{}{relative}", self.name)
        } else {
            format!("{}/{relative}", self.name)
        }
    }

    /// Reads a file by its path, which lies below.
    pub fn read_at(&self, path: &Path, name: &str, limit: u64) -> Result<Arc<Source>> {
        match &self.bounds {
            Some(bounds) => files::read_text_inside(bounds, path, name, limit),
            None => files::read_text(path, name, limit),
        }
    }

    /// Reads a file below.
    pub fn read(&self, relative: &str, limit: u64) -> Result<Arc<Source>> {
        let name = self.file_name(relative);
        match self.path(relative) {
            Some(path) => self.read_at(&path, &name, limit),
            None => match self.embedded(relative) {
                Some(text) => Ok(Source::new(name, text)),
                None => Err(files::io_error(&name, &io::ErrorKind::NotFound.into())),
            },
        }
    }

    /// The names of the folders directly below, sorted; hidden ones are left out.
    pub(crate) fn folders(&self) -> Result<Vec<String>> {
        self.entries(|name, is_file| (!is_file).then(|| name.to_owned()))
    }

    /// The ids that can be offered here, sorted: the names of folders, and of files that are prompts without their end.
    pub(crate) fn ids(&self, claims: &Claims) -> Result<Vec<String>> {
        Ok(self.listing(claims)?.ids)
    }

    /// What lies directly below.
    pub(crate) fn listing(&self, claims: &Claims) -> Result<Listing> {
        let mut names = HashSet::new();
        let mut ids = self.entries(|name, is_file| {
            names.insert(name.to_owned());
            match claims.of_file(name) {
                Some((id, _)) => Some(id.to_owned()),
                None => (!is_file).then(|| name.to_owned()),
            }
        })?;
        ids.dedup();
        ids.retain(|id| why_no_id(id).is_none());
        Ok(Listing { ids, names: self.folder().map(|_| names) })
    }

    /// Prompts whose names are not ids, so that they cannot be asked for.
    pub fn misnamed(&self, claims: &Claims) -> Vec<Diagnostic> {
        let entries = self.folder().and_then(|folder| fs::read_dir(folder).ok());
        let mut found: Vec<Diagnostic> = entries
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                let (path, name) = (entry.path(), entry.file_name());
                let lossy = name.to_string_lossy();
                let whole = claims.of_file(&lossy);
                // Nearly every name can be asked for, as a file's and as a folder's, and then it is not looked at.
                let is_fine = |id: &str| name.to_str().is_some() && why_no_id(id).is_none();
                if is_fine(&lossy) && whole.is_none_or(|(id, _)| is_fine(id)) {
                    return None;
                }
                let id = match whole.filter(|_| path.is_file()) {
                    Some((id, _)) => id,
                    None if [PROMPT_FILE, TEMPLATE_FILE].iter().any(|file| path.join(file).is_file()) => {
                        &lossy
                    }
                    None => return None,
                };
                let why = match name.to_str() {
                    // What begins with a dot is hidden on purpose.
                    _ if lossy.starts_with('.') => return None,
                    Some(_) => why_no_id(id)?,
                    None => "its name is not UTF-8",
                };
                let message = format!("this prompt cannot be used: {why}");
                let diagnostic = Diagnostic::new(Code::InvalidId, message).severity(Severity::Warning);
                Some(diagnostic.file(self.file_name(&lossy)).hint("rename it"))
            })
            .collect();
        found.sort_by(|one, other| one.file.cmp(&other.file));
        found
    }

    fn entries(&self, mut wanted: impl FnMut(&str, bool) -> Option<String>) -> Result<Vec<String>> {
        let Some(folder) = self.folder() else { return Ok(builtin::folders()) };
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) if files::is_absent(&error) && error.kind() != io::ErrorKind::NotADirectory => {
                let unsaved =
                    files::unsaved_in(folder).into_iter().filter(|(name, _)| !name.starts_with('.'));
                return Ok(unsaved.filter_map(|(name, is_file)| wanted(&name, is_file)).collect());
            }
            Err(error) => return Err(files::closed_folder(folder, &self.name, &error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| files::io_error(&self.name, &error))?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            // A link may lead to a folder, so links are looked at; plain files are not.
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            if !name.starts_with('.') {
                names.extend(wanted(&name, is_file));
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}
