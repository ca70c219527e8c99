//! What a template mentions, known before it is rendered: variables, other templates, blocks, filters. [`walk`] finds it.

mod walk;

use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

use super::paths::{Paths, is_own, root};
use crate::template::lent::Lent;

pub(super) use walk::{Shared, is_counter, name_range};

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
    /// In the same order: the names, and ways into them, that can show there because a template has set them to something of its own.
    pub set: Vec<Vec<String>>,
    /// In the same order: whether a place shows one variable just as it is, unless a template has set that name.
    pub as_is: Vec<bool>,
    /// The names that the template defines, and the paths of the variables that can show in them.
    pub(super) bound: HashMap<String, Paths>,
    /// What is put into namespaces, by the name of the attribute; without a name, what may be under any.
    pub(super) held: HashMap<String, Paths>,
    /// What macros and recursive loops are called with.
    pub(super) passed: Paths,
    /// Whether it uses other templates where such arguments can be seen.
    pub(super) lends_parameters: bool,
    /// The names that are set when it ends, and whether they surely are.
    pub(super) exports: HashMap<String, bool>,
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
    pub lent: Arc<Lent>,
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
pub struct Callable {
    /// What kind.
    pub kind: CallableKind,
    /// Its name.
    pub name: String,
    /// Where.
    pub range: Range<usize>,
}

impl Names {
    /// Whether it runs from its beginning to its end, each statement once at most.
    pub(crate) fn is_straight(&self) -> bool {
        !self.loops && !self.captures && self.references.is_empty() && self.blocks.is_empty()
    }

    /// The paths of the variables that show somewhere, or in what the template sets: of an item of a loop, those of the list.
    pub fn paths(&self) -> impl Iterator<Item = &String> {
        self.emissions.iter().flatten().chain(self.bound.values().flatten()).filter(|path| !is_own(path))
    }

    /// Takes back that a name was read: it is a literal.
    pub(crate) fn forget(&mut self, name: &str) {
        self.reads.retain(|read| read.root != name);
        for paths in &mut self.emissions {
            paths.retain(|path| root(path) != name);
        }
        let values = self.bound.values_mut().chain(self.held.values_mut()).chain([&mut self.passed]);
        values.for_each(|paths| paths.retain(|path| root(path) != name));
        for accessor in &mut self.accessors {
            accessor.take_if(|root| root == name);
        }
    }
}

#[cfg(test)]
mod tests;
