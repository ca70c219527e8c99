//! Text as a value: a string that may know who wrote its parts.

use std::rc::Rc;

use crate::origin::Origin;
use crate::sink::{Mark, Piece, Sink, UNPRINTED, cut, unprinted};

/// A text, and whether it is safe in HTML as it is.
#[derive(Debug, Clone)]
pub(crate) enum Text<'r> {
    Borrowed(bool, &'r str),
    /// A string that the author wrote inside a tag: the number of the template, and the offset there.
    Written(bool, u16, u32, &'r str),
    Shared(bool, Rc<str>),
    /// Text whose parts have several origins.
    Marked(bool, Rc<Sink>),
}

impl<'r> From<&'r str> for Text<'r> {
    fn from(text: &'r str) -> Self {
        Text::Borrowed(false, text)
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Text::Shared(false, text.into())
    }
}

impl From<Sink> for Text<'_> {
    fn from(sink: Sink) -> Self {
        Text::Marked(false, Rc::new(sink))
    }
}

impl<'r> Text<'r> {
    /// A string of an expression, and where its content is if the file has exactly these bytes.
    #[inline]
    pub fn written(text: &'r str, unit: u32, offset: Option<u32>) -> Text<'r> {
        match (u16::try_from(unit), offset) {
            (Ok(unit), Some(offset)) => Text::Written(false, unit, offset, text),
            _ => Text::Borrowed(false, text),
        }
    }

    #[inline]
    pub fn as_str(&self) -> &str {
        match self {
            Text::Borrowed(_, text) | Text::Written(.., text) => text,
            Text::Shared(_, text) => text,
            Text::Marked(_, sink) => &sink.text,
        }
    }

    #[inline]
    pub fn is_safe(&self) -> bool {
        match self {
            Text::Borrowed(safe, _) | Text::Written(safe, ..) => *safe,
            Text::Shared(safe, _) | Text::Marked(safe, _) => *safe,
        }
    }

    pub fn safe(self, safe: bool) -> Text<'r> {
        match self {
            Text::Borrowed(_, text) => Text::Borrowed(safe, text),
            Text::Written(_, unit, offset, text) => Text::Written(safe, unit, offset, text),
            Text::Shared(_, text) => Text::Shared(safe, text),
            Text::Marked(_, sink) => Text::Marked(safe, sink),
        }
    }

    /// The pieces, if it has several origins.
    #[inline]
    pub fn pieces(&self) -> Option<&[Piece]> {
        match self {
            Text::Marked(_, sink) => Some(&sink.pieces),
            _ => None,
        }
    }

    /// The mark of a text without pieces. A string of the author's is one only as long as no variable took part.
    #[inline]
    pub fn mark(&self, origin: Origin) -> Mark {
        match self {
            Text::Written(_, unit, offset, _) if origin.is_author() => {
                Mark::Constant { unit: u32::from(*unit), offset: *offset }
            }
            _ => unprinted(origin),
        }
    }

