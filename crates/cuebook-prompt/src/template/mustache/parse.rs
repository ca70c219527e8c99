//! Builds the tree of a template.
//!
//! Here is decided which tags stand on a line of their own and take the line with them, and which white space goes before
//! the lines of a partial or of a block's replacement. The stack of open tags is kept by hand: a template that nests
//! without end costs memory in proportion to its length, and nothing else.

use std::ops::Range;
use std::sync::Arc;

use super::dedent::dedent;
use super::errors;
use super::scan::{Kind, Scanner, Tag};
use super::tree::{Argument, Block, Name, Node, Partial, Slice, Target};
use crate::error::{Error, ErrorKind, Result};
use crate::source::Source;

/// Reads a template; sections, blocks and parents may nest `deepest` levels.
pub(super) fn parse(source: &Arc<Source>, deepest: usize) -> Result<Vec<Node>> {
    let mut parser = Parser { source, text: source.text(), from: 0, nodes: Vec::new(), open: Vec::new() };
    let mut scanner = Scanner::new(source);
    while let Some(tag) = scanner.next()? {
        if parser.open.len() >= deepest {
            let diagnostic = errors::too_deep(deepest, source.place(tag.range));
            return Err(Error::new(ErrorKind::Limit, diagnostic));
        }
        parser.tag(tag)?;
    }
    if let Some(open) = parser.open.last() {
        return Err(errors::never_closed(source, &open.tag));
    }
    parser.flush(parser.text.len());
    Ok(parser.nodes)
}

/// A tag that waits for its end.
pub(super) struct Open<'s> {
    pub(super) tag: Tag<'s>,
    nodes: Vec<Node>,
    arguments: Vec<Argument>,
    /// White space before the tag, if nothing else stands before it on its line.
    lead: Option<Range<usize>>,
    /// Where its content begins, if that is on a new line.
    content: Option<usize>,
    /// Whether it is a block directly in a parent: it replaces one of the parent's.
    argument: bool,
}

struct Parser<'s> {
    source: &'s Arc<Source>,
    text: &'s str,
    /// Where the text begins that is not in the tree yet.
    from: usize,
    nodes: Vec<Node>,
    open: Vec<Open<'s>>,
}

impl<'s> Parser<'s> {
    fn tag(&mut self, tag: Tag<'s>) -> Result<()> {
        match tag.kind {
            Kind::Variable | Kind::Raw => {
                let name = self.name(&tag, tag.content_range())?;
                self.inline(&tag.range);
                let raw = tag.kind == Kind::Raw;
                self.push(Node::Variable { tag: Slice::new(tag.range), name, raw });
            }
            Kind::Comment | Kind::Delimiters => {
                self.place(&tag.range);
            }
            Kind::Partial => {
                let target = self.target(&tag)?;
                let indent = self.place(&tag.range);
                self.push(partial(&tag, target, indent, Vec::new()));
            }
            Kind::Section | Kind::Inverted => {
                self.name(&tag, tag.content_range())?;
                self.place(&tag.range);
                self.begin(tag, None, None, false);
            }
            Kind::Parent => {
                self.target(&tag)?;
                let lead = self.lead(tag.range.start);
                // Whether its white space is text is known at its end.
                self.flush(lead.as_ref().map_or(tag.range.start, |lead| lead.start));
                self.from = tag.range.end;
                self.begin(tag, lead, None, false);
            }
            Kind::Block => self.block(tag)?,
            Kind::Close => self.close(tag)?,
        }
        Ok(())
    }

    fn block(&mut self, tag: Tag<'s>) -> Result<()> {
        self.check(&tag, tag.content, tag.content_range())?;
        let behind = self.blank_behind(tag.range.end);
        if self.in_parent() {
            self.from = behind.unwrap_or(tag.range.end);
            self.begin(tag, None, behind, true);
        } else {
            let lead = self.lead(tag.range.start);
            let alone = self.place(&tag.range).is_some();
            self.begin(tag, lead, behind.filter(|_| alone), false);
        }
        Ok(())
    }

    fn begin(&mut self, tag: Tag<'s>, lead: Option<Range<usize>>, content: Option<usize>, argument: bool) {
        self.open.push(Open { tag, nodes: Vec::new(), arguments: Vec::new(), lead, content, argument });
    }

