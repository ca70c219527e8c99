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
mod calls;
mod chat;
mod draft;
mod embeddings;
mod functions;
mod gemini;
mod images;
mod kept;
mod media;
mod piece;
mod responses;
mod round;
mod schema;
mod system;

use std::borrow::Cow;
use std::fmt;

use serde_json::Value as Json;

use self::system::{media_to_the_user, things};
use super::Message;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, did_you_mean, nearest};
use crate::prompt::{Model, Property, Tools};
use draft::{Draft, Said};
pub(crate) use media::guess as media_type_of;
pub use round::Wire;

/// An interface of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Api {
    /// OpenAI's chat completions, which many others speak too.
    OpenAiChat,
    /// OpenAI's responses.
    OpenAiResponses,
    /// OpenAI's embeddings.
    OpenAiEmbeddings,
    /// OpenAI's pictures.
    OpenAiImages,
    /// Anthropic's messages.
    Anthropic,
    /// Google's `generateContent`. Its address names the model, so the body does not.
    Gemini,
}

impl Api {
    /// Every interface.
    pub const ALL: [Api; 6] = [
        Api::OpenAiChat,
        Api::OpenAiResponses,
        Api::OpenAiEmbeddings,
        Api::OpenAiImages,
        Api::Anthropic,
        Api::Gemini,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Api::OpenAiChat => "openai-chat",
            Api::OpenAiResponses => "openai-responses",
            Api::OpenAiEmbeddings => "openai-embeddings",
            Api::OpenAiImages => "openai-images",
            Api::Anthropic => "anthropic",
            Api::Gemini => "gemini",
        }
    }

    /// The interface that is meant by a name of [`Api::ALL`], or by a model's provider and its `apiType`.
    ///
    /// ```
    /// use cuebook::chat::wire::Api;
    ///
    /// assert_eq!(Api::choose("openai", Some("responses"))?, Api::OpenAiResponses);
    /// assert_eq!(Api::choose("anthropic", None)?, Api::Anthropic);
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    pub fn choose(name: &str, api_type: Option<&str>) -> Result<Api> {
        let wanted = name.trim().to_lowercase();
        let api_type = api_type.map(|api_type| api_type.trim().to_lowercase()).unwrap_or_default();
        if let Some(api) = Api::ALL.into_iter().find(|api| api.as_str() == wanted && !api.is_provider()) {
            return Ok(api);
        }
        let of_openai = match api_type.as_str() {
            "" | "chat" => Some(Api::OpenAiChat),
            "responses" => Some(Api::OpenAiResponses),
            "embedding" | "embeddings" => Some(Api::OpenAiEmbeddings),
            "image" | "images" => Some(Api::OpenAiImages),
            _ => None,
        };
        let (chosen, types): (_, &[&str]) = match wanted.as_str() {
            "openai" | "azure" | "foundry" => (of_openai, &["chat", "responses", "embedding", "image"]),
            "anthropic" | "google" | "gemini" => {
                let api = if wanted == "anthropic" { Api::Anthropic } else { Api::Gemini };
                let talks = matches!(of_openai, Some(Api::OpenAiChat | Api::OpenAiResponses));
                (talks.then_some(api), &["chat"])
            }
            _ => return Err(unknown_name(name)),
        };
        chosen.ok_or_else(|| {
            let message = format!("`{name}` has no API of the type `{api_type}`");
            let near = did_you_mean(&nearest(&api_type, types.iter().copied()));
            let hint = near.unwrap_or_else(|| format!("use one of: {}", types.join(", ")));
            Error::new(ErrorKind::Invoker, Diagnostic::new(Code::UnknownWire, message).hint(hint))
        })
    }

    /// The path of a request below the provider's base address, such as `https://api.openai.com/v1`.
    ///
    /// ```
    /// use cuebook::chat::wire::Api;
    ///
    /// assert_eq!(Api::OpenAiChat.path("gpt-5", true), "/chat/completions");
    /// assert_eq!(Api::Gemini.path("gemini-2.5-pro", false), "/models/gemini-2.5-pro:generateContent");
    /// ```
    pub fn path(self, model: &str, stream: bool) -> String {
        match self {
            Api::OpenAiChat => "/chat/completions".to_owned(),
            Api::OpenAiResponses => "/responses".to_owned(),
            Api::OpenAiEmbeddings => "/embeddings".to_owned(),
            Api::OpenAiImages => "/images/generations".to_owned(),
            Api::Anthropic => "/messages".to_owned(),
            Api::Gemini => {
                let call = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
                format!("/models/{}:{call}", escaped(model))
            }
        }
    }

    /// Whether its name is the provider's, so that the type of the interface still matters.
    fn is_provider(self) -> bool {
        matches!(self, Api::Anthropic | Api::Gemini)
    }

    /// Whether it refuses what has nothing but messages of the system.
    #[doc(hidden)]
    pub fn needs_a_question(self) -> bool {
        matches!(self, Api::OpenAiResponses | Api::Anthropic | Api::Gemini)
    }

    /// What people call it.
    #[doc(hidden)]
    pub fn title(self) -> &'static str {
        match self {
            Api::OpenAiChat => "OpenAI's chat API",
            Api::OpenAiResponses => "OpenAI's responses API",
            Api::OpenAiEmbeddings => "OpenAI's embeddings API",
            Api::OpenAiImages => "OpenAI's image API",
            Api::Anthropic => "Anthropic",
            Api::Gemini => "Gemini",
        }
    }
}

impl fmt::Display for Api {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A model's name as one segment of a path.
fn escaped(model: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    model
        .bytes()
        .map(|byte| if plain(&byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

fn unknown_name(name: &str) -> Error {
    let formats = Api::ALL.map(Api::as_str);
    let providers = ["openai", "azure", "foundry", "google"];
    let message = format!("unknown provider or wire format `{name}`");
    let near = nearest(name, formats.into_iter().chain(providers));
    let hint = did_you_mean(&near).unwrap_or_else(|| {
        "use `openai`, `anthropic` or `gemini`; for a server with OpenAI's interface, use `openai`".into()
    });
    let diagnostic = Diagnostic::new(Code::UnknownWire, message).hint(hint);
    Error::new(ErrorKind::Invoker, diagnostic).with("name", name).with("known", formats).with("nearest", near)
}

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

fn say<T>(api: Api, request: &Request<'_>, finish: impl FnOnce(Said<'_>) -> Result<T>) -> Result<T> {
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
            Diagnostic::new(Code::UnsupportedContent, message)
                .hint(NAME_A_MODEL)
                .advice_for_programs("name one in the prompt, or with `model` in the context"),
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

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_model_is_one_segment_of_a_path() {
        assert_eq!(escaped("gemini-2.5-pro"), "gemini-2.5-pro");
        assert_eq!(escaped("a/../b?c"), "a%2F..%2Fb%3Fc");
    }
}
