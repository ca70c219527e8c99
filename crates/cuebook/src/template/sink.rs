//! The one place that rendered text is written to.
//!
//! A sink holds the text and, beside it, pieces that cover it without gaps; some may be empty. A piece says who wrote its bytes: an author's
//! literal (unit and offset), an emission of a value (unit and the place that emitted it), a hook, or a frame of the engine. It
//! knows nothing of variables or files: [`crate::render::Rendered`] joins a piece to those when somebody asks.

use std::fmt;
/// Who wrote a piece of text, in numbers that only the engine's tables give a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writer {
    /// The author: bytes from `offset` on of the unit's text.
    Literal {
        /// Index of the unit.
        unit: u32,
        /// Offset of the first byte.
        offset: u32,
    },
    /// A value, written by the emission that is known by `offset`.
    Value {
        /// Index of the unit.
        unit: u32,
        /// The mark of the emission in the unit.
        offset: u32,
    },
    /// A hook that changed the text.
    Hook {
        /// Index into the hooks that changed it.
        editor: u32,
    },
    /// The engine itself.
    Frame {
        /// Index into the frames' names.
        frame: u32,
    },
}

/// A run of text with one writer. It ends where the next piece begins, which may be where it begins itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Offset of its first byte in the text.
    pub start: u32,
    /// Who wrote it.
    pub writer: Writer,
}

/// The text came to more characters than the sink takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the rendered text is longer than the limit")
    }
}

impl std::error::Error for Full {}

/// Text under construction, with the writer of every byte.
#[derive(Debug)]
pub struct Sink {
    text: Vec<u8>,
    pieces: Vec<Piece>,
    /// The emission that writes next, and whether it has written nothing yet.
    emission: (u32, u32),
    fresh: bool,
    /// Whether an emission that writes nothing leaves a piece all the same.
    keep_empty: bool,
    limit: usize,
    /// Characters in the first `counted` bytes; counted only once the bytes alone could exceed the limit.
    characters: usize,
    counted: usize,
}

impl Sink {
    /// A sink that takes at most `limit` characters, with room for about as much as the last render needed.
    pub fn new(limit: usize, expected_bytes: usize, expected_pieces: usize) -> Sink {
        Sink {
            text: Vec::with_capacity(expected_bytes),
            pieces: Vec::with_capacity(expected_pieces),
            emission: (0, 0),
            fresh: true,
            keep_empty: false,
            limit: limit.min(u32::MAX as usize / 4),
            characters: 0,
            counted: 0,
        }
    }

    /// The same sink, in which every emission leaves a piece, also one that writes nothing. Such a piece has no bytes: the
    /// next one begins where it does.
    pub fn keeping_empty(mut self) -> Sink {
        self.keep_empty = true;
        self
    }

    /// Writes text of the author.
    #[inline]
    pub fn literal(&mut self, unit: u32, offset: u32, text: &[u8]) -> Result<(), Full> {
        self.push(Writer::Literal { unit, offset }, text)
    }

    /// From here on, values are written by this emission.
    #[inline]
    pub fn begin_value(&mut self, unit: u32, offset: u32) {
        self.emission = (unit, offset);
        self.fresh = true;
        if self.keep_empty {
            self.pieces.push(Piece { start: self.text.len() as u32, writer: Writer::Value { unit, offset } });
            self.fresh = false;
        }
    }

    /// Writes text that came from a value. Several writes of one emission make one piece.
    #[inline]
    pub fn value(&mut self, text: &[u8]) -> Result<(), Full> {
        let (unit, offset) = self.emission;
        let writer = Writer::Value { unit, offset };
        if !self.fresh && self.pieces.last().is_some_and(|piece| piece.writer == writer) {
            self.text.extend_from_slice(text);
            return self.check();
        }
        self.fresh = false;
        self.push(writer, text)
    }

    /// Writes text of the engine.
    pub fn frame(&mut self, frame: u32, text: &[u8]) -> Result<(), Full> {
        self.push(Writer::Frame { frame }, text)
    }

    #[inline]
    fn push(&mut self, writer: Writer, text: &[u8]) -> Result<(), Full> {
        if text.is_empty() {
            return Ok(());
        }
        // The limit keeps the text far below 4 GiB, so the offset fits.
        self.pieces.push(Piece { start: self.text.len() as u32, writer });
        self.text.extend_from_slice(text);
        self.check()
    }

    #[inline]
    fn check(&mut self) -> Result<(), Full> {
        if self.text.len() <= self.limit { Ok(()) } else { self.count() }
    }

    /// There are never more characters than bytes, so this runs only for long texts that are not ASCII.
    #[cold]
    fn count(&mut self) -> Result<(), Full> {
        let new = &self.text[self.counted..];
        // A continuation byte of UTF-8 begins with the bits 10.
        self.characters += new.iter().filter(|byte| (**byte & 0xc0) != 0x80).count();
        self.counted = self.text.len();
        if self.characters > self.limit { Err(Full) } else { Ok(()) }
    }

    /// The text and its pieces.
    pub fn finish(self) -> (String, Vec<Piece>) {
        let text = String::from_utf8(self.text)
            // Engines write whole strings; should one ever not, the text stays text.
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        (text, self.pieces)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_text_and_writes_of_one_emission_are_one_piece() {
        let mut sink = Sink::new(100, 0, 0);
        sink.literal(0, 4, b"Dear ").unwrap();
        sink.begin_value(0, 9);
        sink.value(b"Al").unwrap();
        sink.value(b"an").unwrap();
        sink.begin_value(0, 9);
        sink.value(b"!").unwrap();
        sink.frame(1, b"\n").unwrap();
        let (text, pieces) = sink.finish();
        assert_eq!(text, "Dear Alan!\n");
        let starts: Vec<u32> = pieces.iter().map(|piece| piece.start).collect();
        assert_eq!(starts, [0, 5, 9, 10]);
    }

    #[test]
    fn an_emission_that_writes_nothing_leaves_an_empty_piece_where_that_is_wanted() {
        let write = |mut sink: Sink| {
            sink.begin_value(0, 1);
            sink.literal(0, 4, b"ab").unwrap();
            sink.begin_value(0, 2);
            sink.value(b"").unwrap();
            sink.begin_value(0, 3);
            sink.value(b"c").unwrap();
            sink.value(b"d").unwrap();
            sink.begin_value(0, 3);
            let starts: Vec<u32> = sink.finish().1.iter().map(|piece| piece.start).collect();
            starts
        };
        assert_eq!(write(Sink::new(100, 0, 0)), [0, 2]);
        assert_eq!(write(Sink::new(100, 0, 0).keeping_empty()), [0, 0, 2, 2, 4]);
    }

    #[test]
    fn the_limit_counts_characters_and_not_bytes() {
        let mut sink = Sink::new(3, 0, 0);
        sink.literal(0, 0, "あいう".as_bytes()).unwrap();
        assert_eq!(sink.literal(0, 9, "え".as_bytes()), Err(Full));
    }
}