    fn close(&mut self, tag: Tag<'s>) -> Result<()> {
        self.check(&tag, comparable(tag.content).1, tag.content_range())?;
        if self.open.last().is_none_or(|open| comparable(open.tag.content) != comparable(tag.content)) {
            return Err(errors::wrong_end(self.source, &tag, &self.open));
        }
        let argument = self.open.last().is_some_and(|open| open.argument);
        let parent = self.open.last().is_some_and(|open| open.tag.kind == Kind::Parent);
        if argument {
            let content = self.open.last().and_then(|open| open.content);
            let lead = self.lead(tag.range.start).filter(|lead| content.is_some_and(|at| at <= lead.start));
            self.flush(lead.map_or(tag.range.start, |lead| lead.start));
            self.from = tag.range.end;
        } else if !parent {
            self.place(&tag.range);
        }
        let Some(open) = self.open.pop() else { return Ok(()) };
        match open.tag.kind {
            Kind::Parent => self.end_parent(open, &tag)?,
            Kind::Block if argument => self.end_argument(open, &tag),
            Kind::Block => self.end_block(open, &tag),
            kind => {
                let name = self.name(&open.tag, open.tag.content_range())?;
                let inverted = kind == Kind::Inverted;
                let tag = Slice::new(open.tag.range);
                self.push(Node::Section { tag, name, inverted, body: open.nodes });
            }
        }
        Ok(())
    }

    /// From its first to its last delimiter a parent is like one tag: what stands in it shows elsewhere or not at all.
    fn end_parent(&mut self, open: Open<'s>, end: &Tag<'_>) -> Result<()> {
        let target = self.target(&open.tag)?;
        let behind = self.blank_behind(end.range.end);
        self.from = end.range.end;
        let indent = match (open.lead, behind) {
            (Some(lead), Some(behind)) => {
                self.from = behind;
                Some(lead)
            }
            (Some(lead), None) if lead.is_empty() => {
                self.push(Node::LineStart);
                None
            }
            (Some(lead), None) => {
                self.push(Node::Text { slice: Slice::new(lead), line_start: true });
                None
            }
            (None, _) => None,
        };
        self.push(partial(&open.tag, target, indent, open.arguments));
        Ok(())
    }

    /// A replacement loses the white space of its first line, and gets that of the place where it shows.
    fn end_argument(&mut self, open: Open<'s>, end: &Tag<'_>) {
        let mut body = open.nodes;
        match open.content {
            Some(content) => {
                let indent = self.first_indent(content, end.range.start).unwrap_or(content..content);
                body = dedent(self.text, body, &self.text[indent]);
            }
            // It begins in the middle of a line here, and perhaps at the beginning of one where it shows.
            None => match body.first_mut() {
                Some(Node::Text { line_start, .. }) => *line_start = true,
                Some(Node::LineStart) | None => {}
                Some(_) => body.insert(0, Node::LineStart),
            },
        }
        let argument = Argument { tag: Slice::new(open.tag.range), name: open.tag.content.into(), body };
        if let Some(parent) = self.open.last_mut() {
            parent.arguments.push(argument);
        }
    }

    fn end_block(&mut self, open: Open<'s>, end: &Tag<'_>) {
        let at = open.tag.range.start;
        let lead = open.lead.unwrap_or(at..at);
        // On a line of its own the tag says where the block is, and the block's own text how far it is indented.
        let indent =
            open.content.and_then(|content| self.first_indent(content, end.range.start)).unwrap_or(lead);
        self.push(Node::Block(Box::new(Block {
            tag: Slice::new(open.tag.range),
            name: open.tag.content.into(),
            body: open.nodes,
            indent: Slice::new(indent),
            own_line: open.content.is_some(),
        })));
    }

    /// White space of the first line between two offsets that is not blank.
    fn first_indent(&self, from: usize, to: usize) -> Option<Range<usize>> {
        let mut at = from;
        for line in self.text.get(from..to)?.split_inclusive('\n') {
            let trimmed = line.trim_start_matches([' ', '\t']);
            if !trimmed.trim_end_matches(['\r', '\n']).is_empty() {
                return Some(at..at + line.len() - trimmed.len());
            }
            at += line.len();
        }
        None
    }

