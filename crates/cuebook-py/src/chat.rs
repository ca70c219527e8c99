//! A conversation in memory: a function of Python asks the model, and functions of Python are its tools.

use std::borrow::Cow;
use std::sync::{Mutex, PoisonError};

use cuebook::chat::wire::{Api, Request, body};
use cuebook::chat::{Message, reply};
use cuebook::{Code, Diagnostic, Error, ErrorKind};
use cuebook_agent::{Agent, Performed};
use cuebook_bindings::replies::{halted, permanent, reply_json};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serde_json::{Map, Value as Json, json};

use crate::cancel::Cancel;
use crate::errors::{self, Raise};
use crate::rendered::Rendered;
use crate::{calls, json, values};

#[pymethods]
impl Rendered {
    /// What [`read_reply`] needs to know of the prompt: its provider, its interface, and whether it declares outputs.
    fn reply_form(&self) -> (&str, Option<&str>, bool) {
        let prompt = self.explanation.rendered().prompt();
        let model = prompt.model.as_ref();
        let provider = model.and_then(|model| model.provider.as_deref()).unwrap_or("openai");
        (provider, model.and_then(|model| model.api_type.as_deref()), !prompt.outputs.is_empty())
    }

    /// Asks a model with a function, runs the tools that it calls, and repeats until it answers.
    fn converse(
        &self,
        py: Python<'_>,
        format: Option<&str>,
        ask: Py<PyAny>,
        tools: Vec<(String, Py<PyAny>)>,
        most_turns: u32,
    ) -> PyResult<Py<PyAny>> {
        let (failures, flag) = (Mutex::default(), Cancel::current(py)?.unwrap_or_default());
        let api = self.api(format).or_raise(py)?;
        let raised: Mutex<Option<PyErr>> = Mutex::new(None);
        let ended = py.detach(|| -> cuebook::Result<_> {
            let rendered = self.explanation.rendered();
            let prompt = rendered.prompt();
            let (messages, _) = rendered.messages_for(api)?;
            let mut model = prompt.model.as_ref().map_or_else(Cow::default, Cow::Borrowed);
            if let Some(id) = rendered.scope().model() {
                model.to_mut().id = id.to_owned();
            }
            let (offered, outputs) = (rendered.tools(), &prompt.outputs);
            let mut agent = Agent::new(|question| {
                let request =
                    Request { model: &model, messages: question.messages, tools: &offered, outputs };
                let wire = body(api, &request).map_err(permanent)?;
                let response = model_reply(&ask, &wire.body, &raised).map_err(permanent)?;
                reply::read(api, &response, !outputs.is_empty()).map_err(permanent)
            })
            .most_turns(most_turns)
            .cancel(&cuebook_agent::Cancel::flag(flag));
            for tool in offered.iter() {
                for (parameter, input) in &tool.bindings {
                    agent = agent.bind(&tool.name, parameter, input);
                }
            }
            let scope = rendered.scope();
            let inputs: Map<String, Json> = scope
                .names()
                .into_iter()
                .filter_map(|name| Some((name.clone(), scope.get(&name)?.1)))
                .collect();
            agent = agent.inputs(inputs);
            for (name, function) in &tools {
                let failures = &failures;
                agent = agent.tool_with(name.clone(), move |call, arguments| {
                    tool(function, &call.name, arguments, failures)
                });
            }
            Ok(agent.run(messages))
        });
        let ended = ended.or_raise(py)?;
        let conversation: Json = ended.conversation.iter().map(Message::to_json).collect();
        match ended.outcome {
            Ok(result) => {
                let answer = json!({"result": result, "turns": ended.turns, "messages": conversation});
                let answer = json::to_python(py, &answer)?;
                let raised = failures.into_inner().unwrap_or_else(PoisonError::into_inner);
                answer.bind(py).cast::<PyDict>()?.set_item("failures", raised)?;
                Ok(answer)
            }
            Err(halt) => {
                if let Ok(Some(raised)) = raised.into_inner() {
                    return Err(raised);
                }
                Err(errors::to_python(py, &halted(halt)))
            }
        }
    }
}

impl Rendered {
    fn api(&self, format: Option<&str>) -> cuebook::Result<Api> {
        let (provider, api_type, _) = self.reply_form();
        Api::choose(format.unwrap_or(provider), api_type)
    }
}

/// What a provider's reply says, without a render.
#[pyfunction]
pub fn read_reply(
    py: Python<'_>,
    provider: &str,
    api_type: Option<&str>,
    response: &Bound<'_, PyAny>,
    has_outputs: bool,
) -> PyResult<Py<PyAny>> {
    let api = Api::choose(provider, api_type).or_raise(py)?;
    said(py, api, &values::named(response, "response")?, has_outputs)
}

fn said(py: Python<'_>, api: Api, response: &Json, has_outputs: bool) -> PyResult<Py<PyAny>> {
    let said = reply_json(api, response, has_outputs).or_raise(py)?;
    json::to_python(py, &said)
}

/// Calls the function that asks. Its exception is raised as it is.
fn model_reply(ask: &Py<PyAny>, body: &Json, raised: &Mutex<Option<PyErr>>) -> cuebook::Result<Json> {
    Python::attach(|py| {
        let called = json::to_python(py, body)
            .and_then(|body| calls::run(py, ask, PyTuple::new(py, [body])?))
            .and_then(|answer| values::named(answer.bind(py), "response"));
        called.map_err(|failure| {
            let message = calls::in_words(py, &failure);
            if let Ok(mut raised) = raised.lock() {
                *raised = Some(failure);
            }
            Error::new(ErrorKind::Reply, Diagnostic::new(Code::NoAnswer, message))
        })
    })
}

/// Calls a tool with its arguments by name. The model learns of an exception, which is kept, and the conversation goes on.
pub fn tool(
    function: &Py<PyAny>,
    name: &str,
    arguments: &Map<String, Json>,
    failures: &Mutex<Vec<Py<PyAny>>>,
) -> Performed {
    Python::attach(|py| {
        let called = json::to_python(py, &Json::Object(arguments.clone()))
            .and_then(|arguments| {
                let call = py.import("cuebook._values")?.getattr("call_tool")?;
                call.call1((function, arguments.bind(py).cast::<PyDict>()?))
            })
            .and_then(|answer| answer.extract::<String>());
        match called {
            Ok(text) => Performed::answer(text),
            Err(failure) => {
                let words = calls::in_words(py, &failure);
                let raised = failure.into_value(py).into_any();
                failures.lock().unwrap_or_else(PoisonError::into_inner).push(raised);
                Performed::failed(name, &words)
            }
        }
    })
}
