//! Makes spans what the conventions for generative AI ask for, when they end.
//!
//! The conventions are still called experimental; every name that this crate itself knows stands here.

use std::sync::PoisonError;
use std::time::Duration;

use cuebook::redact::{Secrets, field_text, field_value, scrub_kept};
use opentelemetry::trace::{SpanKind, Status};
use opentelemetry::{Array, Context, Key, KeyValue, StringValue, Value};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{Span, SpanData, SpanProcessor};
use serde_json::json;

use super::watch;
use crate::frame::error_of;
use crate::limits::cut_text;

const OPERATION: &str = "gen_ai.operation.name";
const FINISH_REASONS: &str = "gen_ai.response.finish_reasons";
const ERROR_TYPE: &str = "error.type";
/// Operations that are calls of a model, and so calls of an outside service.
const CALLS: [&str; 2] = ["chat", "embeddings"];
/// Fields that hold what was said, or a part of it.
const CONTENT: [&str; 3] = ["inputs", "result", "error"];
/// Whole numbers, which the bridge writes as text when they were recorded without a sign.
const COUNTS: [&str; 3] =
    ["gen_ai.request.max_tokens", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"];
/// Collectors refuse what is too large.
const LONGEST_VALUE: usize = 64 * 1024;

/// Redacts spans that have ended, gives them their kind and status, and then hands them on.
#[derive(Debug)]
pub(super) struct Conventional<P> {
    inner: P,
    content: bool,
}

impl<P: SpanProcessor> Conventional<P> {
    /// Hands spans on to `inner`, with what was said only if `content` allows it.
    pub(super) fn new(inner: P, content: bool) -> Conventional<P> {
        Conventional { inner, content }
    }
}

impl<P: SpanProcessor> SpanProcessor for Conventional<P> {
    fn on_start(&self, span: &mut Span, context: &Context) {
        self.inner.on_start(span, context);
    }

    fn on_end(&self, mut span: SpanData) {
        let secrets = watch::of_the_span_that_ends();
        redact(&mut span, &mut secrets.lock().unwrap_or_else(PoisonError::into_inner));
        conventional(&mut span, self.content);
        self.inner.on_end(span);
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}

fn redact(span: &mut SpanData, secrets: &mut Secrets) {
    let events = span.events.events.iter_mut().flat_map(|event| event.attributes.iter_mut());
    for KeyValue { key, value, .. } in span.attributes.iter_mut().chain(events) {
        match value {
            Value::String(text) => {
                let before = field_value(text.as_str());
                let mut after = before.clone();
                secrets.field(key.as_str(), &mut after);
                scrub_kept(&mut after);
                if after != before {
                    *value = Value::from(field_text(&after));
                }
            }
            Value::I64(number) => {
                let mut after = json!(*number);
                secrets.field(key.as_str(), &mut after);
                if after.is_string() {
                    *value = Value::from(field_text(&after));
                }
            }
            Value::Array(Array::String(texts)) => {
                for text in texts {
                    let mut after = json!(text.as_str());
                    secrets.field(key.as_str(), &mut after);
                    scrub_kept(&mut after);
                    *text = StringValue::from(field_text(&after));
                }
            }
            _ => {}
        }
    }
    if let Status::Error { description } = &mut span.status {
        let mut after = json!(secrets.scrub_text(description));
        scrub_kept(&mut after);
        *description = field_text(&after).into();
    }
}

/// Kind, status and types. Names stay as the fields were called.
fn conventional(span: &mut SpanData, content: bool) {
    let text = |span: &SpanData, name: &str| {
        span.attributes.iter().find(|it| it.key.as_str() == name).map(|it| it.value.as_str().into_owned())
    };
    let calls =
        span.name == "execute" || text(span, OPERATION).is_some_and(|it| CALLS.contains(&it.as_str()));
    span.span_kind = if calls { SpanKind::Client } else { SpanKind::Internal };

    let kind = text(span, ERROR_TYPE);
    if let Some(reported) = text(span, "error") {
        let (exception, message) = error_of(&field_value(&reported), kind.as_deref());
        if kind.is_none() {
            span.attributes.push(KeyValue::new(ERROR_TYPE, exception));
        }
        span.status = Status::error(message);
    } else if let Some(kind) = kind {
        span.status = Status::error(kind);
    }

    if !content {
        span.attributes.retain(|it| !CONTENT.contains(&it.key.as_str()));
    }
    for KeyValue { key, value, .. } in &mut span.attributes {
        let Value::String(text) = value else { continue };
        if let Some(typed) = typed(key, text.as_str()) {
            *value = typed;
        } else if text.as_str().len() > LONGEST_VALUE {
            *value = Value::from(cut_text(text.as_str(), LONGEST_VALUE));
        }
    }
}

/// The value that the conventions want instead of a text.
fn typed(key: &Key, text: &str) -> Option<Value> {
    if COUNTS.contains(&key.as_str()) {
        return text.parse::<i64>().ok().map(Value::I64);
    }
    if key.as_str() == FINISH_REASONS {
        let reasons = match field_value(text) {
            serde_json::Value::Array(reasons) => {
                reasons.iter().map(|it| StringValue::from(field_text(it))).collect()
            }
            _ => vec![StringValue::from(text.to_owned())],
        };
        return Some(Value::Array(Array::String(reasons)));
    }
    None
}
