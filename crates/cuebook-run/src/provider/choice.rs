//! Which provider answers for which model.
//!
//! Three places have provider files: the project, the user's space, and the program itself. A file of a project could send the user's
//! key to anybody, so it counts only with a signature that the user trusts, exactly as an item does; files of the user's space are the
//! user's own. A file that is broken, or not signed, is an error for those who ask for that provider and for no others; it never makes
//! way for another file of its name. Nothing falls back silently: several possible providers without a recorded choice are an error.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use cuebook::error::{did_you_mean, nearest};
use cuebook::items::{SpaceKind, Spaces};
use cuebook::limits::SETTINGS_BYTES;
use cuebook::settings::Setting;
use cuebook::source::Source;
use cuebook::trust::Trust;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity, files};

use super::file::{Profile, ProviderFile};

/// The folder of provider files below `.ai`.
const FOLDER: &str = "config/providers";
/// The settings that name a usual provider, below `.ai`.
const AGENT: &str = "config/agent/agent.yaml";
/// The variable that names the usual provider.
const VARIABLE: &str = "CUEBOOK_PROVIDER";
/// The tier of a request without one.
const USUAL_TIER: &str = "general";
/// How many similar names a hint has.
const NAMES_SHOWN: usize = 3;

/// The files that come with the program.
const BUILT_IN: [(&str, &str); 3] = [
    ("anthropic", include_str!("../../providers/anthropic.yaml")),
    ("gemini", include_str!("../../providers/gemini.yaml")),
    ("openai", include_str!("../../providers/openai.yaml")),
];

/// Checks that a file has a signature that the user trusts.
pub trait VerifyFile {
    /// Verifies a settings file, by its path below `.ai/config`.
    fn verify_config(&self, below: &str, name: &str, bytes: &[u8]) -> Result<()>;
}

impl VerifyFile for Trust {
    fn verify_config(&self, below: &str, name: &str, bytes: &[u8]) -> Result<()> {
        Trust::verify_config(self, below, name, bytes).map(drop)
    }
}

/// Wishes for the answering model. The first one counts.
#[derive(Debug, Clone, Copy, Default)]
pub struct ModelPreference<'a> {
    /// What the caller wants: a tier, or the id of a model.
    pub model: Option<&'a str>,
    /// The id that the directive names.
    pub id: Option<&'a str>,
    /// The tier that the directive names.
    pub tier: Option<&'a str>,
    /// The provider that the directive or the prompt names. `CUEBOOK_PROVIDER` comes before it.
    pub provider: Option<&'a str>,
    /// The provider that the user names for this run, which comes before everything else.
    pub only: Option<&'a str>,
}

/// Who answers.
#[derive(Debug, Clone)]
pub struct Chosen {
    /// The provider.
    pub provider: Arc<ProviderFile>,
    /// The model.
    pub model: String,
    /// What it costs; `None` if unknown.
    pub price: Option<super::Price>,
    /// Tokens that it reads at most.
    pub context_window: u64,
    /// Tokens that it writes at most.
    pub max_output: u64,
    /// How it is asked.
    pub profile: Profile,
    /// Why it was chosen, for people.
    pub why: String,
}

/// How well a provider fits a wish. The first is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MatchKind {
    Tier,
    Exact,
    Pattern,
    Prefix,
}

impl MatchKind {
    fn word(self) -> &'static str {
        match self {
            MatchKind::Tier => "tier",
            MatchKind::Exact => "model",
            MatchKind::Pattern => "pattern",
            MatchKind::Prefix => "start of a model's name",
        }
    }
}

/// All providers that there are.
#[derive(Debug, Clone)]
pub struct Providers {
    files: BTreeMap<String, Arc<ProviderFile>>,
    /// Providers whose file cannot be used, and why.
    broken: BTreeMap<String, Error>,
    /// The usual provider, and who says so.
    usual: Option<(String, String)>,
    /// The provider that the environment names.
    named: Option<String>,
    /// Which variables of the environment are set.
    environment: fn(&str) -> Option<String>,
    /// Files that are named like provider files and are invalid.
    passed_over: Vec<Diagnostic>,
}

