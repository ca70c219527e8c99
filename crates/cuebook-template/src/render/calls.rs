//! Calls: arguments, macros, functions.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use serde_json::Value as Json;

use super::special::MacroValue;
use super::statements::captured;
use super::{Cx, Render, Scope, Special, equal};
use crate::ast::{Arguments, Expr, ExprKind};
use crate::environment::Function;
use crate::error::{Error, ErrorKind, Result};
use crate::json::to_json;
use crate::methods;
use crate::origin::Origin;
use crate::sink::Sink;
use crate::text::Text;
use crate::value::{Counter, Dict, Key, Range, Val, Value, type_error, type_name};

/// The functions of Jinja2.
pub(crate) const FUNCTIONS: [&str; 5] = ["range", "dict", "cycler", "joiner", "namespace"];

/// The arguments of a call.
#[derive(Debug, Clone, Default)]
pub(crate) struct Args<'r> {
    pub positional: Vec<Val<'r>>,
    pub named: Vec<(Rc<str>, Val<'r>)>,
}

impl<'r> Args<'r> {
    pub fn of(positional: Vec<Val<'r>>) -> Args<'r> {
        Args { positional, named: Vec::new() }
    }

    pub fn take_named(&mut self, name: &str) -> Option<Val<'r>> {
        let at = self.named.iter().position(|(known, _)| known.as_ref() == name)?;
        Some(self.named.remove(at).1)
    }

    /// The origins of all arguments together.
    pub fn origin(&self, render: &Render<'r>) -> Origin {
        let named = self.named.iter().map(|(_, value)| value);
        render.origins.mix_all(self.positional.iter().chain(named).map(|value| render.origin_of(value)))
    }
}

/// A filter or test: its name, its parameters, and what it does.
pub(crate) struct Definition {
    pub name: &'static str,
    /// The parameters after the value; `None` if it takes any arguments.
    pub parameters: Option<&'static [&'static str]>,
    /// How many of these must be given.
    pub required: usize,
    pub run: for<'a, 'r> fn(&mut Call<'a, 'r>) -> Result<Val<'r>>,
}

impl Definition {
    pub fn call<'r>(&self, render: &Render<'r>, cx: &Cx<'r>, args: Args<'r>) -> Result<Val<'r>> {
        let mut call = Call {
            render,
            cx,
            name: self.name,
            value: Val::undefined(),
            given: Vec::new(),
            rest: Args::default(),
        };
        let mut positional = args.positional.into_iter();
        call.value = positional.next().unwrap_or_else(Val::undefined);
        let Some(parameters) = self.parameters else {
            call.rest = Args { positional: positional.collect(), named: args.named };
            return (self.run)(&mut call);
        };
        call.given = vec![None; parameters.len()];
        for (at, value) in positional.enumerate() {
            let Some(place) = call.given.get_mut(at) else {
                return Err(type_error(format!(
                    "`{}` takes at most {} arguments",
                    self.name,
                    parameters.len()
                )));
            };
            *place = Some(value);
        }
        for (name, value) in args.named {
            let Some(at) = parameters.iter().position(|parameter| *parameter == name.as_ref()) else {
                return Err(type_error(format!("`{}` has no argument `{name}`", self.name)));
            };
            if call.given[at].replace(value).is_some() {
                return Err(type_error(format!("`{}` got the argument `{name}` twice", self.name)));
            }
        }
        if let Some(at) = (0..self.required).find(|at| call.given[*at].is_none()) {
            return Err(type_error(format!("`{}` needs the argument `{}`", self.name, parameters[at])));
        }
        (self.run)(&mut call)
    }
}

/// One call of a filter or test.
pub(crate) struct Call<'a, 'r> {
    pub render: &'a Render<'r>,
    pub cx: &'a Cx<'r>,
    pub name: &'static str,
    pub value: Val<'r>,
    pub given: Vec<Option<Val<'r>>>,
    pub rest: Args<'r>,
}

