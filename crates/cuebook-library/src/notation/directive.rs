//! Directives: Markdown files with a block of XML in them that says what a model is to do, with what, and how far it may go.
//!
//! ````text
//! <!-- rye:signed:… -->                       the signature, if there is one
//! # Deploy                                    the preamble
//! ```xml
//! <directive name="deploy" version="1.0.0">   the XML: metadata, inputs, outputs, actions
//!   …
//! </directive>
//! ```
//! Deploy {input:app}.                         the body
//! ````
//!
//! [`read`] gives a [`Directive`], whose parts know where they stand in the file; [`Directive::fill`] puts inputs in; the prompt of it
//! is written by [`Filled::prompt`]. What the body includes is found by [`Directive::include`]. What a directive means for a thread (limits, permissions, hooks) is read here and obeyed elsewhere.
//! What the reader does not know is reported as a note and left alone, as Rye does; what cannot be understood is an error.

mod compose;
mod condition;
mod element;
mod fill;
mod hook;
mod include;
mod input;
mod json;
mod made;
mod metadata;
mod opaque;
mod output;
mod surrounding_texts;
#[cfg(test)]
mod tests;
mod wording;
mod written;
#[cfg_attr(not(feature = "items"), path = "directive/disabled.rs")]
mod xml;

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

pub use compose::Composed;
#[cfg(feature = "items")]
pub use condition::ConditionPattern;
pub use condition::{ConditionFault, condition_fault};
pub use fill::Filled;
#[doc(hidden)]
pub use fill::MAX_TEXT;
pub use hook::{decisions_at, hook_may_decide};
pub use include::Included;
#[doc(hidden)]
pub use include::whole;
pub use input::Input;
#[doc(hidden)]
pub use metadata::permissions_json;
pub use metadata::{Acknowledged, ContextIds, Permissions};
pub use output::{Output, ToolOffer};
#[doc(hidden)]
pub use surrounding_texts::SurroundingTexts;
#[doc(hidden)]
pub use wording::SYSTEM;
pub use written::Written;

pub use crate::prompt::{Returns, Wording};

use super::fence::{self, Found};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result};
use crate::source::{Place, Source};
use crate::template::input::Template;
use crate::template::python::is_space;
use crate::template::unit::Unit;

/// Bytes that the XML may have.
const MAX_BYTES: usize = 1 << 20;
/// Elements that it may have.
const MAX_ELEMENTS: usize = 20_000;
/// How often elements may lie in each other.
const MAX_DEPTH: usize = 64;
/// Attributes that one element may have.
const MAX_ATTRIBUTES: usize = 200;

/// The moments of a thread that hooks can be for.
pub const HOOK_EVENTS: [&str; 9] = [
    "error",
    "limit",
    "after_step",
    "directive_return",
    "context_limit_reached",
    "after_complete",
    "build_system_prompt",
    "thread_started",
    "thread_continued",
];

/// How the conditions of hooks compare.
pub const HOOK_OPERATORS: [&str; 10] =
    ["eq", "ne", "gt", "gte", "lt", "lte", "in", "contains", "regex", "exists"];

/// The tool by which hooks decide how a thread goes on.
pub const HOOK_CONTROL: &str = "rye/agent/threads/internal/control";

/// What they can decide: the parameter `action` of that tool.
pub const HOOK_DECISIONS: [&str; 7] = ["retry", "fail", "abort", "continue", "escalate", "suspend", "skip"];

/// What that tool takes.
pub const HOOK_CONTROL_PARAMS: [&str; 5] =
    ["action", "error", "suspend_reason", "limit_type", "current_value"];

/// The four things that an agent can do with items: the names of the elements that are actions.
pub(crate) const PRIMARIES: [&str; 4] = ["execute", "load", "search", "sign"];

