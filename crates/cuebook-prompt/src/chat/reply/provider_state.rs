//! What a provider wants to see again with an answer, in the requests that follow.
//!
//! Anthropic refuses a turn that calls tools without the thoughts that led to it, and Gemini one whose calls lost their
//! signatures; a model behind OpenAI's responses has forgotten what it thought, unless it is handed its encrypted thoughts again.
//! No other code can read them, so they travel with the assistant's message, in the places where the wire formats look for them.

use serde_json::{Value as Json, json};

use super::Answer;
use crate::chat::Message;

/// The attribute of a message that holds what OpenAI's responses thought.
pub(crate) const REASONING: &str = "responses_reasoning";

/// The attribute of a message that holds all that Anthropic said in a turn that it paused.
pub(crate) const PAUSED: &str = "anthropic_paused";

/// What a provider wants to see again with an answer.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct ProviderState {
    /// Anthropic's blocks of thoughts, as they came.
    pub thoughts: Vec<Json>,
    /// What OpenAI's responses thought, encrypted: the items, as they came.
    pub reasoning: Vec<Json>,
    /// What Gemini puts beside its calls, in the order of the calls.
    pub signatures: Vec<Option<String>>,
    /// All that Anthropic said in a turn that it paused, as it came: it goes on when it sees that again.
    pub paused: Vec<Json>,
}

impl ProviderState {
    /// Notes thoughts, if they can be sent back: those without a signature or seal are refused.
    pub(super) fn thought(&mut self, block: &Json) {
        let signed = block["signature"].as_str().is_some_and(|signature| !signature.is_empty());
        if (block["type"] == "thinking" && signed) || block["type"] == "redacted_thinking" {
            self.thoughts.push(block.clone());
        }
        // Without it an item is only a name for what the provider may keep, or may not.
        let sealed = block["encrypted_content"].as_str().is_some_and(|content| !content.is_empty());
        if block["type"] == "reasoning" && sealed {
            self.reasoning.push(block.clone());
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
        if !self.provider_state.thoughts.is_empty() {
            message.metadata.insert("thinking".into(), json!(self.provider_state.thoughts));
        }
        if !self.provider_state.reasoning.is_empty() {
            message.metadata.insert(REASONING.into(), json!(self.provider_state.reasoning));
        }
        if !self.provider_state.paused.is_empty() {
            message.metadata.insert(PAUSED.into(), json!(self.provider_state.paused));
        }
        let calls = message.metadata.get_mut("tool_calls").and_then(Json::as_array_mut);
        for (call, signature) in calls.into_iter().flatten().zip(&self.provider_state.signatures) {
            if let (Some(signature), Json::Object(call)) = (signature, call) {
                call.insert("extra_content".into(), json!({"google": {"thought_signature": signature}}));
            }
        }
    }
}

/// Whether a message is a turn that the model has paused: it needs no answer, it only has to be sent again.
///
/// ```
/// use cuebook::chat::reply::{is_paused, read};
/// use cuebook::chat::wire::Api;
/// use cuebook::chat::{Message, Role};
/// use serde_json::json;
///
/// let said = json!({"content": [{"type": "text", "text": "I am looking."}], "stop_reason": "pause_turn"});
/// let answer = read(Api::Anthropic, &said, false).unwrap();
/// let mut message = Message::text(Role::Assistant, "I am looking.");
/// answer.carry_into(&mut message);
/// assert!(is_paused(&message));
/// ```
pub fn is_paused(message: &Message) -> bool {
    message.metadata.contains_key(PAUSED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chat::Role;
    use crate::chat::reply::{Reply, Stream, read};
    use crate::chat::wire::{self, Api};
    use crate::prompt::{Model, Tools};

    /// What is sent to OpenAI when an answer is followed by what its call gave.
    fn sent(answer: &Answer) -> Json {
        let Reply::ToolCalls { calls, .. } = &answer.reply else { panic!("{answer:?}") };
        let mut said = Message::text(Role::Assistant, "");
        let call = &calls[0];
        said.metadata.insert(
            "tool_calls".into(),
            json!([{"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}]),
        );
        answer.carry_into(&mut said);
        // The log of a thread keeps messages as JSON.
        let said = Message::from_json(&said.to_json()).unwrap();
        let mut reported = Message::text(Role::Tool, "12");
        reported.metadata.insert("tool_call_id".into(), json!(call.id));
        let messages = [Message::text(Role::User, "How warm is it?"), said, reported];
        let model = Model { id: "m".into(), ..Model::default() };
        let body = |api| {
            let request =
                wire::Request { model: &model, messages: &messages, tools: &Tools::default(), outputs: &[] };
            serde_json::from_slice::<Json>(&wire::payload(api, &request).unwrap().bytes).unwrap()
        };
        for other in [Api::OpenAiChat, Api::Anthropic, Api::Gemini] {
            assert!(!body(other).to_string().contains("sealed"), "nobody else can read it");
        }
        body(Api::OpenAiResponses)["input"].clone()
    }

    #[test]
    fn openai_is_handed_its_encrypted_thoughts_again() {
        let thought = json!({"type": "reasoning", "id": "rs_1", "summary": [], "content": null,
            "encrypted_content": "sealed"});
        let open = json!({"type": "reasoning", "id": "rs_2", "summary": []});
        let call = json!({"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "look",
            "arguments": "{\"at\":1}"});
        let response = json!({"status": "completed", "output": [thought, open, call]});
        let whole = read(Api::OpenAiResponses, &response, false).unwrap();
        let mut stream = Stream::new(Api::OpenAiResponses);
        for (index, item) in [&thought, &open, &call].into_iter().enumerate() {
            for kind in ["response.output_item.added", "response.output_item.done"] {
                stream.feed(&json!({"type": kind, "output_index": index, "item": item}));
            }
        }
        stream.feed(&json!({"type": "response.completed", "response": {"status": "completed"}}));
        for answer in [whole, stream.finish().answer.unwrap()] {
            let input = sent(&answer);
            assert_eq!(
                input[1],
                json!({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "sealed"}),
                "{input:#}"
            );
            assert_eq!((&input[2]["type"], &input[2]["call_id"]), (&json!("function_call"), &json!("c1")));
            assert_eq!(input.as_array().unwrap().len(), 4, "{input:#}");
        }
    }
}
