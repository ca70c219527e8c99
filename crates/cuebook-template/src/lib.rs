//! Jinja2 templates that know where every byte of their output came from.
//!
//! [`Environment::render`] gives an [`Output`]: text, and [`Piece`]s that cover it. A piece is the author's text at an offset
//! of a template, or a value with the variable it came from, as exactly as `items[1].title`. Text keeps its pieces through
//! macros, `set` blocks, filters and operators.
//!
//! Jinja2 3.1.6 is the reference. Values are immutable, integers have at most 127 bits, and every render has limits.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[doc(hidden)]
pub mod ast;
mod chat;
mod check;
mod environment;
mod error;
mod evaluate;
mod filters;
mod format;
mod functions;
mod host;
mod json;
mod lexer;
mod library;
mod methods;
mod names;
mod operators;
mod origin;
mod output;
mod parser;
#[doc(hidden)]
/// What Python does to text and values, for programs that print as it does.
pub mod python {
    pub use crate::value::to_str;
    pub(crate) use crate::words::*;
    pub use crate::words::{float_repr, is_space, line_ranges};
}
mod reference;
mod render;
mod resolver;
mod sink;
mod stack;
mod template;
mod tests;
mod text;
mod typed;
mod value;
#[path = "python.rs"]
mod words;

pub use self::environment::{Environment, Framed, Function, Limits, Options, Style};
pub use self::error::{Error, ErrorKind, Exceeded, Result};
pub use self::host::{Cause, Foreign, Found, Given, Host, HostResult, Including, SetValues};
pub use self::lexer::{Range, Whitespace};
pub use self::origin::{Origin, Origins, Path};
pub use self::output::{Output, Source, Sources};
pub use self::reference::{Entry, Group, reference};
pub use self::render::{Kind, Parameter, Spans};
pub use self::sink::{Mark, Piece};
pub use self::template::Template;
pub use self::typed::{Answer, Serialized, Typed};