impl<'r> Call<'_, 'r> {
    pub fn arg(&self, at: usize) -> Option<&Val<'r>> {
        self.given.get(at).and_then(Option::as_ref)
    }

    /// An argument that is neither left out nor `none`.
    pub fn some(&self, at: usize) -> Option<&Val<'r>> {
        self.arg(at).filter(|value| !value.value.is_none())
    }

    pub fn flag(&self, at: usize, default: bool) -> Result<bool> {
        self.arg(at).map_or(Ok(default), |value| self.render.truth(value))
    }

    pub fn integer(&self, at: usize, default: i64) -> Result<i64> {
        self.arg(at)
            .map_or(Ok(default), |value| value.value.need_integer(&format!("an argument of `{}`", self.name)))
    }

    pub fn text_arg(&self, at: usize, default: &'r str) -> Result<Text<'r>> {
        self.arg(at).map_or(Ok(Text::from(default)), |value| self.render.text_of(value))
    }

    /// The value as text.
    pub fn text(&self) -> Result<Text<'r>> {
        let text = self.render.text_of(&self.value)?;
        self.render.spend_text(text.as_str().len())?;
        Ok(text)
    }

    pub fn items(&self) -> Result<Vec<Val<'r>>> {
        self.render.item_list(&self.value)
    }

    /// The origin of the value.
    pub fn origin(&self) -> Origin {
        self.render.origin_of(&self.value)
    }
}

impl<'r> Render<'r> {
    pub(super) fn arguments(&self, cx: &Cx<'r>, given: &'r Arguments) -> Result<Args<'r>> {
        let mut args = Args::of(self.eval_all(cx, &given.positional)?);
        for (name, value) in &given.named {
            let value = self.eval(cx, value)?;
            if args.named.iter().any(|(known, _)| known.as_ref() == name) {
                return Err(type_error(format!("the argument `{name}` is there twice")));
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
                    return Err(type_error("the keys behind `**` must be strings"));
                };
                if args.named.iter().any(|(known, _)| known.as_ref() == name) {
                    return Err(type_error(format!("the argument `{name}` is there twice")));
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
                .attribute(&value, name)
                .map_err(|error| error.at(callee.range).inside(cx.unit.number, cx.unit.template.name()))?;
            let args = self.arguments(cx, given)?;
            return self.call_value(cx, &function, args, name);
        }
        let function = self.eval(cx, callee)?;
        let args = self.arguments(cx, given)?;
        let name = match &callee.kind {
            ExprKind::Name(name) => name.name.as_str(),
            _ => "this value",
        };
        self.call_value(cx, &function, args, name)
    }

    pub(super) fn call_with_caller(&self, cx: &Cx<'r>, call: &'r Expr, caller: Val<'r>) -> Result<Val<'r>> {
        let ExprKind::Call(callee, given) = &call.kind else {
            return Err(Error::new(ErrorKind::Syntax, "expected a call"));
        };
        let function = self.eval(cx, callee)?;
        let mut args = self.arguments(cx, given)?;
        args.named.push(("caller".into(), caller));
        self.call_value(cx, &function, args, "this value").map_err(|error| error.at(call.range))
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
            Value::Undefined(missing) => return Err(self.not_callable(missing.error(), name)),
            other => {
                return Err(type_error(format!("`{name}` is {}, which cannot be called", type_name(other))));
            }
        };
        match special.as_ref() {
            Special::Function(name) => self.call_function(name, args),
            Special::Custom(name, function) => self.call_custom(function, name, args),
            Special::Method(value, name) => methods::call(self, value, name, args),
            Special::Macro(value) => self.call_macro(value, args, cx.autoescape),
            Special::Joiner { separator, used } => {
                Ok(if used.replace(true) { separator.clone() } else { Val::text("", Origin::AUTHOR) })
            }
            Special::Block(block, name, replaced) => {
                let mut sink = Sink::new(self.env.limits.string_bytes);
                self.run_block(&block.context, cx.autoescape, name, *replaced, &mut sink)?;
                Ok(captured(sink, cx.autoescape))
            }
            Special::Loop(state) => match (&state.recursive, args.positional.as_slice()) {
                (Some((node, at)), [items]) => self.recursive_loop(at, node, items, state.depth + 1),
                (Some(_), _) => Err(type_error("`loop` takes one argument: the items to go on with")),
                (None, _) => Err(type_error("`loop` can only be called in a loop that is `recursive`")),
            },
            other => Err(type_error(format!("{} cannot be called", other.type_name()))),
        }
    }

