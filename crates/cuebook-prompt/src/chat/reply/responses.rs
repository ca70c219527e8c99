//! OpenAI's responses.

use serde_json::Value as Json;

use super::openai::WITHHELD;
use super::reply_value::{ReplyValue, bad, failed};
use super::{Answer, Api, ProviderState, Reply, ToolCall, Usage, compact, shown, some_text};
use crate::error::Result;

pub(super) fn read(reply: &ReplyValue<'_, '_>, outputs: bool) -> Result<Answer> {
    reply.object()?;
    match reply.value.get("status").and_then(Json::as_str) {
        Some("failed") => return Err(failed("the provider failed: no reason was given", None)),
        Some("cancelled") => return Err(failed("the provider cancelled the response", None)),
        Some(status @ ("queued" | "in_progress")) => {
            return Err(
                bad(format!("the response is incomplete: its status is `{status}`")).with("path", "status")
            );
        }
        _ => {}
    }
    let mut said = OutputContent::default();
    match reply.get("output") {
        Some(output) => output.items()?.try_for_each(|item| said.add(&item))?,
        // Client libraries offer the text by this name, and some gateways send nothing else.
        None if reply.get("output_text").is_some() => {}
        None => return Err(reply.need("output").err().unwrap_or_else(|| bad("`output` is missing"))),
    }
    // What is offered as the whole text is the whole text.
    if let Some(text) = reply.text_of("output_text")?.filter(|text| !text.is_empty()) {
        said.text = text.to_owned();
    }
    let finish = finish(reply.value);
    let answer = match some_text(said.refusal) {
        Some(refusal) if said.calls.is_empty() && said.text.is_empty() => Reply::Refusal(refusal),
        _ if finish.as_deref() == Some("content_filter") => Reply::Refusal(WITHHELD.to_owned()),
        _ => shown(said.calls, said.text, said.images, outputs),
    };
    Ok(Answer {
        reply: answer,
        thinking: some_text(said.thinking),
        usage: Usage::read(Api::OpenAiResponses, reply.value.get("usage")),
        finish,
        model: reply.note("model"),
        id: reply.note("id"),
        provider_state: said.provider_state,
    })
}

/// Why a response ended: the reason if it is incomplete, else its status.
pub(super) fn finish(response: &Json) -> Option<String> {
    let reason = response.pointer("/incomplete_details/reason").and_then(Json::as_str);
    reason.or_else(|| response.get("status").and_then(Json::as_str)).map(str::to_owned)
}

/// What the items of an output say together.
#[derive(Default)]
struct OutputContent {
    text: String,
    refusal: String,
    thinking: String,
    calls: Vec<ToolCall>,
    images: Vec<String>,
    provider_state: ProviderState,
}

impl OutputContent {
    fn add(&mut self, item: &ReplyValue<'_, '_>) -> Result<()> {
        item.object()?;
        match item.value.get("type").and_then(Json::as_str) {
            Some("message") => {
                let Some(content) = item.get("content") else { return Ok(()) };
                for part in content.items()? {
                    match part.value.get("type").and_then(Json::as_str) {
                        Some("output_text") => self.text.push_str(part.need("text")?.text()?),
                        Some("refusal") => self.refusal.push_str(part.need("refusal")?.text()?),
                        _ => {}
                    }
                }
            }
            Some("function_call") => self.calls.push(call(item, "arguments")?),
            Some("custom_tool_call") => self.calls.push(call(item, "input")?),
            Some("reasoning") => {
                self.provider_state.thought(item.value);
                for key in ["summary", "content"] {
                    let texts = item.list(key)?.into_iter().filter_map(|part| part.get("text")?.as_str());
                    self.thinking.extend(texts);
                }
            }
            Some("image_generation_call") => self.images.extend(item.note("result")),
            // What the provider's other tools did: searches, code.
            _ => {}
        }
        Ok(())
    }
}

/// A call among the items: its result must name `call_id`, not the item's own id.
pub(super) fn call(item: &ReplyValue<'_, '_>, arguments: &'static str) -> Result<ToolCall> {
    let id = match item.text_of("call_id")? {
        Some(id) => id,
        None => item.text_of("id")?.unwrap_or_default(),
    };
    let name = item.need("name")?.text()?.to_owned();
    let arguments = item.get(arguments).map(|value| compact(value.value)).unwrap_or_default();
    Ok(ToolCall { id: id.to_owned(), name, arguments })
}
