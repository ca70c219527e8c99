//! What a hook may know and do while it runs.
//!
//! A context holds what is granted and checks every request against it, from any caller: a closure, or a worker process that
//! claims to have been granted something. It keeps no state but the clock.

use std::cell::OnceCell;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

use super::{HttpRequest, HttpResponse, ModelRequest, Values};
use crate::error::{Code, Diagnostic, Error, ErrorKind};
use crate::library::HooksConfig;
use crate::prompt::{Limits, Permissions};

/// Whose function runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A hook of a prompt.
    Prompt {
        /// The prompt's id.
        id: String,
    },
    /// A variable provider.
    Provider {
        /// The variable that it provides.
        namespace: String,
        /// The pack that it came with; `None` for one that the program registered.
        pack: Option<String>,
    },
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Prompt { id } => write!(f, "the prompt `{id}`"),
            Subject::Provider { namespace, pack: Some(pack) } => {
                write!(f, "the provider `{namespace}` of the pack `{pack}`")
            }
            Subject::Provider { namespace, pack: None } => write!(f, "the provider `{namespace}`"),
        }
    }
}

/// The exception for what was tried and did not work.
const FAILED: &str = "RuntimeError";

/// A request of a hook that was refused or failed. In Python it is raised as the exception that is named.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The name of a built-in exception of Python.
    pub exception: &'static str,
    /// What was wrong.
    pub message: String,
}

impl Refusal {
    /// A refusal.
    pub fn new(exception: &'static str, message: impl Into<String>) -> Refusal {
        Refusal { exception, message: message.into() }
    }

    /// The hook asked for something that it may not do.
    pub fn permission(message: impl Into<String>) -> Refusal {
        Refusal::new("PermissionError", message)
    }

    /// The hook asked for something in the wrong way.
    pub fn usage(message: impl Into<String>) -> Refusal {
        Refusal::new("TypeError", message)
    }

    /// What was asked for was tried and did not work.
    pub fn failed(message: impl Into<String>) -> Refusal {
        Refusal::new(FAILED, message)
    }
}

impl From<Refusal> for Error {
    fn from(refusal: Refusal) -> Error {
        let message = match refusal.exception {
            FAILED => refusal.message.clone(),
            exception => format!("{exception}: {}", refusal.message),
        };
        Error::new(ErrorKind::Hook, Diagnostic::new(Code::HookFailed, message)).caused_by(refusal)
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Refusal {
        let diagnostic = error.diagnostic();
        let place = match (&diagnostic.place, &diagnostic.file) {
            (Some(place), _) => format!("{place}: "),
            (None, Some(file)) => format!("{file}: "),
            (None, None) => String::new(),
        };
        Refusal::failed(format!("{place}{} [{}]", diagnostic.message, diagnostic.code))
    }
}

/// What the render does for a hook. Permissions are checked before it is asked.
pub trait Host: Sync {
    /// Reads a text file of the workspace.
    fn read_file(&self, path: &str) -> Result<String, Refusal>;
    /// Makes an HTTP request.
    fn http_request(&self, request: HttpRequest) -> Result<HttpResponse, Refusal>;
    /// Asks a language model.
    fn llm_call(&self, request: ModelRequest) -> Result<String, Refusal>;
    /// Renders a partial template with these values.
    fn render_template(&self, name: &str, values: Option<&Values>) -> Result<String, Refusal>;
    /// The value of a variable or of a provider's namespace, by its path. What has to run for it has time until then.
    fn get_variable(&self, path: &str, until: Instant) -> Result<Json, Refusal>;
    /// Takes what a hook printed.
    fn printed(&self, subject: &Subject, function: &str, text: &str);
}

/// What a hook may know and do while it runs.
pub struct HookContext<'h> {
    /// Whose function runs.
    pub subject: Subject,
    /// What is granted.
    pub permissions: Permissions,
    /// How long it may take and how much it may return.
    pub limits: Limits,
    /// The workspace; absolute.
    pub workspace: &'h Path,
    /// How hooks run in this project.
    pub settings: &'h HooksConfig,
    /// The session, for everybody.
    pub session: &'h Values,
    /// The session's state, for those who may read it.
    pub(crate) state: &'h Values,
    pub(crate) host: &'h dyn Host,
    /// When the waiting caller has no more time.
    until: Option<Instant>,
    deadline: OnceCell<Instant>,
}

