//! Runs a thread to its end, and writes how it ended.

use cuebook::chat::{Message, Role};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use serde_json::{Value as Json, json};

use super::managed::{Managed, Parts, ThreadSetup};
use super::{Conversation, Kind, Money, Status, ThreadId, spent_below};
use super::{cost_json, error_json, stopped};
use crate::store::{Change, Cost, Filter};
use crate::turn::{self, Ended, Halt, Start};

/// A thread that is about to run.
pub(super) struct ReadyThread<'e> {
    pub(super) parts: Parts<'e>,
    pub(super) start: Start,
    pub(super) before: ThreadSetup,
}

/// How a thread ended.
#[derive(Debug)]
pub struct Finished {
    /// The thread.
    pub id: ThreadId,
    /// The thread's status.
    pub status: Status,
    /// What the model said last, if that is the result.
    pub result: Option<Json>,
    /// The outputs that it returned.
    pub outputs: Option<Json>,
    /// A note for readers of the result: that it was cut off.
    pub note: Option<String>,
    /// Why it is not completed.
    pub error: Option<Error>,
    /// What it used; [`Cost::unpriced`] is also that of the threads below it.
    pub cost: Cost,
    /// What its children spent so far, and theirs.
    pub children: Money,
    /// What the whole conversation used, if it went through other threads before this one.
    pub conversation: Option<Conversation>,
    /// Its conversation is full, and another thread is to go on: its end is not written yet.
    pub(crate) full: bool,
}

/// Runs a thread to its end.
///
/// # Errors
///
/// Only if the end could not be written: the store failed, or another process has continued the thread.
pub(super) fn drive(ready: ReadyThread<'_>) -> Result<Finished> {
    let id = ready.parts.id.clone();
    driven(ready).map_err(|error| lost(error, &id))
}

/// A store that fails in the middle of a run leaves a thread behind that can be continued.
fn lost(error: Error, id: &ThreadId) -> Error {
    if error.code() != Code::StoreFailed {
        return error;
    }
    let mut diagnostic = error.diagnostic().clone();
    let hint = diagnostic.hint.unwrap_or_else(|| "make the store usable again".into());
    diagnostic.hint = Some(hint.or(then_continue("then ", id)));
    Error::new(error.kind(), diagnostic).with("thread_id", id.as_str())
}

/// The hint to continue a thread, behind other words.
pub(super) fn then_continue(words: &str, id: &ThreadId) -> Hint {
    let command = format!("cuebook thread resume {id}");
    Hint::command_line(format!("{words}continue with `{command}`"))
        .for_programs(format!("{words}resume the thread"))
        .with_command(command)
}

fn driven(ready: ReadyThread<'_>) -> Result<Finished> {
    let ReadyThread { parts, start, before } = ready;
    let (id, thread_hooks, secrets) = (parts.id.clone(), parts.thread_hooks, parts.secrets);
    let thread = Managed::new(parts, before);
    let Ended { mut outcome, conversation, .. } = turn::run(&thread, start);
    if let Ok(result) = &mut outcome {
        if let Json::Object(result) = result
            && result.contains_key("outputs")
        {
            result.entry("result").or_insert_with(|| final_events(&conversation).into());
        }
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
        conversation: None,
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
            // A process that is asked to end says nothing about the thread's result: another process continues the thread later.
            finished.status = if thread.leaves() { Status::Interrupted } else { Status::Cancelled };
            finished.error = Some(stopped(&finished.id, &why));
        }
        Err(Halt::Suspended(error) | Halt::Indeterminate(error)) => {
            finished.status = Status::Suspended;
            finished.error = Some(error);
        }
        Err(Halt::Failed(error)) => {
            finished.status = Status::Error;
            finished.error = Some(lost(error, &finished.id));
        }
    }
    finished.cost = thread.cost();
    if let Ok(Some(record)) = thread.store.record(&finished.id) {
        finished.cost.unpriced |= record.cost.unpriced;
        finished.children = spent_below(&*thread.store, &record).unwrap_or_default();
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
        Status::Interrupted => Kind::Interrupted,
        _ => Kind::Failed,
    };
    let reported = finished.to_json();
    let mut payload = reported.clone();
    payload["cost"] = cost_json(&finished.cost);
    if finished.status == Status::Interrupted {
        payload["pid"] = std::process::id().into();
        payload["told_to_end"] = true.into();
    }
    thread.keep(kind, payload);
    // One that is asked to end is not over, and its process has no time for more. Otherwise the thread is not at rest before its
    // hooks have run: a stop of the thread stops them, and if the process dies they are found.
    let follow = finished.status != Status::Interrupted && thread_hooks.follow(&thread, &finished);
    let status = (!follow).then_some(finished.status);
    thread.end(Change { status, result: Some(reported), ..Change::default() })?;
    if finished.status == Status::Cancelled {
        // The process that stopped it need not have informed the store, and threads below it may run elsewhere. Its own end is written.
        let below = Filter { parent: Some(finished.id.clone()), ..Filter::default() };
        for child in thread.store.list(&below).unwrap_or_default() {
            let _ = thread.store.cancel(&child.id);
        }
    }
    if follow {
        thread_hooks.completed(&thread, &finished);
        thread.rest(finished.status)?;
    }
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
        if let Some(whole) = &self.conversation {
            json["cost"] = whole.to_json();
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
            json["error"] = error_json(error);
        }
        json
    }
}

/// The model says that it cannot do what it is to do.
fn blocked(why: &str) -> Error {
    let message = format!("the model is blocked: {why}");
    let hint = "provide what is missing, and run the directive again";
    Error::new(ErrorKind::Execute, Diagnostic::new(Code::OutputsMissing, message).hint(hint))
}

/// What the model said last, beside its calls.
fn final_events(conversation: &[Message]) -> String {
    let last = conversation.iter().rev().find(|message| message.role == Role::Assistant);
    last.map(|message| message.texts().collect()).unwrap_or_default()
}
