//! OpenAI's embeddings: the texts of all messages, of any role.

use super::draft::{Draft, WrittenBody};
use super::piece::Piece;
use crate::error::Result;

pub(super) fn body(mut draft: Draft<'_>) -> Result<WrittenBody<'_>> {
    draft.put("model", draft.request.model.id.as_str());
    let mut texts = Vec::new();
    for spot in draft.spots() {
        let text = draft.only_text(spot)?;
        draft.leftover(spot, &[]);
        texts.extend((!text.is_empty()).then_some(text));
    }
    let input = match texts.len() {
        0 => return Err(draft.nothing_to_say("needs a text, but the prompt is empty", "write a text")),
        1 => Piece::from(texts.swap_remove(0)),
        _ => Piece::List(texts.into_iter().map(Piece::from).collect()),
    };
    draft.put("input", input);
    draft.options(&[], &[]);
    draft.no_tools_and_outputs();
    if draft.streams() {
        draft.warn("`stream` is not sent", "OpenAI does not stream embeddings");
    }
    Ok(draft.finish_without(&["stream"]))
}
