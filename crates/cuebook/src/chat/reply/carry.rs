//! What a provider wants to see again with an answer, in the requests that follow.
//!
//! Anthropic refuses a turn that calls tools without the thoughts that led to it, and Gemini one whose calls lost their
//! signatures. Nobody else can read either, so they travel with the assistant's message, in the places where the wire
//! formats look for them.

use serde_json::{Value as Json, json};

use super::Answer;
use crate::chat::Message;

/// What a provider wants to see again with an answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Carry {
    /// Anthropic's blocks of thoughts, as they came.
    pub thoughts: Vec<Json>,
    /// What Gemini puts beside its calls, in the order of the calls.
    pub signatures: Vec<Option<String>>,
}

impl Carry {
    /// Notes a block of thoughts, if it is one that can be sent back: one that nobody signed is refused.
    pub(super) fn thought(&mut self, block: &Json) {
        let signed = block["signature"].as_str().is_some_and(|signature| !signature.is_empty());
        if (block["type"] == "thinking" && signed) || block["type"] == "redacted_thinking" {
            self.thoughts.push(block.clone());
        }
    }
}

/// The signature beside a call of Gemini in OpenAI's language.
pub(super) fn signature(call: &Json) -> Option<String> {
    call.pointer("/extra_content/google/thought_signature").and_then(Json::as_str).map(str::to_owned)
}

impl Answer {
    /// Puts what the provider wants to see again into the assistant's message. Its calls must be those of the answer, in
    /// the same order; their ids may have changed.
    pub fn carry_into(&self, message: &mut Message) {
        if !self.carry.thoughts.is_empty() {
            message.metadata.insert("thinking".into(), json!(self.carry.thoughts));
        }
        let calls = message.metadata.get_mut("tool_calls").and_then(Json::as_array_mut);
        for (call, signature) in calls.into_iter().flatten().zip(&self.carry.signatures) {
            if let (Some(signature), Json::Object(call)) = (signature, call) {
                call.insert("extra_content".into(), json!({"google": {"thought_signature": signature}}));
            }
        }
    }
}
