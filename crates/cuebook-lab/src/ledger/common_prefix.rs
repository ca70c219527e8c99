//! How far two messages begin alike, in parts, bytes and tokens.

use super::sent_request::{PartOrigin, SentMessage, SentPart};
use super::side::MessagePosition;
use crate::tokens::Tokenizer;

/// The first spot at which a message differs from another one.
pub(super) fn difference(message: &SentMessage, there: Option<&SentMessage>) -> Option<MessagePosition> {
    let Some(there) = there else { return Some(MessagePosition { part: 0, byte: 0 }) };
    for (index, part) in message.parts.iter().enumerate() {
        let Some(other) = there.parts.get(index) else {
            return Some(MessagePosition { part: index, byte: 0 });
        };
        if is_media(part) || is_media(other) {
            if is_media(part) != is_media(other) || part.text != other.text {
                return Some(MessagePosition { part: index, byte: 0 });
            }
        } else if part.text != other.text {
            return Some(MessagePosition { part: index, byte: common_bytes(&part.text, &other.text) });
        }
    }
    (there.parts.len() > message.parts.len())
        .then_some(MessagePosition { part: message.parts.len(), byte: 0 })
}

/// The tokens of a message before a spot that the other one has as well.
pub(super) fn stable_tokens(
    tokenizer: &Tokenizer,
    message: &SentMessage,
    there: Option<&SentMessage>,
    spot: MessagePosition,
) -> usize {
    let before: usize = message.parts.iter().take(spot.part).map(|part| count(tokenizer, part)).sum();
    let ours = message.parts.get(spot.part).filter(|part| !is_media(part));
    let theirs = there.and_then(|there| there.parts.get(spot.part)).filter(|part| !is_media(part));
    match (ours, theirs) {
        (Some(ours), Some(theirs)) => before + common_tokens(tokenizer, &ours.text, &theirs.text),
        _ => before,
    }
}

/// The tokens that two texts begin with.
pub(super) fn common_tokens(tokenizer: &Tokenizer, text: &str, other: &str) -> usize {
    let (ours, theirs) = (tokenizer.encode(text), tokenizer.encode(other));
    ours.iter().zip(&theirs).take_while(|(ours, theirs)| ours.id == theirs.id).count()
}

/// The tokens of a part that end within so many bytes.
pub(super) fn ends_within(tokenizer: &Tokenizer, part: &SentPart, bytes: usize) -> usize {
    let mut end = 0;
    let tokens = tokenizer.encode(if is_media(part) { "" } else { &part.text });
    tokens
        .iter()
        .take_while(|token| {
            end += token.bytes;
            end <= bytes
        })
        .count()
}

pub(super) fn common_bytes(text: &str, other: &str) -> usize {
    let common = text.bytes().zip(other.bytes()).take_while(|(ours, theirs)| ours == theirs).count();
    floor(text, common)
}

pub(super) fn floor(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

pub(super) fn is_media(part: &SentPart) -> bool {
    matches!(part.from, PartOrigin::Media(..))
}

pub(super) fn count(tokenizer: &Tokenizer, part: &SentPart) -> usize {
    if is_media(part) { 0 } else { tokenizer.count(&part.text) }
}

pub(super) fn tokens_of(tokenizer: &Tokenizer, message: &SentMessage) -> usize {
    message.parts.iter().map(|part| count(tokenizer, part)).sum()
}

/// The line and column behind a text, both from 1.
pub(super) fn line_column(before: &str) -> (usize, usize) {
    let start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (before.matches('\n').count() + 1, before[start..].chars().count() + 1)
}
