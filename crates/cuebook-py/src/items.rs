//! Items: execute, search, load, sign, verify.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use cuebook::items::{ItemType, SpaceKind};
use cuebook::trust::{SigningKey, Trust};
use cuebook_run::provider::Stop;
use cuebook_run::{Action, Engine, Fence, Settings, Watch};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::book::Book;
use crate::cancel::Cancel;
use crate::context::unknown;
use crate::errors::Raise;
use crate::json::to_python;
use crate::values::members;

/// Stops a call when the task that waits for it is cancelled, or when Python has a signal for this thread, such as Ctrl-C.
struct Signals(Mutex<Option<PyErr>>, Option<Arc<AtomicBool>>);

impl Watch for Signals {
    fn cancelled(&self) -> bool {
        if self.1.as_ref().is_some_and(|flag| flag.load(Ordering::SeqCst)) {
            return true;
        }
        let Ok(mut raised) = self.0.lock() else { return true };
        if raised.is_none() {
            *raised = Python::attach(|py| py.check_signals().err());
        }
        raised.is_some()
    }

    fn stop(&self) -> Option<Stop> {
        None
    }
}

impl Book {
    /// An engine for the project.
    pub fn engine(&self, settings: Settings) -> Engine {
        let launcher = Some(self.launcher.clone());
        Engine::new(self.spaces()).with_settings(Settings { launcher, ..settings })
    }
}

#[pymethods]
impl Book {
    /// Executes, searches, loads or signs items: the answer is an object in any case.
    fn act(&self, py: Python<'_>, action: &str, arguments: &Bound<'_, PyDict>) -> PyResult<Py<PyAny>> {
        let known = Action::ALL.map(Action::word);
        let action = Action::named(action)
            .ok_or_else(|| unknown("the list of actions", action, &known))
            .or_raise(py)?;
        let arguments = members(arguments)?;
        let signals = Signals(Mutex::default(), Cancel::current(py)?);
        let answer = py.detach(|| {
            let engine = self.engine(Settings { fence: Fence::Threads, ..Settings::default() });
            action.run(&engine, &arguments, &signals)
        });
        match signals.0.into_inner() {
            Ok(Some(raised)) => Err(raised),
            _ => to_python(py, &answer),
        }
    }

    /// Makes the user's key, with which items are signed, and trusts it.
    fn generate_key(&self, py: Python<'_>, owner: &str, replace: bool) -> PyResult<String> {
        let made = py.detach(|| {
            let (spaces, key) = (self.spaces(), SigningKey::generate()?);
            key.save(&spaces, replace)?;
            Trust::new(&spaces).add(
                SpaceKind::User,
                key.public(),
                owner,
                Some(&key),
                jiff::Timestamp::now(),
            )?;
            Ok(key.fingerprint().to_owned())
        });
        made.or_raise(py)
    }

    /// Verifies the signature of an item.
    fn verify(&self, py: Python<'_>, item_type: &str, item_id: &str) -> PyResult<Py<PyAny>> {
        let known = ItemType::ALL.map(ItemType::as_str);
        let kind = ItemType::named(item_type)
            .ok_or_else(|| unknown("the list of item types", item_type, &known))
            .or_raise(py)?;
        let verified = py.detach(|| self.engine(Settings::default()).verify(kind, item_id));
        to_python(py, &verified.or_raise(py)?.to_json())
    }
}
