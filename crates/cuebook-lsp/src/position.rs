//! Positions and addresses of the protocol: lines and UTF-16 columns from 0, and `file:` URIs.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value as Json, json};

/// The byte of a position.
pub(crate) fn offset(text: &str, position: &Json) -> Option<usize> {
    let line = usize::try_from(position["line"].as_u64()?).ok()?;
    let column = usize::try_from(position["character"].as_u64()?).ok()?;
    let start = match line {
        0 => 0,
        line => text.match_indices('\n').nth(line - 1).map(|(at, _)| at + 1)?,
    };
    let end = text[start..].find('\n').map_or(text.len(), |at| start + at);
    let mut units = 0;
    for (at, letter) in text[start..end].char_indices() {
        if units >= column {
            return Some(start + at);
        }
        units += letter.len_utf16();
    }
    Some(end)
}

/// How many bytes lie between two counts of [`Positions`].
const BLOCK: usize = 128;

/// Positions of bytes. They are asked for in any order, and each takes the same time however long its line is.
pub(crate) struct Positions {
    text: Arc<str>,
    /// Where lines begin.
    lines: Vec<usize>,
    /// For each block, the units of UTF-16 before the first letter that begins in it.
    units: Vec<usize>,
}

impl Positions {
    pub(crate) fn of(text: impl Into<Arc<str>>) -> Positions {
        let text = text.into();
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        let (mut units, mut count) = (Vec::with_capacity(text.len() / BLOCK + 1), 0);
        for (at, letter) in text.char_indices() {
            if at >= units.len() * BLOCK {
                units.push(count);
            }
            count += letter.len_utf16();
        }
        if text.len() >= units.len() * BLOCK {
            units.push(count);
        }
        Positions { text, lines, units }
    }

    /// The units of UTF-16 before a letter.
    fn units(&self, offset: usize) -> usize {
        let block = offset / BLOCK;
        let start = (block * BLOCK..=offset).find(|at| self.text.is_char_boundary(*at)).unwrap_or(offset);
        let known = self.units.get(block).copied().unwrap_or_default();
        known + self.text[start..offset].chars().map(char::len_utf16).sum::<usize>()
    }

    fn at(&self, offset: usize) -> Json {
        let (line, column) = self.line_column(offset);
        json!({"line": line, "character": column})
    }

    /// The line and the column of a byte, both from 0; the column counts units of UTF-16.
    pub(crate) fn line_column(&self, offset: usize) -> (usize, usize) {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.lines.partition_point(|start| *start <= offset) - 1;
        (line, self.units(offset) - self.units(self.lines[line]))
    }

    pub(crate) fn range(&self, range: &Range<usize>) -> Json {
        json!({"start": self.at(range.start), "end": self.at(range.end.max(range.start))})
    }
}

/// A text after a change of the editor: of a part of it, or of all. A change of a text that is not open changes nothing.
pub(crate) fn apply(before: Option<String>, change: &Json) -> Option<String> {
    let Some(new) = change["text"].as_str() else { return before };
    if change["range"].is_null() {
        return Some(new.to_owned());
    }
    let mut text = before?;
    // A position behind the end means the end.
    let start = offset(&text, &change["range"]["start"]).unwrap_or(text.len());
    let end = offset(&text, &change["range"]["end"]).unwrap_or(text.len());
    text.replace_range(start.min(end)..end.max(start), new);
    Some(text)
}

/// The path of a `file:` URI.
pub(crate) fn path_of(uri: &str) -> Option<PathBuf> {
    let rest = uri.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    let mut bytes = Vec::with_capacity(rest.len());
    let mut left = rest.bytes();
    while let Some(byte) = left.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digits = [left.next()?, left.next()?];
        bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
    }
    let path = PathBuf::from(String::from_utf8(bytes).ok()?);
    path.is_absolute().then_some(path)
}

/// The `file:` URI of a path.
pub(crate) fn uri_of(path: &Path) -> String {
    let mut uri = "file://".to_owned();
    for byte in path.to_string_lossy().bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            byte if byte.is_ascii_alphanumeric() => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_utf16_units() {
        let text = "a😀b\nzwei\n";
        let positions = Positions::of(text);
        for (position, at) in [((0, 0), 0), ((0, 1), 1), ((0, 3), 5), ((1, 0), 7), ((1, 4), 11), ((2, 0), 12)]
        {
            let json = json!({"line": position.0, "character": position.1});
            assert_eq!(offset(text, &json), Some(at));
            assert_eq!(positions.at(at), json);
        }
        assert_eq!(offset(text, &json!({"line": 0, "character": 99})), Some(6));
        assert_eq!(offset(text, &json!({"line": 9, "character": 0})), None);
        assert_eq!(offset(text, &json!({"line": -1})), None);
    }

    #[test]
    fn a_long_line_has_the_positions_of_short_ones() {
        let text = "aé😀\n".repeat(50) + &"aé😀".repeat(200) + "\nend";
        let positions = Positions::of(text.as_str());
        for (at, _) in text.char_indices().chain([(text.len(), ' ')]) {
            let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
            let line = text[..at].matches('\n').count();
            let column = text[start..at].encode_utf16().count();
            assert_eq!(positions.line_column(at), (line, column), "{at}");
        }
        for length in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK] {
            assert_eq!(Positions::of("x".repeat(length)).line_column(length), (0, length));
        }
    }

    #[test]
    fn changes_of_a_part_are_applied() {
        let change = |start: (u64, u64), end: (u64, u64), text: &str| {
            let position = |(line, character)| json!({"line": line, "character": character});
            json!({"range": {"start": position(start), "end": position(end)}, "text": text})
        };
        let text = || Some("a😀b\nc".to_owned());
        assert_eq!(apply(text(), &change((0, 1), (0, 3), "x")).as_deref(), Some("axb\nc"));
        assert_eq!(apply(text(), &change((0, 4), (1, 1), "")).as_deref(), Some("a😀b"));
        assert_eq!(apply(text(), &change((9, 0), (9, 9), "!")).as_deref(), Some("a😀b\nc!"));
        assert_eq!(apply(text(), &change((1, 1), (0, 0), "")).as_deref(), Some(""));
        assert_eq!(apply(None, &json!({"text": "new"})).as_deref(), Some("new"));
        assert_eq!(apply(None, &change((0, 0), (0, 0), "x")), None);
        assert_eq!(apply(text(), &json!({"text": 7})), text());
    }

    #[test]
    fn uris_and_paths_are_the_same_thing() {
        let path = Path::new("/tmp/a b/ä%.md");
        assert_eq!(uri_of(path), "file:///tmp/a%20b/%C3%A4%25.md");
        assert_eq!(path_of(&uri_of(path)).as_deref(), Some(path));
        assert_eq!(path_of("untitled:1"), None);
        assert_eq!(path_of("file:///a%2"), None);
        assert_eq!(path_of("file://relative"), None);
    }
}
