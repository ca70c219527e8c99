//! The engine: the projects of a user, and what is kept of them between calls.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use cuebook::actions::search::Searcher;
use cuebook::items::{Item, ItemId, ItemType, Spaces};
use cuebook::limits::FILE_BYTES;
use cuebook::trust::{Grants, Request as GrantRequest, Trust, message_with_path};
use cuebook::{Book, Code, Context, Diagnostic, Error, ErrorKind, Hint, Prepared, Result};
use cuebook_hooks::sandbox::Launcher;
use serde_json::{Map, Value as Json, json};

use crate::caller::Caller;
use crate::chain::Memo;
use crate::policy::directive_tools::DirectiveTools;
use crate::provider::{Client, Recorder, Recording};
use crate::record::ThreadId;
use crate::request::ExecuteRequest;
use crate::settings::Settings;
use crate::store::{CancelWatch, Heartbeat, HeartbeatGuard, Store, Watched};
use crate::turn::Performed;
use crate::verify::Verify;
use crate::watch::Watch;

/// Executes items of projects.
///
/// ```
/// use cuebook::items::Spaces;
/// use cuebook_run::{Engine, ExecuteRequest};
///
/// # let folder = tempfile::tempdir().unwrap();
/// let engine = Engine::new(Spaces::new(folder.path(), None));
/// let found = engine.execute(&ExecuteRequest::knowledge("rye/core/directive-metadata-reference"))?;
/// assert_eq!(found.to_json()["status"], "success");
/// let error = engine.execute(&ExecuteRequest::tool("desk/oder")).unwrap_err();
/// assert_eq!(error.diagnostic().message, "Tool not found: desk/oder");
/// # Ok::<(), cuebook::Error>(())
/// ```
///
/// Threads are in a store, whose rows a program can list. A worker runs the threads of a queue:
///
/// ```no_run
/// use cuebook::actions::load::LoadRequest;
/// use cuebook::items::{ItemType, Spaces};
/// use cuebook_run::store::Filter;
/// use cuebook_run::{Engine, Fork, Ignore, QueueOptions, RunRequest, Settings};
///
/// let settings = Settings { store: Some("postgres://threads.example.com/desk".to_owned()), ..Settings::default() };
/// let engine = Engine::new(Spaces::of_project("/srv/desk".as_ref())).with_settings(settings);
/// assert!(engine.settings().store.is_some());
/// let book = engine.book()?;
/// let queued = engine.queue(&book, &RunRequest::new("reply"), &QueueOptions::default(), &Ignore)?;
/// for record in engine.threads(None)?.list(&Filter::default())? {
///     println!("{} {}", record.id, record.status);
/// }
/// let how = Fork { turn: 1, ..Fork::default() };
/// engine.fork(None, &book, &queued.id, &how, &Ignore)?;
/// engine.cancel(None, &queued.id, false)?;
/// let item = engine.load(&LoadRequest::new(ItemType::Tool, "desk/orders"))?;
/// # Ok::<(), cuebook::Error>(())
/// ```
pub struct Engine {
    spaces: Spaces,
    settings: Settings,
    functions: BTreeMap<String, Function>,
    make_verifier: Box<MakeVerifier>,
    projects: Mutex<HashMap<PathBuf, Arc<Project>>>,
    stores: Mutex<HashMap<String, OpenStore>>,
    client: OnceLock<Client>,
    recordings: Mutex<HashMap<PathBuf, Arc<Recording>>>,
    recorders: Mutex<HashMap<PathBuf, Arc<Recorder>>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("project", &self.spaces.project()).finish_non_exhaustive()
    }
}

/// A store that was opened, what gives it signs of life, and what looks out for threads that are to stop.
struct OpenStore {
    store: Arc<dyn Store>,
    heartbeat: Heartbeat,
    cancel_watch: CancelWatch,
}

type Function = Box<dyn Fn(&Map<String, Json>) -> Performed + Send + Sync>;
type MakeVerifier = dyn Fn(&Spaces) -> Box<dyn Verify> + Send + Sync;

/// What is kept of a project between calls.
pub(crate) struct Project {
    pub(crate) spaces: Spaces,
    pub(crate) verify: Box<dyn Verify>,
    pub(crate) memo: Memo,
    launcher: Launcher,
    book: OnceLock<Arc<Book>>,
    trust: OnceLock<Trust>,
    searcher: OnceLock<Searcher>,
}

