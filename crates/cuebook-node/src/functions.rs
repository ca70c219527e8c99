//! Functions of JavaScript that the engine calls: hooks, providers, filters, tests, template engines and tools.
//!
//! In the thread of JavaScript they are called directly. From another thread they are called by a message, and that thread waits for the
//! answer; then they may be asynchronous.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use cuebook::chat::{self, ParseOptions, Run};
use cuebook::hooks::{HookContext, HookError, Subject, Values};
use cuebook::source::Source;
use cuebook::template::engine::{Compiled, Engine, Job, Outline, Output};
use cuebook::template::page::{Page, StandaloneOutline};
use cuebook::variables::Scope;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use napi::Env;
use napi::bindgen_prelude::{FnArgs, FunctionRef};
use serde_json::{Map, Value as Json, json};

use crate::errors;
use crate::port::Port;

/// The function of JavaScript that calls another one by its number, at once.
pub type CallNow = FunctionRef<FnArgs<(String,)>, String>;

thread_local! {
    /// How functions are called in this thread, while a render runs in the thread of JavaScript.
    static HERE: RefCell<Option<(Env, Rc<CallNow>)>> = const { RefCell::new(None) };
}

/// Calls functions directly for as long as it exists.
pub struct DirectCalls(Option<(Env, Rc<CallNow>)>);

impl DirectCalls {
    pub fn new(env: Env, call: Rc<CallNow>) -> DirectCalls {
        DirectCalls(HERE.replace(Some((env, call))))
    }
}

impl Drop for DirectCalls {
    fn drop(&mut self) {
        // A function that is called may render in turn.
        HERE.replace(self.0.take());
    }
}

/// A function of JavaScript.
#[derive(Clone)]
pub struct Function {
    port: Arc<Port>,
    number: u32,
    /// What errors call it.
    what: String,
}

impl std::fmt::Debug for Function {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Function").field("what", &self.what).finish_non_exhaustive()
    }
}

impl Function {
    pub fn new(port: Arc<Port>, number: u32, what: impl Into<String>) -> Function {
        Function { port, number, what: what.into() }
    }

    /// Calls it with JSON and reads what it returns. An exception is kept in JavaScript, and returned in words.
    pub fn call(&self, arguments: &[Json]) -> Result<Json, String> {
        let here = HERE.with_borrow(Clone::clone);
        let is_here = here.is_some();
        let call =
            json!({"function": self.number, "what": self.what, "now": is_here, "arguments": arguments});
        let answer = match here {
            Some((env, call_now)) => {
                let function = call_now.borrow_back(&env);
                function.and_then(|function| function.call((call.to_string(),).into())).ok()
            }
            None => self.port.ask(call.to_string()),
        };
        let answer = answer.ok_or("the JavaScript that it belongs to has ended")?;
        let mut answer: Json = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
        match answer["raised"].as_str() {
            None => Ok(answer["value"].take()),
            Some(words) => {
                errors::keep_cause(answer["cause"].as_u64().and_then(|number| number.try_into().ok()));
                Err(words.to_owned())
            }
        }
    }

    /// Calls a hook, whose exception is an error.
    fn hook(&self, arguments: &[Json]) -> Result<Json> {
        self.call(arguments).map_err(|words| {
            let message = format!("{} threw {words}", self.what);
            let hint = "the exception is the `cause` of this one, with its stack";
            Error::new(ErrorKind::Hook, Diagnostic::new(Code::HookFailed, message).hint(hint))
        })
    }

    fn wrong_return(&self, wanted: &str) -> Error {
        let diagnostic = Diagnostic::new(Code::HookReturn, format!("{} must return {wanted}", self.what));
        Error::new(ErrorKind::Hook, diagnostic.hint(format!("return {wanted} from the function")))
    }

    /// Calls a hook that returns variables.
    pub fn variables(&self, arguments: &[Json]) -> Result<Values, HookError> {
        match self.hook(arguments)? {
            Json::Object(values) => Ok(values),
            _ => Err(self.wrong_return("an object").into()),
        }
    }

    /// Calls a hook that returns a text.
    pub fn text(&self, arguments: &[Json]) -> Result<String> {
        match self.hook(arguments)? {
            Json::String(text) => Ok(text),
            _ => Err(self.wrong_return("a string")),
        }
    }

    /// Calls a test of a template.
    pub fn truth(&self, arguments: &[Json]) -> Result<bool, String> {
        match self.call(arguments)? {
            Json::Bool(truth) => Ok(truth),
            _ => Err(format!("{} must return true or false", self.what)),
        }
    }
}

/// What a hook of this process knows of the render: it can read files and open connections without asking.
pub fn context_of(context: &HookContext<'_>) -> Json {
    let mut known = json!({
        "workspacePath": context.workspace.to_string_lossy(),
        "session": context.session,
    });
    match &context.subject {
        Subject::Prompt { id } => known["promptId"] = json!(id),
        Subject::Provider { namespace, .. } => known["namespace"] = json!(namespace),
    }
    known
}

/// A template engine that is a function of JavaScript: it gets a template and the variables, and returns the text.
#[derive(Debug)]
pub struct TextEngine(pub Function);

struct Template {
    function: Function,
    source: Arc<Source>,
}

impl Engine for TextEngine {
    fn compile(&self, job: Job<'_>) -> Result<Box<dyn Compiled>> {
        Ok(Box::new(Template { function: self.0.clone(), source: job.source }))
    }
}

impl Compiled for Template {
    fn render(&self, scope: &Arc<Scope>, limit: usize) -> Result<Output> {
        let names = scope.names();
        let values: Map<String, Json> =
            names.iter().filter_map(|name| Some((name.clone(), scope.shown(name)?))).collect();
        let text = self.function.text(&[json!(self.source.text()), values.into()])?;
        let mut page = Page::new(&self.source, limit);
        // The function does not say which part came from where: all of it came from the template and all of its variables.
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        page.value(0..self.source.text().len(), &names, &text)?;
        Ok(page.finish())
    }

    fn outline(&self) -> Arc<dyn Outline> {
        Arc::new(StandaloneOutline::new(&self.source, []))
    }
}

/// The messages of a text, all of which counts as the author's: a line such as `user:` begins a message.
pub fn parse_messages(text: &str) -> Result<Json> {
    let whole =
        Run { range: 0..text.len(), literal: true, hook: false, role: false, mark: None, rich: Vec::new() };
    let messages = chat::parse(text, &[whole], &ParseOptions::default())?;
    Ok(messages.iter().map(cuebook::Message::to_json).collect())
}
