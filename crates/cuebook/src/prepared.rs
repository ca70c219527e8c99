//! A prompt that has been found, read and compiled, and can be rendered.

mod code;
mod directive;
mod given;
mod hooked;
mod include_loader;
mod included;
mod path_includes;
mod render_warnings;
mod sections;
mod texts;
mod unprovided;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use serde_json::{Value as Json, json};

use crate::dialect::directive::ToolOffer;
use crate::dialect::{Body, Compiling, Dialects, Rendering, Writing};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity};
use crate::files;
use crate::hooks::{Hooks, Resolved};
use crate::library::{
    CONFIG_FILE, Config, Defaults, Found, LibraryLoader, Proof, Reason, Root, RootKind, ScriptFile, Scripts,
    TEMPLATE_FILE, builtin, normalize_id,
};
use crate::overrides::ProjectStore;
use crate::prompt::{Need, Prompt, Type, Variable};
use crate::render::Rendered;
use crate::source::Place;
use crate::template::engine::{Engines, Loader, Outline};
use crate::template::jinja::names::{Read, ReferenceKind};
use crate::template::jinja::{Extensions, Settings, Template};
use crate::trust;
use crate::variables::{
    Clock, Context, Declared, NonceSource, Provided, SESSION, SYSTEM, Scope, Variables, validation_error,
};

pub use code::{Provider, choose_provider};
pub use directive::findings as directive_findings;
use given::KnownVariables;
use include_loader::{IncludeContext, IncludeLoader, RequestedVariable};
use included::IncludedPrompt;
pub use included::findings as included_findings;

/// A prompt that has been found, read and compiled.
///
/// ```
/// use std::sync::Arc;
///
/// use cuebook::{Book, Context, variables};
///
/// let context = Arc::new(Context::default());
/// let prepared = Book::open(".").prepare("general_system", &context)?;
/// for name in ["Ada", "Bo"] {
///     let rendered = prepared.render(&variables! { agent_name: name }, &context)?;
///     assert!(rendered.text().contains(name));
/// }
///
/// // A program that needs only the text does not compute origins.
/// assert!(prepared.render_text(&variables! { agent_name: "Ada" }, &context)?.contains("Ada"));
/// let runs_code = prepared.runs_code(&context);
/// println!("{} in {}, hooks: {runs_code}", prepared.found().id, prepared.language());
/// println!("strict: {}, includes: {:?}", prepared.is_strict(), prepared.includes());
/// assert!(prepared.notes().is_empty() && prepared.tree().is_none() && prepared.signature().is_none());
/// # Ok::<(), cuebook::Error>(())
/// ```
pub struct Prepared {
    prompt: Arc<Prompt>,
    body: Box<dyn Body>,
    mode: Mode,
    settings: Settings,
    files: PreparedFiles,
    names: PreparedNames,
    includes: PreparedIncludes,
    code: PreparedCode,
    reports: PreparedReports,
    book: PrepareContext,
}

/// The files that a prompt was made from.
struct PreparedFiles {
    found: Found,
    loader: Arc<LibraryLoader>,
    config: Arc<Config>,
    defaults: Arc<Defaults>,
    /// The parents by METADATA, nearest first.
    parents: Vec<String>,
}

/// The variables and namespaces of a prompt.
struct PreparedNames {
    declared: Arc<Declared>,
    /// Whether it has rich inputs.
    is_rich: bool,
    /// Whether values that look like role markers are refused for some of its inputs.
    has_strict_inputs: bool,
    /// Namespaces that the templates use and a pack provides, with a place that uses them.
    namespaces: BTreeMap<String, Place>,
    /// Namespaces that its conditions ask about and no pack provides.
    unprovided: BTreeMap<String, Place>,
    /// Packs whose manifests cannot be read, if they could provide something that is missing.
    skipped: Vec<Diagnostic>,
    /// The variables that it has, made on first use.
    known: OnceLock<KnownVariables>,
}

/// What the texts of a prompt include.
struct PreparedIncludes {
    /// Where its texts come from.
    templates: Arc<dyn Loader>,
    /// What its texts include by an address.
    prompts: Vec<Arc<IncludedPrompt>>,
    /// Reports of included prompts that declare one name differently.
    contradictions: Vec<Diagnostic>,
    /// Variables that only its included prompts declare, and where the included prompt is included.
    borrowed: BTreeMap<String, Place>,
}

