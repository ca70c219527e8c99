//! Tags that print: `{{ … }}`.

use crate::ast::{Arguments, Expr, ExprKind};
use crate::error::Result;
use crate::origin::Origin;
use crate::render::{Printable, Render};
use crate::sink::{Mark, Sink};
use crate::text::Text;
use crate::value::{Cx, Special, Val, Value};

impl<'r> Render<'r> {
    /// Prints `name` and `name.attribute` where that is a text of the caller's or a number of a loop: what most tags are. Otherwise
    /// nothing happens.
    #[inline(always)]
    pub(super) fn emit_simple(
        &self,
        cx: &Cx<'r>,
        tag: u32,
        value: &'r Expr,
        out: &mut Sink,
    ) -> Option<Result<()>> {
        if cx.autoescape {
            return None;
        }
        let unit = cx.unit.number;
        let printed = match &value.kind {
            ExprKind::Name(name) => cx.scope.look(name.slot, |val| match &val.value {
                Value::Text(Text::Borrowed(_, text)) => {
                    let origin = val.origin;
                    let mark = || Mark::Value { unit, tag, origin };
                    Some(self.spend(1 + text.len() / 64).and_then(|()| out.write_marked(text, mark)))
                }
                _ => None,
            }),
            ExprKind::Attribute(owner, attribute) => {
                let ExprKind::Name(owner) = &owner.kind else { return None };
                cx.scope.look(owner.slot, |val| match self.printable_field(val, attribute)? {
                    Printable::Text(text, origin) => {
                        let mark = || Mark::Value { unit, tag, origin };
                        Some(self.spend(2 + text.len() / 64).and_then(|()| out.write_marked(text, mark)))
                    }
                    Printable::Number(number) => {
                        let mark = Mark::Value { unit, tag, origin: Origin::AUTHOR };
                        Some(self.spend(2).and_then(|()| out.write_number(number, mark)))
                    }
                })
            }
            _ => return None,
        };
        match printed.flatten() {
            Some(Err(error)) => Some(Err(error.at(value.range))),
            printed => printed,
        }
    }

    pub(super) fn emit(&self, cx: &Cx<'r>, tag: u32, value: &'r Expr, out: &mut Sink) -> Result<()> {
        let unit = cx.unit.number;
        match &value.kind {
            ExprKind::Text(text, offset) if !cx.autoescape => {
                let mark = match offset {
                    Some(offset) => Mark::Constant { unit, offset: *offset },
                    None => Mark::Value { unit, tag, origin: Origin::AUTHOR },
                };
                out.write(text, mark)
            }
            ExprKind::Name(name) => {
                let print = |found: &Val<'r>| match &found.value {
                    Value::Text(_) | Value::Int(_) => {
                        Some(self.spend(1).and_then(|()| self.print(cx, tag, found, out)))
                    }
                    _ => None,
                };
                match cx.scope.look(name.slot, print).flatten() {
                    Some(Ok(())) => Ok(()),
                    Some(Err(error)) => Err(error.at(value.range)),
                    None => self.emit_value(cx, tag, value, out),
                }
            }
            ExprKind::Call(callee, given) if !cx.autoescape => {
                self.emit_call(cx, tag, value, (callee, given), out)
            }
            _ => self.emit_value(cx, tag, value, out),
        }
    }

    /// Prints what a call returns. A macro writes its text where it goes, without a copy in between.
    fn emit_call(
        &self,
        cx: &Cx<'r>,
        tag: u32,
        value: &'r Expr,
        (callee, given): (&'r Expr, &'r Arguments),
        out: &mut Sink,
    ) -> Result<()> {
        let function = match &callee.kind {
            ExprKind::Name(name) => cx.scope.look(name.slot, |found| match &found.value {
                Value::Special(special) if matches!(special.as_ref(), Special::Macro(_)) => {
                    Some(special.clone())
                }
                _ => None,
            }),
            _ => None,
        };
        let Some(function) = function.flatten() else { return self.emit_value(cx, tag, value, out) };
        let Special::Macro(node) = function.as_ref() else { return Ok(()) };
        let (start, keep_empty) = (out.text.len(), std::mem::replace(&mut out.keep_empty, false));
        let written = self.spend(2).and_then(|()| self.check_stack()).and_then(|()| {
            let args = self.arguments(cx, given)?;
            self.run_macro(node, args, out)
                .map_err(|error| error.through(cx.unit.template.name(), callee.range))
        });
        out.keep_empty = keep_empty;
        written.map_err(|error| error.at(value.range).inside(cx.unit.number, cx.unit.template.name()))?;
        if out.text.len() == start {
            out.empty(Mark::Value { unit: cx.unit.number, tag, origin: Origin::AUTHOR });
        }
        Ok(())
    }

    fn emit_value(&self, cx: &Cx<'r>, tag: u32, value: &'r Expr, out: &mut Sink) -> Result<()> {
        let found = self.eval(cx, value).or_else(|error| self.eval_constant(cx, value, error, true))?;
        self.print(cx, tag, &found, out).map_err(|error| error.at(value.range))
    }
}
