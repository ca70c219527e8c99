//! Finds the templates that a template includes, extends or imports.
//!
//! A pack's own files come first for the pack. Then, for everybody: a recorded choice, `user_data/shared/prompts`,
//! `prompts`, the configured folders, `ecosystem/default` and the built-in files, and last the other packs, where exactly
//! one must have the file. So a user's partial stands in for a built-in one, and no pack can stand in for anything of the
//! user's or of the system's unless the user has chosen it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};

use super::root::{Root, RootKind};
use super::{Candidate, Defaults, Found, Library};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, nearest};
use crate::files::Stamp;
use crate::source::Source;
use crate::template::jinja::Loader;

/// A file that a render depends on: it was read, or it was looked for and was not there.
#[derive(Debug)]
pub(crate) struct Dependency {
    path: PathBuf,
    state: Mutex<(Option<Stamp>, Option<[u8; 32]>)>,
}

impl Dependency {
    /// Stamps the file before it is read, so that a change in between is noticed.
    fn new(path: PathBuf) -> Dependency {
        let stamp = Stamp::of(&path);
        let digest = stamp.as_ref().and_then(|_| digest(&path));
        Dependency { path, state: Mutex::new((stamp, digest)) }
    }

    /// Whether the file is as it was. A stamp that proves nothing is followed by a look at the content.
    pub(crate) fn is_unchanged(&self) -> bool {
        let now = Stamp::of(&self.path);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if Stamp::proves_unchanged(&now, &state.0) {
            return true;
        }
        let content = now.as_ref().and_then(|_| digest(&self.path));
        if now.is_some() != state.0.is_some() || content.is_none() || content != state.1 {
            return false;
        }
        state.0 = now;
        true
    }
}

fn digest(path: &std::path::Path) -> Option<[u8; 32]> {
    Some(Sha256::digest(std::fs::read(path).ok()?).into())
}

/// Loads templates for one prompt in one language, and remembers what it looked at.
pub(crate) struct LibraryLoader {
    library: Arc<Library>,
    /// The place of the prompt that is rendered.
    own: Arc<Root>,
    language: String,
    limit: u64,
    /// The place of each loaded template, by its source's name.
    places: Mutex<Vec<(String, Arc<Root>)>>,
    dependencies: Mutex<Vec<Dependency>>,
    /// Prompts that were found by their id on the way, and the source that was chosen.
    choices: Mutex<Vec<(String, String)>>,
}

impl LibraryLoader {
    pub(crate) fn new(library: Arc<Library>, own: Arc<Root>, language: &str, limit: u64) -> LibraryLoader {
        LibraryLoader {
            library,
            own,
            language: language.to_owned(),
            limit,
            places: Mutex::default(),
            dependencies: Mutex::default(),
            choices: Mutex::default(),
        }
    }

    /// Whether everything that was looked at is as it was.
    pub(crate) fn is_unchanged(&self, defaults: &Arc<Defaults>) -> bool {
        let unchanged = lock(&self.dependencies).iter().all(Dependency::is_unchanged);
        unchanged
            && self.library.defaults().is_ok_and(|now| Arc::ptr_eq(&now, defaults))
            && lock(&self.choices).iter().all(|(id, source)| {
                self.library.choose(id).is_ok_and(|found| found.candidate.source == *source)
            })
    }

    /// Notes a file that the prompt's definition was read from.
    pub(crate) fn depend_on(&self, path: PathBuf) {
        let mut dependencies = lock(&self.dependencies);
        if dependencies.iter().all(|known| known.path != path) {
            dependencies.push(Dependency::new(path));
        }
    }

    /// Finds a prompt by its id and notes the choice.
    pub(crate) fn choose(&self, id: &str) -> Result<Found> {
        let found = self.library.choose(id)?;
        lock(&self.choices).push((found.id.clone(), found.candidate.source.clone()));
        Ok(found)
    }