impl fmt::Debug for HookContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookContext").field("subject", &self.subject).finish_non_exhaustive()
    }
}

impl<'h> HookContext<'h> {
    /// A context for one call.
    pub fn new(
        subject: Subject,
        (permissions, limits): (Permissions, Limits),
        (workspace, settings): (&'h Path, &'h HooksConfig),
        (session, state): (&'h Values, &'h Values),
        host: &'h dyn Host,
    ) -> HookContext<'h> {
        HookContext {
            subject,
            permissions,
            limits,
            workspace,
            settings,
            session,
            state,
            host,
            until: None,
            deadline: OnceCell::new(),
        }
    }

    /// The same context for a call with a waiting caller, who has time until then.
    pub fn until(self, until: Option<Instant>) -> HookContext<'h> {
        HookContext { until, ..self }
    }

    /// Starts the clock, if it does not run yet, and says when the time is over.
    pub fn deadline(&self) -> Instant {
        *self.deadline.get_or_init(|| {
            let own = Instant::now() + self.limits.max_execution_time.min(Limits::LONGEST);
            self.until.map_or(own, |until| own.min(until))
        })
    }

    /// The time that is left.
    pub fn remaining(&self) -> Duration {
        self.deadline().saturating_duration_since(Instant::now())
    }

    /// The session's state, if that may be read.
    pub fn session_state(&self) -> Result<&Values, Refusal> {
        self.require(self.permissions.session_state, "session_state")?;
        Ok(self.state)
    }

    /// Reads a text file of the workspace.
    pub fn read_file(&self, path: &str) -> Result<String, Refusal> {
        self.require(self.permissions.read_file, "read_file")?;
        self.host.read_file(path)
    }

    /// Makes an HTTP request, which ends with the hook's time.
    pub fn http_request(&self, mut request: HttpRequest) -> Result<HttpResponse, Refusal> {
        self.require(self.permissions.http_request, "http_request")?;
        request.timeout = request.timeout.min(self.remaining());
        self.host.http_request(request)
    }

    /// Asks a language model.
    pub fn llm_call(&self, mut request: ModelRequest) -> Result<String, Refusal> {
        self.require(self.permissions.llm_call, "llm_call")?;
        request.timeout = request.timeout.min(self.remaining());
        self.host.llm_call(request)
    }

    /// Renders a partial template: with the given values, or with those of the render.
    pub fn render_template(&self, name: &str, values: Option<&Values>) -> Result<String, Refusal> {
        self.host.render_template(name, values)
    }

    /// The value of a variable or of a provider's namespace, as in `git` or `git.branch`.
    pub fn get_variable(&self, path: &str) -> Result<Json, Refusal> {
        self.host.get_variable(path, self.deadline())
    }

    /// Takes what the hook printed.
    pub fn printed(&self, function: &str, text: &str) {
        self.host.printed(&self.subject, function, text);
    }

    fn require(&self, granted: bool, name: &str) -> Result<(), Refusal> {
        if granted {
            return Ok(());
        }
        Err(Refusal::permission(format!("{} does not have the permission `{name}`", self.subject)))
    }

    /// Answers a request that came from another process: the name of a function and its arguments by name. What is granted
    /// is decided here and nowhere else.
    pub fn ask(&self, function: &str, arguments: &Values) -> Result<Json, Refusal> {
        let text = |name: &str| match arguments.get(name) {
            Some(Json::String(text)) => Ok(text.as_str()),
            Some(_) => Err(Refusal::usage(format!("{function}: `{name}` must be a string"))),
            None => Err(Refusal::usage(format!("{function}: `{name}` is missing"))),
        };
        match function {
            "read_file" => self.read_file(text("path")?).map(Json::from),
            "http_request" => Ok(self.http_request(HttpRequest::from_arguments(arguments)?)?.to_json()),
            "llm_call" => self.llm_call(ModelRequest::from_arguments(arguments)?).map(Json::from),
            "render_template" => {
                let values = match arguments.get("variables") {
                    None | Some(Json::Null) => None,
                    Some(Json::Object(values)) => Some(values),
                    Some(_) => return Err(Refusal::usage("render_template: `variables` must be a dict")),
                };
                self.render_template(text("name")?, values).map(Json::from)
            }
            "get_variable" => self.get_variable(text("name")?),
            _ => Err(Refusal::permission(format!("unknown function `{function}`"))),
        }
    }
}
