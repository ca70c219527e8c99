//! The interfaces: a reply in the words of each.

mod anthropic;
mod chat;
mod gemini;
mod responses;

use serde_json::{Value as Json, json};

use crate::api::Api;
use crate::{Reply, Request};

/// A whole reply.
pub(crate) fn whole(api: Api, request: &Request, reply: &Reply) -> Json {
    match api {
        Api::OpenAiChat => chat::whole(request, reply),
        Api::OpenAiResponses => responses::whole(request, reply),
        Api::Anthropic => anthropic::whole(request, reply),
        Api::Gemini => gemini::whole(request, reply),
    }
}

/// A reply as events.
pub(crate) fn stream(api: Api, request: &Request, reply: &Reply) -> Vec<u8> {
    let mut events = Events::default();
    match api {
        Api::OpenAiChat => chat::stream(request, reply, &mut events),
        Api::OpenAiResponses => responses::stream(request, reply, &mut events),
        Api::Anthropic => anthropic::stream(request, reply, &mut events),
        Api::Gemini => gemini::stream(request, reply, &mut events),
    }
    events.bytes
}

/// Server-sent events.
#[derive(Default)]
struct Events {
    bytes: Vec<u8>,
}

impl Events {
    fn data(&mut self, data: &Json) {
        self.line(&data.to_string());
    }

    fn line(&mut self, data: &str) {
        self.bytes.extend_from_slice(format!("data: {data}\n\n").as_bytes());
    }

    /// An event whose kind stands in front of it, as its data says it too.
    fn named(&mut self, data: &Json) {
        let kind = data["type"].as_str().unwrap_or_default();
        self.bytes.extend_from_slice(format!("event: {kind}\n").as_bytes());
        self.data(data);
    }
}

/// The model that answers.
fn model<'a>(request: &'a Request, reply: &'a Reply) -> &'a str {
    reply.model.as_deref().or_else(|| request.model()).unwrap_or("mock-model")
}

/// A text in the pieces of a stream: a few characters each.
fn deltas(text: &str) -> Vec<String> {
    // A text of a test is short and comes in many pieces; a huge one must not become a million events.
    let size = (text.chars().count() / 200).max(4);
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(size).map(|piece| piece.iter().collect()).collect()
}

/// Arguments as a value, for interfaces that do not carry them as text.
fn value(arguments: &str) -> Json {
    serde_json::from_str(arguments).unwrap_or_else(|_| json!(arguments))
}
