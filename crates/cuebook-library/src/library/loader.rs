//! Finds the templates that a template includes, extends or imports.
//!
//! A pack's own files come first for the pack. Then, for everybody: a recorded choice, `user_data/shared/prompts`,
//! `prompts`, the configured folders, `ecosystem/default` and the built-in files, and last the other packs, where exactly
//! one must have the file. So a user's partial stands in for a built-in one, and no pack can stand in for anything of the
//! user's or of the system's unless the user has chosen it.

use std::hash::Hash;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::sha256::Sha256;
use indexmap::{IndexMap, IndexSet};
use serde_json::json;

use super::pack::Providers;
use super::root::{Root, RootKind};
use super::{Candidate, Defaults, Found, Library, Reason, Survey, UserConfig};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, nearest};
use crate::files::{self, Stamp};
use crate::items::{Item, ItemId, ItemType};
use crate::notation;
use crate::source::Source;
use crate::template::jinja::Loader;
use crate::trust;

/// A file that a render depends on: it was read, or it was looked for and was not there.
#[derive(Debug)]
pub(crate) struct Dependency {
    path: PathBuf,
    limit: u64,
    state: Mutex<(Option<Stamp>, Option<[u8; 32]>)>,
}

impl Dependency {
    /// Stamps the file before it is read, so that a change in between is noticed.
    fn new(path: PathBuf, limit: u64) -> Dependency {
        let stamp = Stamp::of(&path);
        let digest = stamp.as_ref().and_then(|_| digest(&path, limit));
        Dependency { path, limit, state: Mutex::new((stamp, digest)) }
    }

    /// Whether the file is as it was. A stamp that proves nothing is followed by a look at the content.
    pub(crate) fn is_unchanged(&self) -> bool {
        let now = Stamp::of(&self.path);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if Stamp::proves_unchanged(&now, &state.0) {
            return true;
        }
        let content = now.as_ref().and_then(|_| digest(&self.path, self.limit));
        if now.is_some() != state.0.is_some() || content.is_none() || content != state.1 {
            return false;
        }
        state.0 = now;
        true
    }
}

/// What cannot be read has no digest, and then nothing is certain about it.
fn digest(path: &std::path::Path, limit: u64) -> Option<[u8; 32]> {
    Some(Sha256::digest(files::read_bytes(path, "", limit).ok()?))
}

/// The sources that have a name which was looked for in all packs, and the one that was chosen, if any.
struct NamedSources {
    sources: Vec<String>,
    chosen: Option<String>,
}

/// Loads templates for one prompt in one language, and remembers what it looked at.
#[doc(hidden)]
pub struct LibraryLoader {
    library: Arc<Library>,
    /// The place of the prompt that is rendered.
    own: Arc<Root>,
    language: String,
    limit: u64,
    /// What the places offer, if all of them were looked at already.
    survey: Option<Arc<Survey>>,
    /// The place of each loaded template, by its source's name.
    places: Mutex<IndexMap<String, Arc<Root>>>,
    dependencies: Mutex<IndexMap<PathBuf, Dependency>>,
    /// Variables of the environment that the prompt's file refers to, and what they were.
    environment: Mutex<Vec<(String, Option<String>)>>,
    /// Prompts that were found on the way: the name that was asked for, and the source that was chosen. An alias leads to
    /// another prompt when the vocabulary changes, so the id that it led to would not do.
    choices: Mutex<IndexSet<(String, String)>>,
    /// Ids that were looked for and not found.
    absences: Mutex<Vec<String>>,
    /// First parts of names, and whether several places had a prompt of that name. Packs yet to come can change it, so it
    /// is asked again rather than derived from files that changed.
    contests: Mutex<IndexMap<String, bool>>,
    /// Names that were looked for in all packs.
    offers: Mutex<IndexMap<String, NamedSources>>,
    /// Templates that were read without a language, and could have one: the folder that they are in, and their name.
    plain: Mutex<IndexMap<String, (Arc<Root>, String)>>,
    /// The packs that there were, if anything depends on it.
    packs: Mutex<Option<Vec<String>>>,
}

