//! Positions and addresses of the protocol: lines and UTF-16 columns from 0, and `file:` URIs.

use std::ops::Range;
use std::path::{Path, PathBuf};

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

/// Positions of bytes. They are asked for in any order.
pub(crate) struct Positions<'t> {
    text: &'t str,
    lines: Vec<usize>,
}

impl<'t> Positions<'t> {
    pub(crate) fn of(text: &'t str) -> Positions<'t> {
        let lines = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
        Positions { text, lines }
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
        let column = self.text[self.lines[line]..offset].chars().map(char::len_utf16).sum();
        (line, column)
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
