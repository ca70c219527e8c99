//! Executes items: one call executes one item.

mod action;
mod directive;
mod knowledge;
mod tool;

use std::path::Path;
use std::time::Instant;

use cuebook::error::{did_you_mean, nearest};
use cuebook::items::{ItemId, ItemType};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Map, Value as Json, json};

use crate::caller::Caller;
use crate::engine::{Answer, Engine, Execute, Failure, stamp};
use crate::record::ThreadId;
use crate::request::Request;
use crate::thread::Resume;
use crate::watch::Watch;

impl Engine {
    /// Executes an item. Whatever goes wrong is part of the response.
    pub fn execute(&self, request: &Request, watch: &dyn Watch) -> Json {
        self.answer(request, watch).json
    }

    /// Executes what the arguments of a call ask for.
    pub fn execute_json(&self, arguments: &Json, watch: &dyn Watch) -> Json {
        match Request::from_json(arguments) {
            Ok(request) => self.execute(&request, watch),
            Err(error) => {
                Failure::new(error)
                    .with_id(arguments.get("item_id").and_then(Json::as_str))
                    .into_answer(None)
                    .json
            }
        }
    }

    /// Executes an item, and keeps the error beside the response.
    pub fn answer(&self, request: &Request, watch: &dyn Watch) -> Answer {
        self.execute_for(request, watch, None)
    }

    /// Goes on with the thread of a directive that reached a limit, with other limits. The answer is that of
    /// [`execute`](Engine::execute).
    pub fn continue_thread(
        &self,
        project: Option<&Path>,
        (directive, thread): (&str, &str),
        limit_overrides: Map<String, Json>,
        watch: &dyn Watch,
    ) -> Json {
        let started = Instant::now();
        let how = Resume { limit_overrides, ..Resume::default() };
        let done = ItemId::new(directive)
            .and_then(|id| Ok((id, self.resume(project, None, &ThreadId::known(thread), &how, watch)?)))
            .map_err(|error| Failure::new(error).with_id(Some(directive)))
            .and_then(|(id, began)| directive::told(&id, began));
        finish(done, started).json
    }
}

impl Execute for Engine {
    fn execute_for(&self, request: &Request, watch: &dyn Watch, within: Option<&Caller<'_>>) -> Answer {
        let started = Instant::now();
        let Some(kind) = ItemType::named(&request.item_type) else {
            return unknown_type(&request.item_type);
        };
        let mut request = request.clone();
        let done = request.take_flags().and_then(|()| self.project(request.project_path.as_deref()));
        let done = done.and_then(|project| Ok((project, ItemId::new(&request.item_id)?)));
        let request = &request;
        let done = match done {
            Err(error) => Err(Failure::new(error).with_id(Some(&request.item_id))),
            Ok((project, id)) => match kind {
                ItemType::Tool => tool::execute(self, &project, &id, request, watch, within),
                ItemType::Directive => directive::execute(self, &project, &id, request, watch, within),
                ItemType::Knowledge => knowledge::execute(&project, &id),
            },
        };
        finish(done, started)
    }
}

/// The answer of a call that began so long ago.
fn finish(done: Result<Map<String, Json>, Failure>, started: Instant) -> Answer {
    match done {
        Ok(mut response) => {
            stamp(&mut response, started);
            Answer { json: Json::Object(response), error: None }
        }
        Err(failure) => failure.into_answer(Some(started)),
    }
}

fn unknown_type(given: &str) -> Answer {
    let names = ItemType::ALL.map(ItemType::as_str);
    let hint =
        did_you_mean(&nearest(given, names)).unwrap_or_else(|| format!("the types are {}", names.join(", ")));
    let message = format!("Unknown item type: {given}");
    let error =
        Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadParameters, message.clone()).hint(hint));
    Answer { json: json!({"status": "error", "error": message}), error: Some(error) }
}