impl LibraryLoader {
    #[doc(hidden)]
    pub fn new(
        library: Arc<Library>,
        own: Arc<Root>,
        language: &str,
        limit: u64,
        survey: Option<Arc<Survey>>,
    ) -> LibraryLoader {
        LibraryLoader {
            survey,
            library,
            own,
            language: language.to_owned(),
            limit,
            places: Mutex::default(),
            dependencies: Mutex::default(),
            environment: Mutex::default(),
            choices: Mutex::default(),
            absences: Mutex::default(),
            contests: Mutex::default(),
            offers: Mutex::default(),
            plain: Mutex::default(),
            packs: Mutex::default(),
        }
    }

    /// The language that templates are looked for in.
    pub fn language(&self) -> &str {
        &self.language
    }

    /// Templates that were read without a language, by the name of their file, and the languages that there are of each.
    #[doc(hidden)]
    pub fn plain(&self) -> Vec<(String, Vec<String>)> {
        let plain = lock(&self.plain);
        plain.iter().map(|(file, (root, relative))| (file.clone(), languages(root, relative))).collect()
    }

    /// The library that it loads from.
    #[doc(hidden)]
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Bytes that one file may have.
    #[doc(hidden)]
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// Whether everything that was looked at is unchanged. For the result of a survey that is unknown: it is looked at once.
    #[doc(hidden)]
    pub fn is_unchanged(&self, defaults: &Arc<Defaults>) -> bool {
        if self.survey.is_some() {
            return false;
        }
        let unchanged = lock(&self.dependencies).values().all(Dependency::is_unchanged);
        unchanged
            && lock(&self.environment).iter().all(|(name, was)| std::env::var(name).ok() == *was)
            && self.library.defaults().is_ok_and(|now| Arc::ptr_eq(&now, defaults))
            && lock(&self.choices).iter().all(|(id, source)| {
                self.library.choose(id).is_ok_and(|found| found.candidate.source == *source)
            })
            && lock(&self.absences).iter().all(|id| self.library.choose(id).is_err())
            && self.finds_the_same()
    }

    /// The files that were looked at, and the ids that prompts were looked for by. `None` if there is more that can change.
    pub(super) fn looked_at(&self) -> Option<(Vec<PathBuf>, Vec<String>)> {
        let is_more = self.survey.is_some()
            || !lock(&self.environment).is_empty()
            || !lock(&self.absences).is_empty()
            || !lock(&self.offers).is_empty();
        let ids = lock(&self.choices).iter().map(|(id, _)| id.clone()).collect::<Vec<_>>();
        let ids = ids.into_iter().chain(lock(&self.contests).keys().cloned()).collect();
        (!is_more).then(|| (lock(&self.dependencies).keys().cloned().collect(), ids))
    }

    /// Whether the places offer what they offered.
    fn finds_the_same(&self) -> bool {
        let (contests, offers, packs) = (lock(&self.contests), lock(&self.offers), lock(&self.packs));
        if contests.is_empty() && offers.is_empty() && packs.is_none() {
            return true;
        }
        let Ok(roots) = self.library.roots() else { return false };
        let packs_now = || roots.iter().filter_map(|root| root.pack_id());
        packs.as_ref().is_none_or(|packs| packs_now().eq(packs.iter().map(String::as_str)))
            && contests.iter().all(|(id, was)| self.is_contested(id, &roots).is_ok_and(|is| is == *was))
            && offers.iter().all(|(name, NamedSources { sources, chosen })| {
                offering(name, &roots).map(|root| root.file_name(name)).eq(sources.iter().cloned())
                    && self.chosen(name).is_ok_and(|now| now == *chosen)
            })
    }

    /// What `defaults.json` says.
    #[doc(hidden)]
    pub fn defaults(&self) -> Result<Arc<Defaults>> {
        match &self.survey {
            Some(survey) => survey.defaults(&self.library),
            None => self.library.defaults(),
        }
    }

    /// Notes a file that the prompt's definition was read from, unless changes do not matter.
    #[doc(hidden)]
    pub fn depend_on(&self, path: PathBuf) {
        if self.survey.is_some() {
            return;
        }
        let mut dependencies = lock(&self.dependencies);
        if !dependencies.contains_key(&path) {
            dependencies.insert(path.clone(), Dependency::new(path, self.limit));
        }
    }

