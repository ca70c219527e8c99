//! Source texts: what was read from a file, and how to point into it.
//!
//! Everything that can go wrong in an author's file is reported as a [`Place`], and every literal byte of a rendered
//! prompt leads back to one. Positions that leave the engine are bytes of the *file*; inside the engine they are bytes
//! of the normalised text (no byte-order mark, `\n` line ends), and an [`OffsetMap`] joins the two.
//!
//! This module holds text and positions. It must not read files (see [`crate::files`]) or know any syntax.

use std::ops::Range;
use std::sync::Arc;

/// A text that an author wrote, under the name that people know it by.
#[derive(Debug)]
pub struct Source {
    name: String,
    text: String,
    file: OffsetMap,
    /// The line of the file on which the text begins; more than 1 for a text inside another file.
    first_line: usize,
    byte_order_mark: bool,
    carriage_returns: bool,
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
        Arc::new(Source { name: name.into(), text, file, first_line: 1, byte_order_mark, carriage_returns })
    }

    /// A text that stands inside another source as it is, such as a template in a Python string: its places are places
    /// of the outer file. Columns on its first line count from the beginning of the text.
    pub fn inside(outer: &Source, range: Range<usize>) -> Arc<Source> {
        let mut file = OffsetMap::default();
        file.skip(0, outer.file_range(range.clone()).start);
        Arc::new(Source {
            name: outer.name.clone(),
            text: outer.text[range.clone()].to_owned(),
            file,
            first_line: outer.line_column(range.start).0,
            byte_order_mark: false,
            carriage_returns: false,
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
        self.file.range(range)
    }

    /// Line and column of an offset into the text, both from 1; the column counts characters.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let before = &self.text[..floor_char_boundary(&self.text, offset)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + self.first_line, before[line_start..].chars().count() + 1)
    }

    /// The line of the file on which the text begins.
    pub fn first_line(&self) -> usize {
        self.first_line
    }

    /// A place in this source.
    pub fn place(self: &Arc<Self>, range: Range<usize>) -> Place {
        let start = floor_char_boundary(&self.text, range.start);
        let end = floor_char_boundary(&self.text, range.end).max(start);
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
        text.push('\n');
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('\n') {
            rest = after;
            map.skip(text.len(), 1);
        }
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

    /// The original offset of a derived one.
    pub fn offset(&self, derived: usize) -> usize {
        let index = self.shifts.partition_point(|(at, _)| *at <= derived);
        let shift = if index == 0 { 0 } else { self.shifts[index - 1].1 };
        derived.saturating_add_signed(shift)
    }

    /// The original range of a derived one: from its first byte to behind its last.
    pub fn range(&self, derived: Range<usize>) -> Range<usize> {
        let start = self.offset(derived.start);
        if derived.is_empty() {
            return start..start;
        }
        start..self.offset(derived.end - 1) + 1
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
    fn ranges_of_normalised_text_lead_back_to_the_bytes_of_the_file() {
        let raw = "\u{feff}a\r\nb\r\n\rc";
        let source = Source::new("t.md", raw);
        assert_eq!(source.text(), "a\nb\n\nc");
        for (index, wanted) in [(0, "a"), (2, "b"), (5, "c")] {
            assert_eq!(&raw[source.file_range(index..index + 1)], wanted);
        }
        assert_eq!(&raw[source.file_range(0..6)], "a\r\nb\r\n\rc");
    }

    #[test]
    fn insertions_shift_back_and_empty_ranges_stay_empty() {
        let mut map = OffsetMap::default();
        map.insert(5, 2);
        map.insert(9, 1);
        assert_eq!((map.offset(4), map.offset(5), map.offset(9)), (4, 3, 6));
        assert_eq!(map.range(5..5), 3..3);
    }
}
