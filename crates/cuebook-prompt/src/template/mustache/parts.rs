//! A Mustache template as words and names, if it is no more.

use std::sync::Arc;

use super::parse::parse;
use super::tree::{Name, Node, Slice};
use crate::error::Result;
use crate::source::Source;
use crate::template::parts::{Branch, MissingValue, NotPlain, TemplatePart};

/// What a tag that shows another template is called.
pub const PARTIAL: &str = "a Mustache partial";

/// What a template writes; what keeps it from being words and names, if it is more. `escape` says whether values are escaped.
pub fn parts(
    source: &Arc<Source>,
    deepest: usize,
    escape: bool,
) -> Result<std::result::Result<Vec<TemplatePart>, NotPlain>> {
    let not_plain = |tag: Slice, what: &str| Err(NotPlain { range: tag.range(), what: what.to_owned() });
    let bit = |node: &Node| match node {
        Node::Text { slice, .. } => {
            let range = slice.range();
            Ok(Some(TemplatePart::Text { text: source.text()[range.clone()].to_owned(), range }))
        }
        Node::LineStart => Ok(None),
        Node::Variable { tag, name, raw } => match name.keys.as_slice() {
            [key] => {
                let escaped = escape && !raw;
                let name = key.to_string();
                Ok(Some(TemplatePart::Value {
                    name,
                    absent: MissingValue::Nothing,
                    escaped,
                    range: tag.range(),
                }))
            }
            _ => not_plain(*tag, "a part of a value"),
        },
        Node::Section { tag, inverted: false, .. } => not_plain(*tag, "a Mustache section"),
        Node::Section { tag, .. } => not_plain(*tag, "an inverted Mustache section"),
        Node::Partial(partial) => not_plain(partial.tag, PARTIAL),
        Node::Block(block) => not_plain(block.tag, "a block"),
    };
    let nodes = parse(source, deepest)?;
    Ok(nodes.iter().filter_map(|node| bit(node).transpose()).collect())
}

/// What a template does, section by section; what keeps it from being that, if it uses other templates.
pub fn branches(
    source: &Arc<Source>,
    deepest: usize,
    escape: bool,
) -> Result<std::result::Result<Vec<Branch>, NotPlain>> {
    let nodes = parse(source, deepest)?;
    Ok(grow(source, &nodes, escape))
}

fn grow(source: &Arc<Source>, nodes: &[Node], escape: bool) -> std::result::Result<Vec<Branch>, NotPlain> {
    let keys = |name: &Name| name.keys.iter().map(|key| key.to_string()).collect();
    let mut branches = Vec::new();
    for node in nodes {
        branches.push(match node {
            Node::Text { slice, .. } => Branch::Text(source.text()[slice.range()].to_owned()),
            Node::LineStart => continue,
            Node::Variable { tag, name, raw } => {
                Branch::Value { keys: keys(name), escaped: escape && !raw, range: tag.range() }
            }
            Node::Section { tag, name, inverted, body } => Branch::Section {
                keys: keys(name),
                inverted: *inverted,
                body: grow(source, body, escape)?,
                range: tag.range(),
            },
            Node::Partial(partial) => {
                return Err(NotPlain { range: partial.tag.range(), what: PARTIAL.to_owned() });
            }
            Node::Block(block) => {
                return Err(NotPlain { range: block.tag.range(), what: "a block".to_owned() });
            }
        });
    }
    Ok(branches)
}
