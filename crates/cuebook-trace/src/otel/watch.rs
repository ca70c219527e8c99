//! The secrets of a trace, for spans that leave one by one.
//!
//! A span is exported when it ends, seconds before its parent does; but it is the parent's inputs that say what is a
//! secret. So a layer beside the bridge listens to what spans say while they are open. The bridge ends a span on the
//! thread, and in the moment, in which this layer hears of its end, so the way from the one to the other is that thread.
//! A secret that was not declared before a span ends cannot be known.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cuebook::redact::{Secrets, field_value};
use serde_json::json;
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

thread_local! {
    static ENDING: RefCell<Option<Arc<Mutex<Secrets>>>> = const { RefCell::new(None) };
}

/// What is known of the trace whose span ends now on this thread.
pub(super) fn of_the_span_that_ends() -> Arc<Mutex<Secrets>> {
    // `try_with`: a span may end while its thread does.
    ENDING.try_with(|ending| ending.borrow_mut().take()).ok().flatten().unwrap_or_default()
}

/// Listens for secrets. It must hear of a span's end before the bridge does.
pub(super) struct SecretListener;

struct Watched(Arc<Mutex<Secrets>>);

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for SecretListener {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|span| crate::is_ours(span.metadata())) else { return };
        let above = span.scope().skip(1).find_map(|above| {
            above.extensions().get::<Watched>().map(|Watched(secrets)| Arc::clone(secrets))
        });
        let secrets = above.unwrap_or_default();
        attributes.record(&mut Listening(&mut secrets.lock().unwrap_or_else(PoisonError::into_inner)));
        span.extensions_mut().replace(Watched(secrets));
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        if let Some(Watched(secrets)) = span.extensions().get::<Watched>() {
            values.record(&mut Listening(&mut secrets.lock().unwrap_or_else(PoisonError::into_inner)));
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let secrets = span.extensions().get::<Watched>().map(|Watched(secrets)| Arc::clone(secrets));
        let _ = ENDING.try_with(|ending| *ending.borrow_mut() = secrets);
    }
}

struct Listening<'s>(&'s mut Secrets);

impl Visit for Listening<'_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.field(field.name(), &mut field_value(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.field(field.name(), &mut json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.field(field.name(), &mut json!(value));
    }

    fn record_f64(&mut self, _: &Field, _: f64) {}

    fn record_bool(&mut self, _: &Field, _: bool) {}

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.record_str(field, &format!("{value:?}"));
    }
}
