//! Parsing: texts that an author wrote, with nonces in them, to messages.
//!
//! The vectors give a text as it was rendered. An engine of the host's own, registered as any host would, writes it onto the
//! page: all of it as the author's, except for the nonces.

use std::sync::Arc;

use cuebook::source::Source;
use cuebook::template::engine::{Compiled, Engine, Job, Outline, Output};
use cuebook::template::page::{Page, StandaloneOutline};
use cuebook::variables::{FixedNonces, Scope};
use cuebook::{Book, Context, Message, Variables};
use serde_json::{Map, Value as Json, json};

use super::Case;
use crate::compare::equals;

/// Writes a template as it stands.
#[derive(Debug)]
struct Verbatim;

struct Text(Arc<Source>);

impl Engine for Verbatim {
    fn compile(&self, job: Job<'_>) -> cuebook::Result<Box<dyn Compiled>> {
        Ok(Box::new(Text(job.source)))
    }
}

impl Compiled for Text {
    fn render(&self, scope: &Arc<Scope>, limit: usize) -> cuebook::Result<Output> {
        let mut page = Page::new(&self.0, limit);
        let mut at = 0;
        for input in scope.rich_inputs() {
            if let Some(found) = self.0.text().find(&input.nonce) {
                page.literal(at..found)?;
                at = found + input.nonce.len();
                page.value(found..at, &[&input.name], &input.nonce)?;
            }
        }
        page.literal(at..self.0.text().len())?;
        Ok(page.finish())
    }

    fn outline(&self) -> Arc<dyn Outline> {
        Arc::new(StandaloneOutline::new(&self.0, []))
    }
}

pub fn parse(case: &Case<'_>) -> Result<(), String> {
    let empty = Map::new();
    let threads = case.input()["thread_inputs"].as_object().unwrap_or(&empty);
    let declared: Vec<Json> = threads.keys().map(|name| json!({"name": name, "kind": "thread"})).collect();
    let front = json!({"inputs": declared, "template": {"format": "verbatim"}});
    let rendered = case.input()["rendered"].as_str().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("case.prompty");
    std::fs::write(&path, format!("---\n{front}\n---\n{rendered}")).unwrap();
    let nonce = regex::Regex::new("__PROMPTY_THREAD_([0-9a-fA-F]+)_").unwrap();
    let digits = nonce.captures(rendered).map_or("0", |found| found.get(1).unwrap().as_str());
    let book = Book::open(folder.path())
        .with_paths(true)
        .with_engine("verbatim", Verbatim)
        .with_nonces(FixedNonces(digits.to_owned()));
    let messages = book
        .render(path.to_str().unwrap(), &Variables::from_json(threads), &Context::default())
        .and_then(|rendered| rendered.messages())
        .map_err(|error| error.to_string())?;
    let expected = case.expected()["messages"].as_array().ok_or("no messages are expected")?;
    let got: Vec<Json> = messages.iter().map(Message::to_json).collect();
    // No attributes may be written as an empty object, or not at all.
    let plain = |message: &Json| {
        let mut message = message.clone();
        if message["metadata"].as_object().is_some_and(Map::is_empty) || message["metadata"].is_null() {
            message.as_object_mut().unwrap().shift_remove("metadata");
        }
        message
    };
    equals(&expected.iter().map(plain).collect(), &json!(got))
}
