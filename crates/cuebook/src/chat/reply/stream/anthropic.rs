//! The events of Anthropic's messages.

use serde_json::Value as Json;

use super::super::anthropic::refusal;
use super::super::compact;
use super::super::look::Look;
use super::{Chunk, Stream};
use crate::error::Result;

pub(super) fn feed(stream: &mut Stream, event: &Look<'_, '_>, chunks: &mut Vec<Chunk>) -> Result<()> {
    match event.need("type")?.text()? {
        "message_start" => {
            let message = event.need("message")?;
            stream.identify(message.note("model"), message.note("id"));
            chunks.extend(stream.count(message.value.get("usage")));
        }
        "content_block_start" => {
            let block = event.need("content_block")?;
            if let Some("thinking" | "redacted_thinking") = block.value.get("type").and_then(Json::as_str) {
                stream.thoughts.insert(index(event), block.value.clone());
            }
            match block.value.get("type").and_then(Json::as_str) {
                Some("text") => chunks.extend(stream.say(block.text_of("text")?.unwrap_or_default())),
                Some("thinking") => {
                    chunks.extend(stream.think(block.text_of("thinking")?.unwrap_or_default()))
                }
                Some("tool_use") => {
                    let draft = stream.calls.entry(index(event)).or_default();
                    draft.named(block.text_of("id")?, block.text_of("name")?);
                    // A call without arguments has no further pieces: what stands here is all.
                    draft.whole = block.get("input").map(|input| compact(input.value));
                }
                _ => {}
            }
        }
        "content_block_delta" => {
            let delta = event.need("delta")?;
            if let Some(block) = stream.thoughts.get_mut(&index(event)) {
                grow(block, delta.value);
            }
            match delta.value.get("type").and_then(Json::as_str) {
                Some("text_delta") => chunks.extend(stream.say(delta.text_of("text")?.unwrap_or_default())),
                Some("thinking_delta") => {
                    chunks.extend(stream.think(delta.text_of("thinking")?.unwrap_or_default()));
                }
                Some("input_json_delta") => {
                    let piece = delta.text_of("partial_json")?.unwrap_or_default();
                    // The provider's own tools have arguments too; those calls are not ours.
                    if let Some(draft) = stream.calls.get_mut(&index(event)).filter(|_| !piece.is_empty()) {
                        draft.whole = None;
                        draft.arguments.push_str(piece);
                    }
                }
                _ => {}
            }
        }
        "message_delta" => {
            let delta = event.need("delta")?;
            if let Some(reason) = delta.note("stop_reason") {
                if reason == "refusal" {
                    stream.refusal = refusal(delta.value);
                }
                stream.finish = Some(reason);
            }
            chunks.extend(stream.count(event.value.get("usage")));
        }
        "message_stop" => stream.ended = true,
        // Blocks that end, signs of life, and events that are yet to be invented.
        _ => {}
    }
    Ok(())
}

/// Adds what an event brings to a block of thoughts.
fn grow(block: &mut Json, delta: &Json) {
    for key in ["thinking", "signature"] {
        if let (Some(more), Some(block)) = (delta.get(key).and_then(Json::as_str), block.as_object_mut()) {
            let before = block.get(key).and_then(Json::as_str).unwrap_or_default();
            let whole = format!("{before}{more}");
            block.insert(key.to_owned(), whole.into());
        }
    }
}

fn index(event: &Look<'_, '_>) -> u64 {
    event.value.get("index").and_then(Json::as_u64).unwrap_or(0)
}
