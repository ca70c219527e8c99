//! The hooks of a thread: what authors and users want to happen at certain moments of it.
//!
//! A hook acts by executing items. What a control item answers can end, suspend or retry; the texts of context hooks become part of
//! what the model gets first. Every hook that ran is an event, and that it is about to run is one before it. Hooks of the directive are signed with it; those of the project
//! lie in `.ai/config/agent/hooks.yaml` and must be signed too, those of the user in the same file of the user's space.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cuebook::actions::load::item_type;
use cuebook::dialect::directive::{Composed, Directive};
use cuebook::items::SpaceKind;
use cuebook::limits::SETTINGS_BYTES;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result, files};
use serde_json::{Map, Value as Json, json};

use super::Kind;
use super::drive::{Finished, then_continue};
use super::launch::Launch;
use super::managed::Managed;
use super::{Caller, OpenHook};
use crate::actions::Action as Primary;
use crate::engine::{Engine, Execute, Project};
use crate::policy::capability::Capabilities;
use crate::policy::control::{self, Control};
use crate::policy::hooks::{self, Action, Firing, Hook, Hooks, Layer, Position};
use crate::policy::limits::{Reached, seconds};
use crate::policy::tool_result;
use crate::provider::{Category, ProviderFailure};
use crate::request::ExecuteRequest;
use crate::turn::Halt;
use crate::watch::Watch;

/// Where hooks of a user and of a project are written.
const FILE: &str = "config/agent/hooks.yaml";
/// The moment when a limit is reached.
const LIMIT: &str = "limit";
/// The moment when the conversation is full.
const CONTEXT_FULL: &str = "context_limit_reached";
/// The moment after the end.
const AFTER_COMPLETE: &str = "after_complete";

/// The hooks of a thread.
pub(crate) struct ThreadHooks<'e> {
    engine: &'e Engine,
    project: Arc<Project>,
    hooks: Hooks,
}

/// What hooks say when a thread begins, by where it stands.
#[derive(Debug, Default)]
pub(super) struct StartTexts {
    pub(super) system: Vec<String>,
    pub(super) before: Vec<String>,
    pub(super) after: Vec<String>,
    /// Which hook said how much.
    pub(super) said: Vec<Json>,
}

