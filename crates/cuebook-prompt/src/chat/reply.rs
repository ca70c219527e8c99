//! Listen: from what a provider sent back to a result.
//!
//! [`read`] understands a whole reply, [`Stream`] one that comes in pieces, [`Sse`] the bytes that such pieces travel in.
//! Every provider has a file of its own; what they have in common is here. Nothing here sends or repeats a request, runs
//! a tool, or decides whether an answer is good.

mod anthropic;
mod arguments;
mod embeddings;
mod gemini;
mod images;
mod openai;
mod provider_state;
mod reply_value;
mod responses;
mod sse;
mod stream;
mod usage;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value as Json, json};

use self::reply_value::{ReplyValue, bad, failed};
use super::Api;
use crate::error::{Code, Error, Hint, Result};
use crate::redact::Secrets;
use crate::trace::{self, span};

pub use arguments::parse_arguments;
pub(crate) use provider_state::{PAUSED, REASONING};
pub use provider_state::{ProviderState, is_paused};
pub use sse::{Sse, SseEvent};
pub use stream::{Chunk, Outcome, OutcomeKind, Stream};
pub use usage::Usage;

/// What the model answered.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Reply {
    /// Text.
    Text(String),
    /// Tools that it wants to be called.
    ToolCalls {
        /// The calls, in order.
        calls: Vec<ToolCall>,
        /// What it said beside them.
        text: Option<String>,
    },
    /// The JSON that the prompt's outputs ask for.
    Structured {
        /// The value.
        value: Json,
        /// The JSON as the model wrote it, with every digit of its numbers.
        raw: String,
    },
    /// The vector of the one text that was sent.
    Embedding(Vec<f64>),
    /// The vectors of several texts, in their order.
    Embeddings(Vec<Vec<f64>>),
    /// A picture: a URL, or its bytes in base64.
    Image(String),
    /// Several pictures.
    Images(Vec<String>),
    /// The model, or a filter over it, declined; in its own words where it has any.
    Refusal(String),
}

/// A call of a tool that a model asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// What the result of the call must name.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments as the model wrote them: JSON if all is well. See [`parse_arguments`].
    pub arguments: String,
}

/// A reply, and what is known about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// What the model answered.
    pub reply: Reply,
    /// What it thought before that, where the provider shows it.
    pub thinking: Option<String>,
    /// How much was read and written.
    pub usage: Option<Usage>,
    /// Why it stopped, in the provider's words.
    pub finish: Option<String>,
    /// The model that answered.
    pub model: Option<String>,
    /// The provider's name for the answer.
    pub id: Option<String>,
    /// What the provider wants to see again with it. See [`Answer::carry_into`].
    pub provider_state: ProviderState,
}

/// Understands a provider's whole reply. With `outputs` an answer in text is read as JSON, and stays text if it is not JSON.
pub fn read(api: Api, response: &Json, outputs: bool) -> Result<Answer> {
    let span = span!("process", "cuebook.process", api.as_str());
    let _entered = span.enter();
    let answer = understand(api, response, outputs);
    trace::outcome(&span, Secrets::new(), &answer, |answer| answer.reply.to_json());
    answer
}

fn understand(api: Api, response: &Json, outputs: bool) -> Result<Answer> {
    let reply = ReplyValue::new(response);
    if let Some(error) = provider_error(&reply) {
        return Err(error);
    }
    let answer = match api {
        Api::OpenAiChat => openai::read(&reply, outputs),
        Api::OpenAiResponses => responses::read(&reply, outputs),
        Api::OpenAiEmbeddings => embeddings::read(&reply),
        Api::OpenAiImages => images::read(&reply),
        Api::Anthropic => anthropic::read(&reply, outputs),
        Api::Gemini => gemini::read(&reply, outputs),
    };
    answer.map_err(|error| explain(error, api, response))
}

/// The name of an interface, for messages.
fn label(api: Api) -> &'static str {
    match api {
        Api::OpenAiChat => "OpenAI chat",
        Api::OpenAiResponses => "OpenAI responses",
        Api::OpenAiEmbeddings => "OpenAI embeddings",
        Api::OpenAiImages => "OpenAI images",
        Api::Anthropic => "Anthropic messages",
        Api::Gemini => "Gemini",
    }
}

/// Adds to an error what the reply looks like, if that is another interface's.
fn explain(error: Error, api: Api, response: &Json) -> Error {
    if error.code() != Code::BadReply {
        return error;
    }
    let has = |key: &str| response.get(key).is_some();
    let data = |key: &str| response.pointer("/data/0").is_some_and(|first| first.get(key).is_some());
    let looks_like = match () {
        () if has("choices") => Some(Api::OpenAiChat),
        () if has("output") || has("output_text") => Some(Api::OpenAiResponses),
        () if has("candidates") || has("promptFeedback") => Some(Api::Gemini),
        () if has("content") && has("stop_reason") => Some(Api::Anthropic),
        () if data("embedding") => Some(Api::OpenAiEmbeddings),
        () if data("url") || data("b64_json") => Some(Api::OpenAiImages),
        () => None,
    };
    let hint = match looks_like {
        Some(other) if other != api => {
            format!(
                "this looks like a reply from {}, but was read as a reply from {}",
                label(other),
                label(api)
            )
        }
        _ => format!(
            "it was read as a reply from {}: check what the endpoint, or a gateway in front of it, sends",
            label(api)
        ),
    };
    let path = error.field("path").cloned();
    let diagnostic = error.diagnostic().clone().hint(hint);
    let error = Error::new(error.kind(), diagnostic);
    match path {
        Some(path) => error.with("path", path),
        None => error,
    }
}

