//! JSON as values of Python.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyList, PyString};
use serde_json::Value as Json;

/// A value for Python.
pub fn to_python(py: Python<'_>, json: &Json) -> PyResult<Py<PyAny>> {
    Ok(match json {
        Json::Null => py.None(),
        Json::Bool(truth) => PyBool::new(py, *truth).to_owned().into_any().unbind(),
        Json::String(text) => PyString::new(py, text).into_any().unbind(),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.into_pyobject(py)?.into_any().unbind(),
            (None, Some(number)) => number.into_pyobject(py)?.into_any().unbind(),
            (None, None) => PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any().unbind(),
        },
        Json::Array(items) => {
            let items = items.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any().unbind()
        }
        Json::Object(members) => {
            let dict = PyDict::new(py);
            for (name, value) in members {
                dict.set_item(name, to_python(py, value)?)?;
            }
            dict.into_any().unbind()
        }
    })
}
