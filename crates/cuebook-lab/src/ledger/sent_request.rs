//! What a request says to a model, piece by piece and in the order in which a provider reads it, each piece with the way
//! back to the rendered text.

use std::ops::Range;

use serde_json::Value as Json;

use crate::chat::{Message, Part, Role};
use crate::error::Result;
use crate::prompt::Rich;
use crate::render::{Provider, Rendered, RequestTool, request_output, request_tools};

/// A request: tools, what the answer is to hold, then messages.
#[derive(Debug, Clone)]
pub(crate) struct SentRequest {
    pub(crate) tools: Vec<RequestTool>,
    /// The schema of the answer, as JSON.
    pub(crate) output: Option<String>,
    /// Whether the provider cannot take the schema of the answer, so that it is unknown what is sent.
    pub(crate) output_refused: bool,
    pub(crate) messages: Vec<SentMessage>,
}

/// A message.
#[derive(Debug, Clone)]
pub(crate) struct SentMessage {
    /// Its place among the messages of the prompt, from 1.
    pub(crate) number: usize,
    pub(crate) role: Role,
    pub(crate) parts: Vec<SentPart>,
}

/// A part of a message.
#[derive(Debug, Clone)]
pub(crate) struct SentPart {
    /// The text; of a picture and the like, where it is to be had.
    pub(crate) text: String,
    pub(crate) from: PartOrigin,
}

/// Where a part stands in the rendered text.
#[derive(Debug, Clone)]
pub(crate) enum PartOrigin {
    /// There, in these pieces.
    Text(Vec<Range<usize>>),
    /// A conversation that the caller passed.
    Conversation(Option<String>),
    /// A picture, a sound or a document: its kind and its input. It has no text.
    Media(&'static str, Option<String>),
}

impl SentRequest {
    /// What a render says to a model of this provider.
    pub(crate) fn of(rendered: &Rendered, provider: Provider) -> Result<SentRequest> {
        let tools = request_tools(rendered, provider)?;
        let output = request_output(rendered, provider);
        let says_more = rendered.scope().context().message.is_some();
        let mut messages = Vec::new();
        let (said, _) = rendered.messages_for(provider.api())?;
        let last = said.len().saturating_sub(1);
        for (index, message) in said.into_iter().enumerate() {
            let mut parts: Vec<SentPart> = Vec::new();
            for part in &message.parts {
                parts.push(match part {
                    Part::Text { value, ranges } => {
                        let from = match ranges.is_empty() && !value.is_empty() {
                            true if says_more && index == last => PartOrigin::Conversation(None),
                            true => PartOrigin::Conversation(conversation(rendered)),
                            false => PartOrigin::Text(ranges.clone()),
                        };
                        SentPart { text: value.clone(), from }
                    }
                    Part::Image(media) | Part::Audio(media) | Part::File(media) => {
                        let input = input_of(rendered, &media.source);
                        SentPart { text: media.source.clone(), from: PartOrigin::Media(part.kind(), input) }
                    }
                });
            }
            parts.extend(calls(rendered, &message));
            messages.push(SentMessage { number: index + 1, role: message.role, parts });
        }
        if provider.reads_the_system_first() {
            messages.sort_by_key(|message| !matches!(message.role, Role::System | Role::Developer));
        }
        let (output, output_refused) = (output.as_ref().ok().cloned().flatten(), output.is_err());
        Ok(SentRequest { tools, output, output_refused, messages })
    }

    /// The schema of the answer; nothing, if it may be any text.
    pub(crate) fn output_text(&self) -> &str {
        self.output.as_deref().unwrap_or_default()
    }
}

/// What an assistant called in a conversation is read by the model as well.
fn calls(rendered: &Rendered, message: &Message) -> Option<SentPart> {
    let calls = message.metadata.get("tool_calls")?;
    Some(SentPart { text: calls.to_string(), from: PartOrigin::Conversation(conversation(rendered)) })
}

/// The conversation that is meant, if there is only one.
fn conversation(rendered: &Rendered) -> Option<String> {
    let mut given = rendered
        .scope()
        .rich_inputs()
        .filter(|input| input.kind == Rich::Thread && input.value.is_some())
        .map(|input| input.name.clone());
    let first = given.next();
    first.filter(|_| given.next().is_none())
}

/// The input that holds a picture, a sound or a document.
fn input_of(rendered: &Rendered, source: &str) -> Option<String> {
    let is_it = |value: &Json| value.as_str() == Some(source) || value["source"].as_str() == Some(source);
    let mut inputs = rendered.scope().rich_inputs();
    inputs.find(|input| input.value.as_ref().is_some_and(is_it)).map(|input| input.name.clone())
}
