//! The layer that collects: spans become frames, frames a tree, and a tree whose root has ended goes to the backends.
//!
//! A span is a frame as long as it is open, kept in the extensions of the registry, so that it may be entered on any
//! thread and traces of several roots never meet. Its parent cannot end before it, which is the registry's promise.
//! Backends run on the thread that ends the root.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use std::{fmt, io};

use cuebook::redact::{Secrets, field_value, scrub_kept};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use tracing::Subscriber;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::{LookupSpan, SpanRef};

use crate::{Frame, TraceLimits};

/// Takes traces that have ended.
pub trait Backend: Send + Sync {
    /// What people call it, in a warning: `the folder traces`.
    fn name(&self) -> String;

    /// Takes a trace. An error (or a panic) costs the trace and is reported once; it never reaches the run.
    fn finished(&self, root: &Frame) -> io::Result<()>;
}

/// The layer that collects spans of Cuebook and gives whole traces to its backends.
///
/// A subscriber should have one of them; it may have many backends. Filter it with [`is_ours`](crate::is_ours), so that
/// spans of others stay as cheap as they were:
///
/// ```
/// use cuebook_trace::{Console, Recorder, is_ours};
/// use tracing_subscriber::{Layer, filter::filter_fn, layer::SubscriberExt};
///
/// let layer = Recorder::new().with(Console::stderr());
/// let subscriber = tracing_subscriber::registry().with(layer.with_filter(filter_fn(is_ours)));
/// # drop(subscriber);
/// ```
#[derive(Default)]
pub struct Recorder {
    backends: Vec<Listed>,
    limits: TraceLimits,
    warning: Option<Box<Warning>>,
}

/// Hears of trouble.
type Warning = dyn Fn(&str) + Send + Sync;

struct Listed {
    backend: Box<dyn Backend>,
    warned: AtomicBool,
}

/// What the frames of one trace share.
#[derive(Default)]
struct Shared {
    secrets: Mutex<Secrets>,
    frames: AtomicUsize,
    bytes: AtomicUsize,
    order: AtomicU64,
}

/// A frame whose span is open.
struct Open {
    shared: Arc<Shared>,
    name: &'static str,
    start: Timestamp,
    clock: Instant,
    /// Its place among the frames of the trace, by their beginning.
    order: u64,
    depth: usize,
    fields: Map<String, Value>,
    ended: Vec<(u64, Frame)>,
    left_out: u64,
}

/// A span that is not kept: its parent counts it.
struct UncountedSpan;

impl Recorder {
    /// A recorder without backends.
    pub fn new() -> Recorder {
        Recorder::default()
    }

    /// With one more backend.
    pub fn with(mut self, backend: impl Backend + 'static) -> Recorder {
        self.backends.push(Listed { backend: Box::new(backend), warned: AtomicBool::new(false) });
        self
    }

    /// With other limits.
    pub fn limits(mut self, limits: TraceLimits) -> Recorder {
        self.limits = limits;
        self
    }

    /// Reports trouble elsewhere than on stderr.
    pub fn on_warning(mut self, warning: impl Fn(&str) + Send + Sync + 'static) -> Recorder {
        self.warning = Some(Box::new(warning));
        self
    }

    fn record(&self, open: &mut Open, values: Map<String, Value>) {
        let mut secrets = open.shared.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        for (name, mut value) in values {
            // First redacted, then cut: half of a secret has lost its look.
            secrets.field(&name, &mut value);
            scrub_kept(&mut value);
            let used = open.shared.bytes.load(Ordering::Relaxed);
            let size = self.limits.cut(&mut value, self.limits.trace_bytes.saturating_sub(used));
            open.shared.bytes.fetch_add(size, Ordering::Relaxed);
            open.fields.insert(name, value);
        }
    }

    fn deliver(&self, root: &Frame) {
        for Listed { backend, warned } in &self.backends {
            let outcome = catch_unwind(AssertUnwindSafe(|| (backend.finished(root), backend.name())));
            let message = match outcome {
                Ok((Ok(()), _)) => continue,
                Ok((Err(error), name)) => format!(
                    "cannot write a trace to {name}: {error}; the run continues, and later traces may be lost too"
                ),
                Err(_) => "a trace backend panicked; the trace is lost, and the run continues".to_owned(),
            };
            if !warned.swap(true, Ordering::Relaxed) {
                match &self.warning {
                    Some(warning) => warning(&message),
                    None => crate::warn(&message),
                }
            }
        }
    }
}

