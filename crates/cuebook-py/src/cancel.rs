//! The flag with which Python stops what runs in another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

/// Stops a run, or ends the wait for another call.
#[pyclass(frozen, module = "cuebook._native")]
#[derive(Default)]
pub struct Cancel(pub Arc<AtomicBool>);

impl Cancel {
    /// The flag of the task that waits for this thread, if one does.
    pub fn current(py: Python<'_>) -> PyResult<Option<Arc<AtomicBool>>> {
        let current = py.import("cuebook._stop")?.call_method0("current")?;
        Ok(current.cast::<Cancel>().ok().map(|cancel| cancel.get().0.clone()))
    }
}

#[pymethods]
impl Cancel {
    #[new]
    fn new() -> Cancel {
        Cancel::default()
    }

    /// Stops the run.
    fn cancel(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    /// Whether the run is to stop.
    #[getter]
    pub fn cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}
