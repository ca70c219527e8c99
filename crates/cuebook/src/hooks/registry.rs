//! What a program gives a book so that hooks can run: closures, an engine for Python files, services.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::{HookContext, HookError, Http, Model, PostRender, PreRender, Provide, ScriptEngine, Values};

/// Something that happened while hooks ran, for listeners.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Event {
    /// A hook printed something.
    Printed {
        /// Whose function it was, as in ``the prompt `greeting` ``.
        by: String,
        /// The function.
        function: String,
        /// What it printed.
        text: String,
    },
}

/// Hears of events while a render runs.
pub type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

/// Hooks and providers that a program brings, and what runs those in files.
///
/// ```
/// use cuebook::hooks::Hooks;
/// use cuebook::{Book, Context, Variables};
/// use serde_json::json;
///
/// # let folder = tempfile::tempdir().unwrap();
/// # std::fs::create_dir_all(folder.path().join("prompts/review")).unwrap();
/// # std::fs::write(folder.path().join("prompts/review/template.md"), "Review {{ git.branch }} for {{ who }}.").unwrap();
/// let hooks = Hooks::new()
///     .provider("git", |_context| Ok([("branch".to_owned(), json!("main"))].into_iter().collect()))
///     .pre_render("review", |mut variables, _context| {
///         variables.insert("who".into(), json!("Ada"));
///         Ok(variables)
///     });
/// let book = Book::open(folder.path()).with_hooks(hooks);
/// let rendered = book.render("review", &Variables::new(), &Context::default())?;
/// assert_eq!(rendered.text(), "Review main for Ada.");
/// # Ok::<(), cuebook::Error>(())
/// ```
///
/// A program sets which of its services hooks may use, and changes the text of a prompt after its template:
///
/// ```
/// use std::sync::Arc;
///
/// use cuebook::hooks::{Hooks, Http, HttpRequest, HttpResponse, Refusal};
///
/// #[derive(Debug)]
/// struct NoNetwork;
///
/// impl Http for NoNetwork {
///     fn request(&self, _: &HttpRequest) -> Result<HttpResponse, Refusal> {
///         Err(Refusal::failed("http_request: this program is offline"))
///     }
/// }
///
/// let hooks = Hooks::new()
///     .http(Arc::new(NoNetwork))
///     .listener(Arc::new(|event| println!("{event:?}")))
///     .post_render("greet", |text, _variables, _context| Ok(text.to_uppercase()));
/// # let folder = tempfile::tempdir().unwrap();
/// # std::fs::create_dir_all(folder.path().join("prompts/greet")).unwrap();
/// # std::fs::write(folder.path().join("prompts/greet/template.md"), "hello").unwrap();
/// let book = cuebook::Book::open(folder.path()).with_hooks(hooks);
/// assert_eq!(book.prompt("greet").render()?.text(), "HELLO");
/// # Ok::<(), cuebook::Error>(())
/// ```
#[derive(Clone, Default)]
pub struct Hooks {
    pub(crate) pre_render: HashMap<String, Arc<dyn PreRender>>,
    pub(crate) post_render: HashMap<String, Arc<dyn PostRender>>,
    pub(crate) providers: HashMap<String, Arc<dyn Provide>>,
    pub(crate) engine: Option<Arc<dyn ScriptEngine>>,
    pub(crate) http: Option<Arc<dyn Http>>,
    pub(crate) model: Option<Arc<dyn Model>>,
    pub(crate) listener: Option<Listener>,
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Hooks").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Hooks {
    /// No hooks and nothing that could run any.
    pub fn new() -> Hooks {
        Hooks::default()
    }

    /// Runs before the template of a prompt, and after the prompt's own `pre_render`.
    pub fn pre_render<F>(mut self, prompt_id: impl Into<String>, hook: F) -> Hooks
    where
        F: Fn(Values, &HookContext<'_>) -> Result<Values, HookError> + Send + Sync + 'static,
    {
        self.pre_render.insert(prompt_id.into(), Arc::new(hook));
        self
    }

    /// Runs after the template of a prompt, and after the prompt's own `post_render`.
    pub fn post_render<F>(mut self, prompt_id: impl Into<String>, hook: F) -> Hooks
    where
        F: Fn(&str, &Values, &HookContext<'_>) -> Result<String, HookError> + Send + Sync + 'static,
    {
        self.post_render.insert(prompt_id.into(), Arc::new(hook));
        self
    }

    /// Provides a namespace, for prompts that use it. It stands before a pack's provider of that namespace.
    pub fn provider<F>(mut self, namespace: impl Into<String>, provider: F) -> Hooks
    where
        F: Fn(&HookContext<'_>) -> Result<Values, HookError> + Send + Sync + 'static,
    {
        self.providers.insert(namespace.into(), Arc::new(provider));
        self
    }

    /// The hooks of prompts: which function, and the id of the prompt.
    pub(crate) fn of_prompts(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let before = self.pre_render.keys().map(|id| ("pre_render", id.as_str()));
        before.chain(self.post_render.keys().map(|id| ("post_render", id.as_str())))
    }

    /// Runs hooks and providers in Python files.
    pub fn engine(mut self, engine: Arc<dyn ScriptEngine>) -> Hooks {
        self.engine = Some(engine);
        self
    }

    /// Makes HTTP requests for hooks that may make them.
    pub fn http(mut self, http: Arc<dyn Http>) -> Hooks {
        self.http = Some(http);
        self
    }

    /// Asks a language model for hooks that may ask one.
    pub fn model(mut self, model: Arc<dyn Model>) -> Hooks {
        self.model = Some(model);
        self
    }

    /// Hears what happens while hooks run.
    pub fn listener(mut self, listener: Listener) -> Hooks {
        self.listener = Some(listener);
        self
    }
}
