//! Threads: start, watch, cancel and resume runs of prompts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use cuebook::{Code, Diagnostic, Error, ErrorKind};
use cuebook_run::provider::Stop;
use cuebook_run::store::Filter;
use cuebook_run::{
    Activity, Engine, Fence, Resume, RunRequest, Settings, ThreadId, ThreadRun, Watch, whole_log,
};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Map, Value as Json, json};

use crate::book::{Book, inputs};
use crate::cancel::Cancel;
use crate::chat;
use crate::errors::{self, Raise};
use crate::json::to_python;
use crate::values::members;

/// Gives every event to a function of Python.
struct Events<'e> {
    sink: &'e Py<PyAny>,
    cancel: &'e Cancel,
}

/// Functions of Python behind tools, and what they raised.
type Tools = Vec<(String, Py<PyAny>)>;
type Failures = Arc<Mutex<Vec<Py<PyAny>>>>;

impl Book {
    /// An engine whose threads call functions of Python.
    fn engine_with(&self, settings: Settings, tools: Tools, failures: &Failures) -> Engine {
        tools.into_iter().fold(self.engine(settings), |engine, (name, function)| {
            let (called, failures) = (name.clone(), failures.clone());
            engine.with_function(name, move |arguments| chat::tool(&function, &called, arguments, &failures))
        })
    }
}

impl Watch for Events<'_> {
    fn cancelled(&self) -> bool {
        self.cancel.cancelled()
    }

    fn stop(&self) -> Option<Stop> {
        Some(Stop::flag(self.cancel.0.clone()))
    }

    fn activity(&self, thread: &ThreadId, activity: &Activity<'_>) {
        let (kind, data) = match activity {
            Activity::Event(event) => ("event", event.to_json(thread)),
            Activity::Text(text) => ("text", json!(text)),
            Activity::Thinking(text) => ("thinking", json!(text)),
            Activity::Pulse { cost, doing } => ("pulse", json!({"cost": cost.to_json(), "doing": doing})),
            Activity::Retry { attempt, pause, why } => {
                ("retry", json!({"attempt": attempt, "pause": pause.as_secs_f64(), "why": why}))
            }
            // A newer kind, which this package does not report.
            _ => return,
        };
        Python::attach(|py| {
            let said =
                to_python(py, &data).and_then(|data| self.sink.call1(py, (thread.as_str(), kind, data)));
            // The run goes on without its listener; Python prints what went wrong with it.
            if let Err(failed) = said {
                failed.write_unraisable(py, None);
            }
        });
    }
}

/// The options of a run, which the Python half names and checks.
struct Options(Map<String, Json>);

impl Options {
    fn text(&self, name: &str) -> Option<String> {
        self.0.get(name)?.as_str().map(str::to_owned)
    }

    fn texts(&self, name: &str) -> Vec<String> {
        let texts = self.0.get(name).and_then(Json::as_array);
        texts.into_iter().flatten().filter_map(|text| text.as_str().map(str::to_owned)).collect()
    }

    fn is_set(&self, name: &str) -> bool {
        self.0.get(name).and_then(Json::as_bool).unwrap_or_default()
    }

    fn object(&self, name: &str) -> Map<String, Json> {
        self.0.get(name).and_then(Json::as_object).cloned().unwrap_or_default()
    }

    fn settings(&self) -> Settings {
        Settings {
            provider: self.text("provider"),
            replay: self.text("replay").map(PathBuf::from),
            record: self.text("record").map(PathBuf::from),
            store: self.text("store"),
            fence: if self.is_set("unfenced") { Fence::Off } else { Fence::Threads },
            ..Settings::default()
        }
    }
}

fn not_found(thread: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::ThreadNotFound, format!("there is no thread `{thread}`"))
        .hint("`Book.threads()` lists all of them");
    Error::new(ErrorKind::Execute, diagnostic)
}

fn ended(py: Python<'_>, began: ThreadRun, failures: &Failures) -> PyResult<Py<PyAny>> {
    let finished = match began {
        ThreadRun::Finished(finished) => finished,
        ThreadRun::Detached { id, pid } => {
            return to_python(py, &json!({"thread_id": id.as_str(), "status": "running", "pid": pid}));
        }
    };
    let mut answer = finished.to_json();
    answer["thread_id"] = json!(finished.id.as_str());
    answer["status"] = json!(finished.status.as_str());
    let answer = to_python(py, &answer)?;
    let members = answer.bind(py).cast::<PyDict>()?;
    if let Some(error) = &finished.error {
        members.set_item("error", errors::instance(py, error)?)?;
    }
    let raised = std::mem::take(&mut *failures.lock().unwrap_or_else(PoisonError::into_inner));
    members.set_item("failures", raised)?;
    Ok(answer)
}

