//! A conversation in memory: a function of JavaScript asks the model, and functions of JavaScript are its tools.

use std::borrow::Cow;
use std::sync::Arc;

use cuebook::chat::wire::{Request, body};
use cuebook::chat::{Message, reply};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_agent::{Agent, Performed};
use cuebook_bindings::replies::{halted, permanent};
use cuebook_lab::explain::Explanation;
use serde_json::{Map, Value as Json, json};

use crate::calls::Arguments;
use crate::functions::Function;
use crate::port::Port;
use crate::reads;

/// Asks a model with a function, runs the tools that it calls, and repeats until it answers.
pub fn converse(port: &Arc<Port>, explanation: &Explanation, given: &Arguments) -> Result<Json> {
    let rendered = explanation.rendered();
    let api = reads::api(rendered, given.optional("api").as_deref())?;
    let prompt = rendered.prompt();
    let (messages, _) = rendered.messages_for(api)?;
    let mut model = prompt.model.as_ref().map_or_else(Cow::default, Cow::Borrowed);
    if let Some(id) = rendered.scope().model() {
        model.to_mut().id = id.to_owned();
    }
    let number = |value: &Json| value.as_u64().and_then(|number| number.try_into().ok()).unwrap_or(u32::MAX);
    let ask = Function::new(port.clone(), number(given.value("ask")), "the function that asks");
    let (offered, outputs) = (rendered.tools(), &prompt.outputs);
    let mut agent = Agent::new(|question| {
        let request = Request { model: &model, messages: question.messages, tools: &offered, outputs };
        let wire = body(api, &request).map_err(permanent)?;
        let response = ask.call(&[wire.body]).map_err(|words| {
            permanent(Error::new(ErrorKind::Reply, Diagnostic::new(Code::NoAnswer, words)))
        })?;
        reply::read(api, &response, !outputs.is_empty()).map_err(permanent)
    })
    .most_turns(given.count("mostTurns").and_then(|most| most.try_into().ok()).unwrap_or(10));
    for tool in offered.iter() {
        for (parameter, input) in &tool.bindings {
            agent = agent.bind(&tool.name, parameter, input);
        }
    }
    let scope = rendered.scope();
    let inputs: Map<String, Json> =
        scope.names().into_iter().filter_map(|name| Some((name.clone(), scope.get(&name)?.1))).collect();
    agent = agent.inputs(inputs);
    for (name, function) in given.object("tools") {
        let function = Function::new(port.clone(), number(&function), format!("the tool `{name}`"));
        agent = agent.tool_with(name, move |call, arguments| tool(&function, &call.name, arguments));
    }
    let ended = agent.run(messages);
    let conversation: Json = ended.conversation.iter().map(Message::to_json).collect();
    match ended.outcome {
        Ok(result) => Ok(json!({"result": result, "turns": ended.turns, "messages": conversation})),
        Err(halt) => Err(halted(halt)),
    }
}

/// Calls a tool with its arguments by name. The model learns of an exception, and the conversation goes on.
fn tool(function: &Function, name: &str, arguments: &Map<String, Json>) -> Performed {
    match function.call(&[Json::Object(arguments.clone())]) {
        Ok(Json::String(text)) => Performed::answer(text),
        Ok(other) => Performed::answer(other.to_string()),
        Err(words) => Performed::failed(name, &words),
    }
}
