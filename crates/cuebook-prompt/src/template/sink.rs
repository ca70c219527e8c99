//! The one place that rendered text is written to.
//!
//! A sink holds the text and, beside it, pieces that cover it without gaps; some may be empty. A piece says who wrote its bytes: an author's
//! literal (unit and offset), an emission of a value (unit and the place that emitted it), a hook, or a frame of the engine. It
//! knows nothing of variables or files: `cuebook::Rendered` joins a piece to those on request.

use std::borrow::Cow;
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
    /// The author, whose text a filter changed.
    Changed {
        /// Index of the unit.
        unit: u32,
        /// The number of the change in the unit, as [`Unit::changed`](super::unit::Unit::changed) takes it.
        change: u32,
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

impl Writer {
    /// Whether an author wrote it.
    pub fn is_author(self) -> bool {
        matches!(self, Writer::Literal { .. } | Writer::Changed { .. })
    }
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

    /// Writes what a filter made of text of the author.
    pub fn changed(&mut self, unit: u32, change: u32, text: &[u8]) -> Result<(), Full> {
        self.push(Writer::Changed { unit, change }, text)
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

    /// Writes text of the engine. Several writes of one frame in a row make one piece.
    pub fn frame(&mut self, frame: u32, text: &[u8]) -> Result<(), Full> {
        let writer = Writer::Frame { frame };
        if self.pieces.last().is_some_and(|piece| piece.writer == writer) {
            self.text.extend_from_slice(text);
            return self.check();
        }
        self.push(writer, text)
    }

    /// Writes text of a hook.
    pub fn hook(&mut self, editor: u32, text: &[u8]) -> Result<(), Full> {
        self.push(Writer::Hook { editor }, text)
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
        self.characters += characters(&self.text[self.counted..]);
        self.counted = self.text.len();
        if self.characters > self.limit { Err(Full) } else { Ok(()) }
    }

    /// Writes again what another sink wrote: the text that these pieces cover, from `skip` bytes behind its beginning on.
    /// None of the pieces may end before that.
    pub fn copy(&mut self, text: &str, pieces: &[Piece], skip: usize) -> Result<(), Full> {
        let Some(first) = pieces.first() else { return Ok(()) };
        let (from, to) = (first.start + skip as u32, self.text.len() as u32);
        let moved = |piece: &Piece| Piece { start: piece.start.max(from) - from + to, writer: piece.writer };
        self.pieces.extend(pieces.iter().map(moved));
        self.text.extend_from_slice(&text.as_bytes()[skip..]);
        self.fresh = true;
        self.check()
    }

    /// The text as it stands.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.text)
    }

    /// How many pieces there are.
    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// How many bytes have been written.
    #[inline]
    pub fn len(&self) -> usize {
        self.text.len()
    }

    /// Whether the last byte is this one.
    #[doc(hidden)]
    pub fn ends_with(&self, byte: u8) -> bool {
        self.text.last() == Some(&byte)
    }

    /// Whether nothing has been written.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes back the characters at the end that `is_space` knows, but nothing that was written before the offset `start`.
    /// A piece that loses all its bytes goes, except for one of a value where empty ones are kept.
    #[inline]
    pub fn trim_end_from(&mut self, start: usize, is_space: impl Fn(char) -> bool) {
        let mut end = self.text.len();
        while end > start
            && let Some(last) = last_character(&self.text[start..end])
            && is_space(last)
        {
            end -= last.len_utf8();
        }
        if end < self.text.len() {
            self.cut(end);
        }
    }

    fn cut(&mut self, end: usize) {
        if end < self.counted {
            self.characters -= characters(&self.text[end..self.counted]);
            self.counted = end;
        }
        self.text.truncate(end);
        let first = self.pieces.partition_point(|piece| (piece.start as usize) < end);
        let mut kept = first;
        for index in first..self.pieces.len() {
            let writer = self.pieces[index].writer;
            if self.keep_empty && matches!(writer, Writer::Value { .. }) {
                self.pieces[kept] = Piece { start: end as u32, writer };
                kept += 1;
            }
        }
        self.pieces.truncate(kept);
        // What the emission wrote may be gone, so a further write of it needs a piece of its own.
        self.fresh = true;
    }

    /// Takes back everything from an offset on, which must be one that [`Sink::len`] gave.
    pub fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
        self.pieces.retain(|piece| (piece.start as usize) < length);
        self.fresh = true;
        if self.counted > length {
            (self.characters, self.counted) = (0, 0);
        }
    }

    /// The text and its pieces.
    pub fn finish(self) -> (String, Vec<Piece>) {
        let text = String::from_utf8(self.text)
            // Engines write whole strings; should one ever not, the text stays text.
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        (text, self.pieces)
    }
}

/// How many characters begin in these bytes.
fn characters(text: &[u8]) -> usize {
    text.iter().filter(|byte| !is_continuation(**byte)).count()
}

