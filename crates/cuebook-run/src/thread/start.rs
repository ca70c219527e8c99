//! How a thread begins: everything about it is decided and frozen before a model is asked.

use std::sync::Arc;

use cuebook::chat::Message;
use cuebook::dialect::directive::{Composed, Directive, Filled};
use cuebook::error::Severity;
use cuebook::items::{ItemId, ItemType};
use cuebook::limits::FILE_BYTES;
use cuebook::prompt::Model;
use cuebook::variables::{Context, HookTexts, UnknownVariables, Variables};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Prepared, Result, files};
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

use super::hooks::ThreadHooks;
use super::launch::{Launch, ThreadKind};
use super::log::{check_alone, first_event};
use super::{Caller, Entry, Kind, Secrets, ThreadId, origins};
use crate::engine::{Engine, Project};
use crate::policy::capability::Capabilities;
use crate::policy::limits::{OVERRIDES, ThreadLimits};
use crate::policy::returns;
use crate::policy::risk::{Risk, Risks};
use crate::provider::{Chosen, ModelPreference, Providers};
use crate::store::{Holder, Store};
use crate::watch::Watch;

/// A directive that is to be run.
pub(crate) struct DirectiveRequest<'r> {
    pub(crate) id: &'r ItemId,
    pub(crate) prepared: &'r Prepared,
    pub(crate) directive: &'r Directive,
    /// Its inputs as the caller gave them, and with defaults.
    pub(crate) parameters: &'r Map<String, Json>,
    pub(crate) filled: &'r Filled<'r>,
    /// What else it is rendered with.
    pub(crate) context: &'r Context,
    pub(crate) model: Option<&'r str>,
    pub(crate) limit_overrides: &'r Map<String, Json>,
    pub(crate) parent: Option<ThreadId>,
    /// Who runs the parent, where that is known.
    pub(crate) parent_holder: Option<Holder>,
}

/// What a thread's parent allows it.
pub(crate) struct Parent {
    pub(crate) id: ThreadId,
    pub(crate) limits: ThreadLimits,
    pub(crate) capabilities: Capabilities,
}

/// The parent of a thread, from its log: its limits are those with which it was last taken up.
///
/// A log that the user's key did not write gives a child nothing, unless the user vouches for it.
pub(crate) fn parent(store: &dyn Store, id: &ThreadId, trusted: bool) -> Result<Parent> {
    let first = first_event(store, id, trusted)?;
    let Launch { mut limits, capabilities, .. } = Launch::from_json(&first.payload)?;
    if let Some(resumed) = store.last_of(id, Kind::Resumed)? {
        let record = store.record(id)?.ok_or_else(|| super::not_found(store, id))?;
        check_alone(store, &record, &resumed, trusted)?;
        limits = ThreadLimits::from_json(&resumed.payload["limits"])?;
    }
    Ok(Parent { id: id.clone(), limits, capabilities })
}

/// What a thread that is taken up may do, and what its hooks do, is what its directive says, which is verified again: a log must not
/// widen what the author of the directive allowed, also where the user vouches for it.
pub(super) fn vouch(
    engine: &Engine,
    project: &Arc<Project>,
    store: &dyn Store,
    launch: &mut Launch,
    trusted: bool,
) -> Result<()> {
    let (hooks, composed, allowed) = allowed(engine, project, store, launch, (0, trusted))?;
    // A request for nothing gets what the parent has, but a parent without a rest leaves none.
    if !launch.capabilities.is_empty() {
        launch.capabilities = launch.capabilities.attenuate(Some(&allowed));
    }
    launch.hooks = hooks;
    launch.context["suppress"] = composed.context.suppress.iter().map(|name| name.as_str()).collect();
    Ok(())
}

