//! Find: from an id or a path to the one place that offers it, or to the conflict.
//!
//! A library is a project's folder, its `cuebook.toml`, and the places that hold prompts. Looking for an id asks each
//! place whether it has a folder of that name; nothing is indexed beforehand and no template is read, so a library of a
//! hundred thousand prompts opens as fast as an empty one and is never out of date. A conflict is never decided by the
//! order of the places (see [`Library::choose`]).

mod archive;
#[doc(hidden)]
pub mod builtin;
mod cached;
mod candidate;
mod choices;
mod claims;
mod config;
mod defaults;
mod dialect_folders;
mod directives;
mod environment;
mod granted;
mod id;
mod loader;
mod manifest;
mod mcp;
mod pack;
mod path;
mod portable;
mod proof;
mod reason;
mod replaced;
mod resolution;
mod root;
mod scripts;
mod survey;
mod tools;
mod vocab;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

pub use candidate::{Candidate, PROMPT_FILE, TEMPLATE_FILE};
#[doc(hidden)]
pub use choices::provider_source;
pub use choices::{PROVIDER, provider_key};
pub use claims::Claims;
#[doc(hidden)]
pub use claims::is_path;
pub use config::{CONFIG_FILE, Config, HooksConfig, SandboxLevel, UserConfig};
pub use defaults::Defaults;
pub use environment::PromptsConfig;
pub use id::normalize_id;
#[doc(hidden)]
pub use loader::LibraryLoader;
pub use manifest::{Manifest, PackKind, Replaces, VariableProvider};
pub use mcp::McpConfig;
#[doc(hidden)]
pub use pack::exchange_folders;
pub use pack::{
    FileChange, FolderKind, Installation, InstalledPack, PackCode, Proposal, StagedFolder, StagedPackage,
};
#[doc(hidden)]
pub use proof::Proof;
pub use reason::Reason;
pub use replaced::ReplacedTool;
pub use resolution::{Resolution, Resolutions};
pub use root::{Root, RootKind};
pub use scripts::Script;
#[doc(hidden)]
pub use scripts::{Read as ScriptRead, ScriptFile, Scripts};
pub use survey::Survey;
pub use tools::{FenceSetting, ToolsConfig};
pub use vocab::Vocab;
pub use vocab::idle;

use self::cached::Cached;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, did_you_mean, nearest};
use crate::files;
use crate::items::Spaces;
pub use crate::prompt::{PROMPTY_END, SECTIONS_END};
use crate::prompt::{TEMPLATE, Traits};
use crate::source::Source;
use crate::trust::Trust;

const SHARED: &str = "user_data/shared/prompts";
/// The recorded choices, below a project.
pub const RESOLUTIONS: &str = "user_data/shared/prompts/resolution.json";
const PACKS: &str = "user_data/packs";
const ECOSYSTEM: &str = "ecosystem/default/prompts";
const PLAIN: &str = "prompts";

/// A project's prompts, wherever they lie.
///
/// ```no_run
/// use cuebook::items::Spaces;
/// use cuebook::library::Library;
/// use cuebook::trust::Approval;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let write = |path: &str, text: &str| {
/// #     let path = folder.path().join(path);
/// #     std::fs::create_dir_all(path.parent().unwrap()).unwrap();
/// #     std::fs::write(path, text).unwrap();
/// # };
/// # write("project/prompts/greet/template.md", "Hello");
/// # write("team/pack.json", "{\"pack_id\": \"team\", \"prompts\": [\"sign\"]}");
/// # write("team/prompts/sign/template.md", "Yours");
/// # let project = folder.path().join("project");
/// let library = Library::open(&project).with_env(["HOME"]).with_spaces(Spaces::new(&project, None));
/// assert_eq!((library.root(), library.spaces().project()), (project.as_path(), project.as_path()));
/// assert_eq!(library.find("greet")?.id, library.find_path(&project.join("prompts/greet"))?.id);
/// assert!(library.config()?.hooks.enabled);
///
/// library.stage_pack(&folder.path().join("team"))?.commit(false, &[])?;
/// assert!(library.ids()?.contains(&"sign".to_owned()));
/// assert_eq!(library.pack("team")?.id, library.packs()?[0].0);
/// assert_eq!(library.approval("team")?, Approval::NotNeeded);
/// assert!(library.trust().list().is_ok());
/// library.approve_pack("team", &library.content("team")?)?;
///
/// library.set_resolution("sign", "team")?;
/// assert!(library.resolutions()?.get("sign").is_some());
/// library.remove_pack("team")?;
/// assert_eq!(library.defaults()?.variables.len(), 0);
/// # Ok::<(), cuebook::Error>(())
/// ```
#[derive(Debug)]
pub struct Library {
    root: PathBuf,
    settings: granted::Settings,
    /// Environment variables that the host program lets prompts read.
    env: Arc<[String]>,
    resolutions: Cached<Resolutions>,
    defaults: Cached<Defaults>,
    /// The spaces of items, and what they trust.
    spaces: OnceLock<(Spaces, Trust)>,
    /// What its dialects claim.
    claims: Claims,
    /// Reads the version that a candidate declares.
    version_of: Option<VersionOf>,
}

