//! The exception of a Python function, kept for the error that it leads to.

use std::cell::RefCell;

use pyo3::prelude::*;

thread_local! {
    /// The exception of a function that failed in this thread. It becomes the cause of the engine's error, so that its traceback is kept.
    static FAILURE: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// The exception of the last function that failed in this thread, once.
pub fn take() -> Option<PyErr> {
    FAILURE.with(RefCell::take)
}

/// Keeps an exception for the error that it leads to.
pub fn keep(failure: PyErr) {
    FAILURE.set(Some(failure));
}
