//! Evaluates a template: walks its tree, with values that know their origin, and writes to a sink.

mod calls;
mod expressions;
mod scopes;
mod statements;

use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value as Json};
use typed_arena::Arena;

use crate::check::compile;
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::library::library;
use crate::output::{Output, Source};
use crate::render::Render;
use crate::sink::{Mark, Sink};
use crate::template::Template;
use crate::text::UNPRINTED;
use crate::value::{Context, Cx, Special, Unit, Val, Value};

impl Environment {
    /// Renders a template with what serde can write as an object: a struct, a map, JSON. The values are copied once;
    /// [`Environment::render`] borrows them.
    ///
    /// ```
    /// use cuebook_template::Environment;
    ///
    /// #[derive(serde::Serialize)]
    /// struct Letter {
    ///     name: String,
    ///     tags: Vec<&'static str>,
    /// }
    ///
    /// let env = Environment::new();
    /// let template = env.compile("letter", "{{ name }}: {{ tags|join(', ') }}").unwrap();
    /// let letter = Letter { name: "Ada".to_owned(), tags: vec!["a", "b"] };
    /// assert_eq!(env.render_from(&template, &letter).unwrap().text(), "Ada: a, b");
    /// ```
    pub fn render_from(&self, template: &Template, variables: &impl Serialize) -> Result<Output> {
        let json = serde_json::to_value(variables).map_err(|error| {
            Error::new(ErrorKind::Type, format!("the variables cannot be written: {error}"))
        })?;
        match &json {
            Json::Object(map) => self.render(template, map),
            _ => Err(Error::new(
                ErrorKind::Type,
                "variables are an object: a struct or a map with strings as keys",
            )),
        }
    }

    /// Renders a template with these variables, which it borrows.
    pub fn render(&self, template: &Template, variables: &Map<String, Json>) -> Result<Output> {
        let templates = Arena::new();
        let render = Render::new(self, library(self.style), variables, &templates);
        let mut sink = Sink::new(self.limits.output_bytes);
        let unit = render.unit(template);
        let context = Context::root(unit);
        render.run_template(&context, unit, &mut sink)?;
        let units = render.units.borrow().iter().map(|template| Source::of(template)).collect();
        Ok(Output::new(sink, units, render.origins.finish()))
    }
}

impl<'r> Render<'r> {
    /// The unit of a template in this render.
    fn unit(&self, template: &'r Template) -> Unit<'r> {
        let mut units = self.units.borrow_mut();
        let known = units.iter().position(|known| std::ptr::eq(*known, template));
        let number = known.unwrap_or_else(|| {
            units.push(template);
            units.len() - 1
        });
        Unit { template, number: number as u32 }
    }

    /// Finds a template by its name.
    fn load(&self, name: &str) -> Result<Option<Unit<'r>>> {
        if let Some(at) = self.units.borrow().iter().position(|known| known.name() == name) {
            let template = self.units.borrow()[at];
            return Ok(Some(Unit { template, number: at as u32 }));
        }
        let Some(template) = self.env.found(name, compile)? else { return Ok(None) };
        let template: &'r Arc<Template> = self.templates.alloc(template);
        Ok(Some(self.unit(template)))
    }

    /// A variable of the caller's, or a global of the environment.
    fn variable(&self, name: &'r str) -> Option<Val<'r>> {
        match self.variables.get(name) {
            Some(value) => Some(Val::new(Value::from_json(value), self.origins.variable(name))),
            None => self.global(name),
        }
    }

    fn global(&self, name: &'r str) -> Option<Val<'r>> {
        if let Some(value) = self.env.globals.get(name) {
            return Some(Value::from_json(value).into());
        }
        let custom = self.env.functions.get(name).map(|function| Special::Custom(name, function));
        let function =
            custom.or_else(|| self.library.function(name).map(|known| Special::Function(known.name)));
        function.map(|special| Value::Special(Rc::new(special)).into())
    }

    /// Prints a value where a tag stands.
    fn print(&self, cx: &Cx<'r>, tag: u32, val: &Val<'r>, out: &mut Sink) -> Result<()> {
        let unit = cx.unit.number;
        if let Value::Text(text) = &val.value
            && (text.safe || !cx.autoescape)
        {
            self.spend(text.as_str().len() / 64)?;
            return match text.pieces() {
                None => out.write(text.as_str(), Mark::Value { unit, tag, origin: val.origin }),
                Some(pieces) => out.copy(text.as_str(), pieces, |mark| printed(mark, unit, tag)),
            };
        }
        if let Value::Int(number) = &val.value {
            return out.write(&number.to_string(), Mark::Value { unit, tag, origin: val.origin });
        }
        let origin = self.origin_of(val);
        let mut text = self.text_of(val)?;
        if cx.autoescape && !text.safe {
            text = text.map(crate::python::escape_html);
        }
        match text.pieces() {
            None => out.write(text.as_str(), Mark::Value { unit, tag, origin }),
            Some(pieces) => out.copy(text.as_str(), pieces, |mark| printed(mark, unit, tag)),
        }
    }
}

/// A mark, with the tag that printed it if none has before.
fn printed(mark: Mark, unit: u32, tag: u32) -> Mark {
    match mark {
        Mark::Value { tag: UNPRINTED, origin, .. } => Mark::Value { unit, tag, origin },
        other => other,
    }
}
