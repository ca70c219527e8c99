//! The table of rendered prompts: `text`, and `code` and `error` for rows that failed.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

use super::export;

/// The number of a row that failed, its code and its message.
type Failed = (usize, String, String);
/// What a pickled copy is made from.
type Parts<'py> = (Bound<'py, PyList>, Vec<Failed>);

/// Texts one after another, some of which may be missing.
#[derive(Default)]
pub(super) struct Texts {
    /// Where each begins, and where the last ends.
    pub(super) offsets: Vec<i64>,
    pub(super) bytes: Vec<u8>,
    /// A bit for each that is there.
    pub(super) validity: Vec<u8>,
    pub(super) missing: usize,
}

impl Texts {
    /// Adds missing ones until there are so many.
    fn fill(&mut self, count: usize) {
        self.missing += count.saturating_sub(self.len());
        self.offsets.resize((count + 1).max(self.offsets.len()), self.bytes.len() as i64);
        self.validity.resize(self.len().div_ceil(8), 0);
    }

    fn push(&mut self, text: Option<&str>) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        let at = self.len();
        if at.is_multiple_of(8) {
            self.validity.push(0);
        }
        match text {
            Some(text) => {
                self.bytes.extend_from_slice(text.as_bytes());
                if let Some(bits) = self.validity.last_mut() {
                    *bits |= 1 << (at % 8);
                }
            }
            None => self.missing += 1,
        }
        // No memory holds more bytes than an `i64` counts.
        self.offsets.push(self.bytes.len() as i64);
    }

    pub(super) fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }

    fn get(&self, at: usize) -> Option<&str> {
        let is_there = self.validity.get(at / 8).is_some_and(|bits| bits >> (at % 8) & 1 == 1);
        let range = self.offsets[at] as usize..self.offsets[at + 1] as usize;
        is_there.then(|| str::from_utf8(&self.bytes[range]).unwrap_or_default())
    }
}

/// Rows that were rendered one after another. What is not written of the columns after the first is missing.
#[derive(Default)]
pub struct Chunk {
    pub(super) columns: [Texts; 3],
}

impl Chunk {
    /// Adds a row with its text.
    pub fn text(&mut self, text: &str) {
        self.columns[0].push(Some(text));
    }

    /// Adds a row that failed.
    pub fn error(&mut self, code: &str, message: &str) {
        let row = self.len();
        for (column, value) in self.columns.iter_mut().zip([None, Some(code), Some(message)]) {
            column.fill(row);
            column.push(value);
        }
    }

    /// The chunk with all its columns as long as the first.
    pub fn finish(mut self) -> Chunk {
        let count = self.len();
        self.columns.iter_mut().for_each(|column| column.fill(count));
        self
    }

    pub(super) fn len(&self) -> usize {
        self.columns[0].len()
    }
}

/// A table of rendered prompts with the columns `text`, `code` and `error`. Every library that takes Arrow tables takes it.
#[pyclass(frozen, module = "cuebook._native", sequence)]
pub struct RenderedTable {
    chunks: Vec<Arc<Chunk>>,
}

impl RenderedTable {
    pub fn new(chunks: impl IntoIterator<Item = Chunk>) -> RenderedTable {
        RenderedTable { chunks: chunks.into_iter().filter(|chunk| chunk.len() > 0).map(Arc::new).collect() }
    }

    fn rows(&self) -> impl Iterator<Item = (&Chunk, usize)> {
        self.chunks.iter().flat_map(|chunk| (0..chunk.len()).map(|at| (&**chunk, at)))
    }
}

#[pymethods]
impl RenderedTable {
    fn __len__(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.len()).sum()
    }

    /// The texts, in the order of the rows; `None` for a row that failed.
    #[getter]
    fn texts<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let texts: Vec<Option<&str>> = self.rows().map(|(chunk, at)| chunk.columns[0].get(at)).collect();
        PyList::new(py, texts)
    }

    /// The rows that failed: number, code and message of each.
    #[getter]
    fn errors(&self) -> Vec<Failed> {
        let mut errors = Vec::new();
        let mut start = 0;
        for chunk in &self.chunks {
            let [texts, codes, messages] = &chunk.columns;
            if texts.missing > 0 {
                let failed =
                    (0..chunk.len()).filter_map(|at| Some((start + at, codes.get(at)?, messages.get(at)?)));
                errors.extend(failed.map(|(row, code, message)| (row, code.to_owned(), message.to_owned())));
            }
            start += chunk.len();
        }
        errors
    }

    fn __repr__(&self) -> String {
        let failed: usize = self.chunks.iter().map(|chunk| chunk.columns[0].missing).sum();
        format!("<RenderedTable: {} rows, {failed} failed>", self.__len__())
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Parts<'py>)> {
        let restore = py.import("cuebook._native")?.getattr("restore_table")?;
        Ok((restore, (self.texts(py)?, self.errors())))
    }

    /// The table as a stream of Arrow's C interface.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The specification lets a producer ignore a wish for another type.
        drop(requested_schema);
        PyCapsule::new_with_value(py, export::stream(self.chunks.clone()), c"arrow_array_stream")
    }
}

/// The table of an unpickled copy.
#[pyfunction]
pub fn restore_table(texts: Vec<Option<String>>, errors: Vec<Failed>) -> RenderedTable {
    let (mut chunk, mut errors) = (Chunk::default(), errors.into_iter().peekable());
    for (at, text) in texts.iter().enumerate() {
        match (text, errors.next_if(|error| error.0 == at)) {
            (Some(text), _) => chunk.text(text),
            (None, error) => {
                let (_, code, message) = error.unwrap_or_default();
                chunk.error(&code, &message);
            }
        }
    }
    RenderedTable::new([chunk.finish()])
}