impl Project {
    /// Whose keys are trusted, for what is signed and searched here.
    pub(crate) fn trust(&self) -> &Trust {
        self.trust.get_or_init(|| Trust::new(&self.spaces))
    }

    /// Its prompts, with the hooks that belong to them and the tools of directives.
    pub(crate) fn book(&self) -> &Book {
        self.kept_book()
    }

    /// The same, for a thread that outlives the call.
    pub(crate) fn shared_book(&self) -> Arc<Book> {
        self.kept_book().clone()
    }

    fn kept_book(&self) -> &Arc<Book> {
        self.book.get_or_init(|| {
            let book = Book::open(self.spaces.project()).with_spaces(self.spaces.clone());
            let hooks = cuebook_hooks::hooks(book.library().clone(), self.launcher.clone());
            Arc::new(book.with_hooks(hooks).with_directive_tools(DirectiveTools))
        })
    }

    /// What was searched, for later searches.
    pub(crate) fn searcher(&self) -> &Searcher {
        self.searcher.get_or_init(|| Searcher::new(self.spaces.clone()))
    }
}

/// How many projects are kept.
const MAX_PROJECTS: usize = 64;

/// Executes an item for a thread. Threads call items through this trait, because items in turn start threads.
pub(crate) trait Execute {
    fn execute_for(&self, request: &ExecuteRequest, watch: &dyn Watch, caller: Option<&Caller<'_>>)
    -> Answer;
}

/// What a call answers.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The response, with its `status`.
    pub json: Json,
    /// Why it failed, for people.
    pub error: Option<Error>,
}

impl Engine {
    /// An engine for the projects of a user; one of them is where calls go that name none.
    pub fn new(spaces: Spaces) -> Engine {
        Engine::verified_by(spaces, |spaces| Box::new(Trust::new(spaces)))
    }

    /// An engine whose items are verified by other code than the trust store.
    #[doc(hidden)]
    pub fn verified_by(
        spaces: Spaces,
        verify: impl Fn(&Spaces) -> Box<dyn Verify> + Send + Sync + 'static,
    ) -> Engine {
        Engine {
            spaces,
            settings: Settings::default(),
            functions: BTreeMap::new(),
            make_verifier: Box::new(verify),
            projects: Mutex::default(),
            stores: Mutex::default(),
            client: OnceLock::new(),
            recordings: Mutex::default(),
            recorders: Mutex::default(),
        }
    }

    /// The same engine with other settings.
    pub fn with_settings(mut self, settings: Settings) -> Engine {
        self.settings = settings;
        self
    }

    /// The same engine with a function of this program behind a tool that prompts declare. A [`RunRequest`](crate::RunRequest) that
    /// names an item for the tool uses the item. Only threads of this process call it.
    #[must_use]
    pub fn with_function(
        mut self,
        tool: impl Into<String>,
        function: impl Fn(&Map<String, Json>) -> Performed + Send + Sync + 'static,
    ) -> Engine {
        self.functions.insert(tool.into(), Box::new(function));
        self
    }

    /// The function behind a tool.
    pub(crate) fn function(&self, tool: &str) -> Option<&Function> {
        self.functions.get(tool)
    }

    /// The project that a call is about: the one that it names, or the engine's own.
    pub(crate) fn project_of(&self, path: Option<&str>) -> Result<Arc<Project>> {
        self.project(path.map(Path::new))
    }

    pub(crate) fn project(&self, path: Option<&Path>) -> Result<Arc<Project>> {
        let path = path.unwrap_or(self.spaces.project());
        let wrong = |message: &str| {
            let diagnostic = Diagnostic::new(Code::BadParameters, message)
                .file(path.to_string_lossy())
                .hint("`project_path` must be the absolute path of a directory");
            Error::new(ErrorKind::Usage, diagnostic)
        };
        if !path.is_absolute() {
            return Err(wrong("the project's path is not absolute"));
        }
        let reached = match self.settings.allowance {
            Some(_) => Some(self.served(path)?),
            None => None,
        };
        let path = reached.as_deref().unwrap_or(path);
        let mut projects = self.projects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = projects.get(path) {
            return Ok(known.clone());
        }
        if !path.is_dir() {
            return Err(wrong("the project is not a directory"));
        }
        let spaces = if path == self.spaces.project() { self.spaces.clone() } else { self.spaces_of(path) };
        let verify = (self.make_verifier)(&spaces);
        let project = Arc::new(Project {
            spaces,
            verify,
            memo: Memo::default(),
            launcher: self.settings.launcher.clone().unwrap_or_else(Launcher::this_program),
            book: OnceLock::new(),
            trust: OnceLock::new(),
            searcher: OnceLock::new(),
        });
        if projects.len() >= MAX_PROJECTS {
            projects.clear();
        }
        projects.insert(path.to_owned(), project.clone());
        Ok(project)
    }

