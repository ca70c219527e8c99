//! A template as a tree of what a render does.
//!
//! All positions are bytes of the unit's source: what the author wrote is never copied, so that every literal keeps its
//! place. What stands on a line of its own and vanishes with it is gone already, and the tree says where lines begin.

use std::ops::Range;

/// A range of bytes in the source of a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Slice {
    pub(super) start: u32,
    pub(super) end: u32,
}

impl Slice {
    /// Offsets fit: files are limited to far less than 4 GiB, and [`super::Template::compile`] refuses longer texts.
    pub(super) fn new(range: Range<usize>) -> Slice {
        Slice { start: range.start as u32, end: range.end as u32 }
    }

    pub(super) fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }

    pub(super) fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

/// One thing that a render does.
#[derive(Debug)]
pub(super) enum Node {
    /// Text of the author. With `line_start`, its first byte begins a line.
    Text { slice: Slice, line_start: bool },
    /// A line begins here, with a tag.
    LineStart,
    /// A value; `tag` is where.
    Variable { tag: Slice, name: Name, raw: bool },
    /// What is shown if there is a value, once for each item, or only if it is missing.
    Section { tag: Slice, name: Name, inverted: bool, body: Vec<Node> },
    /// Another template, with what replaces its blocks.
    Partial(Box<Partial>),
    /// What a template that uses this one may replace.
    Block(Box<Block>),
}

/// A use of another template: `{{>name}}`, or `{{<name}}…{{/name}}`.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) tag: Slice,
    pub(super) target: Target,
    /// White space that goes before each of its lines. `None` if the tag does not stand on a line of its own.
    pub(super) indent: Option<Slice>,
    /// Whether it takes arguments: `{{<name}}`.
    pub(super) parent: bool,
    pub(super) arguments: Vec<Argument>,
    /// Index among the unit's references.
    pub(super) reference: usize,
}

/// Which template is meant.
#[derive(Debug)]
pub(super) enum Target {
    Named(String),
    /// The name is the value of a variable.
    Computed(Name),
}

/// What replaces a block of another template.
#[derive(Debug)]
pub(super) struct Argument {
    pub(super) tag: Slice,
    pub(super) name: Box<str>,
    pub(super) body: Vec<Node>,
}

/// A place whose content can be replaced.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) tag: Slice,
    pub(super) name: Box<str>,
    pub(super) body: Vec<Node>,
    /// White space that goes before each line of what replaces it.
    pub(super) indent: Slice,
    /// Whether the tag stood on a line of its own, so that the first line has no white space yet.
    pub(super) own_line: bool,
}

/// A dotted name.
#[derive(Debug)]
pub(super) struct Name {
    /// Its parts; none for `.`, which is the innermost value itself.
    pub(super) keys: Vec<Box<str>>,
    pub(super) slice: Slice,
}

impl Name {
    /// The name as it is written.
    pub(super) fn dotted(&self) -> String {
        if self.keys.is_empty() { ".".to_owned() } else { self.keys.join(".") }
    }
}