/// The failure that a reply reports instead of an answer: every provider has it under `error`.
fn provider_error(reply: &ReplyValue<'_, '_>) -> Option<Error> {
    // Google wraps errors of a stream in a list.
    let body = reply.value.as_array().and_then(|list| list.first()).unwrap_or(reply.value);
    let error = body.get("error")?;
    // A key without anything in it is no failure.
    let says = match error {
        Json::Object(_) => true,
        Json::String(text) => !text.is_empty(),
        _ => body.get("type").and_then(Json::as_str) == Some("error"),
    };
    says.then(|| failure(error))
}

/// An error from what a provider says about its failure: an object with a message, or a text.
fn failure(error: &Json) -> Error {
    let text = |key: &str| match error.get(key) {
        Some(Json::String(text)) if !text.is_empty() => Some(text.clone()),
        Some(Json::Number(number)) => Some(number.to_string()),
        _ => None,
    };
    let message = error.as_str().map(str::to_owned).or_else(|| text("message"));
    // The type of an event that is the error itself says nothing.
    let kind = text("type").filter(|kind| kind != "error").or_else(|| text("status"));
    let name = kind.clone().or_else(|| text("code"));
    let said = message.or_else(|| name.clone()).unwrap_or_else(|| "no reason was given".to_owned());
    let hint = name.map(|name| format!("the provider's error type is {}", crate::json::quoted(&name)));
    let mut failure =
        failed(format!("the provider failed: {said}"), hint.map(Hint::from)).with("provider_message", said);
    for (name, value) in [("provider_type", kind), ("provider_code", text("code"))] {
        if let Some(value) = value {
            failure = failure.with(name, value);
        }
    }
    failure
}

/// What an answer in text is: JSON if that is what was asked for and it is some, else the text.
fn text_reply(text: String, outputs: bool) -> Reply {
    if outputs {
        for raw in [text.as_str(), arguments::unfenced(&text)] {
            if let Ok(value) = serde_json::from_str(raw) {
                return Reply::Structured { value, raw: raw.to_owned() };
            }
        }
    }
    Reply::Text(text)
}

/// What an answer is that has calls, text or both: calls come first.
fn text_or_calls(calls: Vec<ToolCall>, text: String, outputs: bool) -> Reply {
    if calls.is_empty() {
        return text_reply(text, outputs);
    }
    Reply::ToolCalls { calls, text: Some(text).filter(|text| !text.is_empty()) }
}

/// What pictures are as an answer; `None` if there are none.
fn pictures(images: Vec<String>) -> Option<Reply> {
    match <[String; 1]>::try_from(images) {
        Ok([image]) => Some(Reply::Image(image)),
        Err(images) if images.is_empty() => None,
        Err(images) => Some(Reply::Images(images)),
    }
}

/// What an answer is that has calls, text, pictures or several of them: pictures count where nothing is said.
fn shown(calls: Vec<ToolCall>, text: String, images: Vec<String>, outputs: bool) -> Reply {
    let silent = calls.is_empty() && text.is_empty();
    pictures(images).filter(|_| silent).unwrap_or_else(|| text_or_calls(calls, text, outputs))
}

/// Arguments that a provider sends as JSON rather than as text, written compactly.
fn compact(arguments: &Json) -> String {
    match arguments {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A text, unless it is empty.
fn some_text(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

impl Reply {
    /// The result of the call: text, a list of calls, a value, vectors, addresses of pictures.
    pub fn to_json(&self) -> Json {
        match self {
            Reply::Text(text) | Reply::Image(text) | Reply::Refusal(text) => json!(text),
            Reply::ToolCalls { calls, .. } => calls.iter().map(ToolCall::to_json).collect(),
            Reply::Structured { value, .. } => value.clone(),
            Reply::Embedding(vector) => json!(vector),
            Reply::Embeddings(vectors) => json!(vectors),
            Reply::Images(images) => json!(images),
        }
    }

    /// The result as a type of the caller's. A structured answer is read from the JSON that the model wrote, so that no
    /// digit of a number is lost; a text is the value of a string, or read as JSON for any other type.
    pub fn cast<T: DeserializeOwned>(&self) -> Result<T> {
        let wrong = |error: serde_json::Error| {
            let hint = match self {
                Reply::Text(_) => "the answer is text; a model returns JSON only if it gets the outputs",
                _ => "use a type that fits the outputs of the prompt",
            };
            let message = format!("the answer does not fit the requested type: {error}");
            let diagnostic = bad(message).diagnostic().clone().hint(hint);
            Error::new(crate::ErrorKind::Reply, diagnostic)
        };
        match self {
            Reply::Structured { raw, .. } => serde_json::from_str(raw).map_err(wrong),
            Reply::Text(text) => match T::deserialize(json!(text)) {
                Ok(value) => Ok(value),
                Err(_) => serde_json::from_str(arguments::unfenced(text)).map_err(wrong),
            },
            Reply::Refusal(why) => {
                Err(failed(format!("the model refused: {why}"), Some("rephrase the request".into())))
            }
            other => T::deserialize(other.to_json()).map_err(wrong),
        }
    }
}

impl ToolCall {
    /// The call as scripts see it.
    pub fn to_json(&self) -> Json {
        json!({"id": self.id, "name": self.name, "arguments": self.arguments})
    }

    /// Its arguments, understood.
    pub fn parsed_arguments(&self) -> Result<Map<String, Json>> {
        parse_arguments(&self.arguments)
    }
}

#[cfg(test)]
mod fuzz;
#[cfg(test)]
mod tests;
#[cfg(test)]
pub(crate) use fuzz::any_json;