    /// A project that clients may work in: the engine's own, or one that the user granted. The real path is checked and used,
    /// so that a link cannot lead elsewhere later.
    fn served(&self, path: &Path) -> Result<PathBuf> {
        let own = self.spaces.project();
        // The same answer whether the folder exists or not: a client learns nothing of others.
        let real = std::fs::canonicalize(path).map_err(|_| unserved(path))?;
        if path == own || std::fs::canonicalize(own).is_ok_and(|own| own == real) {
            return Ok(own.to_owned());
        }
        if Grants::of(&self.spaces_of(&real))?.has(&GrantRequest::serve()) {
            return Ok(real);
        }
        Err(unserved(path))
    }

    /// The folder of the user's own items and state.
    pub(crate) fn user_folder(&self) -> Option<PathBuf> {
        self.spaces.user_folder()
    }

    /// How it was set up.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// A store that is opened once and kept.
    pub(crate) fn kept_store(
        &self,
        place: &str,
        open: impl FnOnce() -> Result<Arc<dyn Store>>,
    ) -> Result<Arc<dyn Store>> {
        let mut stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = stores.get(place) {
            return Ok(opened.store.clone());
        }
        let store = open()?;
        let (heartbeat, cancel_watch) = (Heartbeat::new(store.clone()), CancelWatch::new(store.clone()));
        stores.insert(place.to_owned(), OpenStore { store: store.clone(), heartbeat, cancel_watch });
        Ok(store)
    }

    /// A store that is open already.
    pub(crate) fn opened_store(&self, place: &str) -> Option<Arc<dyn Store>> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        stores.get(place).map(|opened| opened.store.clone())
    }

    /// Gives signs of life to a store, and looks out for a thread, for as long as what is returned lives.
    pub(crate) fn hold(&self, store: &Arc<dyn Store>, id: &ThreadId) -> Option<(HeartbeatGuard, Watched)> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = stores.values().find(|opened| Arc::ptr_eq(&opened.store, store))?;
        Some((opened.heartbeat.hold(), opened.cancel_watch.watch(id)))
    }

    /// Makes the requests of all threads.
    pub(crate) fn client(&self) -> Result<Client> {
        if let Some(client) = self.client.get() {
            return Ok(client.clone());
        }
        let made = Client::from_environment()?;
        Ok(self.client.get_or_init(|| made).clone())
    }

    /// Replies that were recorded. All threads of an engine go through them in turn.
    pub(crate) fn recording(&self, path: &Path) -> Result<Arc<Recording>> {
        kept(&self.recordings, path, || Recording::read(path).map(Arc::new))
    }

    /// Records replies. All threads of an engine write into one file.
    pub(crate) fn recorder(&self, path: &Path) -> Result<Arc<Recorder>> {
        kept(&self.recorders, path, || Recorder::create(path))
    }

    /// Sees to it that replies can be recorded, before anything begins.
    pub(crate) fn ready_to_record(&self) -> Result<()> {
        self.settings.record.as_deref().map_or(Ok(()), |path| self.recorder(path).map(drop))
    }

    /// The same for a thread that is taken up again: what it was answered before stays.
    pub(crate) fn ready_to_record_on(&self) -> Result<()> {
        let Some(path) = &self.settings.record else { return Ok(()) };
        kept(&self.recorders, path, || Recorder::resume(path)).map(drop)
    }

    /// The same for a recording that another process has begun.
    pub(crate) fn recorder_behind(&self, path: &Path) -> Result<Arc<Recorder>> {
        kept(&self.recorders, path, || Recorder::append(path))
    }

    /// A directive, verified and read.
    pub(crate) fn directive(&self, project: &Project, id: &ItemId) -> Result<Arc<Prepared>> {
        match project.book().prepare_directive(id, &Context::default()) {
            Ok((prepared, true)) => Ok(prepared),
            Ok((prepared, false)) => prepared.verify_signature().map(|()| prepared),
            // That a file was changed is more important than what is wrong with it since.
            Err(error) => {
                verified(project, ItemType::Directive, id).map_err(Failure::into_error).and(Err(error))
            }
        }
    }

    /// The spaces of another project of the same user.
    fn spaces_of(&self, project: &Path) -> Spaces {
        let user = self.spaces.user_folder();
        Spaces::new(project, user.as_deref().and_then(Path::parent))
    }
}