/// The files that come with the program. They are read once: every thread that begins asks for them.
fn built_in() -> Result<BTreeMap<String, Arc<ProviderFile>>> {
    static READ: OnceLock<BTreeMap<String, Arc<ProviderFile>>> = OnceLock::new();
    if let Some(read) = READ.get() {
        return Ok(read.clone());
    }
    let mut found = BTreeMap::new();
    for (name, text) in BUILT_IN {
        let source = Source::new(format!("system:cuebook/{FOLDER}/{name}.yaml"), text);
        found.insert(name.to_owned(), Arc::new(ProviderFile::read(&source, name)?));
    }
    Ok(READ.get_or_init(|| found).clone())
}

/// The bytes of a file, and what they say.
type CachedProviderFile = (Vec<u8>, Arc<ProviderFile>);

/// How many files of users and projects are remembered.
const MAX_REMEMBERED: usize = 64;

/// What the bytes of a file say. Every thread that begins asks for them, and a thousand threads share what they say.
fn remembered(path: &Path, bytes: Vec<u8>, name: &str, stem: &str) -> Result<Arc<ProviderFile>> {
    static READ: Mutex<BTreeMap<PathBuf, CachedProviderFile>> = Mutex::new(BTreeMap::new());
    let lock = || READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((known, file)) = lock().get(path)
        && *known == bytes
        && file.file == name
    {
        return Ok(file.clone());
    }
    let source = files::source_from_bytes(bytes.clone(), name)?;
    let file = Arc::new(ProviderFile::read(&source, stem)?);
    let mut read = lock();
    if read.len() >= MAX_REMEMBERED {
        read.clear();
    }
    read.insert(path.to_owned(), (bytes, file.clone()));
    Ok(file)
}

/// A variable of the environment that says something.
pub(super) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.trim().is_empty())
}

/// Whether a variable of the environment holds bytes that are no text. To those who want a text it is not there.
pub(super) fn is_no_text(name: &str) -> bool {
    matches!(std::env::var(name), Err(std::env::VarError::NotUnicode(_)))
}

/// Why a variable of the environment says nothing, in words behind its name.
pub fn why_unset(name: &str) -> &'static str {
    if is_no_text(name) { "is not UTF-8 text" } else { "is not set" }
}

impl Providers {
    /// Reads the files of all spaces.
    pub fn new(spaces: &Spaces, verify: &dyn VerifyFile) -> Result<Providers> {
        Providers::with_environment(spaces, verify, variable)
    }

    /// The same, with another environment than that of this process.
    pub fn with_environment(
        spaces: &Spaces,
        verify: &dyn VerifyFile,
        environment: fn(&str) -> Option<String>,
    ) -> Result<Providers> {
        let mut found: BTreeMap<String, Result<Arc<ProviderFile>>> =
            built_in()?.into_iter().map(|(name, file)| (name, Ok(file))).collect();
        let mut usual = None;
        let mut passed_over = Vec::new();
        // From the last space to the first, so that a project's files replace a user's.
        for space in spaces.all().iter().rev() {
            let Some(folder) = space.folder() else { continue };
            let own = space.kind() == SpaceKind::User || spaces.user_folder().as_deref() == Some(folder);
            for path in listed(&folder.join(FOLDER), space.name(), &mut passed_over)? {
                let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
                let name =
                    format!("{}/{FOLDER}/{}", space.name(), path.file_name().unwrap_or_default().display());
                let read = || {
                    let bytes = files::read_bytes(&path, &name, SETTINGS_BYTES)?;
                    if !own {
                        let below = format!("providers/{}", path.file_name().unwrap_or_default().display());
                        verify.verify_config(&below, &name, &bytes)?;
                    }
                    remembered(&path, bytes, &name, &stem)
                };
                found.insert(stem.clone(), read());
            }
            // A link of the project must not show a file outside it in an error.
            let bounds = if own { None } else { Some(spaces.project()) };
            if let Some(name) = usual_of(folder, space.name(), bounds)? {
                usual = Some(name);
            }
        }
        let named = environment(VARIABLE).map(|name| name.trim().to_owned());
        let (mut files, mut broken) = (BTreeMap::new(), BTreeMap::new());
        for (name, read) in found {
            let addressed =
                read.and_then(|file| Ok(file.in_environment(environment)?.map_or(file, Arc::new)));
            match addressed {
                Ok(file) => drop(files.insert(name, file)),
                Err(error) => drop(broken.insert(name, error)),
            }
        }
        Ok(Providers { files, broken, usual, named, environment, passed_over })
    }

