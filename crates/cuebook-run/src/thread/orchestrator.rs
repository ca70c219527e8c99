//! What a program or a model can ask about threads, as a tool: `rye/agent/threads/orchestrator` with an `operation`.
//!
//! A thread sees and touches itself and the threads below it, and no others: whatever its permissions say about the tool, other
//! threads of the project may be those of another user, with prompts and results that are none of its business.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuebook::error::{did_you_mean, nearest};
use cuebook::items::ItemId;
use cuebook::json::type_of;
use cuebook::variables::Variables;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Hint, Result};
use serde_json::{Map, Value as Json, json};

use super::conversation;
use super::log::{not_found, whole_log};
use super::{Caller, Event, Kind, Resume, RunRequest, Status, ThreadId, ThreadRun};
use crate::engine::{Engine, Failure, Project};
use crate::request::ExecuteRequest;
use crate::store::{Filter, Record, Store};
use crate::watch::Watch;

/// The tool's id.
pub(crate) const ID: &str = "rye/agent/threads/orchestrator";
/// A thread's own results that were too long to be sent whole. Every thread may read its own.
pub(crate) const RESULT: &str = "rye/agent/threads/internal/result";

/// The operations, and what each takes beside its name.
const OPERATIONS: [(&str, &[&str]); 11] = [
    ("run_prompt", &["prompt", "variables", "model", "limit_overrides", "async"]),
    ("get_status", &["thread_id"]),
    ("list_active", &[]),
    ("wait_threads", &["thread_id", "thread_ids", "timeout"]),
    ("cancel_thread", &["thread_id"]),
    ("resume_thread", &["thread_id", "model", "limit_overrides"]),
    ("aggregate_results", &["thread_id", "thread_ids"]),
    ("get_chain", &["thread_id"]),
    ("chain_search", &["thread_id", "query"]),
    ("read_transcript", &["thread_id", "after"]),
    ("read_result", &["thread_id", "call_id", "offset"]),
];

/// How long a wait lasts without a setting.
const WAIT: Duration = Duration::from_secs(600);
/// How often a wait looks.
const LOOK: Duration = Duration::from_millis(100);
/// How many characters of a long result are shown at once.
const PIECE: usize = 8_000;
/// How many events are shown at once.
const PAGE: usize = 200;

/// The operation that an id stands for, if it is one of the built-in tools; an empty one is said by the parameters.
pub(crate) fn named(id: &ItemId) -> Option<&'static str> {
    match id.as_str() {
        ID => Some(""),
        RESULT => Some("read_result"),
        _ => None,
    }
}

/// The data that a call returns.
pub(crate) fn answer(
    engine: &Engine,
    project: &Arc<Project>,
    operation: &'static str,
    request: &ExecuteRequest,
    watch: &dyn Watch,
    within: Option<&Caller<'_>>,
) -> Result<Json, Failure> {
    let given = &request.parameters;
    let fail = |error: Error| {
        let message = error.diagnostic().message.clone();
        Failure::new(error).with_id(Some(ID)).with("data", json!({"success": false, "error": message}))
    };
    let operation = operation_of(operation, given).map_err(fail)?;
    let orchestrator = Orchestrator { engine, project, watch, within, given };
    let data = if request.dry_run { Ok(json!({})) } else { orchestrator.answer(operation) };
    let mut data = data.map_err(fail)?;
    if let Json::Object(data) = &mut data {
        data.shift_insert(0, "success".into(), true.into());
    }
    Ok(data)
}

/// The requested operation. What it does not take is refused: a caller who misspells `model` must not be answered by another one.
fn operation_of<'g>(by_id: &'static str, given: &'g Map<String, Json>) -> Result<&'g str> {
    let refuse = |message: String, hint: String| {
        Err(Error::new(ErrorKind::Execute, Diagnostic::new(Code::BadParameters, message).hint(hint)))
    };
    let names = || OPERATIONS.map(|(name, _)| name);
    let all = || format!("the operations are {}", names().join(", "));
    let operation = match given.get("operation") {
        _ if !by_id.is_empty() => by_id,
        Some(Json::String(operation)) => operation,
        None | Some(Json::Null) => {
            return refuse("the parameter `operation` is missing".to_owned(), all());
        }
        Some(other) => return refuse(format!("`operation` must be a string, not {}", type_of(other)), all()),
    };
    let Some((_, takes)) = OPERATIONS.iter().find(|(name, _)| *name == operation) else {
        let hint = did_you_mean(&nearest(operation, names())).unwrap_or_else(all);
        return refuse(format!("unknown operation `{operation}`"), hint);
    };
    match given.keys().find(|name| *name != "operation" && !takes.contains(&name.as_str())) {
        None => Ok(operation),
        Some(unknown) => {
            let near = did_you_mean(&nearest(unknown, takes.iter().copied()));
            let hint = near.unwrap_or_else(|| match takes {
                [] => format!("`{operation}` takes no parameters"),
                takes => format!("it takes {}", takes.join(", ")),
            });
            refuse(format!("the operation `{operation}` has no parameter `{unknown}`"), hint)
        }
    }
}

