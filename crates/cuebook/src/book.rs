//! The front door: open a book, render a prompt.
//!
//! A [`Book`] ties the stages together and keeps compiled prompts warm. Before it uses one it makes sure that nothing the
//! prompt was made from has changed, so a warm process sees a saved file at its next render.

mod answer;
mod builder;
mod cache;
mod listing;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use serde_json::Value as Json;

use crate::dialect::directive::ToolOffer;
use crate::dialect::{Dialect, Dialects};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::hooks::Hooks;
use crate::items::{ItemId, Spaces};
use crate::library::{Candidate, Config, Found, Library, LibraryLoader, Proof, Resolution, Survey};
use crate::prepared::{Mode, PrepareContext, Prepared};
use crate::redact::Secrets;
use crate::render::Rendered;
use crate::sections::{Custom, SectionType};
use crate::template::engine::Engine;
use crate::template::jinja::Extensions;
use crate::trace::{self, Span, span};
use crate::variables::{
    Clock, Context, FixedNonces, NonceSource, Problem, Scope, SystemClock, SystemNonces, Variables, validate,
};

pub use builder::RenderBuilder;
pub use cache::Freshness;
use cache::{Cache, CachedPrompt, KeyRef, NameKind};
pub use listing::Listing;

/// A project's prompts, ready to render. `Send + Sync`; share one between threads.
///
/// ```
/// use cuebook::Book;
///
/// let book = Book::open(".");
/// let rendered = book.prompt("general_system").var("agent_name", "Rumi").render()?;
/// assert!(rendered.text().contains("Rumi"));
///
/// // Every byte knows where it came from.
/// let at = rendered.text().find("Rumi").unwrap();
/// assert_eq!(rendered.span_at(at).unwrap().origin.kind(), "value");
/// # Ok::<(), cuebook::Error>(())
/// ```
///
/// A program can set the clock, the folder of the user's items, and the environment variables that prompts may read:
///
/// ```no_run
/// use cuebook::items::Spaces;
/// use cuebook::variables::FixedClock;
/// use cuebook::{Book, Context, variables};
///
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("prompts/greet");
/// # std::fs::create_dir_all(&path).unwrap();
/// # std::fs::write(path.join("template.md"), "Hello {{ name }}!").unwrap();
/// let book = Book::open(folder.path())
///     .with_clock(FixedClock::at("2026-02-20T15:30:00+00:00[UTC]")?)
///     .with_spaces(Spaces::new(folder.path(), None))
///     .with_env(["HOME"]);
/// let (context, ada) = (book.complete(&Context::default())?, variables! { name: "Ada" });
/// let (prepared, rendered) = book.render_and_keep("greet", &ada, &context)?;
/// assert_eq!(prepared.render(&ada, &context)?.text(), rendered.text());
/// assert!(book.library().ids()?.contains(&"greet".to_owned()));
///
/// // Paths are for paths that the program or its user chose. With `with_paths`, ids may be paths.
/// assert_eq!(book.prepare_path(&path, &context)?.found().id, book.find_path(&path)?.id);
/// let id = path.to_string_lossy();
/// assert!(book.render(&id, &ada, &context).is_err());
/// assert!(book.with_paths(true).render(&id, &ada, &context).is_ok());
/// # Ok::<(), cuebook::Error>(())
/// ```
#[derive(Debug)]
pub struct Book {
    library: Arc<Library>,
    stage: PrepareContext,
    /// Whether a name may be a path.
    paths: bool,
    freshness: Freshness,
    /// How often a new look was requested.
    refreshed: AtomicU64,
    prepared: Mutex<Cache>,
    /// Whether every hook has its prompt.
    hooks_checked: OnceLock<()>,
}

/// The library of a project, with these dialects.
fn library(root: &Path, dialects: &Arc<Dialects>) -> Library {
    Library::open(root).with_dialects(dialects.claims(), dialects.versions())
}

impl Book {
    /// Opens the book of a project. Nothing is read yet: a wrong file is reported by what needs it.
    pub fn open(root: impl AsRef<Path>) -> Book {
        // An absolute root makes paths in any spelling comparable; where even that fails, the path stays as it is.
        let root = std::path::absolute(root.as_ref()).unwrap_or_else(|_| root.as_ref().to_owned());
        let dialects = Arc::new(Dialects::default());
        Book {
            library: Arc::new(library(&root, &dialects)),
            stage: PrepareContext {
                clock: Arc::new(SystemClock),
                hooks: Arc::default(),
                scripts: Arc::default(),
                engines: Arc::default(),
                nonces: Arc::new(SystemNonces),
                overrides: Arc::default(),
                dialects,
                offer: None,
                extensions: Default::default(),
            },
            paths: false,
            freshness: Freshness::default(),
            refreshed: AtomicU64::new(0),
            prepared: Mutex::default(),
            hooks_checked: OnceLock::new(),
        }
    }

