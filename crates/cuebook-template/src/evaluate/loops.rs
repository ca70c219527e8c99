//! Loops.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value as Json;

use super::statements::{Flow, captured};
use crate::ast::{Expr, ExprKind, For, Slot, Statement, StatementKind};
use crate::error::{ErrorKind, Result};
use crate::origin::Origin;
use crate::render::Render;
use crate::sink::{Mark, Sink};
use crate::value::{Counter, Cx, Items, LoopState, Scope, Special, Val, Value};

impl<'r> Render<'r> {
    /// The items of a loop that its condition lets through.
    fn loop_items(&self, cx: &Cx<'r>, node: &'r For, iterable: &Val<'r>) -> Result<Items<'r>> {
        let items = match self.items(iterable) {
            Err(error) if self.is_portable() && error.kind() == ErrorKind::Type => {
                Items::Values(Rc::default(), Origin::AUTHOR)
            }
            items => items.map_err(|error| error.at(node.iterable.range))?,
        };
        let Some((test, names, target)) = &node.test else { return Ok(items) };
        let scope = Scope::open(self, &cx.context, names, Some(cx.scope.clone()));
        let inner = cx.within(scope);
        let mut kept = Vec::new();
        for index in 0..items.len() {
            self.spend(1)?;
            let item = items.get(&self.origins, index);
            self.assign(&inner, target, item.clone())?;
            if self.truth(&self.eval(&inner, test)?)? {
                kept.push(item);
            }
        }
        Ok(Items::Values(Rc::new(kept.into()), Origin::AUTHOR))
    }

    pub(super) fn run_loop(
        &self,
        cx: &Cx<'r>,
        node: &'r For,
        iterable: &Val<'r>,
        depth: usize,
        out: &mut Sink,
    ) -> Result<()> {
        let items = self.loop_items(cx, node, iterable)?;
        let length = items.len();
        if length == 0 {
            let scope = Scope::open(self, &cx.context, &node.otherwise.scope, Some(cx.scope.clone()));
            self.run_all(&cx.within(scope), &node.otherwise.statements, out)?;
            return Ok(());
        }
        let state = node.loop_slot.map(|slot| {
            let state = LoopState {
                items: items.clone(),
                index: Counter::new(0),
                depth,
                recursive: node.recursive.then(|| (node, cx.clone())),
                last_changed: RefCell::new(None),
            };
            (slot, Rc::new(Special::Loop(state)))
        });
        let mut inner: Option<Cx<'r>> = None;
        // The slot of the item, where texts of the caller's can be written as they are.
        let plain = match &node.target.kind {
            ExprKind::Name(name) if !cx.autoescape && !self.is_silent(cx) => Some(name.slot),
            _ => None,
        };
        for index in 0..length {
            self.spend(1)?;
            let mut statements = node.body.statements.as_slice();
            let item = match &items {
                Items::Array(items, origin) => {
                    let (item, origin) = (&items[index], self.origins.index(*origin, index));
                    if let Some(slot) = plain {
                        statements = self.write_item(cx, statements, slot, (item, origin), out)?;
                        if statements.is_empty() {
                            continue;
                        }
                    }
                    Val::new(Value::from_json(item), origin)
                }
                items => items.get(&self.origins, index),
            };
            let inner = match &mut inner {
                // Nothing else keeps the scope of the last round, so it serves again.
                Some(inner) if Rc::strong_count(&inner.scope) == 1 => {
                    inner.scope.begin(self, &cx.context);
                    inner
                }
                other => {
                    let scope = Scope::open(self, &cx.context, &node.body.scope, Some(cx.scope.clone()));
                    if let Some((slot, state)) = &state {
                        scope.set_own(*slot, Value::Special(state.clone()).into());
                    }
                    other.insert(cx.within(scope))
                }
            };
            if let Some((_, Special::Loop(state))) =
                state.as_ref().map(|(slot, state)| (slot, state.as_ref()))
            {
                state.index.set(index);
            }
            match &node.target.kind {
                ExprKind::Name(name) => inner.scope.set(name.slot, item),
                _ => self.assign(inner, &node.target, item)?,
            }
            if self.run_all(inner, statements, out)? == Flow::Break {
                break;
            }
        }
        Ok(())
    }

    /// The text of a recursive loop over these items.
    pub(super) fn recursive_loop(
        &self,
        cx: &Cx<'r>,
        node: &'r For,
        iterable: &Val<'r>,
        depth: usize,
    ) -> Result<Val<'r>> {
        self.deeper(|| {
            let mut sink = Sink::new(self.env.limits.string_bytes);
            self.run_loop(cx, node, iterable, depth, &mut sink)?;
            Ok(captured(sink, cx.autoescape))
        })
    }

    /// Writes the first statements of a loop's body that are text, or print the item or a text in it: what most lists of tools and
    /// examples are. Nothing else can see the item meanwhile, so it needs no scope. Returns the other statements.
    fn write_item(
        &self,
        cx: &Cx<'r>,
        statements: &'r [Statement],
        slot: Slot,
        (item, origin): (&'r Json, Origin),
        out: &mut Sink,
    ) -> Result<&'r [Statement]> {
        let unit = cx.unit.number;
        let mut done = 0;
        for statement in statements {
            let printed = match &statement.kind {
                StatementKind::Data => None,
                StatementKind::Emit(value) => match self.text_of_item(value, slot, (item, origin)) {
                    Some(printed) => Some((value, printed)),
                    None => break,
                },
                _ => break,
            };
            let written = match printed {
                None => self.data(cx, statement, out),
                Some((value, (text, origin))) => self
                    .spend(2 + text.len() / 64)
                    .and_then(|()| {
                        out.write_marked(text, || Mark::Value { unit, tag: statement.range.start, origin })
                    })
                    .map_err(|error| error.at(value.range)),
            };
            written.map_err(|error| self.locate(cx, error, statement))?;
            done += 1;
        }
        self.spend(done)?;
        Ok(&statements[done..])
    }

    /// The text that an expression gives, if it is the item in this slot or a text in it.
    #[inline(always)]
    fn text_of_item(
        &self,
        value: &'r Expr,
        slot: Slot,
        (item, origin): (&'r Json, Origin),
    ) -> Option<(&'r str, Origin)> {
        match (&value.kind, item) {
            (ExprKind::Attribute(owner, attribute), Json::Object(map)) => match &owner.kind {
                ExprKind::Name(name) if name.slot == slot => match self.field(map, attribute)? {
                    Json::String(text) => Some((text, self.origins.part(origin, attribute))),
                    _ => None,
                },
                _ => None,
            },
            (ExprKind::Name(name), Json::String(text)) if name.slot == slot => Some((text, origin)),
            _ => None,
        }
    }
}
