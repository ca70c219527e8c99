//! A book: finds and renders prompts.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use cuebook::hooks::Hooks;
use cuebook::items::Spaces;
use cuebook::variables::{FixedClock, UnknownVariables};
use cuebook::{Book as Prompts, Context, Freshness, Variables};
use cuebook_hooks::sandbox::Launcher;
use cuebook_lab::explain::Explanation;
use cuebook_run::DirectiveTools;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value as Json, json};

use crate::cancel::Cancel;
use crate::errors::Raise;
use crate::json::to_python;
use crate::rendered::Rendered;
use crate::{calls, context, engines, failure, values};

/// Functions of Python by what they are for and by name.
type Functions = Vec<(String, String, Py<PyAny>)>;

/// The prompts of a project.
#[pyclass(frozen, module = "cuebook._native")]
pub struct Book {
    pub root: PathBuf,
    pub user: Option<PathBuf>,
    functions: Functions,
    globals: Map<String, Json>,
    env: Vec<String>,
    clock: Option<FixedClock>,
    freshness: Freshness,
    pub launcher: Launcher,
    by_id: OnceLock<Arc<Prompts>>,
    by_path: OnceLock<Arc<Prompts>>,
}

/// When a book looks for changed files, by the seconds between two looks. Seconds that a `Duration` cannot hold, such as infinity, mean never.
fn freshness(seconds: Option<f64>) -> Freshness {
    match seconds.map(Duration::try_from_secs_f64) {
        None | Some(Ok(Duration::ZERO)) => Freshness::EveryRender,
        Some(Ok(seconds)) => Freshness::AtMostEvery(seconds),
        Some(Err(_)) => Freshness::Manual,
    }
}

/// The program that starts sandboxed hooks: a Python that loads this library and nothing else.
fn launcher(python: &str, folder: &str) -> Launcher {
    let code = "import sys; sys.path.insert(0, sys.argv[1]); import _native; _native.launch()";
    Launcher::at(python).with_arguments(["-I", "-S", "-c", code, folder])
}

impl Book {
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

    /// Does work that may wait for hooks, so that Ctrl-C and a cancelled task end the wait. Functions of this process need their caller's thread.
    pub fn waits<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce() -> cuebook::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        if !self.functions.is_empty() {
            return py.detach(work).or_raise(py);
        }
        calls::interruptible(py, Cancel::current(py)?.as_ref(), work)?.or_raise(py)
    }

    pub fn make(&self) -> Prompts {
        let book = Prompts::open(&self.root).with_spaces(self.spaces()).with_env(self.env.iter().cloned());
        let hooks = cuebook_hooks::hooks(book.library().clone(), self.launcher.clone());
        let mut book = book.with_directive_tools(DirectiveTools).with_freshness(self.freshness);
        if let Some(clock) = &self.clock {
            book = book.with_clock(clock.clone());
        }
        for (name, value) in &self.globals {
            book = book.with_global(name.clone(), value.clone());
        }
        let mut all = hooks;
        for (kind, name, function) in &self.functions {
            let function = Python::attach(|py| function.clone_ref(py));
            match kind.as_str() {
                "filter" | "test" | "function" => book = extended(book, kind, name, function),
                "engine" => {
                    let engine = engines::Function { name: name.clone(), function: Arc::new(function) };
                    book = book.with_engine(name.clone(), engine);
                }
                _ => all = hooked(all, kind, name, function),
            }
        }
        book.with_hooks(all)
    }
}

/// A book with one more filter, test or function for templates.
fn extended(book: Prompts, kind: &str, name: &str, function: Py<PyAny>) -> Prompts {
    let called = name.to_owned();
    match kind {
        "filter" => book.with_filter(name, move |given| calls::call(&function, &called, given)),
        "test" => book.with_test(name, move |given| match calls::call(&function, &called, given)? {
            Json::Bool(truth) => Ok(truth),
            _ => Err(format!("the test `{called}` must return True or False")),
        }),
        _ => book.with_function(name, move |given| calls::call(&function, &called, given)),
    }
}

/// Hooks with one more function.
fn hooked(hooks: Hooks, kind: &str, name: &str, function: Py<PyAny>) -> Hooks {
    let what = format!("`{kind}` of `{name}`");
    match kind {
        "pre_render" => hooks.pre_render(name, move |variables, context| {
            calls::variables(&function, &what, &[variables.into(), calls::context_of(context)])
        }),
        "post_render" => hooks.post_render(name, move |text, variables, context| {
            let arguments = [json!(text), json!(variables), calls::context_of(context)];
            match calls::call(&function, &what, &arguments).map_err(|words| calls::failed(&what, &words))? {
                Json::String(text) => Ok(text),
                _ => Err(calls::wrong_return(&what, "a str").into()),
            }
        }),
        _ => hooks
            .provider(name, move |context| calls::variables(&function, &what, &[calls::context_of(context)])),
    }
}

