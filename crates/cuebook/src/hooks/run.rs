//! One render with hooks: providers, `pre_render`, the template, `post_render`.
//!
//! Before any code runs, the variables are validated and every script is found, approved and read; so a render that cannot
//! succeed starts nothing. Providers run concurrently, and each at most once: a hook that asks for a namespace gets what is
//! there already.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde_json::Value as Json;

use super::{
    Answer, Call, Changes, Event, HookContext, Hooks, Host, HttpRequest, HttpResponse, ModelRequest,
    PostRender, PreRender, Provide, Refusal, Script, ScriptEngine, Subject, Values, Workspace,
};
use crate::error::{Code, Diagnostic, Error, ErrorKind, Result, Severity, did_you_mean, nearest};
use crate::prepared::{Prepared, Provider, refuse_home};
use crate::prompt::{Limits, Need, Permissions};
use crate::render::{Editor, Rendered};
use crate::variables::{
    Context, Layer, Provided, SYSTEM, Scope, Supplier, Variables, refuse_invalid, validate, validation_error,
};

/// Requests to a language model that one render may make.
const MOST_MODEL_CALLS: usize = 16;

/// Renders a prompt that has hooks, or whose templates use providers.
pub(crate) fn render(prepared: &Prepared, variables: &Variables, context: &Arc<Context>) -> Result<Rendered> {
    let hooks = prepared.hooks();
    let scope = prepared.scope(variables, context);
    let workspace = prepared.workspace(context)?;
    let used: Vec<Source> = used_providers(prepared, &scope, &workspace)?;
    let provided: BTreeSet<&str> = used.iter().map(|source| source.namespace.as_str()).collect();
    let mut problems = validate(prepared.prompt(), &scope);
    problems.retain(|(problem, _)| !provided.contains(problem.name.as_str()));
    refuse_invalid(prepared.prompt(), problems)?;

    let pre_render = pre_render_hooks(prepared, &workspace)?;
    let post_render = post_render_hooks(prepared, &workspace)?;
    let session = session(context);
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
    let mut notes = Vec::new();
    let scope = run.provide(used, variables, context, &mut notes)?;
    let mut scope = run.set_scope(scope);
    for hook in pre_render {
        let before = scope.values(hook.wants_system());
        let host = run.host(None);
        let hook_context = run.context(prepared.subject(), prepared.grants(), &host);
        let mut changes = hook.call(&before, &hook_context)?;
        changes.set.retain(|name, value| before.get(name) != Some(value));
        notes.extend(refuse_forgotten(prepared, &before, &changes)?);
        let by = Supplier::Hook { prompt: prepared.prompt().id.clone(), function: "pre_render" };
        run.check_size(&hook_context, "pre_render", changes.set.values().map(characters).sum())?;
        scope = run.set_scope(scope.after_hook(&changes, &by));
    }
    validation_error(prepared.prompt(), &scope)?;
    let mut rendered = prepared.render_template(&scope)?;
    for (hook, wants_system) in post_render {
        let values = scope.values(wants_system);
        let host = run.host(None);
        let hook_context = run.context(prepared.subject(), prepared.grants(), &host);
        let text = hook.post_render(rendered.text(), &values, &hook_context)?;
        run.check_size(&hook_context, "post_render", text.chars().count())?;
        let by = Editor { prompt: prepared.prompt().id.clone(), function: "post_render" };
        rendered = rendered.edited(text, by);
    }
    Ok(rendered.with_notes(notes))
}

/// A provider that is ready to run.
struct Source {
    namespace: String,
    provide: Arc<dyn Provide>,
    supplier: Supplier,
    subject: Subject,
    grants: (Permissions, Limits),
    optional: bool,
    /// What kept it from being ready, if a render may go on without it.
    trouble: Option<Error>,
}

/// A function in a file.
struct ScriptHook {
    engine: Arc<dyn ScriptEngine>,
    script: Arc<Script>,
}

/// A hook before the template.
enum Before {
    Script(ScriptHook),
    Closure(Arc<dyn PreRender>),
}

impl Before {
    /// What a closure does with its variables nobody knows.
    fn wants_system(&self) -> bool {
        match self {
            Before::Script(hook) => hook.script.mentions_system,
            Before::Closure(_) => true,
        }
    }

