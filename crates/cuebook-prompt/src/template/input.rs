//! Texts with `{input:key}` in them: the bodies of directives.
//!
//! | written | with a value | without one |
//! | --- | --- | --- |
//! | `{input:key}`, `${inputs.key}` | the value | as it is written |
//! | `{input:key?}` | the value | nothing |
//! | `{input:key:default}`, `{input:key\|default}` | the value | the default, up to the first `}` |
//! | `{env:NAME}` | what the environment says | as it is written |
//! | `{env:NAME:default}` | what the environment says | the default |
//! | `{include:ID}` | what the caller has under that id | as it is written |
//!
//! A key has letters, digits and `_`, of any script; everything else in braces is text. The text is gone through once: what a value
//! or the environment says is never looked into. A value that is not a text is written as JSON.
//!
//! A template is a part of a source, and its offsets are those of the source, so that several of them can share one unit. Where
//! values come from is the caller's business.

mod parts;
mod scan;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

use serde_json::Value as Json;

pub use self::parts::LITERAL_INPUT;
use self::scan::{Fallback, Kind, Step};
use super::engine::Output;
use super::jinja::errors::output_too_large;
use super::jinja::names::{Names, Read, Reference, ReferenceKind};
use super::python::is_space;
use super::sink::{Full, Sink};
use super::unit::{Emission, Unit};
use crate::error::Error;
use crate::source::{OffsetMap, Source};

/// Where values come from.
pub trait Values {
    /// The text of an input; `None` without a value.
    fn input(&self, key: &str) -> Option<String>;

    /// What the environment says; `None` if it says nothing, or is not to be asked.
    fn env(&self, name: &str) -> Option<String>;

    /// Writes what the tag includes that begins at this offset; `None` if nothing is included: then it shows as it is written.
    fn include(&self, tag: usize, sink: &mut Sink) -> Option<Result<(), Full>> {
        let _ = (tag, sink);
        None
    }
}

