//! One loaded copy of the package: its renders, and its way to JavaScript.

#![allow(
    clippy::too_many_arguments,
    reason = "an object for the arguments of a render would cost more than the render"
)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;

use cuebook::variables::Variables;
use cuebook::{Code, Context, Diagnostic, Error, ErrorKind, Result as Done};
use cuebook_lab::explain::Explanation;
use napi::bindgen_prelude::{FnArgs, Function, Object};
use napi::{Env, Result};
use napi_derive::napi;
use serde_json::{Map, Value as Json};

use crate::book::NativeBook;
use crate::calls::Arguments;
use crate::errors::{self, thrown};
use crate::functions::{CallNow, DirectCalls};
use crate::port::{Kind, Message, Port};
use crate::project::{Project, RenderCall};
use crate::renders::Renders;
use crate::runs::Events;
use crate::tables::NativeTable;
use crate::weak::Weak;
use crate::{context, converse, reads, workers};

/// One loaded copy of the package. A worker thread of Node has its own.
#[napi]
pub struct Host {
    port: Arc<Port>,
    call_now: Rc<CallNow>,
    renders: RefCell<Renders>,
    /// Renders of other threads, until JavaScript takes them over.
    rendered: Arc<Mutex<HashMap<u64, Explanation>>>,
}

impl Drop for Host {
    fn drop(&mut self) {
        self.port.close();
    }
}

/// Templates may nest deeply.
const STACK: usize = 8 << 20;

#[napi]
impl Host {
    /// A host. `receive` takes messages, and `call_now` calls a function by its number.
    #[napi(constructor)]
    pub fn new(
        receive: Function<'_, Message, ()>,
        call_now: Function<'_, FnArgs<(String,)>, String>,
    ) -> Result<Host> {
        let send = receive.build_threadsafe_function::<Message>().weak::<true>().build()?;
        let call_now = Rc::new(call_now.create_ref()?);
        Ok(Host {
            port: Arc::new(Port::new(send)),
            call_now,
            renders: RefCell::default(),
            rendered: Arc::default(),
        })
    }

    /// Opens a project.
    #[napi]
    pub fn open(&self, options: String) -> Result<NativeBook> {
        let project = Project::open(self.port.clone(), &Arguments::read(&options));
        Ok(NativeBook { project: Arc::new(project.map_err(|error| thrown(&error))?) })
    }

    /// Renders a prompt at once, and returns its text. The render is kept under a number for as long as `object` exists.
    #[napi]
    pub fn render(
        &self,
        env: Env,
        book: &NativeBook,
        object: Object<'_>,
        number: f64,
        prompt: String,
        variables: Option<String>,
        context: Option<String>,
        is_path: bool,
        allow_unknown: bool,
    ) -> Result<String> {
        errors::keep_cause(None);
        let project = &book.project;
        let explanation = (|| {
            let variables = variables.as_deref().map_or_else(|| Ok(Map::new()), read_object)?;
            let context = match context.as_deref() {
                Some(context) => context::read(&read_object(context)?)?,
                None => Context::default(),
            };
            let variables = Variables::from(variables);
            let call = RenderCall::new(prompt, variables, context, is_path, allow_unknown);
            let _here = project.has_functions().then(|| DirectCalls::new(env, self.call_now.clone()));
            project.render_now(&call)
        })();
        let explanation = Arc::new(explanation.map_err(|error| thrown(&error))?);
        let text = explanation.rendered().text().to_owned();
        let weak = Weak::new(&env, &object)?;
        self.renders.borrow_mut().add(&env, number as u64, explanation, weak);
        Ok(text)
    }

    /// Renders a prompt in another thread. `number` is that of the call, too.
    #[napi]
    pub fn render_later(&self, book: &NativeBook, number: f64, arguments: String) {
        let (project, rendered) = (book.project.clone(), self.rendered.clone());
        self.later(number, move || {
            let explanation = project.render(&RenderCall::read(&Arguments::read(&arguments))?)?;
            rendered.lock().unwrap_or_else(PoisonError::into_inner).insert(number as u64, explanation);
            Ok(Json::Null)
        });
    }

    /// Takes over a render of another thread for its object, and returns its text.
    #[napi]
    pub fn adopt(&self, env: Env, object: Object<'_>, number: f64) -> Result<String> {
        let explanation =
            self.rendered.lock().unwrap_or_else(PoisonError::into_inner).remove(&(number as u64));
        let explanation = Arc::new(explanation.ok_or_else(lost)?);
        let text = explanation.rendered().text().to_owned();
        let weak = Weak::new(&env, &object)?;
        self.renders.borrow_mut().add(&env, number as u64, explanation, weak);
        Ok(text)
    }

    /// Makes a call in another thread.
    #[napi]
    pub fn start(&self, book: &NativeBook, number: f64, call: String, arguments: String) {
        let project = book.project.clone();
        self.stoppable(number, move |cancelled| {
            project.perform(&call, &Arguments::read(&arguments), cancelled)
        });
    }

    /// Renders rows of a table in other threads.
    #[napi]
    pub fn render_table(&self, book: &NativeBook, number: f64, table: &NativeTable, arguments: String) {
        let (project, batch) = (book.project.clone(), table.batch.clone());
        self.stoppable(number, move |cancelled| {
            project.render_table(&Arguments::read(&arguments), &batch, &cancelled)
        });
    }

