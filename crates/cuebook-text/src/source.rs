//! Source texts: what was read from a file, and how to point into it.
//!
//! Everything that can go wrong in an author's file is reported as a [`Place`], and every literal byte of a rendered
//! prompt leads back to one. Positions that leave the engine are bytes of the *file*; inside the engine they are bytes
//! of the normalised text (no byte-order mark, `\n` line ends), and an [`OffsetMap`] joins the two.
//!
//! This module holds text and positions. It must not read files (see [`crate::files`]) or know any syntax.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A text that an author wrote, under the name that people know it by.
#[derive(Debug)]
pub struct Source {
    name: String,
    text: String,
    file: OffsetMap,
    /// The source that the text is a part of, and where it begins there.
    outer: Option<(Arc<Source>, usize)>,
    byte_order_mark: bool,
    carriage_returns: bool,
    /// Where lines begin, for those who ask for places.
    lines: OnceLock<Lines>,
}

/// Where the lines of a text begin, and how many characters lie before some of its places: a report may ask for the line and column
/// of thousands of places, and must not count from the beginning each time.
#[derive(Debug, Default)]
struct Lines {
    /// The offset of each line.
    starts: Vec<usize>,
    /// The characters before each block.
    characters: Vec<usize>,
}

impl Lines {
    /// Bytes of a block.
    const BLOCK: usize = 512;

    fn of(text: &str) -> Lines {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1)).collect();
        let mut before = 0;
        let characters = text.as_bytes().chunks(Lines::BLOCK).map(|block| {
            let here = before;
            before += begun(block);
            here
        });
        Lines { starts, characters: characters.collect() }
    }

    fn line_column(&self, text: &str, offset: usize) -> (usize, usize) {
        let line = self.starts.partition_point(|start| *start <= offset);
        let start = self.starts.get(line.saturating_sub(1)).copied().unwrap_or(0);
        (line, self.before(text, offset) - self.before(text, start) + 1)
    }

    /// The characters before an offset.
    fn before(&self, text: &str, offset: usize) -> usize {
        let block = offset / Lines::BLOCK;
        let known = self.characters.get(block).copied();
        match known {
            Some(known) => known + begun(&text.as_bytes()[block * Lines::BLOCK..offset]),
            // Behind the last block there is nothing.
            None => self.characters.last().map_or(0, |last| {
                last + begun(&text.as_bytes()[(self.characters.len() - 1) * Lines::BLOCK..offset])
            }),
        }
    }
}

/// How many characters begin in some bytes.
fn begun(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

impl Source {
    /// A source from text as it lies in a file: a byte-order mark is dropped and line ends become `\n`, as Jinja2 and
    /// Python do when they read a template.
    pub fn new(name: impl Into<String>, raw: impl Into<String>) -> Arc<Source> {
        let raw = raw.into();
        let byte_order_mark = raw.starts_with('\u{feff}');
        let carriage_returns = raw.contains('\r');
        let (text, file) =
            if byte_order_mark || carriage_returns { normalise(&raw) } else { (raw, OffsetMap::default()) };
        Arc::new(Source {
            name: name.into(),
            text,
            file,
            outer: None,
            byte_order_mark,
            carriage_returns,
            lines: OnceLock::new(),
        })
    }

    /// A source whose text stays as it is, with its line ends, for templates that do not come from a file.
    pub fn verbatim(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        let text = text.into();
        Arc::new(Source {
            name: name.into(),
            byte_order_mark: false,
            carriage_returns: text.contains('\r'),
            text,
            file: OffsetMap::default(),
            outer: None,
            lines: OnceLock::new(),
        })
    }

    /// A text that stands inside another source as it is, such as a template in a Python string: its places are places
    /// of the outer source.
    pub fn inside(outer: &Arc<Source>, range: Range<usize>) -> Arc<Source> {
        Arc::new(Source {
            name: outer.name.clone(),
            text: outer.text[range.clone()].to_owned(),
            file: OffsetMap::default(),
            outer: Some((outer.clone(), range.start)),
            byte_order_mark: false,
            carriage_returns: false,
            lines: OnceLock::new(),
        })
    }

    /// The same text under another name.
    pub fn renamed(&self, name: String) -> Arc<Source> {
        Arc::new(Source {
            name,
            text: self.text.clone(),
            file: self.file.clone(),
            outer: self.outer.clone(),
            byte_order_mark: self.byte_order_mark,
            carriage_returns: self.carriage_returns,
            lines: OnceLock::new(),
        })
    }

    /// The name for people: a path relative to the project's root where there is one, with `/` between the parts.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The normalised text. Positions inside the engine count its bytes.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the file began with a byte-order mark.
    pub fn has_byte_order_mark(&self) -> bool {
        self.byte_order_mark
    }

    /// Whether the file had carriage returns.
    pub fn has_carriage_returns(&self) -> bool {
        self.carriage_returns
    }

    /// The bytes of the file that a range of the text stands for.
    pub fn file_range(&self, range: Range<usize>) -> Range<usize> {
        // Only the outer source knows what was dropped inside the part, such as carriage returns.
        if let Some((outer, start)) = &self.outer {
            return outer.file_range(start + range.start..start + range.end);
        }
        let file = self.file.range(range.clone());
        // A newline stands for its carriage return as well, also as the first byte.
        let newline = !range.is_empty() && self.text.as_bytes().get(range.start) == Some(&b'\n');
        let dropped = usize::from(newline && self.file.dropped_before(range.start) == 1);
        file.start - dropped..file.end
    }

    /// Line and column of an offset into the text, both from 1; the column counts characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        if let Some((outer, start)) = &self.outer {
            return outer.line_column(start + offset.min(self.text.len()));
        }
        let lines = self.lines.get_or_init(|| Lines::of(&self.text));
        lines.line_column(&self.text, floor_char_boundary(&self.text, offset))
    }

    /// The whole lines that a range of the text touches, without the last newline.
    pub fn lines_of(&self, range: Range<usize>) -> Range<usize> {
        let starts = &self.lines.get_or_init(|| Lines::of(&self.text)).starts;
        let first = starts.partition_point(|start| *start <= range.start);
        let behind = starts.partition_point(|start| *start <= range.end);
        let start = starts.get(first.saturating_sub(1)).copied().unwrap_or(0);
        start..starts.get(behind).map_or(self.text.len(), |next| next - 1)
    }

    /// A place in this source.
    pub fn place(self: &Arc<Self>, range: Range<usize>) -> Place {
        let start = floor_char_boundary(&self.text, range.start);
        let end = floor_char_boundary(&self.text, range.end).max(start);
        if let Some((outer, offset)) = &self.outer {
            return outer.place(offset + start..offset + end);
        }
        Place { source: self.clone(), range: start..end }
    }
}

