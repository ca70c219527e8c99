//! Opens scopes: what each name begins with.

use std::cell::RefCell;
use std::rc::Rc;

use crate::ast::{Load, Scope as Names};
use crate::render::Render;
use crate::value::{Context, Scope, Val};

impl<'r> Scope<'r> {
    pub fn open(
        render: &Render<'r>,
        context: &Context<'r>,
        names: &'r Names,
        parent: Option<Rc<Scope<'r>>>,
    ) -> Rc<Scope<'r>> {
        let scope = Rc::new(Scope { names, slots: RefCell::new(vec![None; names.names.len()]), parent });
        scope.begin(render, context);
        scope
    }

    /// Sets every slot to what it begins with.
    pub fn begin(&self, render: &Render<'r>, context: &Context<'r>) {
        for (index, load) in self.names.loads.iter().enumerate() {
            let value = match load {
                Load::Parameter | Load::Missing => None,
                Load::Resolve => context.resolve(render, &self.names.names[index]),
                Load::Alias(slot) => self.get(*slot),
            };
            self.slots.borrow_mut()[index] = value;
        }
    }
}

impl<'r> Context<'r> {
    /// What a name means that no scope has.
    pub fn resolve(&self, render: &Render<'r>, name: &'r str) -> Option<Val<'r>> {
        if let Some(value) = self.vars.borrow().get(name) {
            return Some(value.clone());
        }
        if let Some(value) = self.locals.as_ref().and_then(|scope| scope.find(name)) {
            return Some(value);
        }
        match &self.outer {
            Some(outer) => outer.resolve(render, name),
            None if self.open => render.variable(name),
            None => render.global(name),
        }
    }
}
