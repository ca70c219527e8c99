//! Takes the white space of a block's first line away from all its lines.

use super::tree::{Node, Slice};

/// The same nodes with `indent`, or as much of it as there is, taken from the beginning of every line.
///
/// What replaces blocks of other templates is left as it is: it has lost its own white space already.
pub(super) fn dedent(text: &str, nodes: Vec<Node>, indent: &str) -> Vec<Node> {
    if indent.is_empty() {
        return nodes;
    }
    let mut out = Vec::with_capacity(nodes.len());
    for node in nodes {
        match node {
            Node::Text { slice, line_start } => lines(text, slice, line_start, indent, &mut out),
            Node::Section { tag, name, inverted, body } => {
                out.push(Node::Section { tag, name, inverted, body: dedent(text, body, indent) });
            }
            Node::Block(mut block) => {
                block.body = dedent(text, std::mem::take(&mut block.body), indent);
                block.indent = shortened(text, block.indent, indent);
                out.push(Node::Block(block));
            }
            Node::Partial(mut partial) => {
                partial.indent = partial.indent.map(|own| shortened(text, own, indent));
                out.push(Node::Partial(partial));
            }
            node @ (Node::LineStart | Node::Variable { .. }) => out.push(node),
        }
    }
    out
}

/// A slice without the part of its beginning that it shares with `indent`.
fn shortened(text: &str, slice: Slice, indent: &str) -> Slice {
    let own = text.get(slice.range()).unwrap_or_default();
    let shared = own.bytes().zip(indent.bytes()).take_while(|(own, indent)| own == indent).count();
    Slice { start: slice.start + shared as u32, end: slice.end }
}

fn lines(text: &str, slice: Slice, line_start: bool, indent: &str, out: &mut Vec<Node>) {
    let mut at = slice.start;
    for (index, line) in text.get(slice.range()).unwrap_or_default().split_inclusive('\n').enumerate() {
        let end = at + line.len() as u32;
        let begins = line_start || index > 0;
        let mut part = Slice { start: at, end };
        if begins {
            part = shortened(text, part, indent);
        }
        match part.is_empty() {
            false => out.push(Node::Text { slice: part, line_start: begins }),
            // The line goes on with a tag.
            true if begins => out.push(Node::LineStart),
            true => {}
        }
        at = end;
    }
}