    fn not_callable(&self, error: Error, name: &str) -> Error {
        let known = FUNCTIONS.iter().copied().chain(self.env.functions.keys().map(String::as_str));
        match crate::error::nearest(name, known).first() {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error,
        }
    }

    fn call_macro(&self, value: &MacroValue<'r>, mut args: Args<'r>, autoescape: bool) -> Result<Val<'r>> {
        let (node, name) = (value.node, &value.node.name);
        self.deeper(|| {
            let scope = Scope::open(self, &value.cx.context, &node.body.scope, Some(value.cx.scope.clone()));
            let mut cx = value.cx.within(scope).captured();
            cx.autoescape = autoescape;
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
            let mut sink = Sink::new(self.env.limits.string_bytes);
            self.run_all(&cx, &node.body.statements, &mut sink)?;
            self.spend_text(sink.text.len())?;
            Ok(captured(sink, autoescape))
        })
    }

    fn dict_of(&self, named: Vec<(Rc<str>, Val<'r>)>) -> Result<Val<'r>> {
        let mut dict = Dict::default();
        for (name, value) in named {
            let key = Key::Text(name.as_ref().to_owned());
            dict.insert_text(key, Val::text(name.as_ref().to_owned(), Origin::AUTHOR), value);
        }
        Ok(Value::Dict(dict.into()).into())
    }

    fn call_function(&self, name: &str, args: Args<'r>) -> Result<Val<'r>> {
        match name {
            "range" => self.range(args),
            "dict" => self.make_dict(args),
            "namespace" => {
                let mut entries: Vec<(Rc<str>, Val<'r>)> = Vec::new();
                let made = self.make_dict(args)?;
                for (key, value) in self.pairs(&made)?.unwrap_or_default() {
                    entries.push((self.text_of(&key)?.as_str().into(), value));
                }
                Ok(Value::Special(Rc::new(Special::Namespace(RefCell::new(entries)))).into())
            }
            "cycler" => {
                no_names("cycler", &args)?;
                if args.positional.is_empty() {
                    return Err(type_error("`cycler` needs at least one item"));
                }
                Ok(Value::Special(Rc::new(Special::Cycler { items: args.positional, at: Counter::new(0) }))
                    .into())
            }
            _ => {
                let mut args = args;
                let named = args.take_named("sep");
                let separator = args.positional.into_iter().next().or(named);
                let separator = separator.unwrap_or_else(|| Val::text(", ", Origin::AUTHOR));
                Ok(Value::Special(Rc::new(Special::Joiner { separator, used: Cell::new(false) })).into())
            }
        }
    }

    fn range(&self, args: Args<'r>) -> Result<Val<'r>> {
        no_names("range", &args)?;
        let numbers: Vec<i64> = args
            .positional
            .iter()
            .map(|value| value.value.need_integer("an argument of `range`"))
            .collect::<Result<_>>()?;
        let (start, stop, step) = match numbers.as_slice() {
            [stop] => (0, *stop, 1),
            [start, stop] => (*start, *stop, 1),
            [start, stop, step] => (*start, *stop, *step),
            _ => return Err(type_error("`range` takes one to three arguments")),
        };
        if step == 0 {
            return Err(Error::new(ErrorKind::Runtime, "the step of `range` cannot be 0"));
        }
        let span = if step > 0 {
            i128::from(stop) - i128::from(start)
        } else {
            i128::from(start) - i128::from(stop)
        };
        let width = i128::from(step).abs();
        let length = if span <= 0 { 0 } else { (span + width - 1) / width };
        let most = self.env.limits.range;
        if length > most as i128 {
            return Err(Error::new(ErrorKind::Limit, format!("a range has more than {most} items")));
        }
        Ok(Value::Range(Rc::new(Range { start, stop, step, length: length as usize })).into())
    }

    pub(crate) fn make_dict(&self, args: Args<'r>) -> Result<Val<'r>> {
        let mut dict = Dict::default();
        match args.positional.as_slice() {
            [] => {}
            [from] => match self.pairs(from)? {
                Some(pairs) => {
                    for (key, value) in pairs {
                        dict.insert(key, value)?;
                    }
                }
                None => {
                    for item in self.item_list(from)? {
                        let pair = self.item_list(&item)?;
                        let [key, value] = <[Val<'r>; 2]>::try_from(pair)
                            .map_err(|_| type_error("`dict` takes a dict, pairs, or named values"))?;
                        dict.insert(key, value)?;
                    }
                }
            },
            _ => return Err(type_error("`dict` takes one argument and named values")),
        }
        for (name, value) in args.named {
            let key = Key::Text(name.as_ref().to_owned());
            dict.insert_text(key, Val::text(name.as_ref().to_owned(), Origin::AUTHOR), value);
        }
        Ok(Value::Dict(dict.into()).into())
    }

    /// Calls a function of the program. What it returns comes from everything that it got.
    pub(super) fn call_custom(&self, function: &Function, name: &str, args: Args<'r>) -> Result<Val<'r>> {
        let origin = args.origin(self);
        let positional =
            args.positional.iter().map(|value| to_json(self, value)).collect::<Result<Vec<Json>>>()?;
        let named =
            args.named.iter().map(|(name, value)| Ok((name.as_ref().to_owned(), to_json(self, value)?)));
        let named = named.collect::<Result<serde_json::Map<String, Json>>>()?;
        let value = function
            .call(&positional, &named)
            .map_err(|message| Error::new(ErrorKind::Raised, format!("`{name}`: {message}")))?;
        Ok(Val::new(Value::from_owned_json(value), origin))
    }

    /// What the methods of a loop, a cycler and their kin do.
    pub(crate) fn special_method(
        &self,
        special: &Rc<Special<'r>>,
        name: &str,
        args: Args<'r>,
    ) -> Result<Val<'r>> {
        match (special.as_ref(), name) {
            (Special::Loop(state), "cycle") => match args.positional.len() {
                0 => Err(type_error("`loop.cycle` needs at least one item")),
                length => Ok(args.positional[state.index.get() % length].clone()),
            },
            (Special::Loop(state), _) => {
                let changed = match state.last_changed.borrow().as_ref() {
                    None => true,
                    Some(last) => {
                        !equal(self, &Val::tuple(last.clone()), &Val::tuple(args.positional.clone()))?
                    }
                };
                if changed {
                    *state.last_changed.borrow_mut() = Some(args.positional);
                }
                Ok(Value::Bool(changed).into())
            }
            (Special::Cycler { items, at }, "next") => {
                let current = items[at.get()].clone();
                at.set((at.get() + 1) % items.len());
                Ok(current)
            }
            (Special::Cycler { at, .. }, _) => {
                at.set(0);
                Ok(Value::None.into())
            }
            (other, _) => Err(type_error(format!("{} has no method `{name}`", other.type_name()))),
        }
    }
}

fn no_names(function: &str, args: &Args<'_>) -> Result<()> {
    match args.named.first() {
        Some((name, _)) => Err(type_error(format!("`{function}` has no argument `{name}`"))),
        None => Ok(()),
    }
}
