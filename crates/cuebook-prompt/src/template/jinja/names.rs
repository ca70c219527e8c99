//! What a template mentions, known before it is rendered: variables, other templates, blocks, filters. [`walk`] finds it.

mod walk;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::paths::Paths;
use crate::template::set_names::SetNames;

/// Everything that a template mentions.
#[derive(Debug, Clone, Default)]
pub struct Names {
    /// Reads of variables that the template does not itself define.
    pub reads: Vec<Read>,
    /// Other templates.
    pub references: Vec<Reference>,
    /// Blocks that it defines.
    pub blocks: Vec<Block>,
    /// Filters, tests and functions that it uses.
    pub callables: Vec<Callable>,
    /// For each place that emits a value, in order: the paths of the variables that can show there.
    pub emissions: Vec<Vec<String>>,
    /// In the same order: the name that a place begins with which only looks something up, as in `{{ user.name }}` or
    /// `{{ xs[0] }}`; `None` where anything is computed. Inside a loop it is the loop's own name.
    pub accessors: Vec<Option<String>>,
    /// In the same order: the tags.
    pub(super) tags: Vec<Range<usize>>,
    /// The names that the template defines, and the paths of the variables that can show in them.
    pub(super) bound: HashMap<String, Paths>,
    /// Whether it puts rendered text into values: macros, `set` blocks, filter blocks, call blocks, and blocks or recursive
    /// loops that are called for their text.
    pub captures: bool,
    /// Whether it has loops.
    pub loops: bool,
}

/// A read of a variable from outside the template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Read {
    /// The variable's name.
    pub root: String,
    /// The whole path, as in `user.name` or `tools[].description`.
    pub path: String,
    /// Where the template names it.
    pub range: Range<usize>,
    /// Whether another template of the same render defines the name, so that it may mean that.
    pub maybe_local: bool,
}

/// How a template uses another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReferenceKind {
    /// `{% include %}`
    Include,
    /// `{% extends %}`
    Extends,
    /// `{% import %}` and `{% from … import %}`
    Import,
}

/// A use of another template.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Reference {
    /// How it is used.
    pub kind: ReferenceKind,
    /// The names, in the order in which they are tried; `None` if they are computed.
    pub names: Option<Vec<String>>,
    /// Where.
    pub range: Range<usize>,
    /// Whether a missing template is no error.
    pub optional: bool,
    /// Whether it stands inside a condition or a loop, so that a render may pass it by.
    pub conditional: bool,
    /// Whether it stands in a macro, which sees of the names around it only those that its text mentions.
    pub in_macro: bool,
    /// What the template has set there. Of a parent it is what has been set at the end: that is when the parent is rendered.
    pub set_names: Arc<SetNames>,
}

/// A block.
#[derive(Debug, Clone)]
pub struct Block {
    /// Its name.
    pub name: String,
    /// Where it is defined.
    pub range: Range<usize>,
    /// Whether it stands inside another block.
    pub nested: bool,
}

/// What kind of thing is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallableKind {
    /// `value|name`
    Filter,
    /// `value is name`
    Test,
    /// `name(…)`
    Function,
}

/// A use of a filter, test or function.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Callable {
    /// What kind.
    pub kind: CallableKind,
    /// Its name.
    pub name: String,
    /// Where.
    pub range: Range<usize>,
}

impl Names {
    /// Forgets where its tags are: its text is a part of another one.
    #[doc(hidden)]
    pub fn forget_tags(&mut self) {
        self.tags.clear();
    }

    /// The paths of the variables that show somewhere, or in what the template sets: of an item of a loop, those of the list.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.emissions.iter().flatten().chain(self.bound.values().flatten())
    }
}

#[cfg(test)]
mod tests;
