//! Texts with `$name` in them: the bodies of sections.
//!
//! A body says what Python's `strip(substitute(strip(dedent(text))))` does, where `substitute` is that of `string.Template`: `$name`
//! and `${name}` show a value, `$$` shows a dollar sign, and the names have letters, digits and `_` of ASCII. The margin goes before
//! values come, so the lines of a value keep their own; the white space around the whole goes after, so a value at an end
//! loses some of its own. What a value says is never looked into.
//!
//! [`Template::compile`] does everything that values have no part in. [`Template::write`] is for prompts of hundreds of bodies: it
//! allocates nothing unless a value has to be printed that is neither a string nor an integer.
//!
//! A `$` other than these three is reported when it is rendered and not before, as Python does. A template knows nothing of
//! sections, and where values come from is the caller's business.

mod body;
mod errors;
mod parts;
mod scan;
mod standalone;
#[cfg(test)]
mod tests;

use std::borrow::Borrow;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

pub use self::errors::Fault;
use self::scan::{Step, Steps};
pub use self::standalone::StandaloneTemplate;
use super::jinja::fence::Tags;
use super::jinja::names::{Names, Read};
use super::python::{is_space, split_lines, to_str};
use super::sink::{Full, Sink};
use super::unit::{Emission, FENCE, Unit};
use crate::source::{OffsetMap, Place, Source};

/// What happens where a placeholder has no value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Missing {
    /// It is an error, and so is a `$` that begins no placeholder: Python's `substitute`.
    #[default]
    Error,
    /// It shows as the author wrote it, and so does such a `$`: Python's `safe_substitute`.
    Keep,
}

/// A body that has been read.
#[derive(Debug)]
pub struct Template {
    source: Arc<Source>,
    /// What the author wrote, without its margin and without white space around it.
    text: String,
    /// From the text to the source.
    map: OffsetMap,
    steps: Vec<Step>,
    placeholders: Vec<String>,
    names: Names,
    /// What it shows, if that is always the same and something else than the text.
    resolved: Option<String>,
    /// Bytes that a value may print as, if it is no string.
    string_bytes: usize,
    /// For each placeholder the label of its fence; empty if no value is fenced.
    fences: Vec<Option<String>>,
}

impl Template {
    /// Reads a body. Never fails: an invalid `$` is reported when it is rendered.
    pub fn compile(source: Arc<Source>) -> Template {
        let (text, map) = body::trimmed(source.text());
        let Steps { steps, names: placeholders } = scan::scan(&text);
        let mut names = Names::default();
        for (name, range) in values(&steps, &placeholders) {
            names.reads.push(Read {
                root: name.to_owned(),
                path: name.to_owned(),
                range: map.range(name_range(&text, name, &range)),
                maybe_local: false,
            });
            names.emissions.push(vec![name.to_owned()]);
            names.accessors.push(Some(name.to_owned()));
        }
        let is_static = steps.iter().all(|step| matches!(step, Step::Literal(_)));
        let resolved = (is_static && text.contains('$')).then(|| {
            let literal = |step: &Step| match step {
                Step::Literal(range) => &text[range.clone()],
                _ => "",
            };
            steps.iter().map(literal).collect()
        });
        let (string_bytes, fences) = (8 << 20, Vec::new());
        Template { source, text, map, steps, placeholders, names, resolved, string_bytes, fences }
    }

    /// The same template, in which no value that is not a string may print as more than so many bytes.
    pub fn limited(mut self, string_bytes: usize) -> Template {
        self.string_bytes = string_bytes;
        self
    }

