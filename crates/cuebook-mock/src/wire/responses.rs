//! OpenAI's responses.

use serde_json::{Value as Json, json};

use super::{Events, deltas, model};
use crate::{Reply, Request};

fn response(request: &Request, reply: &Reply, output: Vec<Json>) -> Json {
    let mut response = json!({"id": "resp_mock", "object": "response", "created_at": 0,
        "status": "completed", "model": model(request, reply), "output": output});
    if let Some(reason) = &reply.finish {
        response["status"] = json!("incomplete");
        response["incomplete_details"] = json!({"reason": reason});
    }
    if let Some((input, written, cached)) = reply.usage {
        response["usage"] = json!({"input_tokens": input, "output_tokens": written,
            "total_tokens": input + written, "input_tokens_details": {"cached_tokens": cached}});
    }
    response
}

fn items(reply: &Reply) -> Vec<Json> {
    let mut items = Vec::new();
    if !reply.thinking.is_empty() {
        items.push(json!({"type": "reasoning", "id": "rs_mock",
            "summary": [{"type": "summary_text", "text": reply.thinking}]}));
    }
    if !reply.text.is_empty() || reply.calls.is_empty() {
        items.push(json!({"type": "message", "id": "msg_mock", "role": "assistant", "status": "completed",
            "content": [{"type": "output_text", "text": reply.text, "annotations": []}]}));
    }
    for call in &reply.calls {
        items.push(json!({"type": "function_call", "id": format!("fc_{}", call.id), "call_id": call.id,
            "name": call.name, "arguments": call.arguments, "status": "completed"}));
    }
    items
}

pub(super) fn whole(request: &Request, reply: &Reply) -> Json {
    response(request, reply, items(reply))
}

pub(super) fn stream(request: &Request, reply: &Reply, events: &mut Events) {
    let mut begun = response(request, reply, Vec::new());
    begun["status"] = json!("in_progress");
    begun["usage"] = Json::Null;
    events.named(&json!({"type": "response.created", "response": begun}));
    for (index, item) in items(reply).iter().enumerate() {
        let mut head = item.clone();
        for key in ["content", "summary"] {
            if head.get(key).is_some() {
                head[key] = json!([]);
            }
        }
        if head.get("arguments").is_some() {
            head["arguments"] = json!("");
        }
        events.named(&json!({"type": "response.output_item.added", "output_index": index, "item": head}));
        let (kind, text) = match item["type"].as_str() {
            Some("reasoning") => ("response.reasoning_summary_text.delta", reply.thinking.as_str()),
            Some("message") => ("response.output_text.delta", reply.text.as_str()),
            _ => ("response.function_call_arguments.delta", item["arguments"].as_str().unwrap_or_default()),
        };
        for delta in deltas(text) {
            events
                .named(&json!({"type": kind, "item_id": item["id"], "output_index": index, "delta": delta}));
        }
        events.named(&json!({"type": "response.output_item.done", "output_index": index, "item": item}));
    }
    let last = if reply.finish.is_some() { "response.incomplete" } else { "response.completed" };
    events.named(&json!({"type": last, "response": response(request, reply, items(reply))}));
}
