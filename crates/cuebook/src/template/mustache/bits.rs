//! A Mustache template as words and names, if it is no more.

use std::sync::Arc;

use super::parse::parse;
use super::tree::{Node, Slice};
use crate::error::Result;
use crate::source::Source;
use crate::template::bits::{Absent, Beyond, Bit};

/// What a template writes; what keeps it from being words and names, if it is more. `escape` says whether values are escaped.
pub(crate) fn bits(
    source: &Arc<Source>,
    deepest: usize,
    escape: bool,
) -> Result<std::result::Result<Vec<Bit>, Beyond>> {
    let beyond = |tag: Slice, what: &str| Err(Beyond { range: tag.range(), what: what.to_owned() });
    let bit = |node: &Node| match node {
        Node::Text { slice, .. } => {
            let range = slice.range();
            Ok(Some(Bit::Text { text: source.text()[range.clone()].to_owned(), range }))
        }
        Node::LineStart => Ok(None),
        Node::Variable { tag, name, raw } => match name.keys.as_slice() {
            [key] => {
                let escaped = escape && !raw;
                let name = key.to_string();
                Ok(Some(Bit::Value { name, absent: Absent::Nothing, escaped, range: tag.range() }))
            }
            _ => beyond(*tag, "a part of a value"),
        },
        Node::Section { tag, inverted: false, .. } => beyond(*tag, "a Mustache section"),
        Node::Section { tag, .. } => beyond(*tag, "an inverted Mustache section"),
        Node::Partial(partial) => beyond(partial.tag, "another template in it"),
        Node::Block(block) => beyond(block.tag, "a block"),
    };
    let nodes = parse(source, deepest)?;
    Ok(nodes.iter().filter_map(|node| bit(node).transpose()).collect())
}