    fn call(&self, variables: &Values, context: &HookContext<'_>) -> Result<Changes> {
        match self {
            Before::Script(hook) => {
                match hook.engine.run(&hook.script, Call::PreRender { variables }, context)? {
                    Answer::Changes(changes) => Ok(changes),
                    Answer::Values(_) | Answer::Text(_) => Err(unfitting("pre_render")),
                }
            }
            Before::Closure(hook) => {
                Ok(Changes::between(variables, hook.pre_render(variables.clone(), context)?))
            }
        }
    }
}

impl PostRender for ScriptHook {
    fn post_render(&self, text: &str, variables: &Values, context: &HookContext<'_>) -> Result<String> {
        match self.engine.run(&self.script, Call::PostRender { text, variables }, context)? {
            Answer::Text(text) => Ok(text),
            Answer::Values(_) | Answer::Changes(_) => Err(unfitting("post_render")),
        }
    }
}

impl Provide for ScriptHook {
    fn provide(&self, context: &HookContext<'_>) -> Result<Values> {
        match self.engine.run(&self.script, Call::Provide, context)? {
            Answer::Values(values) => Ok(values),
            Answer::Text(_) | Answer::Changes(_) => Err(unfitting("provide")),
        }
    }
}

fn unfitting(function: &str) -> Error {
    let message = format!("the engine's answer does not fit a call of `{function}`");
    Error::new(ErrorKind::Hook, Diagnostic::new(Code::HookReturn, message))
}

/// The hooks before the template: the prompt's own, then the program's.
fn pre_render_hooks(prepared: &Prepared, workspace: &Workspace) -> Result<Vec<Before>> {
    let mut found: Vec<Before> =
        own_hook(prepared, workspace, "pre_render")?.map(Before::Script).into_iter().collect();
    found.extend(prepared.hooks().pre_render.get(&prepared.prompt().id).cloned().map(Before::Closure));
    Ok(found)
}

/// The hooks after the template, in the same order, and whether they want to know what the system knows.
fn post_render_hooks(prepared: &Prepared, workspace: &Workspace) -> Result<Vec<(Arc<dyn PostRender>, bool)>> {
    let mut found: Vec<(Arc<dyn PostRender>, bool)> = Vec::new();
    if let Some(hook) = own_hook(prepared, workspace, "post_render")? {
        let wants_system = hook.script.mentions_system;
        found.push((Arc::new(hook), wants_system));
    }
    found.extend(prepared.hooks().post_render.get(&prepared.prompt().id).cloned().map(|hook| (hook, true)));
    Ok(found)
}

fn own_hook(prepared: &Prepared, workspace: &Workspace, function: &str) -> Result<Option<ScriptHook>> {
    let Some(hook) = prepared.prompt().hooks.iter().find(|hook| hook.name == function) else {
        return Ok(None);
    };
    let Some(engine) = prepared.engine() else { return Err(prepared.hooks_unavailable(hook)) };
    let script = prepared.script(prepared.script_file(hook)?)?;
    if script.pack.is_some() {
        refuse_home(workspace)?;
    }
    Ok(Some(ScriptHook { engine: engine.clone(), script }))
}

/// The providers that the templates need, each ready to run. What the caller or the agent gave is not provided again.
fn used_providers(prepared: &Prepared, scope: &Scope, workspace: &Workspace) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for namespace in prepared.namespaces() {
        if scope.layer(&namespace).is_none_or(|layer| layer < Layer::Agent) {
            sources.extend(source(prepared, &namespace, workspace)?);
        }
    }
    Ok(sources)
}