impl<'e> ThreadHooks<'e> {
    /// The hooks of a thread that has begun.
    pub(super) fn new(engine: &'e Engine, project: Arc<Project>, launch: &Launch) -> Result<ThreadHooks<'e>> {
        let written: Vec<Map<String, Json>> =
            launch.hooks.iter().filter_map(|hook| hook.as_object().cloned()).collect();
        let suppressed: Vec<&str> =
            launch.context["suppress"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let hooks = merged(&project, &launch.prompt, &written, &suppressed)?;
        Ok(ThreadHooks { engine, project, hooks })
    }

    /// The hooks of a directive that is about to begin.
    pub(super) fn of_directive(
        engine: &'e Engine,
        project: &Arc<Project>,
        id: &str,
        directive: &Directive,
        composed: &Composed,
    ) -> Result<ThreadHooks<'e>> {
        // The file says where; what is made of it below does not.
        if let Some(bad) = directive.notes.iter().find(|note| note.code == Code::BadHook) {
            return Err(Error::new(ErrorKind::Config, bad.clone()));
        }
        let written = directive.hooks.clone().unwrap_or_default();
        let suppressed: Vec<&str> = composed.context.suppress.iter().map(|name| name.as_str()).collect();
        Ok(ThreadHooks {
            engine,
            project: project.clone(),
            hooks: merged(project, id, &written, &suppressed)?,
        })
    }

    /// What hooks say when a thread begins, or goes on with the conversation of another.
    pub(super) fn gather(
        &self,
        events: &[&str],
        context: &Json,
        capabilities: &Capabilities,
        within: &Caller<'_>,
        watch: &dyn Watch,
    ) -> StartTexts {
        let mut gathered = StartTexts::default();
        for event in events {
            for firing in self.hooks.matching(event, context) {
                for action in &firing.actions {
                    let answer = match denied(action, capabilities) {
                        Some(denied) => denied,
                        None => self.act(action, watch, Some(within)),
                    };
                    let Some(mut text) = added_text(&answer, action, firing.wrap) else {
                        let why = answer.get("error").cloned().unwrap_or_else(|| "it said nothing".into());
                        let mut reported =
                            json!({"hook": firing.hook_id, "item_id": action.item_id, "nothing": why});
                        if let Some(why) = failure(&answer) {
                            reported["failed"] = why.into();
                        }
                        gathered.said.push(reported);
                        continue;
                    };
                    within.secrets.scrub_text(&mut text);
                    gathered.said.push(
                        json!({"hook": firing.hook_id, "item_id": action.item_id, "bytes": text.len()}),
                    );
                    match (*event, firing.position) {
                        ("build_system_prompt", _) => gathered.system.push(text),
                        (_, Position::Before) => gathered.before.push(text),
                        (_, Position::After) => gathered.after.push(text),
                    }
                }
            }
        }
        gathered
    }

    fn act(&self, action: &Action, watch: &dyn Watch, within: Option<&Caller<'_>>) -> Json {
        // A decision needs no tool.
        if action.item_id == control::ITEM {
            return decision(action);
        }
        let Some(primary) = Primary::named(&action.primary) else { return Json::Null };
        let project = self.project.spaces.project().to_string_lossy().into_owned();
        if primary == Primary::Execute {
            let item_type = match item_type(&action.item_type) {
                Ok(item_type) => item_type,
                Err(error) => return json!({"status": "error", "error": error.diagnostic().message}),
            };
            let request = ExecuteRequest {
                project_path: Some(project.into()),
                parameters: action.params.clone(),
                ..ExecuteRequest::new(item_type, &action.item_id)
            };
            return self.engine.execute_for(&request, watch, within).json;
        }
        let mut arguments = action.params.clone();
        arguments.insert("project_path".into(), project.into());
        if primary == Primary::Search {
            arguments.entry("scope").or_insert_with(|| action.item_type.clone().into());
            arguments.entry("query").or_insert_with(|| "".into());
        } else {
            arguments.insert("item_type".into(), action.item_type.clone().into());
            arguments.insert("item_id".into(), action.item_id.clone().into());
        }
        primary.run(self.engine, &arguments, watch)
    }

    /// Runs the hooks of a moment. The first that decides something is obeyed.
    fn fire(&self, thread: &Managed<'_>, event: &str, more: Json) -> Option<HookDecision> {
        self.fire_rest(thread, event, more, HooksSoFar::default())
    }

    /// The same where some of them were heard before the process died: what they did is not done again, and what they decided
    /// counts.
    fn fire_rest(
        &self,
        thread: &Managed<'_>,
        event: &str,
        more: Json,
        mut heard: HooksSoFar,
    ) -> Option<HookDecision> {
        let about = more["error"]["message"].clone();
        let firings = self.firings(thread, event, more);
        if firings.is_empty() {
            return None;
        }
        let time = thread.time_for_hooks();
        let until = Instant::now().checked_add(time);
        let mut decided = None;
        for firing in firings {
            let control = self.run(thread, (event, &about), &firing, &mut heard, (time, until));
            if firing.controls && control != Control::Continue && decided.is_none() {
                let who = format!("the hook `{}` {}", firing.hook_id, firing.whose);
                decided = Some(HookDecision { control, who });
            }
        }
        decided
    }

    /// The hooks of a moment, with everything filled in.
    fn firings(&self, thread: &Managed<'_>, event: &str, more: Json) -> Vec<Firing> {
        if self.hooks.iter().all(|hook| hook.event != event) {
            return Vec::new();
        }
        let mut context = json!({
            "event": event,
            "thread_id": thread.id.as_str(),
            "directive": thread.launch.prompt,
            "model": thread.launch.model.id,
            "inputs": thread.launch.inputs,
            "limits": thread.launch.limits.to_json(),
            "cost": thread.cost().to_json(),
        });
        if let (Json::Object(context), Json::Object(more)) = (&mut context, more) {
            context.extend(more);
        }
        self.hooks.matching(event, &context)
    }

    fn run(
        &self,
        thread: &Managed<'_>,
        (event, about): (&str, &Json),
        firing: &Firing,
        heard: &mut HooksSoFar,
        (time, until): (Duration, Option<Instant>),
    ) -> Control {
        let is_over = || until.is_some_and(|until| Instant::now() >= until) && !thread.cancelled();
        let mut decided = Control::Continue;
        for action in &firing.actions {
            let mut reported = json!({
                "hook": firing.hook_id,
                "event": event,
                "action": action.primary,
                "item_id": action.item_id,
            });
            if !about.is_null() {
                reported["about"] = about.clone();
            }
            // A decision does nothing, so it can be made again.
            if action.item_id != control::ITEM
                && let Some(control) = heard.take(&reported)
            {
                if decided == Control::Continue {
                    decided = control;
                }
                continue;
            }
            let answer = match denied(action, &thread.launch.capabilities) {
                Some(denied) => denied,
                None if action.item_id == control::ITEM => decision(action),
                None if is_over() => {
                    let why =
                        format!("it did not run: earlier hooks used the shared limit of {} s", seconds(time));
                    json!({"status": "error", "error": why})
                }
                None => match thread.begin_hook(event, &reported) {
                    Ok(()) => {
                        let watch = thread.watching_hook(until);
                        let answer = self.act(action, &watch, Some(&thread.within(None)));
                        match failure(&answer) {
                            Some(_) if is_over() => {
                                let why = format!(
                                    "it was stopped: the hooks of one event share a limit of {} s",
                                    seconds(time)
                                );
                                json!({"status": "error", "error": why})
                            }
                            _ => answer,
                        }
                    }
                    Err(why) => json!({"status": "error", "error": why}),
                },
            };
            let control = Control::from_result(&answer);
            reported["result"] = tool_result::clean(&answer);
            reported["decided"] = (control != Control::Continue).into();
            if let Some(why) = failure(&answer) {
                reported["failed"] = why.into();
            }
            thread.keep(Kind::Hook, reported);
            if decided == Control::Continue {
                decided = control;
            }
        }
        decided
    }

    /// A limit was reached.
    pub(super) fn limit(&self, thread: &Managed<'_>, reached: &Reached) -> Option<HookDecision> {
        self.fire(thread, LIMIT, reached.to_json())
    }

    /// The model did not answer.
    pub(super) fn error(&self, thread: &Managed<'_>, unheard: &ProviderFailure) -> Option<HookDecision> {
        let category = match unheard.category {
            Category::RateLimited => "rate_limited",
            Category::Transient => "transient",
            Category::Permanent => "permanent",
            Category::Cancelled => "cancelled",
        };
        let error =
            json!({"message": unheard.error.diagnostic().message, "code": unheard.error.code().as_str()});
        self.fire(thread, "error", json!({"error": error, "classification": {"category": category}}))
    }

    /// The calls of a turn are done.
    pub(super) fn after_step(&self, thread: &Managed<'_>) -> Result<(), Halt> {
        halted(thread, self.fire(thread, "after_step", json!({})))
    }

    /// The conversation is full.
    pub(super) fn full(
        &self,
        thread: &Managed<'_>,
        (tokens, window): (u64, u64),
        heard: HooksSoFar,
    ) -> Result<(), Halt> {
        let reported = json!({"tokens": tokens, "context_window": window});
        halted(thread, self.fire_rest(thread, CONTEXT_FULL, reported, heard))
    }

    /// The model returned its outputs. A hook may find that they will not do, and says why; or it stops the thread.
    pub(super) fn returned(&self, thread: &Managed<'_>, outputs: &Map<String, Json>) -> Result<(), String> {
        match self.fire(thread, "directive_return", json!({"outputs": outputs})) {
            Some(HookDecision { control: Control::Fail(why), .. }) => Err(why),
            decided => halted(thread, decided).map_err(|halt| {
                let why = format!("A hook stopped the thread: {}", halt.message());
                thread.halt_later(halt);
                why
            }),
        }
    }

    /// Whether hooks want to do something now that the thread has ended. A request to stop it stops them as well.
    pub(super) fn follow(&self, thread: &Managed<'_>, finished: &Finished) -> bool {
        !thread.cancelled() && !self.firings(thread, AFTER_COMPLETE, ended(finished)).is_empty()
    }

    /// The thread has ended. What hooks do now is written behind its end, and changes nothing of it.
    pub(super) fn completed(&self, thread: &Managed<'_>, finished: &Finished) {
        self.fire(thread, AFTER_COMPLETE, ended(finished));
    }
}

/// What hooks get at the end.
fn ended(finished: &Finished) -> Json {
    json!({"status": finished.status.as_str(), "result": finished.to_json()})
}

/// Whether a hook's event occurs again although nothing has changed: a resumed thread reaches the same limit.
fn comes_again(hook: &OpenHook) -> bool {
    hook.event == LIMIT || hook.event == CONTEXT_FULL
}

/// The hooks that have heard that the conversation is full, as the log tells it.
#[derive(Debug, Clone, Default)]
pub(crate) struct HooksSoFar {
    /// What they did, and what they decided.
    done: Vec<(OpenHook, Control)>,
    /// Whether they were heard in the present life of the thread.
    now: bool,
    /// All of them were heard, and the thread ended behind that: a process that continues it knows what they said.
    over: bool,
}

impl HooksSoFar {
    /// That the conversation is full is in the log, and nothing else.
    pub(super) fn begun() -> HooksSoFar {
        HooksSoFar { now: true, ..HooksSoFar::default() }
    }

