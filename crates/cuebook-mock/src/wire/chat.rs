//! OpenAI's chat completions.

use serde_json::{Value as Json, json};

use super::{Events, deltas, model};
use crate::{Reply, Request};

fn finish(reply: &Reply) -> &str {
    let usual = if reply.calls.is_empty() { "stop" } else { "tool_calls" };
    reply.finish.as_deref().unwrap_or(usual)
}

fn usage(reply: &Reply) -> Json {
    reply.usage.map_or(Json::Null, |(input, output, cached)| {
        json!({"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output,
            "prompt_tokens_details": {"cached_tokens": cached}})
    })
}

pub(super) fn whole(request: &Request, reply: &Reply) -> Json {
    let mut message = json!({"role": "assistant", "content": reply.text});
    if !reply.thinking.is_empty() {
        message["reasoning_content"] = json!(reply.thinking);
    }
    if !reply.calls.is_empty() {
        let call = |call: &crate::Call| {
            json!({"id": call.id, "type": "function",
                "function": {"name": call.name, "arguments": call.arguments}})
        };
        message["tool_calls"] = reply.calls.iter().map(call).collect();
        if reply.text.is_empty() {
            message["content"] = Json::Null;
        }
    }
    json!({"id": "chatcmpl-mock", "object": "chat.completion", "created": 0, "model": model(request, reply),
        "choices": [{"index": 0, "message": message, "finish_reason": finish(reply)}], "usage": usage(reply)})
}

pub(super) fn stream(request: &Request, reply: &Reply, events: &mut Events) {
    let mut piece = |delta: Json, finish: Json| {
        events.data(&json!({"id": "chatcmpl-mock", "object": "chat.completion.chunk", "created": 0,
            "model": model(request, reply),
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}));
    };
    piece(json!({"role": "assistant", "content": ""}), Json::Null);
    for delta in deltas(&reply.thinking) {
        piece(json!({"reasoning_content": delta}), Json::Null);
    }
    for delta in deltas(&reply.text) {
        piece(json!({"content": delta}), Json::Null);
    }
    for (index, call) in reply.calls.iter().enumerate() {
        let function = json!({"name": call.name, "arguments": ""});
        let head = json!({"index": index, "id": call.id, "type": "function", "function": function});
        piece(json!({"tool_calls": [head]}), Json::Null);
        for delta in deltas(&call.arguments) {
            let part = json!({"index": index, "function": {"arguments": delta}});
            piece(json!({"tool_calls": [part]}), Json::Null);
        }
    }
    piece(json!({}), json!(finish(reply)));
    // As the real one: only if it was asked for.
    if request.body["stream_options"]["include_usage"] == true {
        events.data(&json!({"id": "chatcmpl-mock", "object": "chat.completion.chunk",
            "model": model(request, reply), "choices": [], "usage": usage(reply)}));
    }
    events.line("[DONE]");
}
