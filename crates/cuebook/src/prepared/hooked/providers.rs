//! The providers of one render: which are needed, each ready to run, and each run at most once.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Instant;

use serde_json::Value as Json;

use super::{Run, ScriptHook, characters, lock};
use crate::error::{Code, Diagnostic, Error, Result};
use crate::hooks::{HookContext, Provide, Refusal, Subject, Values, Workspace, called};
use crate::prepared::{Prepared, Provider};
use crate::prompt::{Limits, Permissions};
use crate::variables::{Context, Layer, Provided, Scope, Supplier, Variables};

/// A provider that is ready to run.
pub(super) struct Source {
    pub(super) namespace: String,
    provide: Arc<dyn Provide>,
    supplier: Supplier,
    pub(super) subject: Subject,
    grants: (Permissions, Limits),
    optional: bool,
    /// Whether its code runs git.
    pub(super) mentions_git: bool,
    /// What kept it from being ready, if a render may go on without it.
    trouble: Option<Error>,
}

/// The providers that the templates need, each ready to run. What the caller or the agent gave is not provided again.
pub(super) fn used_providers(
    prepared: &Prepared,
    scope: &Scope,
    workspace: &Workspace,
) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    for namespace in prepared.namespaces() {
        if scope.layer(&namespace).is_none_or(|layer| layer < Layer::Agent) {
            sources.extend(source(prepared, &namespace, workspace)?);
        }
    }
    Ok(sources)
}

/// The provider of a namespace: the program's, or the one pack's that offers it or was chosen.
pub(super) fn source(prepared: &Prepared, namespace: &str, workspace: &Workspace) -> Result<Option<Source>> {
    if let Some(provide) = prepared.hooks().providers.get(namespace) {
        return Ok(Some(Source {
            namespace: namespace.to_owned(),
            provide: provide.clone(),
            supplier: Supplier::Provider { pack: None, file: None },
            subject: Subject::Provider { namespace: namespace.to_owned(), pack: None },
            // The program's own code can do what it likes anyway.
            grants: (Permissions::ALL, Limits::default()),
            optional: false,
            mentions_git: false,
            trouble: None,
        }));
    }
    let Some(provider) = prepared.provider(namespace)? else { return Ok(None) };
    let Provider { pack, provider, .. } = &provider;
    let ready = match prepared.engine() {
        None => Err(prepared.provider_unavailable(pack, provider, namespace)),
        Some(engine) => prepared
            .refuse_home(workspace, None)
            .and_then(|()| prepared.script(&prepared.provider_file(pack, provider, namespace)))
            .map(|script| ScriptHook { engine: engine.clone(), script }),
    };
    let mentions_git = ready.as_ref().is_ok_and(|hook| hook.script.mentions_git);
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
        mentions_git,
        trouble,
    }))
}

#[derive(Default)]
pub(super) struct Providers {
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

impl Run<'_> {
    /// Runs the providers, all at the same time, and gives the values with what they provided.
    pub(super) fn provide(
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
                Err(error) if source.optional => {
                    notes.push(skipped(&source, &error));
                    // Templates ask for what it would provide, as in {% if git.available %}: nothing is there.
                    if lock(&self.scope).layer(&source.namespace).is_none() {
                        provided.values =
                            provided.values.set(source.namespace.clone(), Json::Object(Values::new()));
                        provided.suppliers.insert(source.namespace, source.supplier);
                    }
                }
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

    /// Runs a provider, or waits for it if it runs already, or gives what it gave; until the caller's time is over.
    pub(super) fn run_provider(
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
                                "providers call each other in a cycle: {circle}"
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
        // However it ends, the others must not wait for it.
        let running = Running { run: self, namespace };
        let result = match &source.trouble {
            Some(error) => Err(error.clone()),
            None => {
                let host = self.host(Some(namespace));
                let context = self.context(source.subject.clone(), source.grants, &host).until(until);
                called("provide", &context, || source.provide.provide(&context)).and_then(|values| {
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
}

/// A provider that runs. However it ends, its waiters are notified.
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