    /// Notes what the log says next.
    pub(super) fn note(&mut self, kind: Kind, payload: &Json) {
        match kind {
            Kind::Hook | Kind::HookUnknown if payload["event"] == CONTEXT_FULL => {
                // The process that continues the thread reports calls that may have run, before any hook is heard.
                self.now |= kind == Kind::Hook;
                self.done.push((OpenHook::of(payload), Control::from_result(&payload["result"])));
            }
            Kind::Resumed | Kind::Interrupted => self.now = false,
            Kind::Completed | Kind::Failed | Kind::Cancelled | Kind::Suspended => self.over |= self.now,
            _ => {}
        }
    }

    /// Whether all of them were heard.
    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    /// What was decided by what was done already. An action that is done twice is heard twice.
    fn take(&mut self, reported: &Json) -> Option<Control> {
        let this = OpenHook::of(reported);
        let at = self.done.iter().position(|(done, _)| done.is_same(&this))?;
        Some(self.done.remove(at).1)
    }
}

impl Managed<'_> {
    /// Says in the log that a hook is about to run; otherwise it does not, and why not is returned.
    fn begin_hook(&self, event: &str, reported: &Json) -> Result<(), String> {
        let mut reported = reported.clone();
        reported["turns"] = self.cost().turns.into();
        let this = OpenHook::of(&reported);
        {
            let mut state = self.state();
            let before = state.open_hooks.iter().position(|open| *open == this && comes_again(open));
            if let Some(before) = before {
                state.open_hooks.remove(before);
                return Err(
                    "it had started when the process died, and may have run; it was not repeated".into()
                );
            }
        }
        if event == AFTER_COMPLETE && self.cancelled() {
            return Err("it did not run: the thread was asked to stop".into());
        }
        self.keep(Kind::HookStart, reported);
        // What cannot be said to have begun does not begin.
        self.write().map_err(|error| format!("it did not run: {}", error.diagnostic().message))
    }
}

