//! A project and what the program adds to it.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use cuebook::hooks::Hooks;
use cuebook::items::Spaces;
use cuebook::variables::{FixedClock, UnknownVariables};
use cuebook::{Book as Prompts, Code, Context, Diagnostic, Error, ErrorKind, Prepared, Result, Variables};
use cuebook_hooks::sandbox::Launcher;
use cuebook_lab::explain::Explanation;
use cuebook_run::{DirectiveTools, Engine, Settings};
use serde_json::{Map, Value as Json, json};

use crate::calls::Arguments;
use crate::functions::{Function, TextEngine, context_of};
use crate::port::Port;

/// The prompts of a project.
pub struct Project {
    pub port: Arc<Port>,
    root: PathBuf,
    user: Option<PathBuf>,
    functions: Vec<Registered>,
    globals: Map<String, Json>,
    env: Vec<String>,
    clock: Option<FixedClock>,
    launcher: Launcher,
    by_id: OnceLock<Arc<Prompts>>,
    by_path: OnceLock<Arc<Prompts>>,
}

/// A function of JavaScript, by what it is for.
struct Registered {
    kind: String,
    name: String,
    number: u32,
}

impl Registered {
    fn read(given: &Json) -> Option<Registered> {
        let text = |key: &str| given[key].as_str().map(str::to_owned);
        let number = given["number"].as_u64()?.try_into().ok()?;
        Some(Registered { kind: text("kind")?, name: text("name")?, number })
    }
}

impl Project {
    /// The project of a program. `launcher` is the command, a copy of which starts sandboxed hooks.
    pub fn open(port: Arc<Port>, given: &Arguments) -> Result<Project> {
        Ok(Project {
            port,
            root: PathBuf::from(given.text("root")),
            user: given.optional("user").map(PathBuf::from),
            functions: given.list("functions").iter().filter_map(Registered::read).collect(),
            globals: given.object("globals"),
            env: given.texts("env"),
            clock: given.optional("clock").map(|clock| FixedClock::at(&clock)).transpose()?,
            launcher: Launcher::at(given.text("launcher")),
            by_id: OnceLock::new(),
            by_path: OnceLock::new(),
        })
    }

    pub fn has_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    pub fn spaces(&self) -> Spaces {
        match &self.user {
            Some(user) => Spaces::new(&self.root, Some(user)),
            None => Spaces::of_project(&self.root),
        }
    }

    /// The book whose names are ids.
    pub fn prompts(&self) -> &Arc<Prompts> {
        self.by_id.get_or_init(|| Arc::new(self.make()))
    }

    /// The book whose names may be paths.
    pub fn with_paths(&self) -> &Arc<Prompts> {
        self.by_path.get_or_init(|| Arc::new(self.make().with_paths(true)))
    }

    /// The book for one call.
    pub fn of(&self, is_path: bool) -> &Arc<Prompts> {
        if is_path { self.with_paths() } else { self.prompts() }
    }

    /// An engine for the project.
    pub fn engine(&self, settings: Settings) -> Engine {
        let launcher = Some(self.launcher.clone());
        Engine::new(self.spaces()).with_settings(Settings { launcher, ..settings })
    }

    fn make(&self) -> Prompts {
        let book = Prompts::open(&self.root).with_spaces(self.spaces()).with_env(self.env.iter().cloned());
        let mut hooks = cuebook_hooks::hooks(book.library().clone(), self.launcher.clone());
        let mut book = book.with_directive_tools(DirectiveTools);
        if let Some(clock) = &self.clock {
            book = book.with_clock(clock.clone());
        }
        for (name, value) in &self.globals {
            book = book.with_global(name.clone(), value.clone());
        }
        for Registered { kind, name, number } in &self.functions {
            let function = |what: String| Function::new(self.port.clone(), *number, what);
            match kind.as_str() {
                "filter" => {
                    let function = function(format!("the filter `{name}`"));
                    book = book.with_filter(name, move |given| function.call(given));
                }
                "test" => {
                    let function = function(format!("the test `{name}`"));
                    book = book.with_test(name, move |given| function.truth(given));
                }
                "function" => {
                    let function = function(format!("the function `{name}`"));
                    book = book.with_function(name, move |given| function.call(given));
                }
                "engine" => {
                    let function = function(format!("the template engine `{name}`"));
                    book = book.with_engine(name, TextEngine(function));
                }
                kind => hooks = hooked(hooks, kind, name, function(format!("`{kind}` of `{name}`"))),
            }
        }
        book.with_hooks(hooks)
    }

    /// Renders a prompt in the thread of JavaScript, which must not wait.
    pub fn render_now(&self, call: &RenderCall) -> Result<Explanation> {
        let prepared = self.of(call.is_path).prepare(&call.prompt, &call.context)?;
        if prepared.runs_code(&call.context) {
            self.refuse_to_wait(&prepared)?;
        }
        call.render(prepared)
    }

    /// Renders a prompt in a thread that may wait.
    pub fn render(&self, call: &RenderCall) -> Result<Explanation> {
        call.render(self.of(call.is_path).prepare(&call.prompt, &call.context)?)
    }

    /// The error for a prompt whose hooks run in other processes.
    fn refuse_to_wait(&self, prepared: &Prepared) -> Result<()> {
        let is_provided =
            |space: &String| self.functions.iter().any(|one| one.kind == "provider" && one.name == *space);
        let what = if !prepared.prompt().hooks.is_empty() {
            "has hooks in Python"
        } else if !prepared.namespaces().all(|space| is_provided(&space)) {
            "uses a provider of a pack"
        } else {
            return Ok(());
        };
        let message =
            format!("the prompt `{}` {what}, which `render` does not wait for", prepared.prompt().id);
        let diagnostic = Diagnostic::new(Code::BadInput, message).hint("use `await book.renderAsync(...)`");
        Err(Error::new(ErrorKind::Usage, diagnostic))
    }
}

/// Hooks with one more function.
fn hooked(hooks: Hooks, kind: &str, name: &str, function: Function) -> Hooks {
    match kind {
        "preRender" => hooks.pre_render(name, move |variables, context| {
            function.variables(&[variables.into(), context_of(context)])
        }),
        "postRender" => hooks.post_render(name, move |text, variables, context| {
            Ok(function.text(&[json!(text), json!(variables), context_of(context)])?)
        }),
        _ => hooks.provider(name, move |context| function.variables(&[context_of(context)])),
    }
}

/// What a render gets.
pub struct RenderCall {
    pub prompt: String,
    pub variables: Variables,
    pub context: Arc<Context>,
    pub is_path: bool,
}

impl RenderCall {
    pub fn new(
        prompt: String,
        variables: Variables,
        context: Context,
        is_path: bool,
        allow_unknown: bool,
    ) -> RenderCall {
        let unknown = if allow_unknown { UnknownVariables::Ignore } else { UnknownVariables::Refuse };
        RenderCall { prompt, variables, context: Arc::new(Context { unknown, ..context }), is_path }
    }

    /// The arguments of an asynchronous render.
    pub fn read(given: &Arguments) -> Result<RenderCall> {
        let (is_path, allow_unknown) = (given.is_set("isPath"), given.is_set("allowUnknown"));
        let prompt = given.text("prompt").to_owned();
        Ok(RenderCall::new(prompt, given.variables(), given.context()?, is_path, allow_unknown))
    }

    fn render(&self, prepared: Arc<Prepared>) -> Result<Explanation> {
        let rendered = prepared.render(&self.variables, &self.context)?;
        Ok(Explanation::new(prepared, rendered))
    }
}