/// The code that takes part in renders.
#[derive(Default)]
struct PreparedCode {
    /// Whether code takes part in a render.
    takes_part: bool,
    /// The file of the prompt's own hooks, made on first use.
    script_file: OnceLock<ScriptFile>,
    /// The workspace of the last render.
    workspace: Resolved,
    /// Templates that hooks have asked for.
    partials: Mutex<HashMap<String, Arc<Template>>>,
}

/// What is reported about a prompt.
struct PreparedReports {
    notes: Vec<Diagnostic>,
    /// What would surprise a reader of the result, made on first use.
    surprises: OnceLock<Vec<Diagnostic>>,
}

/// What a book gives to everything that it prepares.
#[derive(Debug, Clone)]
pub(crate) struct PrepareContext {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) hooks: Arc<Hooks>,
    pub(crate) scripts: Arc<Scripts>,
    pub(crate) engines: Arc<Engines>,
    pub(crate) nonces: Arc<dyn NonceSource>,
    pub(crate) overrides: Arc<ProjectStore>,
    pub(crate) dialects: Arc<Dialects>,
    pub(crate) offer: Option<Arc<dyn ToolOffer>>,
    pub(crate) extensions: Extensions,
}

/// How a prompt is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// What is absent prints as nothing.
    Lenient,
    /// Printing something that is absent is an error.
    Strict,
    /// For tools that look at prompts while they are written: a template that is missing counts as an empty one, and a tag that
    /// cannot be read is left out, so that everything else can be looked at.
    DespiteErrors,
}

impl std::fmt::Debug for Prepared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prepared").field("prompt", &self.prompt.id).finish_non_exhaustive()
    }
}

impl Prepared {
    pub(crate) fn new(
        found: Found,
        loader: Arc<LibraryLoader>,
        config: Arc<Config>,
        mode: Mode,
        context: &PrepareContext,
    ) -> Result<Prepared> {
        let defaults = loader.defaults()?;
        let dialects = &context.dialects;
        let read = dialects.read(&found.id, &found.candidate, &loader, &defaults)?;
        let mut prompt = read.prompt;
        let parents =
            inherit(&mut prompt, read.extends, &found.candidate.root, &loader, &defaults, dialects)?;
        let settings = Settings {
            extensions: context.extensions.clone(),
            salvage: mode == Mode::DespiteErrors,
            ..config.template_settings(mode == Mode::Strict)
        };
        let include_context = Arc::new(IncludeContext {
            files: loader.clone(),
            engines: context.engines.clone(),
            dialects: dialects.clone(),
            hooks: context.hooks.clone(),
            overrides: context.overrides.clone(),
            defaults: defaults.clone(),
            settings: settings.clone(),
            mode,
            is_tree: prompt.dialect.is_tree,
            known: Mutex::default(),
        });
        let include_loader =
            Arc::new(IncludeLoader::new(include_context.clone(), &found.candidate.source, &found.id));
        let templates: Arc<dyn Loader> = include_loader.clone();
        let compiling = Compiling {
            prompt: &prompt,
            loader: templates.clone(),
            settings: &settings,
            engines: &context.engines,
            is_included: false,
        };
        let body = dialects.get(prompt.dialect)?.compile(read.parsed, &compiling)?;
        let included_prompts = include_context.included_prompts();
        let (asked, mut contradictions) = include_loader.requested_variables();
        // What the prompt declares itself is that, for all of them.
        contradictions.retain(|(name, _)| prompt.variable(name).is_none());
        let contradictions = contradictions.into_iter().map(|(_, reported)| reported).collect();
        let contested = asked.iter().filter(|one| one.is_contested).map(|one| one.variable.name.clone());
        let contested = contested.filter(|name| prompt.variable(name).is_none()).collect();
        let borrowed = borrow(&mut prompt, asked);
        let declared =
            Declared::new(&prompt, &defaults.variables, context.clock.clone()).with_contested(contested);
        let library = loader.library();
        let root = Some(library.root()).filter(|root| !trust::holds_secrets(library.spaces(), root));
        let declared = declared.with_project(root);
        let declared =
            Arc::new(declared.with_session(included_prompts.iter().any(|included| included.is_tree())));
        let mut prepared = Prepared {
            body,
            mode,
            settings,
            files: PreparedFiles { found, loader, config, defaults, parents },
            names: PreparedNames {
                declared,
                is_rich: prompt.variables.iter().any(|variable| variable.rich.is_some()),
                has_strict_inputs: prompt.variables.iter().any(|variable| variable.strict),
                namespaces: BTreeMap::new(),
                unprovided: BTreeMap::new(),
                skipped: Vec::new(),
                known: OnceLock::new(),
            },
            includes: PreparedIncludes { templates, prompts: included_prompts, contradictions, borrowed },
            code: PreparedCode::default(),
            reports: PreparedReports { notes: read.notes, surprises: OnceLock::new() },
            book: context.clone(),
            prompt: Arc::new(prompt),
        };
        (prepared.names.namespaces, prepared.names.skipped) = prepared.find_namespaces()?;
        prepared.names.unprovided = prepared.find_unprovided();
        if let Some(declared) = Arc::get_mut(&mut prepared.names.declared) {
            declared.add_namespaces(prepared.names.unprovided.keys());
        }
        let (hooks, id) = (&prepared.book.hooks, &prepared.prompt.id);
        prepared.code.takes_part = !prepared.prompt.hooks.is_empty()
            || !prepared.names.namespaces.is_empty()
            || hooks.pre_render.contains_key(id)
            || hooks.post_render.contains_key(id);
        Ok(prepared)
    }

