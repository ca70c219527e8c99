//! Builds the tree of a template.
//!
//! The stack of open blocks is kept by hand, and values nest no deeper than [`DEEPEST_VALUE`]: a template that nests without end costs
//! memory in proportion to its length, and nothing else.

use std::ops::Range;
use std::sync::Arc;

use super::errors;
use super::helper::{self, Helper};
use super::scan::{Kind, Piece, Scanner, Tag, Token};
use super::tree::{Block, BlockKind, Expression, Node, Partial, Path, Program, Strip, Text};
use super::words::{Words, name_of};
use crate::error::{Error, ErrorKind, Result};
use crate::source::Source;

/// Reads a template; blocks may nest `deepest` levels.
pub(super) fn parse(source: &Arc<Source>, deepest: usize) -> Result<Program> {
    let mut parser = Parser { source, nodes: Vec::new(), open: Vec::new() };
    let mut scanner = Scanner::new(source);
    while let Some(piece) = scanner.next()? {
        match piece {
            Piece::Text(range) => parser.text(range),
            Piece::Tag(tag) if parser.open.len() >= deepest => {
                let diagnostic = errors::too_deep(deepest, source.place(tag.range));
                return Err(Error::new(ErrorKind::Limit, diagnostic));
            }
            Piece::Tag(tag) => parser.tag(tag)?,
        }
    }
    if let Some(open) = parser.open.iter().rev().find(|open| !open.chained) {
        return Err(errors::never_closed(source, &open.name, open.tag.clone()));
    }
    let mut program = Program { body: parser.nodes, chained: false };
    super::space::control(source.text(), &mut program);
    Ok(program)
}

/// A block that waits for its end.
struct OpenBlock {
    tag: Range<usize>,
    strip: Strip,
    name: String,
    what: BlockKind,
    names: Vec<Box<str>>,
    /// Whether `{{^name}}` began it.
    inverted: bool,
    /// Whether `{{else name}}` began it.
    chained: bool,
    /// What stands before its `{{else}}`, if that has come.
    before: Option<Program>,
    middle: Strip,
    nodes: Vec<Node>,
}

struct Parser<'s> {
    source: &'s Arc<Source>,
    nodes: Vec<Node>,
    open: Vec<OpenBlock>,
}

