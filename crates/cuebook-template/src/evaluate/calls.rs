//! Calls: arguments, macros, blocks and recursive loops.

use super::statements::captured;
use crate::ast::{Arguments, Expr, ExprKind};
use crate::error::{Error, ErrorKind, Result, did_you_mean};
use crate::methods;
use crate::origin::Origin;
use crate::render::{Args, Render};
use crate::sink::Sink;
use crate::value::{Cx, MacroValue, Scope, Special, Val, Value, type_error, type_name};

impl<'r> Render<'r> {
    pub(super) fn arguments(&self, cx: &Cx<'r>, given: &'r Arguments) -> Result<Args<'r>> {
        let mut args = Args::of(self.eval_all(cx, &given.positional)?);
        for (name, value) in &given.named {
            let value = self.eval(cx, value)?;
            self.spend(args.named.len() / 16)?;
            if args.named.iter().any(|(known, _)| known.as_ref() == name) {
                return Err(type_error(format!("the argument `{name}` is given twice")));
            }
            args.named.push((name.as_str().into(), value));
        }
        if let Some(star) = &given.star {
            let value = self.eval(cx, star)?;
            args.positional.extend(self.item_list(&value)?);
        }
        if let Some(stars) = &given.double_star {
            let value = self.eval(cx, stars)?;
            let pairs = self.pairs(&value)?;
            let pairs = pairs
                .ok_or_else(|| type_error(format!("`**` needs a dict, not {}", type_name(&value.value))))?;
            for (key, value) in pairs {
                let Some(name) = key.value.as_str() else {
                    return Err(type_error("the keys after `**` must be strings"));
                };
                self.spend(args.named.len() / 16)?;
                if args.named.iter().any(|(known, _)| known.as_ref() == name) {
                    return Err(type_error(format!("the argument `{name}` is given twice")));
                }
                args.named.push((name.into(), value));
            }
        }
        Ok(args)
    }

    pub(super) fn eval_call(&self, cx: &Cx<'r>, callee: &'r Expr, given: &'r Arguments) -> Result<Val<'r>> {
        if let ExprKind::Attribute(value, name) = &callee.kind {
            let value = self.eval(cx, value)?;
            // A method is called at once, without a value in between.
            if !matches!(value.value, Value::Special(_))
                && let Some(method) = methods::find(&value.value, name)
            {
                let args = self.arguments(cx, given)?;
                return methods::call(self, &value, method, args);
            }
            let function = self
                .attribute(&value, name, callee.range.of(cx.unit.template.text()))
                .map_err(|error| error.at(callee.range).inside(cx.unit.number, cx.unit.template.name()))?;
            let args = self.arguments(cx, given)?;
            return self
                .call_value(cx, &function, args, name)
                .map_err(|error| error.through(cx.unit.template.name(), callee.range));
        }
        let function = self.eval(cx, callee)?;
        let args = self.arguments(cx, given)?;
        let name = match &callee.kind {
            ExprKind::Name(name) => name.name.as_str(),
            _ => "this value",
        };
        self.call_value(cx, &function, args, name)
            .map_err(|error| error.through(cx.unit.template.name(), callee.range))
    }

    pub(super) fn call_with_caller(&self, cx: &Cx<'r>, call: &'r Expr, caller: Val<'r>) -> Result<Val<'r>> {
        let ExprKind::Call(callee, given) = &call.kind else {
            return Err(Error::new(ErrorKind::Syntax, "expected a call"));
        };
        let function = self.eval(cx, callee)?;
        let mut args = self.arguments(cx, given)?;
        args.named.push(("caller".into(), caller));
        self.call_value(cx, &function, args, "this value")
            .map_err(|error| error.through(cx.unit.template.name(), callee.range).at(call.range))
    }

    /// Calls a value.
    pub(crate) fn call_value(
        &self,
        cx: &Cx<'r>,
        function: &Val<'r>,
        args: Args<'r>,
        name: &str,
    ) -> Result<Val<'r>> {
        let special = match &function.value {
            Value::Special(special) => special,
            Value::Undefined(missing) => return Err(self.not_callable(cx, missing.error(), name)),
            other => {
                return Err(type_error(format!("`{name}` is {}, which cannot be called", type_name(other))));
            }
        };
        match special.as_ref() {
            Special::Function(name) => match self.library.function(name) {
                Some(function) => function.call(self, cx, Val::undefined(), args),
                None => Err(type_error(format!("`{name}` cannot be called"))),
            },
            Special::Custom(name, function) => self.call_custom(function, name, args),
            Special::Method(value, name) => methods::call(self, value, name, args),
            Special::Macro(value) => self.call_macro(value, args, cx.autoescape),
            Special::Joiner { separator, used } => {
                Ok(if used.replace(true) { separator.clone() } else { Val::text("", Origin::AUTHOR) })
            }
            Special::Block(block, name, replaced) => {
                let mut sink = Sink::new(self.env.limits.string_bytes);
                self.run_block(&block.context, name, *replaced, &mut sink)?;
                Ok(captured(sink, cx.autoescape))
            }
            Special::Loop(state) => match (&state.recursive, args.positional.as_slice()) {
                (Some((node, at)), [items]) => self.recursive_loop(at, node, items, state.depth + 1),
                (Some(_), _) => Err(type_error("`loop` takes one argument: the items of the next level")),
                (None, _) => Err(type_error("`loop` can only be called in a loop that is `recursive`")),
            },
            other => Err(type_error(format!("{} cannot be called", other.type_name()))),
        }
    }

    /// Names what could have been meant: functions, and every name in sight.
    fn not_callable(&self, cx: &Cx<'r>, error: Error, name: &str) -> Error {
        let mut known: Vec<&str> = self.library.function_names().collect();
        known.extend(self.env.functions.keys().map(String::as_str));
        let mut scope = Some(&cx.scope);
        while let Some(at) = scope {
            let slots = at.slots.borrow();
            let set = at.names.slots.iter().zip(slots.iter()).filter(|(_, value)| value.is_some());
            known.extend(set.map(|(held, _)| held.name.as_str()));
            scope = at.parent.as_ref();
        }
        let vars = cx.context.vars.borrow();
        known.extend(vars.names());
        match did_you_mean(name, known) {
            Some(help) => error.help(help),
            None => error,
        }
    }

    pub(super) fn call_macro(
        &self,
        value: &MacroValue<'r>,
        args: Args<'r>,
        autoescape: bool,
    ) -> Result<Val<'r>> {
        let mut sink = Sink::of(self.env.limits.string_bytes, &value.node.body.statements);
        self.run_macro(value, args, &mut sink)?;
        Ok(captured(sink, autoescape))
    }

    /// Calls a macro, which writes its text to a sink. Whether it escapes values depends on where it was defined.
    pub(super) fn run_macro(&self, value: &MacroValue<'r>, mut args: Args<'r>, out: &mut Sink) -> Result<()> {
        let (node, name) = (value.node, &value.node.name);
        self.deeper(|| {
            let scope = Scope::open(self, &value.cx.context, &node.body.scope, Some(value.cx.scope.clone()));
            let cx = value.cx.within(scope).captured();
            let positional = args.positional.len().min(node.parameters.len());
            let rest = args.positional.split_off(positional);
            let defaults = node.parameters.len() - node.defaults.len();
            let mut given = args.positional.into_iter();
            let mut found_caller = positional == node.parameters.len() && node.explicit_caller;
            for (at, parameter) in node.parameters.iter().enumerate() {
                let passed = given.next().or_else(|| {
                    found_caller |= parameter.name == "caller" && at >= positional;
                    (at >= positional)
                        .then(|| args.named.iter().position(|(known, _)| known.as_ref() == parameter.name))
                        .flatten()
                        .map(|at| args.named.remove(at).1)
                });
                let value = match (passed, at.checked_sub(defaults)) {
                    (Some(value), _) => value,
                    (None, Some(default)) => self.eval(&cx, &node.defaults[default])?,
                    (None, None) => Val::missing(format!("the parameter `{}` was not given", parameter.name)),
                };
                cx.scope.set(parameter.slot, value);
            }
            if let Some(slot) = node.caller.filter(|_| !found_caller) {
                let at = args.named.iter().position(|(known, _)| known.as_ref() == "caller");
                let caller = match at {
                    Some(at) => args.named.remove(at).1,
                    None => Val::missing(
                        "the macro was called without a `call` block, so `caller` is undefined".to_owned(),
                    ),
                };
                cx.scope.set_own(slot, caller);
            }
            match node.kwargs {
                Some(slot) => cx.scope.set_own(slot, self.dict_of(std::mem::take(&mut args.named))?),
                None => {
                    if let Some((other, _)) = args.named.first() {
                        return Err(type_error(format!("the macro `{name}` has no parameter `{other}`")));
                    }
                }
            }
            match node.varargs {
                Some(slot) => cx.scope.set_own(slot, Val::tuple(rest)),
                None if !rest.is_empty() => {
                    let most = node.parameters.len();
                    return Err(type_error(format!("the macro `{name}` takes at most {most} arguments")));
                }
                None => {}
            }
            let start = out.text.len();
            self.run_all(&cx, &node.body.statements, out)?;
            self.spend_text(out.text.len() - start)
        })
    }
}