    /// The same book with other spaces than those of this user.
    pub fn with_spaces(mut self, spaces: Spaces) -> Book {
        let host = self.library.host_env();
        let library = library(self.library.root(), &self.stage.dialects).with_spaces(spaces);
        self.library = Arc::new(library.with_env(host.iter().cloned()));
        self
    }

    /// The same book, whose prompts may read these environment variables. Without this a prompt reads only variables that the
    /// user listed or granted to the project.
    pub fn with_env(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Book {
        let library =
            library(self.library.root(), &self.stage.dialects).with_spaces(self.library.spaces().clone());
        self.library = Arc::new(library.with_env(names));
        self
    }

    /// The same book for the command line: what its user types may be a path to a file or folder. Without this every name is an
    /// id, and `/etc/passwd` or `../x` is refused. A program that knows that it has a path calls [`Book::render_file`] instead.
    pub fn with_paths(mut self, paths: bool) -> Book {
        self.paths = paths;
        self
    }

    /// The same book that looks for changed files at other times. Without this it looks before every render.
    pub fn with_freshness(mut self, freshness: Freshness) -> Book {
        self.freshness = freshness;
        self
    }

    /// Looks for changed files at the next render of each prompt, whatever the book's [`Freshness`] is.
    pub fn refresh(&self) {
        self.refreshed.fetch_add(1, Ordering::Release);
    }

    /// Whether names may be paths.
    #[doc(hidden)]
    pub fn takes_paths(&self) -> bool {
        self.paths
    }

    /// Finds a prompt by its id, or by a path if this book takes paths.
    pub fn find(&self, wanted: &str) -> Result<Found> {
        if self.paths { self.library.find_typed(wanted) } else { self.library.find(wanted) }
    }

    /// Finds a prompt by a path, if this book takes paths.
    pub fn find_path(&self, path: &Path) -> Result<Found> {
        if self.paths { self.library.find_path(path) } else { self.library.find(&path.to_string_lossy()) }
    }

    /// The same book with another clock.
    pub fn with_clock(mut self, clock: impl Clock + 'static) -> Book {
        self.stage.clock = Arc::new(clock);
        self
    }

    /// The same book with hooks, providers and what runs those in files.
    pub fn with_hooks(mut self, hooks: Hooks) -> Book {
        self.stage.hooks = Arc::new(hooks);
        self.hooks_checked = OnceLock::new();
        self
    }

    /// The same book with one more template engine, for `.prompty` files that name it by this key. An engine of that key
    /// that is there already is replaced.
    pub fn with_engine(mut self, key: impl Into<String>, engine: impl Engine + 'static) -> Book {
        let engines = Arc::unwrap_or_clone(self.stage.engines).with(key, Arc::new(engine));
        self.stage.engines = Arc::new(engines);
        self
    }

    /// The same book with one more dialect: its prompts are found, listed, checked and rendered like all others. One of that name
    /// is replaced. [`Dialect`] has an example.
    pub fn with_dialect(mut self, dialect: impl Dialect + 'static) -> Book {
        self.stage.dialects = Arc::new(Arc::unwrap_or_clone(self.stage.dialects).with(dialect));
        let spaces = self.library.spaces().clone();
        self.with_spaces(spaces)
    }

    /// The same book with a section type, for sections in files that name it: `type: NAME`.
    pub fn with_section_type(self, name: impl Into<String>, kind: impl SectionType + 'static) -> Book {
        self.with_engine(name, Custom(Arc::new(kind)))
    }

    /// The same book with the tools that threads of directives offer to their models.
    #[doc(hidden)]
    pub fn with_directive_tools(mut self, offer: impl ToolOffer + 'static) -> Book {
        self.stage.offer = Some(Arc::new(offer));
        self
    }

    /// The same book with one more filter for Jinja2 templates. It gets the filtered value and then its arguments; those that are
    /// given by name come last, as one object. An `Err` stops the render and is shown with its place. A filter of Jinja2 that has this
    /// name is replaced.
    ///
    /// ```
    /// # use cuebook::{Book, Context, Variables};
    /// use serde_json::json;
    ///
    /// let book = Book::open(".")
    ///     .with_filter("initials", |given| {
    ///         let name = given[0].as_str().ok_or("a name is a text")?;
    ///         Ok(json!(name.split(' ').filter_map(|word| word.chars().next()).collect::<String>()))
    ///     })
    ///     .with_test("short", |given| Ok(given[0].as_str().is_some_and(|text| text.len() < 20)))
    ///     .with_function("greeting", |given| Ok(json!(format!("Hello {}", given[0].as_str().unwrap_or("you")))))
    ///     .with_global("team", json!("Tides"));
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let at = folder.path().join("ada.prompty");
    /// # let text = "{{ greeting(name) }} ({{ name | initials }}){% if name is short %}, {{ team }}{% endif %}";
    /// # std::fs::write(&at, text).unwrap();
    /// // {{ greeting(name) }} ({{ name | initials }}){% if name is short %}, {{ team }}{% endif %}
    /// let rendered = book.render_file(&at, &Variables::new().set("name", "Ada Lovelace"), &Context::default())?;
    /// assert_eq!(rendered.text(), "Hello Ada Lovelace (AL), Tides");
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn with_filter(
        self,
        name: impl Into<String>,
        filter: impl Fn(&[Json]) -> Result<Json, String> + Send + Sync + 'static,
    ) -> Book {
        self.extended(|extensions| extensions.filter(name.into(), filter))
    }

    /// The same book with one more test for Jinja2 templates: `{% if name is short %}`. It gets the value and then its arguments.
    pub fn with_test(
        self,
        name: impl Into<String>,
        test: impl Fn(&[Json]) -> Result<bool, String> + Send + Sync + 'static,
    ) -> Book {
        self.extended(|extensions| extensions.test(name.into(), test))
    }

    /// The same book with one more function for Jinja2 templates: `{{ greeting(name) }}`. A variable of this name wins.
    pub fn with_function(
        self,
        name: impl Into<String>,
        function: impl Fn(&[Json]) -> Result<Json, String> + Send + Sync + 'static,
    ) -> Book {
        self.extended(|extensions| extensions.function(name.into(), function))
    }

    /// The same book with one more value that every Jinja2 template finds under this name. A variable of this name wins.
    pub fn with_global(self, name: impl Into<String>, value: impl Into<Json>) -> Book {
        self.extended(|extensions| extensions.value(name.into(), value.into()))
    }

    fn extended(mut self, with: impl FnOnce(Extensions) -> Extensions) -> Book {
        self.stage.extensions = with(std::mem::take(&mut self.stage.extensions));
        self
    }

    /// The same book with another source of nonces.
    #[doc(hidden)]
    pub fn with_nonces(mut self, nonces: impl NonceSource + 'static) -> Book {
        self.stage.nonces = Arc::new(nonces);
        self
    }

    /// A book of the same library whose renders can be repeated: nonces of these digits, and the given clock if there is one.
    #[doc(hidden)]
    pub fn for_cases(&self, clock: Option<Arc<dyn Clock>>, digits: &str) -> Book {
        let clock = clock.unwrap_or_else(|| self.stage.clock.clone());
        let nonces = Arc::new(FixedNonces(digits.to_owned()));
        let stage = PrepareContext { clock, nonces, ..self.stage.clone() };
        Book {
            library: self.library.clone(),
            stage,
            paths: self.paths,
            freshness: self.freshness,
            refreshed: AtomicU64::new(0),
            prepared: Mutex::default(),
            hooks_checked: OnceLock::new(),
        }
    }

    /// The library behind it.
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Renders a prompt, given by its id.
    ///
    /// ```
    /// # use cuebook::{Book, Context, Variables};
    /// let variables = Variables::new().set("message_count", 40).set("target_length", 500);
    /// let rendered = Book::open(".").render("history_compression", &variables, &Context::default())?;
    /// assert!(rendered.text().contains("40"));
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn render(&self, prompt_id: &str, variables: &Variables, context: &Context) -> Result<Rendered> {
        self.render_and_keep(prompt_id, variables, context).map(|(_, rendered)| rendered)
    }

    /// Renders a prompt, and keeps what it was rendered from.
    pub fn render_and_keep(
        &self,
        prompt_id: &str,
        variables: &Variables,
        context: &Context,
    ) -> Result<(Arc<Prepared>, Rendered)> {
        self.render_as(prompt_id, || self.prepare(prompt_id, context), variables, context)
    }

    fn render_as(
        &self,
        name: &str,
        prepare: impl FnOnce() -> Result<Arc<Prepared>>,
        variables: &Variables,
        context: &Context,
    ) -> Result<(Arc<Prepared>, Rendered)> {
        let span = span!("render", "cuebook.render", name);
        let _entered = span.enter();
        let mut secrets = trace::given(&span, || variables.to_json());
        let done = prepare().and_then(|prepared| {
            let rendered = prepared.render(variables, &Arc::new(context.clone()))?;
            Ok((prepared, rendered))
        });
        if let Ok((prepared, _)) = &done {
            trace::keep_secret(&span, &mut secrets, prepared.prompt().secrets());
        }
        trace::outcome(&span, secrets, &done, |(_, rendered)| Json::from(rendered.text()));
        done
    }

    /// Renders a prompt without holding up the task that waits for it: what runs code of hooks does so in a thread of its
    /// own. Needs no particular runtime.
    ///
    /// ```
    /// # use cuebook::{Book, Context, Variables};
    /// # use std::sync::Arc;
    /// # let wait = |future| -> cuebook::Result<cuebook::Rendered> { futures_executor::block_on(future) };
    /// let book = Arc::new(Book::open("."));
    /// let variables = Variables::new().set("agent_name", "Rumi");
    /// let rendered = wait(book.render_async("general_system", &variables, &Context::default()))?;
    /// assert!(rendered.text().contains("Rumi"));
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn render_async(
        self: &Arc<Self>,
        prompt_id: &str,
        variables: &Variables,
        context: &Context,
    ) -> impl Future<Output = Result<Rendered>> + Send + 'static {
        let book = self.clone();
        let prompt_id = prompt_id.to_owned();
        let (variables, context) = (variables.clone(), context.clone());
        let listening = Span::current();
        async move {
            if !book.prepare(&prompt_id, &context)?.runs_code(&context) {
                return listening.in_scope(|| book.render(&prompt_id, &variables, &context));
            }
            let (sender, receiver) = answer::channel();
            let work = move || {
                let rendered = listening.in_scope(|| book.render(&prompt_id, &variables, &context));
                sender.send(rendered);
            };
            std::thread::Builder::new().name("cuebook render".into()).spawn(work).map_err(|error| {
                let message = format!("cannot start a thread for the render: {error}");
                Error::new(ErrorKind::Io, Diagnostic::new(Code::RenderFailed, message))
            })?;
            receiver.await.unwrap_or_else(|| {
                let message = "the render thread ended without a result";
                Err(Error::new(ErrorKind::PromptRender, Diagnostic::new(Code::RenderFailed, message)))
            })
        }
    }

