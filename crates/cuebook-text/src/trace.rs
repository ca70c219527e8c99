//! Spans for a tracer, through the `tracing` crate: one for each step that a prompt takes.
//!
//! The names are Prompty's: `load`, `render`, `parse`, `prepare` (the body of a request) and `process` (a reply). Each span has a
//! `signature` and the `prompt`, and while a tracer listens also `inputs` and `result` or `error` as JSON text without secrets
//! ([`crate::redact`]). Without a listener none of these is computed.
//!
//! Without the feature `tracing` nothing listens, and the spans are nothing.
//!
//! Crates that run prompts make their spans with the target `cuebook`, and fill `inputs`, `result` and `error` with [`given`]
//! and [`outcome`], which remove secrets.

use serde_json::{Value as Json, json};

use crate::error::Error;
use crate::redact::{self, Secrets};

#[cfg(not(feature = "tracing"))]
mod disabled;

/// Makes a span of a name that is known when the program is compiled, as `tracing` needs it.
#[cfg(feature = "tracing")]
#[macro_export]
macro_rules! span {
    ($name:literal, $signature:literal, $prompt:expr) => {
        $crate::trace::tracing::info_span!(
            target: "cuebook",
            $name,
            signature = $signature,
            prompt = $prompt,
            inputs = $crate::trace::tracing::field::Empty,
            result = $crate::trace::tracing::field::Empty,
            error = $crate::trace::tracing::field::Empty,
            error.type = $crate::trace::tracing::field::Empty,
        )
    };
}
/// A span that has no listener.
#[cfg(not(feature = "tracing"))]
#[macro_export]
macro_rules! span {
    ($name:literal, $signature:literal, $prompt:expr) => {{
        let _: &str = $prompt;
        $crate::trace::Span
    }};
}
pub use crate::span;
#[cfg(not(feature = "tracing"))]
pub use disabled::Span;
#[doc(hidden)]
#[cfg(feature = "tracing")]
pub use tracing::{self, Span};

/// Notes the input of a step, if there is a listener. Returns the secrets in it, which may show in the result as well.
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

/// The secrets among the inputs of a step, if a tracer listens.
pub fn secrets(span: &Span, inputs: impl FnOnce() -> Json) -> Secrets {
    let mut secrets = Secrets::new();
    if !span.is_disabled() {
        secrets.field("inputs", &mut inputs());
    }
    secrets
}

/// Treats these values as secrets, if a tracer listens.
pub fn keep_secret<'v>(span: &Span, secrets: &mut Secrets, values: impl Iterator<Item = &'v Json>) {
    if !span.is_disabled() {
        for value in values {
            secrets.field("secret", &mut value.clone());
        }
    }
}

/// Notes how a step ended, if there is a listener, without the secrets that are known: its `result`, or its `error` and the kind
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
    let record = |field: &str, mut reported: Json| {
        let mut secrets = secrets;
        secrets.field(field, &mut reported);
        secrets.scrub(&mut reported);
        redact::scrub_kept(&mut reported);
        span.record(field, redact::field_text(&reported));
    };
    match outcome {
        Ok(value) => record("result", result(value)),
        Err(error) => {
            span.record("error.type", error.kind().name());
            record("error", json!({"exception": error.kind().name(), "message": error.diagnostic().message}));
        }
    }
}
