//! The tools of a directive's thread: the four actions, and the one that returns its outputs.

use std::sync::Arc;

use cuebook::Result;
use cuebook::chat::reply::{Reply, ToolCall, parse_arguments};
use cuebook::dialect::directive::Output;
use cuebook::prompt::Tools;
use serde_json::{Map, Value as Json, json};

use super::Kind;
use super::managed::{Managed, Target, ThreadTools};
use super::orchestrator::RESULT;
use super::results::{self, Reading};
use crate::actions::Action;
use crate::engine::{Engine, Execute, Project};
use crate::policy::capability::Capabilities;
use crate::policy::directive_tools::tools;
use crate::policy::nudge::{self, AnswerWithoutCall, Verdict};
use crate::policy::returns::{self, Returned};
use crate::request::ExecuteRequest;
use crate::turn::{AfterAnswer, Performed, Permit};

/// The tools of a directive's thread.
pub(super) struct DirectiveThread<'e> {
    engine: &'e Engine,
    project: Arc<Project>,
    capabilities: &'e Capabilities,
    outputs: Vec<Output>,
    tools: Arc<Tools>,
}

impl<'e> DirectiveThread<'e> {
    pub(super) fn new(
        engine: &'e Engine,
        project: Arc<Project>,
        capabilities: &'e Capabilities,
        outputs: Vec<Output>,
    ) -> DirectiveThread<'e> {
        let tools = tools(capabilities, &outputs);
        DirectiveThread { engine, project, capabilities, outputs, tools }
    }
}

impl DirectiveThread<'_> {
    /// The outputs that a call returns, if it is one that does: by the tool of its own, or as the prompt's sentence says it.
    fn returned(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Option<Map<String, Json>> {
        if call.name == returns::NAME {
            return Some(arguments.clone());
        }
        let is_execute = Action::named(&call.name) == Some(Action::Execute);
        let names_it = arguments.get("item_id").and_then(Json::as_str) == Some(returns::ITEM);
        (is_execute && names_it)
            .then(|| arguments.get("parameters").and_then(Json::as_object).cloned().unwrap_or_default())
    }

    fn take(&self, thread: &Managed<'_>, given: &Map<String, Json>) -> Performed {
        match returns::check(&self.outputs, given) {
            Returned::Outputs(outputs) => {
                if let Err(why) = thread.thread_hooks.returned(thread, &outputs) {
                    return Performed::failure(why);
                }
                thread.keep(Kind::Return, json!({"outputs": outputs}));
                Performed { ends: Some(json!({"outputs": outputs})), ..Performed::answer("Returned.") }
            }
            Returned::Blocked(why) => {
                thread.keep(Kind::Return, json!({"blocked": why}));
                Performed { ends: Some(json!({"blocked": why})), ..Performed::answer("Understood.") }
            }
            Returned::Wrong(why) => Performed::failure(why),
        }
    }

    fn act(
        &self,
        thread: &Managed<'_>,
        call: &ToolCall,
        action: Action,
        arguments: &Map<String, Json>,
    ) -> Json {
        let mut arguments = arguments.clone();
        let project = self.project.spaces.project().to_string_lossy().into_owned();
        arguments.insert("project_path".into(), project.into());
        if action != Action::Execute {
            return action.run(self.engine, &arguments, &thread.watching());
        }
        match ExecuteRequest::from_json(&Json::Object(arguments)) {
            Ok(request) => {
                let within = thread.within(Some(&call.id));
                self.engine.execute_for(&request, &thread.watching(), Some(&within)).json
            }
            Err(error) => json!({"status": "error", "error": error.diagnostic().message}),
        }
    }
}

/// What a call of an action is for.
fn target(action: Action, arguments: &Map<String, Json>) -> Target {
    let text = |name: &str| arguments.get(name).and_then(Json::as_str).unwrap_or_default();
    let (item_type, item_id) = match action {
        Action::Search => (text("scope").split('.').next().unwrap_or_default(), ""),
        _ => (text("item_type"), text("item_id")),
    };
    let item_type = if item_type.is_empty() { "tool" } else { item_type };
    Target { action: action.word(), item_type: item_type.to_owned(), item_id: item_id.to_owned() }
}

impl ThreadTools for DirectiveThread<'_> {
    fn tools(&self) -> Arc<Tools> {
        self.tools.clone()
    }

    fn permit(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Permit {
        if self.returned(call, arguments).is_some() {
            return match self.outputs.is_empty() {
                true => Permit::Denied(
                    "This directive declares no outputs. Say in plain text what you did, and stop.".into(),
                ),
                false => Permit::Allowed,
            };
        }
        let Some(action) = Action::named(&call.name) else {
            let names: Vec<&str> = self.tools.iter().map(|tool| tool.name.as_str()).collect();
            return Permit::Denied(format!(
                "There is no tool `{}`. The tools are: {}",
                call.name,
                names.join(", ")
            ));
        };
        if action == Action::Load && arguments.get("destination").and_then(Json::as_str) == Some("user") {
            // What lies there holds for every project, and is for the user to change.
            return Permit::Denied(
                "A thread copies items into its project only: destination `project`.".into(),
            );
        }
        let target = target(action, arguments);
        match self.capabilities.check(target.action, &target.item_type, &target.item_id) {
            Ok(()) => Permit::Allowed,
            Err(denied) => Permit::Denied(denied.to_json().to_string()),
        }
    }

    fn target(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Option<Target> {
        let returns = self.returned(call, arguments).is_some();
        Action::named(&call.name).filter(|_| !returns).map(|action| target(action, arguments))
    }

    fn perform(&self, thread: &Managed<'_>, call: &ToolCall, arguments: &Map<String, Json>) -> Performed {
        if let Some(given) = self.returned(call, arguments) {
            if thread.state().calls.returned {
                return Performed::failure(
                    "The thread has returned already, by an earlier call of this answer. This one does not count.",
                );
            }
            return self.take(thread, &given);
        }
        let Some(action) = Action::named(&call.name) else {
            return Performed::failure(format!("There is no tool `{}`.", call.name));
        };
        let response = self.act(thread, call, action, arguments);
        let is_piece =
            action == Action::Execute && arguments.get("item_id").and_then(Json::as_str) == Some(RESULT);
        let reading = if is_piece { Reading::Piece } else { Reading::Possible };
        results::tool_result(thread, &call.id, &response, reading)
    }

    /// Of several returns the first counts that will do.
    fn alone(&self, call: &ToolCall) -> bool {
        parse_arguments(&call.arguments).is_ok_and(|arguments| self.returned(call, &arguments).is_some())
    }

    fn settle(&self, turn: u32, said: &Reply, nudges: u32) -> Result<AfterAnswer> {
        let text = match said {
            Reply::Text(text) => text.clone(),
            Reply::Structured { raw, .. } => raw.clone(),
            other => other.to_json().to_string(),
        };
        let may_call = !self.tools.is_empty();
        let said = AnswerWithoutCall { text: &text, turn, nudges, outputs: &self.outputs, may_call };
        match nudge::decide(&said) {
            Verdict::Nudge(words) => Ok(AfterAnswer::Again(words)),
            Verdict::Done if text.trim().is_empty() => {
                let note = "the model's last answer is empty; the log shows what it did";
                Ok(AfterAnswer::Done(json!({"result": text, "note": note})))
            }
            Verdict::Done => Ok(AfterAnswer::Done(json!({"result": text}))),
            Verdict::Failed(error) => Err(error),
        }
    }
}
