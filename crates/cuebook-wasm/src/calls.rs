//! The calls of JavaScript: a call is an object with its name under `call`.

use std::collections::HashMap;
use std::sync::Arc;

use cuebook::error::{nearest, report};
use cuebook::{Context, Error, Result, UnknownVariables, Variables};
use cuebook_bindings::context::{TypeNames, read as read_context, usage};
use cuebook_bindings::reads;
use serde_json::{Map, Value as Json, json};

use crate::book::{Book, RenderCall};
use crate::moment;
use crate::renders::Renders;

/// The answer of a call.
#[derive(Debug)]
pub enum Answer {
    /// The text of a render, or JSON.
    Done(String),
    /// The error, as the package's classes are made from.
    Failed(String),
    /// The render is not kept any more.
    Gone,
}

/// The books and renders of an instance of the module.
#[derive(Debug, Default)]
pub struct Module {
    books: HashMap<u64, Book>,
    renders: Renders,
}

/// A call.
struct Call(Map<String, Json>);

impl Call {
    fn text(&self, name: &str) -> &str {
        self.optional(name).unwrap_or_default()
    }

    fn optional(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.as_str()
    }

    fn number(&self, name: &str) -> u64 {
        self.0.get(name).and_then(Json::as_u64).unwrap_or_default()
    }

    fn is_set(&self, name: &str) -> bool {
        self.0.get(name).and_then(Json::as_bool).unwrap_or_default()
    }

    fn take(&mut self, name: &str) -> Map<String, Json> {
        match self.0.get_mut(name).map(Json::take) {
            Some(Json::Object(object)) => object,
            _ => Map::new(),
        }
    }

    fn render(&mut self) -> Result<RenderCall> {
        let unknown =
            if self.is_set("allowUnknown") { UnknownVariables::Ignore } else { UnknownVariables::Refuse };
        let names = TypeNames { truth: "a boolean", object: "an object" };
        let context = Context { unknown, ..read_context(&self.take("context"), names)? };
        let variables = Variables::from(self.take("variables"));
        Ok(RenderCall {
            prompt: self.text("prompt").to_owned(),
            is_path: self.is_set("isPath"),
            variables,
            context: Arc::new(context),
        })
    }
}

impl Module {
    /// Answers a call.
    pub fn answer(&mut self, text: &str) -> Answer {
        let mut call = Call(serde_json::from_str(text).unwrap_or_default());
        match self.perform(&mut call) {
            Ok(Some(text)) => Answer::Done(text),
            Ok(None) => Answer::Gone,
            Err(error) => Answer::Failed(failed(&error)),
        }
    }

    fn perform(&mut self, call: &mut Call) -> Result<Option<String>> {
        let done = match call.text("call").to_owned().as_str() {
            "start" => {
                moment::start(call.text("zone"));
                json!({"version": env!("CARGO_PKG_VERSION"), "wires": wires()})
            }
            "open" => {
                let (files, globals) = (call.take("files"), call.take("globals"));
                let book = Book::open(&files, &globals, call.optional("clock"))?;
                self.books.insert(call.number("book"), book);
                Json::Null
            }
            "close" => {
                self.books.remove(&call.number("book"));
                Json::Null
            }
            "render" => return self.render(call).map(Some),
            "read" => {
                let Some(explanation) = self.renders.get(call.number("number")) else { return Ok(None) };
                reads::read(explanation, call.text("what"), call.optional("argument"))?
            }
            "reply" => {
                let Some(explanation) = self.renders.get(call.number("number")) else { return Ok(None) };
                let response = call.0.get("response").unwrap_or(&Json::Null);
                reads::read_reply(explanation, call.optional("api"), response)?
            }
            "list" => self.book(call)?.list(call.optional("type"), call.optional("tag"))?,
            "show" => self.book(call)?.show(call.text("prompt"), call.is_set("isPath"))?,
            "nearest" => {
                let names = call.0.get("names").and_then(Json::as_array).map_or(&[][..], Vec::as_slice);
                json!(nearest(call.text("wanted"), names.iter().filter_map(Json::as_str)))
            }
            other => return Err(usage(format!("there is no call `{other}`"), "update the package")),
        };
        Ok(Some(done.to_string()))
    }

    fn render(&mut self, call: &mut Call) -> Result<String> {
        let render = call.render()?;
        let number = call.number("number");
        let now = call.0.get("now").and_then(Json::as_i64).unwrap_or_default();
        moment::begin(call.text("secret"), number, now);
        let explanation = self.book(call)?.render(&render)?;
        let text = explanation.rendered().text().to_owned();
        self.renders.add(number, explanation);
        Ok(text)
    }

    fn book(&self, call: &Call) -> Result<&Book> {
        self.books.get(&call.number("book")).ok_or_else(|| usage("the book is closed", "open another one"))
    }
}

fn wires() -> Vec<&'static str> {
    cuebook::chat::wire::Api::ALL.iter().map(|api| api.as_str()).collect()
}

/// An error as `package/errors.ts` makes exceptions from it.
fn failed(error: &Error) -> String {
    let mut document = error.to_json();
    json!({"error": document["error"].take(), "report": report(error.diagnostics(), false), "cause": null})
        .to_string()
}
