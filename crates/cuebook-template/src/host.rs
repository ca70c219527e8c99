//! What a program gives to a render: variables, further templates, texts that other engines write, and the time.

use std::sync::Arc;

use serde_json::Value as Json;

pub use crate::error::Cause;
use crate::origin::Path;
use crate::template::Template;

/// The value of a variable.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Given<'a> {
    /// A value that the program keeps.
    Borrowed(&'a Json),
    /// A value that was made for this render.
    Owned(Json),
    /// A text that a condition takes for false: it marks the place of something that is not there.
    Placeholder(&'a str),
    /// Nothing, although a function or a global has this name.
    Undefined,
}

/// What a name of an `include`, `import` or `extends` leads to.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Found {
    /// A template.
    Template(Arc<Template>),
    /// A text that the program writes, by its number. It can only be included.
    Foreign(usize),
}

/// A text that the program wrote.
#[derive(Debug, Clone, Default)]
pub struct Foreign {
    /// The number under which the marks of its pieces name it.
    pub number: u32,
    /// The text.
    pub text: String,
    /// Where each part begins, and the variables that it came from. The first begins with the text.
    pub parts: Vec<(u32, Vec<Path>)>,
    /// What is left of the fuel that the program got.
    pub fuel: u64,
}

/// What a template has set where it includes a text of the program.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SetValues {
    /// The value; `None` if it is undefined, or nothing that JSON has.
    pub value: Option<Json>,
    /// The variables that it came from.
    pub paths: Vec<Path>,
    /// Whether it is one variable, or a part of one, just as it is: then the parts of the value are parts of that.
    pub whole: bool,
}

/// Where a template includes a text of the program.
pub struct Including<'i> {
    pub(crate) fuel: u64,
    pub(crate) template: &'i str,
    pub(crate) range: crate::Range,
    pub(crate) look_up: &'i dyn Fn(&str) -> Option<SetValues>,
}

impl Including<'_> {
    /// The name of the template.
    pub fn template(&self) -> &str {
        self.template
    }

    /// The place in the template.
    pub fn range(&self) -> crate::Range {
        self.range
    }

    /// The fuel that is left.
    pub fn fuel(&self) -> u64 {
        self.fuel
    }

    /// What the template has set under a name; `None` if it has set nothing.
    pub fn set_value(&self, name: &str) -> Option<SetValues> {
        (self.look_up)(name)
    }
}

/// A result of the program.
pub type HostResult<T> = std::result::Result<T, Cause>;

/// What a program gives to a render.
pub trait Host {
    /// The value of a variable.
    fn variable(&self, name: &str) -> Option<Given<'_>>;

    /// What a template means by a name.
    fn load(&self, name: &str, parent: &str) -> HostResult<Option<Found>>;

    /// Writes a text that [`Host::load`] has found.
    fn foreign(&self, number: usize, at: &Including<'_>) -> HostResult<Foreign> {
        let _ = (number, at);
        Ok(Foreign::default())
    }

    /// Refuses to go on if there is no time left. It is asked every few thousand steps.
    fn has_time(&self) -> HostResult<()> {
        Ok(())
    }
}