    /// The environment variable that holds the key of a provider.
    pub(crate) fn key_of(&self, name: &str) -> Option<String> {
        self.files.get(name)?.key.clone()
    }

    /// The providers, by name.
    pub fn list(&self) -> impl Iterator<Item = &Arc<ProviderFile>> {
        self.files.values()
    }

    /// Notes about the files: secrets in them, and what looks like one and cannot be read.
    pub fn warnings(&self) -> impl Iterator<Item = Diagnostic> {
        let broken = self.broken.values().flat_map(Error::diagnostics).cloned();
        let broken = broken.map(|wrong| wrong.severity(Severity::Warning));
        let unknown = [self.named.as_deref().map(|name| (name, VARIABLE))]
            .into_iter()
            .chain([self.usual.as_ref().map(|(name, who)| (name.as_str(), who.as_str()))])
            .flatten()
            .filter(|(name, _)| !self.broken.contains_key(*name))
            .filter_map(|(name, who)| self.find(name, &format!("{who} names it")).err())
            .flat_map(Error::into_diagnostics)
            .map(|wrong| wrong.severity(Severity::Warning));
        let unused = self.passed_over.iter().chain(self.files.values().flat_map(|file| &file.warnings));
        unused.cloned().chain(broken).chain(unknown)
    }

    /// Providers whose file cannot be used, and why.
    pub fn broken(&self) -> impl Iterator<Item = (&str, &Error)> {
        self.broken.iter().map(|(name, error)| (name.as_str(), error))
    }

    /// The provider that a run asks when its prompt names an address (`model.connection.endpoint`): the one that has this address. A
    /// prompt cannot send the user's key anywhere else.
    ///
    /// `written` is the address as the prompt has it, for messages: a variable is not shown with its value.
    ///
    /// # Errors
    ///
    /// `CB720` if no provider has the address, or several have and the prompt names none of them.
    pub fn at(&self, endpoint: &str, written: &str, named: Option<&str>) -> Result<&str> {
        let mut there =
            self.files.values().filter(|file| file.is_at(endpoint)).map(|file| file.name.as_str());
        if let Some(named) = named.filter(|named| there.clone().any(|name| name == *named)) {
            return Ok(self.files[named].name.as_str());
        }
        let (first, second) = (there.next(), there.next());
        let (message, hint) = match (first, second) {
            (Some(only), None) => return Ok(only),
            (Some(one), Some(_)) => {
                let message = format!("several providers are at the prompt's endpoint `{written}`");
                (message, Hint::option("choose one", format!("--provider {one}")))
            }
            _ => {
                let message = format!(
                    "no provider has the prompt's endpoint `{written}`, and a prompt cannot choose where your key is sent"
                );
                let write = format!("write ~/.ai/{FOLDER}/NAME.yaml with `base_url: {written}`");
                let hint = Hint::command_line(format!(
                    "{write}, or run with --provider NAME to ask another provider"
                ))
                .for_programs(format!("{write}, or name another provider"));
                (message, hint)
            }
        };
        let error = Error::new(ErrorKind::Usage, Diagnostic::new(Code::NoModel, message).hint(hint));
        Err(error.with("endpoint", written))
    }

    /// Whether the user names a provider in the environment, which then is the one that is asked.
    pub fn is_named(&self) -> bool {
        self.named.is_some()
    }

    /// A provider by its name.
    pub fn get(&self, name: &str) -> Option<&Arc<ProviderFile>> {
        self.files.get(name)
    }

    /// Whether a provider can be asked: its key and the secrets of its headers and options are there, or it needs none.
    pub fn is_ready(&self, file: &ProviderFile) -> bool {
        file.variables().all(|name| self.is_set(name))
    }