/// The provider of a namespace: the program's, or the one pack's that offers it or was chosen.
fn source(prepared: &Prepared, namespace: &str, workspace: &Workspace) -> Result<Option<Source>> {
    if let Some(provide) = prepared.hooks().providers.get(namespace) {
        return Ok(Some(Source {
            namespace: namespace.to_owned(),
            provide: provide.clone(),
            supplier: Supplier::Provider { pack: None, file: None },
            subject: Subject::Provider { namespace: namespace.to_owned(), pack: None },
            // The program's own code can do what it likes anyway.
            grants: (Permissions::ALL, Limits::default()),
            optional: false,
            trouble: None,
        }));
    }
    let Some(provider) = prepared.provider(namespace)? else { return Ok(None) };
    let Provider { pack, provider, .. } = &provider;
    let ready = match prepared.engine() {
        None => Err(prepared.provider_unavailable(pack, provider, namespace)),
        Some(engine) => refuse_home(workspace)
            .and_then(|()| prepared.script(&prepared.provider_file(pack, provider, namespace)))
            .map(|script| ScriptHook { engine: engine.clone(), script }),
    };
    let (provide, trouble): (Arc<dyn Provide>, _) = match ready {
        Ok(hook) => (Arc::new(hook), None),
        Err(error) if provider.optional => (Arc::new(|_: &HookContext<'_>| Ok(Values::new())), Some(error)),
        Err(error) => return Err(error),
    };
    Ok(Some(Source {
        namespace: namespace.to_owned(),
        provide,
        supplier: Supplier::Provider { pack: Some(pack.clone()), file: Some(provider.file.clone()) },
        subject: Subject::Provider { namespace: namespace.to_owned(), pack: Some(pack.clone()) },
        grants: (provider.permissions, provider.limits),
        optional: provider.optional,
        trouble,
    }))
}

fn session(context: &Context) -> Values {
    let mut session = context.session.clone();
    if let Some(id) = &context.session_id {
        session.entry("session_id").or_insert_with(|| Json::from(id.as_str()));
    }
    session
}

/// A hook that does not return a required variable has forgotten it. One that returns none of those that it got most likely
/// has, too; but there may be a reason, so that is only said.
fn refuse_forgotten(prepared: &Prepared, before: &Values, changes: &Changes) -> Result<Option<Diagnostic>> {
    let prompt = prepared.prompt();
    let place = prompt.hooks.iter().find(|hook| hook.name == "pre_render").map(|hook| hook.place.clone());
    let finding = |message: String| {
        let diagnostic = Diagnostic::new(Code::HookReturn, message)
            .hint("end it with `return variables`: what is not returned is gone");
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
        let message =
            format!("`pre_render` of the prompt `{}` returned none of the variables that it got", prompt.id);
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

#[derive(Default)]
struct Providers {
    states: HashMap<String, State>,
    /// Which namespace waits for which, so that a circle is an error and not a standstill.
    waiting: HashMap<String, String>,
}

#[derive(Clone)]
enum State {
    Running,
    Done(Arc<Values>),
    Failed(Error),
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

    fn set_scope(&self, scope: Arc<Scope>) -> Arc<Scope> {
        *lock(&self.scope) = scope.clone();
        scope
    }

    /// Runs the providers, all at the same time, and gives the values with what they provided.
    fn provide(
        &self,
        sources: Vec<Source>,
        variables: &Variables,
        context: &Arc<Context>,
        notes: &mut Vec<Diagnostic>,
    ) -> Result<Arc<Scope>> {
        if sources.is_empty() {
            return Ok(lock(&self.scope).clone());
        }
        let results: Vec<Result<Arc<Values>>> = match sources.as_slice() {
            [one] => vec![self.run_provider(one, None, None)],
            many => std::thread::scope(|threads| {
                let running: Vec<_> = many
                    .iter()
                    .map(|source| threads.spawn(|| self.run_provider(source, None, None)))
                    .collect();
                running
                    .into_iter()
                    .map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
                    .collect()
            }),
        };
        let mut provided = Provided::default();
        let mut failures: Option<Error> = None;
        for (source, result) in sources.into_iter().zip(results) {
            match result {
                Ok(values) => {
                    provided.values =
                        provided.values.set(source.namespace.clone(), Json::Object((*values).clone()));
                    provided.suppliers.insert(source.namespace, source.supplier);
                }
                Err(error) if source.optional => notes.push(skipped(&source, &error)),
                Err(error) => {
                    failures = Some(match failures {
                        None => error,
                        Some(first) => error.into_diagnostics().into_iter().fold(first, Error::and),
                    });
                }
            }
        }
        match failures {
            Some(error) => Err(error),
            None => Ok(self.prepared.scope_with(variables, context, provided)),
        }
    }

    /// Runs a provider, or waits for it if it runs already, or gives what it gave; until the time of whoever asks is over.
    fn run_provider(
        &self,
        source: &Source,
        asking: Option<&str>,
        until: Option<Instant>,
    ) -> Result<Arc<Values>> {
        let namespace = source.namespace.as_str();
        let mut providers = lock(&self.providers);
        loop {
            match providers.states.get(namespace) {
                Some(State::Done(values)) => return Ok(values.clone()),
                Some(State::Failed(error)) => return Err(error.clone()),
                None => break,
                Some(State::Running) => {
                    if let Some(asking) = asking {
                        providers.waiting.insert(asking.to_owned(), namespace.to_owned());
                        if let Some(circle) = circle(&providers.waiting, asking) {
                            providers.waiting.remove(asking);
                            return Err(Refusal::failed(format!(
                                "providers ask each other in a circle: {circle}"
                            ))
                            .into());
                        }
                    }
                    let left = until
                        .map_or(Limits::LONGEST, |until| until.saturating_duration_since(Instant::now()));
                    if left.is_zero() {
                        let message = format!("{} did not answer in time", source.subject);
                        return Err(Refusal::new("TimeoutError", message).into());
                    }
                    let waited = self.finished.wait_timeout(providers, left);
                    providers = waited.unwrap_or_else(PoisonError::into_inner).0;
                    if let Some(asking) = asking {
                        providers.waiting.remove(asking);
                    }
                }
            }
        }
        providers.states.insert(namespace.to_owned(), State::Running);
        if let Some(asking) = asking {
            providers.waiting.insert(asking.to_owned(), namespace.to_owned());
        }
        drop(providers);
        // A closure that panics must not let the others wait for it.
        let running = Running { run: self, namespace };
        let result = match &source.trouble {
            Some(error) => Err(error.clone()),
            None => {
                let host = self.host(Some(namespace));
                let context = self.context(source.subject.clone(), source.grants, &host).until(until);
                source.provide.provide(&context).and_then(|values| {
                    let size = values.values().map(characters).sum();
                    self.check_size(&context, "provide", size)?;
                    Ok(Arc::new(values))
                })
            }
        };
        if let Some(asking) = asking {
            lock(&self.providers).waiting.remove(asking);
        }
        running.end(match &result {
            Ok(values) => State::Done(values.clone()),
            Err(error) => State::Failed(error.clone()),
        });
        result
    }

    fn check_size(&self, context: &HookContext<'_>, function: &str, characters: usize) -> Result<()> {
        let limit = context.limits.max_output_size;
        if characters <= limit {
            return Ok(());
        }
        let message = format!(
            "`{function}` of {} returned {characters} characters, and the limit is {limit}",
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

/// A provider that runs. However it ends, those that wait for it are told.
struct Running<'r> {
    run: &'r Run<'r>,
    namespace: &'r str,
}

impl Running<'_> {
    fn end(self, state: State) {
        lock(&self.run.providers).states.insert(self.namespace.to_owned(), state);
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut providers = lock(&self.run.providers);
        if let Some(state @ State::Running) = providers.states.get_mut(self.namespace) {
            *state =
                State::Failed(Refusal::failed(format!("the provider `{}` panicked", self.namespace)).into());
        }
        self.run.finished.notify_all();
    }
}

/// The circle that waiting for each other makes, if it does.
fn circle(waiting: &HashMap<String, String>, start: &str) -> Option<String> {
    let mut chain = vec![start];
    let mut at = start;
    while let Some(next) = waiting.get(at) {
        chain.push(next);
        if next == start {
            return Some(chain.join(" → "));
        }
        if chain.len() > waiting.len() + 1 {
            return None;
        }
        at = next;
    }
    None
}

fn skipped(source: &Source, error: &Error) -> Diagnostic {
    let message = format!("{} was skipped: {}", source.subject, error.diagnostic().message);
    let mut diagnostic =
        Diagnostic::new(Code::ProviderSkipped, message).hint_opt(error.diagnostic().hint.clone());
    diagnostic.place = error.diagnostic().place.clone();
    diagnostic
}

/// What one hook can ask of the render.
struct RunHost<'r> {
    run: &'r Run<'r>,
    /// The namespace whose provider asks; `None` for a hook.
    asking: Option<&'r str>,
}

impl Host for RunHost<'_> {
    fn read_file(&self, path: &str) -> Result<String, Refusal> {
        self.run.workspace.read(path)
    }

    fn http_request(&self, request: HttpRequest) -> Result<HttpResponse, Refusal> {
        match &self.run.hooks.http {
            Some(http) => http.request(&request),
            None => {
                Err(Refusal::failed("http_request: this program makes no HTTP requests (see Hooks::http)"))
            }
        }
    }

    fn llm_call(&self, request: ModelRequest) -> Result<String, Refusal> {
        let Some(model) = &self.run.hooks.model else {
            let message = "llm_call: no language model is connected: name a program that answers with --llm-command, or use \
                           Hooks::model in a Rust program";
            return Err(Refusal::failed(message));
        };
        let mut calls = lock(&self.run.model_calls);
        if *calls == MOST_MODEL_CALLS {
            let message = format!("llm_call: one render may ask {MOST_MODEL_CALLS} times, and it has");
            return Err(Refusal::permission(message));
        }
        *calls += 1;
        drop(calls);
        model.ask(&request)
    }

    fn render_template(&self, name: &str, values: Option<&Values>) -> Result<String, Refusal> {
        let scope = lock(&self.run.scope).clone();
        self.run.prepared.render_partial(name, values, &scope).map_err(|error| match error.code() {
            Code::MissingInclude => {
                Refusal::new("FileNotFoundError", format!("render_template: {}", error.diagnostic().message))
            }
            _ => {
                let refusal = Refusal::from(error);
                Refusal { message: format!("render_template: {}", refusal.message), ..refusal }
            }
        })
    }

    fn get_variable(&self, path: &str, until: Instant) -> Result<Json, Refusal> {
        let scope = lock(&self.run.scope).clone();
        let root = path.split(['.', '[']).next().unwrap_or(path);
        let given = scope.get(root);
        let value = match given {
            Some((layer, value)) if layer >= Layer::Provider => value,
            given => match source(self.run.prepared, root, &self.run.workspace)? {
                Some(source) => {
                    let values = self.run.run_provider(&source, self.asking, Some(until))?;
                    Json::Object((*values).clone())
                }
                None => match given {
                    Some((_, value)) => value,
                    None => return Err(self.unknown(root, &scope)),
                },
            },
        };
        follow(&value, root, &path[root.len()..])
    }

    fn printed(&self, subject: &Subject, function: &str, text: &str) {
        if let Some(listener) = &self.run.hooks.listener {
            listener(&Event::Printed {
                by: subject.to_string(),
                function: function.to_owned(),
                text: text.to_owned(),
            });
        }
    }
}

impl RunHost<'_> {
    fn unknown(&self, root: &str, scope: &Scope) -> Refusal {
        let mut names = scope.names();
        names.extend(self.run.prepared.provided_namespaces());
        names.extend(self.run.hooks.providers.keys().cloned());
        let near = did_you_mean(&nearest(root, names.iter().map(String::as_str)));
        let hint = near.map(|near| format!("; {near}")).unwrap_or_default();
        Refusal::new("LookupError", format!("get_variable: there is no variable or provider `{root}`{hint}"))
    }
}

/// Follows the rest of a path, as in `.branch` or `[0].name`.
fn follow(value: &Json, root: &str, path: &str) -> Result<Json, Refusal> {
    let mut at = value;
    let mut shown = root.to_owned();
    for step in path.split(['.', '[']).filter(|step| !step.is_empty()) {
        let step = step.trim_end_matches(']').trim_matches(['"', '\'']);
        let next = match at {
            Json::Object(object) => object.get(step),
            Json::Array(items) => step.parse::<usize>().ok().and_then(|index| items.get(index)),
            _ => None,
        };
        at = next
            .ok_or_else(|| Refusal::new("LookupError", format!("get_variable: `{shown}` has no `{step}`")))?;
        shown = format!("{shown}.{step}");
    }
    Ok(at.clone())
}
