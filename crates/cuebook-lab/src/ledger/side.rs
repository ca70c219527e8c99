//! One side of a comparison: a render, what it says, and the way from a spot of a message back to its author.

use super::common_prefix::{floor, is_media, line_column};
use super::sent_request::{PartOrigin, SentMessage, SentRequest};
use super::stable::Unstable;
use super::{Contributor, overlapping};
use crate::render::{Origin, Rendered, Span};

/// One side of a comparison.
pub(super) struct Side<'r> {
    pub(super) rendered: &'r Rendered,
    pub(super) sent_request: &'r SentRequest,
    /// The spans that have text.
    spans: Vec<Span>,
}

impl<'r> Side<'r> {
    pub(super) fn new(rendered: &'r Rendered, sent_request: &'r SentRequest) -> Side<'r> {
        let spans = rendered.spans().filter(|span| !span.range.is_empty()).collect();
        Side { rendered, sent_request, spans }
    }
}

/// A place in a message: the index of the part, and the byte in it.
#[derive(Debug, Clone, Copy)]
pub(super) struct MessagePosition {
    pub(super) part: usize,
    pub(super) byte: usize,
}

impl Side<'_> {
    /// Whether a message has a byte, or a picture and the like, at this spot.
    pub(super) fn has(&self, message: &SentMessage, spot: MessagePosition) -> bool {
        message.parts.get(spot.part).is_some_and(|part| spot.byte < part.text.len() || is_media(part))
    }

    /// The offset in the rendered text of a spot.
    pub(super) fn rendered_offset(&self, message: &SentMessage, spot: MessagePosition) -> Option<usize> {
        let part = message.parts.get(spot.part).filter(|part| spot.byte < part.text.len())?;
        match &part.from {
            PartOrigin::Text(pieces) => {
                let mut byte = spot.byte;
                pieces.iter().find_map(|piece| {
                    let found = (byte < piece.len()).then(|| piece.start + byte);
                    byte = byte.saturating_sub(piece.len());
                    found
                })
            }
            PartOrigin::Conversation(_) | PartOrigin::Media(..) => None,
        }
    }

    pub(super) fn span_at(&self, message: &SentMessage, spot: MessagePosition) -> Option<Span> {
        self.rendered_offset(message, spot).and_then(|at| self.rendered.span_at(at))
    }

    /// The first byte of a message whose origin is of a kind that is asked for.
    pub(super) fn first_changing(
        &self,
        message: &SentMessage,
        asked: impl Fn(&Origin) -> bool,
    ) -> Option<MessagePosition> {
        for (index, part) in message.parts.iter().enumerate() {
            let pieces = match &part.from {
                PartOrigin::Text(pieces) => pieces.as_slice(),
                PartOrigin::Conversation(_) | PartOrigin::Media(..) => {
                    let origin = Origin::Rich { input: String::new(), kind: String::new() };
                    if asked(&origin) {
                        return Some(MessagePosition { part: index, byte: 0 });
                    }
                    continue;
                }
            };
            let mut before = 0;
            for piece in pieces {
                let found = overlapping(&self.spans, piece).find(|span| asked(&span.origin));
                if let Some(span) = found {
                    let byte = before + span.range.start.max(piece.start) - piece.start;
                    return Some(MessagePosition { part: index, byte });
                }
                before += piece.len();
            }
        }
        None
    }

    /// A spot in words.
    pub(super) fn unstable(&self, message: &SentMessage, spot: MessagePosition) -> Unstable {
        let part = message.parts.get(spot.part);
        let mut text: String = message
            .parts
            .iter()
            .take(spot.part)
            .filter(|part| !is_media(part))
            .map(|part| part.text.as_str())
            .collect();
        if let Some(part) = part.filter(|part| !is_media(part)) {
            text.push_str(&part.text[..floor(&part.text, spot.byte)]);
        }
        let (line, column) = line_column(&text);
        let span = self.span_at(message, spot);
        let contributor = match (&span, part.map(|part| &part.from)) {
            (Some(span), _) => Contributor::of(&span.origin),
            (None, Some(PartOrigin::Media(kind, input))) => {
                Contributor::Rich { input: input.clone(), kind: (*kind).to_owned() }
            }
            (None, Some(PartOrigin::Conversation(input))) => {
                Contributor::Rich { input: input.clone(), kind: "thread".to_owned() }
            }
            (None, _) => Contributor::File(self.rendered.prompt().template.name().to_owned()),
        };
        Unstable {
            within: label_of(message),
            message: Some(message.number),
            offset: text.len(),
            line,
            column,
            at: self.rendered_offset(message, spot),
            contributor,
            origin: span.map(|span| span.origin),
        }
    }
}

/// What a message is called.
pub(super) fn label_of(message: &SentMessage) -> String {
    format!("message {} ({})", message.number, message.role)
}