    /// The definition of a prompt: metadata, variables, permissions, limits, and the names that its templates mention.
    ///
    /// ```
    /// # use cuebook::Book;
    /// let definition = Book::open(".").get_definition("coding_system")?;
    /// assert_eq!(definition["extends"], "general_system");
    /// assert_eq!(definition["variables"]["required"][0]["name"], "agent_name");
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn get_definition(&self, prompt_id: &str) -> Result<Json> {
        Ok(self.prepare(prompt_id, &Context::default())?.to_json())
    }

    /// Every prompt, by id. With a filter, only those of a type, or with a tag.
    ///
    /// ```
    /// # use cuebook::Book;
    /// let planning = Book::open(".").list_prompts(Some("planning"), None)?;
    /// assert_eq!(planning[0].id, "planning_task_decomposition");
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn list_prompts(&self, kind: Option<&str>, tag: Option<&str>) -> Result<Vec<Listing>> {
        self.library.check_root()?;
        let defaults = self.library.defaults()?;
        let mut list = Vec::new();
        // A file that is wrong is an error here, and not a problem of every prompt.
        self.library.resolutions()?;
        let survey = self.library.survey()?;
        for (id, candidates) in survey.ids() {
            let mut listing = Listing {
                id: id.to_owned(),
                name: None,
                dialect: None,
                kind: None,
                version: None,
                tags: Vec::new(),
                description: None,
                source: None,
                candidates: candidates.to_vec(),
                problem: None,
            };
            let summary = survey.choose(&self.library, id).and_then(|found| {
                listing.source = Some(found.candidate.source.clone());
                listing.dialect = Some(found.candidate.dialect);
                self.stage.dialects.summary(id, &found.candidate, &self.library, &defaults)
            });
            match summary {
                Ok(metadata) => {
                    listing.tags = metadata.tags().map(str::to_owned).collect();
                    listing.name = Some(metadata.name);
                    listing.kind = Some(metadata.kind);
                    listing.version = Some(metadata.version);
                    listing.description = metadata.description;
                }
                Err(error) => listing.problem = Some(error),
            }
            let wanted = kind.is_none_or(|kind| listing.kind.as_deref() == Some(kind))
                && tag.is_none_or(|tag| listing.tags.iter().any(|known| known == tag));
            if wanted {
                list.push(listing);
            }
        }
        Ok(list)
    }

