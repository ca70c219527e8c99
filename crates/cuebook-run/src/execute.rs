//! Executes items: one call executes one item.

mod action;
mod directive;
mod knowledge;
mod tool;

use std::path::Path;
use std::time::Instant;

pub use action::VerifiedItem;
use cuebook::Result;
use cuebook::actions::load::item_type;
use cuebook::items::{ItemId, ItemType};
use serde_json::{Map, Value as Json, json};

use crate::caller::Caller;
use crate::engine::{Answer, Engine, Execute, Failure, stamp};
use crate::executed::Executed;
use crate::record::ThreadId;
use crate::request::ExecuteRequest;
use crate::thread::Resume;
use crate::watch::{Ignore, Watch};

impl Engine {
    /// Executes an item: runs a tool, fills a directive or runs it in a thread, reads a piece of knowledge.
    ///
    /// ```no_run
    /// use cuebook::items::Spaces;
    /// use cuebook_run::{Engine, ExecuteRequest, Executed};
    ///
    /// let engine = Engine::new(Spaces::of_project("/home/ada/desk".as_ref()));
    /// match engine.execute(&ExecuteRequest::tool("desk/order").parameter("number", 8))? {
    ///     Executed::Tool(tool) => println!("{}", tool.data),
    ///     other => println!("{other:?}"),
    /// }
    /// # Ok::<(), cuebook::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// Whatever keeps the item from running, and how it failed. [`Error::field`](cuebook::Error::field) has what is known besides: the
    /// `data` of a tool that failed, the `thread_id` and `thread_status` of a thread that did not complete.
    pub fn execute(&self, request: &ExecuteRequest) -> Result<Executed> {
        self.execute_watched(request, &Ignore)
    }

    /// The same, with reports of its progress and a way to stop it.
    ///
    /// # Errors
    ///
    /// As [`Engine::execute`].
    #[doc(hidden)]
    pub fn execute_watched(&self, request: &ExecuteRequest, watch: &dyn Watch) -> Result<Executed> {
        self.attempt(request, watch, None).map_err(Failure::into_detailed_error)
    }

    /// Executes what the arguments of a call ask for, and answers as `rye_execute` does: whatever goes wrong is part of the answer.
    #[doc(hidden)]
    pub fn execute_json(&self, arguments: &Json, watch: &dyn Watch) -> Json {
        match ExecuteRequest::from_json(arguments) {
            Ok(request) => self.answer(&request, watch).json,
            Err(error) => refused(arguments, error),
        }
    }

    /// Executes an item, answers as `rye_execute` does, and keeps the error beside the answer.
    pub fn answer(&self, request: &ExecuteRequest, watch: &dyn Watch) -> Answer {
        self.execute_for(request, watch, None)
    }

    /// Goes on with the thread of a directive that reached a limit, with other limits. The answer is that of
    /// [`execute_json`](Engine::execute_json).
    #[doc(hidden)]
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
            .and_then(|id| Ok((id, self.resume_with(project, None, &ThreadId::known(thread), &how, watch)?)))
            .map_err(|error| Failure::new(error).with_id(Some(directive)))
            .and_then(|(id, began)| directive::ended(&id, began));
        finish(done, started).json
    }

    fn attempt(
        &self,
        request: &ExecuteRequest,
        watch: &dyn Watch,
        within: Option<&Caller<'_>>,
    ) -> Result<Executed, Failure> {
        let mut request = request.clone();
        let ready = request.take_flags().and_then(|()| self.project(request.project_path.as_deref()));
        let ready = ready.and_then(|project| Ok((project, ItemId::new(&request.item_id)?)));
        let (project, id) = ready.map_err(|error| Failure::new(error).with_id(Some(&request.item_id)))?;
        match request.item_type {
            ItemType::Tool => tool::execute(self, &project, &id, &request, watch, within),
            ItemType::Directive => directive::execute(self, &project, &id, &request, watch, within),
            ItemType::Knowledge => knowledge::execute(&project, &id),
        }
    }
}

impl Execute for Engine {
    fn execute_for(
        &self,
        request: &ExecuteRequest,
        watch: &dyn Watch,
        within: Option<&Caller<'_>>,
    ) -> Answer {
        let started = Instant::now();
        finish(self.attempt(request, watch, within), started)
    }
}

/// The answer of a call that began so long ago.
fn finish(done: Result<Executed, Failure>, started: Instant) -> Answer {
    match done {
        Ok(executed) => {
            let mut response = executed.to_json();
            stamp(&mut response, started);
            Answer { json: Json::Object(response), error: None }
        }
        Err(failure) => failure.into_answer(Some(started)),
    }
}

/// The answer to arguments that are no request.
fn refused(arguments: &Json, error: cuebook::Error) -> Json {
    let text = |name: &str| arguments.get(name).and_then(Json::as_str);
    // Callers know this answer: it has nothing but the message.
    if text("item_type").is_some_and(|given| item_type(given).is_err()) {
        return json!({"status": "error", "error": error.diagnostic().message});
    }
    Failure::new(error).with_id(text("item_id")).into_answer(None).json
}
