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
use crate::value::{Cx, Dict, Key, Val, Value};

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

    /// Pays for the texts among the arguments.
    #[inline]
    pub fn spend_read(&self, render: &Render<'r>) -> Result<()> {
        let named = self.named.iter().map(|(_, value)| value);
        self.positional.iter().chain(named).try_for_each(|value| render.spend_read(value))
    }

    /// The origins of all arguments together.
    pub fn origin(&self, render: &Render<'r>) -> Origin {
        let named = self.named.iter().map(|(_, value)| value);
        render.origins.mix_all(self.positional.iter().chain(named).map(|value| render.origin_of(value)))
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

    /// What the lines of JSON begin with: a string, or so many spaces. The JSON of a string has one line, so nothing is read for it.
    pub fn indent(&self, at: usize) -> Result<Option<String>> {
        if self.value.value.as_str().is_some() {
            return Ok(None);
        }
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
        self.render.text_of(&self.value)
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
            dict.insert(key, Val::text(name.as_ref().to_owned(), Origin::AUTHOR), value);
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
        args.spend_read(self)?;
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
        Ok(builder.finish(origin, false))
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
        self.spend_made(Val::new(Value::from_owned_json(value), origin))
    }
}