impl<S: Subscriber + for<'l> LookupSpan<'l>> Layer<S> for Recorder {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let Some(span) = context.span(id).filter(|span| crate::is_ours(span.metadata())) else { return };
        let (shared, depth) = match shared_above(&span) {
            Some((shared, depth)) => (shared, depth + 1),
            None => (Arc::new(Shared::default()), 1),
        };
        let many = shared.frames.fetch_add(1, Ordering::Relaxed) >= self.limits.frames;
        if depth > 1 && (many || depth > self.limits.depth) {
            span.extensions_mut().replace(UncountedSpan);
            return;
        }
        let order = shared.order.fetch_add(1, Ordering::Relaxed);
        let mut open = Open {
            shared,
            name: span.name(),
            start: Timestamp::now(),
            clock: Instant::now(),
            order,
            depth,
            fields: Map::new(),
            ended: Vec::new(),
            left_out: 0,
        };
        let mut fields = SpanFields::default();
        attributes.record(&mut fields);
        self.record(&mut open, fields.0);
        span.extensions_mut().replace(open);
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, context: Context<'_, S>) {
        let Some(span) = context.span(id) else { return };
        let mut fields = SpanFields::default();
        let mut extensions = span.extensions_mut();
        if let Some(open) = extensions.get_mut::<Open>() {
            values.record(&mut fields);
            self.record(open, fields.0);
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Some(span) = context.span(&id) else { return };
        let (open, left_out) = {
            let mut extensions = span.extensions_mut();
            (extensions.remove::<Open>(), extensions.remove::<UncountedSpan>().is_some())
        };
        if left_out {
            with_open_above(&span, |above| above.left_out += 1);
        }
        let Some(open) = open else { return };
        let (shared, order) = (Arc::clone(&open.shared), open.order);
        let mut frame = Some(open.end());
        with_open_above(&span, |above| above.ended.extend(frame.take().map(|frame| (order, frame))));
        if let Some(mut root) = frame {
            root.scrub(&shared.secrets.lock().unwrap_or_else(PoisonError::into_inner));
            root.scrub_kept();
            self.deliver(&root);
        }
    }
}

impl Open {
    fn end(mut self) -> Frame {
        let duration = self.clock.elapsed();
        self.ended.sort_by_key(|(order, _)| *order);
        let mut frame = Frame {
            name: self.name.to_owned(),
            start: self.start,
            duration,
            fields: self.fields,
            frames: self.ended.into_iter().map(|(_, frame)| frame).collect(),
            usage: None,
            left_out: self.left_out,
        };
        frame.hoist_usage();
        frame
    }
}

/// What the nearest frame around a span shares, and how deep that frame is.
fn shared_above<'l, S: LookupSpan<'l>>(span: &SpanRef<'l, S>) -> Option<(Arc<Shared>, usize)> {
    let mut found = None;
    with_open_above(span, |open| found = Some((Arc::clone(&open.shared), open.depth)));
    found
}

/// Shows the nearest frame around a span. Spans of others, and those that are left out, may lie between.
fn with_open_above<'l, S: LookupSpan<'l>>(span: &SpanRef<'l, S>, see: impl FnOnce(&mut Open)) {
    for above in span.scope().skip(1) {
        let mut extensions = above.extensions_mut();
        if let Some(open) = extensions.get_mut::<Open>() {
            return see(open);
        }
    }
}

/// The values that a span was given.
#[derive(Default)]
struct SpanFields(Map<String, Value>);

impl SpanFields {
    fn insert(&mut self, field: &Field, value: Value) {
        self.0.insert(field.name().to_owned(), value);
    }
}

impl Visit for SpanFields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.insert(field, field_value(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.insert(field, json!(value));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.insert(field, json!(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.insert(field, json!(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        // JSON has no word for what is not a number.
        self.insert(field, if value.is_finite() { json!(value) } else { json!(value.to_string()) });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.insert(field, field_value(&format!("{value:?}")));
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<String> = self.backends.iter().map(|listed| listed.backend.name()).collect();
        f.debug_struct("Recorder")
            .field("backends", &names)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