/// What a hook decides, or why that is nothing.
fn decision(action: &Action) -> Json {
    match Control::fault(&action.params) {
        Some(fault) => json!({"status": "error", "error": fault}),
        None => Control::from_params(&action.params).to_json(),
    }
}

/// Why a hook could not do what it is for: the item does not exist, may not be run, or failed.
fn failure(answer: &Json) -> Option<String> {
    let failed = answer.get("status").and_then(Json::as_str) == Some("error");
    failed.then(|| answer.get("error").map_or_else(|| "it failed".to_owned(), tool_result::text_of))
}

/// The capabilities of the thread must allow the action, and do not.
fn denied(action: &Action, capabilities: &Capabilities) -> Option<Json> {
    if !action.bound {
        return None;
    }
    let param = |name: &str| action.params.get(name).and_then(Json::as_str);
    if action.primary == "load" && param("destination") == Some("user") {
        // What lies there holds for every project, and is for the user to change.
        let why = "Permission denied: a thread copies items into its project only";
        return Some(json!({"status": "error", "error": why}));
    }
    let scope = param("scope").filter(|_| action.primary == "search").unwrap_or(&action.item_type);
    let item_type = scope.split('.').next().filter(|kind| !kind.is_empty()).unwrap_or("tool");
    let denied = capabilities.check(&action.primary, item_type, &action.item_id).err()?;
    Some(json!({"status": "error", "error": denied.error}))
}