/// Reads the version that a candidate declares.
#[derive(Clone)]
#[doc(hidden)]
pub struct VersionOf(pub Arc<FindVersion>);

type FindVersion = dyn Fn(&Candidate, &Library) -> Result<String> + Send + Sync;

impl std::fmt::Debug for VersionOf {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("VersionOf")
    }
}

/// What was asked for, found.
#[derive(Debug, Clone)]
pub struct Found {
    /// The id under which it was found.
    pub id: String,
    /// The chosen place.
    pub candidate: Candidate,
    /// Why this place: the only one, the recorded choice, or the path that was given.
    pub reason: Reason,
}

impl Library {
    /// Opens the library of a project. Nothing is read until it is needed.
    pub fn open(root: impl Into<PathBuf>) -> Library {
        let root = root.into();
        let shared = |file: &str| (root.join(SHARED).join(file), format!("{SHARED}/{file}"));
        let (resolutions, defaults) = (shared("resolution.json"), shared("defaults.json"));
        Library {
            settings: granted::Settings::default(),
            env: Arc::default(),
            resolutions: Cached::new(resolutions.0, resolutions.1),
            defaults: Cached::new(defaults.0, defaults.1),
            spaces: OnceLock::new(),
            claims: Claims::default(),
            version_of: None,
            root,
        }
    }

    /// The same library with these dialects, and with versions of its candidates.
    #[doc(hidden)]
    pub fn with_dialects(mut self, claims: Claims, version_of: VersionOf) -> Library {
        (self.claims, self.version_of) = (claims, Some(version_of));
        self
    }

    /// Which files are prompts here.
    #[doc(hidden)]
    pub fn claims(&self) -> &Claims {
        &self.claims
    }

    /// The project's folder.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// A path as people read it: relative to the project where that is possible.
    pub fn name(&self, path: &Path) -> String {
        files::display_name(&self.root, path)
    }

    /// Reads a file of the project. No link may lead out of it.
    fn read_inside(&self, path: &Path, limit: u64) -> Result<Arc<Source>> {
        files::read_text_inside(&self.root, path, &self.name(path), limit)
    }

    #[doc(hidden)]
    pub fn file_limit(&self) -> Result<u64> {
        Ok(self.config()?.limits.file_size)
    }

    /// The recorded choices, as they are now.
    pub fn resolutions(&self) -> Result<Arc<Resolutions>> {
        let limit = self.file_limit()?;
        self.resolutions.get(|path| Resolutions::read(&self.read_inside(path, limit)?))
    }

    /// The defaults for all prompts, as they are now.
    pub fn defaults(&self) -> Result<Arc<Defaults>> {
        let limit = self.file_limit()?;
        self.defaults.get(|path| Defaults::read(&self.read_inside(path, limit)?))
    }

    /// The places of the library, in the order of the design: shared, plain, configured, packs, ecosystem, built in.
    #[doc(hidden)]
    pub fn roots(&self) -> Result<Vec<Arc<Root>>> {
        let on_disk =
            |kind, name: &str| Arc::new(Root::on_disk(kind, name, self.root.join(name)).inside(&self.root));
        let mut roots = vec![on_disk(RootKind::Shared, SHARED), on_disk(RootKind::Plain, PLAIN)];
        for path in &self.config()?.library.paths {
            let folder = self.root.join(path);
            let name = self.name(&folder);
            if !folder.is_dir() && !files::has_unsaved(&folder) {
                return Err(self.missing_folder(&name, path)?);
            }
            if roots.iter().all(|root| root.name != name) {
                // One that lies outside by its name was granted, and is a place of its own.
                let inside = folder.starts_with(&self.root) && !folder.iter().any(|part| part == "..");
                let root = Root::on_disk(RootKind::Configured, name, folder);
                roots.push(Arc::new(if inside { root.inside(&self.root) } else { root }));
            }
        }
        roots.extend(self.dialect_folders());
        for pack in self.pack_ids()? {
            roots.push(Arc::new(self.root_of_pack(&pack, Some("prompts"))));
            roots.extend(self.dialect_folders_of(&pack));
        }
        roots.push(on_disk(RootKind::Ecosystem, ECOSYSTEM));
        roots.push(Arc::new(Root::builtin()));
        Ok(roots)
    }