    /// Few looks that prove that this id still means it, if there are such.
    pub(crate) fn proof(&self, wanted: &str) -> Option<Proof> {
        let is_plain = self.files.found.reason == Reason::Only
            && !self.prompt.dialect.is_item
            && matches!(
                self.files.found.candidate.root.kind,
                RootKind::Shared | RootKind::Plain | RootKind::Configured
            )
            && (wanted == self.files.found.id || normalize_id(wanted) == self.files.found.id);
        let ids = [wanted, self.files.found.id.as_str()];
        let ids = if wanted == self.files.found.id { &ids[1..] } else { &ids[..] };
        is_plain.then(|| Proof::of(self.files.loader.library(), &self.files.loader, ids)).flatten()
    }

    /// The same for a directive whose signatures were verified: as long as it holds, verifying them again gives the same.
    pub(crate) fn directive_proof(&self, id: &str) -> Option<Proof> {
        let (loader, items) = (&self.files.loader, self.body.items());
        let mut trust_files = Vec::new();
        for item in &items {
            trust_files.extend(loader.library().trust().trust_files(item)?);
        }
        (!items.is_empty()).then(|| Proof::of_directive(loader.library(), loader, id, trust_files)).flatten()
    }

    /// Whether everything that it was made from is as it was.
    pub(crate) fn is_unchanged(&self, config: &Arc<Config>, find: impl FnOnce() -> Result<Found>) -> bool {
        (Arc::ptr_eq(config, &self.files.config) || **config == *self.files.config)
            && find().is_ok_and(|found| {
                found.candidate.source == self.files.found.candidate.source
                    && found.reason == self.files.found.reason
            })
            && self.files.loader.is_unchanged(&self.files.defaults)
    }

    /// The definition.
    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// Where it was found, and why there.
    pub fn found(&self) -> &Found {
        &self.files.found
    }

    /// Whether a file, by whatever name, is one that it is made from: its own, what it includes or inherits, or a setting of the
    /// project.
    #[doc(hidden)]
    pub fn is_made_from(&self, path: &Path) -> bool {
        let root = self.files.loader.library().root();
        let is_config = || match (path.canonicalize(), root.join(CONFIG_FILE).canonicalize()) {
            (Ok(one), Ok(other)) => one == other,
            _ => false,
        };
        self.files.loader.depends_on(path) || is_config()
    }

    /// The languages that it has variants of its text for, besides the one of its plain file.
    #[doc(hidden)]
    pub fn languages(&self) -> Vec<String> {
        let candidate = &self.files.found.candidate;
        let file = candidate.template_file.as_deref().or(self.prompt.metadata.template.as_deref());
        let Some((stem, end)) = file.unwrap_or(TEMPLATE_FILE).rsplit_once('.') else { return Vec::new() };
        let stem = stem.rsplit('/').next().unwrap_or(stem);
        let names: Vec<String> = match candidate.root.path(&candidate.entry) {
            // A folder that cannot be listed has been read from all the same: it shows no variants.
            Some(folder) => files::names_in(&folder),
            None => builtin::files_in(&candidate.entry),
        };
        let is_tag = |tag: &str| {
            !tag.is_empty() && tag.len() < 12 && tag.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
        };
        let tag = |name: &String| {
            let tag = name.strip_prefix(stem)?.strip_prefix('.')?.strip_suffix(end)?.strip_suffix('.')?;
            is_tag(tag).then(|| tag.to_owned())
        };
        let mut tags: Vec<String> = names.iter().filter_map(tag).collect();
        tags.sort_unstable();
        tags
    }

