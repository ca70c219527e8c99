//! Values that are neither data nor text: `loop`, macros, namespaces, functions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::{Context, Counter, Cx, Items, Val};
use crate::ast::{For, Macro};
use crate::environment::Function;
use crate::text::Text;

#[derive(Debug)]
pub(crate) enum Special<'r> {
    Namespace(RefCell<Vec<(Rc<str>, Val<'r>)>>),
    Cycler {
        items: Vec<Val<'r>>,
        at: Counter,
    },
    Joiner {
        separator: Val<'r>,
        used: Cell<bool>,
    },
    Loop(LoopState<'r>),
    Macro(MacroValue<'r>),
    /// An imported template, and the text that it writes.
    Module(Rc<Context<'r>>, Text<'r>),
    /// `self`: the blocks of the template.
    Blocks(Cx<'r>),
    /// One block: its name, and how many more derived ones there are.
    Block(Cx<'r>, &'r str, usize),
    /// A method with the value that it belongs to.
    Method(Val<'r>, &'static str),
    /// A function of Jinja2.
    Function(&'static str),
    /// A function of the program.
    Custom(&'r str, &'r Function),
    /// A pair whose halves have names, as `groupby` gives it.
    Group(Vec<Val<'r>>),
    /// A text for something that is not there.
    Placeholder(&'r str),
}

#[derive(Debug)]
pub(crate) struct MacroValue<'r> {
    pub node: &'r Macro,
    pub cx: Cx<'r>,
}

/// The state of a loop.
#[derive(Debug)]
pub(crate) struct LoopState<'r> {
    pub items: Items<'r>,
    pub index: Counter,
    pub depth: usize,
    /// The loop itself and where it runs, if it is recursive.
    pub recursive: Option<(&'r For, Cx<'r>)>,
    pub last_changed: RefCell<Option<Vec<Val<'r>>>>,
}

impl<'r> Special<'r> {
    pub fn is_true(&self) -> bool {
        match self {
            Special::Group(items) => !items.is_empty(),
            Special::Loop(state) => state.items.len() > 0,
            Special::Placeholder(_) => false,
            _ => true,
        }
    }

    pub fn length(&self) -> Option<usize> {
        match self {
            Special::Group(items) => Some(items.len()),
            Special::Loop(state) => Some(state.items.len()),
            _ => None,
        }
    }

    pub fn is_callable(&self) -> bool {
        match self {
            Special::Loop(state) => state.recursive.is_some(),
            Special::Joiner { .. }
            | Special::Macro(_)
            | Special::Block(..)
            | Special::Method(..)
            | Special::Function(_)
            | Special::Custom(..) => true,
            _ => false,
        }
    }

    pub fn type_name(&self) -> &'static str {
        match self {
            Special::Namespace(_) => "a namespace",
            Special::Cycler { .. } => "a cycler",
            Special::Joiner { .. } => "a joiner",
            Special::Loop(_) => "a loop",
            Special::Macro(_) => "a macro",
            Special::Module(..) => "a module",
            Special::Blocks(_) => "`self`",
            Special::Block(..) => "a block",
            Special::Method(..) => "a method",
            Special::Function(_) | Special::Custom(..) => "a function",
            Special::Group(_) => "a tuple",
            Special::Placeholder(_) => "a placeholder",
        }
    }

    /// What it prints as, where Python prints an address.
    pub fn describe(&self) -> String {
        match self {
            Special::Macro(value) => format!("<Macro '{}'>", value.node.name),
            Special::Module(_, text) => text.as_str().to_owned(),
            Special::Loop(state) => format!("<LoopContext {}/{}>", state.index.get() + 1, state.items.len()),
            Special::Block(_, name, _) => format!("<block '{name}'>"),
            Special::Method(_, name) => format!("<method '{name}'>"),
            Special::Placeholder(text) => (*text).to_owned(),
            Special::Function(name) => format!("<function '{name}'>"),
            Special::Custom(name, _) => format!("<function '{name}'>"),
            other => format!("<{}>", other.type_name().trim_start_matches("a ").trim_matches('`')),
        }
    }
}
