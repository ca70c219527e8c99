//! The events of Anthropic's messages.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::super::anthropic::refusal;
use super::super::compact;
use super::super::reply_value::ReplyValue;
use super::{Chunk, Stream};
use crate::error::Result;

pub(super) fn feed(stream: &mut Stream, event: &ReplyValue<'_, '_>, chunks: &mut Vec<Chunk>) -> Result<()> {
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
                Some("text") => {
                    stream.blocks.texts.insert(index(event), stream.text.len());
                    chunks.extend(stream.say(block.text_of("text")?.unwrap_or_default()));
                }
                Some("thinking") => {
                    chunks.extend(stream.think(block.text_of("thinking")?.unwrap_or_default()))
                }
                Some("tool_use") => {
                    let draft = stream.calls.entry(index(event)).or_default();
                    draft.named(block.text_of("id")?, block.text_of("name")?);
                    // A call without arguments has no further pieces: what stands here is all.
                    draft.whole = block.get("input").map(|input| compact(input.value));
                }
                Some("redacted_thinking") => {}
                // What the provider's own tools do.
                _ => drop(stream.blocks.own.insert(index(event), (block.value.clone(), String::new()))),
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
                    } else if let Some((_, input)) = stream.blocks.own.get_mut(&index(event)) {
                        input.push_str(piece);
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

/// The blocks of an answer beside its thoughts and calls, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    /// Where each text begins in all of them together.
    texts: BTreeMap<u64, usize>,
    /// What the provider's own tools did, and got as far as it came in pieces.
    own: BTreeMap<u64, (Json, String)>,
}

impl Blocks {
    /// All that was said, in its order, as it has to be sent again.
    pub(super) fn content(&self, text: &str, thoughts: &BTreeMap<u64, Json>) -> Vec<Json> {
        let mut blocks = thoughts.clone();
        let ends = self.texts.values().skip(1).copied().chain([text.len()]);
        for ((number, begin), end) in self.texts.iter().zip(ends) {
            let said = text.get(*begin..end).unwrap_or_default();
            if !said.is_empty() {
                blocks.insert(*number, json!({"type": "text", "text": said}));
            }
        }
        for (number, (block, input)) in &self.own {
            let mut block = block.clone();
            if let Ok(input) = serde_json::from_str::<Json>(input) {
                block["input"] = input;
            }
            blocks.insert(*number, block);
        }
        blocks.into_values().collect()
    }
}

/// Adds what an event brings to a block of thoughts.
fn grow(block: &mut Json, delta: &Json) {
    for key in ["thinking", "signature"] {
        if let (Some(more), Some(block)) = (delta.get(key).and_then(Json::as_str), block.as_object_mut()) {
            match block.get_mut(key) {
                Some(Json::String(whole)) => whole.push_str(more),
                _ => drop(block.insert(key.to_owned(), more.into())),
            }
        }
    }
}

fn index(event: &ReplyValue<'_, '_>) -> u64 {
    event.value.get("index").and_then(Json::as_u64).unwrap_or(0)
}