    /// Takes a tag out of the text, with its line if nothing else stands there. Then the white space before it is returned.
    fn place(&mut self, tag: &Range<usize>) -> Option<Range<usize>> {
        if let Some(lead) = self.lead(tag.start)
            && let Some(behind) = self.blank_behind(tag.end)
        {
            self.flush(lead.start);
            self.from = behind;
            return Some(lead);
        }
        self.inline(tag);
        None
    }

    /// Takes a tag out of the text.
    fn inline(&mut self, tag: &Range<usize>) {
        self.flush(tag.start);
        self.from = tag.end;
        if self.is_line_start(tag.start) {
            self.push(Node::LineStart);
        }
    }

    /// Puts the text up to an offset into the tree.
    fn flush(&mut self, end: usize) {
        if self.from < end {
            let line_start = self.is_line_start(self.from);
            self.push(Node::Text { slice: Slice::new(self.from..end), line_start });
            self.from = end;
        }
    }

    /// Adds to the innermost open tag. Directly in a parent nothing shows but its blocks.
    fn push(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(open) if open.tag.kind == Kind::Parent => {}
            Some(open) => open.nodes.push(node),
            None => self.nodes.push(node),
        }
    }

    fn in_parent(&self) -> bool {
        self.open.last().is_some_and(|open| open.tag.kind == Kind::Parent)
    }

    fn is_line_start(&self, at: usize) -> bool {
        at == 0 || self.text.as_bytes().get(at - 1) == Some(&b'\n')
    }

    /// The white space from the beginning of the line to an offset, if there is nothing else.
    fn lead(&self, at: usize) -> Option<Range<usize>> {
        let blank = self.text[..at].trim_end_matches([' ', '\t']).len();
        self.is_line_start(blank).then_some(blank..at)
    }

    /// The offset behind the line's end, if there is only white space before it.
    fn blank_behind(&self, at: usize) -> Option<usize> {
        let rest = self.text[at..].trim_start_matches([' ', '\t']);
        let end = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n'));
        let rest = if rest.is_empty() { rest } else { end? };
        Some(self.text.len() - rest.len())
    }

    fn check(&self, tag: &Tag<'_>, name: &str, range: Range<usize>) -> Result<()> {
        if name.is_empty() || name.contains(char::is_whitespace) {
            return Err(errors::bad_name(self.source, tag, name, range));
        }
        Ok(())
    }

    fn name(&self, tag: &Tag<'_>, range: Range<usize>) -> Result<Name> {
        let name = if tag.content.is_empty() { "" } else { &self.text[range.clone()] };
        self.check(tag, name, range.clone())?;
        let keys: Vec<Box<str>> =
            if name == "." { Vec::new() } else { name.split('.').map(Box::from).collect() };
        if keys.iter().any(|key| key.is_empty()) {
            return Err(errors::bad_name(self.source, tag, name, range));
        }
        Ok(Name { keys, slice: Slice::new(range) })
    }

    fn target(&self, tag: &Tag<'_>) -> Result<Target> {
        match computed(tag.content) {
            Some(name) => {
                let end = tag.content_range().end;
                if name.is_empty() {
                    return Err(errors::bad_name(self.source, tag, "", tag.range.clone()));
                }
                Ok(Target::Computed(self.name(tag, end - name.len()..end)?))
            }
            None => {
                self.check(tag, tag.content, tag.content_range())?;
                Ok(Target::Named(tag.content.to_owned()))
            }
        }
    }
}

/// The name behind the asterisk of a computed one.
fn computed(content: &str) -> Option<&str> {
    content.strip_prefix('*').map(str::trim_start)
}

/// A name as it is compared: `* x` is the same as `*x`.
fn comparable(content: &str) -> (bool, &str) {
    computed(content).map_or((false, content), |name| (true, name))
}

fn partial(tag: &Tag<'_>, target: Target, indent: Option<Range<usize>>, arguments: Vec<Argument>) -> Node {
    Node::Partial(Box::new(Partial {
        tag: Slice::new(tag.range.clone()),
        target,
        indent: indent.map(Slice::new),
        parent: tag.kind == Kind::Parent,
        arguments,
        reference: 0,
    }))
}
