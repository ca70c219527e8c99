//! A Python file, as far as it can be known without running it.
//!
//! [`Module::parse`] reads a whole file and notes what each name at module level stands for. A name that was assigned a
//! literal has its value; a name that anything else can touch (a condition, an import, a later change) has the reason why
//! its value is unknown, and asking for it gives that reason as an error. Nothing is ever guessed or passed over.
//!
//! This module must not execute Python, look at other files, or know what the names mean: what a `METADATA` has to look
//! like is for the dialects that ask for it.
//!
//! What no reading can see, and this one does not try to: code that changes a definition through another name, through
//! `globals()`, or inside a function that is called while the module loads.

#[cfg(feature = "python")]
mod bindings;
#[cfg(feature = "python")]
mod depth;
mod fault;
mod literal;
#[cfg_attr(not(feature = "python"), path = "python/disabled.rs")]
mod parse;
#[cfg(feature = "python")]
mod read;
#[cfg(test)]
#[cfg(feature = "python")]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use indexmap::IndexMap;

use crate::error::Result;
use crate::source::Source;
use fault::{Fault, UnknownReason};
pub use literal::{Entry, Literal, LiteralValue};
pub use parse::{comments, without};

/// A Python module as far as it can be known without running it.
#[derive(Debug)]
pub struct Module {
    source: Arc<Source>,
    docstring: Option<String>,
    functions: Vec<Function>,
    names: IndexMap<String, Binding>,
    star_import: Option<Range<usize>>,
}

/// What one name stands for.
#[derive(Debug)]
struct Binding {
    /// The last place that binds it.
    range: Range<usize>,
    value: Result<Literal, Fault>,
    /// Which of the functions it is, if a `def` was the last to bind it.
    function: Option<usize>,
    /// Whether it is bound in the end; `del` undoes it.
    bound: bool,
    /// Whether the last to bind it was `name = value` and nothing more: no other target, no annotation.
    plain: bool,
}

/// A function that a module defines at its top level, perhaps under a condition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its name.
    pub name: String,
    /// Whether it is an `async def`.
    pub is_async: bool,
    /// The names of its parameters in order; `*args` and `**kwargs` keep their stars.
    pub parameters: Vec<String>,
    /// How many values it can be called with, by position: at least, and at most unless it takes any number. `None` if it
    /// cannot be called so, because a parameter has to be given by name.
    pub positional: Option<(usize, Option<usize>)>,
    /// Where `def name` stands.
    pub range: Range<usize>,
}

impl Function {
    /// Whether it can be called with so many values.
    pub fn takes(&self, count: usize) -> bool {
        self.positional.is_some_and(|(least, most)| count >= least && most.is_none_or(|most| count <= most))
    }
}

impl Module {
    /// Reads a module.
    ///
    /// # Errors
    ///
    /// [`Code::PythonSyntax`] if it is not valid Python, or nested so deeply that Python would refuse it as well.
    pub fn parse(source: &Arc<Source>) -> Result<Module> {
        parse::module(source)
    }

    /// The text that it was read from.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The string that the module begins with, as it is written, indentation and all.
    pub fn docstring(&self) -> Option<&str> {
        self.docstring.as_deref()
    }

    /// All functions at module level, in the order of the file; a name that is defined twice is there twice.
    pub fn functions(&self) -> &[Function] {
        &self.functions
    }

    /// The names that are bound when the module has been loaded, in the order of their first appearance.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().filter(|(_, binding)| binding.bound).map(|(name, _)| name.as_str())
    }

    /// The value of a name; `None` if nothing in the module assigns it.
    ///
    /// # Errors
    ///
    /// [`Code::NotLiteral`] if the name is bound to something that only running the module can tell, and
    /// [`Code::BadDefinition`] if the value is written out but cannot be carried faithfully: a key that is there twice
    /// or is not a string, a number that is too large, a lone surrogate.
    pub fn literal(&self, name: &str) -> Result<Option<&Literal>> {
        match (self.names.get(name), &self.star_import) {
            (Some(Binding { value: Ok(literal), .. }), _) => Ok(Some(literal)),
            (Some(Binding { value: Err(fault), .. }), _) => Err(fault.to_error(name, &self.source)),
            (None, Some(range)) => {
                Err(Fault::new(UnknownReason::StarImport, range.clone()).to_error(name, &self.source))
            }
            (None, None) => Ok(None),
        }
    }

    /// The names that are given a value by `name = value` and nothing more, with those of the values that are written out.
    pub fn constants(&self) -> impl Iterator<Item = (&str, &Literal)> {
        let plain = self.names.iter().filter(|(_, binding)| binding.bound && binding.plain);
        plain.filter_map(|(name, binding)| Some((name.as_str(), binding.value.as_ref().ok()?)))
    }

    /// The function that a name stands for, if a `def` is the last thing that binds it.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let binding = self.names.get(name).filter(|binding| binding.bound)?;
        binding.function.map(|index| &self.functions[index])
    }

    /// Where a name is bound at module level, in whatever way: `def`, `class`, an import, any kind of assignment.
    ///
    /// The last place wins. `from x import *` binds no name that is known; see [`Module::star_import`].
    pub fn defines(&self, name: &str) -> Option<Range<usize>> {
        self.names.get(name).filter(|binding| binding.bound).map(|binding| binding.range.clone())
    }

    /// Where the module imports every name of another, and so may bind any name at all.
    pub fn star_import(&self) -> Option<Range<usize>> {
        self.star_import.clone()
    }
}
