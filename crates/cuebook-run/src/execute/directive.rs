//! Directives: checked, filled, and handed to the caller, who carries them out.

use std::sync::Arc;

use cuebook::Error;
use cuebook::items::{ItemId, ItemType};
use cuebook::variables::Context;

use crate::caller::{Caller, PARENT};
use crate::engine::{Engine, Failure, Project};
use crate::executed::{Checked, Executed, Instructions};
use crate::record::ThreadId;
use crate::request::ExecuteRequest;
use crate::thread::{DirectiveRequest, ThreadRun};
use crate::watch::Watch;

pub(super) fn execute(
    engine: &Engine,
    project: &Arc<Project>,
    id: &ItemId,
    request: &ExecuteRequest,
    watch: &dyn Watch,
    within: Option<&Caller<'_>>,
) -> Result<Executed, Failure> {
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
        let mut checked = Checked::new(ItemType::Directive, id.clone());
        checked.more.insert("data".to_owned(), filled.to_json().map_err(fail)?);
        checked.inputs = filled.inputs.clone();
        return Ok(Executed::Checked(checked));
    }
    if request.thread {
        let began = engine.run_thread(project, &wanted(), request.is_async, watch).map_err(fail)?;
        return ended(id, began);
    }
    Ok(Executed::Directive(Instructions {
        item_id: id.clone(),
        directions: prepared.wording(&context).instruction.to_owned(),
        body: filled.body().map_err(fail)?.text,
        outputs: (!directive.outputs.is_empty()).then(|| directive.declared_outputs()),
    }))
}

/// What `prepare_directive` gives is a directive; should it ever not be, there is none of that id.
fn not_found(project: &Project, id: &ItemId) -> Error {
    project.spaces.not_found(ItemType::Directive, id)
}

/// What came of a directive that ran in a thread.
pub(super) fn ended(id: &ItemId, began: ThreadRun) -> Result<Executed, Failure> {
    let finished = match began {
        ThreadRun::Detached { id: thread, pid } => {
            return Ok(Executed::Started { item_id: id.clone(), thread, pid });
        }
        ThreadRun::Finished(finished) => finished,
    };
    let Some(error) = &finished.error else { return Ok(Executed::Thread(id.clone(), finished)) };
    let mut failure = Failure::new(error.clone())
        .with_id(Some(id.as_str()))
        .with("type", "directive".into())
        .with("thread_id", finished.id.as_str().into())
        .with("thread_status", finished.status.as_str().into())
        .with("directive", id.as_str().into());
    let json = finished.to_json();
    for name in ["result", "outputs", "cost"] {
        if let Some(value) = json.get(name) {
            failure = failure.with(name, value.clone());
        }
    }
    Err(failure)
}