    /// Whether a variable of the environment says something.
    pub fn is_set(&self, name: &str) -> bool {
        (self.environment)(name).is_some()
    }

    /// Finds who answers.
    ///
    /// # Errors
    ///
    /// `CB720` if none does, or if several do without a recorded choice.
    pub fn resolve(&self, preference: &ModelPreference<'_>) -> Result<Chosen> {
        if preference.model.is_some_and(|model| model.trim().is_empty()) {
            // Mostly a variable that is not set. Another model than the one that was meant would be asked, and paid.
            let diagnostic = Diagnostic::new(Code::NoModel, "the model's name is empty");
            let hint = Hint::command_line("name a model or a tier, or leave out --model (`model`)")
                .for_programs("name a model or a tier, or leave out `model`");
            return Err(no_model(diagnostic.hint(hint)));
        }
        let wanted = [preference.model, preference.id, preference.tier]
            .into_iter()
            .flatten()
            .find(|name| !name.trim().is_empty());
        let wanted = wanted.unwrap_or(USUAL_TIER).trim();
        let asked = |name: Option<&'_ str>, why| {
            name.map(str::trim).filter(|it| !it.is_empty()).map(|it| (it.to_owned(), why))
        };
        let only = asked(preference.only, "from --provider".to_owned())
            .or_else(|| asked(self.named.as_deref(), format!("named by {VARIABLE}")))
            .or_else(|| asked(preference.provider, "named by the prompt".to_owned()));
        if let Some((name, why)) = only {
            let file = self.find(&name, &why)?;
            return match fit(file, wanted)? {
                Some((fit, model)) => Ok(chosen(file, model, fit, &why)),
                None => Err(self.no_provider_for(wanted, Some((file, &why)))),
            };
        }
        if let Some((name, who)) = &self.usual {
            let file = self.find(name, &format!("{who} names it"))?;
            if let Some((fit, model)) = fit(file, wanted)? {
                return Ok(chosen(file, model, fit, &format!("{who} names it")));
            }
        }
        let mut offers = Vec::new();
        for file in self.files.values() {
            offers.extend(fit(file, wanted)?.map(|(fit, model)| (fit, file, model)));
        }
        let Some(best) = offers.iter().map(|(fit, ..)| *fit).min() else {
            return Err(self.no_provider_for(wanted, None));
        };
        if let Some((name, who)) = self.usual.as_ref().filter(|_| best == MatchKind::Tier) {
            return Err(self.without_tier(wanted, self.find(name, who)?, who));
        }
        offers.retain(|(fit, ..)| *fit == best);
        if let [(fit, file, model)] = offers.as_slice() {
            return Ok(chosen(file, model.clone(), *fit, "no other provider offers it"));
        }
        let ready: Vec<_> = offers.iter().filter(|(_, file, _)| self.is_ready(file)).collect();
        if let [(fit, file, model)] = ready.as_slice() {
            let others: Vec<&str> = offers.iter().map(|(_, file, _)| file.name.as_str()).collect();
            let why = format!("only the key of {} is set", others.join(", "));
            return Ok(chosen(file, model.clone(), *fit, &why));
        }
        Err(self.several(wanted, &offers))
    }

    fn find(&self, name: &str, why: &str) -> Result<&Arc<ProviderFile>> {
        if let Some(error) = self.broken.get(name) {
            return Err(error.clone());
        }
        self.files.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.files.keys().map(String::as_str).collect();
            let near = did_you_mean(&nearest(name, names.iter().copied()));
            let hint = near.unwrap_or_else(|| {
                format!("known providers: {}; a file .ai/{FOLDER}/{name}.yaml adds one", names.join(", "))
            });
            let message = format!("unknown provider `{name}` ({why})");
            no_model(Diagnostic::new(Code::NoModel, message).hint(hint)).with("providers", names)
        })
    }

    fn no_provider_for(&self, wanted: &str, only: Option<(&ProviderFile, &str)>) -> Error {
        let asked: Vec<&ProviderFile> = match only {
            Some((file, _)) => vec![file],
            None => self.files.values().map(Arc::as_ref).collect(),
        };
        let names = asked.iter().flat_map(|file| file.tiers.keys().map(String::as_str).chain(file.ids()));
        let mut near = nearest(wanted, names);
        near.truncate(NAMES_SHOWN);
        let message = match only {
            Some((file, why)) => format!("the provider `{}` does not offer `{wanted}` ({why})", file.name),
            None => format!("no provider offers `{wanted}`"),
        };
        let hint = did_you_mean(&near)
            .map_or_else(|| Providers::unknown_model(only.map(|(file, _)| file)), Hint::from);
        let mut reported = vec![Diagnostic::new(Code::NoModel, message).hint(hint)];
        if only.is_none() {
            // The model may be one of theirs.
            let broken = self.broken.values().flat_map(Error::diagnostics).take(NAMES_SHOWN).cloned();
            reported.extend(broken.map(|wrong| wrong.severity(Severity::Warning)));
        }
        Error::all(ErrorKind::Config, reported).with("wanted", wanted).with("nearest", near)
    }

    /// What to do where nothing has a similar name.
    fn unknown_model(only: Option<&ProviderFile>) -> Hint {
        let add = match only {
            Some(file) => format!("`models` of {}", file.file),
            None => format!("`models` of a file in ~/.ai/{FOLDER}"),
        };
        Hint::command_line("`cuebook providers` lists tiers and models")
            .with_command("cuebook providers")
            .or(format!("add the model to {add}"))
    }

    /// A tier means a model of the usual provider: another one would be asked, and paid, in silence.
    fn without_tier(&self, tier: &str, usual: &ProviderFile, who: &str) -> Error {
        let name = &usual.name;
        let having = self.files.values().filter(|file| file.tiers.contains_key(tier));
        let having: Vec<&str> = having.map(|file| file.name.as_str()).collect();
        let message = format!(
            "{name} has no tier `{tier}`, and {who} names {name}; {} {} one",
            having.join(", "),
            if having.len() == 1 { "has" } else { "have" }
        );
        let hint = format!(
            "add `tiers: {{{tier}: MODEL}}` to {}, name a model of {name}, or name another provider in {who}",
            usual.file
        );
        no_model(Diagnostic::new(Code::NoModel, message).hint(hint))
            .with("wanted", tier)
            .with("provider", name)
            .with("providers", having)
    }

    fn several(&self, wanted: &str, offers: &[(MatchKind, &Arc<ProviderFile>, String)]) -> Error {
        let list: Vec<String> = offers
            .iter()
            .map(|(_, file, model)| {
                let ready = match (self.is_ready(file), file.variables().any(is_no_text)) {
                    (true, _) => "key is set",
                    (false, true) => "key is not text",
                    (false, false) => "key is not set",
                };
                format!("{} ({model}, {ready})", file.name)
            })
            .collect();
        let message = format!("several providers offer `{wanted}`: {}", list.join(", "));
        let first = offers.first().map_or("NAME", |(_, file, _)| file.name.as_str());
        let write = format!("write `provider: {{default: {first}}}` in .ai/{AGENT}");
        let before = match offers.iter().any(|(_, file, _)| self.is_ready(file)) {
            true => String::new(),
            false => {
                let key = offers.iter().find_map(|(_, file, _)| file.key.as_deref());
                let such = key.map(|key| format!(", such as {key}")).unwrap_or_default();
                format!("set the key of one of them{such}; or ")
            }
        };
        let hint = Hint::command_line(format!(
            "{before}name one with --provider {first} or {VARIABLE}={first}, or {write}"
        ))
        .for_programs(format!("{before}name one with {VARIABLE}={first}, or {write}"));
        let names: Vec<&str> = offers.iter().map(|(_, file, _)| file.name.as_str()).collect();
        no_model(Diagnostic::new(Code::NoModel, message).hint(hint))
            .with("wanted", wanted)
            .with("providers", names)
    }
}

