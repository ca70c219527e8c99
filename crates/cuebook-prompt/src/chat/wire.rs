//! Wire formats: messages, tools and options as the body of a provider's request.
//!
//! A body is what the provider really accepts. What it has no place for is refused with the number of the message and a
//! way out; what can be left out without changing what is said is left out with a note. Nothing vanishes in silence.
//!
//! A conversation that the caller passed may hold calls of tools. They travel in the words of OpenAI's chat interface,
//! whatever the provider: `metadata.tool_calls` (`[{"id", "type": "function", "function": {"name", "arguments"}}]`) on
//! the assistant's message, `metadata.tool_call_id` (and `name`) on the tool's. Every format translates them.
//!
//! Only bodies are made here: no address, no header, no key, and nothing is fetched, read or sent.

mod anthropic;
mod cached_tools;
mod calls;
mod chat;
mod draft;
mod embeddings;
mod functions;
mod gemini;
mod images;
mod media;
mod piece;
mod responses;
mod round;
mod schema;
mod system;

use std::borrow::Cow;

use serde_json::Value as Json;

use self::system::{media_to_the_user, things};
use super::Message;
pub use super::api::Api;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use crate::prompt::{Model, Property, Tools};
use draft::{Draft, WrittenBody};
pub use round::Wire;

/// What is to be said to a model.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The model, and how it is to be asked.
    pub model: &'a Model,
    /// The messages, oldest first.
    pub messages: &'a [Message],
    /// What it may call.
    pub tools: &'a Tools,
    /// What it has to answer with; free text if there are none.
    pub outputs: &'a [Property],
}

/// The body of a request as the bytes that are sent.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Payload {
    /// The body as JSON.
    pub bytes: Vec<u8>,
    /// As those of [`Wire`].
    pub notes: Vec<Diagnostic>,
}

/// The fix where no model is named. Cases have another.
pub const NAME_A_MODEL: &str = "add `model: NAME` to its file, or pass --model NAME";

fn is_streamed(request: &Request<'_>) -> bool {
    request.model.options.additional_properties.get("stream") == Some(&Json::Bool(true))
}

/// Writes the body of a request.
pub fn body(api: Api, request: &Request<'_>) -> Result<Wire> {
    let path = api.path(&request.model.id, is_streamed(request));
    let has_outputs = !request.outputs.is_empty();
    say(api, request, |said| {
        let (body, notes) = (said.body.into_json(), said.notes);
        Ok(Wire { api, path, body, notes, has_outputs, output: None })
    })
}

/// Writes the body of a request as the bytes that are sent: those of [`body`], with nothing in between.
pub fn payload(api: Api, request: &Request<'_>) -> Result<Payload> {
    say(api, request, |said| {
        let mut bytes = Vec::with_capacity(FIRST);
        said.body.write(&mut bytes).map_err(|error| {
            let message = format!("the body cannot be written as JSON: {error}");
            let diagnostic = Diagnostic::new(Code::UnsupportedContent, message)
                .hint("this is a bug in Cuebook; please report it with the request");
            Error::new(ErrorKind::Wire, diagnostic)
        })?;
        Ok(Payload { bytes, notes: said.notes })
    })
}

/// As many bytes as a short conversation with a few tools has.
const FIRST: usize = 16 << 10;

fn say<T>(api: Api, request: &Request<'_>, finish: impl FnOnce(WrittenBody<'_>) -> Result<T>) -> Result<T> {
    let (messages, moved) = match api {
        // These take text from any role; they report themselves what else they refuse.
        Api::OpenAiEmbeddings | Api::OpenAiImages => (Cow::Borrowed(request.messages), Vec::new()),
        _ => media_to_the_user(request.messages),
    };
    let request = &Request { messages: &messages, ..*request };
    let draft = Draft::new(api, request);
    // Gemini's body does not name the model, but a request needs one.
    if request.model.id.trim().is_empty() {
        let message = format!("the prompt names no model, but {} needs one", api.title());
        return Err(Error::new(
            ErrorKind::Wire,
            Diagnostic::new(Code::UnsupportedContent, message).hint(
                Hint::command_line(NAME_A_MODEL)
                    .for_programs("name one in the prompt, or with `model` in the context"),
            ),
        ));
    }
    let mut draft = draft;
    if !moved.is_empty() {
        draft.warn(
            format!(
                "{} of a system message {} to the user message",
                things(&moved),
                if moved.len() == 1 { "is moved" } else { "are moved" }
            ),
            "system messages hold only text; write it below `user:` to choose its place",
        );
    }
    finish(match api {
        Api::OpenAiChat => chat::body(draft),
        Api::OpenAiResponses => responses::body(draft),
        Api::OpenAiEmbeddings => embeddings::body(draft),
        Api::OpenAiImages => images::body(draft),
        Api::Anthropic => anthropic::body(draft),
        Api::Gemini => gemini::body(draft),
    }?)
}