    /// A team's prompts that are not there must not simply be missing.
    fn missing_folder(&self, name: &str, path: &Path) -> Result<Error> {
        let source = self.read_inside(&self.root.join(CONFIG_FILE), 1 << 20)?;
        let written = path.to_string_lossy();
        let diagnostic =
            Diagnostic::new(Code::BadConfig, format!("the folder {name} in `library.paths` does not exist"))
                .hint("create the folder, or remove the entry");
        Ok(Error::new(
            ErrorKind::Config,
            match source.text().find(&*written) {
                Some(at) => diagnostic.at(source.place(at..at + written.len())),
                None => diagnostic.file(CONFIG_FILE),
            },
        ))
    }

    /// A folder of an installed pack.
    pub(crate) fn root_of_pack(&self, pack: &str, below: Option<&str>) -> Root {
        let packs = self.root.join(PACKS);
        let bounds = self.pack_bounds(&packs.join(pack));
        Root::of_pack(pack, &packs, PACKS, below).inside(&bounds)
    }

    /// The names of the folders under `user_data/packs`, sorted.
    pub(crate) fn pack_ids(&self) -> Result<Vec<String>> {
        Root::on_disk(RootKind::Shared, PACKS, self.root.join(PACKS)).folders()
    }

    /// Every place that offers an id, in the order of the places. The id is taken as it is.
    pub(crate) fn search(&self, id: &str) -> Result<Vec<Candidate>> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for root in self.roots()? {
            for candidate in self.candidates_below(&root, id)? {
                // What lies on disk under ecosystem/default stands before the built-in prompt of the same source.
                if candidates.iter().all(|known| known.source != candidate.source) {
                    candidates.push(candidate);
                }
            }
        }
        candidates.extend(self.directives_of(id)?);
        Ok(candidates)
    }

    /// What a place offers under an id: a folder of that name, a file of that name that is a prompt by itself, or such a
    /// file in the folder.
    ///
    /// A folder that may not be looked into offers one prompt, which cannot be read; a place that may not is an error.
    pub(crate) fn candidates_below(&self, root: &Arc<Root>, id: &str) -> Result<Vec<Candidate>> {
        self.candidates_among(root, id, |_| true)
    }

    /// Everything that a place offers, by its ids, which are sorted. Its folder is listed once, and what is not in it is not looked for.
    #[doc(hidden)]
    pub fn all_below(&self, root: &Arc<Root>) -> Result<Vec<(String, Vec<Candidate>)>> {
        let mut listing = root.listing(&self.claims)?;
        let ids = std::mem::take(&mut listing.ids);
        let offered = |id: String| {
            let candidates = self.candidates_among(root, &id, |name| listing.may_have(name))?;
            Ok((id, candidates))
        };
        ids.into_iter().map(offered).collect()
    }

    fn candidates_among(
        &self,
        root: &Arc<Root>,
        id: &str,
        may_be_there: impl Fn(&str) -> bool,
    ) -> Result<Vec<Candidate>> {
        let mut candidates = Vec::new();
        let mut has_folder = false;
        if may_be_there(id) {
            candidates.extend(self.folder_below(root, id)?);
            has_folder = root.has_folder(id);
        }
        for (in_folder, file, dialect) in self.claims.files_of(id) {
            if in_folder && has_folder {
                candidates.extend(file_below(root, id, &file, dialect));
            } else if !in_folder && may_be_there(&file) {
                candidates.extend(file_below(root, "", &file, dialect));
            }
        }
        Ok(candidates)
    }

    fn folder_below(&self, root: &Arc<Root>, entry: &str) -> Result<Option<Candidate>> {
        if !root.may_have_folder(entry)? {
            return Ok(None);
        }
        let has_prompt_py = root.has_file(&format!("{entry}/{PROMPT_FILE}"));
        let has_template = root.has_file(&format!("{entry}/{TEMPLATE_FILE}"));
        // A file that is there and cannot be looked at makes a candidate too: better an error than another place's prompt.
        let hidden = || {
            root.trouble(entry).is_some()
                || root.closed(entry).is_some()
                || root.trouble(&format!("{entry}/{TEMPLATE_FILE}")).is_some()
                || root.trouble(&format!("{entry}/{PROMPT_FILE}")).is_some()
        };
        Ok((has_prompt_py || has_template || hidden()).then(|| Candidate {
            source: root.file_name(entry),
            version: None,
            dialect: &TEMPLATE,
            pack_id: root.pack_id().map(str::to_owned),
            has_prompt_py,
            has_template,
            shadowed_by: None,
            root: root.clone(),
            entry: entry.to_owned(),
            template_file: None,
        }))
    }

    /// The candidate that lies at a recorded source, which may have another name than the id (a replacement).
    fn candidate_at(&self, source: &str) -> Result<Option<Candidate>> {
        if let Some(directive) = self.directive_at(source)? {
            return Ok(Some(directive));
        }
        for root in self.roots()? {
            let Some(entry) = source.strip_prefix(&root.name).and_then(|rest| rest.strip_prefix('/')) else {
                continue;
            };
            let id = self.claims.of_path(entry).map_or(entry, |(id, _)| id);
            let found = self.candidates_below(&root, id)?.into_iter().find(|found| found.source == source);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Finds the id that was meant and its candidates: a folder of exactly this name, then the snake_case spelling, then
    /// the exact one, then the vocabulary.
    #[doc(hidden)]
    pub fn resolve_id(&self, raw: &str) -> Result<(String, Vec<Candidate>)> {
        id::check_id(raw)?;
        let normalized = normalize_id(raw);
        let mut tried: Vec<&str> = Vec::new();
        let order = if self.is_spelt_so(raw, &normalized)? { [raw, &normalized] } else { [&normalized, raw] };
        for id in order {
            if id.is_empty() || tried.contains(&id) {
                continue;
            }
            tried.push(id);
            let candidates = self.candidates_of(id)?;
            if !candidates.is_empty() {
                return Ok((id.to_owned(), candidates));
            }
        }
        if let Some(name) = self.look_up(raw)?
            && !tried.contains(&name.as_str())
        {
            id::check_id(&name)?;
            let candidates = self.candidates_of(&name)?;
            if !candidates.is_empty() {
                return Ok((name, candidates));
            }
        }
        Err(self.not_found(raw, &normalized)?)
    }

    /// Whether a prompt is spelt exactly so, and not in the normal form. There may be one in the normal form beside it.
    fn is_spelt_so(&self, raw: &str, normalized: &str) -> Result<bool> {
        if raw == normalized {
            return Ok(false);
        }
        for candidate in self.search(raw)? {
            // A file system may find a folder under other spellings than its own.
            if candidate.root.ids(&self.claims)?.iter().any(|id| id == raw) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The candidates of an id, with the replacement that was accepted for it.
    fn candidates_of(&self, id: &str) -> Result<Vec<Candidate>> {
        self.with_replacement(id, self.search(id)?)
    }

    fn with_replacement(&self, id: &str, mut candidates: Vec<Candidate>) -> Result<Vec<Candidate>> {
        if let Some(recorded) = self.resolutions()?.get(id)
            && recorded.replaced_by.is_some()
            && candidates.iter().all(|candidate| candidate.source != recorded.source)
            && let Some(replacement) = self.candidate_at(&recorded.source)?
        {
            candidates.push(replacement);
        }
        Ok(candidates)
    }

    /// Refuses a project whose folder does not exist.
    #[doc(hidden)]
    pub fn check_root(&self) -> Result<()> {
        // `wasm32-unknown-unknown` has no folders.
        if self.root.is_dir() || cfg!(all(target_arch = "wasm32", target_os = "unknown")) {
            return Ok(());
        }
        let message = match self.root.exists() {
            true => "the project is a file, but must be a folder",
            false => "the folder of the project does not exist",
        };
        let diagnostic = Diagnostic::new(Code::Unreadable, message).file(self.root.to_string_lossy());
        Err(Error::new(ErrorKind::Io, diagnostic.hint("create it, or open another folder")))
    }

    fn not_found(&self, raw: &str, normalized: &str) -> Result<Error> {
        self.check_root()?;
        for root in self.roots()? {
            if root.has_folder(normalized) {
                return Ok(empty_folder(&root.file_name(normalized)));
            }
        }
        let ids = self.ids()?;
        let similar = nearest(normalized, ids.iter().map(String::as_str));
        let folder = self.root.join(raw);
        let file = format!("{normalized}.md");
        let roots = self.roots()?;
        let alone = roots.iter().find(|root| root.kind != RootKind::Builtin && root.has_file(&file));
        let hint = match (alone, did_you_mean(&similar)) {
            (Some(root), _) => {
                let template = root.file_name(&format!("{normalized}/{TEMPLATE_FILE}"));
                format!("a prompt is a folder: move {} to {template}", root.file_name(&file)).into()
            }
            _ if folder.is_dir() || folder.is_file() => {
                format!("a file or folder has this name: name it as a path, `./{raw}`").into()
            }
            (None, Some(hint)) => hint.into(),
            (None, None) if self.has_no_prompts()? => {
                let write = format!("this folder has no prompts yet: write prompts/{normalized}/template.md");
                Hint::command_line(format!("{write}, or create an example with cuebook init"))
                    .for_programs(write)
                    .with_command("cuebook init")
            }
            (None, None) => Hint::run("list the prompts", "cuebook list"),
        };
        let searched = self.searched()?;
        let message = format!("no prompt `{raw}` in {}", searched.join(", "));
        let diagnostic = Diagnostic::new(Code::PromptNotFound, message).hint(hint);
        let error = Error::new(ErrorKind::PromptNotFound, diagnostic);
        Ok(error.with("prompt_id", raw).with("nearest", similar).with("searched", searched))
    }

    /// Whether only the built-in prompts exist.
    fn has_no_prompts(&self) -> Result<bool> {
        for root in self.roots()?.iter().filter(|root| root.kind != RootKind::Builtin) {
            if !root.ids(&self.claims)?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The places that prompts are looked for in, for people.
    fn searched(&self) -> Result<Vec<String>> {
        let roots = self.roots()?;
        let packs = roots.iter().filter_map(|root| root.pack_id()).collect::<BTreeSet<_>>().len();
        let plain = roots.iter().filter(|root| root.pack_id().is_none());
        let mut names: Vec<String> = plain
            .map(|root| match root.kind {
                RootKind::Builtin => "the built-in prompts".to_owned(),
                _ => root.name.clone(),
            })
            .collect();
        match packs {
            0 => {}
            1 => names.push("one pack".to_owned()),
            more => names.push(format!("{more} packs")),
        }
        names.dedup();
        Ok(names)
    }

    /// Every id that some place offers, sorted. Reads no file.
    pub fn ids(&self) -> Result<Vec<String>> {
        Ok(self.survey()?.ids().map(|(id, _)| id.to_owned()).collect())
    }

    /// Finds a prompt by its id. An id is never a path: `../x` and `/etc/passwd` are refused before any file is looked at.
    pub fn find(&self, wanted: &str) -> Result<Found> {
        self.choose(wanted)
    }

    /// Finds a prompt by what the user of a command line typed: its id, or a path to its file or folder.
    #[doc(hidden)]
    pub fn find_typed(&self, wanted: &str) -> Result<Found> {
        if let Some(path) = self.as_path(wanted) {
            return match self.directives_named(wanted, &path)? {
                Some((id, candidates)) => self.choose_among(id, candidates),
                None => self.at_path(&path),
            };
        }
        self.choose(wanted)
    }

    /// Finds a prompt by a path to its file or folder, which the user of the program chose.
    pub fn find_path(&self, path: &Path) -> Result<Found> {
        self.at_path(path)
    }

    /// Chooses between the candidates of an id: the only one, or the recorded one. Anything else is a conflict, also when
    /// the recorded choice was made among other candidates than there are now.
    pub fn choose(&self, id: &str) -> Result<Found> {
        let (id, candidates) = self.identified(id)?;
        self.choose_among(id, candidates)
    }

    /// The candidates of an id. One with `/` can only be that of a directive.
    fn identified(&self, id: &str) -> Result<(String, Vec<Candidate>)> {
        if self.as_path(id).is_none() {
            return self.resolve_id(id);
        }
        let candidates = self.directives_of(id)?;
        if !candidates.is_empty() {
            return Ok((id.to_owned(), candidates));
        }
        id::check_id(id)?;
        Err(self.not_found(id, &normalize_id(id))?)
    }

    fn choose_among(&self, id: String, mut candidates: Vec<Candidate>) -> Result<Found> {
        let resolutions = self.resolutions()?;
        let recorded = resolutions.get(&id);
        // Spaces have an order of their own: what a nearer one has is no conflict with the others.
        let shadowed: Vec<String> = candidates
            .extract_if(.., |candidate| candidate.shadowed_by.is_some())
            .map(|candidate| candidate.source)
            .collect();
        let alone = if shadowed.is_empty() { Reason::Only } else { Reason::Nearest(shadowed) };
        let chosen = match &recorded {
            None if candidates.len() == 1 => Ok((candidates.swap_remove(0), alone)),
            None => Err((Code::PromptConflict, format!("{} prompts have the id `{id}`", candidates.len()))),
            Some(resolution) => {
                let position = candidates.iter().position(|candidate| candidate.source == resolution.source);
                let new: Vec<&str> = match &resolution.candidates {
                    Some(known) => candidates
                        .iter()
                        .map(|candidate| candidate.source.as_str())
                        .filter(|source| {
                            *source != resolution.source && !known.iter().any(|known| known == source)
                        })
                        .collect(),
                    None => Vec::new(),
                };
                match position {
                    None => Err((
                        Code::StaleResolution,
                        format!("the recorded choice for `{id}`, {}, no longer exists", resolution.source),
                    )),
                    Some(_) if !new.is_empty() => Err((
                        Code::StaleResolution,
                        format!("another prompt has the id `{id}` since the choice: {}", new.join(", ")),
                    )),
                    Some(position) => {
                        Ok((candidates.swap_remove(position), Reason::Recorded(resolution.clone())))
                    }
                }
            }
        };
        match chosen {
            Ok((candidate, reason)) => Ok(Found { id, candidate, reason }),
            Err((code, message)) => {
                let diagnostic = match resolutions.place(&id) {
                    Some(place) => Diagnostic::new(code, message).at(place).label("the recorded choice"),
                    None => Diagnostic::new(code, message),
                };
                self.read_versions(&mut candidates)?;
                Err(choices::conflict(&id, diagnostic, candidates, recorded.as_ref()))
            }
        }
    }

    /// Every place that offers a prompt; a path that was typed offers itself.
    #[doc(hidden)]
    pub fn candidates(&self, wanted: &str, typed: bool) -> Result<Vec<Candidate>> {
        let mut candidates = match self.as_path(wanted).filter(|_| typed) {
            Some(path) => match self.directives_named(wanted, &path)? {
                Some((_, candidates)) => candidates,
                None => vec![self.at_path(&path)?.candidate],
            },
            None => self.identified(wanted)?.1,
        };
        self.read_versions(&mut candidates)?;
        Ok(candidates)
    }

    /// Finds out the versions of candidates, for a user who has to choose between them.
    fn read_versions(&self, candidates: &mut [Candidate]) -> Result<()> {
        let Some(VersionOf(version_of)) = &self.version_of else { return Ok(()) };
        self.file_limit()?;
        for candidate in candidates {
            candidate.version = version_of(candidate, self).ok();
        }
        Ok(())
    }
}

/// A file in a folder of a place that is a prompt by itself, or something of that name which cannot be looked at.
fn file_below(root: &Arc<Root>, entry: &str, file: &str, dialect: &'static Traits) -> Option<Candidate> {
    let relative = if entry.is_empty() { file.to_owned() } else { format!("{entry}/{file}") };
    // The files of an unreadable folder are unknown.
    let hidden = || root.trouble(&relative).is_some() && root.closed(entry).is_none();
    (root.has_file(&relative) || hidden()).then(|| Candidate {
        source: root.file_name(&relative),
        version: None,
        dialect,
        pack_id: root.pack_id().map(str::to_owned),
        has_prompt_py: false,
        has_template: false,
        shadowed_by: None,
        root: root.clone(),
        entry: entry.to_owned(),
        template_file: Some(file.to_owned()),
    })
}

fn empty_folder(name: &str) -> Error {
    let diagnostic = Diagnostic::new(
        Code::NoTemplate,
        format!(
            "the folder has neither a {TEMPLATE_FILE} nor a {PROMPT_FILE}, and no {PROMPTY_END} or \
             {SECTIONS_END} file with its name"
        ),
    )
    .file(name)
    .hint(format!("write the prompt's text into {name}/{TEMPLATE_FILE}"));
    Error::new(ErrorKind::PromptNotFound, diagnostic)
}
