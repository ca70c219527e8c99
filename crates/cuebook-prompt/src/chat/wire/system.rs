//! What a system message shows besides text.
//!
//! Providers take only text from the system, and prompts show pictures there all the same. What a system message shows
//! besides text goes to the beginning of the next user message, or into one of its own.

use std::borrow::Cow;

use serde_json::Map;

use crate::chat::{Message, Part, Role};

/// The messages with only text in those of the system, and what was moved.
pub(super) fn media_to_the_user(messages: &[Message]) -> (Cow<'_, [Message]>, Vec<&'static str>) {
    let is_system = |message: &Message| matches!(message.role, Role::System | Role::Developer);
    let is_text = |part: &Part| matches!(part, Part::Text { .. });
    if messages.iter().all(|message| !is_system(message) || message.parts.iter().all(is_text)) {
        return (Cow::Borrowed(messages), Vec::new());
    }
    let mut result: Vec<Message> = Vec::new();
    let mut waiting: Vec<Part> = Vec::new();
    let mut moved = Vec::new();
    for message in messages {
        let mut message = message.clone();
        if is_system(&message) {
            let (texts, media): (Vec<Part>, Vec<Part>) = message.parts.into_iter().partition(is_text);
            message.parts = texts;
            moved.extend(media.iter().map(Part::kind));
            waiting.extend(media);
        } else if message.role == Role::User {
            message.parts = waiting.drain(..).chain(message.parts).collect();
        }
        result.push(message);
    }
    if !waiting.is_empty() {
        result.push(Message { role: Role::User, parts: waiting, metadata: Map::new() });
    }
    (Cow::Owned(result), moved)
}

/// `an image and a file`
pub(super) fn things(kinds: &[&str]) -> String {
    let with_article = |kind: &&str| match *kind {
        "file" => "a file".to_owned(),
        other => format!("an {other}"),
    };
    kinds.iter().map(with_article).collect::<Vec<_>>().join(" and ")
}
