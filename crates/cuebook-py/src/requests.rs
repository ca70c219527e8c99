//! Bodies of requests with messages that a program passes.

use cuebook::chat::Message;
use cuebook::chat::wire::{Api, Request, body};
use cuebook::prompt::{Model, ModelOptions};
use cuebook::{Context, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value as Json};

use crate::book::Book;
use crate::context::usage;
use crate::errors::Raise;
use crate::json::to_python;
use crate::values;

#[pymethods]
impl Book {
    /// How the model of a prompt is reached, as its file says it: with its key, which no definition shows.
    fn connection(&self, py: Python<'_>, prompt: &str) -> PyResult<Py<PyAny>> {
        let prepared = py.detach(|| self.with_paths().prepare(prompt, &Context::default())).or_raise(py)?;
        let connection = prepared.prompt().model.as_ref().and_then(|model| model.connection.as_ref());
        to_python(py, connection.unwrap_or(&Json::Null))
    }

    /// The body of a request with these messages, and its notes. Tools and outputs are those of the prompt; the model is the given one.
    fn body(
        &self,
        py: Python<'_>,
        prompt: &str,
        messages: &Bound<'_, PyAny>,
        model: &Bound<'_, PyDict>,
        provider: &str,
        api_type: Option<&str>,
    ) -> PyResult<(Py<PyAny>, Py<PyAny>)> {
        let messages = values::named(messages, "messages")?;
        let model = values::members(model)?;
        let made = py.detach(|| {
            let api = Api::choose(provider, api_type)?;
            let (messages, model) = (read_messages(&messages)?, read_model(&model)?);
            let prepared = self.with_paths().prepare(prompt, &Context::default())?;
            let prompt = prepared.prompt();
            let request = Request {
                model: &model,
                messages: &messages,
                tools: &prompt.tools,
                outputs: &prompt.outputs,
            };
            body(api, &request)
        });
        let wire = made.or_raise(py)?;
        let notes: Json = wire.notes.iter().map(|note| Json::Object(note.to_json())).collect();
        Ok((to_python(py, &wire.body)?, to_python(py, &notes)?))
    }
}

fn read_messages(given: &Json) -> Result<Vec<Message>> {
    let list = given.as_array().map_or(&[][..], Vec::as_slice);
    let read = |(index, one)| {
        Message::from_json(one).map_err(|why| {
            usage(
                format!("message {} cannot be read: {why}", index + 1),
                "pass messages with `role` and `content`, or those of `prepare`",
            )
        })
    };
    list.iter().enumerate().map(read).collect()
}

/// A model in the words of a `.prompty` file. A missing option, and `None`, are the provider's default.
fn read_model(given: &Map<String, Json>) -> Result<Model> {
    let mut model = Model::default();
    for (key, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        match (key.as_str(), value) {
            ("id", Json::String(id)) => model.id = id.clone(),
            ("options", Json::Object(options)) => model.options = read_options(options)?,
            ("provider" | "apiType" | "connection", _) => {}
            _ => return Err(wrong(key)),
        }
    }
    Ok(model)
}

fn read_options(given: &Map<String, Json>) -> Result<ModelOptions> {
    let mut options = ModelOptions::default();
    for (key, value) in given.iter().filter(|(_, value)| !value.is_null()) {
        let place = match key.as_str() {
            "temperature" => &mut options.temperature,
            "maxOutputTokens" => &mut options.max_output_tokens,
            "topP" => &mut options.top_p,
            "topK" => &mut options.top_k,
            "frequencyPenalty" => &mut options.frequency_penalty,
            "presencePenalty" => &mut options.presence_penalty,
            "seed" => &mut options.seed,
            "stopSequences" => {
                let texts =
                    value.as_array().map(|list| list.iter().map(|one| one.as_str().map(str::to_owned)));
                options.stop_sequences =
                    texts.and_then(Iterator::collect::<Option<_>>).ok_or_else(|| wrong(key))?;
                continue;
            }
            "allowMultipleToolCalls" => {
                options.allow_multiple_tool_calls = Some(value.as_bool().ok_or_else(|| wrong(key))?);
                continue;
            }
            "additionalProperties" => {
                options.additional_properties = value.as_object().cloned().ok_or_else(|| wrong(key))?;
                continue;
            }
            _ => {
                options.extra.insert(key.clone(), value.clone());
                continue;
            }
        };
        *place = Some(value.as_number().cloned().ok_or_else(|| wrong(key))?);
    }
    Ok(options)
}

fn wrong(key: &str) -> cuebook::Error {
    usage(format!("`{key}` of the model has a wrong value"), "use the values that a `.prompty` file may have")
}
