//! The one place that text is written to: bytes, and pieces that say who wrote them.

use crate::error::{Error, ErrorKind, Result};
use crate::origin::Origin;

/// Who wrote a piece of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// The author, outside of tags: bytes from `offset` on of the unit's text.
    Data {
        /// Index of the template among the units.
        unit: u32,
        /// Offset of the first byte.
        offset: u32,
    },
    /// The author, in a string inside of a tag: bytes from `offset` on.
    Constant {
        /// Index of the template among the units.
        unit: u32,
        /// Offset of the first byte.
        offset: u32,
    },
    /// A value that a tag printed.
    Value {
        /// Index of the template among the units.
        unit: u32,
        /// Offset of the tag.
        tag: u32,
        /// Where the value came from.
        origin: Origin,
    },
}

impl Mark {
    /// The mark of the text from so many bytes behind the beginning on.
    fn skip(self, bytes: u32) -> Mark {
        match self {
            Mark::Data { unit, offset } => Mark::Data { unit, offset: offset + bytes },
            Mark::Constant { unit, offset } => Mark::Constant { unit, offset: offset + bytes },
            Mark::Value { .. } => self,
        }
    }

    pub(crate) fn origin(self) -> Origin {
        match self {
            Mark::Value { origin, .. } => origin,
            _ => Origin::AUTHOR,
        }
    }
}

/// A run of text with one mark. It ends where the next piece begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Offset of its first byte in the text.
    pub start: u32,
    /// Who wrote it.
    pub mark: Mark,
}

/// Text under construction.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sink {
    pub text: String,
    pub pieces: Vec<Piece>,
    limit: usize,
}

impl Sink {
    pub fn new(limit: usize) -> Sink {
        Sink { text: String::new(), pieces: Vec::new(), limit: limit.min(u32::MAX as usize / 2) }
    }

    #[inline]
    pub fn write(&mut self, text: &str, mark: Mark) -> Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.pieces.push(Piece { start: self.text.len() as u32, mark });
        self.text.push_str(text);
        self.check()
    }

    #[inline]
    fn check(&self) -> Result<()> {
        if self.text.len() > self.limit { Err(self.full()) } else { Ok(()) }
    }

    #[cold]
    fn full(&self) -> Error {
        Error::new(ErrorKind::Limit, format!("the text is longer than the limit of {} bytes", self.limit))
    }

    /// Writes marked text again. Values that no tag has printed yet get this tag.
    pub fn copy(&mut self, text: &str, pieces: &[Piece], printed: impl Fn(Mark) -> Mark) -> Result<()> {
        let base = self.text.len() as u32;
        self.pieces.extend(
            pieces.iter().map(|piece| Piece { start: piece.start + base, mark: printed(piece.mark) }),
        );
        self.text.push_str(text);
        self.check()
    }
}

/// The pieces of a part of a text, moved to its beginning.
pub(crate) fn cut(pieces: &[Piece], start: usize, end: usize) -> Vec<Piece> {
    if start >= end {
        return Vec::new();
    }
    let (start, end) = (start as u32, end as u32);
    let first = pieces.partition_point(|piece| piece.start <= start).saturating_sub(1);
    let inside = pieces[first..].iter().take_while(|piece| piece.start < end);
    inside
        .map(|piece| match start.checked_sub(piece.start) {
            Some(skip) => Piece { start: 0, mark: piece.mark.skip(skip) },
            None => Piece { start: piece.start - start, mark: piece.mark },
        })
        .collect()
}
