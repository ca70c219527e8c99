//! Directives: checked, filled, and handed to whoever asked, who is to carry them out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cuebook::dialect::directive::{self, Directive};
use cuebook::items::{Item, ItemId, ItemType};
use cuebook::{Error, files};
use serde_json::{Map, Value as Json};

use super::{Engine, Failure, LARGEST_ITEM, Project, verified};
use crate::request::Request;
use crate::thread::{Began, PARENT, ThreadId, Wanted, Within};
use crate::watch::Watch;

/// Directives that were read, as long as their bytes are the same.
#[derive(Debug, Default)]
pub(crate) struct Memo(Mutex<HashMap<String, Remembered>>);

/// The bytes of a file, and the directive that they are.
type Remembered = (Vec<u8>, Arc<Directive>);

/// How many directives are remembered.
const MOST_REMEMBERED: usize = 256;

/// How many items may include each other in a row.
const MOST_INCLUDES: usize = 32;

impl Memo {
    /// Reads a directive that is verified, with what it includes, which is verified here.
    pub(crate) fn read(&self, item: Item, project: &Project) -> cuebook::Result<Arc<Directive>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((bytes, directive)) = known.get(&item.located.name)
            && *bytes == item.bytes
        {
            return Ok(directive.clone());
        }
        let source = files::source_from_bytes(item.bytes.clone(), &item.located.name)?;
        let directive = directive::read(&source)?;
        if directive.has_includes() {
            // What it includes can change while its own bytes stay the same, so it is not remembered.
            drop(known);
            let mut load = |kind, id: &ItemId| {
                let located = project.spaces.find(kind, id)?;
                let item = located.ok_or_else(|| project.spaces.not_found(kind, id))?.read(LARGEST_ITEM)?;
                project.verify.verify(&item)?;
                Ok(item)
            };
            let id = item.located.id.as_str();
            return directive.include(id, MOST_INCLUDES, &mut load).map(Arc::new);
        }
        let directive = Arc::new(directive);
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        known.insert(item.located.name, (item.bytes, directive.clone()));
        Ok(directive)
    }
}

pub(super) fn execute(
    engine: &Engine,
    project: &Arc<Project>,
    id: &ItemId,
    request: &Request,
    watch: &dyn Watch,
    within: Option<&Within<'_>>,
) -> Result<Map<String, Json>, Failure> {
    let fail = |error: Error| {
        let declared = error.field("declared_inputs").cloned();
        let failure = Failure::new(error).with_id(Some(id.as_str()));
        match declared {
            Some(declared) => failure.with("declared_inputs", declared),
            None => failure,
        }
    };
    let item = verified(project, ItemType::Directive, id)?;
    let directive = project.directives.read(item, project).map_err(fail)?;
    let filled = directive.fill(&request.parameters).map_err(fail)?;
    let mut response = Map::new();
    let mut say = |name: &str, value: Json| {
        response.insert(name.to_owned(), value);
    };
    let own = || std::env::var(PARENT).ok().filter(|id| !id.is_empty()).map(ThreadId::known);
    let wanted = || Wanted {
        id,
        directive: &directive,
        filled: &filled,
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
    say("your_directions", engine.settings.instruction.clone().into());
    say("body", filled.body().map_err(fail)?.text.into());
    if !directive.outputs.is_empty() {
        say("outputs", directive.declared_outputs());
    }
    Ok(response)
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
