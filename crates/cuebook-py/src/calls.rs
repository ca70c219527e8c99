//! Functions of Python that the engine calls: hooks, providers, filters, tests and tools.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use cuebook::hooks::{HookContext, HookError, Subject, Values};
use cuebook::{Code, Diagnostic, Error, ErrorKind};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use serde_json::{Value as Json, json};

use crate::{failure, json, values};

/// Calls a function with JSON and reads what it returns. An exception is kept, and returned in words.
pub fn call(function: &Py<PyAny>, name: &str, arguments: &[Json]) -> Result<Json, String> {
    Python::attach(|py| {
        let called = arguments
            .iter()
            .map(|argument| json::to_python(py, argument))
            .collect::<PyResult<Vec<_>>>()
            .and_then(|arguments| run(py, function, PyTuple::new(py, arguments)?))
            .and_then(|answer| values::named(answer.bind(py), name));
        called.map_err(|failure| {
            let words = in_words(py, &failure);
            failure::keep(failure);
            words
        })
    })
}

/// Calls a function and waits for it, if it is asynchronous.
pub fn run(py: Python<'_>, function: &Py<PyAny>, arguments: Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
    let answer = function.bind(py).call1(arguments)?;
    let settle = py.import("cuebook._values")?.getattr("settle")?;
    settle.call1((answer,))?.into_py_any(py)
}

/// How long a call waits before it asks whether Python has a signal.
const PAUSE: Duration = Duration::from_millis(50);

/// Does work that waits for sandboxed hooks in a separate thread, so that Ctrl-C or a flag ends the wait. The hook then ends at its own
/// limit of time, or with the program. Only the main thread of Python gets signals; any other one without a flag does the work itself.
pub fn interruptible<T: Send + 'static>(
    py: Python<'_>,
    flag: Option<&Arc<AtomicBool>>,
    work: impl FnOnce() -> cuebook::Result<T> + Send + 'static,
) -> PyResult<cuebook::Result<T>> {
    let threading = py.import("threading")?;
    let current = threading.call_method0("current_thread")?;
    if flag.is_none() && !current.is(&threading.call_method0("main_thread")?) {
        return Ok(py.detach(work));
    }
    let (sender, mut receiver) = sync_channel(1);
    let thread = std::thread::Builder::new().name("cuebook render".to_owned()).stack_size(8 << 20);
    // After Ctrl-C the answer is not needed.
    thread.spawn(move || drop(sender.send(work())))?;
    loop {
        let answer;
        (receiver, answer) = py.detach(move || {
            let answer = receiver.recv_timeout(PAUSE);
            (receiver, answer)
        });
        match answer {
            Ok(done) => return Ok(done),
            Err(RecvTimeoutError::Timeout) => {
                py.check_signals().inspect_err(|_| {
                    if let Some(flag) = flag {
                        flag.store(true, Ordering::SeqCst);
                    }
                })?;
                if flag.is_some_and(|flag| flag.load(Ordering::SeqCst)) {
                    return Ok(Err(cancelled()));
                }
            }
            Err(RecvTimeoutError::Disconnected) => {
                let message = "the render thread ended without a result";
                let diagnostic = Diagnostic::new(Code::RenderFailed, message);
                return Ok(Err(Error::new(ErrorKind::PromptRender, diagnostic)));
            }
        }
    }
}

/// The error of a call that its caller has cancelled.
pub fn cancelled() -> Error {
    let diagnostic = Diagnostic::new(Code::ThreadCancelled, "the call was cancelled");
    Error::new(ErrorKind::Execute, diagnostic)
}

/// An exception in one line: its type, and what it says.
pub fn in_words(py: Python<'_>, failure: &PyErr) -> String {
    let kind = failure.get_type(py).name().map_or_else(|_| "Exception".to_owned(), |name| name.to_string());
    match failure.value(py).str() {
        Ok(text) if !text.to_string_lossy().is_empty() => format!("{kind}: {}", text.to_string_lossy()),
        _ => kind,
    }
}

/// What a hook of this process knows of the render: it can read files and open connections without asking.
pub fn context_of(context: &HookContext<'_>) -> Json {
    let mut known = json!({
        "workspace_path": context.workspace.to_string_lossy(),
        "session": context.session,
    });
    match &context.subject {
        Subject::Prompt { id } => known["prompt_id"] = json!(id),
        Subject::Provider { namespace, .. } => known["namespace"] = json!(namespace),
    }
    known
}

/// The error for a hook that raised an exception.
pub fn failed(what: &str, words: &str) -> Error {
    let message = format!("{what} raised {words}");
    let hint = "the exception is the `__cause__` of this one, with its traceback";
    Error::new(ErrorKind::Hook, Diagnostic::new(Code::HookFailed, message).hint(hint))
}

/// The error for a hook that returned the wrong type.
pub fn wrong_return(what: &str, wanted: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::HookReturn, format!("{what} must return {wanted}"));
    Error::new(ErrorKind::Hook, diagnostic.hint(format!("return {wanted} from the function")))
}

/// Calls a hook that returns variables.
pub fn variables(function: &Py<PyAny>, what: &str, arguments: &[Json]) -> Result<Values, HookError> {
    match call(function, what, arguments).map_err(|words| failed(what, &words))? {
        Json::Object(values) => Ok(values),
        _ => Err(wrong_return(what, "a dict").into()),
    }
}
