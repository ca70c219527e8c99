//! Anthropic's messages.

use serde_json::Value as Json;

use super::reply_value::ReplyValue;
use super::{Answer, Api, ProviderState, Reply, ToolCall, Usage, compact, some_text, text_or_calls};
use crate::error::Result;

pub(super) fn read(reply: &ReplyValue<'_, '_>, outputs: bool) -> Result<Answer> {
    let content = reply.need("content")?;
    let (mut text, mut thinking, mut calls) = (String::new(), String::new(), Vec::new());
    let mut provider_state = ProviderState::default();
    for block in content.items()? {
        block.object()?;
        provider_state.thought(block.value);
        match block.value.get("type").and_then(Json::as_str) {
            Some("text") => text.push_str(block.need("text")?.text()?),
            Some("thinking") => thinking.push_str(block.text_of("thinking")?.unwrap_or_default()),
            Some("tool_use") => calls.push(ToolCall {
                id: block.text_of("id")?.unwrap_or_default().to_owned(),
                name: block.need("name")?.text()?.to_owned(),
                arguments: compact(block.need("input")?.value),
            }),
            // Hidden reasoning, and what the provider's own tools did.
            _ => {}
        }
    }
    let finish = reply.note("stop_reason");
    if is_pause(finish.as_deref()) && calls.is_empty() {
        let says = |block: &ReplyValue<'_, '_>| block.value.get("text").and_then(Json::as_str) != Some("");
        provider_state.paused = content.items()?.filter(says).map(|block| block.value.clone()).collect();
    }
    let answer = if finish.as_deref() == Some("refusal") {
        Reply::Refusal(some_text(text).unwrap_or_else(|| refusal(reply.value)))
    } else {
        text_or_calls(calls, text, outputs)
    };
    Ok(Answer {
        reply: answer,
        thinking: some_text(thinking),
        usage: Usage::read(Api::Anthropic, reply.value.get("usage")),
        finish,
        model: reply.note("model"),
        id: reply.note("id"),
        provider_state,
    })
}

/// Whether a turn is not over: the model goes on when it is sent again what it said.
pub(super) fn is_pause(finish: Option<&str>) -> bool {
    finish == Some("pause_turn")
}

/// Why the model declined, as far as the provider says so: `stop_details` has a category and sometimes a sentence.
pub(super) fn refusal(message: &Json) -> String {
    let detail = |key: &str| message.pointer(key).and_then(Json::as_str).filter(|text| !text.is_empty());
    match (detail("/stop_details/explanation"), detail("/stop_details/category")) {
        (Some(explanation), _) => explanation.to_owned(),
        (None, Some(category)) => format!("the model declined to answer ({category})"),
        (None, None) => "the model declined to answer".to_owned(),
    }
}
