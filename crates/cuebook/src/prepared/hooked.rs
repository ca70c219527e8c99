//! One render with hooks: providers, `pre_render`, the template, `post_render`.
//!
//! Before any code runs, the variables are validated and every script is found, approved and read; so a render that cannot
//! succeed starts nothing. Providers run concurrently, and each at most once: a hook that asks for a namespace gets what is
//! there already.

mod host;
mod providers;

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;

use self::host::RunHost;
use self::providers::{Providers, Source};
use super::Prepared;
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity};
use crate::hooks::{
    Answer, Call, Changes, HookContext, HookError, Hooks, PostRender, PreRender, Provide, Script,
    ScriptEngine, Subject, Values, Workspace, called, hidden_repository,
};
use crate::prompt::{Limits, Need, Permissions};
use crate::render::{Editor, Rendered};
use crate::variables::{
    Context, SYSTEM, Scope, Supplier, Variables, refuse_invalid, validate, validation_error,
};

/// Renders a prompt that has hooks, or whose templates use providers.
pub(crate) fn render(prepared: &Prepared, variables: &Variables, context: &Arc<Context>) -> Result<Rendered> {
    let hooks = prepared.hooks();
    let scope = prepared.scope(variables, context);
    let workspace = prepared.workspace(context)?;
    let used = providers::used_providers(prepared, &scope, &workspace)?;
    let provided: BTreeSet<&str> = used.iter().map(|source| source.namespace.as_str()).collect();
    let mut problems = validate(prepared.prompt(), &scope);
    problems.retain(|(problem, _)| !provided.contains(problem.name.as_str()));
    refuse_invalid(&prepared.prompt().id, problems)?;

    let pre_render = pre_render_hooks(prepared, &workspace)?;
    let post_render = post_render_hooks(prepared, &workspace)?;
    let session = context.session_values();
    let run = Run {
        prepared,
        hooks,
        workspace,
        session: &session,
        state: &context.session_state,
        scope: Mutex::new(scope),
        providers: Mutex::default(),
        finished: Condvar::new(),
        model_calls: Mutex::default(),
    };
    let mut notes = run.hidden_repository(&used, &pre_render, &post_render);
    let scope = run.provide(used, variables, context, &mut notes)?;
    let mut scope = run.set_scope(scope);
    for hook in pre_render {
        let before = scope.values(hook.wants_system());
        let host = run.host(None);
        let hook_context = run.context(prepared.subject(), prepared.grants(), &host);
        let mut changes = called("pre_render", &hook_context, || hook.call(&before, &hook_context))?;
        changes.set.retain(|name, value| before.get(name) != Some(value));
        notes.extend(refuse_forgotten(prepared, &before, &changes)?);
        let by = Supplier::Hook { prompt: prepared.prompt().id.clone(), function: "pre_render" };
        run.check_size(&hook_context, "pre_render", changes.set.values().map(characters).sum())?;
        scope = run.set_scope(scope.after_hook(&changes, &by));
    }
    validation_error(prepared.prompt(), &scope)?;
    let mut rendered = prepared.render_template(&scope)?;
    for (hook, script) in post_render {
        let values = scope.values(script.is_none_or(|script| script.mentions_system));
        let host = run.host(None);
        let hook_context = run.context(prepared.subject(), prepared.grants(), &host);
        let edit = || hook.post_render(rendered.text(), &values, &hook_context);
        let text = called("post_render", &hook_context, edit)?;
        run.check_size(&hook_context, "post_render", text.chars().count())?;
        let by = Editor { prompt: prepared.prompt().id.clone(), function: "post_render" };
        rendered = rendered.edited(text, by);
    }
    Ok(rendered.with_notes(notes))
}

/// A function in a file.
struct ScriptHook {
    engine: Arc<dyn ScriptEngine>,
    script: Arc<Script>,
}

/// A hook before the template.
enum PreRenderHook {
    Script(ScriptHook),
    Closure(Arc<dyn PreRender>),
}

impl PreRenderHook {
    fn script(&self) -> Option<&Arc<Script>> {
        match self {
            PreRenderHook::Script(hook) => Some(&hook.script),
            PreRenderHook::Closure(_) => None,
        }
    }

