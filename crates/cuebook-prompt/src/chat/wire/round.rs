//! A request that can read its own reply.

use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::Api;
use crate::chat::output::OutputSpec;
use crate::chat::reply::{self, Answer, Reply, Stream};
use crate::error::{Diagnostic, Result};

/// A request for a provider: where it goes, what it says, and how its reply is read.
///
/// The body is sent as JSON with a `POST` to the provider's base address followed by [`path`](Wire::path). Addresses and keys are the
/// program's.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # std::fs::create_dir_all(folder.path().join("prompts")).unwrap();
/// # std::fs::write(folder.path().join("prompts/sort.prompty"), "---\nmodel: {id: gpt-5, provider: openai}\noutputs:\n  label: {kind: string}\n  score: {kind: float}\n---\nuser:\nSort: {{ text }}").unwrap();
/// # let book = cuebook::Book::open(folder.path());
/// #[derive(serde::Deserialize)]
/// struct Sorted {
///     label: String,
///     score: f64,
/// }
///
/// let wire = book.prompt("sort").var("text", "It broke.").render()?.wire()?;
/// assert_eq!((wire.path.as_str(), &wire.body["model"]), ("/chat/completions", &"gpt-5".into()));
/// // The program sends `wire.body` and gets:
/// let reply = serde_json::json!({"choices": [{"message": {"content": "{\"label\": \"bug\", \"score\": 0.9}"}, "finish_reason": "stop"}]});
/// let sorted: Sorted = wire.read_as(&reply)?;
/// assert_eq!((sorted.label.as_str(), sorted.score), ("bug", 0.9));
///
/// // The answer alone, its outputs as a type, and a reader for the same reply as a stream:
/// let answer = wire.read(&reply)?;
/// let sorted: Sorted = wire.typed(&answer)?;
/// let wire = wire.streaming();
/// let _reader = wire.stream();
/// assert_eq!(sorted.label, "bug");
/// # Ok::<(), cuebook::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Wire {
    /// The interface that it is written for.
    pub api: Api,
    /// The path below the provider's base address, such as `/chat/completions`.
    pub path: String,
    /// The body, to be sent as JSON.
    pub body: Json,
    /// What the body does not say although the prompt does, and what the provider may not like.
    pub notes: Vec<Diagnostic>,
    /// Whether the prompt says what an answer is to hold.
    pub(super) has_outputs: bool,
    /// What an answer is to hold, if a section tree says so.
    pub(super) output: Option<OutputSpec>,
}

impl Wire {
    #[doc(hidden)]
    pub fn with_output(mut self, output: Option<OutputSpec>) -> Wire {
        self.has_outputs |= output.is_some();
        self.output = output;
        self
    }

    /// The same request, whose reply comes in pieces; [`Wire::stream`] reads them.
    #[must_use]
    pub fn streaming(mut self) -> Wire {
        if self.api == Api::Gemini {
            self.path = self.path.replace(":generateContent", ":streamGenerateContent?alt=sse");
        } else {
            self.body["stream"] = json!(true);
        }
        if self.api == Api::OpenAiChat && self.body.get("stream_options").is_none() {
            // Without this a stream does not say what it cost.
            self.body["stream_options"] = json!({"include_usage": true});
        }
        self
    }

    /// Reads the provider's whole reply: text, tool calls, or what the prompt's outputs ask for.
    ///
    /// # Errors
    ///
    /// `CB605` for a reply of another form, `CB606` if the provider reports an error.
    pub fn read(&self, reply: &Json) -> Result<Answer> {
        reply::read(self.api, reply, self.has_outputs)
    }

    /// Reads the provider's whole reply into a Rust type.
    ///
    /// # Errors
    ///
    /// Those of [`Wire::read`], and `CB605` or `CB607` if the answer does not fit the type or the prompt's outputs.
    pub fn read_as<T: DeserializeOwned>(&self, reply: &Json) -> Result<T> {
        self.typed(&self.read(reply)?)
    }

    /// A reader for a reply that comes in pieces. The answer of its outcome can be [`typed`](Wire::typed).
    pub fn stream(&self) -> Stream {
        Stream::new(self.api).with_outputs(self.has_outputs)
    }

    /// An answer as a Rust type. What a section tree asks for is read with its rules: defaults are filled in.
    ///
    /// # Errors
    ///
    /// `CB605` or `CB607` if the answer does not fit the type or the prompt's outputs.
    pub fn typed<T: DeserializeOwned>(&self, answer: &Answer) -> Result<T> {
        match (&self.output, &answer.reply) {
            (Some(output), Reply::Structured { raw: text, .. } | Reply::Text(text)) => output.parse_as(text),
            (_, reply) => reply.cast(),
        }
    }
}
