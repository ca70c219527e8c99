//! Errors of the engine as the exceptions of `cuebook.errors`.

use cuebook::Error;
use cuebook::error::report;
use pyo3::prelude::*;

use crate::{failure, json};

/// The exception for an error. An exception of a Python function that caused it is its `__cause__`.
pub fn to_python(py: Python<'_>, error: &Error) -> PyErr {
    match instance(py, error) {
        Ok(instance) => {
            let exception = PyErr::from_value(instance.into_bound(py));
            if let Some(cause) = failure::take() {
                exception.set_cause(py, Some(cause));
            }
            exception
        }
        Err(failed) => failed,
    }
}

/// The exception as an object, which need not be raised.
pub fn instance(py: Python<'_>, error: &Error) -> PyResult<Py<PyAny>> {
    let mut document = error.to_json();
    let document = json::to_python(py, &document["error"].take())?;
    let text = report(error.diagnostics(), false);
    let make = py.import("cuebook.errors")?.getattr("_from_report")?;
    Ok(make.call1((document, text))?.unbind())
}

/// A result whose error is raised in Python.
pub trait Raise<T> {
    /// Raises the error, if there is one.
    fn or_raise(self, py: Python<'_>) -> PyResult<T>;
}

impl<T> Raise<T> for cuebook::Result<T> {
    fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        self.map_err(|error| to_python(py, &error))
    }
}
