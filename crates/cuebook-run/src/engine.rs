//! The front door: one call executes one item.

mod directive;
mod knowledge;
mod tool;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cuebook::error::{did_you_mean, nearest};
use cuebook::items::search::Searcher;
use cuebook::items::{Item, ItemId, ItemType, Spaces};
use cuebook::trust::{Grants, Request as Asked, Trust, told_with_path};
use cuebook::{Book, Code, Context, Diagnostic, Error, ErrorKind, Prepared, Result};
use cuebook_hooks::sandbox::Launcher;
use serde_json::{Map, Value as Json, json};

use crate::chain::Memo;
use crate::fence::Fence;
use crate::policy::allowance::Allowance;
use crate::provider::{Client, Recorder, Recording};
use crate::request::Request;
use crate::store::{Heart, Holding, Store};
use crate::thread::{DirectiveTools, LookedFor, Lookout, Resume, ThreadId, Within};
use crate::verify::Verify;
use crate::watch::Watch;

/// What holds for every tool unless it says less.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// How long a tool may take whose runtime does not say.
    pub timeout: Duration,
    /// The time between asking a tool to end and ending it.
    pub grace: Duration,
    /// The bytes of each of a tool's streams that are kept; a tool may say more, and what is over is not kept.
    pub output: usize,
    /// Where threads are kept: the address of a database or the path of a file; a file of the project if it is `None`.
    pub store: Option<String>,
    /// The program that runs threads which nobody waits for; the `cuebook` on the PATH if it is `None`.
    pub program: Option<PathBuf>,
    /// The provider that all threads ask, whatever their prompts name.
    pub provider: Option<String>,
    /// Recorded replies that are played back instead of asking a provider.
    pub replay: Option<PathBuf>,
    /// Where the replies of providers are recorded.
    pub record: Option<PathBuf>,
    /// What the engine may do for its clients and their threads; everything, for its user, if it is `None`. With it, other
    /// projects need a grant of the user.
    pub allowance: Option<Allowance>,
    /// Which tools run in the sandbox.
    pub fence: Fence,
    /// The program that starts tools in the sandbox: [`Launcher::this_program`] if its `main` calls
    /// [`launch_if_asked`](cuebook_hooks::sandbox::launch_if_asked). Without one, a tool that a model calls is refused unless
    /// the fence is off.
    pub launcher: Option<Launcher>,
    /// Names of environment variables that hold secrets. No tool that a model calls gets them.
    pub secret_variables: Vec<String>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            timeout: Duration::from_secs(300),
            grace: Duration::from_secs(3),
            output: 16 << 20,
            store: None,
            program: None,
            provider: None,
            replay: None,
            record: None,
            allowance: None,
            fence: Fence::default(),
            launcher: None,
            secret_variables: Vec::new(),
        }
    }
}

/// Executes items of projects.
pub struct Engine {
    spaces: Spaces,
    settings: Settings,
    make_verifier: Box<MakeVerifier>,
    projects: Mutex<HashMap<PathBuf, Arc<Project>>>,
    stores: Mutex<HashMap<String, Opened>>,
    client: OnceLock<Client>,
    recordings: Mutex<HashMap<PathBuf, Arc<Recording>>>,
    recorders: Mutex<HashMap<PathBuf, Arc<Recorder>>>,
}

/// A store that was opened, what gives it signs of life, and what looks out for threads that are to stop.
struct Opened {
    store: Arc<dyn Store>,
    heart: Heart,
    lookout: Lookout,
}

type MakeVerifier = dyn Fn(&Spaces) -> Box<dyn Verify> + Send + Sync;

/// What is kept of a project between calls.
pub(crate) struct Project {
    pub(crate) spaces: Spaces,
    pub(crate) verify: Box<dyn Verify>,
    memo: Memo,
    launcher: Launcher,
    book: OnceLock<Book>,
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
        self.book.get_or_init(|| {
            let book = Book::open(self.spaces.project()).with_spaces(self.spaces.clone());
            let hooks = cuebook_hooks::hooks(book.library().clone(), self.launcher.clone());
            book.with_hooks(hooks).with_directive_tools(DirectiveTools)
        })
    }

    /// What was searched, for later searches.
    pub(crate) fn searcher(&self) -> &Searcher {
        self.searcher.get_or_init(|| Searcher::new(self.spaces.clone()))
    }
}

/// The largest file that a directive or a piece of knowledge may be.
const LARGEST_ITEM: u64 = 4 << 20;

