//! What templates can use, for help, completion and the reference.

use crate::render::{Definition, Parameter, Spans};
use crate::{chat, filters, functions, methods, tests};

/// Which table a row belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Group {
    /// `value|name`.
    Filter,
    /// `value is name`.
    Test,
    /// `name()`.
    Function,
    /// `value.name()`.
    Method,
}

/// A filter, test, function or method.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Entry {
    /// Its table.
    pub group: Group,
    /// Its name.
    pub name: &'static str,
    /// What a method belongs to: `string`, `list`, `dict`, `integer`, `float`, `loop` or `cycler`; empty otherwise.
    pub owner: &'static str,
    /// The name with its parameters.
    pub signature: String,
    /// The parameters behind the value. One named `*` means any arguments. Methods have none here.
    pub parameters: &'static [Parameter],
    /// What it is for.
    pub about: &'static str,
    /// A template; empty for what is refused.
    pub example: &'static str,
    /// The text of that template.
    pub result: &'static str,
    /// What it does to the origins of a text.
    pub spans: Spans,
    /// Whether only the chat style has it, or has it so.
    pub chat: bool,
}

fn entry(group: Group, row: &'static Definition, chat: bool) -> Entry {
    let (example, result) = row.example;
    Entry {
        group,
        name: row.name,
        owner: "",
        signature: row.signature(),
        parameters: row.parameters,
        about: row.about,
        example,
        result,
        spans: row.spans,
        chat,
    }
}

/// Every filter, test, function and method of Jinja2 and of the chat style.
///
/// ```
/// let upper = cuebook_template::reference().into_iter().find(|entry| entry.name == "upper").unwrap();
/// assert_eq!((upper.example, upper.result), ("{{ 'abc'|upper }}", "ABC"));
/// ```
pub fn reference() -> Vec<Entry> {
    let mut all: Vec<Entry> = Vec::new();
    all.extend(filters::FILTERS.iter().map(|row| entry(Group::Filter, row, false)));
    all.extend(chat::FILTERS.iter().map(|row| entry(Group::Filter, row, true)));
    all.extend(tests::TESTS.iter().map(|row| entry(Group::Test, row, false)));
    all.extend(functions::FUNCTIONS.iter().map(|row| entry(Group::Function, row, false)));
    all.extend(chat::FUNCTIONS.iter().map(|row| entry(Group::Function, row, true)));
    all.extend(methods::METHODS.iter().map(|row| Entry {
        group: Group::Method,
        name: row.name(),
        owner: row.owner,
        signature: row.signature.to_owned(),
        parameters: &[],
        about: row.about,
        example: row.example.0,
        result: row.example.1,
        spans: row.spans,
        chat: false,
    }));
    all
}