    /// Whether a file is one of those that were looked at, by whatever name.
    #[doc(hidden)]
    pub fn depends_on(&self, path: &Path) -> bool {
        let Ok(wanted) = path.canonicalize() else { return false };
        let is_same = |known: &Path| known.canonicalize().is_ok_and(|known| known == wanted);
        lock(&self.dependencies).keys().any(|known| is_same(known))
    }

    /// Notes that what the user lists and grants decides which variables the prompt's definition shows.
    #[doc(hidden)]
    pub fn depend_on_grants(&self) {
        let spaces = self.library.spaces();
        let settings = spaces.user_folder().map(|user| user.join(UserConfig::FILE));
        let grants = trust::file_of(spaces, trust::GRANTS).map(|(path, _)| path);
        settings.into_iter().chain(grants).for_each(|path| self.depend_on(path));
    }

    /// Notes variables of the environment that the prompt's definition was read from.
    #[doc(hidden)]
    pub fn depend_on_environment(&self, variables: Vec<(String, Option<String>)>) {
        lock(&self.environment).extend(variables);
    }

    /// Finds a prompt by its id and notes the choice.
    pub(crate) fn choose(&self, id: &str) -> Result<Found> {
        let found = match &self.survey {
            Some(survey) => survey.choose(&self.library, id)?,
            None => self.library.choose(id)?,
        };
        let choice = (id.to_owned(), found.candidate.source.clone());
        lock(&self.choices).insert(choice);
        Ok(found)
    }

    /// The prompt of that id that lies beside another, or else the one that is chosen: a pack's prompts go together.
    #[doc(hidden)]
    pub fn choose_beside(&self, root: &Arc<Root>, id: &str) -> Result<Found> {
        if root.pack_id().is_some()
            && let [candidate] = self.library.candidates_below(root, id)?.as_slice()
        {
            return Ok(Found { id: id.to_owned(), candidate: candidate.clone(), reason: Reason::Beside });
        }
        self.choose(id)
    }

