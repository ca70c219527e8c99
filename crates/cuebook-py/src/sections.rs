//! The texts of sections that are built in Python. Python walks the tree; the engine fills the texts and knows where each part comes from.

use std::sync::Arc;

use cuebook::source::Source;
use cuebook::template::dollar::{self, Fault, Missing, StandaloneTemplate};
use cuebook::template::engine::Output;
use cuebook::template::sink::Writer;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::Value as Json;

/// A part of a filled text, the placeholder whose value it is, and the author's line.
type Part = (String, Option<String>, usize);

/// A text with `$name` and `${name}`, compiled once.
#[pyclass(frozen, module = "cuebook._native")]
pub struct Template {
    alone: StandaloneTemplate,
}

#[pymethods]
impl Template {
    #[new]
    fn new(name: &str, text: &str) -> Template {
        let template = dollar::Template::compile(Source::new(name, text));
        Template { alone: StandaloneTemplate::new(template, Missing::Error) }
    }

    /// The names of its placeholders, in the order of the text.
    #[getter]
    fn placeholders(&self) -> Vec<String> {
        self.alone.template().placeholders().to_vec()
    }

    /// The filled text. The values are texts. A name without a value is a `KeyError`, as in `string.Template`.
    fn text(&self, values: &Bound<'_, PyDict>) -> PyResult<String> {
        Ok(self.filled(values)?.text)
    }

    /// The parts of the filled text.
    fn fill(&self, values: &Bound<'_, PyDict>) -> PyResult<Vec<Part>> {
        let output = self.filled(values)?;
        let ends = output.pieces.iter().map(|piece| piece.start as usize).skip(1).chain([output.text.len()]);
        let parts = output.pieces.iter().zip(ends).map(|(piece, end)| {
            let text = output.text[piece.start as usize..end].to_owned();
            let (name, at) = match piece.writer {
                Writer::Value { unit, offset } => match output.units.get(unit).0.emission(offset) {
                    Some(emission) => (emission.paths.first().cloned(), emission.range.start),
                    None => (None, 0),
                },
                Writer::Literal { unit, offset } => {
                    let offset = offset as usize;
                    (None, output.units.get(unit).0.source_range(offset..offset).start)
                }
                Writer::Changed { unit, change } => {
                    let unit = output.units.get(unit).0;
                    (None, unit.source_range(unit.changed(change)).start)
                }
                _ => (None, 0),
            };
            (text, name, self.line(at))
        });
        Ok(parts.filter(|(text, ..)| !text.is_empty()).collect())
    }
}

impl Template {
    fn filled(&self, values: &Bound<'_, PyDict>) -> PyResult<Output> {
        let value = |name: &str| values.get_item(name).ok().flatten()?.extract().ok().map(Json::String);
        self.alone.render(usize::MAX, value).map_err(|fault| match fault {
            Fault::Missing { name, .. } => PyKeyError::new_err(name),
            Fault::Invalid { line, column, .. } => {
                PyValueError::new_err(format!("Invalid placeholder in string: line {line}, col {column}"))
            }
            other => PyValueError::new_err(other.to_string()),
        })
    }

    /// The line of an offset in the author's text, from 1.
    fn line(&self, at: usize) -> usize {
        let source: &Arc<Source> = self.alone.template().source();
        source.text().bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
    }
}