    /// What a closure does with its variables is unknown.
    fn wants_system(&self) -> bool {
        self.script().is_none_or(|script| script.mentions_system)
    }

    fn call(&self, variables: &Values, context: &HookContext<'_>) -> Result<Changes, HookError> {
        match self {
            PreRenderHook::Script(hook) => {
                match hook.engine.run(&hook.script, Call::PreRender { variables }, context)? {
                    Answer::Changes(changes) => Ok(changes),
                    Answer::Values(_) | Answer::Text(_) => Err(unfitting("pre_render").into()),
                }
            }
            PreRenderHook::Closure(hook) => {
                Ok(Changes::between(variables, hook.pre_render(variables.clone(), context)?))
            }
        }
    }
}

impl PostRender for ScriptHook {
    fn post_render(
        &self,
        text: &str,
        variables: &Values,
        context: &HookContext<'_>,
    ) -> Result<String, HookError> {
        match self.engine.run(&self.script, Call::PostRender { text, variables }, context)? {
            Answer::Text(text) => Ok(text),
            Answer::Values(_) | Answer::Changes(_) => Err(unfitting("post_render").into()),
        }
    }
}

impl Provide for ScriptHook {
    fn provide(&self, context: &HookContext<'_>) -> Result<Values, HookError> {
        match self.engine.run(&self.script, Call::Provide, context)? {
            Answer::Values(values) => Ok(values),
            Answer::Text(_) | Answer::Changes(_) => Err(unfitting("provide").into()),
        }
    }
}

fn unfitting(function: &str) -> Error {
    let message = format!("the result of the hook engine does not fit a call of `{function}`");
    Error::new(ErrorKind::Hook, Diagnostic::new(Code::HookReturn, message))
}

/// The hooks before the template: the prompt's own, then the program's.
fn pre_render_hooks(prepared: &Prepared, workspace: &Workspace) -> Result<Vec<PreRenderHook>> {
    let mut found: Vec<PreRenderHook> =
        own_hook(prepared, workspace, "pre_render")?.map(PreRenderHook::Script).into_iter().collect();
    found.extend(prepared.hooks().pre_render.get(&prepared.prompt().id).cloned().map(PreRenderHook::Closure));
    Ok(found)
}

/// A hook after the template, and its script if it has one.
type PostRenderHook = (Arc<dyn PostRender>, Option<Arc<Script>>);

/// The hooks after the template, in the same order.
fn post_render_hooks(prepared: &Prepared, workspace: &Workspace) -> Result<Vec<PostRenderHook>> {
    let mut found: Vec<PostRenderHook> = Vec::new();
    if let Some(hook) = own_hook(prepared, workspace, "post_render")? {
        let script = hook.script.clone();
        found.push((Arc::new(hook), Some(script)));
    }
    found.extend(prepared.hooks().post_render.get(&prepared.prompt().id).cloned().map(|hook| (hook, None)));
    Ok(found)
}

fn own_hook(prepared: &Prepared, workspace: &Workspace, function: &str) -> Result<Option<ScriptHook>> {
    let Some(hook) = prepared.prompt().hooks.iter().find(|hook| hook.name == function) else {
        return Ok(None);
    };
    let Some(engine) = prepared.engine() else { return Err(prepared.hooks_unavailable(hook)) };
    let script = prepared.script(prepared.script_file(hook)?)?;
    prepared.refuse_home(workspace, Some(&script))?;
    Ok(Some(ScriptHook { engine: engine.clone(), script }))
}

