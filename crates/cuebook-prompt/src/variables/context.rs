//! What the caller tells about the circumstances of a render, and the clock.

use std::fmt;
use std::sync::Arc;

use jiff::Zoned;
use serde_json::Value as Json;

use super::VisibilityOverrides;
use super::changes::Values;
use super::{UnknownVariables, Variables};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::json::Step::Key;
use crate::json::{Document, Problems, quoted};
use crate::prompt::Returns;
use crate::source::Source;

/// The circumstances of a render: who asks, in which session, in what language.
///
/// ```
/// use cuebook::{Agent, Book, Context, Variables};
///
/// let agent = Agent { variables: Variables::new().set("agent_name", "Rumi"), ..Agent::default() };
/// let context = Context { agent, session_id: Some("s1".into()), ..Context::default() };
/// let rendered = Book::open(".").render("general_system", &Variables::new(), &context)?;
/// assert!(rendered.text().contains("Rumi"));
/// # Ok::<(), cuebook::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct Context {
    /// The agent that the prompt is for, with its `prompt_variables`.
    pub agent: Agent,
    /// The model that will read the prompt.
    pub model: Option<String>,
    /// The session.
    pub session_id: Option<String>,
    /// The folder that the agent works in; hooks of a render whose caller names none get the project's folder.
    pub workspace_path: Option<String>,
    /// What hooks may know of the session; `session_id` is added.
    pub session: Values,
    /// The state of the session, for hooks that may read it.
    pub session_state: Values,
    /// The language, as in `en` or `ja`; chooses between variants of a template.
    pub language: Option<String>,
    /// Whether printing an absent variable is an error instead of nothing.
    pub strict: bool,
    /// What the render does with variables that the prompt does not have.
    pub unknown: UnknownVariables,
    /// Sections whose visibility is set, whatever their tree says: what a model has opened so far.
    pub visibility: VisibilityOverrides,
    /// The tag of the overrides that trees of sections are rendered with; `latest` if there are any and none is said.
    pub overrides_tag: Option<String>,
    /// The tokens that the text of a tree of sections may have: what is less important makes room.
    pub fit: Option<usize>,
    /// How the prompt of a directive tells a model to give results back; the project's settings say if this does not.
    pub returns: Option<Returns>,
    /// Render without the hooks and providers that the prompt asks for, instead of refusing.
    pub without_hooks: bool,
    /// What the user says: a message that follows those of the prompt.
    pub message: Option<String>,
    /// What the hooks of a thread add to the prompt of a directive.
    pub hook_texts: HookTexts,
}

/// Texts that the hooks of a thread add to the prompt of a directive, by where they go.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HookTexts {
    /// In the system message.
    pub system: Vec<String>,
    /// Before the prompt.
    pub before: Vec<String>,
    /// After the prompt.
    pub after: Vec<String>,
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

impl Context {
    /// What is known of the session, with its id.
    #[doc(hidden)]
    pub fn session_values(&self) -> Values {
        let mut session = self.session.clone();
        if let Some(id) = &self.session_id {
            session.entry("session_id").or_insert_with(|| Json::from(id.as_str()));
        }
        session
    }
}

impl Agent {
    /// Reads an `agent.json`. Keys that say nothing about prompts are left alone.
    pub fn read(source: &Arc<Source>) -> Result<Agent> {
        let document = Document::parse(source, Code::BadAgent, ErrorKind::Config)?;
        let object = document.object()?;
        let mut problems = Problems::new(&document);
        let mut text = |name: &str| match object.get(name) {
            None | Some(Json::Null) => None,
            Some(Json::String(text)) => Some(text.clone()),
            Some(other) => {
                problems.wrong_type(&[Key(name)], other, &quoted(name), "a string", "put it in quotes");
                None
            }
        };
        let mut agent = Agent {
            id: text("agent_id"),
            name: text("name").or_else(|| text("agent_name")),
            prompt_id: text("prompt_id"),
            model: text("model"),
            language: text("language"),
            variables: Variables::new(),
        };
        match object.get("prompt_variables") {
            None | Some(Json::Null) => {}
            Some(Json::Object(values)) => agent.variables = Variables::from_json(values),
            Some(other) => {
                let path = [Key("prompt_variables")];
                problems.wrong_type(
                    &path,
                    other,
                    "`prompt_variables`",
                    "an object",
                    "write {\"name\": value, …}",
                );
            }
        }
        problems.or(agent)
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
    /// The machine's clock, stopped at this moment.
    pub fn stopped() -> FixedClock {
        FixedClock(Zoned::now())
    }

    /// A clock that always shows a time such as `2026-02-20T15:30:00+09:00[Asia/Tokyo]`.
    pub fn at(time: &str) -> Result<FixedClock> {
        time.parse().map(FixedClock).map_err(|error| {
            let diagnostic = Diagnostic::new(Code::BadInput, format!("invalid time `{time}`: {error}"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_brings_its_prompt_and_values_and_may_say_more() {
        let text = r#"{"agent_id": "a1", "agent_name": "Ada", "prompt_id": "greeting", "model": null,
                       "prompt_variables": {"tone": "calm"}, "temperature": 0.2}"#;
        let agent = Agent::read(&Source::new("agent.json", text)).unwrap();
        assert_eq!((agent.name.as_deref(), agent.prompt_id.as_deref()), (Some("Ada"), Some("greeting")));
        assert_eq!(agent.variables.get("tone"), Some(Json::from("calm")));
        assert_eq!(agent.model, None);
    }

    #[test]
    fn everything_that_is_wrong_is_underlined() {
        let text = "{\"agent_id\": 7,\n \"prompt_variables\": [\"tone\"]}";
        let error = Agent::read(&Source::new("agent.json", text)).unwrap_err();
        assert_eq!(
            crate::json::shown(error.diagnostics()),
            "\
error agent.json:1:14: `agent_id` must be a string [CB109]
  at 7 -- this is a number
  help: put it in quotes
error agent.json:2:22: `prompt_variables` must be an object [CB109]
  at [ -- this is an array
  help: write {\"name\": value, …}
"
        );
    }
}
