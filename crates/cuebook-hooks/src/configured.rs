//! Hooks as a project's `cuebook.toml` wants them, now: a changed setting holds from the next call on.

use std::sync::{Arc, Mutex, PoisonError};

use cuebook::Result;
use cuebook::hooks::{
    Answer, Call, HookContext, Hooks, Http, HttpRequest, HttpResponse, Refusal, Script, ScriptEngine,
};
use cuebook::library::{HooksConfig, Library};

use crate::PythonHooks;
use crate::http::HttpClient;
use crate::sandbox::Launcher;

/// What runs the hooks of a project: Python files in a sandbox, and HTTP requests, as its settings say. A language model is the
/// program's to choose, and not the project's: [`Hooks::model`], with a [`CommandModel`](crate::model::CommandModel) perhaps.
///
/// ```no_run
/// use cuebook::{Book, Context, Variables};
/// use cuebook_hooks::sandbox::{Launcher, launch_if_asked};
///
///
/// fn main() -> cuebook::Result<()> {
///     // Workers are started by a copy of this program, which does nothing else.
///     launch_if_asked();
///     let book = Book::open(".");
///     let hooks = cuebook_hooks::hooks(book.library().clone(), Launcher::this_program());
///     let rendered = book.with_hooks(hooks).render("coding_system", &Variables::new(), &Context::default())?;
///     println!("{}", rendered.text());
///     Ok(())
/// }
/// ```
pub fn hooks(library: Arc<Library>, launcher: Launcher) -> Hooks {
    let configured = Arc::new(Configured { library, launcher, python: Mutex::default() });
    Hooks::new().engine(configured.clone()).http(configured)
}

#[derive(Debug)]
struct Configured {
    library: Arc<Library>,
    launcher: Launcher,
    /// The engine, and the settings that it was made with.
    python: Mutex<Option<(HooksConfig, Arc<PythonHooks>)>>,
}

impl Configured {
    fn python(&self, config: &HooksConfig) -> Arc<PythonHooks> {
        let mut python = self.python.lock().unwrap_or_else(PoisonError::into_inner);
        match &*python {
            Some((known, engine)) if known == config => engine.clone(),
            _ => {
                let spaces = self.library.spaces().clone();
                let engine = Arc::new(PythonHooks::new(self.launcher.clone(), config.clone(), spaces));
                *python = Some((config.clone(), engine.clone()));
                engine
            }
        }
    }
}

impl ScriptEngine for Configured {
    fn run(&self, script: &Script, call: Call<'_>, context: &HookContext<'_>) -> Result<Answer> {
        self.python(context.settings).run(script, call, context)
    }
}

impl Http for Configured {
    fn request(&self, request: &HttpRequest) -> Result<HttpResponse, Refusal> {
        HttpClient::new(self.library.config()?.hooks.http_hosts.clone()).request(request)
    }
}
