//! OpenAI's pictures: what the user asked for last.

use super::draft::{Draft, WrittenBody};
use crate::chat::Role;
use crate::error::Result;

pub(super) fn body(mut draft: Draft<'_>) -> Result<WrittenBody<'_>> {
    draft.put("model", draft.request.model.id.as_str());
    let last = draft.spots().filter(|spot| spot.message.role == Role::User).last();
    let mut texts = Vec::new();
    for spot in draft.spots() {
        // Without a user everything is the description: a prompt without role markers is one system message.
        if last.is_none_or(|last| last.index == spot.index) {
            texts.push(draft.only_text(spot)?);
            draft.leftover(spot, &[]);
        } else {
            draft.warn(
                format!("{spot} is not sent"),
                "only the last user message describes the image; write everything there",
            );
        }
    }
    texts.retain(|text| !text.is_empty());
    if texts.is_empty() {
        return Err(
            draft.nothing_to_say("needs a description, but the prompt is empty", "write a description")
        );
    }
    draft.put("prompt", texts.join("\n\n"));
    draft.options(&[], &[]);
    draft.no_tools_and_outputs();
    Ok(draft.finish())
}
