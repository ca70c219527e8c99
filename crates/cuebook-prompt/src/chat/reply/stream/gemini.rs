//! The pieces of Gemini's `streamGenerateContent`: each has the form of a whole reply.

use super::super::gemini::{CandidateContent, blocked_prompt, malformed, stopped, unreadable_call};
use super::super::reply_value::{ReplyValue, failed};
use super::{Chunk, Draft, Stream};
use crate::error::Result;

pub(super) fn feed(stream: &mut Stream, event: &ReplyValue<'_, '_>, chunks: &mut Vec<Chunk>) -> Result<()> {
    stream.identify(event.note("modelVersion"), event.note("responseId"));
    if let Some(blocked) = blocked_prompt(event.value) {
        stream.refusal = blocked;
        stream.ended = true;
    }
    let candidates = event.get("candidates");
    let candidate = match &candidates {
        Some(candidates) => candidates.items()?.next(),
        None => None,
    };
    if let Some(candidate) = candidate {
        candidate.object()?;
        let mut content =
            CandidateContent { earlier_calls: stream.calls.len(), ..CandidateContent::default() };
        content.add(&candidate)?;
        chunks.extend(stream.think(&content.thinking));
        chunks.extend(stream.say(&content.text));
        stream.images.extend(content.images);
        for (call, signature) in content.calls.into_iter().zip(content.signatures) {
            let number = stream.calls.len() as u64;
            let whole = Some(call.arguments);
            let draft = Draft { id: call.id, name: call.name, arguments: String::new(), whole, signature };
            stream.calls.insert(number, draft);
        }
        if let Some(reason) = candidate.note("finishReason") {
            stream.ended = true;
            stream.finish = Some(reason);
            if let Some(failure) = malformed(candidate.value) {
                return Err(failed(failure, Some(unreadable_call())));
            }
            if let Some(refusal) = stopped(candidate.value) {
                stream.refusal = refusal;
            }
        }
    }
    chunks.extend(stream.count(event.value.get("usageMetadata")));
    Ok(())
}
