//! Tools: chain, lockfile, anchor, environment, primitive.

use std::sync::Arc;

use cuebook::items::{ItemId, ItemType};
use cuebook::library::{Library, ReplacedTool};
use cuebook::trust::{Granted, Grants};
use cuebook::{Code, Diagnostic, Error, ErrorKind};
use serde_json::json;

use crate::anchor::ToolContext;
use crate::caller::Caller;
use crate::chain::{self, ChainFailure, Element};
use crate::engine::{Engine, Failure, Project};
use crate::environment::{Closed, Environment};
use crate::executed::{ChainLink, Checked, Executed, Program, ToolResult};
use crate::fence::{self, Fencing};
use crate::granted::{Granting, Runnable};
use crate::lockfile;
use crate::primitive::{self, Call};
use crate::request::ExecuteRequest;
use crate::schema;
use crate::thread::orchestrator;
use crate::watch::Watch;

pub(super) fn execute(
    engine: &Engine,
    project: &Arc<Project>,
    id: &ItemId,
    request: &ExecuteRequest,
    watch: &dyn Watch,
    within: Option<&Caller<'_>>,
) -> Result<Executed, Failure> {
    let allowance = engine.settings().allowance.as_ref();
    let refuse = |error: Error| Failure::new(error).with_id(Some(id.as_str()));
    // A thread may read its own long results, whatever else it may do.
    let is_own_result = within.is_some() && id.as_str() == orchestrator::RESULT;
    if let Some(allowance) = allowance.filter(|_| !is_own_result) {
        allowance.check_tool(id.as_str()).map_err(refuse)?;
    }
    if let Some(operation) = orchestrator::named(id) {
        return built_in(engine, project, operation, request, watch, within);
    }
    let spaces = &project.spaces;
    let verify = &*project.verify;
    let (replaced, ignored) = replacement(project, id).map_err(refuse)?;
    let replaced_by = replaced.as_ref().map(|replaced| replaced.pack.clone());
    let chain =
        chain::build(spaces, verify, &project.memo, id, replaced.and_then(|replaced| replaced.located))
            .map_err(|broken| explain(project, id, *broken))?;
    let fail = |error: Error| failure(error, id, &chain);
    if let Some(allowance) = allowance {
        allowance.check_chain(id.as_str(), &chain).map_err(refuse)?;
    }
    let lock = lockfile::find(spaces, &chain[0]).map_err(fail)?;
    if let Some(lock) = &lock {
        lock.check(&chain).map_err(fail)?;
    }
    let report = chain::elements(&chain);
    if !report.issues.is_empty() {
        let message = format!("Chain validation failed: {}", report.issues.join("; "));
        let diagnostic = Diagnostic::new(Code::ChainInvalid, message)
            .file(&chain[0].located.name)
            .hint("a runtime's requirements are in its `inputs` and `child_constraints`");
        return Err(fail(Error::new(ErrorKind::Execute, diagnostic)));
    }
    schema::check(id.as_str(), chain[0].tool.config_schema.as_ref(), &request.parameters).map_err(fail)?;
    primitive::check(&chain).map_err(fail)?;
    let tool_context = ToolContext::new(spaces, &chain, verify).map_err(fail)?;
    let for_model = fence::is_for_model(engine.settings(), within.is_some());
    let closed = match for_model {
        true => closed(engine, project, within).map_err(fail)?,
        false => Closed::default(),
    };
    let fence = match for_model {
        true => Fencing::new(engine.settings(), spaces, &chain, &tool_context).map_err(fail)?,
        false => None,
    };
    let mut environment =
        Environment::resolve(spaces, &chain, &tool_context, closed, fence.as_ref()).map_err(fail)?;
    if let Some(within) = within {
        environment.belong_to(within);
    }
    if fence.is_some() {
        environment.move_inside();
    }
    let mut call = Call {
        chain: &chain,
        parameters: &request.parameters,
        project: spaces.project(),
        tool_context: &tool_context,
        environment: &environment,
        settings: engine.settings(),
        fence,
        program: None,
        watch,
    };
    let interpreter = primitive::interpreter(&call);
    if let Some(lock) = &lock {
        lock.check_interpreter(&chain[0], interpreter.as_ref()).map_err(fail)?;
    }
    // A signature covers the name of a program in the project, and not what the program does.
    let program = match &interpreter {
        Some(interpreter) => Granting::require(spaces, interpreter),
        None => Ok(Runnable::Missing),
    };
    let ungranted = program.as_ref().err().map(|error| {
        let found = error.diagnostic();
        format!("{} [{}] ({})", found.message, found.code, found.hint.as_deref().unwrap_or_default())
    });
    let warnings =
        report.warnings.into_iter().chain(environment.warnings.clone()).chain(ungranted).chain(ignored);
    let (links, warnings) = (ChainLink::all(&chain), warnings.collect());
    if request.dry_run {
        let mut checked = Checked { chain: links, warnings, ..Checked::new(ItemType::Tool, id.clone()) };
        checked.program = interpreter.as_ref().map(Program::new);
        checked.more.insert("validated_pairs".to_owned(), json!(report.validated_pairs));
        if let Some(pack) = replaced_by {
            checked.more.insert("replaces".to_owned(), json!({"item_id": id.as_str(), "pack": pack}));
        }
        return Ok(Executed::Checked(checked));
    }
    call.program = match program.map_err(fail)? {
        Runnable::Missing => None,
        Runnable::File(file) => Some(file),
        Runnable::Copy(name, bytes) => {
            Some(tool_context.call_folder.add_program(&name, bytes).map_err(fail)?)
        }
    };
    let outcome = primitive::run(&call).map_err(fail)?;
    if let Some((text, error)) = outcome.failure {
        return Err(fail(error).with_text(text).with("data", outcome.data));
    }
    let used = lock.is_some();
    let created = !used && lockfile::write(spaces, &chain, interpreter.as_ref());
    Ok(Executed::Tool(ToolResult {
        item_id: id.clone(),
        data: outcome.data,
        chain: links,
        replaced_by,
        environment: environment.keys.clone(),
        lockfile_used: used,
        lockfile_created: created,
        warnings,
    }))
}