/// `CB806`
fn unserved(path: &Path) -> Error {
    let message = format!("MCP clients cannot use the project `{}`", path.display());
    let hint = Hint::from("leave out `project_path` to work in the served project")
        .or(Hint::command_line("the user can allow another project with `cuebook allow --serve` in it"));
    let diagnostic = Diagnostic::new(Code::ProjectNotServed, message).hint(hint);
    Error::new(ErrorKind::Usage, diagnostic).with("project_path", path.to_string_lossy())
}

/// Something that is made once for a path, and kept.
fn kept<T>(
    all: &Mutex<HashMap<PathBuf, Arc<T>>>,
    path: &Path,
    make: impl FnOnce() -> Result<Arc<T>>,
) -> Result<Arc<T>> {
    let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = all.get(path) {
        return Ok(known.clone());
    }
    let made = make()?;
    all.insert(path.to_owned(), made.clone());
    Ok(made)
}

/// A call that failed: the error, and what else the response says.
pub(crate) struct Failure(Box<Failed>);

struct Failed {
    error: Error,
    /// What the response says under `error`, if it is not what the error says.
    text: Option<String>,
    item_id: Option<String>,
    more: Map<String, Json>,
}

impl Failure {
    pub(crate) fn new(error: Error) -> Failure {
        Failure(Box::new(Failed { error, text: None, item_id: None, more: Map::new() }))
    }

    pub(crate) fn with_text(mut self, text: String) -> Failure {
        self.0.text = Some(text);
        self
    }

    pub(crate) fn with_id(mut self, id: Option<&str>) -> Failure {
        self.0.item_id = id.map(str::to_owned);
        self
    }

    pub(crate) fn with(mut self, name: &str, value: Json) -> Failure {
        self.0.more.insert(name.to_owned(), value);
        self
    }

    pub(crate) fn into_error(self) -> Error {
        self.0.error
    }

    /// The error, with what else the response would say as its fields.
    pub(crate) fn into_detailed_error(self) -> Error {
        let Failed { error, more, .. } = *self.0;
        let missing: Vec<(String, Json)> =
            more.into_iter().filter(|(name, _)| error.field(name).is_none()).collect();
        missing.into_iter().fold(error, |error, (name, value)| error.with(&name, value))
    }

    pub(crate) fn into_answer(self, started: Option<Instant>) -> Answer {
        let Failed { error, text, item_id, more } = *self.0;
        let mut response = Map::new();
        response.insert("status".to_owned(), "error".into());
        response.insert("error".to_owned(), text.unwrap_or_else(|| text_of(&error)).into());
        if let Some(id) = item_id {
            response.insert("item_id".to_owned(), id.into());
        }
        response.extend(more);
        if let Some(Json::Object(mut reported)) = error.to_json().get("error").cloned() {
            // It stands at the top already.
            reported.shift_remove("declared_inputs");
            response.insert("metadata".to_owned(), json!({"error": reported}));
        }
        if let Some(started) = started {
            stamp(&mut response, started);
        }
        Answer { json: Json::Object(response), error: Some(error) }
    }
}

/// Finds an item and has it verified.
pub(crate) fn verified(project: &Project, kind: ItemType, id: &ItemId) -> Result<Item, Failure> {
    let fail = |error: Error| Failure::new(error).with_id(Some(id.as_str()));
    let Some(located) = project.spaces.find(kind, id).map_err(fail)? else {
        return Err(fail(project.spaces.not_found(kind, id)));
    };
    let item = located.read(FILE_BYTES).map_err(fail)?;
    project.verify.verify(&item).map_err(fail)?;
    Ok(item)
}

/// What a response says of an error: all its findings, each in one sentence.
fn text_of(error: &Error) -> String {
    if error.kind() == ErrorKind::Integrity {
        return message_with_path(error);
    }
    let messages: Vec<&str> = error.diagnostics().iter().map(|finding| finding.message.as_str()).collect();
    messages.join("; ")
}

/// Notes how long it took.
pub(crate) fn stamp(response: &mut Map<String, Json>, started: Instant) {
    let took = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let metadata = response.entry("metadata").or_insert_with(|| json!({}));
    if let Json::Object(metadata) = metadata {
        metadata.shift_insert(0, "duration_ms".to_owned(), took.into());
    }
}