/// Refuses what is no id: for a client, a path would lead out of the library.
fn id_only(book: &Book, prompt: &str) -> Result<()> {
    match book.library().resolve_id(prompt) {
        Err(error) if !book.library().ids()?.iter().any(|id| id == prompt) => Err(error),
        _ => Ok(()),
    }
}

/// The report of a missing variable names the option of a shell; callers here have parameters.
fn without_options(error: Error) -> Error {
    let mut diagnostics = error.diagnostics().to_vec();
    for diagnostic in &mut diagnostics {
        diagnostic.hint = diagnostic.advice().map(Hint::from);
    }
    let mut reported = Error::all(error.kind(), diagnostics);
    for name in ["prompt_id", "missing", "invalid"] {
        if let Some(value) = error.field(name) {
            reported = reported.with(name, value);
        }
    }
    reported
}

struct Orchestrator<'d> {
    engine: &'d Engine,
    project: &'d Arc<Project>,
    watch: &'d dyn Watch,
    within: Option<&'d Caller<'d>>,
    given: &'d Map<String, Json>,
}

impl Orchestrator<'_> {
    fn answer(&self, operation: &str) -> Result<Json> {
        let store = self.engine.threads(Some(self.project.spaces.project()))?;
        let store = &*store;
        match operation {
            "list_active" => {
                let status = vec![Status::Created, Status::Queued, Status::Running];
                let mut active = store.list(&Filter { status, ..Filter::default() })?;
                let own = self.own(store)?;
                active.retain(|record| matches!(self.is_below(store, &own, record), Ok(true)));
                Ok(json!({"threads": active.iter().map(Record::to_json).collect::<Vec<_>>()}))
            }
            "get_status" => {
                let record = self.one(store)?;
                Ok(json!({"status": record.status.as_str(), "thread_id": record.id.as_str()}))
            }
            "wait_threads" => self.wait(store),
            "cancel_thread" => {
                let id = self.one(store)?.id;
                let record = if self.own(store)?.contains(&id) {
                    // It runs this very call, and stops behind it.
                    store.cancel(&id)?
                } else {
                    self.engine.cancel(Some(self.project.spaces.project()), &id, false)?.record
                };
                Ok(json!({"thread_id": record.id.as_str(), "status": record.status.as_str()}))
            }
            "run_prompt" => self.run_prompt(),
            "resume_thread" => {
                let how = Resume {
                    limit_overrides: self.map("limit_overrides")?,
                    model: self.text("model")?.map(str::to_owned),
                    is_async: true,
                    ..Resume::default()
                };
                let project = Some(self.project.spaces.project());
                match self.engine.resume_with(project, None, &self.one(store)?.id, &how, self.watch)? {
                    ThreadRun::Detached { id, pid } => {
                        Ok(json!({"thread_id": id.as_str(), "status": "running", "pid": pid}))
                    }
                    ThreadRun::Finished(finished) => {
                        Ok(json!({"thread_id": finished.id.as_str(), "status": finished.status.as_str()}))
                    }
                }
            }
            "aggregate_results" => {
                let results: Result<Map<String, Json>> = self
                    .several(store)?
                    .into_iter()
                    .map(|record| {
                        let reported = json!({"status": record.status.as_str(), "result": record.result, "cost": record.cost.to_json()});
                        Ok((record.id.to_string(), reported))
                    })
                    .collect();
                Ok(json!({"results": results?}))
            }
            "get_chain" => {
                let chain: Vec<Json> = self
                    .chain(store)?
                    .iter()
                    .map(|record| json!({"thread_id": record.id.as_str(), "status": record.status.as_str(), "directive": record.prompt}))
                    .collect();
                Ok(json!({"chain_length": chain.len(), "chain": chain}))
            }
            "chain_search" => {
                let query = self.need("query")?.to_lowercase();
                let mut hits = Vec::new();
                for record in self.chain(store)? {
                    for event in whole_log(store, &record)? {
                        if event.text.to_lowercase().contains(&query) {
                            hits.push(event.to_json(&record.id));
                        }
                    }
                }
                hits.truncate(PAGE);
                Ok(json!({"results": hits}))
            }
            "read_transcript" => {
                let record = self.one(store)?;
                let after = self.number("after")?;
                let events = store.events(&record.id, after, PAGE)?;
                let next = events.last().map(|event| event.seq).filter(|last| *last < record.last.0);
                let events: Vec<Json> = events.iter().map(|event| event.to_json(&record.id)).collect();
                Ok(json!({"thread_id": record.id.as_str(), "events": events, "next": next}))
            }
            _ => self.result(store),
        }
    }

    /// Runs a prompt of any dialect outside of a thread: a thread runs directives, whose permissions and money are a part of
    /// its own.
    fn run_prompt(&self) -> Result<Json> {
        if self.within.is_some_and(|within| within.thread.is_some()) {
            let message = "a thread can run only directives";
            let hint = "execute a directive with `thread: true`";
            return Err(Error::new(
                ErrorKind::Execute,
                Diagnostic::new(Code::NotPermitted, message).hint(hint),
            ));
        }
        let prompt = self.need("prompt")?;
        if self.engine.settings().allowance.is_some() {
            id_only(self.project.book(), prompt)?;
        }
        let prompt = match prompt.starts_with('.') {
            // A path starts at the project: the current directory of this process means nothing to the caller.
            true => self.project.spaces.project().join(prompt).to_string_lossy().into_owned(),
            false => prompt.to_owned(),
        };
        let request = RunRequest {
            prompt,
            variables: Variables::from_json(&self.map("variables")?),
            model: self.text("model")?.map(str::to_owned),
            limit_overrides: self.map("limit_overrides")?,
            is_async: self.truth("async")?,
            ..RunRequest::default()
        };
        let began =
            self.engine.run(self.project.book(), &request, self.watch).map_err(|error| match error.code() {
                Code::InvalidVariables => without_options(error),
                _ => error,
            });
        match began? {
            ThreadRun::Detached { id, pid } => {
                Ok(json!({"thread_id": id.as_str(), "status": "running", "pid": pid}))
            }
            ThreadRun::Finished(finished) => match finished.error {
                Some(error) => Err(error.with("thread_id", finished.id.as_str())),
                None => {
                    let mut reported = finished.to_json();
                    reported["thread_id"] = finished.id.as_str().into();
                    reported["status"] = finished.status.as_str().into();
                    Ok(reported)
                }
            },
        }
    }

    fn map(&self, name: &str) -> Result<Map<String, Json>> {
        let found = self.typed(name, "an object", |value| value.as_object().cloned());
        found.map(Option::unwrap_or_default)
    }

    fn number(&self, name: &str) -> Result<u64> {
        self.typed(name, "a whole number", Json::as_u64).map(Option::unwrap_or_default)
    }

    fn truth(&self, name: &str) -> Result<bool> {
        self.typed(name, "true or false", Json::as_bool).map(Option::unwrap_or_default)
    }

    fn text(&self, name: &str) -> Result<Option<&str>> {
        self.typed(name, "a string", Json::as_str)
    }

    /// An argument, if there is one. One of another kind is refused and never taken for none.
    fn typed<'g, T>(
        &'g self,
        name: &str,
        wanted: &str,
        read: impl FnOnce(&'g Json) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(value) = self.given.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
        match read(value) {
            Some(read) => Ok(Some(read)),
            None => {
                // A number that is refused is one of a wrong size, and a list one with something wrong in it.
                let given = match value {
                    Json::Number(_) => value.to_string(),
                    Json::Array(_) if wanted.starts_with("a list") => value.to_string(),
                    value => type_of(value).to_owned(),
                };
                let message = format!("`{name}` must be {wanted}, not {given}");
                let diagnostic = Diagnostic::new(Code::BadParameters, message)
                    .hint(format!("write {wanted}, or leave `{name}` out"));
                Err(Error::new(ErrorKind::Execute, diagnostic))
            }
        }
    }

    fn need(&self, name: &str) -> Result<&str> {
        self.text(name)?.ok_or_else(|| {
            let message = format!("the operation needs `{name}`");
            let diagnostic = Diagnostic::new(Code::BadParameters, message).hint("it is a string");
            Error::new(ErrorKind::Execute, diagnostic)
        })
    }

    fn id(&self) -> Result<ThreadId> {
        self.need("thread_id").map(ThreadId::known)
    }

    fn one(&self, store: &dyn Store) -> Result<Record> {
        self.known(store, &self.id()?)
    }

    /// A thread that may be seen from here.
    fn known(&self, store: &dyn Store, id: &ThreadId) -> Result<Record> {
        let own = self.own(store)?;
        let record = store.record(id)?;
        if own.is_empty() {
            return record.ok_or_else(|| not_found(store, id));
        }
        match record {
            Some(record) if own.contains(&record.id) || self.is_below(store, &own, &record)? => Ok(record),
            // It may not learn whether such a thread exists either.
            _ => {
                let message = format!("this thread did not start the thread `{id}`");
                let hint = "a thread can manage itself and its descendants";
                let diagnostic = Diagnostic::new(Code::NotPermitted, message).hint(hint);
                Err(Error::new(ErrorKind::Execute, diagnostic).with("thread_id", id.as_str()))
            }
        }
    }

    /// The thread that asks, and those whose conversation it goes on with; none if it is no thread that asks.
    fn own(&self, store: &dyn Store) -> Result<Vec<ThreadId>> {
        let mut own: Vec<ThreadId> =
            self.within.and_then(|within| within.thread.cloned()).into_iter().collect();
        while let Some(record) = own.last().map(|id| store.record(id)).transpose()?.flatten() {
            match record.continuation_of {
                Some(before) if !own.contains(&before) => own.push(before),
                _ => break,
            }
        }
        Ok(own)
    }

    /// Whether a thread is below one of others; every thread is below no parent.
    fn is_below(&self, store: &dyn Store, own: &[ThreadId], record: &Record) -> Result<bool> {
        let mut above = record.parent.clone();
        let mut seen = Vec::new();
        while let Some(id) = above.filter(|id| !own.is_empty() && !seen.contains(id)) {
            if own.contains(&id) {
                return Ok(true);
            }
            above = store.record(&id)?.and_then(|record| record.parent);
            seen.push(id);
        }
        Ok(own.is_empty())
    }

    fn several(&self, store: &dyn Store) -> Result<Vec<Record>> {
        let texts = |value: &Json| -> Option<Vec<ThreadId>> {
            value.as_array()?.iter().map(|id| id.as_str().map(ThreadId::known)).collect()
        };
        match self.typed("thread_ids", "a list of strings", texts)? {
            Some(ids) => ids.iter().map(|id| self.known(store, id)).collect(),
            None => Ok(vec![self.one(store)?]),
        }
    }

    /// Waits until threads have come to rest, for so many seconds at most.
    fn wait(&self, store: &dyn Store) -> Result<Json> {
        let seconds = self.typed("timeout", "a number of seconds, 0 or more", |value| {
            value.as_f64().filter(|seconds| *seconds >= 0.0)
        })?;
        let patience = seconds.map_or(WAIT, |seconds| Duration::from_secs_f64(seconds.min(86_400.0)));
        let began = Instant::now();
        let own = self.own(store)?;
        loop {
            let records = self.several(store)?;
            if records.iter().any(|record| own.contains(&record.id)) {
                let diagnostic = Diagnostic::new(Code::BadParameters, "a thread cannot wait for itself")
                    .hint("name threads that this thread started");
                return Err(Error::new(ErrorKind::Execute, diagnostic));
            }
            let is_over = records.iter().all(|record| record.status.is_at_rest());
            if is_over || began.elapsed() >= patience || self.watch.cancelled() {
                let results: Map<String, Json> = records
                    .iter()
                    .map(|record| {
                        let reported =
                            json!({"status": record.status.as_str(), "thread_id": record.id.as_str()});
                        (record.id.to_string(), reported)
                    })
                    .collect();
                let mut reported = json!({"results": results});
                if !is_over {
                    reported["timed_out"] = true.into();
                }
                return Ok(reported);
            }
            std::thread::sleep(LOOK.min(patience));
        }
    }

    /// The threads of a conversation, the oldest first.
    fn chain(&self, store: &dyn Store) -> Result<Vec<Record>> {
        conversation::chain(store, self.one(store)?)
    }

    /// A piece of a result that was too long to be sent whole.
    fn result(&self, store: &dyn Store) -> Result<Json> {
        let mut own = self.own(store)?;
        if own.is_empty() {
            own.push(self.id()?);
        }
        let call = self.need("call_id")?;
        let is_it = |event: &Event| event.kind == Kind::Artifact && event.payload["call_id"] == call;
        let mut found = None;
        for id in own {
            let record = store.record(&id)?.ok_or_else(|| not_found(store, &id))?;
            found = whole_log(store, &record)?.into_iter().rev().find(is_it);
            if found.is_some() {
                break;
            }
        }
        let Some(event) = found else {
            let message = format!("no stored result for the call `{call}`");
            let diagnostic = Diagnostic::new(Code::BadParameters, message)
                .hint("the shortened result names its `call_id`");
            return Err(Error::new(ErrorKind::Execute, diagnostic));
        };
        let whole = event.payload["whole"].as_str().unwrap_or_default();
        let offset = self.number("offset")?;
        let piece: String =
            whole.chars().skip(usize::try_from(offset).unwrap_or(usize::MAX)).take(PIECE).collect();
        let next = offset.saturating_add(piece.chars().count() as u64);
        let is_last = next >= whole.chars().count() as u64;
        Ok(json!({"text": piece, "next_offset": if is_last { Json::Null } else { next.into() }}))
    }
}