    /// Makes a call at once. Only tests that list their cases before anything else may wait here.
    #[napi]
    pub fn perform_now(&self, book: &NativeBook, call: String, arguments: String) -> Result<String> {
        let done = book.project.perform(&call, &Arguments::read(&arguments), Arc::default());
        done.map(|done| done.to_string()).map_err(|error| thrown(&error))
    }

    /// Runs a prompt, or resumes a thread, in a thread of its own, because that may take hours.
    #[napi]
    pub fn run(&self, book: &NativeBook, number: f64, call: String, arguments: String) -> Result<()> {
        let (project, port) = (book.project.clone(), self.port.clone());
        let Some(cancelled) = port.begin_run(number as u64) else { return Ok(()) };
        let started = Builder::new().name("cuebook run".to_owned()).stack_size(STACK).spawn(move || {
            let events = Events { port: &port, number, cancelled };
            let given = Arguments::read(&arguments);
            answer(&port, number, || match call.as_str() {
                "resume" => project.resume(&given, &events),
                _ => project.run(&given, &events),
            });
            port.end_run(number as u64);
        });
        started.map(drop).map_err(|error| napi::Error::from_reason(format!("cannot start a thread: {error}")))
    }

    /// Counts the tokens of a render in another thread.
    #[napi]
    pub fn tokens(&self, render: f64, number: f64, model: Option<String>) -> Result<()> {
        let explanation = self.explanation(render)?;
        self.later(number, move || reads::tokens(&explanation, model.as_deref()));
        Ok(())
    }

    /// Asks a model until it answers, in another thread.
    #[napi]
    pub fn converse(&self, render: f64, number: f64, arguments: String) -> Result<()> {
        let (explanation, port) = (self.explanation(render)?, self.port.clone());
        self.later(number, move || converse::converse(&port, &explanation, &Arguments::read(&arguments)));
        Ok(())
    }

    /// Takes what a function returned.
    #[napi]
    pub fn answer(&self, call: f64, answer: String) {
        self.port.answer(call as u64, answer);
    }

    /// Stops a call.
    #[napi]
    pub fn cancel(&self, number: f64) {
        self.port.cancel(number as u64);
    }

    /// Ends all that runs. Nothing reaches JavaScript afterwards.
    #[napi]
    pub fn close(&self) {
        self.port.close();
    }

    /// Answers a question about a render, as JSON.
    #[napi]
    pub fn read(&self, number: f64, what: String, argument: Option<String>) -> Result<String> {
        let explanation = self.explanation(number)?;
        let answer = reads::read(&explanation, &what, argument.as_deref());
        answer.map(|answer| answer.to_string()).map_err(|error| thrown(&error))
    }

    /// What a provider's response says, as JSON.
    #[napi]
    pub fn read_reply(&self, number: f64, api: Option<String>, response: String) -> Result<String> {
        let explanation = self.explanation(number)?;
        let response: Json = serde_json::from_str(&response)
            .map_err(|error| napi::Error::from_reason(format!("the response is not JSON: {error}")))?;
        let said = reads::read_reply(&explanation, api.as_deref(), &response);
        said.map(|said| said.to_string()).map_err(|error| thrown(&error))
    }

    /// How many renders there are, after those have been dropped whose objects are gone.
    #[napi]
    pub fn count(&self, env: Env) -> u32 {
        let mut renders = self.renders.borrow_mut();
        renders.sweep(&env);
        u32::try_from(renders.len()).unwrap_or(u32::MAX)
    }
}

impl Host {
    fn explanation(&self, number: f64) -> Result<Arc<Explanation>> {
        self.renders.borrow().get(number as u64).cloned().ok_or_else(lost)
    }

    /// Does work in another thread that `cancel` can stop.
    fn stoppable(&self, number: f64, work: impl FnOnce(Arc<AtomicBool>) -> Done<Json> + Send + 'static) {
        let port = self.port.clone();
        self.later(number, move || match port.begin_run(number as u64) {
            Some(cancelled) => {
                let done = work(cancelled);
                port.end_run(number as u64);
                done
            }
            None => Ok(Json::Null),
        });
    }

    /// Does work in another thread, and sends what comes of it.
    fn later(&self, number: f64, work: impl FnOnce() -> Done<Json> + Send + 'static) {
        let port = self.port.clone();
        workers::start(move || answer(&port, number, work));
    }
}

/// Does work, and sends what comes of it.
fn answer(port: &Port, number: f64, work: impl FnOnce() -> Done<Json>) {
    errors::keep_cause(None);
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(done)) => port.send(Kind::Done, number, done.to_string()),
        Ok(Err(error)) => port.send(Kind::Failed, number, errors::document(&error).to_string()),
        Err(_) => {
            let diagnostic = Diagnostic::new(Code::BadInput, "Cuebook itself failed: this is a defect of it")
                .hint("report it with what was called");
            let error = Error::new(ErrorKind::Usage, diagnostic);
            port.send(Kind::Failed, number, errors::document(&error).to_string());
        }
    }
}

fn read_object(text: &str) -> Done<Map<String, Json>> {
    serde_json::from_str(text).map_err(|error| {
        let diagnostic = Diagnostic::new(Code::BadInput, format!("the values are not JSON: {error}"));
        Error::new(ErrorKind::PromptValidation, diagnostic.hint("pass an object of plain values"))
    })
}

/// The error for a render that this host does not have.
fn lost() -> napi::Error {
    napi::Error::from_reason("the render belongs to another thread")
}