/// A hook that does not return a required variable has forgotten it. One that returns none of those that it got most likely
/// has, too; but there may be a reason, so that is only said.
fn refuse_forgotten(prepared: &Prepared, before: &Values, changes: &Changes) -> Result<Option<Diagnostic>> {
    let prompt = prepared.prompt();
    let place = prompt.hooks.iter().find(|hook| hook.name == "pre_render").map(|hook| hook.place.clone());
    let finding = |message: String| {
        let diagnostic = Diagnostic::new(Code::HookReturn, message)
            .hint("end it with `return variables`: Cuebook drops variables that the hook does not return");
        match &place {
            Some(place) => diagnostic.at(place.clone()),
            None => diagnostic,
        }
    };
    let is_required =
        |name: &&String| prompt.variable(name).is_some_and(|variable| variable.need == Need::Required);
    if let Some(name) = changes.removed.iter().find(is_required) {
        let message = format!(
            "`pre_render` of the prompt `{}` did not return the required variable `{name}`",
            prompt.id
        );
        return Err(Error::new(ErrorKind::Hook, finding(message)).with("variable", name));
    }
    let given = before.keys().filter(|name| *name != SYSTEM).count();
    let gone = changes.removed.iter().filter(|name| *name != SYSTEM).count();
    Ok((given > 0 && given == gone && !changes.set.is_empty()).then(|| {
        let message = format!("`pre_render` of the prompt `{}` returned none of its variables", prompt.id);
        finding(message).severity(Severity::Warning)
    }))
}

/// The size of a value: of a text its own, of anything else that of its JSON text.
fn characters(value: &Json) -> usize {
    match value {
        Json::String(text) => text.chars().count(),
        other => other.to_string().chars().count(),
    }
}

/// What is shared by everything that runs for one render.
struct Run<'r> {
    prepared: &'r Prepared,
    hooks: &'r Hooks,
    workspace: Workspace,
    session: &'r Values,
    state: &'r Values,
    /// The values as they are now.
    scope: Mutex<Arc<Scope>>,
    providers: Mutex<Providers>,
    finished: Condvar,
    model_calls: Mutex<usize>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Run<'_> {
    fn host<'h>(&'h self, asking: Option<&'h str>) -> RunHost<'h> {
        RunHost { run: self, asking }
    }

    fn context<'h>(
        &'h self,
        subject: Subject,
        grants: (Permissions, Limits),
        host: &'h RunHost<'h>,
    ) -> HookContext<'h> {
        let place = (self.workspace.folder(), self.prepared.hook_settings());
        HookContext::new(subject, grants, place, (self.session, self.state), host)
    }

    /// A warning about the first code that uses git, if hooks cannot read the repository.
    fn hidden_repository(
        &self,
        used: &[Source],
        pre_render: &[PreRenderHook],
        post_render: &[PostRenderHook],
    ) -> Vec<Diagnostic> {
        let before = pre_render.iter().filter_map(PreRenderHook::script);
        let scripts = before.chain(post_render.iter().filter_map(|(_, script)| script.as_ref()));
        let providers = used.iter().filter(|source| source.mentions_git).map(|source| source.subject.clone());
        let own = scripts.filter(|script| script.mentions_git).map(|_| self.prepared.subject());
        let warning =
            |subject| hidden_repository(self.workspace.folder(), self.prepared.hook_settings(), &subject);
        providers.chain(own).next().and_then(warning).into_iter().collect()
    }

    fn set_scope(&self, scope: Arc<Scope>) -> Arc<Scope> {
        *lock(&self.scope) = scope.clone();
        scope
    }

    fn check_size(&self, context: &HookContext<'_>, function: &str, characters: usize) -> Result<()> {
        let limit = context.limits.max_output_size;
        if characters <= limit {
            return Ok(());
        }
        let message = format!(
            "`{function}` of {} returned {characters} characters, but the limit is {limit}",
            context.subject
        );
        let hint = match &context.subject {
            Subject::Prompt { .. } => "return less, or raise \"max_output_size\" in LIMITS",
            Subject::Provider { .. } => {
                "return less, or raise \"max_output_size\" in the provider's limits in pack.json"
            }
        };
        let diagnostic = Diagnostic::new(Code::HookOutput, message).hint(hint);
        let diagnostic = match self.prepared.prompt().hooks.iter().find(|hook| hook.name == function) {
            Some(hook) => diagnostic.at(hook.place.clone()),
            None => diagnostic,
        };
        Err(Error::new(ErrorKind::Limit, diagnostic).with("limit", limit).with("characters", characters))
    }
}
