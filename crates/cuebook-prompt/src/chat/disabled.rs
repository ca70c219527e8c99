//! A program without the feature `chat` writes no request bodies, and says so.

use serde_json::Value as Json;

use super::Message;
pub use super::api::Api;
use super::output::OutputSpec;
use crate::error::{Diagnostic, Error, ErrorKind, Result};
use crate::prompt::{Model, Property, Tools};

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

/// A request for a provider. Reading its reply needs the feature `chat`.
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
}

impl Wire {
    #[doc(hidden)]
    pub fn with_output(self, _output: Option<OutputSpec>) -> Wire {
        self
    }
}

/// Refuses to write the body of a request.
///
/// # Errors
///
/// Always.
pub fn body(_api: Api, _request: &Request<'_>) -> Result<Wire> {
    Err(missing())
}

/// Refuses to write the body of a request.
///
/// # Errors
///
/// Always.
pub fn payload(_api: Api, _request: &Request<'_>) -> Result<Payload> {
    Err(missing())
}

fn missing() -> Error {
    Error::missing_feature(ErrorKind::Wire, "write request bodies", "chat")
}
