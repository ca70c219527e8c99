//! Runs a thread to its end, and writes how it ended.

use cuebook::error::report;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Value as Json, json};

use super::managed::{Before, Managed, Parts};
use super::rebuild::cost_json;
use super::{Kind, Money, Status, ThreadId};
use crate::store::{Change, Cost};
use crate::turn::{self, Halt, Start};

/// A thread that is about to run.
pub(super) struct Ready<'e> {
    pub(super) parts: Parts<'e>,
    pub(super) start: Start,
    pub(super) before: Before,
}

/// How a thread ended.
#[derive(Debug)]
pub struct Finished {
    /// The thread.
    pub id: ThreadId,
    /// How it stands with it.
    pub status: Status,
    /// What the model said last, if that is the result.
    pub result: Option<Json>,
    /// The outputs that it returned.
    pub outputs: Option<Json>,
    /// What whoever reads the result should know about it: that it was cut off.
    pub note: Option<String>,
    /// Why it is not completed.
    pub error: Option<Error>,
    /// What it used.
    pub cost: Cost,
    /// What its children spent, as far as they have ended, and theirs.
    pub children: Money,
    /// Its conversation is full, and another thread is to go on: its end is not written yet.
    pub(crate) full: bool,
}

/// Runs a thread to its end.
///
/// # Errors
///
/// Only if the end could not be written: the store failed, or somebody else has taken the thread up.
pub(super) fn drive(ready: Ready<'_>) -> Result<Finished> {
    let Ready { parts, start, before } = ready;
    let (id, moments, secrets) = (parts.id.clone(), parts.moments, parts.secrets);
    let thread = Managed::new(parts, before);
    let mut outcome = turn::run(&thread, start).outcome;
    if let Ok(result) = &mut outcome {
        // A model may repeat what it has seen; the end is no place for keys either.
        secrets.scrub(result);
    }
    let mut finished = Finished {
        id,
        status: Status::Completed,
        result: None,
        outputs: None,
        note: None,
        error: None,
        cost: Cost::default(),
        children: Money::ZERO,
        full: thread.is_full(),
    };
    match outcome {
        Ok(result) => {
            if let Some(why) = result.get("blocked").and_then(Json::as_str) {
                finished.status = Status::Error;
                finished.error = Some(blocked(why));
            }
            finished.outputs = result.get("outputs").cloned();
            finished.result = result.get("result").cloned();
            finished.note = result.get("note").and_then(Json::as_str).map(str::to_owned);
        }
        Err(Halt::Cancelled(why)) => {
            finished.status = Status::Cancelled;
            let message = format!("the thread was {why}");
            let hint = format!("go on with it: cuebook thread resume {}", finished.id);
            let diagnostic = Diagnostic::new(Code::ThreadCancelled, message).hint(hint);
            finished.error = Some(Error::new(ErrorKind::Execute, diagnostic));
        }
        Err(Halt::Suspended(error) | Halt::Indeterminate(error)) => {
            finished.status = Status::Suspended;
            finished.error = Some(error);
        }
        Err(Halt::Failed(error)) => {
            finished.status = Status::Error;
            finished.error = Some(error);
        }
    }
    finished.cost = thread.cost();
    if let Ok(Some(account)) = thread.store.account(&finished.id) {
        finished.children = account.children;
    }
    if finished.full {
        // Its end is written together with the beginning of the thread that goes on.
        thread.write()?;
        return Ok(finished);
    }
    let kind = match finished.status {
        Status::Completed => Kind::Completed,
        Status::Cancelled => Kind::Cancelled,
        Status::Suspended => Kind::Suspended,
        _ => Kind::Failed,
    };
    let told = finished.to_json();
    let mut payload = told.clone();
    payload["cost"] = cost_json(&finished.cost);
    thread.keep(kind, payload);
    let change = Change { status: Some(finished.status), result: Some(told), ..Change::default() };
    thread.end(change)?;
    if finished.status == Status::Cancelled {
        // Whoever stopped it need not have told the store, and threads below it may run elsewhere. Its own end is written.
        let _ = thread.store.cancel(&finished.id);
    }
    moments.completed(&thread, &finished);
    // Its end is written; what its hooks did is worth keeping, and no reason to fail.
    let _ = thread.write_behind();
    thread.pulse("");
    Ok(finished)
}

impl Finished {
    /// The end as events and scripts see it.
    pub fn to_json(&self) -> Json {
        let mut json = json!({"cost": self.cost.to_json()});
        if self.children > Money::ZERO {
            json["cost"]["children_spend"] = self.children.to_json();
        }
        for (name, value) in [("result", &self.result), ("outputs", &self.outputs)] {
            if let Some(value) = value {
                json[name] = value.clone();
            }
        }
        if let Some(note) = &self.note {
            json["note"] = note.as_str().into();
        }
        if let Some(error) = &self.error {
            let told = error.diagnostic();
            json["error"] = json!({
                "code": error.code().as_str(),
                "message": told.message,
                "hint": told.hint,
                "details": report(error.diagnostics(), false).to_string(),
            });
        }
        json
    }
}

/// The model says that it cannot do what it is to do.
fn blocked(why: &str) -> Error {
    let message = format!("the model is blocked: {why}");
    let hint = "give it what is missing, and run the directive again";
    Error::new(ErrorKind::Execute, Diagnostic::new(Code::OutputsMissing, message).hint(hint))
}