    /// Every place that offers an id, with its version.
    ///
    /// ```
    /// # use cuebook::Book;
    /// let candidates = Book::open(".").list_candidates("GeneralSystem")?;
    /// assert_eq!(candidates[0].source, "ecosystem/default/prompts/general_system");
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn list_candidates(&self, prompt_id: &str) -> Result<Vec<Candidate>> {
        self.library.candidates(prompt_id, self.paths)
    }

    /// Records which of the places that offer an id is meant.
    ///
    /// ```
    /// # use cuebook::Book;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # for place in ["prompts/greet", "user_data/packs/polite/prompts/greet"] {
    /// #     std::fs::create_dir_all(folder.path().join(place)).unwrap();
    /// #     std::fs::write(folder.path().join(place).join("template.md"), place).unwrap();
    /// # }
    /// let book = Book::open(folder.path());
    /// book.set_resolution("greet", "user_data/packs/polite/prompts/greet")?;
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn set_resolution(&self, prompt_id: &str, source: &str) -> Result<Resolution> {
        self.library.set_resolution(prompt_id, source)
    }

    /// What is wrong with the variables for a prompt; nothing, if they are right.
    ///
    /// ```
    /// # use cuebook::{Book, Context, Variables};
    /// let problems = Book::open(".").validate("general_system", &Variables::new(), &Context::default())?;
    /// assert_eq!((problems[0].name.as_str(), problems[0].found), ("agent_name", None));
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn validate(
        &self,
        prompt_id: &str,
        variables: &Variables,
        context: &Context,
    ) -> Result<Vec<Problem>> {
        let context = self.complete(context)?;
        Ok(problems(&*self.prepare(prompt_id, &context)?, variables, &context))
    }