/// How many projects are kept.
const MOST_PROJECTS: usize = 64;

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

    /// An engine that has its items verified by somebody else than the trust store.
    pub fn verified_by(
        spaces: Spaces,
        verify: impl Fn(&Spaces) -> Box<dyn Verify> + Send + Sync + 'static,
    ) -> Engine {
        Engine {
            spaces,
            settings: Settings::default(),
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

    /// Executes an item. Whatever goes wrong is part of the response.
    pub fn execute(&self, request: &Request, watch: &dyn Watch) -> Json {
        self.answer(request, watch).json
    }

    /// Executes what the arguments of a call ask for.
    pub fn execute_json(&self, arguments: &Json, watch: &dyn Watch) -> Json {
        match Request::from_json(arguments) {
            Ok(request) => self.execute(&request, watch),
            Err(error) => {
                Failure::new(error)
                    .with_id(arguments.get("item_id").and_then(Json::as_str))
                    .into_answer(None)
                    .json
            }
        }
    }

    /// Executes an item, and keeps the error beside the response.
    pub fn answer(&self, request: &Request, watch: &dyn Watch) -> Answer {
        self.answer_within(request, watch, None)
    }

    /// Goes on with the thread of a directive that reached a limit, with other limits. The answer is that of
    /// [`execute`](Engine::execute).
    pub fn continue_thread(
        &self,
        project: Option<&Path>,
        (directive, thread): (&str, &str),
        limit_overrides: Map<String, Json>,
        watch: &dyn Watch,
    ) -> Json {
        let started = Instant::now();
        let how = Resume { limit_overrides, ..Resume::default() };
        let done = ItemId::new(directive)
            .and_then(|id| Ok((id, self.resume(project, None, &ThreadId::known(thread), &how, watch)?)))
            .map_err(|error| Failure::new(error).with_id(Some(directive)))
            .and_then(|(id, began)| directive::told(&id, began));
        finish(done, started).json
    }

    /// The same for a call that a thread makes.
    pub(crate) fn answer_within(
        &self,
        request: &Request,
        watch: &dyn Watch,
        within: Option<&Within<'_>>,
    ) -> Answer {
        let started = Instant::now();
        let Some(kind) = ItemType::named(&request.item_type) else {
            return unknown_type(&request.item_type);
        };
        let mut request = request.clone();
        let done = request.take_flags().and_then(|()| self.project(request.project_path.as_deref()));
        let done = done.and_then(|project| Ok((project, ItemId::new(&request.item_id)?)));
        let request = &request;
        let done = match done {
            Err(error) => Err(Failure::new(error).with_id(Some(&request.item_id))),
            Ok((project, id)) => match kind {
                ItemType::Tool => tool::execute(self, &project, &id, request, watch, within),
                ItemType::Directive => directive::execute(self, &project, &id, request, watch, within),
                ItemType::Knowledge => knowledge::execute(&project, &id),
            },
        };
        finish(done, started)
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
        if !path.is_dir() {
            return Err(wrong("the project is not a directory"));
        }
        let mut projects = self.projects.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = projects.get(path) {
            return Ok(known.clone());
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
        if projects.len() >= MOST_PROJECTS {
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
        if Grants::of(&self.spaces_of(&real))?.has(&Asked::serve()) {
            return Ok(real);
        }
        Err(unserved(path))
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
        let (heart, lookout) = (Heart::new(store.clone()), Lookout::new(store.clone()));
        stores.insert(place.to_owned(), Opened { store: store.clone(), heart, lookout });
        Ok(store)
    }

    /// Gives signs of life to a store, and looks out for a thread, for as long as what is returned lives.
    pub(crate) fn hold(&self, store: &Arc<dyn Store>, id: &ThreadId) -> Option<(Holding, LookedFor)> {
        let stores = self.stores.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = stores.values().find(|opened| Arc::ptr_eq(&opened.store, store))?;
        Some((opened.heart.hold(), opened.lookout.look_for(id)))
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
            Ok(prepared) => prepared.verify_signature().map(|()| prepared),
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
    let hint = "leave out `project_path` to work in the served project; the user can allow another project with `cuebook allow --serve` in it";
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

    fn into_error(self) -> Error {
        self.0.error
    }

    fn into_answer(self, started: Option<Instant>) -> Answer {
        let Failed { error, text, item_id, more } = *self.0;
        let mut response = Map::new();
        response.insert("status".to_owned(), "error".into());
        response.insert("error".to_owned(), text.unwrap_or_else(|| text_of(&error)).into());
        if let Some(id) = item_id {
            response.insert("item_id".to_owned(), id.into());
        }
        response.extend(more);
        if let Some(Json::Object(mut told)) = error.to_json().get("error").cloned() {
            // It stands at the top already.
            told.shift_remove("declared_inputs");
            response.insert("metadata".to_owned(), json!({"error": told}));
        }
        if let Some(started) = started {
            stamp(&mut response, started);
        }
        Answer { json: Json::Object(response), error: Some(error) }
    }
}

/// Finds an item and has it verified.
fn verified(project: &Project, kind: ItemType, id: &ItemId) -> Result<Item, Failure> {
    let fail = |error: Error| Failure::new(error).with_id(Some(id.as_str()));
    let Some(located) = project.spaces.find(kind, id).map_err(fail)? else {
        return Err(fail(project.spaces.not_found(kind, id)));
    };
    let item = located.read(LARGEST_ITEM).map_err(fail)?;
    project.verify.verify(&item).map_err(fail)?;
    Ok(item)
}

/// What a response says of an error: all its findings, each in one sentence.
fn text_of(error: &Error) -> String {
    if error.kind() == ErrorKind::Integrity {
        return told_with_path(error);
    }
    let messages: Vec<&str> = error.diagnostics().iter().map(|finding| finding.message.as_str()).collect();
    messages.join("; ")
}

/// The answer of a call that began so long ago.
fn finish(done: Result<Map<String, Json>, Failure>, started: Instant) -> Answer {
    match done {
        Ok(mut response) => {
            stamp(&mut response, started);
            Answer { json: Json::Object(response), error: None }
        }
        Err(failure) => failure.into_answer(Some(started)),
    }
}

/// Notes how long it took.
fn stamp(response: &mut Map<String, Json>, started: Instant) {
    let took = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let metadata = response.entry("metadata").or_insert_with(|| json!({}));
    if let Json::Object(metadata) = metadata {
        metadata.shift_insert(0, "duration_ms".to_owned(), took.into());
    }
}

fn unknown_type(given: &str) -> Answer {
    let names = ItemType::ALL.map(ItemType::as_str);
    let hint =
        did_you_mean(&nearest(given, names)).unwrap_or_else(|| format!("the types are {}", names.join(", ")));
    let message = format!("Unknown item type: {given}");
    let error =
        Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadParameters, message.clone()).hint(hint));
    Answer { json: json!({"status": "error", "error": message}), error: Some(error) }
}
