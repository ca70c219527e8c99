//! Threads: start, watch, cancel and resume runs of prompts.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_run::provider::Stop;
use cuebook_run::store::{Filter, Record};
use cuebook_run::{Activity, Fence, Resume, RunRequest, Settings, ThreadId, ThreadRun, Watch, whole_log};
use serde_json::{Value as Json, json};

use crate::calls::Arguments;
use crate::errors;
use crate::port::{Kind, Port};
use crate::project::Project;

/// Sends every event to JavaScript.
pub struct Events<'e> {
    pub port: &'e Port,
    pub number: f64,
    pub cancelled: Arc<AtomicBool>,
}

impl Watch for Events<'_> {
    fn cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    fn stop(&self) -> Option<Stop> {
        Some(Stop::flag(self.cancelled.clone()))
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
        let event = json!({"threadId": thread.as_str(), "kind": kind, "data": data});
        self.port.send(Kind::Event, self.number, event.to_string());
    }
}

/// The settings of a run, which the TypeScript half names and checks.
fn settings(given: &Arguments) -> Settings {
    Settings {
        provider: given.optional("provider"),
        replay: given.optional("replay").map(PathBuf::from),
        record: given.optional("record").map(PathBuf::from),
        store: given.optional("store"),
        fence: if given.is_set("unfenced") { Fence::Off } else { Fence::Threads },
        ..Settings::default()
    }
}

fn not_found(thread: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::ThreadNotFound, format!("there is no thread `{thread}`"))
        .hint("`book.threads()` lists all of them");
    Error::new(ErrorKind::Execute, diagnostic)
}

fn ended(began: ThreadRun) -> Json {
    let finished = match began {
        ThreadRun::Finished(finished) => finished,
        ThreadRun::Detached { id, pid } => {
            return json!({"threadId": id.as_str(), "status": "running", "pid": pid});
        }
    };
    let mut answer = finished.to_json();
    answer["threadId"] = json!(finished.id.as_str());
    answer["status"] = json!(finished.status.as_str());
    answer["error"] = finished.error.as_ref().map_or(Json::Null, errors::document);
    answer
}

impl Project {
    /// Runs a prompt in a thread until it ends.
    pub fn run(&self, given: &Arguments, events: &Events<'_>) -> Result<Json> {
        let (prompt, variables) = (given.text("prompt").to_owned(), given.variables());
        let (context, book) = (given.context()?, self.of(given.is_set("isPath")));
        book.prepare(&prompt, &context)?.refuse_unknown(&variables)?;
        let tools: BTreeMap<String, String> = given
            .object("tools")
            .into_iter()
            .filter_map(|(name, item)| Some((name, item.as_str()?.to_owned())))
            .collect();
        let request = RunRequest {
            prompt,
            variables,
            context,
            model: given.optional("model"),
            limit_overrides: given.object("limits"),
            tools,
            allow: given.texts("allow"),
            skills: given.texts("skills"),
            is_async: false,
        };
        self.engine(settings(given)).run(book, &request, events).map(ended)
    }

    /// Takes a thread up again.
    pub fn resume(&self, given: &Arguments, events: &Events<'_>) -> Result<Json> {
        let how = Resume {
            limit_overrides: given.object("limits"),
            model: given.optional("model"),
            allow_again: given.is_set("allowAgain"),
            take_over: given.is_set("takeOver"),
            ..Resume::default()
        };
        let id = ThreadId::known(given.text("thread"));
        self.engine(settings(given)).resume_with(None, Some(self.prompts()), &id, &how, events).map(ended)
    }

    /// The threads of the project, newest first.
    pub fn threads(&self, given: &Arguments) -> Result<Json> {
        let store = self.engine(settings(given)).threads_so_far(None)?;
        let (prompt, most) = (given.optional("prompt"), given.count("most"));
        let records = store.list(&Filter { prompt, most, ..Filter::default() })?;
        Ok(records.iter().map(Record::to_json).collect())
    }

    /// The events of a thread.
    pub fn events(&self, given: &Arguments) -> Result<Json> {
        let id = ThreadId::known(given.text("thread"));
        let store = self.engine(settings(given)).threads_so_far(None)?;
        let record = store.record(&id)?.ok_or_else(|| not_found(given.text("thread")))?;
        Ok(whole_log(&*store, &record)?.iter().map(|event| event.to_json(&id)).collect())
    }

    /// Stops a thread that any process runs.
    pub fn cancel_thread(&self, given: &Arguments) -> Result<Json> {
        let id = ThreadId::known(given.text("thread"));
        let done = self.engine(settings(given)).cancel(None, &id, given.is_set("takeOver"))?;
        let stopped: Json = done.stopped.iter().map(Record::to_json).collect();
        Ok(json!({"thread": done.record.to_json(), "stopped": stopped, "tools": done.tools}))
    }
}