fn floor_char_boundary(text: &str, offset: usize) -> usize {
    let mut offset = offset.min(text.len());
    while !text.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

fn normalise(raw: &str) -> (String, OffsetMap) {
    let mut text = String::with_capacity(raw.len());
    let mut map = OffsetMap::default();
    let mut rest = raw;
    if let Some(without) = raw.strip_prefix('\u{feff}') {
        rest = without;
        map.skip(0, '\u{feff}'.len_utf8());
    }
    while let Some(at) = rest.find('\r') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('\n') {
            // The carriage return is left out, and the newline behind it stays.
            map.skip(text.len(), 1);
            rest = after;
        }
        text.push('\n');
    }
    text.push_str(rest);
    (text, map)
}

/// Where the bytes of a derived text lie in the text that it was made from.
///
/// Both directions of change are a shift from some offset on: bytes that were dropped shift forwards, bytes that were
/// inserted shift backwards.
#[derive(Debug, Clone, Default)]
pub struct OffsetMap {
    /// Derived offset from which on the shift holds, and the shift; ordered by offset.
    shifts: Vec<(usize, isize)>,
}

impl OffsetMap {
    /// Notes that `count` bytes of the original were left out before the derived offset `at`.
    pub fn skip(&mut self, at: usize, count: usize) {
        let shift = self.last_shift() + count as isize;
        self.shifts.push((at, shift));
    }

    /// Notes that `count` bytes which the original does not have were inserted before the derived offset `at`.
    pub fn insert(&mut self, at: usize, count: usize) {
        self.replace(at, 0, count);
    }

    /// Notes that `old` bytes of the original stand as `new` other bytes before the derived offset `at`.
    pub fn replace(&mut self, at: usize, old: usize, new: usize) {
        let shift = self.last_shift() + old as isize - new as isize;
        self.shifts.push((at, shift));
    }

    fn last_shift(&self) -> isize {
        self.shifts.last().map_or(0, |(_, shift)| *shift)
    }

    /// How many bytes of the original were left out directly before the derived offset, by the last change there.
    fn dropped_before(&self, derived: usize) -> isize {
        let index = self.shifts.partition_point(|(at, _)| *at <= derived);
        match self.shifts[..index] {
            [.., (_, before), (at, shift)] if at == derived => shift - before,
            [(at, shift)] if at == derived => shift,
            _ => 0,
        }
    }

    /// The original offset of a derived one. What was inserted lies where it was inserted.
    pub fn offset(&self, derived: usize) -> usize {
        self.locate(derived).0
    }