#[pymethods]
impl Book {
    /// Runs a prompt in a thread until it ends.
    #[expect(clippy::too_many_arguments, reason = "the Python class passes all of them")]
    fn run(
        &self,
        py: Python<'_>,
        prompt: String,
        variables: &Bound<'_, PyDict>,
        context: &Bound<'_, PyDict>,
        options: &Bound<'_, PyDict>,
        tools: Tools,
        sink: Py<PyAny>,
        cancel: &Cancel,
    ) -> PyResult<Py<PyAny>> {
        let failures = Failures::default();
        let inputs = inputs(py, variables, context)?;
        let options = Options(members(options)?);
        let began = py.detach(|| {
            let book = self.prompts();
            book.prepare(&prompt, &inputs.context)?.refuse_unknown(&inputs.variables)?;
            let items: BTreeMap<String, String> = options
                .object("tools")
                .into_iter()
                .filter_map(|(name, item)| Some((name, item.as_str()?.to_owned())))
                .collect();
            let request = RunRequest {
                prompt,
                variables: inputs.variables,
                context: inputs.context,
                model: options.text("model"),
                limit_overrides: options.object("limits"),
                tools: items,
                allow: options.texts("allow"),
                skills: options.texts("skills"),
                is_async: false,
            };
            let engine = self.engine_with(options.settings(), tools, &failures);
            engine.run(book, &request, &Events { sink: &sink, cancel })
        });
        ended(py, began.or_raise(py)?, &failures)
    }

    /// Takes a thread up again.
    fn resume(
        &self,
        py: Python<'_>,
        thread: &str,
        options: &Bound<'_, PyDict>,
        tools: Tools,
        sink: Py<PyAny>,
        cancel: &Cancel,
    ) -> PyResult<Py<PyAny>> {
        let failures = Failures::default();
        let options = Options(members(options)?);
        let began = py.detach(|| {
            let how = Resume {
                limit_overrides: options.object("limits"),
                model: options.text("model"),
                allow_again: options.is_set("allow_again"),
                take_over: options.is_set("take_over"),
                ..Resume::default()
            };
            let events = Events { sink: &sink, cancel };
            let id = ThreadId::known(thread);
            let engine = self.engine_with(options.settings(), tools, &failures);
            engine.resume_with(None, Some(self.prompts()), &id, &how, &events)
        });
        ended(py, began.or_raise(py)?, &failures)
    }

    /// The threads of the project, newest first.
    fn threads(
        &self,
        py: Python<'_>,
        options: &Bound<'_, PyDict>,
        most: Option<usize>,
    ) -> PyResult<Py<PyAny>> {
        let options = Options(members(options)?);
        let records = py.detach(|| {
            let store = self.engine(options.settings()).threads_so_far(None)?;
            store.list(&Filter { prompt: options.text("prompt"), most, ..Filter::default() })
        });
        to_python(py, &records.or_raise(py)?.iter().map(cuebook_run::store::Record::to_json).collect())
    }

    /// The events of a thread.
    fn events(&self, py: Python<'_>, thread: &str, options: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
        let options = Options(members(options)?);
        let id = ThreadId::known(thread);
        let events = py.detach(|| {
            let store = self.engine(options.settings()).threads_so_far(None)?;
            let record = store.record(&id)?.ok_or_else(|| not_found(thread))?;
            whole_log(&*store, &record)
        });
        to_python(py, &events.or_raise(py)?.iter().map(|event| event.to_json(&id)).collect())
    }

    /// Stops a thread that any process runs.
    fn cancel_thread(
        &self,
        py: Python<'_>,
        thread: &str,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Py<PyAny>> {
        let options = Options(members(options)?);
        let id = ThreadId::known(thread);
        let take_over = options.is_set("take_over");
        let done = py.detach(|| self.engine(options.settings()).cancel(None, &id, take_over)).or_raise(py)?;
        let stopped: Json = done.stopped.iter().map(cuebook_run::store::Record::to_json).collect();
        to_python(py, &json!({"thread": done.record.to_json(), "stopped": stopped, "tools": done.tools}))
    }
}