/// What the directive of a thread allows it, and those of the threads above; its own hooks come first.
fn allowed(
    engine: &Engine,
    project: &Arc<Project>,
    store: &dyn Store,
    launch: &Launch,
    (depth, trusted): (usize, bool),
) -> Result<(Vec<Json>, Composed, Capabilities)> {
    let id = ItemId::new(&launch.prompt)?;
    let prepared = engine.directive(project, &id)?;
    let directive = prepared.directive().ok_or_else(|| project.spaces.not_found(ItemType::Directive, &id))?;
    let composed = directive.compose(&id, &project.spaces, project.trust())?;
    let hooks = directive.hooks.iter().flatten().cloned().map(Json::Object).collect();
    let permissions = composed.permissions.as_ref().map(|(permissions, _)| permissions.capabilities.clone());
    let mut allowed = Capabilities::new(permissions.unwrap_or_default());
    if let Some(parent) = &launch.parent {
        let first = first_event(store, parent, trusted)?;
        let above = Launch::from_json(&first.payload)?;
        let above = match above.kind {
            ThreadKind::Directive if depth < DEEPEST => {
                self::allowed(engine, project, store, &above, (depth + 1, trusted))?.2
            }
            ThreadKind::Directive => Capabilities::default(),
            ThreadKind::Prompt => above.capabilities,
        };
        allowed = allowed.attenuate(Some(&above));
    }
    if !launch.outputs.is_empty() {
        allowed.add(returns::CAPABILITY);
    }
    Ok((hooks, composed, allowed))
}

/// No chain of threads is deeper, unless it is a circle.
const DEEPEST: usize = 100;

/// The hash of a directive's file.
pub(super) fn hash(project: &Project, id: &ItemId) -> Option<String> {
    let located = project.spaces.find(ItemType::Directive, id).ok()??;
    let item = located.read(FILE_BYTES).ok()?;
    Some(cuebook::sha256::hex(&Sha256::digest(&item.bytes)))
}

/// What is decided about a thread before anything is done for it.
pub(super) struct ThreadPlan<'e> {
    composed: Composed,
    limits: ThreadLimits,
    capabilities: Capabilities,
    chosen: Chosen,
    notes: Vec<Json>,
    thread_hooks: ThreadHooks<'e>,
    secrets: Secrets,
}

/// Decides what can be decided without asking or running anybody, which is also what a dry run checks.
pub(super) fn decide<'e>(
    engine: &'e Engine,
    project: &Arc<Project>,
    parent: Option<&Parent>,
    wanted: &DirectiveRequest<'_>,
) -> Result<ThreadPlan<'e>> {
    let directive = wanted.directive;
    let is_wrong = |note: &&Diagnostic| note.code == Code::BadDirective && note.severity == Severity::Error;
    if let Some(wrong) = directive.notes.iter().find(is_wrong) {
        return Err(Error::new(ErrorKind::Config, wrong.clone()));
    }
    let composed = directive.compose(wanted.id, &project.spaces, project.trust())?;
    let mut limits = ThreadLimits::resolve(
        &ThreadLimits::defaults(),
        directive.limits.as_ref(),
        wanted.limit_overrides,
        parent.map(|parent| &parent.limits),
    )
    .map_err(|error| at_limits(too_deep(error, parent), directive))?;
    let permissions = composed.permissions.as_ref().map(|(permissions, _)| permissions);
    let own = Capabilities::new(permissions.map(|known| known.capabilities.clone()).unwrap_or_default());
    let mut notes = Vec::new();
    let acknowledged: Vec<&str> =
        permissions.iter().flat_map(|known| &known.acknowledged).map(|known| known.risk.as_str()).collect();
    let risks = risks(project)?;
    for risk in risks.check(&own, &acknowledged).map_err(Risk::into_error)? {
        notes.push(json!(risk.warning().message));
    }
    let mut capabilities = own.attenuate(parent.map(|parent| &parent.capabilities));
    if let Some(allowance) = &engine.settings().allowance {
        capabilities = allowance.narrow(&capabilities);
    }
    let capabilities = returns::permitted(capabilities, &directive.outputs);
    let providers = Providers::new(&project.spaces, project.trust())?;
    let secrets = engine.secrets_of(&providers);
    let said = |name: &str| directive.model.as_ref().and_then(|model| model.get(name)?.as_str());
    let chosen = engine.choose(
        &providers,
        &ModelPreference {
            model: wanted.model,
            id: said("id"),
            tier: said("tier"),
            provider: said("provider"),
            only: None,
        },
    )?;
    let says_currency = directive.limits.as_ref().is_some_and(|limits| limits.contains_key(CURRENCY));
    one_currency(
        &mut limits,
        &chosen,
        says_currency || wanted.limit_overrides.contains_key(CURRENCY) || parent.is_some(),
    )
    .map_err(|error| if says_currency { at_limits(error, directive) } else { error })?;
    let sets_spend =
        |limits: Option<&Map<String, Json>>| limits.is_some_and(|limits| limits.contains_key("spend"));
    if chosen.price.is_none() {
        no_price(&chosen, sets_spend(directive.limits.as_ref()) || sets_spend(Some(wanted.limit_overrides)))?;
        notes.push(json!(unpriced(&chosen.model)));
    }
    let thread_hooks = ThreadHooks::of_directive(engine, project, wanted.id.as_str(), directive, &composed)?;
    Ok(ThreadPlan { composed, limits, capabilities, chosen, notes, thread_hooks, secrets })
}

