//! The one place that text is written to: bytes, and pieces that say who wrote them.

use crate::ast::Statement;
use crate::error::{Error, Exceeded, Result};
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
    /// The author, whose bytes a filter changed, as `upper` does.
    Changed {
        /// Index of the template among the units.
        unit: u32,
        /// Offset of the first byte that the author wrote.
        offset: u32,
        /// How many bytes the author wrote.
        length: u32,
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
    /// A part of a text that the program wrote for an `include`.
    Foreign {
        /// The number that the program gave the text.
        text: u32,
        /// Offset of the first byte.
        offset: u32,
        /// The variables that it came from.
        origin: Origin,
    },
    /// What a filter of the program put around a value.
    Frame,
}

/// The tag of a value that no tag has printed yet.
pub(crate) const UNPRINTED: u32 = u32::MAX;

/// The mark of a value that no tag has printed yet.
pub(crate) fn unprinted(origin: Origin) -> Mark {
    Mark::Value { unit: 0, tag: UNPRINTED, origin }
}

impl Mark {
    /// The mark of the text from so many bytes behind the beginning on.
    fn skip(self, bytes: u32) -> Mark {
        match self {
            Mark::Data { unit, offset } => Mark::Data { unit, offset: offset + bytes },
            Mark::Constant { unit, offset } => Mark::Constant { unit, offset: offset + bytes },
            Mark::Foreign { text, offset, origin } => Mark::Foreign { text, offset: offset + bytes, origin },
            Mark::Changed { .. } | Mark::Value { .. } | Mark::Frame => self,
        }
    }

    /// The mark of what a filter made of so many bytes with this one: no longer what stands in the file.
    pub(crate) fn changed(self, bytes: usize) -> Mark {
        match self {
            Mark::Data { unit, offset } | Mark::Constant { unit, offset } => {
                Mark::Changed { unit, offset, length: bytes as u32 }
            }
            Mark::Changed { .. } => self,
            Mark::Value { .. } | Mark::Foreign { .. } | Mark::Frame => unprinted(self.origin()),
        }
    }

