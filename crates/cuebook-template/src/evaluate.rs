//! Evaluates a template: walks its tree, with values that know their origin, and writes to a sink.

mod calls;
mod emit;
mod expressions;
mod loops;
mod scopes;
mod statements;

use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::check::compile;
use crate::environment::{Environment, Options};
use crate::error::{Error, ErrorKind, Result};
use crate::host::{Cause, Found, Given, Host, HostResult};
use crate::library::library;
use crate::names::entry;
use crate::output::Output;
use crate::render::{Memory, Render};
use crate::sink::{Mark, Sink, UNPRINTED};
use crate::template::Template;
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
        self.render_for(template, &Plain { env: self, variables }, Options::default())
    }

    /// Renders a template for a program that finds variables and templates itself.
    #[doc(hidden)]
    pub fn render_for(&self, template: &Template, host: &dyn Host, options: Options) -> Result<Output> {
        let Options { characters, keep_empty, .. } = options;
        let expected @ [bytes, pieces, _] = template.sizes.expected();
        let sink = Sink::whole(self.limits.output_bytes, characters, (bytes, pieces), keep_empty);
        self.run_for(template, host, options, (sink, expected), |render, sink| {
            let units = render.units.borrow().iter().copied().collect();
            let (fuel, origins) = (render.fuel(), render.origins.finish());
            template.sizes.note([sink.text.len(), sink.pieces.len(), origins.count()]);
            Output::new(sink, units, origins, fuel)
        })
    }

    /// The text of such a render alone, and the fuel that was left. The text takes the memory of another one.
    #[doc(hidden)]
    pub fn render_text_for(
        &self,
        template: &Template,
        host: &dyn Host,
        options: Options,
        memory: String,
    ) -> Result<(String, u64)> {
        let expected @ [bytes, pieces, _] = template.sizes.expected();
        let sink = Sink::text_only(self.limits.output_bytes, options.characters, bytes, memory);
        self.run_for(template, host, options, (sink, expected), |render, sink| {
            let (fuel, origins) = (render.fuel(), render.origins.finish());
            template.sizes.note([sink.text.len(), pieces, origins.count()]);
            (sink.text, fuel)
        })
    }

    #[inline(always)]
    fn run_for<T>(
        &self,
        template: &Template,
        host: &dyn Host,
        options: Options,
        (mut sink, [.., origins]): (Sink, [usize; 3]),
        finish: impl FnOnce(&Render<'_>, Sink) -> T,
    ) -> Result<T> {
        let memory = Memory::default();
        let fuel = options.fuel.unwrap_or(self.limits.fuel);
        let render = Render::new(self, library(self.style), host, &memory, (fuel, origins));
        let unit = render.unit(template);
        let context = Context::root(unit);
        render.run_template(&context, unit, &mut sink)?;
        Ok(finish(&render, sink))
    }
}

/// A program that gives an object of variables.
struct Plain<'p> {
    env: &'p Environment,
    variables: &'p Map<String, Json>,
}

impl Host for Plain<'_> {
    fn variable(&self, name: &str) -> Option<Given<'_>> {
        entry(self.variables, name).map(Given::Borrowed)
    }

    fn load(&self, name: &str, _parent: &str) -> HostResult<Option<Found>> {
        Ok(self.env.found(name, compile).map_err(Cause::new)?.map(Found::Template))
    }
}

/// What the name of a template leads to.
enum Loaded<'r> {
    Unit(Unit<'r>),
    Foreign(usize),
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

    /// Finds a template by the name that another one gives it.
    fn load(&self, name: &str, parent: &str) -> Result<Option<Loaded<'r>>> {
        let template = match self.host.load(name, parent)? {
            None => return Ok(None),
            Some(Found::Foreign(number)) => return Ok(Some(Loaded::Foreign(number))),
            Some(Found::Template(template)) => template,
        };
        let known = self.units.borrow().iter().position(|known| known.name() == template.name());
        if let Some(at) = known {
            let template = self.units.borrow()[at];
            return Ok(Some(Loaded::Unit(Unit { template, number: at as u32 })));
        }
        let template: &'r Arc<Template> = self.memory.template(template);
        Ok(Some(Loaded::Unit(self.unit(template))))
    }

    /// A variable of the caller's, or a global of the environment.
    fn variable(&self, name: &'r str) -> Option<Val<'r>> {
        if let Some(known) = self.first.get().and_then(|first| first.resolved(name)) {
            return known;
        }
        if let Some(known) = self.variables.borrow().get(name) {
            return known.clone();
        }
        let found = self.ask(name);
        self.variables.borrow_mut().add(name, found.clone());
        found
    }

    /// Asks the program for a variable.
    pub(crate) fn ask(&self, name: &'r str) -> Option<Val<'r>> {
        self.given(name, self.host.variable(name))
    }

    /// The value that the program gave, or else a global.
    pub(crate) fn given(&self, name: &'r str, given: Option<Given<'r>>) -> Option<Val<'r>> {
        match given {
            Some(Given::Borrowed(json)) => {
                Some(Val::new(Value::from_json(json), self.origins.variable(name)))
            }
            None => self.global(name),
            Some(other) => self.made(name, other),
        }
    }

    /// A variable that the program made for this render.
    #[inline(never)]
    fn made(&self, name: &'r str, given: Given<'r>) -> Option<Val<'r>> {
        let value = match given {
            Given::Borrowed(json) => Value::from_json(json),
            Given::Owned(json) => Value::from_json(self.memory.value(json)),
            Given::Placeholder(text) => Value::Special(Rc::new(Special::Placeholder(text))),
            Given::Undefined => return None,
        };
        Some(Val::new(value, self.origins.variable(name)))
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
            && (text.is_safe() || !cx.autoescape)
        {
            self.spend(text.as_str().len() / 64)?;
            return match text.pieces() {
                None => out.write(text.as_str(), printed(text.mark(val.origin), unit, tag)),
                Some(_) if text.as_str().is_empty() => {
                    out.empty(Mark::Value { unit, tag, origin: val.origin });
                    Ok(())
                }
                Some(pieces) => out.copy(text.as_str(), pieces, |mark| printed(mark, unit, tag)),
            };
        }
        if let Value::Int(number) = &val.value {
            return out.write_number(*number, Mark::Value { unit, tag, origin: val.origin });
        }
        let origin = self.origin_of(val);
        let mut text = self.text_of(val)?;
        if cx.autoescape && !text.is_safe() {
            text = text.map_from(origin, crate::python::escape_html);
        }
        match text.pieces() {
            None => out.write(text.as_str(), printed(text.mark(origin), unit, tag)),
            Some(pieces) => out.copy(text.as_str(), pieces, |mark| printed(mark, unit, tag)),
        }
    }
}

/// A mark, with the tag that printed it if none has before.
#[inline]
fn printed(mark: Mark, unit: u32, tag: u32) -> Mark {
    match mark {
        Mark::Value { tag: UNPRINTED, origin, .. } => Mark::Value { unit, tag, origin },
        other => other,
    }
}
