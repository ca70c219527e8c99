//! OpenAI's chat completions.

use serde_json::Value as Json;

use super::provider_state;
use super::reply_value::{ReplyValue, bad};
use super::{Answer, Api, ProviderState, Reply, ToolCall, Usage, compact, some_text, text_or_calls};
use crate::error::Result;

/// What is said when a filter took the answer and left no words.
pub(super) const WITHHELD: &str = "a content filter withheld the answer";

pub(super) fn read(reply: &ReplyValue<'_, '_>, outputs: bool) -> Result<Answer> {
    let choices = reply.need("choices")?;
    let Some(choice) = choices.items()?.next() else {
        return Err(bad("`choices` is empty, but must hold one answer").with("path", "choices"));
    };
    let message = choice.need("message")?;
    message.object()?;
    let finish = choice.note("finish_reason");
    let (text, refused) = content(&message)?;
    let calls = calls(&message)?;
    let listed = message.value.get("tool_calls").and_then(Json::as_array);
    let signatures = listed.into_iter().flatten().map(provider_state::signature).collect();
    let refusal = message.text_of("refusal")?.map(str::to_owned).or(refused).and_then(some_text);
    let answer = match refusal {
        Some(refusal) if calls.is_empty() && text.is_empty() => Reply::Refusal(refusal),
        // What a filter cut off is no answer, however much of it came.
        _ if finish.as_deref() == Some("content_filter") => Reply::Refusal(WITHHELD.to_owned()),
        _ => text_or_calls(calls, text, outputs),
    };
    Ok(Answer {
        reply: answer,
        thinking: thinking(message.value),
        usage: Usage::read(Api::OpenAiChat, reply.value.get("usage")),
        finish,
        model: reply.note("model"),
        id: reply.note("id"),
        provider_state: ProviderState { signatures, ..ProviderState::default() },
    })
}

/// The text of a message: a string, or the parts that some gateways make of it; and the words of a refusal among them.
pub(super) fn content(message: &ReplyValue<'_, '_>) -> Result<(String, Option<String>)> {
    let Some(content) = message.get("content") else { return Ok((String::new(), None)) };
    if let Some(text) = content.value.as_str() {
        return Ok((text.to_owned(), None));
    }
    if !content.value.is_array() {
        return Err(content.wrong("a string or an array of parts"));
    }
    let (mut text, mut refusal) = (String::new(), None);
    for part in content.items()? {
        match part.value.get("type").and_then(Json::as_str) {
            Some("text" | "output_text") => text.push_str(part.need("text")?.text()?),
            Some("refusal") => refusal = part.text_of("refusal")?.map(str::to_owned),
            _ => {}
        }
    }
    Ok((text, refusal))
}

fn calls(message: &ReplyValue<'_, '_>) -> Result<Vec<ToolCall>> {
    let Some(list) = message.get("tool_calls") else { return Ok(Vec::new()) };
    let call = |call: ReplyValue<'_, '_>| {
        let id = call.text_of("id")?.unwrap_or_default().to_owned();
        // A custom tool takes text in a grammar of its own rather than JSON.
        let (tool, arguments) = match call.get("custom") {
            Some(custom) => (custom, "input"),
            None => (call.need("function")?, "arguments"),
        };
        let name = tool.need("name")?.text()?.to_owned();
        let arguments = tool.get(arguments).map(|value| compact(value.value)).unwrap_or_default();
        Ok(ToolCall { id, name, arguments })
    };
    list.items()?.map(call).collect()
}

/// What the model thought, under either of the names that gateways use.
pub(super) fn thinking(message: &Json) -> Option<String> {
    let said = |key: &str| message.get(key).and_then(Json::as_str).filter(|text| !text.is_empty());
    said("reasoning_content").or_else(|| said("reasoning")).map(str::to_owned)
}
