//! What the engine tells a tracer: one span for each step that a prompt takes, through the `tracing` crate.
//!
//! The names are Prompty's: `load`, `render`, `parse`, `prepare` (the body of a request) and `process` (a reply, told by its
//! interface); what sends requests tells the others. Each span has a `signature`, the `prompt`, and
//! for whoever listens its `inputs` and its `result` or `error` as JSON text, with secrets taken out ([`crate::redact`]). Nothing of
//! that is made while nobody listens.
//!
//! Crates that run prompts tell their spans in the same way: they make them with `tracing`, of the target `cuebook`, and fill
//! `inputs`, `result` and `error` with [`given`] and [`outcome`], which take out secrets.

use serde_json::{Map, Value as Json, json};
use tracing::Span;

use crate::error::Error;
use crate::prompt::Prompt;
use crate::redact::{self, Secrets};
use crate::variables::Variables;

/// Makes a span of a name that is known when the program is compiled, as `tracing` wants it.
macro_rules! span {
    ($name:literal, $signature:literal, $prompt:expr) => {
        tracing::info_span!(
            target: "cuebook",
            $name,
            signature = $signature,
            prompt = $prompt,
            inputs = tracing::field::Empty,
            result = tracing::field::Empty,
            error = tracing::field::Empty,
            error.type = tracing::field::Empty,
        )
    };
}
pub(crate) use span;

/// Notes the inputs of a step, if somebody listens. Returns the secrets among them, which may show in the result as well.
pub(crate) fn inputs(span: &Span, variables: &Variables) -> Secrets {
    let (secrets, values) = secrets(span, variables);
    if !span.is_disabled() {
        span.record("inputs", values.to_string());
    }
    secrets
}

/// The secrets among the inputs of a step, and the inputs without them, if somebody listens.
pub(crate) fn secrets(span: &Span, variables: &Variables) -> (Secrets, Json) {
    let mut secrets = Secrets::new();
    if span.is_disabled() {
        return (secrets, Json::Null);
    }
    let values: Map<String, Json> =
        variables.names().filter_map(|name| Some((name.to_owned(), variables.get(name)?))).collect();
    let mut values = Json::Object(values);
    secrets.field("inputs", &mut values);
    redact::scrub_kept(&mut values);
    (secrets, values)
}

/// Notes what a step was given, if somebody listens. Returns the secrets in it, which may show in the result as well.
pub fn given(span: &Span, inputs: impl FnOnce() -> Json) -> Secrets {
    let mut secrets = Secrets::new();
    if !span.is_disabled() {
        let mut inputs = inputs();
        secrets.field("inputs", &mut inputs);
        redact::scrub_kept(&mut inputs);
        span.record("inputs", redact::field_text(&inputs));
    }
    secrets
}

/// Takes what a prompt got from the environment for a secret.
pub(crate) fn keep_secret(span: &Span, secrets: &mut Secrets, prompt: &Prompt) {
    if !span.is_disabled() {
        for variable in prompt.variables.iter().filter(|variable| variable.is_secret) {
            let mut value = variable.default.clone().unwrap_or_default();
            secrets.field("secret", &mut value);
        }
    }
}

/// Notes how a step ended, if somebody listens, without the secrets that are known: its `result`, or its `error` and the kind
/// of that. The span must have declared these fields.
pub fn outcome<T>(
    span: &Span,
    secrets: Secrets,
    outcome: &Result<T, Error>,
    result: impl FnOnce(&T) -> Json,
) {
    if span.is_disabled() {
        return;
    }
    let tell = |field: &str, mut told: Json| {
        let mut secrets = secrets;
        secrets.field(field, &mut told);
        secrets.scrub(&mut told);
        redact::scrub_kept(&mut told);
        span.record(field, redact::field_text(&told));
    };
    match outcome {
        Ok(value) => tell("result", result(value)),
        Err(error) => {
            span.record("error.type", error.kind().name());
            tell("error", json!({"exception": error.kind().name(), "message": error.diagnostic().message}));
        }
    }
}
