//! Takes out of a directive's XML what need not be XML, and counts before anything is built.
//!
//! What stands inside `<template>`, `<example>` and `<raw>` is text as it is, with any `<` and `&` that its author liked. It is
//! replaced by spaces of the same length, so that every position of the rest stays what it was. Where tags, comments and the like
//! begin and end is all that is looked at here; whether it is XML is the parser's business.

use std::ops::Range;

use super::{MAX_ATTRIBUTES, MAX_DEPTH, MAX_ELEMENTS};

/// The elements whose inside is text.
pub(super) const OPAQUE: [&str; 3] = ["template", "example", "raw"];

/// The XML without what is opaque in it.
#[derive(Debug)]
pub(super) struct Masked {
    pub(super) text: String,
    /// What was taken out: the element's name, and where its inside stands.
    pub(super) opaque: Vec<(&'static str, Range<usize>)>,
}

/// Why it is not even given to the parser, and where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MaskError {
    /// A document type.
    DocumentType,
    /// Elements in elements in elements.
    TooDeep,
    TooManyElements,
    TooManyAttributes,
    /// An opaque element that is not closed.
    Unclosed(&'static str),
}

/// Looks at the text once, from its beginning to its end.
pub(super) fn mask(text: &str) -> Result<Masked, (MaskError, Range<usize>)> {
    let mut opaque = Vec::new();
    let (mut depth, mut elements, mut at) = (0_usize, 0_usize, 0);
    while let Some(ahead) = text[at..].find('<') {
        let start = at + ahead;
        let rest = &text[start..];
        // What does not end is left to the parser, which says so.
        let skipped = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")]
            .into_iter()
            .find_map(|(open, close)| Some((rest.strip_prefix(open)?, open, close)));
        if let Some((inside, open, close)) = skipped {
            match inside.find(close) {
                Some(end) => at = start + open.len() + end + close.len(),
                None => break,
            }
            continue;
        }
        if rest.get(..9).is_some_and(|begin| begin.eq_ignore_ascii_case("<!doctype")) {
            return Err((MaskError::DocumentType, start..start + 9));
        }
        let Some(tag) = tag(rest) else { break };
        at = start + tag.length;
        let name = start + 1..start + 1 + tag.name;
        if rest.starts_with("</") {
            depth = depth.saturating_sub(1);
            continue;
        }
        elements += 1;
        if elements > MAX_ELEMENTS {
            return Err((MaskError::TooManyElements, name));
        }
        if tag.attributes > MAX_ATTRIBUTES {
            return Err((MaskError::TooManyAttributes, name));
        }
        if tag.is_empty {
            continue;
        }
        if let Some(element) = OPAQUE.into_iter().find(|known| *known == &text[name.clone()]) {
            let Some((inside, after)) = closing(&text[at..], element) else {
                return Err((MaskError::Unclosed(element), name));
            };
            opaque.push((element, at..at + inside));
            at += after;
            continue;
        }
        depth += 1;
        if depth > MAX_DEPTH {
            return Err((MaskError::TooDeep, name));
        }
    }
    Ok(Masked { text: blanked(text, &opaque), opaque })
}

/// A tag at the beginning of a text.
struct Tag {
    /// Bytes of its name.
    name: usize,
    /// Bytes of all of it, with `>`.
    length: usize,
    attributes: usize,
    /// Whether it is closed by its own `/`.
    is_empty: bool,
}

/// The tag that a text begins with, if it ends at all.
fn tag(text: &str) -> Option<Tag> {
    let name = text[1..].find(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '>'));
    let mut tag = Tag { name: name?, length: 0, attributes: 0, is_empty: false };
    let mut quote = None;
    for (index, byte) in text.bytes().enumerate().skip(1) {
        match (quote, byte) {
            (Some(open), _) if byte == open => quote = None,
            (Some(_), _) => {}
            (None, b'"' | b'\'') => {
                quote = Some(byte);
                tag.attributes += 1;
            }
            (None, b'>') => {
                tag.length = index + 1;
                tag.is_empty = text.as_bytes()[index - 1] == b'/';
                return Some(tag);
            }
            (None, _) => {}
        }
    }
    None
}

/// How many bytes the tag at the beginning of a text has.
pub(super) fn tag_length(text: &str) -> Option<usize> {
    tag(text).filter(|tag| !tag.is_empty).map(|tag| tag.length)
}

/// Where `</element>` begins in a text, and where it ends.
fn closing(text: &str, element: &str) -> Option<(usize, usize)> {
    let mut at = 0;
    while let Some(ahead) = text[at..].find("</") {
        let start = at + ahead;
        at = start + 2;
        if let Some(rest) = text[at..].strip_prefix(element)
            && let Some(end) = rest.trim_ascii_start().strip_prefix('>')
        {
            return Some((start, text.len() - end.len()));
        }
    }
    None
}

/// The text with spaces for what is opaque. Lines stay lines.
fn blanked(text: &str, opaque: &[(&str, Range<usize>)]) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut at = 0;
    for (_, range) in opaque {
        blanked.push_str(&text[at..range.start]);
        blanked.extend(text[range.clone()].bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
        at = range.end;
    }
    blanked.push_str(&text[at..]);
    blanked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn opaque_text_is_blanked_in_place() {
        let text = "<d a='>'><template x=\"<\">é < & <b>\n</template ><raw/><!-- <raw> --><raw>1</raw></d>";
        let masked = mask(text).unwrap();
        assert_eq!(masked.text.len(), text.len());
        assert_eq!(
            masked.text,
            "<d a='>'><template x=\"<\">          \n</template ><raw/><!-- <raw> --><raw> </raw></d>"
        );
        let inside: Vec<(&str, &str)> =
            masked.opaque.iter().map(|(name, range)| (*name, &text[range.clone()])).collect();
        assert_eq!(inside, [("template", "é < & <b>\n"), ("raw", "1")]);
    }

    #[test]
    fn documents_beyond_the_limits_are_refused_with_a_place() {
        let deep = "<a>".repeat(100_000);
        assert_eq!(mask(&deep).unwrap_err().0, MaskError::TooDeep);
        assert_eq!(mask(&"<a/>".repeat(100_000)).unwrap_err().0, MaskError::TooManyElements);
        let wide = format!("<a {}/>", "b='' ".repeat(1000));
        assert_eq!(mask(&wide).unwrap_err().0, MaskError::TooManyAttributes);
        assert_eq!(mask("<d><raw>").unwrap_err(), (MaskError::Unclosed("raw"), 4..7));
        assert_eq!(mask("<!doctype d []><d/>").unwrap_err().0, MaskError::DocumentType);
    }

    #[test]
    fn unclosed_constructs_are_left_to_the_parser() {
        for text in ["<a b='", "<!-- ", "<![CDATA[ ", "<?x", "a < b", "<", ""] {
            assert_eq!(mask(text).unwrap().text, text);
        }
    }
}
