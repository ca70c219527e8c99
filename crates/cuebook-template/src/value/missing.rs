//! Values that are not there, and what an error says about them.

use std::rc::Rc;

use super::{Special, Val, Value, type_name};
use crate::error::{Error, ErrorKind, did_you_mean};

/// What is missing, for the message.
#[derive(Debug, Clone)]
pub(crate) enum Missing<'r> {
    Nothing,
    Variable(&'r str),
    Part(Rc<Part<'r>>),
    /// What an `if` without an `else` gives.
    Else,
    Other(Rc<str>),
}

/// An attribute or item that a value does not have.
#[derive(Debug)]
pub(crate) struct Part<'r> {
    pub owner: Val<'r>,
    pub name: Rc<str>,
    /// The expression as the template has it; empty if a filter looked for it.
    pub written: &'r str,
    /// The methods of the owner.
    pub methods: fn(&Value<'_>) -> Vec<&'static str>,
}

impl Missing<'_> {
    pub fn error(&self) -> Error {
        let message = match self {
            Missing::Nothing => "this value is undefined".to_owned(),
            Missing::Variable(name) => format!("`{name}` is undefined"),
            Missing::Other(message) => message.as_ref().to_owned(),
            Missing::Else => "the condition is false, and there is no `else`".to_owned(),
            Missing::Part(part) => return part.error(),
        };
        let error = Error::new(ErrorKind::Undefined, message);
        match self {
            Missing::Variable(name) => error.of_variable(name),
            _ => error,
        }
    }
}

impl Part<'_> {
    fn error(&self) -> Error {
        let why = format!("{} has no attribute `{}`", type_name(&self.owner.value), self.name);
        let message = match self.written {
            "" => why,
            written => format!("`{written}` is undefined: {why}"),
        };
        let error = Error::new(ErrorKind::Undefined, message);
        let mut known = self.owner.value.attributes();
        known.extend((self.methods)(&self.owner.value).into_iter().map(str::to_owned));
        match did_you_mean(&self.name, known.iter().map(String::as_str)) {
            Some(help) => error.help(help),
            None => error,
        }
    }
}

impl Value<'_> {
    /// The names that a value has, methods left aside.
    fn attributes(&self) -> Vec<String> {
        let own = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        match self {
            Value::Map(map) => map.keys().cloned().collect(),
            Value::Dict(dict) => {
                dict.entries().iter().filter_map(|(key, _)| key.value.as_str().map(str::to_owned)).collect()
            }
            Value::Special(special) => match special.as_ref() {
                Special::Namespace(entries) => {
                    entries.borrow().iter().map(|(name, _)| name.as_ref().to_owned()).collect()
                }
                Special::Loop(_) => own(&LOOP),
                Special::Group(_) => own(&["grouper", "list"]),
                Special::Cycler { .. } => own(&["current"]),
                Special::Module(context, _) => {
                    let names = context.exported.borrow();
                    own(&names.names().filter(|name| names.get(name) == Some(&true)).collect::<Vec<_>>())
                }
                Special::Blocks(cx) => own(&cx.context.blocks.borrow().names().collect::<Vec<_>>()),
                _ => Vec::new(),
            },
            _ => Vec::new(),
        }
    }
}

/// What `loop` offers.
const LOOP: [&str; 11] = [
    "index",
    "index0",
    "revindex",
    "revindex0",
    "first",
    "last",
    "length",
    "depth",
    "depth0",
    "previtem",
    "nextitem",
];