    /// The same, or nothing if there is no prompt of that id, which is noted too.
    #[doc(hidden)]
    pub fn choose_if_any(&self, id: &str) -> Result<Option<Found>> {
        match self.choose(id) {
            Ok(found) => Ok(Some(found)),
            Err(error) if matches!(error.code(), Code::PromptNotFound | Code::NoTemplate) => {
                lock(&self.absences).push(id.to_owned());
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Reads an item of the nearest space that has it, and notes where it was looked for.
    #[doc(hidden)]
    pub fn item(&self, kind: ItemType, id: &ItemId) -> Result<Option<Item>> {
        self.depend_on_item(kind, id.as_str());
        self.library.spaces().find(kind, id)?.map(|located| located.read(self.limit)).transpose()
    }

    /// Notes every file that an item can be.
    #[doc(hidden)]
    pub fn depend_on_item(&self, kind: ItemType, id: &str) {
        for folder in self.library.spaces().all().iter().filter_map(|space| space.folder()) {
            for extension in kind.extensions() {
                self.depend_on(folder.join(kind.folder()).join(format!("{id}.{extension}")));
            }
        }
    }

    /// How many templates or items may include each other in a row.
    #[doc(hidden)]
    pub fn include_depth(&self) -> Result<usize> {
        Ok(self.library.config()?.limits.include_depth)
    }

    /// The variable providers of all packs, and notes that the prompt depends on them.
    #[doc(hidden)]
    pub fn providers(&self) -> Result<Providers> {
        if let Some(survey) = &self.survey {
            return Ok((survey.providers(&self.library).to_vec(), Vec::new()));
        }
        *lock(&self.packs) = Some(self.library.pack_ids()?);
        self.library.providers(|path| self.depend_on(path))
    }

    fn roots(&self) -> Result<Vec<Arc<Root>>> {
        match &self.survey {
            Some(survey) => Ok(survey.roots().to_vec()),
            None => self.library.roots(),
        }
    }

    /// Reads a file below a root in the variant for the language, if there is one.
    #[doc(hidden)]
    pub fn read_variant(&self, root: &Arc<Root>, relative: &str) -> Result<Option<Arc<Source>>> {
        for name in variants(relative, &self.language) {
            if let Some(path) = root.path(&name) {
                self.depend_on(path);
            }
            if root.has_file(&name) {
                let source = root.read(&name, self.limit)?;
                if name == relative && name.ends_with(".md") {
                    let known = (root.clone(), name.clone());
                    lock(&self.plain).entry(source.name().to_owned()).or_insert(known);
                }
                // A computed name is asked for at every render; it is noted once.
                lock(&self.places).entry(source.name().to_owned()).or_insert_with(|| root.clone());
                return Ok(Some(source));
            }
            if let Some(error) = root.trouble(&name) {
                let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
                return Err(match root.closed(folder) {
                    Some(error) => files::folder_error(root.file_name(folder).trim_end_matches('/'), &error),
                    None => files::io_error(&root.file_name(&name), &error),
                });
            }
        }
        Ok(None)
    }

    /// Makes what another loader looked at a dependency of this one.
    fn take_over(&self, other: LibraryLoader) {
        // What was found first counts: it differs from the second if something changed in between.
        fn add<K: Hash + Eq, V>(to: &Mutex<IndexMap<K, V>>, from: Mutex<IndexMap<K, V>>) {
            let mut to = lock(to);
            for (key, value) in inner(from) {
                to.entry(key).or_insert(value);
            }
        }
        fn inner<T>(mutex: Mutex<T>) -> T {
            mutex.into_inner().unwrap_or_else(PoisonError::into_inner)
        }
        add(&self.places, other.places);
        add(&self.dependencies, other.dependencies);
        add(&self.contests, other.contests);
        add(&self.offers, other.offers);
        add(&self.plain, other.plain);
        lock(&self.choices).extend(inner(other.choices));
        lock(&self.absences).extend(inner(other.absences));
    }

    fn place_of(&self, parent: &str) -> Arc<Root> {
        lock(&self.places).get(parent).unwrap_or(&self.own).clone()
    }

    /// The prompt that the first part of a path names, if several places have one of that name.
    fn contested(&self, name: &str, roots: &[Arc<Root>]) -> Result<Option<(Candidate, String)>> {
        let Some((id, rest)) = name.split_once('/') else { return Ok(None) };
        let contested = self.is_contested(id, roots)?;
        lock(&self.contests).entry(id.to_owned()).or_insert(contested);
        if !contested {
            return Ok(None);
        }
        let found = self.choose(id)?;
        Ok(Some((found.candidate, rest.to_owned())))
    }

    /// The source that was chosen for a name, among those of several packs.
    fn chosen(&self, name: &str) -> Result<Option<String>> {
        Ok(self.library.resolutions()?.get(name).map(|choice| choice.source))
    }

    fn is_contested(&self, id: &str, roots: &[Arc<Root>]) -> Result<bool> {
        let offers = match &self.survey {
            Some(survey) => survey.offers(id),
            None => {
                let mut offers = 0;
                for root in roots {
                    offers += self.library.candidates_below(root, id)?.len();
                    if offers >= 2 {
                        break;
                    }
                }
                offers
            }
        };
        Ok(offers >= 2 || self.library.resolutions()?.get(id).is_some())
    }
}

/// The packs that have a file of this name.
fn offering<'r>(name: &'r str, roots: &'r [Arc<Root>]) -> impl Iterator<Item = &'r Arc<Root>> {
    roots.iter().filter(move |root| root.pack_id().is_some() && root.has_file(name))
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The languages that a template has variants for.
fn languages(root: &Root, relative: &str) -> Vec<String> {
    let Some(path) = root.path(relative) else { return Vec::new() };
    let (Some(folder), Some(stem)) = (path.parent(), path.file_stem()) else { return Vec::new() };
    let prefix = format!("{}.", stem.to_string_lossy());
    let mut languages: Vec<String> = files::names_in(folder)
        .into_iter()
        .filter_map(|name| {
            let tag = name.strip_prefix(&prefix)?.strip_suffix(".md")?;
            (!tag.is_empty() && !tag.contains('.')).then(|| tag.to_owned())
        })
        .collect();
    languages.sort_unstable();
    languages
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

impl LibraryLoader {
    fn has_front_matter(&self, name: &str) -> bool {
        self.library.claims().of_path(name).is_some_and(|(_, dialect)| dialect.has_front_matter)
    }

    fn look_for(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>> {
        if !stays_inside(name) {
            return Ok(None);
        }
        let home = self.place_of(parent);
        if let RootKind::Pack(pack) = &home.kind {
            if let Some(source) = self.read_variant(&home, name)? {
                return Ok(Some(source));
            }
            // Partials may lie beside `prompts` as well.
            let top = Arc::new(self.library.root_of_pack(pack, None));
            if let Some(source) = self.read_variant(&top, name)? {
                return Ok(Some(source));
            }
        }
        let roots = self.roots()?;
        if let Some((candidate, rest)) = self.contested(name, &roots)? {
            return self.read_variant(&candidate.root, &candidate.file(&rest));
        }
        let given = (home.kind == RootKind::Given).then_some(&home);
        for root in given.into_iter().chain(roots.iter().filter(|root| root.pack_id().is_none())) {
            if let Some(source) = self.read_variant(root, name)? {
                return Ok(Some(source));
            }
        }
        let offering: Vec<&Arc<Root>> = offering(name, &roots).collect();
        let sources: Vec<String> = offering.iter().map(|root| root.file_name(name)).collect();
        let chosen = self.chosen(name)?;
        let chosen_root = sources.iter().position(|source| Some(source) == chosen.as_ref());
        let offer = || NamedSources { sources: sources.clone(), chosen };
        lock(&self.offers).entry(name.to_owned()).or_insert_with(offer);
        match (offering.as_slice(), chosen_root) {
            ([], _) => Ok(None),
            ([root], _) => self.read_variant(root, name),
            (several, Some(index)) => self.read_variant(several[index], name),
            (_, None) => {
                let message = format!("{} packs have the template `{name}`", sources.len());
                let hint = format!("copy the right one to {}/{name}: {}", super::SHARED, sources.join(", "));
                let diagnostic = Diagnostic::new(Code::PromptConflict, message).hint(hint);
                let candidates: Vec<_> = offering
                    .iter()
                    .map(|root| json!({"source": root.file_name(name), "pack_id": root.pack_id()}))
                    .collect();
                Err(Error::new(ErrorKind::PromptConflict, diagnostic)
                    .with("template", name)
                    .with("candidates", candidates))
            }
        }
    }
}

impl Loader for LibraryLoader {
    fn load(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>> {
        match self.look_for(name, parent)? {
            // The front matter is no text of the prompt, and may hold a key.
            Some(file) if self.has_front_matter(name) => notation::prompty::body(&file).map(Some),
            found => Ok(found),
        }
    }

    fn load_computed(&self, name: &str, parent: &str) -> Result<Option<Arc<Source>>> {
        // Looked for apart: only what is found becomes a dependency of the prompt.
        let apart = LibraryLoader::new(
            self.library.clone(),
            self.place_of(parent),
            &self.language,
            self.limit,
            self.survey.clone(),
        );
        let Some(source) = apart.load(name, parent)? else { return Ok(None) };
        let known = lock(&self.places).contains_key(source.name());
        if !known {
            self.take_over(apart);
        }
        Ok(Some(source))
    }

    fn suggestions(&self, name: &str) -> Vec<String> {
        if !stays_inside(name) {
            return Vec::new();
        }
        let Ok(roots) = self.library.roots() else { return Vec::new() };
        let mut known: Vec<String> = super::builtin::paths().map(str::to_owned).collect();
        let (below, _) = split_path(name);
        for root in &roots {
            let Some(folder) = root.folder() else { continue };
            // Only the folder that the path itself names and the usual one are looked into: a library can be large.
            for below in [below, "partials"] {
                for file in files::names_in(&folder.join(below)) {
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
    fn suggested_paths_have_a_similar_or_equal_name() {
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
