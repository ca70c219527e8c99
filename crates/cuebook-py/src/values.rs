//! Values of Python as JSON. `json` is the way back.
//!
//! Dicts, lists, texts, numbers, booleans and `None` are read here. Anything else is first simplified by `cuebook._values.simplify`.

use cuebook::{Code, Diagnostic, Error, ErrorKind};
use pyo3::exceptions::PyUnicodeEncodeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple};
use serde_json::{Map, Number, Value as Json};

use crate::errors;

/// How deep values may be nested. Deeper ones, and those that contain themselves, are refused.
const DEEPEST: usize = 100;

/// The way to a value from the variable that it belongs to.
enum ValuePath<'w> {
    Root(&'w str),
    Key(&'w ValuePath<'w>, &'w str),
    Index(&'w ValuePath<'w>, usize),
}

impl std::fmt::Display for ValuePath<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ValuePath::Root(name) => f.write_str(name),
            ValuePath::Key(above, key) => write!(f, "{above}.{key}"),
            ValuePath::Index(above, index) => write!(f, "{above}[{index}]"),
        }
    }
}

/// A value that errors call by this name.
pub fn named(value: &Bound<'_, PyAny>, name: &str) -> PyResult<Json> {
    read(value, &ValuePath::Root(name), 0)
}

/// The members of a dict, which errors call by their keys.
pub fn members(value: &Bound<'_, PyDict>) -> PyResult<Map<String, Json>> {
    value.iter().map(|(key, value)| member(&key, &value)).collect()
}

fn member(key: &Bound<'_, PyAny>, value: &Bound<'_, PyAny>) -> PyResult<(String, Json)> {
    let name = key.cast::<PyString>().ok().and_then(|key| key.to_str().ok().map(str::to_owned));
    let Some(name) = name else {
        let message = format!("a name must be a text, not {}", key.repr()?);
        return Err(refuse(key.py(), message, "use text for the names of variables"));
    };
    let value = named(value, &name)?;
    Ok((name, value))
}

fn read(value: &Bound<'_, PyAny>, way: &ValuePath<'_>, depth: usize) -> PyResult<Json> {
    let py = value.py();
    if depth > DEEPEST {
        let message = format!("the value of `{way}` is nested more than {DEEPEST} levels deep");
        return Err(refuse(py, message, "pass a value that does not contain itself"));
    }
    if let Ok(text) = value.cast_exact::<PyString>() {
        return text_of(text, way).map(Json::String);
    }
    if value.is_none() {
        return Ok(Json::Null);
    }
    if let Ok(truth) = value.cast_exact::<PyBool>() {
        return Ok(Json::Bool(truth.is_true()));
    }
    if value.cast_exact::<PyInt>().is_ok() {
        return integer(value);
    }
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        return Number::from_f64(number.value()).map(Json::Number).ok_or_else(|| {
            let message = format!("the value of `{way}` is {}, which is not a number", number.value());
            refuse(py, message, "pass a finite number, or None")
        });
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        return dict.iter().map(|(key, value)| entry(&key, &value, way, depth)).collect();
    }
    if let Ok(list) = value.cast_exact::<PyList>() {
        return items(list.iter(), way, depth);
    }
    if let Ok(tuple) = value.cast_exact::<PyTuple>() {
        return items(tuple.iter(), way, depth);
    }
    let simpler = py.import("cuebook._values")?.getattr("simplify")?.call1((value,))?;
    if simpler.is(py.NotImplemented()) {
        let message =
            format!("the value of `{way}` is a `{}`, which no template can print", value.get_type().name()?);
        return Err(refuse(py, message, "pass text, a number, a list, a dict, a dataclass or a date"));
    }
    read(&simpler, way, depth + 1)
}

fn items<'py>(
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    way: &ValuePath<'_>,
    depth: usize,
) -> PyResult<Json> {
    items.enumerate().map(|(index, item)| read(&item, &ValuePath::Index(way, index), depth + 1)).collect()
}

fn entry(
    key: &Bound<'_, PyAny>,
    value: &Bound<'_, PyAny>,
    way: &ValuePath<'_>,
    depth: usize,
) -> PyResult<(String, Json)> {
    let Ok(name) = key.cast::<PyString>() else {
        let message = format!("the value of `{way}` has the key {}, which is not a text", key.repr()?);
        return Err(refuse(key.py(), message, "use text for the keys of a dict"));
    };
    let name = text_of(name, way)?;
    let value = read(value, &ValuePath::Key(way, &name), depth + 1)?;
    Ok((name, value))
}

fn text_of(text: &Bound<'_, PyString>, way: &ValuePath<'_>) -> PyResult<String> {
    text.to_str().map(str::to_owned).map_err(|error| {
        match error.is_instance_of::<PyUnicodeEncodeError>(text.py()) {
            true => {
                let message =
                    format!("the value of `{way}` is not valid Unicode: {}", error.value(text.py()));
                refuse(text.py(), message, "decode bytes with errors=\"replace\" before you pass them")
            }
            false => error,
        }
    })
}

/// A whole number. One of more than 64 bits becomes a text of its digits, because JSON would lose some of them.
fn integer(value: &Bound<'_, PyAny>) -> PyResult<Json> {
    if let Ok(number) = value.extract::<i64>() {
        return Ok(number.into());
    }
    if let Ok(number) = value.extract::<u64>() {
        return Ok(number.into());
    }
    Ok(Json::String(value.str()?.to_str()?.to_owned()))
}

fn refuse(py: Python<'_>, message: String, hint: &str) -> PyErr {
    let diagnostic = Diagnostic::new(Code::BadInput, message).hint(hint);
    errors::to_python(py, &Error::new(ErrorKind::PromptValidation, diagnostic))
}