    /// Reads a file below a root in the variant for the language, if there is one.
    pub(crate) fn read_variant(&self, root: &Arc<Root>, relative: &str) -> Result<Option<Arc<Source>>> {
        for name in variants(relative, &self.language) {
            if let Some(path) = root.path(&name) {
                self.depend_on(path);
            }
            if root.has_file(&name) {
                let source = root.read(&name, self.limit)?;
                lock(&self.places).push((source.name().to_owned(), root.clone()));
                return Ok(Some(source));
            }
            if let Some(error) = root.trouble(&name) {
                return Err(crate::files::io_error(&root.file_name(&name), &error));
            }
        }
        Ok(None)
    }

    fn place_of(&self, parent: &str) -> Arc<Root> {
        let places = lock(&self.places);
        places
            .iter()
            .find(|(name, _)| name == parent)
            .map_or_else(|| self.own.clone(), |(_, root)| root.clone())
    }

    /// The prompt that the first part of a path names, if several places have one of that name.
    fn contested(&self, name: &str, roots: &[Arc<Root>]) -> Result<Option<(Candidate, String)>> {
        let Some((id, rest)) = name.split_once('/') else { return Ok(None) };
        let offers =
            roots.iter().filter(|root| self.library.candidate_below(root, id).is_some()).take(2).count();
        let recorded = self.library.resolutions()?.get(id).is_some();
        if offers < 2 && !recorded {
            return Ok(None);
        }
        let found = self.choose(id)?;
        Ok(Some((found.candidate, rest.to_owned())))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `template.md` in Brazilian Portuguese: `template.pt-br.md`, `template.pt.md`, `template.md`.
fn variants(relative: &str, language: &str) -> Vec<String> {
    let language = language.to_lowercase().replace('_', "-");
    let primary = language.split('-').next().unwrap_or_default();
    let mut names = Vec::new();
    if let Some(stem) = relative.strip_suffix(".md") {
        for tag in [language.as_str(), primary] {
            let name = format!("{stem}.{tag}.md");
            let plain =
                !tag.is_empty() && tag.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '-');
            if plain && !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.push(relative.to_owned());
    names
}

/// A path below a library: no `..`, not absolute, no backslash, no hidden part.
fn stays_inside(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('/')
        && !name.contains(['\\', '\0', ':'])
        && name.split('/').all(|part| !part.is_empty() && !part.starts_with('.'))
}

impl Loader for LibraryLoader {
    fn load(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>> {
        if !stays_inside(name) {
            return Ok(None);
        }
        let home = self.place_of(parent);
        if let RootKind::Pack(pack) = &home.kind {
            if let Some(source) = self.read_variant(&home, name)? {
                return Ok(Some(source));
            }
            // Partials may lie beside `prompts` as well.
            let folder = self.library.root().join(super::PACKS).join(pack);
            let top = Arc::new(Root::on_disk(home.kind.clone(), format!("{}/{pack}", super::PACKS), folder));
            if let Some(source) = self.read_variant(&top, name)? {
                return Ok(Some(source));
            }
        }
        let roots = self.library.roots()?;
        if let Some((candidate, rest)) = self.contested(name, &roots)? {
            return self.read_variant(&candidate.root, &candidate.file(&rest));
        }
        let (packs, others): (Vec<&Arc<Root>>, Vec<&Arc<Root>>) =
            roots.iter().partition(|root| root.pack_id().is_some());
        let given = (home.kind == RootKind::Given).then_some(&home);
        for root in given.into_iter().chain(others) {
            if let Some(source) = self.read_variant(root, name)? {
                return Ok(Some(source));
            }
        }
        let recorded = self.library.resolutions()?.get(name);
        let offering: Vec<&Arc<Root>> = packs.into_iter().filter(|root| root.has_file(name)).collect();
        match (offering.as_slice(), recorded) {
            ([], _) => Ok(None),
            ([root], _) => self.read_variant(root, name),
            (several, Some(choice)) if several.iter().any(|root| root.file_name(name) == choice.source) => {
                let chosen = several.iter().find(|root| root.file_name(name) == choice.source);
                chosen.map_or(Ok(None), |root| self.read_variant(root, name))
            }
            (several, _) => {
                let sources: Vec<String> = several.iter().map(|root| root.file_name(name)).collect();
                let message = format!("{} packs offer the template `{name}`", sources.len());
                let hint =
                    format!("copy the one that is meant to {}/{name}: {}", super::SHARED, sources.join(", "));
                let diagnostic = Diagnostic::new(Code::PromptConflict, message).hint(hint);
                Err(Error::new(ErrorKind::PromptConflict, diagnostic).with("candidates", sources))
            }
        }
    }

    fn suggestions(&self, name: &str) -> Vec<String> {
        let Ok(roots) = self.library.roots() else { return Vec::new() };
        let mut known: Vec<String> = super::builtin::paths().map(str::to_owned).collect();
        let (below, _) = split_path(name);
        for root in &roots {
            let Some(folder) = root.folder() else { continue };
            // Only the folder that the path itself names and the usual one are looked into: a library can be large.
            for below in [below, "partials"] {
                let Ok(entries) = std::fs::read_dir(folder.join(below)) else { continue };
                for entry in entries.flatten() {
                    let file = entry.file_name().to_string_lossy().into_owned();
                    known.push(if below.is_empty() { file } else { format!("{below}/{file}") });
                }
            }
        }
        known.retain(|path| path.ends_with(".md") && !path.ends_with(".ja.md") && stays_inside(path));
        nearest_paths(name, &known)
    }
}

fn split_path(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// The paths that may have been meant: files of this very name in another folder, else files of a similar name in this one.
fn nearest_paths(wanted: &str, known: &[String]) -> Vec<String> {
    let (folder, file) = split_path(wanted);
    let mut elsewhere: Vec<String> =
        known.iter().filter(|path| split_path(path).1 == file).cloned().collect();
    elsewhere.sort_unstable();
    elsewhere.dedup();
    elsewhere.truncate(3);
    if !elsewhere.is_empty() {
        return elsewhere;
    }
    // The common ending would make all names look alike.
    let stem = |path| split_path(path).1.trim_end_matches(".md");
    let beside = known.iter().filter(|path| split_path(path).0 == folder).map(|path| stem(path));
    let whole = |stem: String| if folder.is_empty() { stem + ".md" } else { format!("{folder}/{stem}.md") };
    nearest(stem(wanted), beside).into_iter().map(whole).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_go_from_the_full_tag_to_none() {
        assert_eq!(variants("a/t.md", "pt_BR"), ["a/t.pt-br.md", "a/t.pt.md", "a/t.md"]);
        assert_eq!(variants("t.md", "ja"), ["t.ja.md", "t.md"]);
        assert_eq!(variants("t.md", "../x"), ["t.md"]);
        assert_eq!(variants("t.txt", "ja"), ["t.txt"]);
    }

    #[test]
    fn suggested_paths_have_a_similar_name_here_or_the_same_name_elsewhere() {
        let known =
            ["partials/tone.md", "partials/output_format.md", "a/template.md", "top.md"].map(str::to_owned);
        assert_eq!(nearest_paths("partials/tome.md", &known), ["partials/tone.md"]);
        assert_eq!(nearest_paths("tone.md", &known), ["partials/tone.md"]);
        assert_eq!(nearest_paths("../partials/tone.md", &known), ["partials/tone.md"]);
        assert!(nearest_paths("partials/zebra.md", &known).is_empty());
    }

    #[test]
    fn paths_that_leave_the_library_are_not_followed() {
        for name in ["", "/etc/passwd", "../x.md", "a/../x.md", "a\\b.md", "a//b.md", ".git/config", "c:/x"] {
            assert!(!stays_inside(name), "{name}");
        }
        assert!(stays_inside("partials/safety_rules.md"));
    }
}