/// Executes a tool that is part of the program.
fn built_in(
    engine: &Engine,
    project: &Arc<Project>,
    operation: &'static str,
    request: &ExecuteRequest,
    watch: &dyn Watch,
    within: Option<&Caller<'_>>,
) -> Result<Executed, Failure> {
    let data = orchestrator::answer(engine, project, operation, request, watch, within)?;
    let item_id = ItemId::new(orchestrator::ID).map_err(Failure::new)?;
    if request.dry_run {
        let mut checked = Checked::new(ItemType::Tool, item_id);
        checked.more.insert("data".to_owned(), data);
        return Ok(Executed::Checked(checked));
    }
    Ok(Executed::Tool(ToolResult {
        item_id,
        data,
        chain: Vec::new(),
        replaced_by: None,
        environment: Vec::new(),
        lockfile_used: false,
        lockfile_created: false,
        warnings: Vec::new(),
    }))
}

/// The pack's tool that replaces another one, if the user accepted that; else what to say of a record without a grant.
fn replacement(project: &Project, id: &ItemId) -> cuebook::Result<(Option<ReplacedTool>, Option<String>)> {
    let spaces = &project.spaces;
    // Most projects have no packs, and a call is to stay fast.
    if !spaces.project().join(cuebook::library::RESOLUTIONS).is_file() {
        return Ok((None, None));
    }
    let library = Library::open(spaces.project()).with_spaces(spaces.clone());
    let Some(replaced) = library.replaced_tool(id)? else { return Ok((None, None)) };
    let state = Grants::of(spaces)?.state(&replaced.request);
    if state == Granted::Yes {
        return Ok((Some(replaced), None));
    }
    let reported = replaced.request.ignored(state);
    let hint = reported.hint.as_deref().unwrap_or_default();
    Ok((None, Some(format!("{} [{}] ({hint})", reported.message, reported.code))))
}

/// What a tool that a model calls does not get.
fn closed(engine: &Engine, project: &Project, within: Option<&Caller<'_>>) -> cuebook::Result<Closed> {
    let secrets = match within {
        Some(within) => within.secrets.clone(),
        None => engine.secrets(project)?,
    };
    Ok(Closed::to_models(&engine.settings().secret_variables, secrets))
}

fn failure(error: Error, id: &ItemId, chain: &[Element]) -> Failure {
    let ids: Vec<&str> = chain.iter().map(Element::id).collect();
    Failure::new(error).with_id(Some(id.as_str())).with("chain", json!(ids))
}

/// A chain that could not be built.
fn explain(project: &Project, id: &ItemId, broken: ChainFailure) -> Failure {
    let ChainFailure { error, so_far } = broken;
    if error.kind() == ErrorKind::ItemNotFound && so_far.is_empty() {
        return Failure::new(error).with_id(Some(id.as_str())).with("chain", json!([]));
    }
    // A file that was changed after it was signed, and that a lockfile pins, is reported with the lockfile: both must be fixed.
    if error.code() == Code::ContentChanged
        && so_far.is_empty()
        && let Some(element) = unverified(project, id)
        && let Ok(Some(lock)) = lockfile::find(&project.spaces, &element)
    {
        return failure(lock.changed(&element, true), id, &so_far);
    }
    failure(error, id, &so_far)
}

/// What an item says of itself without a trusted signature: nothing of it is used but its version.
fn unverified(project: &Project, id: &ItemId) -> Option<Element> {
    let located = project.spaces.find(ItemType::Tool, id).ok()??;
    chain::unverified(located, &project.memo)
}
