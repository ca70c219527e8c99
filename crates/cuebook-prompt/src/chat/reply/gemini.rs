//! Google's Gemini: `generateContent`.

use serde_json::Value as Json;

use super::reply_value::{ReplyValue, bad, failed};
use super::{Answer, Api, ProviderState, Reply, ToolCall, Usage, compact, shown, some_text};
use crate::error::{Hint, Result};

pub(super) fn read(reply: &ReplyValue<'_, '_>, outputs: bool) -> Result<Answer> {
    reply.object()?;
    let mut content = CandidateContent::default();
    let mut finish = None;
    let mut refusal = blocked_prompt(reply.value);
    if refusal.is_none() {
        let candidates = reply.need("candidates")?;
        let Some(candidate) = candidates.items()?.next() else {
            return Err(bad("`candidates` is empty, but must hold one answer").with("path", "candidates"));
        };
        candidate.object()?;
        finish = candidate.note("finishReason");
        content.add(&candidate)?;
        if let Some(failure) = malformed(candidate.value).filter(|_| content.is_empty()) {
            return Err(failed(failure, Some(unreadable_call())));
        }
        refusal = stopped(candidate.value);
    }
    let provider_state =
        ProviderState { signatures: std::mem::take(&mut content.signatures), ..ProviderState::default() };
    let answer = match refusal {
        Some(refusal) => Reply::Refusal(refusal),
        None => shown(content.calls, content.text, content.images, outputs),
    };
    Ok(Answer {
        reply: answer,
        thinking: some_text(content.thinking),
        usage: Usage::read(Api::Gemini, reply.value.get("usageMetadata")),
        finish,
        model: reply.note("modelVersion"),
        id: reply.note("responseId"),
        provider_state,
    })
}

/// What the parts of a candidate say together.
#[derive(Default)]
pub(super) struct CandidateContent {
    pub(super) text: String,
    pub(super) thinking: String,
    pub(super) calls: Vec<ToolCall>,
    /// What has to be sent back with each call.
    pub(super) signatures: Vec<Option<String>>,
    /// Pictures as `data:` URIs.
    pub(super) images: Vec<String>,
    /// How many calls came before these, in other pieces.
    pub(super) earlier_calls: usize,
}

impl CandidateContent {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.calls.is_empty() && self.images.is_empty()
    }

    /// Adds the parts of a candidate. One that was stopped at once has no content.
    pub(super) fn add(&mut self, candidate: &ReplyValue<'_, '_>) -> Result<()> {
        let Some(content) = candidate.get("content") else { return Ok(()) };
        content.object()?;
        let Some(parts) = content.get("parts") else { return Ok(()) };
        for part in parts.items()? {
            part.object()?;
            let thought = part.value.get("thought").and_then(Json::as_bool) == Some(true);
            if let Some(text) = part.text_of("text")? {
                let into = if thought { &mut self.thinking } else { &mut self.text };
                into.push_str(text);
            } else if let Some(call) = part.get("functionCall") {
                let id = call.text_of("id")?.map(str::to_owned);
                let name = call.need("name")?.text()?.to_owned();
                let arguments = call.get("args").map_or_else(|| "{}".to_owned(), |args| compact(args.value));
                // Most models give their calls no id; the number tells calls of one tool apart.
                let id = id.unwrap_or_else(|| format!("call_{}", self.earlier_calls + self.calls.len()));
                self.calls.push(ToolCall { id, name, arguments });
                self.signatures.push(part.note("thoughtSignature"));
            } else if let Some(data) = part.get("inlineData").filter(|_| !thought) {
                let kind = data.text_of("mimeType")?.unwrap_or_default();
                if kind.starts_with("image/") {
                    self.images.push(format!("data:{kind};base64,{}", data.need("data")?.text()?));
                }
            }
        }
        Ok(())
    }
}

/// That the prompt was refused before the model saw it.
pub(super) fn blocked_prompt(response: &Json) -> Option<String> {
    let reason = response.pointer("/promptFeedback/blockReason")?.as_str()?;
    let message = response.pointer("/promptFeedback/blockReasonMessage").and_then(Json::as_str);
    Some(message.map_or_else(|| format!("the provider blocked the prompt ({reason})"), str::to_owned))
}

/// That the answer was stopped because of what it says. What came before is no answer either.
pub(super) fn stopped(candidate: &Json) -> Option<String> {
    const REASONS: [&str; 9] = [
        "SAFETY",
        "RECITATION",
        "LANGUAGE",
        "BLOCKLIST",
        "PROHIBITED_CONTENT",
        "SPII",
        "IMAGE_SAFETY",
        "IMAGE_PROHIBITED_CONTENT",
        "IMAGE_RECITATION",
    ];
    let reason = candidate.get("finishReason")?.as_str().filter(|reason| REASONS.contains(reason))?;
    let message = candidate.get("finishMessage").and_then(Json::as_str).filter(|text| !text.is_empty());
    Some(message.map_or_else(|| format!("the provider blocked the answer ({reason})"), str::to_owned))
}

/// What may help when a model wrote a call that cannot be read.
pub(super) fn unreadable_call() -> Hint {
    let (what, others) =
        ("the model wrote an unreadable tool call", "simplify the tools' parameters, or use another model");
    Hint::command_line(format!("{what}: ask it again (`cuebook thread resume ID`), {others}"))
        .for_programs(format!("{what}: ask it again, {others}"))
}

/// That the model wrote a call that the provider could not read.
pub(super) fn malformed(candidate: &Json) -> Option<String> {
    const REASONS: [&str; 3] = ["MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS"];
    let reason = candidate.get("finishReason")?.as_str().filter(|reason| REASONS.contains(reason))?;
    let message = candidate.get("finishMessage").and_then(Json::as_str).unwrap_or(reason);
    Some(format!("the provider failed: {message}"))
}