/// The launch of a directive, and what there is to note about it.
pub(crate) fn directive(
    engine: &Engine,
    project: &Arc<Project>,
    parent: Option<&Parent>,
    wanted: &DirectiveRequest<'_>,
    watch: &dyn Watch,
) -> Result<(Launch, Chosen, Vec<Entry>)> {
    let DirectiveRequest { directive, filled, .. } = wanted;
    let ThreadPlan { composed, limits, capabilities, chosen, notes, thread_hooks, secrets } =
        decide(engine, project, parent, wanted)?;
    let within = Caller {
        thread: parent.map(|parent| &parent.id),
        holder: wanted.parent_holder.as_ref(),
        call: None,
        secrets: &secrets,
    };
    let reported = json!({
        "directive": wanted.id.as_str(),
        "project_path": project.spaces.project().to_string_lossy(),
        "model": chosen.model,
        "inputs": filled.inputs,
        "limits": limits.to_json(),
        "parent_thread_id": parent.map(|parent| parent.id.as_str()),
        "capabilities": capabilities.to_json(),
    });
    let said = thread_hooks.gather(
        &["build_system_prompt", "thread_started"],
        &reported,
        &capabilities,
        &within,
        watch,
    );
    let texts = HookTexts { system: said.system, before: said.before, after: said.after };
    let (messages, origins) = messages(wanted, &chosen, texts)?;
    let mut entries = Vec::new();
    let injected: Vec<&String> = composed.knowledge.keys().collect();
    let missing: Vec<&str> = composed.missing.iter().map(|finding| finding.message.as_str()).collect();
    if !injected.is_empty() || !missing.is_empty() || !said.said.is_empty() {
        let reported = json!({"knowledge": injected, "hooks": said.said, "missing": missing});
        entries.push(Entry::new(Kind::ContextInjected, reported));
    }
    let launch = Launch {
        kind: ThreadKind::Directive,
        prompt: wanted.id.to_string(),
        project: project.spaces.project().to_owned(),
        parent: parent.map(|parent| parent.id.clone()),
        inputs: filled.inputs.clone(),
        provider: chosen.provider.name.clone(),
        model: Model { id: chosen.model.clone(), ..Model::default() },
        context_window: chosen.context_window,
        unpriced: chosen.price.is_none(),
        limits,
        capabilities,
        outputs: returns::to_json(&directive.outputs),
        hooks: directive.hooks.iter().flatten().cloned().map(Json::Object).collect(),
        prompt_messages: messages.len(),
        messages,
        origins,
        prompt_hash: hash(project, wanted.id),
        tools: Map::new(),
        skills: Vec::new(),
        continuation: directive.more("continuation_directive").map(str::to_owned),
        continuation_of: None,
        forked_from: None,
        context: json!({"suppress": composed.context.suppress.iter().map(|name| name.as_str()).collect::<Vec<_>>()}),
        capped: Vec::new(),
        notes,
    };
    Ok((launch, chosen, entries))
}

/// What is dangerous: as it is built in, and as the user says otherwise. A project has no say in it.
fn risks(project: &Project) -> Result<Risks> {
    let risks = Risks::builtin();
    let path = project.spaces.user_folder().map(|folder| folder.join("config/capability_risk.yaml"));
    let Some(path) = path.filter(|path| path.is_file()) else { return Ok(risks) };
    let name = path.to_string_lossy().into_owned();
    let bytes = files::read_bytes(&path, &name, 1 << 20)?;
    risks.with(&files::source_from_bytes(bytes, &name)?)
}

