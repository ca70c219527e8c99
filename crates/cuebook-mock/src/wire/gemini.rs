//! Google's `generateContent`.

use serde_json::{Value as Json, json};

use super::{Events, deltas, model, value};
use crate::{Reply, Request};

/// What stands in for the signature that the first call of a real turn has.
const SIGNATURE: &str = "bW9jay1zaWduYXR1cmU=";

fn calls(reply: &Reply) -> Vec<Json> {
    let part = |(index, call): (usize, &crate::Call)| {
        let function = json!({"id": call.id, "name": call.name, "args": value(&call.arguments)});
        let mut part = json!({"functionCall": function});
        if index == 0 {
            part["thoughtSignature"] = json!(SIGNATURE);
        }
        part
    };
    reply.calls.iter().enumerate().map(part).collect()
}

fn response(request: &Request, reply: &Reply, parts: Vec<Json>, finish: bool) -> Json {
    let mut candidate = json!({"index": 0, "content": {"role": "model", "parts": parts}});
    if finish {
        candidate["finishReason"] = json!(reply.finish.as_deref().unwrap_or("STOP"));
    }
    let mut response = json!({"responseId": "mock", "modelVersion": model(request, reply),
        "candidates": [candidate]});
    if let Some((input, output, cached)) = reply.usage.filter(|_| finish) {
        response["usageMetadata"] = json!({"promptTokenCount": input, "candidatesTokenCount": output,
            "totalTokenCount": input + output, "cachedContentTokenCount": cached});
    }
    response
}

pub(super) fn whole(request: &Request, reply: &Reply) -> Json {
    let mut parts = Vec::new();
    if !reply.thinking.is_empty() {
        parts.push(json!({"text": reply.thinking, "thought": true}));
    }
    if !reply.text.is_empty() {
        parts.push(json!({"text": reply.text}));
    }
    parts.extend(calls(reply));
    response(request, reply, parts, true)
}

pub(super) fn stream(request: &Request, reply: &Reply, events: &mut Events) {
    for delta in deltas(&reply.thinking) {
        let part = json!({"text": delta, "thought": true});
        events.data(&response(request, reply, vec![part], false));
    }
    for delta in deltas(&reply.text) {
        events.data(&response(request, reply, vec![json!({"text": delta})], false));
    }
    for part in calls(reply) {
        events.data(&response(request, reply, vec![part], false));
    }
    events.data(&response(request, reply, Vec::new(), true));
}
