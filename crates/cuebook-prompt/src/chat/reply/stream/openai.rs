//! The pieces of OpenAI's chat completions.

use serde_json::Value as Json;

use super::super::openai::{WITHHELD, content, thinking};
use super::super::reply_value::ReplyValue;
use super::{Chunk, Stream};
use crate::error::Result;

pub(super) fn feed(stream: &mut Stream, event: &ReplyValue<'_, '_>, chunks: &mut Vec<Chunk>) -> Result<()> {
    stream.identify(event.note("model"), event.note("id"));
    // A piece may have no choices: the one with the usage, and the first one of Azure.
    if let Some(choices) = event.get("choices") {
        for choice in choices.items()? {
            choice.object()?;
            // Further answers, if several were requested.
            if choice.value.get("index").and_then(Json::as_u64).unwrap_or(0) != 0 {
                continue;
            }
            if let Some(delta) = choice.get("delta") {
                take(stream, &delta, chunks)?;
            }
            if let Some(reason) = choice.note("finish_reason") {
                stream.ended = true;
                if reason == "content_filter" && stream.refusal.is_empty() {
                    stream.refusal.push_str(WITHHELD);
                }
                stream.finish = Some(reason);
            }
        }
    }
    chunks.extend(stream.count(event.value.get("usage")));
    Ok(())
}

fn take(stream: &mut Stream, delta: &ReplyValue<'_, '_>, chunks: &mut Vec<Chunk>) -> Result<()> {
    delta.object()?;
    chunks.extend(thinking(delta.value).and_then(|text| stream.think(&text)));
    let (text, refusal) = content(delta)?;
    chunks.extend(stream.say(&text));
    stream.refusal.push_str(delta.text_of("refusal")?.or(refusal.as_deref()).unwrap_or_default());
    let Some(calls) = delta.get("tool_calls") else { return Ok(()) };
    for call in calls.items()? {
        call.object()?;
        let id = call.text_of("id")?;
        let last = stream.calls.last_key_value().map(|(index, draft)| (*index, draft.id.as_str()));
        let index = match (call.value.get("index").and_then(Json::as_u64), last) {
            (Some(index), _) => index,
            // Some gateways leave the number out: another id is then another call.
            (None, Some((last, known))) if id.is_none_or(|id| id.is_empty() || id == known) => last,
            (None, Some((last, _))) => last.saturating_add(1),
            (None, None) => 0,
        };
        let draft = stream.calls.entry(index).or_default();
        draft.named(id, None);
        if let Some(signature) = super::super::provider_state::signature(call.value) {
            draft.signature = Some(signature);
        }
        for (tool, arguments) in [("function", "arguments"), ("custom", "input")] {
            let Some(tool) = call.get(tool) else { continue };
            draft.named(None, tool.text_of("name")?);
            draft.arguments.push_str(tool.text_of(arguments)?.unwrap_or_default());
        }
    }
    Ok(())
}
