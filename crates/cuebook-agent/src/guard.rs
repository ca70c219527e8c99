//! Guards: functions of the host that look at what goes to the model, what comes from it, and what it wants to call.

use cuebook::chat::Message;
use cuebook::{Code, Diagnostic, Error, ErrorKind};
use serde_json::{Map, Value as Json};

use super::{Halt, Permit};

type Input<'a> = Box<dyn Fn(&[Message]) -> Permit + Sync + 'a>;
type Output<'a> = Box<dyn Fn(&Message) -> Permit + Sync + 'a>;
type Tool<'a> = Box<dyn Fn(&str, &Map<String, Json>) -> Permit + Sync + 'a>;

/// Says no. What it does not look at is allowed. A denied question or answer ends the run; a denied call is reported to the model,
/// and the run goes on.
///
/// ```
/// use cuebook_agent::{Guard, Permit};
///
/// let guard = Guard::new().tool(|name, _arguments| match name {
///     "delete_everything" => Permit::Denied("not on a Friday".into()),
///     _ => Permit::Allowed,
/// });
/// # let _ = guard;
/// ```
#[derive(Default)]
pub struct Guard<'a> {
    input: Option<Input<'a>>,
    output: Option<Output<'a>>,
    tool: Option<Tool<'a>>,
}

impl<'a> Guard<'a> {
    /// A guard that looks at nothing.
    pub fn new() -> Guard<'a> {
        Guard::default()
    }

    /// Looks at the whole conversation each time before the model is asked.
    #[must_use]
    pub fn input(mut self, look: impl Fn(&[Message]) -> Permit + Sync + 'a) -> Guard<'a> {
        self.input = Some(Box::new(look));
        self
    }

    /// Looks at each answer of the model before it becomes a part of the conversation.
    #[must_use]
    pub fn output(mut self, look: impl Fn(&Message) -> Permit + Sync + 'a) -> Guard<'a> {
        self.output = Some(Box::new(look));
        self
    }

    /// Looks at each call before it is made: the name of the tool, and the arguments as it would get them.
    #[must_use]
    pub fn tool(mut self, look: impl Fn(&str, &Map<String, Json>) -> Permit + Sync + 'a) -> Guard<'a> {
        self.tool = Some(Box::new(look));
        self
    }

    pub(super) fn check_input(&self, conversation: &[Message]) -> Result<(), Halt> {
        check("Input", self.input.as_ref().map(|look| look(conversation)))
    }

    pub(super) fn check_output(&self, message: &Message) -> Result<(), Halt> {
        check("Output", self.output.as_ref().map(|look| look(message)))
    }

    pub(super) fn check_tool(&self, name: &str, arguments: &Map<String, Json>) -> Permit {
        match self.tool.as_ref().map(|look| look(name, arguments)) {
            Some(Permit::Denied(reason)) => Permit::Denied(format!("Tool denied by guardrail: {reason}")),
            _ => Permit::Allowed,
        }
    }
}

fn check(what: &str, permit: Option<Permit>) -> Result<(), Halt> {
    let Some(Permit::Denied(reason)) = permit else { return Ok(()) };
    let message = format!("{what} guardrail denied: {reason}");
    let hint = "a guardrail of the calling program decided this; change the request";
    let diagnostic = Diagnostic::new(Code::Refused, message).hint(hint);
    let error = Error::new(ErrorKind::Execute, diagnostic);
    Err(Halt::Failed(error.with("guard", what.to_lowercase()).with("reason", reason)))
}