    /// How many warnings reading it gave that its renders do not repeat; `check` tells them.
    #[doc(hidden)]
    pub fn findings(&self) -> usize {
        let is_left =
            |note: &&Diagnostic| note.severity == Severity::Warning && !render_warnings::is_repeated(note);
        self.reports.notes.iter().filter(is_left).count() - self.notes_of_renders().count()
    }

    /// Whether a program gives templates a value or a function of this name.
    #[doc(hidden)]
    pub fn has_global(&self, name: &str) -> bool {
        self.settings.extensions.has_global(name)
    }

    /// What is odd about its files without keeping it from working.
    pub fn notes(&self) -> &[Diagnostic] {
        &self.reports.notes
    }

    /// What every render says about an old file: that it is one, and what it refers to in vain.
    fn notes_of_renders(&self) -> impl Iterator<Item = Diagnostic> {
        let codes = [Code::PromptyV1, Code::FileReference, Code::EnvNotSet];
        let of_renders =
            move |note: &&Diagnostic| note.severity == Severity::Warning && codes.contains(&note.code);
        self.reports.notes.iter().filter(of_renders).map(|note| note.clone().severity(Severity::Note))
    }

    /// The texts that it is made of, with what they mention.
    #[doc(hidden)]
    pub fn outline(&self) -> Arc<dyn Outline> {
        self.body.outline()
    }

    /// Every variable that its templates read from outside, with the place that reads it.
    #[doc(hidden)]
    pub fn reads(&self) -> Vec<(Read, Place)> {
        let program = self.outline();
        let mut reads = Vec::new();
        for (unit, names) in program.units().iter().zip(program.names()) {
            for read in &names.reads {
                reads.push((read.clone(), unit.source().place(read.range.clone())));
            }
        }
        reads
    }

    /// Whether a template is included whose name is only known while it runs.
    #[doc(hidden)]
    pub fn has_computed_references(&self) -> bool {
        let program = self.outline();
        program.names().iter().any(|names| names.references.iter().any(|reference| reference.names.is_none()))
    }

    /// Whether a name stands for the session here.
    #[doc(hidden)]
    pub fn is_session(&self, name: &str) -> bool {
        name == SESSION && self.prompt.dialect.is_tree
    }

    /// The values for one render, as they are before any hook or provider.
    #[doc(hidden)]
    pub fn scope(&self, variables: &Variables, context: &Arc<Context>) -> Arc<Scope> {
        Scope::new(self.names.declared.clone(), self.given(variables), context.clone(), None)
    }

    /// What a caller gave. A caller in Python says `None` for what it does not give.
    fn given(&self, variables: &Variables) -> Variables {
        if !self.prompt.dialect.is_folder {
            return variables.clone();
        }
        let is_optional =
            |name: &str| self.prompt.variable(name).is_some_and(|variable| variable.need != Need::Required);
        variables.clone().without_nulls(is_optional)
    }

    pub(crate) fn scope_with(
        &self,
        variables: &Variables,
        context: &Arc<Context>,
        provided: Provided,
    ) -> Arc<Scope> {
        Scope::new(
            self.names.declared.clone(),
            self.given(variables),
            context.clone(),
            Some(Box::new(provided)),
        )
    }

    /// Whether it has code that can take part in a render: hooks or variable providers.
    #[doc(hidden)]
    pub fn has_code(&self) -> bool {
        self.code.takes_part
    }

    /// Whether a variable provider fills this name.
    #[doc(hidden)]
    pub fn provides(&self, name: &str) -> bool {
        self.names.namespaces.contains_key(name)
    }

    /// Whether a render runs code: hooks or variable providers.
    pub fn runs_code(&self, context: &Context) -> bool {
        self.code.takes_part && !context.without_hooks
    }

    /// The names of everything that its texts include: files, and addresses of other prompts, sections, directives and knowledge.
    pub fn includes(&self) -> BTreeSet<String> {
        let outline = self.outline();
        let references = outline.names().iter().flat_map(|names| &names.references);
        let includes = references.filter(|reference| reference.kind != ReferenceKind::Extends);
        includes.flat_map(|reference| reference.names.iter().flatten().cloned()).collect()
    }

    /// What its texts include by an address.
    #[doc(hidden)]
    pub fn included_prompts(&self) -> &[Arc<IncludedPrompt>] {
        &self.includes.prompts
    }

