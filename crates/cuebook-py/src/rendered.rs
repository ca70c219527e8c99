//! A rendered prompt. Offsets are those of Python's texts: characters, not bytes.

use cuebook::chat::wire::Api;
use cuebook::{Diagnostic, Message, Rendered as Text, Result};
use cuebook_bindings::tokens;
use cuebook_lab::explain::{Answer, Explanation, Position, label};
use cuebook_lab::ledger::Ledger;
use pyo3::prelude::*;
use serde_json::{Value as Json, json};

use crate::context::usage;
use crate::errors::Raise;
use crate::json::to_python;
use crate::values;

/// A rendered prompt with the origin of every character.
#[pyclass(frozen, module = "cuebook._native")]
pub struct Rendered {
    pub explanation: Explanation,
}

impl Rendered {
    fn rendered(&self) -> &Text {
        self.explanation.rendered()
    }

    fn text(&self) -> &str {
        self.rendered().text()
    }

    /// The byte at which a character begins.
    fn byte(&self, offset: usize) -> Result<usize> {
        let text = self.text();
        if text.is_ascii() && offset < text.len() {
            return Ok(offset);
        }
        text.char_indices().nth(offset).map(|(at, _)| at).ok_or_else(|| {
            let count = text.chars().count();
            usage(
                format!("the text has {count} characters, and none at {offset}"),
                "use an offset from 0 to len(text) - 1",
            )
        })
    }

    fn answer(&self, answer: &Answer) -> Json {
        let mut object = answer.to_json();
        self.in_characters(&mut object);
        for piece in object["pieces"].as_array_mut().into_iter().flatten() {
            self.in_characters(piece);
        }
        object
    }

    fn in_characters(&self, object: &mut Json) {
        for side in ["start", "end"] {
            if let Some(byte) = object[side].as_u64() {
                object[side] = json!(characters(&self.text()[..byte as usize]));
            }
        }
    }

    fn count(&self, model: Option<&str>) -> Result<Json> {
        let Some(model) = model else { return Ledger::of(self.rendered()).map(|ledger| ledger.to_json()) };
        Ok(tokens::count_tokens(model, &self.rendered().messages()?, &self.tools()))
    }

    fn tools(&self) -> Vec<Json> {
        self.rendered().tools().iter().map(cuebook::prompt::Tool::to_json).collect()
    }
}

/// The same for messages and tools that were read from a render before, as an unpickled copy has them.
#[pyfunction]
pub fn count_tokens(
    py: Python<'_>,
    model: &str,
    messages: &Bound<'_, PyAny>,
    tools: &Bound<'_, PyAny>,
) -> PyResult<Py<PyAny>> {
    let read = |value: &Bound<'_, PyAny>, name: &str| values::named(value, name);
    let Json::Array(messages) = read(messages, "messages")? else { return Ok(py.None()) };
    let Json::Array(tools) = read(tools, "tools")? else { return Ok(py.None()) };
    let messages = messages.iter().map(Message::from_json).collect::<std::result::Result<Vec<_>, _>>();
    let messages = messages.map_err(|why| usage(why, "pass the messages of a render")).or_raise(py)?;
    to_python(py, &py.detach(|| tokens::count_tokens(model, &messages, &tools)))
}

fn characters(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.chars().count() }
}

fn notes(notes: &[Diagnostic]) -> Json {
    notes.iter().map(|note| Json::Object(note.to_json())).collect()
}

#[pymethods]
impl Rendered {
    /// The text.
    #[getter(text)]
    fn get_text(&self) -> &str {
        self.text()
    }

    /// The id of the prompt.
    #[getter]
    fn prompt_id(&self) -> &str {
        &self.rendered().prompt().id
    }

    /// The id of the model that is asked.
    #[getter]
    fn model(&self) -> Option<&str> {
        let declared = || self.rendered().prompt().model.as_ref().map(|model| model.id.as_str());
        self.rendered().scope().model().or_else(declared)
    }

    /// The spans of the text, in order: start, end, origin, label, section.
    fn spans(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let text = self.text();
        let (mut byte, mut at) = (0, 0);
        let spans = self.rendered().spans().map(|span| {
            at += characters(&text[byte..span.range.start]);
            let start = at;
            at += characters(&text[span.range.clone()]);
            byte = span.range.end;
            json!({
                "start": start, "end": at, "origin": span.origin.to_json(), "label": label(&span.origin),
                "section": span.section.as_deref(),
            })
        });
        to_python(py, &spans.collect())
    }

    /// The messages.
    fn messages(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let messages = self.rendered().messages().or_raise(py)?;
        to_python(py, &messages.iter().map(cuebook::Message::to_json).collect())
    }

    /// The body of a request and its notes.
    fn wire(&self, py: Python<'_>, format: Option<&str>) -> PyResult<Py<PyAny>> {
        let rendered = self.rendered();
        let wire = format.map_or_else(|| rendered.wire(), |format| rendered.wire_as(format)).or_raise(py)?;
        to_python(py, &json!([wire.body, notes(&wire.notes)]))
    }

    /// The names of the wire formats.
    #[staticmethod]
    fn wires() -> Vec<&'static str> {
        Api::ALL.iter().map(|api| api.as_str()).collect()
    }

    /// Author's text and values, in order.
    fn segments(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_python(py, &json!(self.rendered().segments()))
    }

    /// Where the character at an offset came from.
    fn explain(&self, py: Python<'_>, offset: usize) -> PyResult<Py<PyAny>> {
        let answer = self.byte(offset).and_then(|byte| self.explanation.at(Position::Offset(byte)));
        to_python(py, &self.answer(&answer.or_raise(py)?))
    }

    /// Where every occurrence of a text came from.
    fn find(&self, py: Python<'_>, text: &str) -> PyResult<Py<PyAny>> {
        let found = self.explanation.find(text).or_raise(py)?;
        to_python(py, &found.iter().map(|answer| self.answer(answer)).collect())
    }

    /// The tokens, counted for a model.
    fn tokens(&self, py: Python<'_>, model: Option<&str>) -> PyResult<Py<PyAny>> {
        let counted = py.detach(|| self.count(model)).or_raise(py)?;
        to_python(py, &counted)
    }

    /// The tools that the model may call.
    #[getter(tools)]
    fn get_tools(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_python(py, &self.tools().into())
    }

    /// Everything about the render: the chosen place, variables with their layers, and notes.
    fn explanation(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let mut object = self.explanation.to_json();
        if let Some(object) = object.as_object_mut() {
            object.shift_remove("spans");
            object.shift_remove("text");
        }
        to_python(py, &object)
    }

    /// What is worth knowing about the render.
    #[getter]
    fn notes(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        to_python(py, &notes(self.rendered().notes()))
    }
}
