//! Calls of filters, tests and functions: their arguments, and the tables that name them.

use std::rc::Rc;

use serde_json::Value as Json;

use super::Render;
use super::json::to_json;
use crate::environment::{Frame, Framed, Function};
use crate::error::{Error, ErrorKind, Result, unknown};
use crate::origin::Origin;
use crate::sink::Mark;
use crate::text::{Builder, Text};
use crate::value::{Cx, Dict, Key, Val, Value, type_error};

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
    pub fn call<'r>(
        &self,
        render: &Render<'r>,
        cx: &Cx<'r>,
        value: Val<'r>,
        args: Args<'r>,
    ) -> Result<Val<'r>> {
        let mut call = Call { render, cx, name: self.name, value, given: Vec::new(), rest: Args::default() };
        let Some(parameters) = self.parameters else {
            call.rest = args;
            return (self.run)(&mut call);
        };
        call.given = vec![None; parameters.len()];
        for (at, value) in args.positional.into_iter().enumerate() {
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

    /// What lines begin with: a string, or so many spaces.
    pub fn indent(&self, at: usize) -> Result<Option<String>> {
        let Some(value) = self.some(at) else { return Ok(None) };
        Ok(Some(match value.value.as_str() {
            Some(with) => with.to_owned(),
            None => {
                let width = usize::try_from(self.integer(at, 0)?).unwrap_or(0);
                self.render.spend_text(width)?;
                " ".repeat(width)
            }
        }))
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

/// What templates can name: one table each.
pub(crate) struct Library {
    /// In the order of the names.
    pub filters: &'static [Definition],
    /// In the order of the names.
    pub tests: &'static [Definition],
    pub functions: &'static [Definition],
    /// What a style has instead of the filters above, or beyond these.
    pub more_filters: &'static [Definition],
    pub more_functions: &'static [Definition],
    /// The method of a value that has this name.
    pub method: fn(&Value<'_>, &str) -> Option<&'static str>,
    /// The methods of a value.
    pub methods: fn(&Value<'_>) -> Vec<&'static str>,
}

fn find(table: &'static [Definition], name: &str) -> Option<&'static Definition> {
    table.binary_search_by(|known| known.name.cmp(name)).ok().map(|at| &table[at])
}

impl Library {
    pub fn filter(&self, name: &str) -> Option<&'static Definition> {
        find(self.more_filters, name).or_else(|| find(self.filters, name))
    }

    pub fn test(&self, name: &str) -> Option<&'static Definition> {
        find(self.tests, name)
    }

    pub fn function(&self, name: &str) -> Option<&'static Definition> {
        find(self.more_functions, name).or_else(|| find(self.functions, name))
    }

    pub fn function_names<'n>(&self) -> impl Iterator<Item = &'n str> + use<'n> {
        self.more_functions.iter().chain(self.functions).map(|function| function.name)
    }

    pub fn filter_names<'n>(&self) -> impl Iterator<Item = &'n str> + use<'n> {
        self.filters.iter().map(|filter| filter.name)
    }

    pub fn test_names<'n>(&self) -> impl Iterator<Item = &'n str> + use<'n> {
        self.tests.iter().map(|test| test.name).filter(|name| name.starts_with(char::is_alphabetic))
    }
}

impl<'r> Render<'r> {
    pub(crate) fn call_filter(
        &self,
        cx: &Cx<'r>,
        name: &str,
        value: Val<'r>,
        mut args: Args<'r>,
    ) -> Result<Val<'r>> {
        self.spend(1)?;
        if let Some(function) = self.env.filters.get(name) {
            args.positional.insert(0, value);
            return self.call_custom(function, name, args);
        }
        if let Some(frame) = self.env.frames.get(name) {
            return self.call_frame(frame, &value, args);
        }
        match self.library.filter(name) {
            Some(definition) => definition.call(self, cx, value, args),
            None => Err(unknown(
                "filter",
                name,
                self.library.filter_names().chain(self.env.filters.keys().map(String::as_str)),
            )),
        }
    }

    pub(crate) fn call_test(
        &self,
        cx: &Cx<'r>,
        name: &str,
        value: Val<'r>,
        mut args: Args<'r>,
    ) -> Result<bool> {
        self.spend(1)?;
        if let Some(function) = self.env.tests.get(name) {
            args.positional.insert(0, value);
            return Ok(self.call_custom(function, name, args)?.value.is_true());
        }
        match self.library.test(name) {
            Some(definition) => Ok(definition.call(self, cx, value, args)?.value.is_true()),
            None => Err(unknown(
                "test",
                name,
                self.library.test_names().chain(self.env.tests.keys().map(String::as_str)),
            )),
        }
    }

    /// Named values as a dict.
    pub fn dict_of(&self, named: Vec<(Rc<str>, Val<'r>)>) -> Result<Val<'r>> {
        let mut dict = Dict::default();
        for (name, value) in named {
            let key = Key::Text(name.as_ref().to_owned());
            dict.insert_text(key, Val::text(name.as_ref().to_owned(), Origin::AUTHOR), value);
        }
        Ok(Value::Dict(dict.into()).into())
    }

    /// Calls a filter of the program that puts something around a value.
    fn call_frame(&self, frame: &Frame, value: &Val<'r>, args: Args<'r>) -> Result<Val<'r>> {
        let text = self.text_of(value)?;
        let text_of = |value: &Val<'r>| self.text_of(value).map(|text| text.as_str().to_owned());
        let positional = args.positional.iter().map(text_of).collect::<Result<Vec<String>>>()?;
        let named = args.named.iter().map(|(name, value)| Ok((name.as_ref().to_owned(), text_of(value)?)));
        let named = named.collect::<Result<Vec<_>>>()?;
        let around = self.origins.mix_all(args.named.iter().map(|(_, value)| self.origin_of(value)));
        self.spend_text(text.as_str().len())?;
        let parts = (frame.0)(text.as_str(), &positional, &named)
            .map_err(|why| Error::new(ErrorKind::Raised, why))?;
        let mut builder = Builder::new();
        for part in parts {
            match part {
                Framed::Frame(text) => builder.mark(&text, Mark::Frame),
                Framed::Argument(text) => builder.push(&text, around),
                Framed::Value => builder.push_text(&text, self.origin_of(value)),
            }
        }
        self.spend_text(builder.len())?;
        let origin = self.origins.mix(around, self.origin_of(value));
        Ok(Val::text(builder.finish(), origin))
    }

    /// Calls a function of the program. What it returns comes from everything that it got.
    pub fn call_custom(&self, function: &Function, name: &str, args: Args<'r>) -> Result<Val<'r>> {
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
}