/// A continuation byte of UTF-8 begins with the bits 10.
fn is_continuation(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// The last character of some text; `None` if the bytes do not end with one.
#[inline]
fn last_character(text: &[u8]) -> Option<char> {
    match text.last()? {
        byte if byte.is_ascii() => Some(char::from(*byte)),
        _ => {
            let start = text.iter().rposition(|byte| !is_continuation(*byte))?;
            std::str::from_utf8(&text[start..]).ok()?.chars().next()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_the_text_one_per_emission() {
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
    fn an_empty_emission_can_leave_an_empty_piece() {
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
    fn a_sink_copies_the_rest_of_another_sink() {
        let mut sink = Sink::new(100, 0, 0);
        sink.literal(0, 0, b"before").unwrap();
        sink.frame(1, b"\n\n# Title\n\n").unwrap();
        sink.begin_value(0, 9);
        sink.value(b"Ada").unwrap();
        let (text, pieces) = sink.finish();
        let copied = |begin: &[u8], skip| {
            let mut sink = Sink::new(100, 0, 0);
            sink.literal(1, 0, begin).unwrap();
            sink.copy(&text[6..], &pieces[1..], skip).unwrap();
            sink.value(b"!").unwrap();
            assert_eq!(sink.pieces(), sink.pieces.len());
            starts(sink)
        };
        assert_eq!(copied(b"", 2), ("# Title\n\nAda!".to_owned(), vec![0, 9, 12]));
        assert_eq!(copied(b"other", 0), ("other\n\n# Title\n\nAda!".to_owned(), vec![0, 5, 16, 19]));
        assert_eq!(Sink::new(3, 0, 0).copy(&text[6..], &pieces[1..], 0), Err(Full));
    }

    #[test]
    fn the_limit_counts_characters_and_not_bytes() {
        let mut sink = Sink::new(3, 0, 0);
        sink.literal(0, 0, "あいう".as_bytes()).unwrap();
        assert_eq!(sink.literal(0, 9, "え".as_bytes()), Err(Full));
    }

    fn starts(sink: Sink) -> (String, Vec<u32>) {
        let (text, pieces) = sink.finish();
        (text, pieces.iter().map(|piece| piece.start).collect())
    }

    #[test]
    fn white_space_at_the_end_is_taken_back_with_its_pieces() {
        let write = |mut sink: Sink| {
            sink.literal(0, 0, b"kept \n").unwrap();
            let start = sink.len();
            sink.literal(1, 0, b"a ").unwrap();
            sink.begin_value(1, 2);
            sink.value("b\u{3000}\u{a0}".as_bytes()).unwrap();
            sink.begin_value(1, 4);
            sink.value(b" \t").unwrap();
            sink.literal(1, 6, b"\n\n").unwrap();
            sink.begin_value(1, 8);
            sink.value(b" ").unwrap();
            sink.trim_end_from(start, char::is_whitespace);
            starts(sink)
        };
        assert_eq!(write(Sink::new(100, 0, 0)), ("kept \na b".to_owned(), vec![0, 6, 8]));
        assert_eq!(
            write(Sink::new(100, 0, 0).keeping_empty()),
            ("kept \na b".to_owned(), vec![0, 6, 8, 9, 9]),
            "the empty pieces of values stay, at the end"
        );
    }

    #[test]
    fn nothing_before_the_start_is_taken_back() {
        let mut sink = Sink::new(100, 0, 0);
        sink.literal(0, 0, b"a  ").unwrap();
        sink.literal(1, 0, b"  ").unwrap();
        sink.trim_end_from(3, char::is_whitespace);
        assert_eq!((sink.len(), sink.is_empty()), (3, false));
        sink.trim_end_from(3, char::is_whitespace);
        sink.trim_end_from(99, char::is_whitespace);
        sink.literal(2, 0, b"b").unwrap();
        assert_eq!(starts(sink), ("a  b".to_owned(), vec![0, 3]));
    }

    #[test]
    fn a_write_after_taking_back_has_a_piece_of_its_own() {
        let mut sink = Sink::new(100, 0, 0);
        sink.begin_value(0, 1);
        sink.value(b" ").unwrap();
        sink.trim_end_from(0, char::is_whitespace);
        sink.value(b"x").unwrap();
        assert_eq!(starts(sink), ("x".to_owned(), vec![0]));
    }

    #[test]
    fn characters_that_are_taken_back_count_no_more() {
        let mut sink = Sink::new(3, 0, 0);
        for _ in 0..3 {
            sink.literal(0, 0, "あ\u{3000}\u{3000}".as_bytes()).unwrap();
            sink.trim_end_from(0, |character| character == 'あ' || character.is_whitespace());
        }
        sink.literal(0, 0, "あ\u{3000}\u{3000}".as_bytes()).unwrap();
        assert_eq!(sink.literal(0, 0, b"x"), Err(Full));
    }
}