    /// The same template, in which the values of some names are between tags that they cannot close. `label` gives the name of the
    /// tag.
    #[doc(hidden)]
    pub fn fenced<'l>(mut self, label: impl Fn(&str) -> Option<&'l str>) -> Template {
        self.fences = self.placeholders.iter().map(|name| label(name).map(str::to_owned)).collect();
        self
    }

    /// The author's text.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// The text that runs: what the author wrote, without its margin and without white space around it.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A new unit for what this template writes.
    pub fn unit(&self) -> Unit {
        let (marks, emissions) = values(&self.steps, &self.placeholders)
            .map(|(name, range)| {
                let mark = range.start as u32;
                let (range, path) = (self.map.range(range), name.to_owned());
                let accessor = Some(path.clone());
                (mark, Emission { range, paths: vec![path], accessor, ..Emission::default() })
            })
            .unzip();
        Unit::new(self.source.clone(), self.map.clone(), marks, emissions)
    }

    /// What it mentions.
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// The names of its placeholders, each once, in the order of the text. `$$` and what is invalid are not among them.
    pub fn placeholders(&self) -> &[String] {
        &self.placeholders
    }

    /// All that it shows, if there is no placeholder in it and nothing wrong.
    pub fn is_static(&self) -> Option<&str> {
        match self.steps.as_slice() {
            [] => Some(""),
            [Step::Literal(range)] if range.len() == self.text.len() => Some(&self.text),
            _ => self.resolved.as_deref(),
        }
    }

    /// Writes into the sink, as the unit of this number. `value` is asked once for each placeholder of the text, with the number
    /// and the name; `None` is missing.
    ///
    /// After a fault the sink holds what was written until then. White space that is taken back at the end counts for the sink's
    /// limit before.
    pub fn write<V: Borrow<Json>>(
        &self,
        unit: u32,
        sink: &mut Sink,
        missing: Missing,
        value: &mut dyn FnMut(usize, &str) -> Option<V>,
    ) -> Result<(), Fault> {
        let start = sink.len();
        for step in &self.steps {
            match step {
                Step::Literal(range) => self.literal(unit, sink, start, range.clone())?,
                Step::Value { placeholder, range } => {
                    let name = &self.placeholders[*placeholder];
                    match value(*placeholder, name) {
                        Some(value) => {
                            let (mark, label) = (range.start as u32, self.fences.get(*placeholder));
                            if let Some(label) = label.and_then(Option::as_deref) {
                                let content = self.printed(value.borrow(), name, range)?;
                                fence(sink, (unit, mark), label, &content)?;
                                continue;
                            }
                            sink.begin_value(unit, mark);
                            self.print(sink, start, value.borrow(), name, range)?;
                        }
                        None if missing == Missing::Keep => self.literal(unit, sink, start, range.clone())?,
                        None => {
                            return Err(Fault::Missing { name: name.clone(), place: self.place(range) });
                        }
                    }
                }
                Step::Invalid(at) if missing == Missing::Keep => {
                    self.literal(unit, sink, start, *at..at + 1)?
                }
                Step::Invalid(at) => return Err(self.invalid(*at)),
            }
        }
        sink.trim_end_from(start, is_space);
        Ok(())
    }

    /// Text of the author. As long as nothing has been written, what it begins with may be white space to be left out.
    #[inline]
    fn literal(&self, unit: u32, sink: &mut Sink, start: usize, range: Range<usize>) -> Result<(), Full> {
        let text = &self.text[range.clone()];
        let shown = shown(sink, start, text);
        sink.literal(unit, (range.end - shown.len()) as u32, shown.as_bytes())
    }

    #[inline]
    fn print(
        &self,
        sink: &mut Sink,
        start: usize,
        value: &Json,
        name: &str,
        range: &Range<usize>,
    ) -> Result<(), Fault> {
        if let Json::String(text) = value {
            return Ok(sink.value(shown(sink, start, text).as_bytes())?);
        }
        if value.is_i64() || value.is_u64() {
            // Room for any of them, so that none needs a text of its own.
            let mut digits = [0; 48];
            let mut free = &mut digits[..];
            if write!(free, "{value}").is_ok() {
                let used = 48 - free.len();
                return Ok(sink.value(&digits[..used])?);
            }
        }
        let text = self.printed(value, name, range)?;
        Ok(sink.value(shown(sink, start, &text).as_bytes())?)
    }

    /// A value as text.
    fn printed<'v>(
        &self,
        value: &'v Json,
        name: &str,
        range: &Range<usize>,
    ) -> Result<std::borrow::Cow<'v, str>, Fault> {
        match value.as_str() {
            Some(text) => Ok(text.into()),
            None => {
                let text = to_str(value, self.string_bytes);
                Ok(text.map_err(|error| self.unprintable(error, name, range))?.to_string().into())
            }
        }
    }

    fn place(&self, range: &Range<usize>) -> Place {
        self.source.place(self.map.range(range.clone()))
    }

    #[cold]
    fn invalid(&self, at: usize) -> Fault {
        let lines = split_lines(&self.text[..=at]);
        Fault::Invalid {
            line: lines.len(),
            column: lines.last().map_or(1, |line| line.chars().count()),
            place: self.place(&(at..at + 1)),
        }
    }

    #[cold]
    fn unprintable(&self, error: cuebook_template::Error, name: &str, range: &Range<usize>) -> Fault {
        Fault::Unprintable {
            name: name.to_owned(),
            place: self.place(range),
            reason: error.message().to_owned(),
            too_large: error.exceeded().is_some(),
        }
    }
}

impl From<Full> for Fault {
    fn from(_: Full) -> Self {
        Fault::Full
    }
}

/// Writes a value between tags that it cannot close.
fn fence(sink: &mut Sink, (unit, mark): (u32, u32), label: &str, content: &str) -> Result<(), Full> {
    let Tags { open, bracket, close } = Tags::around(label, content);
    sink.frame(FENCE, open.as_bytes())?;
    sink.frame(FENCE, bracket.as_bytes())?;
    sink.begin_value(unit, mark);
    sink.value(content.as_bytes())?;
    sink.frame(FENCE, close.as_bytes())
}

/// The part of a text that shows: all of it, unless it is the first since `start`.
#[inline]
fn shown<'t>(sink: &Sink, start: usize, text: &'t str) -> &'t str {
    if sink.len() > start { text } else { text.trim_start_matches(is_space) }
}

/// The names of all places that write values, and the places.
fn values<'t>(
    steps: &'t [Step],
    placeholders: &'t [String],
) -> impl Iterator<Item = (&'t str, Range<usize>)> + 't {
    steps.iter().filter_map(|step| match step {
        Step::Value { placeholder, range } => Some((placeholders[*placeholder].as_str(), range.clone())),
        _ => None,
    })
}

/// Where the name stands in a placeholder.
fn name_range(text: &str, name: &str, placeholder: &Range<usize>) -> Range<usize> {
    let braces = usize::from(text[placeholder.clone()].ends_with('}'));
    let end = placeholder.end - braces;
    end - name.len()..end
}

/// What a text shows with these values, without the question who wrote what.
///
/// ```
/// use cuebook::template::dollar::{Missing, expand};
/// use serde_json::json;
///
/// let values = json!({"item": "tea", "price": 3});
/// let text = expand("\n    $item costs $$$price.\n    ", values.as_object().unwrap(), Missing::Error)?;
/// assert_eq!(text, "tea costs $3.");
/// # Ok::<(), cuebook::template::dollar::Fault>(())
/// ```
pub fn expand(text: &str, values: &Map<String, Json>, missing: Missing) -> Result<String, Fault> {
    let template = Template::compile(Source::verbatim("text", text));
    let mut sink = Sink::new(usize::MAX, text.len(), 0);
    template.write(0, &mut sink, missing, &mut |_, name| values.get(name))?;
    Ok(sink.finish().0)
}
