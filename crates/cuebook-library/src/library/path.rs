//! Prompts by their paths. Inside a place of the library a path means that place's candidate; elsewhere the folder around it is
//! a place of its own.

use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::root::{Root, RootKind};
use super::{Candidate, Found, Library, PROMPT_FILE, Reason, TEMPLATE_FILE, empty_folder, file_below};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::files;
use crate::prompt::{TEMPLATE, Traits};
use crate::source::Source;
use crate::trust;

impl Library {
    /// Reads a text file that a user or an editor names. It must be a plain file of limited size, and below the project no
    /// link may lead out of it.
    #[doc(hidden)]
    pub fn read_named(&self, path: &Path) -> Result<Arc<Source>> {
        let name = self.name(path);
        let absolute = files::absolute(path).map_err(|error| files::io_error(&name, &error))?;
        let (absolute, limit) = (normalize_path(&absolute), self.file_limit()?);
        match absolute.starts_with(&self.root) {
            true => files::read_text_inside(&self.root, &absolute, &name, limit),
            false => files::read_text(&absolute, &name, limit),
        }
    }

    /// A prompt by its path. Inside a place of the library it is that place's candidate; elsewhere its folder's parent is
    /// a place of its own.
    pub(super) fn at_path(&self, path: &Path) -> Result<Found> {
        let absolute =
            files::absolute(path).map_err(|error| files::io_error(&path.to_string_lossy(), &error))?;
        let absolute = normalize_path(&absolute);
        let name = self.name(&absolute);
        let (is_file, is_dir) = match std::fs::metadata(&absolute) {
            Ok(metadata) => (metadata.is_file(), metadata.is_dir()),
            // An editor may have a new file open that it has not saved yet.
            Err(_) if files::is_unsaved(&absolute) => (true, false),
            Err(_) if files::has_unsaved(&absolute) => (false, true),
            // The target of a link is another matter than a path that does not exist.
            Err(error)
                if error.kind() == std::io::ErrorKind::NotFound && absolute.symlink_metadata().is_err() =>
            {
                return Err(self.no_path(path, &name));
            }
            Err(error) => return Err(files::io_error(&name, &error)),
        };
        if is_file && let Some(found) = self.directive_file(&absolute)? {
            return Ok(found);
        }
        let (folder, file) = if is_dir {
            (absolute.clone(), None)
        } else {
            let parent = absolute.parent().unwrap_or(Path::new("/")).to_owned();
            (parent, absolute.file_name().map(|file| file.to_string_lossy().into_owned()))
        };
        if let Some(file) = file.as_deref() {
            if let Some((id, dialect)) = self.claims.of_file(file) {
                return self.file_at(&folder, file, id, dialect);
            }
            let id = folder.file_name().and_then(|id| id.to_str());
            if let (Some(id), Some(dialect)) = (id, self.claims.in_folder(file)) {
                return self.file_at(&folder, file, id, dialect);
            }
        }
        // `greeting/template.md` and `greeting/prompt.py` mean the prompt `greeting`.
        let file = file.filter(|file| file != TEMPLATE_FILE && file != PROMPT_FILE);
        let (Some(parent), Some(entry)) = (folder.parent(), folder.file_name()) else {
            return Err(empty_folder(&name));
        };
        let entry = entry.to_string_lossy().into_owned();
        let root = match self.roots()?.into_iter().find(|root| root.folder() == Some(parent)) {
            Some(root) => root,
            None => Arc::new(self.given(parent, &entry)),
        };
        let id = match &file {
            Some(file) => file.split('.').next().unwrap_or(file).to_owned(),
            None => entry.clone(),
        };
        let candidate = match &file {
            Some(file) => Candidate {
                source: root.file_name(&format!("{entry}/{file}")),
                version: None,
                dialect: &TEMPLATE,
                pack_id: root.pack_id().map(str::to_owned),
                has_prompt_py: false,
                has_template: true,
                shadowed_by: None,
                template_file: Some(file.clone()),
                root,
                entry,
            },
            None => self.only_one_below(&root, &entry, &name)?,
        };
        Ok(Found { id, candidate, reason: Reason::Given })
    }