    /// Reports of those that declare one name differently.
    #[doc(hidden)]
    pub fn contradictions(&self) -> &[Diagnostic] {
        &self.includes.contradictions
    }

    /// Whether it declares no variable itself: then it takes what it is given.
    #[doc(hidden)]
    pub fn declares_nothing(&self) -> bool {
        self.prompt.variables.iter().all(|variable| self.includes.borrowed.contains_key(&variable.name))
    }

    /// Renders it, in its language and as strict as it was prepared.
    ///
    /// # Errors
    ///
    /// `CB404` for a variable that the prompt does not have, unless the context says otherwise, `CB407` if the context wants another
    /// language or strictness, and whatever a render can report.
    pub fn render(&self, variables: &Variables, context: &Arc<Context>) -> Result<Rendered> {
        let context = &*self.circumstances(context)?;
        variables.refuse_faults()?;
        context.agent.variables.refuse_faults()?;
        let unknown = self.unknown_in(variables, context.unknown)?;
        let rendered = self.render_now(variables, context).map_err(|error| self.explained(error))?;
        let mut notes: Vec<Diagnostic> = self.notes_of_renders().chain(unknown).collect();
        notes.extend(self.surprises_of_render(context, rendered.text()));
        notes.extend(self.unprovided_in(variables, context));
        Ok(if notes.is_empty() { rendered } else { rendered.with_notes(notes) })
    }

    /// An error of a render, with what may explain it.
    fn explained(&self, error: Error) -> Error {
        let error = self.with_includes(error);
        let may_explain = matches!(error.code(), Code::UndefinedValue | Code::InvalidVariables);
        self.names.skipped.iter().filter(|_| may_explain).cloned().fold(error, Error::and)
    }

    /// An error about variables that an included prompt declares, with where the included prompt is included.
    fn with_includes(&self, error: Error) -> Error {
        if self.includes.borrowed.is_empty() || error.code() != Code::InvalidVariables {
            return error;
        }
        let variables = &self.prompt.variables;
        error.map(|finding| {
            let declared = variables.iter().find(|variable| match (&variable.place, &finding.place) {
                (Some(one), Some(other)) => one.is_same(other),
                _ => false,
            });
            match declared.and_then(|variable| self.includes.borrowed.get(&variable.name)) {
                Some(place) => finding.included(place),
                None => finding,
            }
        })
    }

    fn render_now(&self, variables: &Variables, context: &Arc<Context>) -> Result<Rendered> {
        let scope = self.scope(variables, context);
        let notes = self.body.admit(variables, &self.rendering(&scope))?;
        let rendered = if self.runs_code(context) {
            hooked::render(self, variables, context)?
        } else {
            validation_error(&self.prompt, &scope)?;
            self.render_template(&scope)?
        };
        Ok(if notes.is_empty() { rendered } else { rendered.with_notes(notes) })
    }

    /// What a body is rendered with.
    fn rendering<'r>(&'r self, scope: &'r Arc<Scope>) -> Rendering<'r> {
        Rendering {
            writing: Writing {
                scope,
                limit: self.prompt.limits.max_output_size,
                files: &self.files.loader,
                overrides: &self.book.overrides,
                opens: true,
            },
            prompt: &self.prompt,
            config: &self.files.config,
            offer: self.book.offer.as_deref(),
        }
    }

    fn partials(&self) -> MutexGuard<'_, HashMap<String, Arc<Template>>> {
        self.code.partials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Namespaces that the templates use and a pack provides. Manifests are looked at only for names that could be
    /// namespaces: undeclared ones, and those that are declared to hold names and values.
    fn find_namespaces(&self) -> Result<(BTreeMap<String, Place>, Vec<Diagnostic>)> {
        let mut wanted: BTreeMap<String, Place> = BTreeMap::new();
        if self.prompt.dialect.is_item {
            return Ok((wanted, Vec::new()));
        }
        for (read, place) in self.reads() {
            let possible = match self.prompt.variable(&read.root) {
                None => read.root != SYSTEM && !self.is_session(&read.root),
                Some(variable) => {
                    matches!(variable.kind, Type::Object | Type::Any) && read.path.contains('.')
                }
            };
            if possible {
                wanted.entry(read.root).or_insert(place);
            }
        }
        if wanted.is_empty() {
            return Ok((wanted, Vec::new()));
        }
        let (offered, broken) = self.files.loader.providers()?;
        let mut provided: BTreeSet<String> =
            offered.into_iter().map(|(_, provider)| provider.namespace).collect();
        provided.extend(self.book.hooks.providers.keys().cloned());
        let before = wanted.len();
        wanted.retain(|name, _| provided.contains(name));
        // A pack that cannot be read could provide what is missing.
        let skipped = if wanted.len() < before { broken } else { Vec::new() };
        Ok((wanted, skipped.into_iter().map(|error| error.diagnostic().clone()).collect()))
    }

