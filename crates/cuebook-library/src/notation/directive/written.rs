//! Texts that an author wrote in XML: what they say, and where each part of that stands in the file.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::Arc;

use crate::source::{Place, Source};
use crate::template::python::is_space;

/// A text that an author wrote as an attribute, or between tags. It reads as the text that XML makes of it: `&lt;` is `<`.
#[derive(Debug, Clone)]
pub struct Written {
    text: String,
    pieces: Vec<Piece>,
    source: Arc<Source>,
    /// Where all of it stands.
    range: Range<usize>,
}

/// A run of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Piece {
    /// Its bytes in the text.
    pub(super) text: Range<usize>,
    /// What stands for them in the file.
    pub(super) source: Range<usize>,
    /// Whether the file has these very bytes.
    pub(super) is_verbatim: bool,
}

impl Written {
    /// A part of a file as it is.
    pub(super) fn verbatim(source: &Arc<Source>, range: Range<usize>) -> Written {
        let text = source.text()[range.clone()].to_owned();
        let pieces = match text.is_empty() {
            true => Vec::new(),
            false => vec![Piece { text: 0..text.len(), source: range.clone(), is_verbatim: true }],
        };
        Written { text, pieces, source: source.clone(), range }
    }

    /// What stands between tags. The parser has seen it, so everything in it ends.
    pub(super) fn between_tags(source: &Arc<Source>, range: Range<usize>) -> Written {
        Written::decoded(source, range, false)
    }

    /// The value of an attribute.
    pub(super) fn attribute(source: &Arc<Source>, range: Range<usize>) -> Written {
        Written::decoded(source, range, true)
    }

    fn decoded(source: &Arc<Source>, range: Range<usize>, is_attribute: bool) -> Written {
        let raw = &source.text()[range.clone()];
        let special = |character: char| match character {
            '&' | '\r' => true,
            '<' => !is_attribute,
            '\n' | '\t' => is_attribute,
            _ => false,
        };
        if !raw.contains(special) {
            return Written::verbatim(source, range);
        }
        let mut written = Written { text: String::new(), pieces: Vec::new(), source: source.clone(), range };
        let start = written.range.start;
        let mut at = 0;
        while at < raw.len() {
            let rest = &raw[at..];
            let ahead = rest.find(special).unwrap_or(rest.len());
            if ahead > 0 {
                written.push(&rest[..ahead], start + at..start + at + ahead, true);
                at += ahead;
                continue;
            }
            let (length, text) = special_text(rest, is_attribute);
            let here = start + at..start + at + length;
            match text {
                Special::Character(character) => {
                    written.push(character.encode_utf8(&mut [0; 4]), here, false)
                }
                Special::Inside(inside) => {
                    let here = here.start + inside.start..here.start + inside.end;
                    written.push(&rest[inside], here, true);
                }
                Special::Nothing => {}
            }
            at += length;
        }
        written
    }

    fn push(&mut self, text: &str, source: Range<usize>, is_verbatim: bool) {
        if !text.is_empty() {
            let start = self.text.len();
            self.text.push_str(text);
            self.pieces.push(Piece { text: start..self.text.len(), source, is_verbatim });
        }
    }

    /// The same text without white space around it.
    pub(super) fn stripped(self) -> Written {
        let end = self.text.trim_end_matches(is_space).len();
        let start = end - self.text[..end].trim_start_matches(is_space).len();
        if start == 0 && end == self.text.len() {
            return self;
        }
        let mut stripped = Written { text: String::new(), pieces: Vec::new(), ..self };
        for piece in &self.pieces {
            let kept = piece.text.start.max(start)..piece.text.end.min(end);
            if kept.is_empty() {
                continue;
            }
            let source = match piece.is_verbatim {
                true => {
                    let from = piece.source.start + (kept.start - piece.text.start);
                    from..from + kept.len()
                }
                false => piece.source.clone(),
            };
            stripped.push(&self.text[kept], source, piece.is_verbatim);
        }
        if let (Some(first), Some(last)) = (stripped.pieces.first(), stripped.pieces.last()) {
            stripped.range = first.source.start..last.source.end;
        }
        stripped
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Where it stands.
    pub fn place(&self) -> Place {
        self.source.place(self.range.clone())
    }

    pub(super) fn pieces(&self) -> &[Piece] {
        &self.pieces
    }
}

impl Deref for Written {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a part of XML that is no plain text stands for.
enum Special {
    Character(char),
    /// Text as it is, in this part of it.
    Inside(Range<usize>),
    Nothing,
}

/// How long what a text begins with is, and what it stands for.
fn special_text(text: &str, is_attribute: bool) -> (usize, Special) {
    let delimited = |open: usize, close: &str| match text[open..].find(close) {
        Some(inside) => (open + inside + close.len(), open..open + inside),
        None => (text.len(), open..text.len()),
    };
    if text.starts_with("<![CDATA[") {
        let (length, inside) = delimited(9, "]]>");
        return (length, Special::Inside(inside));
    }
    if text.starts_with("<!--") {
        return (delimited(4, "-->").0, Special::Nothing);
    }
    if text.starts_with("<?") {
        return (delimited(2, "?>").0, Special::Nothing);
    }
    if text.starts_with("\r\n") {
        return (2, Special::Character(if is_attribute { ' ' } else { '\n' }));
    }
    if text.starts_with('\r') {
        return (1, Special::Character(if is_attribute { ' ' } else { '\n' }));
    }
    if text.starts_with(['\n', '\t']) {
        return (1, Special::Character(' '));
    }
    let entity = text.find(';').and_then(|end| Some((end + 1, entity(&text[1..end])?)));
    match entity {
        Some((length, character)) => (length, Special::Character(character)),
        None => (1, Special::Inside(0..1)),
    }
}

/// The character of an entity. There are no others than these without a document type.
fn entity(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(written: &Written) -> Vec<(&str, &str)> {
        let source = written.source.text();
        written
            .pieces
            .iter()
            .map(|piece| (&written.text[piece.text.clone()], &source[piece.source.clone()]))
            .collect()
    }

    #[test]
    fn a_text_has_its_xml_meaning_and_its_place() {
        let source = Source::new("d.md", "  a &lt; b<!-- c --><![CDATA[ <&> ]]>&#x41;\n ");
        let written = Written::between_tags(&source, 0..source.text().len()).stripped();
        assert_eq!(&*written, "a < b <&> A");
        assert_eq!(
            parts(&written),
            [("a ", "a "), ("<", "&lt;"), (" b", " b"), (" <&> ", " <&> "), ("A", "&#x41;")]
        );
        assert_eq!(written.place().column(), 3);
    }

    #[test]
    fn the_lines_of_an_attribute_are_one() {
        let source = Source::new("d.md", "a\n\tb&quot;<");
        assert_eq!(&*Written::attribute(&source, 0..source.text().len()), "a  b\"<");
    }

    #[test]
    fn nothing_but_white_space_is_nothing() {
        let source = Source::new("d.md", " \n ");
        assert!(Written::between_tags(&source, 0..3).stripped().is_empty());
    }
}
