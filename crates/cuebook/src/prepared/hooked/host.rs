//! What one hook can ask of the render that it takes part in.

use std::time::Instant;

use serde_json::Value as Json;

use super::{Run, lock, providers};
use crate::error::{Code, did_you_mean, nearest};
use crate::hooks::{Event, Host, HttpRequest, HttpResponse, ModelRequest, Refusal, Subject, Values};
use crate::variables::{Layer, Scope};

/// Requests to a language model that one render may make.
const MAX_MODEL_CALLS: usize = 16;

/// What one hook can ask of the render.
pub(super) struct RunHost<'r> {
    pub(super) run: &'r Run<'r>,
    /// The namespace whose provider asks; `None` for a hook.
    pub(super) asking: Option<&'r str>,
}

impl Host for RunHost<'_> {
    fn read_file(&self, path: &str) -> Result<String, Refusal> {
        self.run.workspace.read(path)
    }

    fn http_request(&self, request: HttpRequest) -> Result<HttpResponse, Refusal> {
        match &self.run.hooks.http {
            Some(http) => http.request(&request),
            None => {
                Err(Refusal::failed("http_request: this program cannot make HTTP requests (see Hooks::http)"))
            }
        }
    }

    fn llm_call(&self, request: ModelRequest) -> Result<String, Refusal> {
        let Some(model) = &self.run.hooks.model else {
            let message = "llm_call: no language model is connected: pass --llm-command PROGRAM, or use Hooks::model in \
                 a Rust program";
            return Err(Refusal::failed(message));
        };
        let mut calls = lock(&self.run.model_calls);
        if *calls == MAX_MODEL_CALLS {
            let message = format!("llm_call: the limit is {MAX_MODEL_CALLS} calls per render");
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
            given => match providers::source(self.run.prepared, root, &self.run.workspace)? {
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
        Refusal::new("LookupError", format!("get_variable: unknown variable or provider `{root}`{hint}"))
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