    /// The definition as scripts see it, with the names that its templates mention.
    pub fn to_json(&self) -> Json {
        let mut object = self.prompt.to_json();
        let program = self.outline();
        let variables: BTreeSet<String> = self.reads().into_iter().map(|(read, _)| read.path).collect();
        let mut includes = BTreeSet::new();
        let mut extends = Vec::new();
        for names in program.names() {
            for reference in &names.references {
                for name in reference.names.iter().flatten() {
                    if reference.kind == ReferenceKind::Extends {
                        extends.push(name.clone());
                    } else {
                        includes.insert(name.clone());
                    }
                }
            }
        }
        let blocks: BTreeSet<&str> =
            program.names().iter().flat_map(|names| &names.blocks).map(|block| block.name.as_str()).collect();
        let namespaces: Vec<&String> = self.names.namespaces.keys().collect();
        let mut files: Vec<&str> = Vec::new();
        for unit in program.units() {
            if !files.contains(&unit.source().name()) {
                files.push(unit.source().name());
            }
        }
        if let Some(sections) = self.body.sections() {
            sections.describe_in(&mut object);
        }
        if let Some(directive) = self.directive() {
            object["directive"] = directive.to_json();
        }
        object["parents"] = json!(self.files.parents);
        object["languages"] = json!(self.languages());
        object["pack_id"] = json!(self.files.found.candidate.pack_id);
        object["names"] = json!({
            "variables": variables,
            "namespaces": namespaces,
            "includes": includes,
            "extends": extends,
            "blocks": blocks,
            "files": files,
        });
        object
    }
}

/// Adds the variables that included prompts ask for; the prompt's own win by name. Returns those that were added, and where their included prompts are
/// included.
fn borrow(prompt: &mut Prompt, asked: Vec<RequestedVariable>) -> BTreeMap<String, Place> {
    let mut borrowed = BTreeMap::new();
    for one in asked {
        if prompt.variable(&one.variable.name).is_none() {
            borrowed.insert(one.variable.name.clone(), one.place.clone());
            prompt.variables.push(one.into_variable());
        }
    }
    borrowed
}

/// Adds the variables of the parents by METADATA; the child's win by name. Returns the parents, nearest first.
fn inherit(
    prompt: &mut Prompt,
    extends: Option<(String, Place)>,
    root: &Arc<Root>,
    loader: &LibraryLoader,
    defaults: &Defaults,
    dialects: &Dialects,
) -> Result<Vec<String>> {
    let mut chain = vec![prompt.id.clone()];
    let mut next = extends;
    let mut root = root.clone();
    while let Some((parent, place)) = next {
        let found = loader.choose_beside(&root, &parent).map_err(|error| match error.code() {
            Code::PromptNotFound | Code::NoTemplate => {
                let shown = chain.iter().chain([&parent]).cloned().collect::<Vec<_>>().join(" → ");
                let diagnostic = Diagnostic::new(
                    Code::MissingParent,
                    format!("the parent `{parent}` does not exist ({shown})"),
                )
                .at(place.clone())
                .hint_opt(error.diagnostic().hint.clone());
                Error::new(ErrorKind::PromptRead, diagnostic)
            }
            _ => error,
        })?;
        if chain.contains(&found.id) {
            let shown = chain.iter().chain([&found.id]).cloned().collect::<Vec<_>>().join(" → ");
            let diagnostic =
                Diagnostic::new(Code::ParentCycle, format!("prompts extend each other in a cycle: {shown}"))
                    .at(place)
                    .hint("remove one of the `extends`");
            return Err(Error::new(ErrorKind::PromptRead, diagnostic));
        }
        let read = dialects.read(&found.id, &found.candidate, loader, defaults)?;
        // What is odd about a parent's files is reported where the parent is checked, not here.
        for variable in read.prompt.variables {
            if prompt.variable(&variable.name).is_none() {
                prompt.variables.push(Variable { inherited_from: Some(found.id.clone()), ..variable });
            }
        }
        chain.push(found.id);
        root = found.candidate.root;
        next = read.extends;
    }
    chain.remove(0);
    Ok(chain)
}