/// What the model reads first: what `render` shows, and what hooks of the thread add.
fn messages(
    wanted: &DirectiveRequest<'_>,
    chosen: &Chosen,
    hook_texts: HookTexts,
) -> Result<(Vec<Message>, Json)> {
    let context = Context {
        model: Some(chosen.model.clone()),
        hook_texts,
        // Executing the directive has checked its parameters.
        unknown: UnknownVariables::Ignore,
        ..wanted.context.clone()
    };
    let rendered = wanted.prepared.render(&Variables::from_json(wanted.parameters), &Arc::new(context))?;
    let (messages, _) = rendered.messages_for(chosen.profile.api)?;
    let origins = origins::of(&rendered, &messages);
    Ok((messages, origins))
}

/// The limit that names the currency of another.
pub(super) const CURRENCY: &str = "spend_currency";

/// A parent that may have no children. The words are those that models and scripts know from the reference; what they mean is explained
/// beside them, and the number is that of the parent.
fn too_deep(error: Error, parent: Option<&Parent>) -> Error {
    let Some(parent) = parent.filter(|_| error.code() == Code::LimitReached) else { return error };
    let mut diagnostic = error.diagnostic().clone();
    let first = Hint::from(format!("`{}` cannot start threads (its depth is 0)", parent.id));
    diagnostic.hint = Some(match diagnostic.hint {
        Some(hint) => first.or(hint),
        None => first,
    });
    let depth = parent.limits.depth.max(0);
    Error::new(error.kind(), diagnostic).with("limit_code", "depth_exceeded").with("current_value", depth)
}

/// Shows where a directive has invalid limits: at the limit itself where reading it reported that, else at all of them.
fn at_limits(error: Error, directive: &Directive) -> Error {
    let reported = error.diagnostic();
    // What the caller gave is not written in the directive.
    let is_own = reported.message.contains("directive <limits>")
        || (reported.message.contains(CURRENCY) && !reported.message.contains(OVERRIDES));
    let about = |note: &&Diagnostic| {
        note.code == Code::BadLimit || (note.code == Code::UnknownKey && note.message.starts_with("<limits>"))
    };
    let exact = directive.notes.iter().find(about).and_then(|note| note.place.clone());
    match exact.or_else(|| directive.limits_at.clone()).filter(|_| is_own) {
        Some(place) => Error::new(error.kind(), reported.clone().at(place)),
        None => error,
    }
}

/// What is spent is counted in the currency of the prices, so a limit in another one would hold nothing: what one is worth in the
/// other is known here. A limit without a currency is in that of the prices.
pub(super) fn one_currency(limits: &mut ThreadLimits, chosen: &Chosen, is_named: bool) -> Result<()> {
    let file = &chosen.provider;
    if limits.currency == file.currency || chosen.price.is_none() {
        return Ok(());
    }
    if !is_named {
        limits.currency.clone_from(&file.currency);
        return Ok(());
    }
    let message = format!(
        "the limit `{CURRENCY}` is {}, and the prices of `{}` are in {}",
        limits.currency, chosen.model, file.currency
    );
    let hint = format!(
        "give the limits in {}, or prices in {}: `currency: {}` in {}",
        file.currency, limits.currency, limits.currency, file.file
    );
    Err(Error::new(ErrorKind::Limit, Diagnostic::new(Code::BadLimit, message).hint(hint)))
}

/// A note for the user of a thread whose model has no known price.
pub fn unpriced(model: &str) -> String {
    format!(
        "the price of `{model}` is unknown, so its cost is not counted and the limit `spend` has no effect"
    )
}

/// A limit on spending cannot be kept without prices.
pub(super) fn no_price(chosen: &Chosen, is_set: bool) -> Result<()> {
    if !is_set {
        return Ok(());
    }
    let message = format!(
        "the price of `{}` at the provider `{}` is unknown, so the limit `spend` cannot work",
        chosen.model, chosen.provider.name
    );
    let (name, other) = (&chosen.provider.name, "or leave out the limit `spend`");
    let add = format!("add its price to the provider file `{name}`");
    let hint = Hint::command_line(format!("{add} (cuebook help threads), {other}"))
        .for_programs(format!("{add}, {other}"))
        .with_command("cuebook help threads");
    Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadProviderFile, message).hint(hint)))
}
