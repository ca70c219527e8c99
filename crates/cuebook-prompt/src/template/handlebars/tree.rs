//! The tree of a template.

use std::ops::Range;

use serde_json::Number;

use super::helper::Helper;

/// Text, tags and blocks in order.
#[derive(Debug, Default)]
pub(super) struct Program {
    pub(super) body: Vec<Node>,
    /// Whether it holds nothing but the block that an `{{else if …}}` begins.
    pub(super) chained: bool,
}

#[derive(Debug)]
pub(super) enum Node {
    Text(Text),
    /// A comment: it shows nothing, but it may take its line with it.
    Comment(Strip),
    Output {
        tag: Range<usize>,
        strip: Strip,
        value: Expression,
    },
    Block(Box<Block>),
    Partial(Box<Partial>),
}

/// Text of the author, and what whitespace control left of it.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) original: Range<usize>,
    pub(super) kept: Range<usize>,
    /// Whether white space at its end, or at its beginning, was removed.
    pub(super) left_stripped: bool,
    pub(super) right_stripped: bool,
}

/// Which sides of a tag have a `~`.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Strip {
    pub(super) open: bool,
    pub(super) close: bool,
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) tag: Range<usize>,
    pub(super) what: BlockKind,
    /// The names behind `as`.
    pub(super) names: Vec<Box<str>>,
    pub(super) program: Option<Program>,
    pub(super) inverse: Option<Program>,
    pub(super) open: Strip,
    pub(super) middle: Strip,
    pub(super) close: Strip,
    /// Whether `{{else name}}` began it.
    pub(super) by_else: bool,
}

/// What a block does.
#[derive(Debug)]
pub(super) enum BlockKind {
    Helper(Call),
    /// `{{#name}}`: once for each item of a list, or with a value as the context.
    Value(Path),
}

#[derive(Debug)]
pub(super) struct Partial {
    pub(super) tag: Range<usize>,
    pub(super) strip: Strip,
    pub(super) name: Box<str>,
    pub(super) context: Option<Expression>,
    pub(super) hash: Vec<Argument>,
    /// White space before it, if it stands alone on its line.
    pub(super) indent: Option<Range<usize>>,
    /// Its number among the references of its text.
    pub(super) reference: usize,
}

/// Something that has a value.
#[derive(Debug)]
pub(super) enum Expression {
    Path(Path),
    /// A text between quotes: what is between them, and the same without escapes if it has any.
    Text(Range<usize>, Option<Box<str>>),
    Number(Number, Range<usize>),
    Bool(bool),
    Null,
    Undefined,
    Call(Box<Call>),
}

impl Expression {
    /// Where it is written.
    pub(super) fn range(&self) -> Option<Range<usize>> {
        match self {
            Expression::Path(path) => Some(path.range.clone()),
            Expression::Text(range, _) | Expression::Number(_, range) => Some(range.clone()),
            Expression::Call(call) => Some(call.range.clone()),
            Expression::Bool(_) | Expression::Null | Expression::Undefined => None,
        }
    }
}

/// A name, as in `../user.name` or `@index`.
#[derive(Debug, Clone)]
pub(super) struct Path {
    /// Whether it begins with `@`.
    pub(super) data: bool,
    /// How many `../` it begins with.
    pub(super) up: usize,
    /// Whether it begins with `this`, `.` or `..`, so that it is no helper and no name behind `as`.
    pub(super) scoped: bool,
    pub(super) keys: Vec<Box<str>>,
    pub(super) range: Range<usize>,
}

impl Path {
    /// Its name, if it is nothing more.
    pub(super) fn simple(&self) -> Option<&str> {
        match self.keys.as_slice() {
            [key] if !self.data && !self.scoped => Some(key),
            _ => None,
        }
    }
}

/// A call of a helper.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) helper: Helper,
    pub(super) params: Vec<Expression>,
    pub(super) hash: Vec<Argument>,
    pub(super) range: Range<usize>,
}

impl Call {
    /// The value of a named argument.
    pub(super) fn argument(&self, name: &str) -> Option<&Expression> {
        self.hash.iter().rev().find(|argument| &*argument.name == name).map(|argument| &argument.value)
    }
}

/// `name=value`.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: Box<str>,
    pub(super) range: Range<usize>,
    pub(super) value: Expression,
}