/// What a render gets.
pub struct Inputs {
    pub variables: Variables,
    pub context: Context,
}

/// Reads variables and a context.
pub fn inputs(py: Python<'_>, variables: &Bound<'_, PyDict>, given: &Bound<'_, PyDict>) -> PyResult<Inputs> {
    let variables = Variables::from(values::members(variables)?);
    let context = context::read(&values::members(given)?).or_raise(py)?;
    Ok(Inputs { variables, context })
}

/// What a render does with variables that its prompt does not have.
pub fn unknown(allowed: bool) -> UnknownVariables {
    if allowed { UnknownVariables::Ignore } else { UnknownVariables::Refuse }
}

#[pymethods]
impl Book {
    #[new]
    #[pyo3(signature = (root, *, user, functions, globals, env, clock, look_every, python, folder))]
    #[expect(clippy::too_many_arguments, reason = "the Python class passes its fields by name")]
    fn new(
        py: Python<'_>,
        root: PathBuf,
        user: Option<PathBuf>,
        functions: Functions,
        globals: &Bound<'_, PyDict>,
        env: Vec<String>,
        clock: Option<&str>,
        look_every: Option<f64>,
        python: &str,
        folder: &str,
    ) -> PyResult<Book> {
        Ok(Book {
            root,
            user,
            functions,
            globals: values::members(globals)?,
            env,
            clock: clock.map(FixedClock::at).transpose().or_raise(py)?,
            freshness: freshness(look_every),
            launcher: launcher(python, folder),
            by_id: OnceLock::new(),
            by_path: OnceLock::new(),
        })
    }

    /// Looks for changed files at the next render of each prompt.
    fn refresh(&self) {
        [&self.by_id, &self.by_path].into_iter().filter_map(OnceLock::get).for_each(|book| book.refresh());
    }

    /// Renders a prompt.
    fn render(
        &self,
        py: Python<'_>,
        prompt: &str,
        variables: &Bound<'_, PyDict>,
        context: Option<&Bound<'_, PyDict>>,
        is_path: bool,
        allow_unknown: bool,
    ) -> PyResult<Rendered> {
        let variables = Variables::from(values::members(variables)?);
        let context = match context {
            Some(context) => context::read(&values::members(context)?).or_raise(py)?,
            None => Context::default(),
        };
        drop(failure::take());
        let context = Context { unknown: unknown(allow_unknown), ..context };
        let made = py.detach(|| {
            let prepared = self.of(is_path).prepare(prompt, &context)?;
            // Functions of this process run in the thread of their caller.
            let waits = self.functions.is_empty() && prepared.runs_code(&context);
            let work = move || {
                let rendered = prepared.render(&variables, &Arc::new(context))?;
                Ok(Explanation::new(prepared, rendered))
            };
            if waits { Ok(Err(work)) } else { work().map(Ok) }
        });
        let explanation = match made.or_raise(py)? {
            Ok(explanation) => explanation,
            Err(work) => self.waits(py, work)?,
        };
        Ok(Rendered { explanation })
    }

    /// What is wrong with variables for a prompt.
    fn validate(
        &self,
        py: Python<'_>,
        prompt: &str,
        variables: &Bound<'_, PyDict>,
        context: &Bound<'_, PyDict>,
    ) -> PyResult<Py<PyAny>> {
        let inputs = inputs(py, variables, context)?;
        let problems = py.detach(|| self.prompts().validate(prompt, &inputs.variables, &inputs.context));
        to_python(py, &json!(problems.or_raise(py)?))
    }

    /// The definition of a prompt.
    fn show(&self, py: Python<'_>, prompt: &str, is_path: bool) -> PyResult<Py<PyAny>> {
        let definition = py.detach(|| self.of(is_path).get_definition(prompt)).or_raise(py)?;
        to_python(py, &definition)
    }

    /// Every prompt.
    fn list(&self, py: Python<'_>, kind: Option<&str>, tag: Option<&str>) -> PyResult<Py<PyAny>> {
        let list = py.detach(|| self.prompts().list_prompts(kind, tag)).or_raise(py)?;
        to_python(py, &list.iter().map(cuebook::Listing::to_json).collect())
    }

    /// Every place that offers a prompt.
    fn candidates(&self, py: Python<'_>, prompt: &str) -> PyResult<Py<PyAny>> {
        let candidates = py.detach(|| self.prompts().list_candidates(prompt)).or_raise(py)?;
        to_python(py, &candidates.iter().map(cuebook::library::Candidate::to_json).collect())
    }

    /// Records which place is meant.
    fn resolve(&self, py: Python<'_>, prompt: &str, source: &str) -> PyResult<Py<PyAny>> {
        let made = py.detach(|| self.prompts().set_resolution(prompt, source)).or_raise(py)?;
        let answer = json!({
            "source": made.source, "resolved_at": made.resolved_at, "candidates": made.candidates,
        });
        to_python(py, &answer)
    }
}