    /// The original range of a derived one: from its first byte to behind its last. Inserted bytes take up no room.
    pub fn range(&self, derived: Range<usize>) -> Range<usize> {
        let (start, _) = self.locate(derived.start);
        if derived.is_empty() {
            return start..start;
        }
        let (last, inserted) = self.locate(derived.end - 1);
        start..if inserted { last } else { last + 1 }
    }

    /// The original offset of a derived one, and whether the byte there was inserted.
    fn locate(&self, derived: usize) -> (usize, bool) {
        let index = self.shifts.partition_point(|(at, _)| *at <= derived);
        let shift = if index == 0 { 0 } else { self.shifts[index - 1].1 };
        let offset = derived.saturating_add_signed(shift);
        match self.shifts.get(index) {
            Some((at, next)) if at.saturating_add_signed(*next) <= offset => {
                (at.saturating_add_signed(*next), true)
            }
            _ => (offset, false),
        }
    }
}

/// A range of bytes in a source, for errors and origins.
#[derive(Debug, Clone)]
pub struct Place {
    source: Arc<Source>,
    range: Range<usize>,
}

impl Place {
    /// The source that is pointed into.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The range in the source's normalised text.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The same place in a source of another name.
    pub fn renamed(&self, name: String) -> Place {
        Place { source: self.source.renamed(name), range: self.range.clone() }
    }

    /// Whether it is the same place as another.
    pub fn is_same(&self, other: &Place) -> bool {
        Arc::ptr_eq(&self.source, &other.source) && self.range == other.range
    }

    /// The source's name.
    pub fn file(&self) -> &str {
        self.source.name()
    }

    /// The line, from 1.
    pub fn line(&self) -> usize {
        self.source.line_column(self.range.start).0
    }

    /// The column in characters, from 1.
    pub fn column(&self) -> usize {
        self.source.line_column(self.range.start).1
    }

    /// The text that is pointed at.
    pub fn text(&self) -> &str {
        &self.source.text()[self.range.clone()]
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (line, column) = self.source.line_column(self.range.start);
        write!(f, "{}:{line}:{column}", self.source.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        let source = Source::new("t.md", "erste\nüber {{ x }}\n");
        let at = source.text().find("x").unwrap();
        assert_eq!(source.place(at..at + 1).to_string(), "t.md:2:9");
    }

    #[test]
    fn a_place_in_a_part_of_a_file_is_a_place_of_the_file() {
        let file = Source::new("prompt.py", "A = 1\r\nTEMPLATE = \"Hi {{ x }}\"\r\n");
        let start = file.text().find("Hi").unwrap();
        let part = Source::inside(&file, start..start + 10);
        let place = part.place(6..7);
        assert_eq!((place.to_string().as_str(), place.text()), ("prompt.py:2:19", "x"));
        assert_eq!(part.line_column(6), (2, 19));
        assert_eq!(part.file_range(6..7), file.file_range(place.range()));
    }

    #[test]
    fn ranges_of_normalised_text_lead_back_to_the_bytes_of_the_file() {
        let raw = "\u{feff}a\r\nb\r\n\rc";
        let source = Source::new("t.md", raw);
        assert_eq!(source.text(), "a\nb\n\nc");
        for (index, wanted) in [(0, "a"), (2, "b"), (5, "c")] {
            assert_eq!(&raw[source.file_range(index..index + 1)], wanted);
        }
        assert_eq!(&raw[source.file_range(0..6)], "a\r\nb\r\n\rc");
        assert_eq!((&raw[source.file_range(1..3)], &raw[source.file_range(4..6)]), ("\r\nb", "\rc"));
        let marked = Source::new("t.md", "\u{feff}\na");
        assert_eq!(marked.file_range(0..2), 3..5, "a byte-order mark is no part of the newline behind it");
    }

    #[test]
    fn a_verbatim_source_keeps_its_line_ends() {
        let source = Source::verbatim("t.md", "a\r\nb");
        assert_eq!((source.text(), source.file_range(3..4)), ("a\r\nb", 3..4));
        assert_eq!(source.place(3..4).to_string(), "t.md:2:1");
    }

    #[test]
    fn insertions_shift_back_and_empty_ranges_stay_empty() {
        let mut map = OffsetMap::default();
        map.insert(5, 2);
        map.insert(9, 1);
        assert_eq!((map.offset(2), map.offset(5), map.offset(9)), (2, 3, 6));
        assert_eq!((map.offset(3), map.offset(4)), (3, 3), "inserted bytes lie where they were inserted");
        assert_eq!((map.range(1..5), map.range(3..5), map.range(4..6)), (1..3, 3..3, 3..4));
        assert_eq!(map.range(5..5), 3..3);
    }
}