/// What a hook has decided.
#[derive(Debug)]
pub(super) struct HookDecision {
    pub(super) control: Control,
    /// The hook, in words: its name, and where it is written.
    pub(super) who: String,
}

impl HookDecision {
    /// An error that a hook asked for.
    pub(super) fn error(&self, thread: &Managed<'_>, why: &str) -> Error {
        let hint = Hint::from(format!("{} decided this", self.who)).or(then_continue("", &thread.id));
        let diagnostic = Diagnostic::new(Code::BadHook, why).hint(hint);
        Error::new(ErrorKind::Execute, diagnostic).with("thread_id", thread.id.as_str())
    }

    /// That a hook wants the thread to be stopped.
    pub(super) fn abort(&self) -> Halt {
        Halt::Cancelled(format!("stopped by {}", self.who))
    }
}

/// What a decision means between two turns.
fn halted(thread: &Managed<'_>, decided: Option<HookDecision>) -> Result<(), Halt> {
    let Some(decided) = decided else { return Ok(()) };
    match &decided.control {
        Control::Continue | Control::Retry => Ok(()),
        Control::Fail(why) => Err(Halt::Failed(decided.error(thread, why))),
        Control::Abort => Err(decided.abort()),
        Control::Suspend(why) => Err(Halt::Suspended(decided.error(thread, why))),
        Control::Escalate { limit, .. } => {
            let about = match limit {
                Json::Null => String::new(),
                limit => format!(" about {}", tool_result::text_of(limit)),
            };
            let why = format!("a hook waits for a decision{about}");
            Err(Halt::Suspended(decided.error(thread, &why)))
        }
    }
}

/// The hooks of the user, the directive and the project, without those that the directive does not want.
fn merged(project: &Project, id: &str, written: &[Map<String, Json>], suppressed: &[&str]) -> Result<Hooks> {
    let own = hooks::of_directive(id, written)?;
    let user = in_space(project, SpaceKind::User, Layer::User)?;
    let of_project = in_space(project, SpaceKind::Project, Layer::Project)?;
    let mut hooks = Hooks::merged(user, own, Vec::new(), of_project);
    hooks.suppress(suppressed);
    Ok(hooks)
}

fn in_space(project: &Project, kind: SpaceKind, layer: Layer) -> Result<Vec<Hook>> {
    let folder = match kind {
        SpaceKind::User => project.spaces.user_folder(),
        _ => Some(project.spaces.project().join(".ai")),
    };
    let Some(path) = folder.map(|folder| folder.join(FILE)).filter(|path| path.is_file()) else {
        return Ok(Vec::new());
    };
    let name = path.to_string_lossy().into_owned();
    let bytes = files::read_bytes(&path, &name, SETTINGS_BYTES)?;
    if kind == SpaceKind::Project {
        // The user who cloned the project has not agreed to its wishes.
        project.trust().verify_config(FILE.trim_start_matches("config/"), &name, &bytes)?;
    }
    hooks::of_file(&files::source_from_bytes(bytes, &name)?, layer)
}

/// The text that the answer of a context hook adds, in an element that says where it is from unless the hook does not want that.
fn added_text(answer: &Json, action: &Action, wrap: bool) -> Option<String> {
    if answer.get("status").and_then(Json::as_str) == Some("error") {
        return None;
    }
    let data = answer.get("data").unwrap_or(answer);
    let text = ["body", "content", "your_directions"].iter().find_map(|name| data.get(*name)?.as_str());
    let text = match text {
        Some(text) => text.trim().to_owned(),
        None => tool_result::text_of(&tool_result::clean(data)),
    };
    if text.is_empty() {
        return None;
    }
    if !wrap {
        return Some(text);
    }
    let name = data.get("name").and_then(Json::as_str);
    let last = action.item_id.rsplit('/').next().filter(|last| !last.is_empty());
    let tag = name.or(last).unwrap_or("context");
    Some(format!("<{tag} id=\"{}\" type=\"{}\">\n{text}\n</{tag}>", action.item_id, action.item_type))
}