    /// The prompt that a folder holds. With several prompts in it, it is not clear which one is meant.
    fn only_one_below(&self, root: &Arc<Root>, entry: &str, name: &str) -> Result<Candidate> {
        let mut inside = self.candidates_below(root, entry)?;
        inside.retain(|candidate| candidate.entry == entry);
        match inside.len() {
            0 => Err(empty_folder(name)),
            1 => Ok(inside.swap_remove(0)),
            _ => {
                let files: Vec<&str> = inside
                    .iter()
                    .map(|candidate| candidate.template_file.as_deref().unwrap_or(TEMPLATE_FILE))
                    .collect();
                let held: Vec<&str> = files
                    .iter()
                    .map(|file| if *file == TEMPLATE_FILE { "a template" } else { file })
                    .collect();
                let message = format!("the folder has {}", held.join(" and "));
                let paths: Vec<String> = files.iter().map(|file| format!("{name}/{file}")).collect();
                let hint = format!("name one of them: {}", paths.join(" or "));
                let diagnostic = Diagnostic::new(Code::PromptConflict, message).file(name).hint(hint);
                Err(Error::new(ErrorKind::PromptConflict, diagnostic))
            }
        }
    }

    /// A file that is a prompt by itself, by its folder and name. In a place of the library it is that place's candidate;
    /// elsewhere its folder is a place of its own.
    fn file_at(&self, folder: &Path, file: &str, id: &str, dialect: &'static Traits) -> Result<Found> {
        let id = id.to_owned();
        let roots = self.roots()?;
        let is_place = |wanted: Option<&Path>| {
            roots.iter().find(|root| wanted.is_some() && root.folder() == wanted).cloned()
        };
        let own_folder = folder.file_name().is_some_and(|name| name.to_string_lossy() == id);
        let (root, entry) = match (is_place(Some(folder)), is_place(folder.parent().filter(|_| own_folder))) {
            (Some(root), _) => (root, String::new()),
            (None, Some(root)) => (root, id.clone()),
            (None, None) => (Arc::new(self.given(folder, "")), String::new()),
        };
        let candidate = file_below(&root, &entry, file, dialect)
            .ok_or_else(|| files::io_error(&root.file_name(file), &std::io::ErrorKind::NotFound.into()))?;
        Ok(Found { id, candidate, reason: Reason::Given })
    }

    /// The place around a prompt that was given by its path. Its links may lead anywhere in the project, or else in that place;
    /// but never in a folder that holds the user's keys.
    fn given(&self, folder: &Path, entry: &str) -> Root {
        let root = Root::on_disk(RootKind::Given, self.name(folder), folder.to_owned());
        let is_safe = |folder: &Path| !trust::holds_secrets(self.spaces(), folder);
        if folder.starts_with(&self.root) && is_safe(&self.root) {
            return root.inside(&self.root);
        }
        if entry.is_empty() || is_safe(folder) { root } else { root.inside(&folder.join(entry)) }
    }

    /// Whether what was given is a path rather than an id.
    pub(super) fn as_path(&self, wanted: &str) -> Option<PathBuf> {
        let is_path = wanted.contains(['/', '\\']) || wanted == "." || wanted == "..";
        let is_path = is_path || wanted.ends_with(".md") || self.claims.ends(wanted);
        is_path.then(|| PathBuf::from(wanted))
    }

    /// The error for a path that leads to nothing. Its first part may be an id, which needs no path.
    fn no_path(&self, path: &Path, name: &str) -> Error {
        let id = path.components().next().map(|part| part.as_os_str().to_string_lossy().into_owned());
        let error = files::not_there(path, name);
        if let Some(hint) = self.near_directive(path) {
            return Error::new(error.kind(), error.diagnostic().clone().hint(hint));
        }
        match id.filter(|id| self.search(id).is_ok_and(|candidates| !candidates.is_empty())) {
            Some(id) => {
                let hint = format!("`{id}` is a prompt id: use it without a path");
                Error::new(error.kind(), error.diagnostic().clone().hint(hint))
            }
            None => error,
        }
    }
}

/// Removes `.` and `..` by name; links are followed by the file system when the path is used.
fn normalize_path(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            other => normal.push(other),
        }
    }
    normal
}
