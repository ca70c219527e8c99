//! One render: its limits, its origins, and what values mean in it.

mod access;
mod calls;
mod growing;
mod items;
mod json;
mod tables;

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::Instant;

use serde_json::Value as Json;
use smallvec::SmallVec;
use typed_arena::Arena;

pub(crate) use self::access::Printable;
pub(crate) use self::calls::{Args, Call};
pub(crate) use self::growing::Growing;
pub(crate) use self::json::{check_depth, to_json};
pub(crate) use self::tables::{ANYTHING, Definition, Library, may, need, row};
pub use self::tables::{Kind, Parameter, Spans};
use crate::environment::{Environment, Style};
use crate::error::{Error, Exceeded, Result};
use crate::host::Host;
use crate::names::Few;
use crate::origin::{Origin, Table};
use crate::stack::{CAN_GROW, Stack};
use crate::template::Template;
use crate::text::Text;
use crate::value::{Key, Missing, Printer, Scope, Special, Val, Value, origin_inside};

/// How often the clock is looked at: once in so many units of fuel.
const CLOCK: u64 = 4096;

/// Without a clock, only fuel limits a render.
const HAS_CLOCK: bool = cfg!(not(all(target_arch = "wasm32", target_os = "unknown")));

/// Stack that a text of the program has at least, and how much more it gets if it has less.
pub(crate) const RED_ZONE: usize = 1 << 20;
pub(crate) const STACK: usize = 4 << 20;

/// One render.
pub(crate) struct Render<'r> {
    pub env: &'r Environment,
    pub library: &'static Library,
    pub origins: Table<'r>,
    pub host: &'r dyn Host,
    pub memory: &'r Memory,
    /// The scope of the template that the render began with, if it is small: it keeps the variables that it asked for.
    pub first: OnceCell<Rc<Scope<'r>>>,
    /// The variables that others asked for.
    pub variables: RefCell<Few<'r, Option<Val<'r>>>>,
    pub units: RefCell<SmallVec<[&'r Template; 4]>>,
    /// The fuel up to the next look at the clock, and what is left then.
    left: Cell<u64>,
    reserve: Cell<u64>,
    deadline: Option<Instant>,
    depth: Cell<usize>,
    random: Cell<u64>,
    /// Whether a slice of something that cannot be sliced is undefined.
    pub lenient_slices: Cell<bool>,
    /// Where the stack was when the render began.
    stack: Cell<Stack>,
    /// Scopes that hold something that holds them, and namespaces, which can hold themselves. The end empties them.
    pub scopes: RefCell<Vec<Weak<Scope<'r>>>>,
    pub namespaces: RefCell<Vec<Weak<Special<'r>>>>,
}

impl Drop for Render<'_> {
    fn drop(&mut self) {
        for scope in self.scopes.get_mut().iter().filter_map(Weak::upgrade) {
            scope.slots.take();
        }
        for space in self.namespaces.get_mut().iter().filter_map(Weak::upgrade) {
            if let Special::Namespace(entries) = space.as_ref() {
                entries.take();
            }
        }
    }
}

/// What is made for a render and lives as long as it. It takes no memory before something is made.
#[derive(Default)]
pub(crate) struct Memory(OnceCell<Box<Arenas>>);

#[derive(Default)]
struct Arenas {
    templates: Arena<Arc<Template>>,
    values: Arena<Json>,
    names: Arena<String>,
}

impl Memory {
    fn arenas(&self) -> &Arenas {
        self.0.get_or_init(Box::default)
    }

    pub fn template(&self, template: Arc<Template>) -> &Arc<Template> {
        self.arenas().templates.alloc(template)
    }

    pub fn value(&self, value: Json) -> &Json {
        self.arenas().values.alloc(value)
    }

    pub fn name(&self, name: String) -> &str {
        self.arenas().names.alloc(name)
    }
}

