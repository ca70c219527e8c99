//! What a model gets about a call of an item: the answer without what only programs need, and not more than it can use.

use serde_json::{Value as Json, json};

use super::managed::Managed;
use super::orchestrator::RESULT;
use crate::policy::tool_result::{self, Guarded};
use crate::turn::Performed;

/// Whether a model can read a result that it does not get whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// With `rye_execute`, piece by piece.
    Possible,
    /// This is what it reads with.
    Piece,
    /// It has no tool for that, so it gets as much as has room.
    Impossible,
}

/// What a model gets about the answer of an item. The whole of one that is too long stays in the log, where the model can read it.
pub(super) fn tool_result(
    thread: &Managed<'_>,
    call_id: &str,
    response: &Json,
    reading: Reading,
) -> Performed {
    let is_error = response.get("status").and_then(Json::as_str) == Some("error");
    let mut cleaned = tool_result::clean(response);
    // The way out of an error is worth as much to a model as to people.
    if let (true, Some(hint), Json::Object(cleaned)) =
        (is_error, response["metadata"]["error"]["hint"].as_str(), &mut cleaned)
    {
        cleaned.entry("hint").or_insert_with(|| hint.into());
    }
    let text = tool_result::text_of(&cleaned);
    let room = match reading {
        Reading::Possible => tool_result::room(thread.fullness()),
        Reading::Piece => usize::MAX,
        // A quarter of the conversation, at four characters for a token.
        Reading::Impossible => usize::try_from(thread.launch.context_window).unwrap_or(usize::MAX).max(2400),
    };
    let text = match tool_result::guard(&text, room) {
        Guarded::Small(text) => text,
        Guarded::Large(large) => match thread.put_aside(call_id, &large.hash, text) {
            Some(before) => large.repeated(&before),
            None if reading == Reading::Impossible => large.text,
            None => {
                let mut reported: Json =
                    serde_json::from_str(&large.text).unwrap_or_else(|_| json!({"content": large.text}));
                let how = json!({"item_type": "tool", "item_id": RESULT, "parameters": {"call_id": call_id, "offset": 0}});
                reported["_read_whole_with_rye_execute"] = how;
                reported.to_string()
            }
        },
    };
    Performed { is_error, ..Performed::answer(text) }
}
