//! What the caller tells about the circumstances of a render, and the clock.

use std::fmt;
use std::sync::Arc;

use jiff::Zoned;
use serde_json::Value as Json;

use super::Variables;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::Source;

/// The circumstances of a render: who asks, in which session, in what language.
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The agent that the prompt is for, with its `prompt_variables`.
    pub agent: Agent,
    /// The model that will read the prompt.
    pub model: Option<String>,
    /// The session.
    pub session_id: Option<String>,
    /// The folder that the agent works in.
    pub workspace_path: Option<String>,
    /// The language, as in `en` or `ja`; chooses between variants of a template.
    pub language: Option<String>,
    /// Whether printing an absent variable is an error instead of nothing.
    pub strict: bool,
    /// Render without the hooks and providers that the prompt asks for, instead of refusing.
    pub without_hooks: bool,
}

/// An agent, as `agent.json` describes it.
#[derive(Debug, Clone, Default)]
pub struct Agent {
    /// Its id.
    pub id: Option<String>,
    /// Its name.
    pub name: Option<String>,
    /// The prompt that it uses.
    pub prompt_id: Option<String>,
    /// Values for the prompt's variables.
    pub variables: Variables,
    /// The model that it uses.
    pub model: Option<String>,
    /// The language that it speaks.
    pub language: Option<String>,
}

impl Agent {
    /// Reads an `agent.json`. Keys that say nothing about prompts are left alone.
    pub fn read(source: &Arc<Source>) -> Result<Agent> {
        let wrong = |message: String, hint: &str| {
            let diagnostic = Diagnostic::new(Code::BadAgent, message).file(source.name()).hint(hint);
            Error::new(ErrorKind::Config, diagnostic)
        };
        let json: Json = serde_json::from_str(source.text()).map_err(|error| {
            wrong(format!("not valid JSON: {error}"), "mend the JSON at the place that is named")
        })?;
        let Json::Object(object) = json else {
            return Err(wrong("a JSON object was expected".into(), "begin with { and end with }"));
        };
        let text = |name: &str| match object.get(name) {
            None | Some(Json::Null) => Ok(None),
            Some(Json::String(text)) => Ok(Some(text.clone())),
            Some(other) => Err(wrong(format!("`{name}` must be a string, not {other}"), "put it in quotes")),
        };
        let variables = match object.get("prompt_variables") {
            None | Some(Json::Null) => Variables::new(),
            Some(Json::Object(values)) => Variables::from_json(values),
            Some(other) => {
                let message = format!("`prompt_variables` must be an object, not {other}");
                return Err(wrong(message, "write {\"name\": value, …}"));
            }
        };
        Ok(Agent {
            id: text("agent_id")?,
            name: match text("name")? {
                Some(name) => Some(name),
                None => text("agent_name")?,
            },
            prompt_id: text("prompt_id")?,
            model: text("model")?,
            language: text("language")?,
            variables,
        })
    }
}

/// Tells the time. Injected, so that a render can be repeated.
pub trait Clock: Send + Sync + fmt::Debug {
    /// The time now, in the zone that people here use.
    fn now(&self) -> Zoned;
}

/// The machine's clock and time zone.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Zoned {
        Zoned::now()
    }
}

/// A clock that stands still.
#[derive(Debug, Clone)]
pub struct FixedClock(Zoned);

impl FixedClock {
    /// A clock that always shows a time such as `2026-02-20T15:30:00+09:00[Asia/Tokyo]`.
    pub fn at(time: &str) -> Result<FixedClock> {
        time.parse().map(FixedClock).map_err(|error| {
            let diagnostic = Diagnostic::new(Code::BadInput, format!("`{time}` is not a time: {error}"))
                .hint("write it as 2026-02-20T15:30:00+09:00[Asia/Tokyo]");
            Error::new(ErrorKind::Config, diagnostic)
        })
    }
}

impl Clock for FixedClock {
    fn now(&self) -> Zoned {
        self.0.clone()
    }
}