impl<'r> Render<'r> {
    #[inline(always)]
    pub fn new(
        env: &'r Environment,
        library: &'static Library,
        host: &'r dyn Host,
        memory: &'r Memory,
        (fuel, origins): (u64, usize),
    ) -> Render<'r> {
        Render {
            env,
            library,
            origins: Table::new(origins),
            host,
            memory,
            first: OnceCell::new(),
            variables: RefCell::default(),
            units: RefCell::default(),
            left: Cell::new(fuel.min(CLOCK)),
            reserve: Cell::new(fuel - fuel.min(CLOCK)),
            deadline: env.limits.time.filter(|_| HAS_CLOCK).map(|time| Instant::now() + time),
            depth: Cell::new(0),
            random: Cell::new(env.seed | 1),
            lenient_slices: Cell::new(false),
            stack: Cell::new(Stack::here()),
            scopes: RefCell::default(),
            namespaces: RefCell::default(),
        }
    }

    /// Pays for work. The deadline is looked at along the way.
    #[inline]
    pub fn spend(&self, units: usize) -> Result<()> {
        match self.left.get().checked_sub(units as u64) {
            Some(left) => {
                self.left.set(left);
                Ok(())
            }
            None => self.look_at_clock(units as u64),
        }
    }

    /// The fuel that is left.
    pub fn fuel(&self) -> u64 {
        self.left.get() + self.reserve.get()
    }

    pub fn set_fuel(&self, fuel: u64) {
        self.left.set(fuel.min(CLOCK));
        self.reserve.set(fuel - fuel.min(CLOCK));
    }

    #[cold]
    fn no_fuel(&self) -> Error {
        let limit = self.env.limits.fuel;
        Error::limit(Exceeded::Fuel, format!("the render takes more than {limit} steps"))
            .help("look for a loop over much data, or raise the limit")
    }

    #[cold]
    fn look_at_clock(&self, units: u64) -> Result<()> {
        let Some(fuel) = self.fuel().checked_sub(units) else { return Err(self.no_fuel()) };
        self.set_fuel(fuel);
        if self.deadline.is_some_and(|deadline| Instant::now() > deadline) {
            return Err(Error::limit(Exceeded::Fuel, "the render takes longer than its time limit"));
        }
        Ok(self.host.has_time()?)
    }

    /// Pays for text that is made.
    #[inline]
    pub fn spend_text(&self, bytes: usize) -> Result<()> {
        let limit = self.env.limits.string_bytes;
        if bytes > limit {
            return Err(Error::limit(Exceeded::Size, format!("a string would be longer than {limit} bytes")));
        }
        self.spend(bytes / 64)
    }

    /// Pays for text that grew from `paid` bytes, which it brings up to date.
    #[inline]
    pub fn spend_growth(&self, paid: &mut usize, bytes: usize) -> Result<()> {
        let limit = self.env.limits.string_bytes;
        if bytes > limit {
            return self.spend_text(bytes);
        }
        let units = (bytes / 64).saturating_sub(*paid / 64);
        *paid = bytes;
        self.spend(units)
    }

    /// Pays for a value that a filter, test, function or method reads: for the bytes and pieces of a text.
    #[inline]
    pub fn spend_read(&self, val: &Val<'r>) -> Result<()> {
        match &val.value {
            Value::Text(text) => {
                self.spend(text.as_str().len() / 64 + text.pieces().map_or(0, <[_]>::len) / 16)
            }
            _ => Ok(()),
        }
    }

    /// Pays for a value that a filter, function or method made, and refuses a text that is too long.
    #[inline]
    pub fn spend_made(&self, val: Val<'r>) -> Result<Val<'r>> {
        match &val.value {
            Value::Text(Text::Shared(_, text)) => self.spend_text(text.len())?,
            Value::Text(Text::Marked(_, sink)) => {
                self.spend_text(sink.text.len())?;
                self.spend(sink.pieces.len() / 16)?;
            }
            _ => {}
        }
        Ok(val)
    }

    /// The key that a value is in a dict.
    pub fn key_of(&self, value: &Value<'r>) -> Result<Key> {
        let (key, bytes) = Key::of(value, self.env.limits.string_bytes)?;
        self.spend(bytes / 64)?;
        Ok(key)
    }

    /// Refuses to go on where the stack gets short, however it got there.
    #[inline(always)]
    pub fn check_stack(&self) -> Result<()> {
        if self.stack.get().used() > self.env.limits.stack_bytes { Err(self.no_stack()) } else { Ok(()) }
    }

    #[cold]
    fn no_stack(&self) -> Error {
        Error::limit(Exceeded::Depth, "expressions, blocks and macros nest too deeply")
            .help("look for a macro that calls itself without end, or for parentheses inside parentheses")
    }

    /// Pays for items that are looked at or made.
    #[inline]
    pub fn spend_items(&self, items: usize) -> Result<()> {
        let limit = self.env.limits.items;
        if items > limit {
            return Err(Error::limit(
                Exceeded::Size,
                format!("a sequence would have more than {limit} items"),
            ));
        }
        self.spend(items)
    }

    /// Whether values are as in every runtime of `.prompty` files.
    #[inline]
    pub fn is_portable(&self) -> bool {
        self.env.style == Style::Portable
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
    pub fn deeper<T>(&self, inside: impl FnOnce() -> Result<T>) -> Result<T> {
        self.check_stack()?;
        let depth = self.depth.get();
        if depth >= self.env.limits.depth {
            let message =
                format!("macros, blocks, includes and recursive loops nest more than {depth} levels deep");
            return Err(Error::limit(Exceeded::Depth, message));
        }
        self.depth.set(depth + 1);
        let stack = self.stack.get();
        let result = match CAN_GROW && stack.used() > self.env.limits.stack_bytes / 2 {
            false => inside(),
            true => stacker::grow(self.env.limits.stack_bytes + RED_ZONE, || {
                self.stack.set(Stack::here());
                inside()
            }),
        };
        self.stack.set(stack);
        self.depth.set(depth);
        result
    }

    /// Where a value came from, with everything inside of it.
    pub fn origin_of(&self, val: &Val<'r>) -> Origin {
        let (inside, steps) = origin_inside(&self.origins, val);
        // What is spent beyond the end shows at the next step.
        if steps > 0 {
            self.set_fuel(self.fuel().saturating_sub(steps as u64));
        }
        self.origins.mix(val.origin, inside)
    }

    /// A value as text: what `str` gives in Python.
    pub fn text_of(&self, val: &Val<'r>) -> Result<Text<'r>> {
        match &val.value {
            Value::Text(text) => Ok(text.clone()),
            Value::Special(special) if let Special::Module(_, text) = special.as_ref() => Ok(text.clone()),
            Value::Undefined(_) => self.refuse_missing(val).map(|()| Text::from("")),
            Value::Special(special) if let Some(name) = self.silent(special) => match self.env.strict {
                true => Err(Missing::Variable(name).error()),
                false => Ok(Text::from("")),
            },
            value => {
                let mut printer = Printer::new(self.env.limits.string_bytes);
                match self.env.style {
                    Style::Portable => printer.portable(value)?,
                    Style::Python | Style::Chat => printer.str(value)?,
                }
                self.spend_text(printer.out.len())?;
                Ok(Text::from(printer.out))
            }
        }
    }

    /// Refuses an undefined value if templates are strict. As in Jinja2, what an `if` without an `else` gives is empty nevertheless.
    #[inline]
    pub fn refuse_missing(&self, val: &Val<'r>) -> Result<()> {
        match &val.value {
            Value::Undefined(missing) if self.env.strict && !matches!(missing, Missing::Else) => {
                Err(missing.error())
            }
            _ => Ok(()),
        }
    }

    /// Whether a value is true, where a condition asks.
    pub fn truth(&self, val: &Val<'r>) -> Result<bool> {
        match &val.value {
            Value::Undefined(_) if !self.env.testable => self.refuse_missing(val).map(|()| false),
            Value::Special(special) if let Some(name) = self.silent(special) => {
                match self.env.strict && !self.env.testable {
                    true => Err(Missing::Variable(name).error()),
                    false => Ok(false),
                }
            }
            value => Ok(value.is_true()),
        }
    }

    /// The name of a function or method that is undefined unless it is called.
    fn silent(&self, special: &Special<'r>) -> Option<&'r str> {
        match special {
            Special::Function(name) if self.env.silent_callables => Some(name),
            Special::Custom(name, _) if self.env.silent_callables => Some(name),
            Special::Method(_, name) if self.env.silent_callables => Some(name),
            _ => None,
        }
    }
}
