//! The XML of a directive: roxmltree's tree, with texts that know their places in the file.
//!
//! A tree and not a stream of events, because what an element means depends on what stands in it; and roxmltree's, because it is
//! strict (what two readers could understand in two ways is refused), reads without recursion, knows no document types unless it
//! is asked to, and reports its state.

use std::ops::Range;
use std::sync::Arc;

pub(super) use roxmltree::Node;
use roxmltree::{Document, ParsingOptions};

use super::opaque::{self, MaskError, Masked};
use super::written::Written;
use super::{MAX_ATTRIBUTES, MAX_BYTES, MAX_DEPTH, MAX_ELEMENTS};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::{Place, Source};

/// Where the XML stands.
#[derive(Debug, Clone)]
pub(super) struct Xml<'s> {
    pub(super) source: &'s Arc<Source>,
    /// Its first byte in the source.
    pub(super) start: usize,
}

impl<'s> Xml<'s> {
    /// The XML without what is opaque in it.
    pub(super) fn mask(source: &'s Arc<Source>, range: Range<usize>) -> Result<(Xml<'s>, Masked)> {
        let xml = Xml { source, start: range.start };
        let text = &source.text()[range];
        if text.len() > MAX_BYTES {
            let message = format!("Invalid XML: it has {} bytes, but the limit is {MAX_BYTES}", text.len());
            let hint = "move long texts into the body, after the XML";
            return Err(xml.error(message, 0..1, None, hint));
        }
        match opaque::mask(text) {
            Ok(masked) => Ok((xml, masked)),
            Err((refused, at)) => Err(xml.refused(refused, at)),
        }
    }

