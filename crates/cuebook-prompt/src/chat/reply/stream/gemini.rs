//! The pieces of Gemini's `streamGenerateContent`: each has the form of a whole reply.

use super::super::gemini::{Said, UNREADABLE_CALL, blocked_prompt, malformed, stopped};
use super::super::look::{Look, failed};
use super::{Chunk, Draft, Stream};
use crate::error::Result;

pub(super) fn feed(stream: &mut Stream, event: &Look<'_, '_>, chunks: &mut Vec<Chunk>) -> Result<()> {
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
        let mut said = Said { earlier_calls: stream.calls.len(), ..Said::default() };
        said.add(&candidate)?;
        chunks.extend(stream.think(&said.thinking));
        chunks.extend(stream.say(&said.text));
        stream.images.extend(said.images);
        for (call, signature) in said.calls.into_iter().zip(said.signatures) {
            let number = stream.calls.len() as u64;
            let whole = Some(call.arguments);
            let draft = Draft { id: call.id, name: call.name, arguments: String::new(), whole, signature };
            stream.calls.insert(number, draft);
        }
        if let Some(reason) = candidate.note("finishReason") {
            stream.ended = true;
            stream.finish = Some(reason);
            if let Some(failure) = malformed(candidate.value) {
                return Err(failed(failure, Some(UNREADABLE_CALL.to_owned())));
            }
            if let Some(refusal) = stopped(candidate.value) {
                stream.refusal = refusal;
            }
        }
    }
    chunks.extend(stream.count(event.value.get("usageMetadata")));
    Ok(())
}
