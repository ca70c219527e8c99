//! Directives: checked, filled, and handed to whoever asked, who is to carry them out.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cuebook::dialect::directive::{self, Directive};
use cuebook::items::{Item, ItemId, ItemType};
use cuebook::{Code, Diagnostic, Error, ErrorKind, files};
use serde_json::{Map, Value as Json};

use super::{Engine, Failure, Project, verified};
use crate::request::Request;

/// Directives that were read, as long as their bytes are the same.
#[derive(Debug, Default)]
pub(super) struct Memo(Mutex<HashMap<String, Remembered>>);

/// The bytes of a file, and the directive that they are.
type Remembered = (Vec<u8>, Arc<Directive>);

/// How many directives are remembered.
const MOST_REMEMBERED: usize = 256;

impl Memo {
    fn read(&self, item: Item) -> cuebook::Result<Arc<Directive>> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((bytes, directive)) = known.get(&item.located.name)
            && *bytes == item.bytes
        {
            return Ok(directive.clone());
        }
        let source = files::source_from_bytes(item.bytes.clone(), &item.located.name)?;
        let directive = Arc::new(directive::read(&source)?);
        if known.len() >= MOST_REMEMBERED {
            known.clear();
        }
        known.insert(item.located.name, (item.bytes, directive.clone()));
        Ok(directive)
    }
}

pub(super) fn execute(
    engine: &Engine,
    project: &Project,
    id: &ItemId,
    request: &Request,
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
    let directive = project.directives.read(item).map_err(fail)?;
    let filled = directive.fill(&request.parameters).map_err(fail)?;
    let mut response = Map::new();
    let mut say = |name: &str, value: Json| {
        response.insert(name.to_owned(), value);
    };
    if request.dry_run {
        say("status", "validation_passed".into());
        say("type", "directive".into());
        say("item_id", id.as_str().into());
        say("data", filled.to_json().map_err(fail)?);
        say("inputs", Json::Object(filled.inputs.clone()));
        say("message", "Directive validation passed (dry run)".into());
        return Ok(response);
    }
    if request.thread {
        return threaded(id);
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

/// Runs a directive in a thread of its own, with a model and its limits. That is not built yet, and is said so.
fn threaded(id: &ItemId) -> Result<Map<String, Json>, Failure> {
    let message = "Directives cannot be run in threads yet";
    let diagnostic = Diagnostic::new(Code::BadParameters, message)
        .hint("leave out `thread`: the answer then says what is to be done, and whoever asked does it");
    Err(Failure::new(Error::new(ErrorKind::Execute, diagnostic)).with_id(Some(id.as_str())))
}
