//! Directives: checked, filled, and handed to whoever asked, who is to carry them out.

use std::sync::Arc;

use cuebook::Error;
use cuebook::items::{ItemId, ItemType};
use cuebook::variables::Context;
use serde_json::{Map, Value as Json};

use crate::caller::{Caller, PARENT};
use crate::engine::{Engine, Failure, Project};
use crate::record::ThreadId;
use crate::request::Request;
use crate::thread::{Began, DirectiveRequest};
use crate::watch::Watch;

pub(super) fn execute(
    engine: &Engine,
    project: &Arc<Project>,
    id: &ItemId,
    request: &Request,
    watch: &dyn Watch,
    within: Option<&Caller<'_>>,
) -> Result<Map<String, Json>, Failure> {
    let fail = |error: Error| {
        let declared = error.field("declared_inputs").cloned();
        let failure = Failure::new(error).with_id(Some(id.as_str()));
        match declared {
            Some(declared) => failure.with("declared_inputs", declared),
            None => failure,
        }
    };
    let prepared = engine.directive(project, id).map_err(fail)?;
    let Some(directive) = prepared.directive() else { return Err(fail(not_found(project, id))) };
    let filled = directive.fill(&request.parameters).map_err(fail)?;
    let context = Context::default();
    let mut response = Map::new();
    let mut say = |name: &str, value: Json| {
        response.insert(name.to_owned(), value);
    };
    let own = || std::env::var(PARENT).ok().filter(|id| !id.is_empty()).map(ThreadId::known);
    let wanted = || DirectiveRequest {
        id,
        prepared: &prepared,
        directive,
        parameters: &request.parameters,
        filled: &filled,
        context: &context,
        model: request.model.as_deref(),
        limit_overrides: &request.limit_overrides,
        parent: within.and_then(|within| within.thread.cloned()).or_else(own),
        parent_holder: within.and_then(|within| within.holder.cloned()),
    };
    if request.dry_run {
        if request.thread {
            engine.check_thread(project, &wanted()).map_err(fail)?;
        }
        say("status", "validation_passed".into());
        say("type", "directive".into());
        say("item_id", id.as_str().into());
        say("data", filled.to_json().map_err(fail)?);
        say("inputs", Json::Object(filled.inputs.clone()));
        say("message", "Directive validation passed (dry run)".into());
        return Ok(response);
    }
    if request.thread {
        let began = engine.run_thread(project, &wanted(), request.is_async, watch).map_err(fail)?;
        return told(id, began);
    }
    say("status", "success".into());
    say("type", "directive".into());
    say("item_id", id.as_str().into());
    say("your_directions", prepared.wording(&context).instruction.into());
    say("body", filled.body().map_err(fail)?.text.into());
    if !directive.outputs.is_empty() {
        say("outputs", directive.declared_outputs());
    }
    Ok(response)
}

/// What `prepare_directive` gives is a directive; should it ever not be, there is none of that id.
fn not_found(project: &Project, id: &ItemId) -> Error {
    project.spaces.not_found(ItemType::Directive, id)
}

/// What a directive that ran in a thread answers.
pub(super) fn told(id: &ItemId, began: Began) -> Result<Map<String, Json>, Failure> {
    let mut response = Map::new();
    let mut say = |name: &str, value: Json| drop(response.insert(name.to_owned(), value));
    let finished = match began {
        Began::Detached { id: thread, pid } => {
            say("status", "running".into());
            say("type", "directive".into());
            say("item_id", id.as_str().into());
            say("thread_id", thread.as_str().into());
            say("directive", id.as_str().into());
            say("pid", pid.into());
            return Ok(response);
        }
        Began::Finished(finished) => *finished,
    };
    let json = finished.to_json();
    if let Some(error) = finished.error {
        let mut failure = Failure::new(error)
            .with_id(Some(id.as_str()))
            .with("type", "directive".into())
            .with("thread_id", finished.id.as_str().into())
            .with("thread_status", finished.status.as_str().into())
            .with("directive", id.as_str().into());
        for name in ["result", "outputs", "cost"] {
            if let Some(value) = json.get(name) {
                failure = failure.with(name, value.clone());
            }
        }
        return Err(failure);
    }
    say("status", "success".into());
    say("type", "directive".into());
    say("item_id", id.as_str().into());
    say("thread_id", finished.id.as_str().into());
    say("thread_status", finished.status.as_str().into());
    say("directive", id.as_str().into());
    for name in ["result", "outputs", "note", "cost"] {
        if let Some(value) = json.get(name) {
            say(name, value.clone());
        }
    }
    Ok(response)
}
