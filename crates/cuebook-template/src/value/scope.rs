//! What a template can see while it runs: its scopes, and the context behind them.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use super::Val;
use crate::ast::{Block, Load, Scope as Names, Slot};
use crate::names::Few;
use crate::template::Template;

/// A template with its number in this render.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit<'r> {
    pub template: &'r Template,
    pub number: u32,
}

/// Values by slot. Most scopes have few, which need no memory apart from the scope.
pub(crate) type Slots<'r> = SmallVec<[Option<Val<'r>>; 4]>;

/// The values of one scope.
#[derive(Debug)]
pub(crate) struct Scope<'r> {
    pub names: &'r Names,
    pub slots: RefCell<Slots<'r>>,
    pub parent: Option<Rc<Scope<'r>>>,
}

impl<'r> Scope<'r> {
    #[inline]
    fn outer(&self, up: u32) -> &Scope<'r> {
        let mut scope = self;
        for _ in 0..up {
            match &scope.parent {
                Some(parent) => scope = parent,
                None => break,
            }
        }
        scope
    }

    #[inline]
    pub fn get(&self, slot: Slot) -> Option<Val<'r>> {
        self.look(slot, Val::clone)
    }

    /// Looks at a value where it is, if there is one.
    #[inline]
    pub fn look<T>(&self, slot: Slot, at: impl FnOnce(&Val<'r>) -> T) -> Option<T> {
        self.outer(slot.up).slots.borrow().get(slot.index as usize)?.as_ref().map(at)
    }

    #[inline]
    pub fn set(&self, slot: Slot, value: Val<'r>) {
        if let Some(place) = self.outer(slot.up).slots.borrow_mut().get_mut(slot.index as usize) {
            *place = Some(value);
        }
    }

    pub fn set_own(&self, index: u32, value: Val<'r>) {
        self.set(Slot { up: 0, index }, value);
    }

    /// What the context has under a name, if this scope has asked for it and nothing here assigns it.
    #[inline]
    pub fn resolved(&self, name: &str) -> Option<Option<Val<'r>>> {
        let index = self.names.slots.iter().position(|held| held.name == name)?;
        let asked = self.names.slots[index].load == Load::Resolve && !self.names.slots[index].stored;
        asked.then(|| self.slots.borrow()[index].clone())
    }

    /// A name that some scope around assigns, as an include sees it.
    pub fn find(&self, name: &str) -> Option<Val<'r>> {
        let mut scope = self;
        let mut value = None;
        let mut known = false;
        loop {
            if let Some(index) = scope.names.slots.iter().position(|held| held.name == name) {
                if !known {
                    value = scope.slots.borrow()[index].clone();
                    known = true;
                }
                if scope.names.slots[index].stored {
                    return value;
                }
            }
            match &scope.parent {
                Some(parent) => scope = parent,
                None => return None,
            }
        }
    }
}

/// The blocks of a template and its parents, by name, the most derived first.
pub(crate) type Blocks<'r> = Few<'r, Replaced<'r>>;

/// A block and those that it replaces.
pub(crate) type Replaced<'r> = SmallVec<[(Unit<'r>, &'r Block); 2]>;

/// What names mean that no scope of a template has.
#[derive(Debug)]
pub(crate) struct Context<'r> {
    /// What the template has set at its top level.
    pub vars: RefCell<Few<'r, Val<'r>>>,
    /// The names among these that another template can import.
    pub exported: RefCell<Few<'r, bool>>,
    /// What the template that includes this one has set.
    pub locals: Option<Rc<Scope<'r>>>,
    pub outer: Option<Rc<Context<'r>>>,
    /// Whether the caller's variables can be seen.
    pub open: bool,
    pub blocks: RefCell<Blocks<'r>>,
    /// Whether the template has a parent that will write the text.
    pub extended: Cell<bool>,
}

impl<'r> Context<'r> {
    #[inline(always)]
    fn new(unit: Option<Unit<'r>>) -> Context<'r> {
        let mut blocks = Blocks::default();
        if let Some(unit) = unit {
            for block in &unit.template.tree.blocks {
                blocks.add(block.name.as_str(), smallvec![(unit, block)]);
            }
        }
        Context {
            vars: RefCell::default(),
            exported: RefCell::default(),
            locals: None,
            outer: None,
            open: true,
            blocks: RefCell::new(blocks),
            extended: Cell::new(false),
        }
    }

    pub fn root(unit: Unit<'r>) -> Rc<Context<'r>> {
        let context = Rc::new(Context::new(None));
        for block in &unit.template.tree.blocks {
            context.blocks.borrow_mut().add(block.name.as_str(), smallvec![(unit, block)]);
        }
        context
    }

    /// For a template that is included or imported with the context.
    pub fn inside(unit: Unit<'r>, cx: &Cx<'r>) -> Rc<Context<'r>> {
        let locals = Some(cx.scope.clone());
        Rc::new(Context { locals, outer: Some(cx.context.clone()), ..Context::new(Some(unit)) })
    }

    /// For a template that sees nothing of the one that names it.
    pub fn alone(unit: Unit<'r>) -> Rc<Context<'r>> {
        Rc::new(Context { open: false, ..Context::new(Some(unit)) })
    }

    /// For a block that sees the scopes around it.
    pub fn derived(cx: &Cx<'r>) -> Rc<Context<'r>> {
        let blocks = RefCell::new(cx.context.blocks.borrow().clone());
        let locals = Some(cx.scope.clone());
        Rc::new(Context { locals, outer: Some(cx.context.clone()), blocks, ..Context::new(None) })
    }

    /// What a module offers under a name.
    pub fn offered(&self, name: &str) -> Option<Val<'r>> {
        let offered = self.exported.borrow().get(name) == Some(&true);
        offered.then(|| self.vars.borrow().get(name).cloned()).flatten()
    }

    /// What the template, or one that includes it, has set under a name.
    fn assigned(&self, name: &str) -> Option<Val<'r>> {
        if let Some(value) = self.vars.borrow().get(name) {
            return Some(value.clone());
        }
        let local = self.locals.as_ref().and_then(|scope| scope.find(name));
        local.or_else(|| self.outer.as_ref()?.assigned(name))
    }

    pub fn set(&self, name: &'r str, value: Val<'r>, exported: bool) {
        self.vars.borrow_mut().set(name, value);
        self.exported.borrow_mut().set(name, exported);
    }
}

/// Where a statement runs.
#[derive(Debug, Clone)]
pub(crate) struct Cx<'r> {
    pub unit: Unit<'r>,
    pub context: Rc<Context<'r>>,
    pub scope: Rc<Scope<'r>>,
    pub autoescape: bool,
    /// Whether what is set here is seen by blocks and by templates that import this one.
    pub top_level: bool,
    /// Whether text is left to the parent once the template has one.
    pub checks_parent: bool,
}

impl<'r> Cx<'r> {
    /// What templates have set under a name, as an include sees it.
    pub fn assigned(&self, name: &str) -> Option<Val<'r>> {
        self.scope.find(name).or_else(|| self.context.assigned(name))
    }

    /// The same place in an inner scope.
    pub fn within(&self, scope: Rc<Scope<'r>>) -> Cx<'r> {
        Cx { scope, top_level: false, ..self.clone() }
    }

    /// For text that is captured, which a parent does not replace.
    pub fn captured(mut self) -> Cx<'r> {
        self.checks_parent = false;
        self
    }
}
