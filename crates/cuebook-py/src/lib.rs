//! The part of the Python package that is written in Rust: `cuebook._native`.
//!
//! One file per area; each calls the public interface of one crate and gives back plain Python values. What people use is written in
//! Python, in `python/cuebook`.

mod arrow;
mod batch;
mod book;
mod calls;
mod cancel;
mod chat;
mod context;
mod engines;
mod errors;
mod failure;
mod items;
mod json;
mod lab;
mod rendered;
mod requests;
mod sections;
mod stage;
mod threads;
mod values;

use pyo3::prelude::*;

/// The native half of the package `cuebook`.
#[pymodule]
mod _native {
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::arrow::{RenderedTable, restore_table};
    #[pymodule_export]
    use super::book::Book;
    #[pymodule_export]
    use super::cancel::Cancel;
    #[pymodule_export]
    use super::chat::read_reply;
    #[pymodule_export]
    use super::engines::parse_messages;
    #[pymodule_export]
    use super::rendered::{Rendered, count_tokens};
    #[pymodule_export]
    use super::sections::Template;
    #[pymodule_export]
    use super::stage::Stage;
    #[pymodule_export]
    use super::{launch, nearest, plain};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("DIRECTIVE_INSTRUCTION", cuebook::prompt::Wording::default().instruction)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}

/// Becomes the launcher of sandboxed hooks and never returns: what the program of [`book::launcher`] does.
#[pyfunction]
fn launch() {
    cuebook_hooks::sandbox::launch();
}

/// The names nearest to a misspelt one, best first.
#[pyfunction]
fn nearest(wanted: &str, names: Vec<String>) -> Vec<String> {
    cuebook::error::nearest(wanted, names.iter().map(String::as_str))
}

/// A value as the plain one that a template sees: objects, lists, texts, numbers, booleans and `None`.
#[pyfunction]
fn plain(py: Python<'_>, value: &Bound<'_, PyAny>, name: &str) -> PyResult<Py<PyAny>> {
    json::to_python(py, &values::named(value, name)?)
}