/// A directive as it was read.
#[derive(Debug, Clone)]
pub struct Directive {
    /// The file.
    pub source: Arc<Source>,
    /// Its name, which is that of its file.
    pub name: Option<Written>,
    /// Its version, as in `1.0.0`.
    pub version: Option<Written>,
    /// The directive that it takes context and permissions from.
    pub extends: Option<Written>,
    /// What it is for.
    pub description: Option<Written>,
    /// The folder that it lies in, as in `rye/core`.
    pub category: Option<Written>,
    /// The model that it is for, as its attributes say: `tier`, `id`, `provider` and others.
    pub model: Option<Map<String, Json>>,
    /// How far a thread that follows it may go.
    pub limits: Option<Map<String, Json>>,
    /// Where those stand.
    pub limits_at: Option<Place>,
    /// What a thread that follows it may do.
    pub permissions: Option<Permissions>,
    /// What is to happen at certain moments of such a thread.
    pub hooks: Option<Vec<Map<String, Json>>>,
    /// Knowledge that such a thread is given.
    pub context: Option<ContextIds>,
    /// Everything else that its metadata say: `author` and the like.
    pub more: IndexMap<String, Written>,
    /// What it takes.
    pub inputs: Vec<Input>,
    /// What it is to give.
    pub outputs: Vec<Output>,
    /// Elements of the XML that are calls of a tool, a search and so on.
    pub actions: Vec<Map<String, Json>>,
    /// What stands in `<template>`, `<example>` and `<raw>`, under keys that say which.
    pub templates: IndexMap<String, String>,
    /// What is odd about the file without keeping it from working.
    pub notes: Vec<Diagnostic>,
    preamble: Range<usize>,
    content: Range<usize>,
    body: Range<usize>,
    raw: Range<usize>,
    /// The body, ready to be filled.
    #[doc(hidden)]
    pub template: Arc<Template>,
    units: OnceLock<Arc<Vec<Unit>>>,
    /// What the body includes; `None` before it was looked for.
    included: Option<Arc<Vec<include::Tag>>>,
    /// Inputs that included directives declare and this one does not, and where those are included.
    borrowed: Vec<(String, Place)>,
}

/// Reads a directive.
///
/// ```
/// use cuebook::{dialect::directive, source::Source};
///
/// let text = "# Hi\n\n```xml\n<directive name=\"greet\"><metadata><description>Greets.</description></metadata></directive>\n```\nSay hello.\n";
/// let directive = directive::read(&Source::new("greet.md", text))?;
/// assert_eq!(directive.name.as_deref(), Some("greet"));
/// assert_eq!((directive.preamble(), directive.body()), ("# Hi", "Say hello."));
/// # Ok::<(), cuebook::Error>(())
/// ```
pub fn read(source: &Arc<Source>) -> Result<Directive> {
    let text = source.text();
    let block = match fence::find(text, "xml") {
        Found::Block(block) => block,
        Found::Unclosed(opened) => {
            let diagnostic = no_block()
                .at(source.place(opened))
                .label("this block is not closed")
                .hint("close it with a line ``` without indentation");
            return Err(Error::new(ErrorKind::PromptRead, diagnostic));
        }
        Found::Nothing => {
            let hint = "a directive needs a block that begins with a line ```xml without indentation and holds \
                 <directive name=\"…\" version=\"1.0.0\">";
            let place = source.place(0..text.find('\n').unwrap_or(text.len()));
            return Err(Error::new(ErrorKind::PromptRead, no_block().at(place).hint(hint)));
        }
    };
    let content = stripped(text, block.inside);
    let body = stripped(text, block.after..text.len());
    let template = Arc::new(Template::compile(source.clone(), body.clone()));
    let mut directive = Directive {
        source: source.clone(),
        name: None,
        version: None,
        extends: None,
        description: None,
        category: None,
        model: None,
        limits: None,
        limits_at: None,
        permissions: None,
        hooks: None,
        context: None,
        more: IndexMap::new(),
        inputs: Vec::new(),
        outputs: Vec::new(),
        actions: Vec::new(),
        templates: IndexMap::new(),
        notes: Vec::new(),
        preamble: stripped(text, 0..block.opened.start),
        content: content.clone(),
        body,
        raw: 0..text.len(),
        template,
        units: OnceLock::new(),
        included: None,
        borrowed: Vec::new(),
    };
    element::read(&mut directive, content)?;
    Ok(directive)
}

fn no_block() -> Diagnostic {
    Diagnostic::new(Code::BadDirective, "No XML code block found")
}

/// A range without white space around it.
pub(crate) fn stripped(text: &str, range: Range<usize>) -> Range<usize> {
    let inside = &text[range.clone()];
    let end = range.start + inside.trim_end_matches(is_space).len();
    let start = end - text[range.start..end].trim_start_matches(is_space).len();
    start..end
}

impl Directive {
    /// The Markdown before the XML, without white space around it. A signature is a part of it.
    pub fn preamble(&self) -> &str {
        &self.source.text()[self.preamble.clone()]
    }

    /// The XML, without white space around it.
    pub fn content(&self) -> &str {
        &self.source.text()[self.content.clone()]
    }

    /// What stands behind the XML, without white space around it.
    pub fn body(&self) -> &str {
        &self.source.text()[self.body.clone()]
    }

    /// The whole file.
    pub fn raw(&self) -> &str {
        &self.source.text()[self.raw.clone()]
    }

    /// The body as a template.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// What else its metadata say, by the name of the element, as in `author`.
    pub fn more(&self, name: &str) -> Option<&str> {
        self.more.get(name).map(Written::as_str)
    }
}