    /// A compiled prompt. It renders any number of times without looking at the files again; ask the book anew to see
    /// changes. The context chooses its language (else the agent's, else the project's) and whether it is strict.
    pub fn prepare(&self, prompt_id: &str, context: &Context) -> Result<Arc<Prepared>> {
        let find = || {
            self.check_hooks()?;
            self.find(prompt_id)
        };
        self.prepare_as((NameKind::Id, prompt_id), context, find).map(|(prepared, _)| prepared)
    }

    /// A compiled directive, also where another prompt has the same id, and whether its signatures are proven: they were verified,
    /// and nothing that they depend on has changed since.
    ///
    /// # Errors
    ///
    /// `CB210` if no directive has that id, and whatever is wrong with its file.
    #[doc(hidden)]
    pub fn prepare_directive(&self, id: &ItemId, context: &Context) -> Result<(Arc<Prepared>, bool)> {
        let find = || {
            self.check_hooks()?;
            self.library.find_directive(id)
        };
        self.prepare_as((NameKind::Directive, id.as_str()), context, find)
    }

    fn prepare_as(
        &self,
        (kind, wanted): (NameKind, &str),
        context: &Context,
        find: impl Fn() -> Result<Found>,
    ) -> Result<(Arc<Prepared>, bool)> {
        let is_directive = kind == NameKind::Directive;
        let said = context.language.as_deref().or(context.agent.language.as_deref());
        let key = KeyRef { kind, wanted, language: said, strict: context.strict };
        let refreshed = self.refreshed.load(Ordering::Acquire);
        let known = self.lock().get(&key).cloned();
        if let Some(known) = &known
            && known.is_fresh(self.freshness, refreshed)
        {
            return Ok((known.prepared.clone(), false));
        }
        // `wasm32-unknown-unknown` has no clock.
        let looked = matches!(self.freshness, Freshness::AtMostEvery(_)).then(Instant::now);
        let keep = |prepared: &Arc<Prepared>, proof: Option<Arc<Proof>>| {
            let kept = CachedPrompt { prepared: prepared.clone(), proof, looked, refreshed };
            self.lock().keep(&key, kept);
        };
        if let Some(CachedPrompt { prepared, proof, .. }) = known {
            if let Some(proof) = proof.filter(|proof| proof.holds()) {
                if self.freshness != Freshness::EveryRender {
                    keep(&prepared, Some(proof));
                }
                return Ok((prepared, is_directive));
            }
            // Taken before the look, so that a change in between is noticed.
            let proof = match kind {
                NameKind::Id => prepared.proof(wanted),
                NameKind::Directive => prepared.directive_proof(wanted),
                NameKind::File => None,
            };
            if prepared.is_unchanged(&self.library.config()?, &find) {
                let proof = proof.filter(|_| !is_directive || prepared.verify_signature().is_ok());
                keep(&prepared, proof.map(Arc::new));
                return Ok((prepared, false));
            }
        }
        let config = self.library.config()?;
        let span = span!("load", "cuebook.load", wanted);
        let _entered = span.enter();
        let mode = if context.strict { Mode::Strict } else { Mode::Lenient };
        let language = language_of(context, &config);
        let read = find().and_then(|found| self.prepare_found(found, language, mode, &config, None));
        trace::outcome(&span, Secrets::new(), &read, |prepared| prepared.prompt().to_json());
        let prepared = Arc::new(read?);
        keep(&prepared, None);
        Ok((prepared, false))
    }

