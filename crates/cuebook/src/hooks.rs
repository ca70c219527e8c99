//! Hooks and variable providers: functions that take part in a render.
//!
//! A hook is `pre_render` or `post_render` of a prompt, a provider gives variables under a namespace. Both are traits, which
//! closures of a Rust program implement and which a [`ScriptEngine`] implements for functions in Python files. Whoever runs
//! them, what they get is the same: values, and a [`HookContext`] that grants what the prompt's PERMISSIONS grant and nothing
//! else. What they return is data: it is never parsed as a template, and it never becomes an author's literal.
//!
//! Nothing here starts a process or opens a connection: engines and services are given by the program.

mod context;
mod registry;
mod run;
mod services;
mod workspace;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

pub use context::{HookContext, Host, Refusal, Subject};
pub use registry::{Event, Hooks, Listener};
pub(crate) use run::render;
pub use services::{Http, HttpRequest, HttpResponse, Model, ModelRequest};
pub(crate) use workspace::{Resolved, Workspace};

use crate::error::Result;
use crate::source::Source;

/// Values by name, as they go to a hook and come back.
pub type Values = Map<String, Json>;

/// Changes the variables before the template is rendered.
pub trait PreRender: Send + Sync {
    /// Takes all variables and returns all variables: what is left out is gone.
    fn pre_render(&self, variables: Values, context: &HookContext<'_>) -> Result<Values>;
}

/// Changes the text after the template was rendered.
pub trait PostRender: Send + Sync {
    /// Takes the text and returns it, changed or not.
    fn post_render(&self, text: &str, variables: &Values, context: &HookContext<'_>) -> Result<String>;
}

/// Gives variables under a namespace.
pub trait Provide: Send + Sync {
    /// The values.
    fn provide(&self, context: &HookContext<'_>) -> Result<Values>;
}

impl<F> PreRender for F
where
    F: Fn(Values, &HookContext<'_>) -> Result<Values> + Send + Sync,
{
    fn pre_render(&self, variables: Values, context: &HookContext<'_>) -> Result<Values> {
        self(variables, context)
    }
}

impl<F> PostRender for F
where
    F: Fn(&str, &Values, &HookContext<'_>) -> Result<String> + Send + Sync,
{
    fn post_render(&self, text: &str, variables: &Values, context: &HookContext<'_>) -> Result<String> {
        self(text, variables, context)
    }
}

impl<F> Provide for F
where
    F: Fn(&HookContext<'_>) -> Result<Values> + Send + Sync,
{
    fn provide(&self, context: &HookContext<'_>) -> Result<Values> {
        self(context)
    }
}

/// A Python file whose functions take part in renders. Its pack, if it has one, is approved with exactly this content.
#[derive(Debug, Clone)]
pub struct Script {
    /// Its text, under the name that people know it by.
    pub source: Arc<Source>,
    /// Where it lies.
    pub path: PathBuf,
    /// The folder that it belongs to, the prompt's or the pack's: its own modules are found there.
    pub folder: PathBuf,
    /// The pack that it came with; `None` for code of the user's own.
    pub pack: Option<String>,
    /// The Python files of its pack by path, as they were approved; `None` for code of the user's own, whose modules are read
    /// from the folder.
    pub modules: Option<BTreeMap<PathBuf, String>>,
    /// Whether its code mentions what the system knows: then `system` is among the variables that it gets. It is made anew for
    /// every render, and most code has no use for it.
    pub mentions_system: bool,
    /// Changes whenever any code in the folder does.
    pub fingerprint: String,
}

/// One call of a function.
#[derive(Debug)]
pub enum Call<'c> {
    /// `pre_render(variables, context)`
    PreRender {
        /// All variables.
        variables: &'c Values,
    },
    /// `post_render(text, variables, context)`
    PostRender {
        /// The rendered text.
        text: &'c str,
        /// All variables.
        variables: &'c Values,
    },
    /// `provide(context)`
    Provide,
}

impl Call<'_> {
    /// The name of the function.
    pub fn function(&self) -> &'static str {
        match self {
            Call::PreRender { .. } => "pre_render",
            Call::PostRender { .. } => "post_render",
            Call::Provide => "provide",
        }
    }
}

/// What a function returned.
#[derive(Debug)]
pub enum Answer {
    /// Of `pre_render`.
    Changes(Changes),
    /// Of `provide`.
    Values(Values),
    /// Of `post_render`.
    Text(String),
}

/// What `pre_render` did to the variables.
#[derive(Debug, Default, PartialEq)]
pub struct Changes {
    /// Variables that are new, or have been returned with a value; that may be the one that they had.
    pub set: Values,
    /// Variables that were not returned.
    pub removed: Vec<String>,
}

impl Changes {
    /// What was done to the variables between two states.
    pub fn between(before: &Values, mut after: Values) -> Changes {
        let removed = before.keys().filter(|name| !after.contains_key(*name)).cloned().collect();
        after.retain(|name, value| before.get(name) != Some(value));
        Changes { set: after, removed }
    }
}

/// Runs functions in Python files.
pub trait ScriptEngine: Send + Sync + fmt::Debug {
    /// Calls a function of a script. An answer fits the call: changes for `pre_render`, text for `post_render`, values for
    /// `provide`.
    fn run(&self, script: &Script, call: Call<'_>, context: &HookContext<'_>) -> Result<Answer>;
}