impl Parser<'_> {
    fn text(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            let text =
                Text { original: range.clone(), kept: range, left_stripped: false, right_stripped: false };
            self.push(Node::Text(text));
        }
    }

    fn push(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(open) => open.nodes.push(node),
            None => self.nodes.push(node),
        }
    }

    fn tag(&mut self, tag: Tag) -> Result<()> {
        match tag.kind {
            Kind::Comment => self.push(Node::Comment(tag.strip)),
            Kind::Output => {
                let value = self.output(&tag)?;
                self.push(Node::Output { tag: tag.range, strip: tag.strip, value });
            }
            Kind::Partial => {
                let partial = self.partial(&tag)?;
                self.push(Node::Partial(Box::new(partial)));
            }
            Kind::Block | Kind::Inverted => self.begin(&tag, false)?,
            Kind::Else => self.begin_else(&tag)?,
            Kind::ElseBlock => {
                self.begin_else(&tag)?;
                self.begin(&tag, true)?;
            }
            Kind::Close => self.close(&tag)?,
        }
        Ok(())
    }

    fn output(&self, tag: &Tag) -> Result<Expression> {
        let mut words = Words::new(self.source, tag);
        let (head, range) = words.head()?;
        let (params, hash) = words.arguments()?;
        words.end()?;
        if let Some(helper) = head.simple().and_then(Helper::named) {
            if helper.is_block() {
                return Err(errors::is_a_block(self.source, helper, tag.range.clone()));
            }
            let call = helper::call(self.source, helper, params, hash, tag.range.clone())?;
            return Ok(Expression::Call(Box::new(call)));
        }
        if !params.is_empty() || !hash.is_empty() {
            return Err(errors::unknown_helper(self.source, &name_of(self.source, &range), range));
        }
        Ok(Expression::Path(head))
    }

    fn partial(&self, tag: &Tag) -> Result<Partial> {
        let mut words = Words::new(self.source, tag);
        let name = words.partial_name()?;
        let (params, hash) = words.arguments()?;
        words.end()?;
        let mut params = params.into_iter();
        let context = params.next();
        if params.next().is_some() {
            let hint = "write one value, or arguments such as `name=value`";
            return Err(errors::syntax(self.source, tag.range.clone(), "a partial takes one value", hint));
        }
        Ok(Partial {
            tag: tag.range.clone(),
            strip: tag.strip,
            name: name.into(),
            context,
            hash,
            indent: None,
            reference: 0,
        })
    }

    fn begin(&mut self, tag: &Tag, chained: bool) -> Result<()> {
        let mut words = Words::new(self.source, tag);
        let (head, range) = words.head()?;
        let (params, hash) = words.arguments()?;
        let names = words.block_names()?;
        words.end()?;
        let what = match head.simple().and_then(Helper::named) {
            Some(helper) if !helper.is_block() => {
                return Err(errors::not_a_block(self.source, helper, tag.range.clone()));
            }
            Some(helper) => {
                BlockKind::Helper(helper::call(self.source, helper, params, hash, tag.range.clone())?)
            }
            None if params.is_empty() && hash.is_empty() => BlockKind::Value(head),
            None => return Err(errors::unknown_helper(self.source, &name_of(self.source, &range), range)),
        };
        self.open.push(OpenBlock {
            tag: tag.range.clone(),
            strip: tag.strip,
            name: name_of(self.source, &range),
            what,
            names,
            inverted: tag.kind == Kind::Inverted,
            chained,
            before: None,
            middle: Strip::default(),
            nodes: Vec::new(),
        });
        Ok(())
    }

    fn begin_else(&mut self, tag: &Tag) -> Result<()> {
        let Some(open) = self.open.last_mut() else {
            let hint = "remove it, or write it inside a block such as `{{#if …}}…{{/if}}`";
            return Err(errors::syntax(self.source, tag.range.clone(), "unexpected `{{else}}`", hint));
        };
        if open.before.is_some() {
            let hint = "remove one of them, or write `{{else if …}}` for the first";
            let message = "the block has two `{{else}}`";
            return Err(errors::syntax(self.source, tag.range.clone(), message, hint));
        }
        open.before = Some(Program { body: std::mem::take(&mut open.nodes), chained: false });
        open.middle = tag.strip;
        Ok(())
    }

    fn close(&mut self, tag: &Tag) -> Result<()> {
        let mut words = Words::new(self.source, tag);
        let (_, range) = words.head()?;
        words.end()?;
        let name = name_of(self.source, &range);
        let owner = self.open.iter().rev().find(|open| !open.chained);
        if owner.is_none_or(|open| open.name != name) {
            let open = owner.map(|open| (open.name.as_str(), &open.tag));
            return Err(errors::wrong_end(self.source, &name, tag.range.clone(), open));
        }
        while let Some(open) = self.open.pop() {
            let (chained, strip) = (open.chained, open.strip);
            // The end belongs to the block and to the first `{{else if …}}` of it.
            let is_first = !chained || self.open.last().is_none_or(|parent| !parent.chained);
            let block = finish(open, if is_first { tag.strip } else { strip });
            self.push(Node::Block(Box::new(block)));
            if !chained {
                break;
            }
        }
        Ok(())
    }
}

fn finish(open: OpenBlock, close: Strip) -> Block {
    let OpenBlock { tag, strip, what, names, inverted, chained: by_else, before, middle, nodes, .. } = open;
    let chained = matches!(nodes.as_slice(), [Node::Block(block)] if block.by_else);
    let last = Program { body: nodes, chained };
    let (program, inverse) = match before {
        Some(first) => (Some(first), Some(last)),
        None => (Some(last), None),
    };
    let (program, inverse) = if inverted { (inverse, program) } else { (program, inverse) };
    Block { tag, what, names, program, inverse, open: strip, middle, close, by_else }
}

/// How deeply values nest in a tag.
pub(super) const DEEPEST_VALUE: usize = 64;

/// Whether a word can begin a path.
pub(super) fn begins_path(token: &Token) -> bool {
    matches!(token, Token::Id(..) | Token::Dot | Token::DotDot | Token::At)
}

/// A path of one key.
pub(super) fn path_of(key: &str, range: Range<usize>) -> Path {
    Path { data: false, up: 0, scoped: false, keys: vec![key.into()], range }
}