/// The text of a value: a text as it is, anything else as JSON.
pub fn text_of(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// Asks the environment of this process. What is no text is not there.
pub fn environment(name: &str) -> Option<String> {
    // A name with a NUL or a `=` cannot be asked for; words have neither.
    std::env::var(name).ok()
}

/// A text that has been read.
#[derive(Debug)]
pub struct Template {
    source: Arc<Source>,
    range: Range<usize>,
    steps: Vec<Step>,
}

impl Template {
    /// Reads a part of a source. Never fails: what is no placeholder is text.
    pub fn compile(source: Arc<Source>, range: Range<usize>) -> Template {
        let steps = scan::scan(source.text(), range.clone());
        Template { source, range, steps }
    }

    /// The source.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The part of the source that it is.
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// The keys of its inputs, each once, in the order of the text.
    pub fn keys(&self) -> Vec<&str> {
        let mut keys: Vec<&str> = Vec::new();
        for step in &self.steps {
            if let Step::Value { kind: Kind::Input, key, .. } = step {
                let key = &self.source.text()[key.clone()];
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        keys
    }

    /// The places that write values, by the offsets at which they begin.
    pub fn emissions(&self) -> impl Iterator<Item = (u32, Emission)> + '_ {
        self.steps.iter().filter_map(|step| {
            let Step::Value { kind, key, range, .. } = step else { return None };
            let key = &self.source.text()[key.clone()];
            let path = match kind {
                Kind::Input => key.to_owned(),
                Kind::Env => format!("env:{key}"),
            };
            let accessor = Some(path.clone());
            Some((
                range.start as u32,
                Emission { range: range.clone(), paths: vec![path], accessor, ..Emission::default() },
            ))
        })
    }

    /// What it mentions. An undeclared input that the text can do without is no fault.
    pub fn names(&self) -> Names {
        let mut names = Names::default();
        for step in &self.steps {
            if let Step::Include { name, range } = step {
                names.references.push(Reference {
                    kind: ReferenceKind::Include,
                    names: Some(vec![self.source.text()[name.clone()].to_owned()]),
                    range: range.clone(),
                    optional: false,
                    conditional: false,
                    in_macro: false,
                    set_names: Arc::default(),
                });
            }
            let Step::Value { kind, key, fallback, .. } = step else { continue };
            let name = self.source.text()[key.clone()].to_owned();
            let path = match kind {
                Kind::Input => name.clone(),
                Kind::Env => format!("env:{name}"),
            };
            if *kind == Kind::Input {
                names.reads.push(Read {
                    root: name.clone(),
                    path: name,
                    range: key.clone(),
                    maybe_local: *fallback != Fallback::Keep,
                });
            }
            names.emissions.push(vec![path.clone()]);
            names.accessors.push(Some(path));
        }
        names
    }

    /// The tags that include something, and what they name.
    #[doc(hidden)]
    pub fn includes(&self) -> impl Iterator<Item = (Range<usize>, &str)> + '_ {
        self.steps.iter().filter_map(|step| match step {
            Step::Include { name, range } => Some((range.clone(), &self.source.text()[name.clone()])),
            _ => None,
        })
    }

    /// A unit for what this template writes, and nothing else.
    pub fn unit(&self) -> Unit {
        let (marks, emissions) = self.emissions().unzip();
        Unit::new(self.source.clone(), OffsetMap::default(), marks, emissions)
    }

    /// Writes into the sink, as the unit of this number.
    pub fn write(&self, unit: u32, sink: &mut Sink, values: &dyn Values) -> Result<(), Full> {
        self.write_as(unit, sink, values, |_, text| text)
    }

    /// The same, without white space around all of it, also where a value brings it. Writes nothing if nothing is left.
    pub fn write_stripped(&self, unit: u32, sink: &mut Sink, values: &dyn Values) -> Result<(), Full> {
        let start = sink.len();
        self.write_as(unit, sink, values, |length, text| {
            if length > start { text } else { text.trim_start_matches(is_space) }
        })?;
        sink.trim_end_from(start, is_space);
        Ok(())
    }

    /// `shown` says which end of a text is written, by how much has been written before.
    fn write_as(
        &self,
        unit: u32,
        sink: &mut Sink,
        values: &dyn Values,
        shown: impl for<'t> Fn(usize, &'t str) -> &'t str,
    ) -> Result<(), Full> {
        let text = self.source.text();
        let literal = |sink: &mut Sink, range: &Range<usize>| {
            let shown = shown(sink.len(), &text[range.clone()]);
            sink.literal(unit, (range.end - shown.len()) as u32, shown.as_bytes())
        };
        for step in &self.steps {
            match step {
                Step::Literal(range) => literal(sink, range)?,
                Step::Include { range, .. } => match values.include(range.start, sink) {
                    Some(written) => written?,
                    None => literal(sink, range)?,
                },
                Step::Value { kind, key, fallback, range } => {
                    let key = &text[key.clone()];
                    let value = match kind {
                        Kind::Input => values.input(key),
                        Kind::Env => values.env(key),
                    };
                    match (value, fallback) {
                        (Some(value), _) => {
                            sink.begin_value(unit, range.start as u32);
                            let value = shown(sink.len(), &value);
                            sink.value(value.as_bytes())?;
                        }
                        (None, Fallback::Keep) => literal(sink, range)?,
                        (None, Fallback::Text(default)) => literal(sink, default)?,
                    }
                }
            }
        }
        Ok(())
    }

    /// The error for a text that came to more characters than a sink takes.
    #[cold]
    pub fn too_large(&self, limit: usize) -> Error {
        output_too_large(&self.source, limit)
    }

    /// Writes it alone, at most `limit` characters.
    pub fn render(&self, limit: usize, values: &dyn Values) -> Result<Output, Full> {
        let mut sink = Sink::new(limit, self.range.len(), self.steps.len());
        self.write(0, &mut sink, values)?;
        let (text, pieces) = sink.finish();
        Ok(Output { text, pieces, units: Arc::new(vec![self.unit()]).into() })
    }
}

/// What a text shows with these values, without the question who wrote what.
///
/// ```
/// use cuebook::template::input::{Values, expand};
///
/// struct Given;
/// impl Values for Given {
///     fn input(&self, key: &str) -> Option<String> {
///         (key == "app").then(|| "shop".to_owned())
///     }
///     fn env(&self, _: &str) -> Option<String> {
///         None
///     }
/// }
/// assert_eq!(expand("Deploy {input:app} to {input:where|staging}.{input:more?}", &Given), "Deploy shop to staging.");
/// ```
pub fn expand(text: &str, values: &dyn Values) -> String {
    let mut expanded = String::with_capacity(text.len());
    for step in scan::scan(text, 0..text.len()) {
        match step {
            Step::Literal(range) | Step::Include { range, .. } => expanded.push_str(&text[range]),
            Step::Value { kind, key, fallback, range } => {
                let value = match kind {
                    Kind::Input => values.input(&text[key]),
                    Kind::Env => values.env(&text[key]),
                };
                match (value, fallback) {
                    (Some(value), _) => expanded.push_str(&value),
                    (None, Fallback::Keep) => expanded.push_str(&text[range]),
                    (None, Fallback::Text(default)) => expanded.push_str(&text[default]),
                }
            }
        }
    }
    expanded
}