    /// A compiled prompt by a path to its file or folder, which the user of the program chose.
    pub fn prepare_path(&self, path: &Path, context: &Context) -> Result<Arc<Prepared>> {
        let config = self.library.config()?;
        let mode = if context.strict { Mode::Strict } else { Mode::Lenient };
        let found = self.library.find_path(path)?;
        self.prepare_found(found, language_of(context, &config), mode, &config, None).map(Arc::new)
    }

    /// The context with what the project says where the caller says nothing.
    pub fn complete(&self, context: &Context) -> Result<Arc<Context>> {
        let mut context = context.clone();
        if context.language.is_none() && context.agent.language.is_none() {
            context.language = self.library.config()?.library.language.clone();
        }
        Ok(Arc::new(context))
    }

    /// Refuses hooks for prompts that do not exist: they would never run.
    fn check_hooks(&self) -> Result<()> {
        // A prompt that is found by its path need not be in the library.
        if self.paths || self.hooks_checked.get().is_some() {
            return Ok(());
        }
        for (function, id) in self.stage.hooks.of_prompts() {
            // A prompt that is there and cannot be chosen or read has an error of its own.
            if let Err(error) = self.library.resolve_id(id)
                && matches!(error.code(), Code::PromptNotFound | Code::InvalidId)
            {
                let message = format!("the hook `{function}` is for the prompt `{id}`, which does not exist");
                let near = nearest(id, self.library.ids()?.iter().map(String::as_str));
                let diagnostic = Diagnostic::new(Code::PromptNotFound, message).hint_opt(did_you_mean(&near));
                let error = Error::new(ErrorKind::PromptNotFound, diagnostic);
                return Err(error.with("prompt_id", id).with("hook", function).with("nearest", near));
            }
        }
        let _ = self.hooks_checked.set(());
        Ok(())
    }

    /// Reads and compiles a candidate that was found.
    #[doc(hidden)]
    pub fn prepare_found(
        &self,
        found: Found,
        language: &str,
        mode: Mode,
        config: &Arc<Config>,
        survey: Option<Arc<Survey>>,
    ) -> Result<Prepared> {
        let root = found.candidate.root.clone();
        let limit = config.limits.file_size;
        let loader = LibraryLoader::new(self.library.clone(), root, language, limit, survey);
        Prepared::new(found, Arc::new(loader), config.clone(), mode, &self.stage)
    }

    fn lock(&self) -> MutexGuard<'_, Cache> {
        self.prepared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is wrong with the variables for a prompt.
fn problems(prepared: &Prepared, variables: &Variables, context: &Arc<Context>) -> Vec<Problem> {
    let scope = prepared.scope(variables, context);
    validate(prepared.prompt(), &scope).into_iter().map(|(problem, _)| problem).collect()
}

/// The language of a render: the caller's, else the agent's, else the project's.
fn language_of<'c>(context: &'c Context, config: &'c Config) -> &'c str {
    let said = context.language.as_deref().or(context.agent.language.as_deref());
    said.or(config.library.language.as_deref()).unwrap_or_else(|| Scope::language(context))
}