    /// A part of the text, with its pieces.
    pub fn slice(&self, start: usize, end: usize) -> Text<'r> {
        match self {
            Text::Borrowed(safe, text) => Text::Borrowed(*safe, text.get(start..end).unwrap_or_default()),
            Text::Written(safe, unit, offset, text) => {
                Text::Written(*safe, *unit, offset + start as u32, text.get(start..end).unwrap_or_default())
            }
            Text::Shared(safe, text) => Text::Shared(*safe, text.get(start..end).unwrap_or_default().into()),
            Text::Marked(safe, sink) => {
                let mut part = Sink::new(usize::MAX);
                part.text = sink.text.get(start..end).unwrap_or_default().to_owned();
                part.pieces = cut(&sink.pieces, start, end);
                Text::Marked(*safe, Rc::new(part))
            }
        }
    }

    /// The text as [`map`](Text::map) makes it. A string that the author wrote inside a tag keeps its place.
    pub fn map_from(&self, origin: Origin, change: impl Fn(&str) -> String) -> Text<'r> {
        let before = self.as_str();
        match self.mark(origin) {
            mark @ Mark::Constant { .. } => {
                let after = change(before);
                if after == before { self.clone() } else { changed(after, mark, before).safe(self.is_safe()) }
            }
            _ => self.map(change),
        }
    }

    /// The text after a change that looks at the whole of it. It keeps its pieces if each keeps its length.
    pub fn map_whole(&self, origin: Origin, change: impl Fn(&str) -> String) -> Text<'r> {
        let before = self.as_str();
        let Some(pieces) = self.pieces() else { return self.map_from(origin, change) };
        let after = change(before);
        let same_length = pieces.len() == 1 || after.len() == before.len();
        let ends = pieces.iter().skip(1).map(|piece| piece.start as usize).chain([after.len()]);
        let mut sink = Sink::new(usize::MAX);
        for (at, (piece, end)) in pieces.iter().zip(ends).enumerate() {
            let start = piece.start as usize;
            let Some(part) = after.get(start..end).filter(|_| same_length) else {
                return Text::from(after).safe(self.is_safe());
            };
            let old_end = pieces.get(at + 1).map_or(before.len(), |next| next.start as usize);
            let old = &before[start..old_end];
            let mark = if part == old { piece.mark } else { piece.mark.changed(old.len()) };
            sink.pieces.push(Piece { start: piece.start, mark });
        }
        sink.text = after;
        Text::from(sink).safe(self.is_safe())
    }

    /// The text with every part changed by itself, for changes that look at one character at a time.
    pub fn map(&self, change: impl Fn(&str) -> String) -> Text<'r> {
        let Some(pieces) = self.pieces() else {
            let changed = change(self.as_str());
            return if changed == self.as_str() {
                self.clone()
            } else {
                Text::from(changed).safe(self.is_safe())
            };
        };
        let text = self.as_str();
        let mut sink = Sink::new(usize::MAX);
        for (at, piece) in pieces.iter().enumerate() {
            let end = pieces.get(at + 1).map_or(text.len(), |next| next.start as usize);
            let part = &text[piece.start as usize..end];
            let changed = change(part);
            let mark = if changed == part { piece.mark } else { piece.mark.changed(part.len()) };
            sink.pieces.push(Piece { start: sink.text.len() as u32, mark });
            sink.text.push_str(&changed);
        }
        Text::from(sink).safe(self.is_safe())
    }
}

/// What a filter made of a text with one mark.
fn changed<'r>(after: String, mark: Mark, before: &str) -> Text<'r> {
    let mut sink = Sink::new(usize::MAX);
    sink.pieces.push(Piece { start: 0, mark: mark.changed(before.len()) });
    sink.text = after;
    Text::from(sink)
}

/// Text that is put together from parts, each with its origin.
#[derive(Default)]
pub(crate) struct Builder {
    sink: Sink,
    /// Whether all parts have one origin and no pieces.
    origin: Option<Origin>,
    mixed: bool,
}

impl Builder {
    pub fn new() -> Builder {
        Builder { sink: Sink::new(usize::MAX), origin: None, mixed: false }
    }

    pub fn len(&self) -> usize {
        self.sink.text.len()
    }

    /// Adds text that has one origin.
    pub fn push(&mut self, text: &str, origin: Origin) {
        self.mark(text, unprinted(origin));
    }

    /// Adds text with a mark.
    pub fn mark(&mut self, text: &str, mark: Mark) {
        if text.is_empty() {
            return;
        }
        match (mark, self.origin) {
            (Mark::Value { tag: UNPRINTED, origin, .. }, None) => self.origin = Some(origin),
            (Mark::Value { tag: UNPRINTED, origin, .. }, Some(known)) => self.mixed |= known != origin,
            _ => self.mixed = true,
        }
        self.sink.pieces.push(Piece { start: self.sink.text.len() as u32, mark });
        self.sink.text.push_str(text);
    }

    /// Adds a text with the origins of its parts; `origin` if it has only one.
    pub fn push_text(&mut self, text: &Text<'_>, origin: Origin) {
        match text.pieces() {
            None => self.mark(text.as_str(), text.mark(origin)),
            Some(pieces) => {
                let base = self.sink.text.len() as u32;
                let moved = pieces.iter().map(|piece| Piece { start: piece.start + base, mark: piece.mark });
                self.sink.pieces.extend(moved);
                self.sink.text.push_str(text.as_str());
                self.mixed = true;
            }
        }
    }

    /// The text and its origin. `all` is where everything came from that took part: the origin of a text without parts.
    pub fn into_parts<'r>(self, all: Origin) -> (Text<'r>, Origin) {
        match self.mixed {
            true => (Text::from(self.sink), Origin::AUTHOR),
            false => (Text::from(self.sink.text), self.origin.unwrap_or(all)),
        }
    }

    /// The text alone.
    pub fn into_string(self) -> String {
        self.sink.text
    }
}
