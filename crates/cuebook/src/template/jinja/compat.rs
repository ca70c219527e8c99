//! What makes the template engine behave as Jinja2's `SandboxedEnvironment` does: its filters, tests, globals and Python
//! methods, and values that print as Python prints them. In the portable [`Style`] the same names do what every runtime of
//! `.prompty` files does, wherever those differ from Python.
//!
//! Templates of packs are not trusted, so everything here that can make a value larger than what it was made from asks
//! [`ValueLimits`] first, and nothing here depends on time, chance or the process.
//!
//! This module only configures an environment. It must not load templates, know origins, or decide how undefined
//! variables behave.

mod call;
mod comparison;
mod filters;
mod formatting;
mod globals;
mod limits;
mod methods;
mod operators;
mod ordering;
mod portable;
mod printing;
mod rewrite;
mod text;

#[cfg(test)]
mod unit;

use std::sync::{Mutex, PoisonError};

use minijinja::{AutoEscape, Environment};

use super::style::Style;

pub(crate) use comparison::Comparison;
pub(in crate::template::jinja) use limits::charged;
pub(crate) use limits::{ValueLimits, ValueTooLarge};
pub(crate) use printing::{float_repr, to_str};
pub(crate) use rewrite::{Edit, NULL, assignments, operator_edits, too_long_chain};
pub use text::{is_space, split_lines};

/// The names of Jinja2's filters, for suggestions.
pub(crate) fn filter_names() -> impl Iterator<Item = &'static str> {
    filters::names()
}

/// The names of Jinja2's tests, for suggestions.
pub(crate) const TEST_NAMES: &[&str] = &[
    "boolean",
    "callable",
    "defined",
    "divisibleby",
    "eq",
    "equalto",
    "escaped",
    "even",
    "false",
    "filter",
    "float",
    "ge",
    "greaterthan",
    "gt",
    "in",
    "integer",
    "iterable",
    "le",
    "lessthan",
    "lower",
    "lt",
    "mapping",
    "ne",
    "none",
    "number",
    "odd",
    "sameas",
    "sequence",
    "string",
    "test",
    "true",
    "undefined",
    "upper",
];

/// How many configured environments are remembered. There is one for each style, unless a program sets other limits.
const MOST_REMEMBERED: usize = 8;

/// An environment that behaves as Jinja2's SandboxedEnvironment does, and bounds how large a value may grow. To make one is more
/// work than to compile a short template; copies share what is in it.
pub(crate) fn environment(limits: ValueLimits) -> Environment<'static> {
    static MADE: Mutex<Vec<(ValueLimits, Environment<'static>)>> = Mutex::new(Vec::new());
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, environment)) = made.iter().find(|(known, _)| *known == limits) {
        return environment.clone();
    }
    let mut environment = Environment::new();
    configure(&mut environment, limits);
    if made.len() < MOST_REMEMBERED {
        made.push((limits, environment.clone()));
    }
    environment
}

fn configure(env: &mut Environment<'_>, limits: ValueLimits) {
    env.set_auto_escape_callback(|_| AutoEscape::None);
    minijinja_contrib::add_to_environment(env);
    env.set_formatter(move |out, state, value| printing::format_value(limits, out, state, value));
    env.set_unknown_method_callback(move |state, value, method, args| {
        let made = methods::call(limits, state, value, method, args)?;
        limits::charged(state, limits, made)
    });
    // Names that a macro takes along, and what the author wrote and a block, macro or filter captures; see `instrument`.
    env.add_filter("__cue_seen", |_: minijinja::Value| false);
    env.add_filter("__cue_literal", move |state: &mut minijinja::State<'_, '_>, bytes: usize| {
        limits::charge(state, limits, bytes).map(|()| false)
    });
    filters::register(env, limits);
    operators::register(env, limits);
    globals::register(env, limits);
}
