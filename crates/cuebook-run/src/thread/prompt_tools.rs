//! The tools of any other prompt that is run: those that it declares, with the items that stand behind them, and those that
//! open and read its sections.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use cuebook::chat::Message;
use cuebook::chat::reply::{Reply, ToolCall};
use cuebook::chat::wire::Api;
use cuebook::prompt::{Property, Tools, Visibility};
use cuebook::render::Rendered;
use cuebook::sections::VisibilityOverrides;
use cuebook::sections::disclosure::{MAX_EXPANSIONS, TOOLS};
use cuebook::variables::{Context, Variables};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Prepared, Result};
use serde_json::{Map, Value as Json, json};

use super::form;
use super::managed::{Managed, Target, ThreadTools};
use super::results::{self, Reading};
use super::{Kind, origins};
use crate::engine::{Engine, Execute, Project};
use crate::policy::nudge;
use crate::request::ExecuteRequest;
use crate::turn::{AfterAnswer, Performed, Permit};

/// The tools of a prompt.
pub(super) struct PromptTools<'e> {
    pub(super) engine: &'e Engine,
    pub(super) project: Arc<Project>,
    pub(super) prepared: Arc<Prepared>,
    pub(super) variables: Variables,
    /// The items behind its tools, by the names of the tools.
    pub(super) items: BTreeMap<String, String>,
    pub(super) inputs: Map<String, Json>,
    shown: Mutex<ShownPrompt>,
}

/// The prompt as the model sees it now.
struct ShownPrompt {
    context: Context,
    rendered: Rendered,
    /// Those of the rendered prompt.
    tools: Arc<Tools>,
    api: Api,
    /// How many messages of the conversation are the prompt's.
    messages: usize,
    expansions: usize,
}

impl<'e> PromptTools<'e> {
    pub(super) fn new(
        engine: &'e Engine,
        project: Arc<Project>,
        prepared: Arc<Prepared>,
        variables: Variables,
        (context, api): (Context, Api),
        (items, inputs): (BTreeMap<String, String>, Map<String, Json>),
    ) -> Result<PromptTools<'e>> {
        let rendered = prepared.render(&variables, &Arc::new(context.clone()))?;
        let messages = rendered.messages_for(api)?.0.len();
        let tools = Arc::new(rendered.tools().into_owned());
        let shown = Mutex::new(ShownPrompt { context, rendered, tools, api, messages, expansions: 0 });
        Ok(PromptTools { engine, project, prepared, variables, items, inputs, shown })
    }

    /// What the model gets first.
    pub(super) fn messages(&self) -> Result<Vec<Message>> {
        let shown = self.shown();
        shown.rendered.messages_for(shown.api).map(|(messages, _)| messages)
    }

    /// The same, with where each piece came from.
    pub(super) fn request(&self) -> Result<(Vec<Message>, Json)> {
        let messages = self.messages()?;
        let origins = origins::of(&self.shown().rendered, &messages);
        Ok((messages, origins))
    }

    fn shown(&self) -> std::sync::MutexGuard<'_, ShownPrompt> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The item behind a tool that the prompt declares; its own word on it is `runs`.
    fn item(&self, name: &str) -> Option<&str> {
        self.items.get(name).map(String::as_str)
    }

    /// Opens or reads sections, if that is what the call is for.
    fn disclose(
        &self,
        thread: &Managed<'_>,
        call: &ToolCall,
        arguments: &Map<String, Json>,
    ) -> Option<Performed> {
        let mut shown = self.shown();
        let mut session = shown.context.visibility.clone();
        let arguments = Json::Object(arguments.clone());
        let answer = match self.prepared.answer(&shown.rendered, &call.name, &arguments, &mut session) {
            Ok(answer) => answer?,
            Err(error) => return Some(Performed::failure(format!("Error: {}", error.diagnostic().message))),
        };
        let performed = Performed { is_error: answer.is_error, ..Performed::answer(&answer.text) };
        if !answer.render_again {
            return Some(performed);
        }
        shown.expansions += 1;
        if shown.expansions > MAX_EXPANSIONS {
            return Some(Performed::failure("Error: no more sections can be opened in this run."));
        }
        let opened = opened(&shown.context.visibility, &session);
        let context = Context { visibility: session, ..shown.context.clone() };
        let again = self.prepared.render(&self.variables, &Arc::new(context.clone()));
        let again = again.and_then(|rendered| Ok((rendered.messages_for(shown.api)?.0, rendered)));
        let (messages, rendered) = match again {
            Ok(again) => again,
            Err(error) => return Some(Performed::failure(format!("Error: {}", error.diagnostic().message))),
        };
        let replaces = shown.messages;
        let origins = origins::of(&rendered, &messages);
        shown.tools = Arc::new(rendered.tools().into_owned());
        (shown.context, shown.rendered, shown.messages) = (context, rendered, messages.len());
        let reported: Vec<Json> = messages.iter().map(Message::to_json).collect();
        thread.recount();
        thread.keep(
            Kind::Disclosed,
            json!({"opened": opened, "replaces": replaces, "messages": reported, "origins": origins}),
        );
        Some(Performed { prompt: Some((replaces, messages)), ..performed })
    }
}