fn no_model(diagnostic: Diagnostic) -> Error {
    Error::new(ErrorKind::Config, diagnostic)
}

fn chosen(file: &Arc<ProviderFile>, model: String, fit: MatchKind, why: &str) -> Chosen {
    let profile = file.profile(&model);
    Chosen {
        why: format!("{} offers {model} ({}); {why}", file.name, fit.word()),
        price: profile.price,
        context_window: profile.context_window,
        max_output: profile.max_output,
        provider: file.clone(),
        profile,
        model,
    }
}

/// How a provider fits a name, and the model that is meant.
fn fit(file: &ProviderFile, wanted: &str) -> Result<Option<(MatchKind, String)>> {
    if let Some(model) = file.tiers.get(wanted) {
        return Ok(Some((MatchKind::Tier, model.clone())));
    }
    if file.ids().any(|id| id == wanted) {
        return Ok(Some((MatchKind::Exact, wanted.to_owned())));
    }
    if file.knows(wanted) {
        return Ok(Some((MatchKind::Pattern, wanted.to_owned())));
    }
    // `claude-sonnet` for `claude-sonnet-4-5`, and a dated name for the plain one.
    let mut longer: Vec<&str> = file.ids().filter(|id| id.starts_with(wanted)).collect();
    longer.sort_unstable();
    longer.dedup();
    match longer.as_slice() {
        [] => {}
        [one] => return Ok(Some((MatchKind::Prefix, (*one).to_owned()))),
        several => {
            let message = format!("{} has several models that start with `{wanted}`", file.name);
            let hint = format!("name one of {}", several.join(", "));
            return Err(no_model(Diagnostic::new(Code::NoModel, message).hint(hint)).with("models", several));
        }
    }
    let dated =
        file.ids().any(|id| wanted.strip_prefix(id).is_some_and(|rest| rest.starts_with(['-', '@', ':'])));
    Ok(dated.then(|| (MatchKind::Prefix, wanted.to_owned())))
}

