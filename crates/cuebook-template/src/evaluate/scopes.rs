//! Opens scopes: what each name begins with.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value as Json;

use crate::ast::{Held, Load, Scope as Names};
use crate::host::Given;
use crate::render::Render;
use crate::text::Text;
use crate::value::{Context, Scope, Slots, Val, Value};

impl<'r> Scope<'r> {
    pub fn open(
        render: &Render<'r>,
        context: &Context<'r>,
        names: &'r Names,
        parent: Option<Rc<Scope<'r>>>,
    ) -> Rc<Scope<'r>> {
        let value = |held: &'r Held| match held.load {
            Load::Parameter | Load::Missing => None,
            Load::Resolve => context.resolve(render, &held.name),
            Load::Alias(slot) => parent.as_ref().and_then(|parent| parent.get(slot.outwards())),
        };
        let slots: Slots<'r> = names.slots.iter().map(value).collect();
        Rc::new(Scope { names, slots: RefCell::new(slots), parent })
    }

    /// The scope of the template that a render begins with. It is filled where it stays, because it is large to move.
    pub fn open_first(render: &Render<'r>, names: &'r Names) -> Rc<Scope<'r>> {
        let scope = Rc::new(Scope { names, slots: RefCell::default(), parent: None });
        let mut slots = scope.slots.borrow_mut();
        for held in &names.slots {
            if held.load != Load::Resolve {
                slots.push(None);
                continue;
            }
            match render.host.variable(&held.name) {
                // Most variables are text.
                Some(Given::Borrowed(Json::String(text))) => {
                    let origin = render.origins.variable(&held.name);
                    slots.push(Some(Val { value: Value::Text(Text::from(text.as_str())), origin }));
                }
                given => slots.push(render.given(&held.name, given)),
            }
        }
        drop(slots);
        scope
    }

    /// Sets every slot to what it begins with, those aside that the code that opens the scope sets.
    #[inline]
    pub fn begin(&self, render: &Render<'r>, context: &Context<'r>) {
        for (index, held) in self.names.slots.iter().enumerate() {
            let value = match held.load {
                Load::Parameter => continue,
                Load::Missing => None,
                Load::Resolve => context.resolve(render, &held.name),
                Load::Alias(slot) => self.get(slot),
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