impl ThreadTools for PromptTools<'_> {
    fn tools(&self) -> Arc<Tools> {
        Arc::clone(&self.shown().tools)
    }

    fn outputs(&self) -> Vec<Property> {
        self.prepared.prompt().outputs.clone()
    }

    fn permit(&self, call: &ToolCall, _: &Map<String, Json>) -> Permit {
        let tools = self.tools();
        if tools.iter().any(|tool| tool.name == call.name) {
            return Permit::Allowed;
        }
        let names: Vec<&str> = tools.iter().map(|tool| tool.name.as_str()).collect();
        let known = if names.is_empty() {
            "There are no tools.".into()
        } else {
            format!("The tools are: {}", names.join(", "))
        };
        Permit::Denied(format!("There is no tool `{}`. {known}", call.name))
    }

    fn target(&self, call: &ToolCall, _: &Map<String, Json>) -> Option<Target> {
        let item_id = self.item(&call.name)?.to_owned();
        Some(Target { action: "execute", item_type: "tool".into(), item_id })
    }

    fn perform(&self, thread: &Managed<'_>, call: &ToolCall, arguments: &Map<String, Json>) -> Performed {
        if let Some(performed) = self.disclose(thread, call, arguments) {
            return performed;
        }
        let mut parameters = arguments.clone();
        if let Some(tool) = self.tools().iter().find(|tool| tool.name == call.name) {
            // What an input of the prompt fills is not the model's to say.
            for (parameter, input) in &tool.bindings {
                let value = self.inputs.get(input).cloned().unwrap_or(Json::Null);
                parameters.insert(parameter.clone(), value);
            }
        }
        let Some(item) = self.item(&call.name) else {
            return match self.engine.function(&call.name) {
                Some(function) => function(&parameters),
                None => Performed::failure(format!("Error: no handler for `{}`.", call.name)),
            };
        };
        let request = ExecuteRequest {
            project_path: Some(self.project.spaces.project().to_owned()),
            parameters,
            ..ExecuteRequest::tool(item)
        };
        let within = thread.within(Some(&call.id));
        let answer = self.engine.execute_for(&request, &thread.watching(), Some(&within));
        results::tool_result(thread, &call.id, &answer.json, Reading::Impossible)
    }

    fn alone(&self, call: &ToolCall) -> bool {
        // Opening a section changes the prompt, and the next call has to see that.
        TOOLS.contains(&call.name.as_str())
    }

    fn settle(&self, _: u32, said: &Reply, nudges: u32) -> Result<AfterAnswer> {
        let Some(form) = form::of(&self.prepared) else {
            let result = match said {
                Reply::Text(text) => json!(text),
                other => other.to_json(),
            };
            return Ok(AfterAnswer::Done(json!({"result": result})));
        };
        match form::read(&form, said) {
            Ok(value) => Ok(AfterAnswer::Done(json!({"result": value, "outputs": value}))),
            Err(why) => again(nudges, &why, said),
        }
    }
}

/// Asks for an answer of the right form again, or gives up.
fn again(nudges: u32, why: &str, said: &Reply) -> Result<AfterAnswer> {
    if nudges < nudge::MAX {
        return Ok(AfterAnswer::Again(form::reminder(why)));
    }
    let message = format!("the model's answer does not have the form that the prompt asks for: {why}");
    let hint = Hint::command_line(
        "describe the form in the prompt; the answer is in the thread's log (`thread show --events`)",
    )
    .for_programs("describe the form in the prompt; the answer is in the thread's log");
    let diagnostic = Diagnostic::new(Code::OutputsMissing, message).hint(hint);
    Err(Error::new(ErrorKind::Execute, diagnostic).with("result", said.to_json()))
}

/// The sections that are open now and were not before.
fn opened(before: &VisibilityOverrides, after: &VisibilityOverrides) -> Vec<Vec<String>> {
    after
        .iter()
        .filter(|(path, now)| *now == Visibility::Full && before.get(path) != Some(Visibility::Full))
        .map(|(path, _)| path.to_vec())
        .collect()
}