/// The provider files of a folder, in order.
fn listed(folder: &Path, space: &str, passed_over: &mut Vec<Diagnostic>) -> Result<Vec<std::path::PathBuf>> {
    let name = format!("{space}/{FOLDER}");
    if files::look(folder).map_err(|error| files::io_error(&name, &error))?.is_none() {
        return Ok(Vec::new());
    }
    let entries = std::fs::read_dir(folder).map_err(|error| files::io_error(&name, &error))?;
    let mut paths = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| files::io_error(&name, &error))?.path();
        if !path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml") {
            continue;
        }
        if path.is_file() {
            paths.push(path);
            continue;
        }
        // The author who put it there thinks that it counts.
        let what = if path.is_dir() { "this is a folder" } else { "this link leads to no file" };
        let message = format!("{what}, so it defines no provider");
        let diagnostic = Diagnostic::new(Code::BadProviderFile, message)
            .file(format!("{name}/{}", path.file_name().unwrap_or_default().display()))
            .severity(Severity::Warning)
            .hint("put a provider file there, or remove it");
        passed_over.push(diagnostic);
    }
    paths.sort();
    Ok(paths)
}

/// The usual provider that a space names. The file has other settings too, which others read.
fn usual_of(folder: &Path, space: &str, bounds: Option<&Path>) -> Result<Option<(String, String)>> {
    let path = folder.join(AGENT);
    let name = format!("{space}/{AGENT}");
    if files::look(&path).map_err(|error| files::io_error(&name, &error))?.is_none() {
        return Ok(None);
    }
    let source = match bounds {
        Some(bounds) => files::read_text_inside(bounds, &path, &name, SETTINGS_BYTES)?,
        None => files::read_text(&path, &name, SETTINGS_BYTES)?,
    };
    let root = Setting::parse(&source, Code::BadProviderFile, ErrorKind::Config)?;
    let Some(provider) = root.entries()?.swap_remove("provider") else { return Ok(None) };
    let mut entries = provider.entries()?;
    let Some(usual) = entries.swap_remove("default") else {
        // Others may keep other things there; what was meant for us must not be passed over.
        return match entries.iter().find(|(name, _)| !nearest(name, ["default"]).is_empty()) {
            Some((_, wrong)) => Err(wrong.wrong("is not a key", Some("did you mean `default`?".to_owned()))),
            None => Ok(None),
        };
    };
    if usual.is_null() {
        return Ok(None);
    }
    Ok(Some((usual.text()?.to_owned(), name)))
}