    pub(crate) fn origin(self) -> Origin {
        match self {
            Mark::Value { origin, .. } | Mark::Foreign { origin, .. } => origin,
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
    /// Whether it takes the text of a whole render, and not of a captured part.
    whole: bool,
    /// Whether the limit counts characters, and how many of them the first `counted` bytes have.
    characters: Option<usize>,
    counted: usize,
    /// Whether a tag that prints nothing leaves a piece.
    pub keep_empty: bool,
    /// Whether it keeps no pieces, because only the text is wanted.
    text_only: bool,
}

impl Sink {
    pub fn new(limit: usize) -> Sink {
        Sink { limit: limit.min(u32::MAX as usize / 2), ..Sink::default() }
    }

    /// A sink for what these statements write, with room for a short text.
    pub fn of(limit: usize, statements: &[Statement]) -> Sink {
        let mut sink = Sink::new(limit);
        if let (Some(first), Some(last)) = (statements.first(), statements.last()) {
            let written = last.range.end.saturating_sub(first.range.start) as usize;
            sink.text.reserve((written * 2).min(512));
            sink.pieces.reserve((statements.len() + 1).min(16));
        }
        sink
    }

    /// A sink for the text of a whole render, which counts characters if `characters` says how many there may be.
    pub fn whole(
        bytes: usize,
        characters: Option<usize>,
        expected: (usize, usize),
        keep_empty: bool,
    ) -> Sink {
        Sink {
            text: String::with_capacity(expected.0),
            pieces: Vec::with_capacity(expected.1),
            limit: characters.unwrap_or(bytes).min(u32::MAX as usize / 2),
            characters: characters.map(|_| 0),
            counted: 0,
            whole: true,
            keep_empty,
            text_only: false,
        }
    }

    /// The same for the text alone, in the memory of another text.
    pub fn text_only(bytes: usize, characters: Option<usize>, expected: usize, mut memory: String) -> Sink {
        memory.clear();
        memory.reserve(expected);
        Sink { text: memory, text_only: true, ..Sink::whole(bytes, characters, (0, 0), false) }
    }

    /// Notes who writes what follows.
    #[inline(always)]
    fn note(&mut self, mark: impl FnOnce() -> Mark) {
        if !self.text_only {
            self.pieces.push(Piece { start: self.text.len() as u32, mark: mark() });
        }
    }

    /// Notes a tag that prints nothing, where that is wanted.
    #[inline]
    pub fn empty(&mut self, mark: Mark) {
        if self.keep_empty {
            self.pieces.push(Piece { start: self.text.len() as u32, mark });
        }
    }

    pub fn write(&mut self, text: &str, mark: Mark) -> Result<()> {
        self.write_marked(text, || mark)
    }

    /// Writes text and makes its mark in place. To copy a mark is slower, because the copy waits until the processor has written the mark.
    #[inline(always)]
    pub fn write_marked(&mut self, text: &str, mark: impl Fn() -> Mark) -> Result<()> {
        if text.is_empty() {
            self.write_nothing(mark());
            return Ok(());
        }
        self.note(mark);
        self.text.push_str(text);
        self.check()
    }

    #[cold]
    fn write_nothing(&mut self, mark: Mark) {
        match mark {
            Mark::Value { .. } => self.empty(mark),
            // No bytes of the author, so it is a value that printed nothing.
            Mark::Constant { unit, offset } => {
                self.empty(Mark::Value { unit, tag: offset, origin: Origin::AUTHOR });
            }
            _ => {}
        }
    }

    /// Writes a number in decimal digits.
    #[inline]
    pub fn write_number(&mut self, number: i64, mark: Mark) -> Result<()> {
        self.note(|| mark);
        push_digits(number, &mut self.text);
        self.check()
    }

    #[inline]
    fn check(&mut self) -> Result<()> {
        if self.text.len() > self.limit { self.count() } else { Ok(()) }
    }

    /// Counts the characters, once the bytes alone exceed the limit.
    #[cold]
    fn count(&mut self) -> Result<()> {
        if !self.whole {
            let message = format!("a string would be longer than {} bytes", self.limit);
            return Err(Error::limit(Exceeded::Size, message));
        }
        let Some(before) = self.characters else {
            let message = format!("the text is longer than the limit of {} bytes", self.limit);
            return Err(Error::limit(Exceeded::Output, message));
        };
        let new = self.text.as_bytes()[self.counted..].iter().filter(|byte| **byte & 0xc0 != 0x80).count();
        self.characters = Some(before + new);
        self.counted = self.text.len();
        if before + new > self.limit {
            let message = format!("the text is longer than the limit of {} characters", self.limit);
            return Err(Error::limit(Exceeded::Output, message));
        }
        Ok(())
    }

    /// Writes marked text again. Values that no tag has printed yet get this tag.
    pub fn copy(&mut self, text: &str, pieces: &[Piece], printed: impl Fn(Mark) -> Mark) -> Result<()> {
        if !self.text_only {
            let base = self.text.len() as u32;
            let moved = |piece: &Piece| Piece { start: piece.start + base, mark: printed(piece.mark) };
            self.pieces.extend(pieces.iter().map(moved));
        }
        self.text.push_str(text);
        self.check()
    }
}

/// A number in decimal digits, without the machinery of formats.
fn push_digits(number: i64, out: &mut String) {
    let mut buffer = [0; 20];
    let mut at = buffer.len();
    let mut rest = number.unsigned_abs();
    loop {
        at -= 1;
        buffer[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if number < 0 {
        out.push('-');
    }
    for digit in &buffer[at..] {
        out.push(char::from(*digit));
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

#[cfg(test)]
mod tests {
    use super::push_digits;

    #[test]
    fn digits_are_those_of_the_standard_library() {
        for number in [0, 7, -7, 10, 99, 100, i64::MAX, i64::MIN, 1_234_567_890_123] {
            let mut out = String::new();
            push_digits(number, &mut out);
            assert_eq!(out, number.to_string());
        }
    }
}