    /// The tree of a text that was masked.
    pub(super) fn parse<'t>(&self, masked: &'t str) -> Result<Document<'t>> {
        // Text and comments between elements are nodes as well, which the mask does not count.
        let options = ParsingOptions {
            allow_dtd: false,
            nodes_limit: 8 * MAX_ELEMENTS as u32,
            ..ParsingOptions::default()
        };
        Document::parse_with_options(masked, options).map_err(|error| self.malformed(masked, &error))
    }

    /// A place in the source, by a range of the XML.
    pub(super) fn place(&self, range: Range<usize>) -> Place {
        self.source.place(self.start + range.start..self.start + range.end)
    }

    fn error(&self, message: String, at: Range<usize>, label: Option<&str>, hint: &str) -> Error {
        let diagnostic = Diagnostic::new(Code::BadDirective, message).at(self.place(at)).hint(hint);
        let diagnostic = match label {
            Some(label) => diagnostic.label(label),
            None => diagnostic,
        };
        Error::new(ErrorKind::PromptRead, diagnostic)
    }

    fn refused(&self, refused: MaskError, at: Range<usize>) -> Error {
        let (what, hint) = match refused {
            MaskError::DocumentType => (
                "document types are not supported".to_owned(),
                "remove it: the entities `&lt;`, `&gt;`, `&amp;`, `&quot;` and `&apos;` always work",
            ),
            MaskError::TooDeep => (
                format!("elements are nested more than {MAX_DEPTH} deep"),
                "put text with tags into <raw>, or into the body",
            ),
            MaskError::TooManyElements => (
                format!("it has more than {MAX_ELEMENTS} elements"),
                "put text with tags into <raw>, or into the body",
            ),
            MaskError::TooManyAttributes => (
                format!("an element has more than {MAX_ATTRIBUTES} attributes"),
                "use elements instead of attributes",
            ),
            MaskError::Unclosed(element) => {
                let hint = "add the closing tag: everything up to it is text";
                (format!("<{element}> is not closed"), hint)
            }
        };
        self.error(format!("Invalid XML: {what}"), at, None, hint)
    }

    /// The parser's error in words for the author.
    fn malformed(&self, text: &str, error: &roxmltree::Error) -> Error {
        use roxmltree::Error as Wrong;
        let at = offset(text, error.pos());
        let one = at..text[at..].chars().next().map_or(at, |first| at + first.len_utf8());
        let name = at..text[at..]
            .find(|c: char| c.is_whitespace() || "<>/=&;".contains(c))
            .map_or(at, |end| at + end);
        let unescaped = "write `&lt;` for `<` and `&amp;` for `&`, or put the text into <![CDATA[ … ]]>";
        let (what, at, hint) = match error {
            Wrong::UnexpectedCloseTag(expected, actual, _) => {
                let start = at + if text[at..].starts_with("</") { 2 } else { 0 };
                let what = match expected.is_empty() {
                    true => format!("</{actual}> has no opening tag"),
                    false => format!("expected </{expected}>, found </{actual}>"),
                };
                (what, start..start + actual.len(), "close the inner element first")
            }
            Wrong::UnknownEntityReference(entity, _) => {
                (format!("unknown entity `&{entity};`"), at..at + entity.len() + 2, unescaped)
            }
            Wrong::MalformedEntityReference(_) => ("`&` without an entity".to_owned(), one, unescaped),
            Wrong::InvalidAttributeValue(_) => {
                ("`<` in an attribute's value".to_owned(), one, "write `&lt;` instead")
            }
            Wrong::DuplicatedAttribute(attribute, _) => {
                (format!("duplicate attribute `{attribute}`"), at..at + attribute.len(), "remove one of them")
            }
            Wrong::UnknownNamespace(prefix, _) => (
                format!("undeclared prefix `{prefix}:`"),
                name,
                "remove the prefix: elements of a directive have none",
            ),
            Wrong::NoRootNode => (
                "there is no element".to_owned(),
                one,
                "write <directive name=\"…\" version=\"1.0.0\"> … </directive>",
            ),
            Wrong::UnclosedRootNode | Wrong::UnexpectedEndOfStream => {
                let end = text.trim_end().len();
                let last = text[..end].chars().next_back().map_or(end, |last| end - last.len_utf8());
                ("the XML ends before its elements are closed".to_owned(), last..end, "close every element")
            }
            Wrong::NodesLimitReached => {
                (format!("it has more than {MAX_ELEMENTS} elements"), one, "move long texts into the body")
            }
            Wrong::NonXmlChar(character, _) => (format!("invalid character {character:?}"), one, "remove it"),
            Wrong::InvalidName(_) => ("expected a name".to_owned(), one, unescaped),
            Wrong::InvalidComment(_) => {
                ("a comment contains `--` or ends with `-`".to_owned(), one, "remove the extra `-`")
            }
            other => {
                let said = other.to_string();
                let said = said.rsplit_once(" at ").map_or(said.as_str(), |(said, _)| said);
                (said.to_owned(), one, unescaped)
            }
        };
        self.error(format!("Invalid XML: {what}"), at, Some("here"), hint)
    }

    /// An attribute that is there and not empty.
    pub(super) fn attribute(&self, node: Node<'_, '_>, name: &str) -> Option<Written> {
        self.any_attribute(node, name).filter(|value| !value.is_empty())
    }

    /// An attribute that is there.
    pub(super) fn any_attribute(&self, node: Node<'_, '_>, name: &str) -> Option<Written> {
        let attribute = node.attribute_node(name)?;
        let value = attribute.range_value();
        Some(Written::attribute(self.source, self.start + value.start..self.start + value.end))
    }

    /// The text of an element before its first child, as it is; `None` if it is missing at all.
    pub(super) fn text(&self, node: Node<'_, '_>) -> Option<Written> {
        let range = self.start + node.range().start..self.start + node.range().end;
        let text = &self.source.text()[range.clone()];
        let start = opaque::tag_length(text)?;
        let child = node.first_element_child().map(|child| self.start + child.range().start - range.start);
        let end = match child {
            Some(child) => child,
            None => text.rfind("</").filter(|end| *end >= start)?,
        };
        let written = Written::between_tags(self.source, range.start + start..range.start + end);
        (!written.is_empty()).then_some(written)
    }

    /// The text of an element without white space around it; `None` if nothing is left.
    pub(super) fn stripped(&self, node: Node<'_, '_>) -> Option<Written> {
        self.text(node).map(Written::stripped).filter(|text| !text.is_empty())
    }

    /// Where an element's name stands.
    pub(super) fn name_place(&self, node: Node<'_, '_>) -> Place {
        let start = node.range().start + 1;
        self.place(start..start + node.tag_name().name().len())
    }
}

/// The offset of a position that the parser gives.
fn offset(text: &str, position: roxmltree::TextPos) -> usize {
    let line = text
        .split_inclusive('\n')
        .take(position.row.saturating_sub(1) as usize)
        .map(str::len)
        .sum::<usize>()
        .min(text.len());
    let column = position.col.saturating_sub(1) as usize;
    text[line..].char_indices().nth(column).map_or(text.len(), |(at, _)| line + at)
}

/// The elements that stand directly in another one.
pub(super) fn elements<'a, 'i>(node: Node<'a, 'i>) -> impl DoubleEndedIterator<Item = Node<'a, 'i>> {
    node.children().filter(Node::is_element)
}

/// The name of an element.
pub(super) fn name<'a>(node: Node<'a, '_>) -> &'a str {
    node.tag_name().name()
}
