//! Renders a template: walks its tree, with values that know their origin, and writes to a sink.

mod access;
mod calls;
mod expressions;
mod items;
mod operators;
mod special;
mod state;
mod statements;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Map, Value as Json};
use typed_arena::Arena;

pub(crate) use self::calls::{Args, Call, Definition};
pub(crate) use self::expressions::unknown;
pub(crate) use self::operators::{compare, equal};
pub(crate) use self::special::{LoopState, Special};
pub(crate) use self::state::{Context, Cx, Scope, Unit};
use crate::environment::Environment;
use crate::error::{Error, ErrorKind, Result};
use crate::origin::{Origin, Table};
use crate::output::{Output, Source};
use crate::sink::{Mark, Sink};
use crate::template::Template;
use crate::text::{Text, UNPRINTED};
use crate::value::{Printer, Val, Value};

/// How often the clock is looked at: once in so many units of fuel.
const CLOCK: u64 = 4096;

/// One render.
pub(crate) struct Render<'r> {
    pub env: &'r Environment,
    pub origins: Table<'r>,
    variables: &'r Map<String, Json>,
    templates: &'r Arena<Arc<Template>>,
    units: RefCell<Vec<&'r Template>>,
    fuel: Cell<u64>,
    clock: Cell<u64>,
    deadline: Option<Instant>,
    depth: Cell<usize>,
    random: Cell<u64>,
    /// Whether a slice of something that cannot be sliced is undefined.
    lenient_slices: Cell<bool>,
}

/// Renders a template with these variables.
pub(crate) fn render(
    env: &Environment,
    template: &Template,
    variables: &Map<String, Json>,
) -> Result<Output> {
    let templates = Arena::new();
    let render = Render {
        env,
        origins: Table::new(),
        variables,
        templates: &templates,
        units: RefCell::new(Vec::new()),
        fuel: Cell::new(env.limits.fuel),
        clock: Cell::new(CLOCK),
        deadline: env.limits.time.map(|time| Instant::now() + time),
        depth: Cell::new(0),
        random: Cell::new(env.seed | 1),
        lenient_slices: Cell::new(false),
    };
    let mut sink = Sink::new(env.limits.output_bytes);
    let unit = render.unit(template);
    let context = Context::root(unit);
    render.run_template(&context, unit, &mut sink)?;
    let units = render.units.borrow().iter().map(|template| Source::of(template)).collect();
    Ok(Output::new(sink, units, render.origins.finish()))
}

impl<'r> Render<'r> {
    /// Pays for work. The deadline is looked at along the way.
    #[inline]
    pub fn spend(&self, units: usize) -> Result<()> {
        let units = units as u64;
        let Some(left) = self.fuel.get().checked_sub(units) else { return Err(self.no_fuel()) };
        self.fuel.set(left);
        match self.clock.get().checked_sub(units) {
            Some(left) => {
                self.clock.set(left);
                Ok(())
            }
            None => self.look_at_clock(),
        }
    }

    #[cold]
    fn no_fuel(&self) -> Error {
        let limit = self.env.limits.fuel;
        Error::new(ErrorKind::Limit, format!("the render takes more than {limit} steps"))
            .help("look for a loop over much data, or raise the limit")
    }

    #[cold]
    fn look_at_clock(&self) -> Result<()> {
        self.clock.set(CLOCK);
        if self.deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Err(Error::new(ErrorKind::Limit, "the render takes longer than its time limit"));
        }
        Ok(())
    }

    /// Pays for text that is made.
    #[inline]
    pub fn spend_text(&self, bytes: usize) -> Result<()> {
        let limit = self.env.limits.string_bytes;
        if bytes > limit {
            return Err(Error::new(ErrorKind::Limit, format!("a string would be longer than {limit} bytes")));
        }
        self.spend(bytes / 64)
    }

    /// Pays for items that are looked at or made.
    #[inline]
    pub fn spend_items(&self, items: usize) -> Result<()> {
        let limit = self.env.limits.items;
        if items > limit {
            return Err(Error::new(
                ErrorKind::Limit,
                format!("a sequence would have more than {limit} items"),
            ));
        }
        self.spend(items)
    }

    /// A number below `count`, from the environment's seed.
    pub fn pick(&self, count: usize) -> usize {
        let mut state = self.random.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.random.set(state);
        ((state >> 11) % count.max(1) as u64) as usize
    }

    /// Runs something one level deeper: macros, blocks, includes and recursive loops.
    fn deeper<T>(&self, inside: impl FnOnce() -> Result<T>) -> Result<T> {
        let depth = self.depth.get();
        if depth >= self.env.limits.depth {
            let message =
                format!("macros, blocks, includes and recursive loops nest more than {depth} levels deep");
            return Err(Error::new(ErrorKind::Limit, message));
        }
        self.depth.set(depth + 1);
        let result = inside();
        self.depth.set(depth);
        result
    }

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
        let Some(template) = self.env.load(name)? else { return Ok(None) };
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
        let function = custom.or_else(|| {
            calls::FUNCTIONS.iter().find(|known| **known == name).map(|known| Special::Function(known))
        });
        function.map(|special| Value::Special(Rc::new(special)).into())
    }

    /// Where a value came from, with everything inside of it.
    pub fn origin_of(&self, val: &Val<'r>) -> Origin {
        let inside = match &val.value {
            Value::Text(text) => match text.pieces() {
                Some(pieces) => self.origins.mix_all(pieces.iter().map(|piece| piece.mark.origin())),
                None => Origin::AUTHOR,
            },
            Value::List(items) | Value::Tuple(items) => {
                self.origins.mix_all(items.iter().map(|item| self.origin_of(item)))
            }
            Value::Dict(dict) => {
                let both = dict
                    .entries()
                    .iter()
                    .flat_map(|(key, value)| [self.origin_of(key), self.origin_of(value)]);
                self.origins.mix_all(both)
            }
            Value::View(view) => self.origins.mix_all(view.items.iter().map(|item| self.origin_of(item))),
            Value::Special(special) => match special.as_ref() {
                Special::Group(items) => self.origins.mix_all(items.iter().map(|item| self.origin_of(item))),
                _ => Origin::AUTHOR,
            },
            _ => Origin::AUTHOR,
        };
        self.origins.mix(val.origin, inside)
    }

    /// A value as text: what `str` gives in Python.
    pub fn text_of(&self, val: &Val<'r>) -> Result<Text<'r>> {
        match &val.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Undefined(missing) if self.env.strict => Err(missing.error()),
            Value::Undefined(_) => Ok(Text::from("")),
            value => {
                let mut printer = Printer::new(self.env.limits.string_bytes);
                printer.str(value)?;
                self.spend_text(printer.out.len())?;
                Ok(Text::from(printer.out))
            }
        }
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

    /// Whether a value is true, where a condition asks.
    pub fn truth(&self, val: &Val<'r>) -> Result<bool> {
        match &val.value {
            Value::Undefined(missing) if self.env.strict => Err(missing.error()),
            value => Ok(value.is_true()),
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
