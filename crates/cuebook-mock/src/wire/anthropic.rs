//! Anthropic's messages.

use serde_json::{Value as Json, json};

use super::{Events, deltas, model, value};
use crate::{Reply, Request};

/// What stands in for the signature that real thoughts have.
const SIGNATURE: &str = "bW9jay1zaWduYXR1cmU=";

fn finish(reply: &Reply) -> &str {
    let usual = if reply.calls.is_empty() { "end_turn" } else { "tool_use" };
    reply.finish.as_deref().unwrap_or(usual)
}

fn blocks(reply: &Reply) -> Vec<Json> {
    let mut blocks = Vec::new();
    if !reply.thinking.is_empty() {
        blocks.push(json!({"type": "thinking", "thinking": reply.thinking, "signature": SIGNATURE}));
    }
    if !reply.text.is_empty() {
        blocks.push(json!({"type": "text", "text": reply.text}));
    }
    for call in &reply.calls {
        let input = value(&call.arguments);
        blocks.push(json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input}));
    }
    blocks
}

/// What it read from its cache is not part of its input.
fn input(reply: &Reply) -> Json {
    reply.usage.map_or_else(
        || json!({}),
        |(input, _, cached)| {
            json!({"input_tokens": input.saturating_sub(cached), "cache_read_input_tokens": cached,
                "cache_creation_input_tokens": 0})
        },
    )
}

fn message(request: &Request, reply: &Reply) -> Json {
    json!({"id": "msg_mock", "type": "message", "role": "assistant", "model": model(request, reply),
        "content": blocks(reply), "stop_reason": finish(reply), "stop_sequence": null, "usage": input(reply)})
}

pub(super) fn whole(request: &Request, reply: &Reply) -> Json {
    let mut message = message(request, reply);
    if let Some((_, output, _)) = reply.usage {
        message["usage"]["output_tokens"] = json!(output);
    }
    message
}

pub(super) fn stream(request: &Request, reply: &Reply, events: &mut Events) {
    let mut begun = message(request, reply);
    begun["content"] = json!([]);
    begun["stop_reason"] = Json::Null;
    if reply.usage.is_some() {
        begun["usage"]["output_tokens"] = json!(1);
    }
    events.named(&json!({"type": "message_start", "message": begun}));
    events.named(&json!({"type": "ping"}));
    for (index, block) in blocks(reply).iter().enumerate() {
        let (empty, kind, field, text) = match block["type"].as_str() {
            Some("thinking") => (
                json!({"thinking": "", "signature": ""}),
                "thinking_delta",
                "thinking",
                reply.thinking.clone(),
            ),
            Some("text") => (json!({"text": ""}), "text_delta", "text", reply.text.clone()),
            _ => (json!({"input": {}}), "input_json_delta", "partial_json", block["input"].to_string()),
        };
        let mut head = block.clone();
        for (key, value) in empty.as_object().into_iter().flatten() {
            head[key] = value.clone();
        }
        events.named(&json!({"type": "content_block_start", "index": index, "content_block": head}));
        let mut delta = |delta: Json| {
            events.named(&json!({"type": "content_block_delta", "index": index, "delta": delta}));
        };
        for piece in deltas(&text) {
            delta(json!({"type": kind, field: piece}));
        }
        if kind == "thinking_delta" {
            delta(json!({"type": "signature_delta", "signature": SIGNATURE}));
        }
        events.named(&json!({"type": "content_block_stop", "index": index}));
    }
    let usage = reply.usage.map_or_else(|| json!({}), |(_, output, _)| json!({"output_tokens": output}));
    let delta = json!({"stop_reason": finish(reply), "stop_sequence": null});
    events.named(&json!({"type": "message_delta", "delta": delta, "usage": usage}));
    events.named(&json!({"type": "message_stop"}));
}
