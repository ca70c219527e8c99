//! Hooks and variable providers: functions that take part in a render.
//!
//! A hook is `pre_render` or `post_render` of a prompt, a provider gives variables under a namespace. Both are traits, which
//! closures of a Rust program implement and which a [`ScriptEngine`] implements for functions in Python files. The code that runs
//! them, what they get is the same: values, and a [`HookContext`] that grants what the prompt's PERMISSIONS grant and nothing
//! else. What they return is data: it is never parsed as a template, and it never becomes an author's literal.
//!
//! Nothing here starts a process or opens a connection: engines and services are given by the program.

mod context;
mod failure;
mod registry;
mod repository;
mod services;
mod workspace;

use std::fmt;

pub use context::{HookContext, Host, Refusal, Subject};
pub use failure::HookError;
pub(crate) use failure::called;
pub use registry::{Event, Hooks, Listener};
pub(crate) use repository::hidden_repository;
pub use services::{Http, HttpRequest, HttpResponse, Model, ModelRequest};
pub(crate) use workspace::{Resolved, Workspace};

use crate::error::Result;
pub use crate::library::Script;
pub use crate::variables::{Changes, Values};

/// Changes the variables before the template is rendered.
pub trait PreRender: Send + Sync {
    /// Takes all variables and returns all variables: what is left out is gone.
    fn pre_render(&self, variables: Values, context: &HookContext<'_>) -> Result<Values, HookError>;
}

/// Changes the text after the template was rendered.
pub trait PostRender: Send + Sync {
    /// Takes the text and returns it, changed or not.
    fn post_render(
        &self,
        text: &str,
        variables: &Values,
        context: &HookContext<'_>,
    ) -> Result<String, HookError>;
}

/// Gives variables under a namespace.
pub trait Provide: Send + Sync {
    /// The values.
    fn provide(&self, context: &HookContext<'_>) -> Result<Values, HookError>;
}

impl<F> PreRender for F
where
    F: Fn(Values, &HookContext<'_>) -> Result<Values, HookError> + Send + Sync,
{
    fn pre_render(&self, variables: Values, context: &HookContext<'_>) -> Result<Values, HookError> {
        self(variables, context)
    }
}

impl<F> PostRender for F
where
    F: Fn(&str, &Values, &HookContext<'_>) -> Result<String, HookError> + Send + Sync,
{
    fn post_render(
        &self,
        text: &str,
        variables: &Values,
        context: &HookContext<'_>,
    ) -> Result<String, HookError> {
        self(text, variables, context)
    }
}

impl<F> Provide for F
where
    F: Fn(&HookContext<'_>) -> Result<Values, HookError> + Send + Sync,
{
    fn provide(&self, context: &HookContext<'_>) -> Result<Values, HookError> {
        self(context)
    }
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

/// Runs functions in Python files.
pub trait ScriptEngine: Send + Sync + fmt::Debug {
    /// Calls a function of a script. An answer fits the call: changes for `pre_render`, text for `post_render`, values for
    /// `provide`.
    fn run(&self, script: &Script, call: Call<'_>, context: &HookContext<'_>) -> Result<Answer>;
}
