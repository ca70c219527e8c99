//! The events of OpenAI's responses.

use serde_json::Value as Json;

use super::super::openai::WITHHELD;
use super::super::reply_value::{ReplyValue, failed};
use super::super::responses::{call, finish};
use super::super::{failure, provider_error};
use super::{Chunk, Stream};
use crate::error::Result;

pub(super) fn feed(stream: &mut Stream, event: &ReplyValue<'_, '_>, chunks: &mut Vec<Chunk>) -> Result<()> {
    let delta =
        |event: &ReplyValue<'_, '_>| event.text_of("delta").map(|delta| delta.unwrap_or_default().to_owned());
    match event.need("type")?.text()? {
        "response.output_text.delta" => chunks.extend(stream.say(&delta(event)?)),
        "response.refusal.delta" => stream.refusal.push_str(&delta(event)?),
        "response.reasoning_summary_text.delta" | "response.reasoning_text.delta" => {
            chunks.extend(stream.think(&delta(event)?));
        }
        "response.output_item.added" | "response.output_item.done" => item(stream, event)?,
        "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
            let delta = delta(event)?;
            if let Some(draft) = stream.calls.get_mut(&index(event)) {
                draft.arguments.push_str(&delta);
            }
        }
        "response.created" | "response.in_progress" | "response.queued" => {
            if let Some(response) = event.get("response") {
                stream.identify(response.note("model"), response.note("id"));
            }
        }
        "response.completed" | "response.incomplete" => {
            let response = event.need("response")?;
            stream.identify(response.note("model"), response.note("id"));
            stream.ended = true;
            stream.finish = finish(response.value);
            if stream.finish.as_deref() == Some("content_filter") && stream.refusal.is_empty() {
                stream.refusal.push_str(WITHHELD);
            }
            chunks.extend(stream.count(response.value.get("usage")));
        }
        "response.failed" | "response.cancelled" => {
            let error = event.get("response").and_then(|response| provider_error(&response));
            return Err(error.unwrap_or_else(|| failed("the provider failed: no reason was given", None)));
        }
        // Here the event itself is what is said about the error.
        "error" => return Err(failure(event.value)),
        // Parts that begin and end, annotations, and what the provider's own tools do.
        _ => {}
    }
    Ok(())
}

/// A call, a thought or a picture among the items, at its beginning or with everything that belongs to it.
fn item(stream: &mut Stream, event: &ReplyValue<'_, '_>) -> Result<()> {
    let item = event.need("item")?;
    let arguments = match item.value.get("type").and_then(Json::as_str) {
        Some("function_call") => "arguments",
        Some("custom_tool_call") => "input",
        Some("reasoning") => {
            // It is whole when it is done.
            stream.thoughts.insert(index(event), item.value.clone());
            return Ok(());
        }
        Some("image_generation_call") => {
            // It has its picture when it is done.
            stream.images.extend(item.note("result"));
            return Ok(());
        }
        _ => return Ok(()),
    };
    let call = call(&item, arguments)?;
    let draft = stream.calls.entry(index(event)).or_default();
    draft.named(Some(&call.id), Some(&call.name));
    draft.whole = Some(call.arguments);
    Ok(())
}

fn index(event: &ReplyValue<'_, '_>) -> u64 {
    event.value.get("output_index").and_then(Json::as_u64).unwrap_or(0)
}
