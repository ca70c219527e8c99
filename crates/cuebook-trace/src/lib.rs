//! Where the spans of Cuebook go: `.tracy` files, the console, a collector of OpenTelemetry.
//!
//! ```no_run
//! use cuebook_trace::Tracing;
//!
//! let tracing = Tracing { tracy: Some("traces".into()), console: false, otel: false };
//! let guard = tracing.install()?; // dropped at the end of the program: what is under way is sent then
//! # drop(guard);
//! # Ok::<(), cuebook_trace::InstallError>(())
//! ```
//!
//! A program that has a subscriber of its own adds the layers to it: [`Recorder`] with its backends, and with the
//! feature `otel` what `otel::layer` builds.
//!
//! # What a span says
//!
//! The engine emits spans through the `tracing` crate and knows nothing of this one. Both keep to this convention:
//!
//! | | |
//! | --- | --- |
//! | target | `cuebook` (or below: `cuebook::…`); everything else is left to other layers |
//! | level | `INFO`; `load` is `DEBUG` |
//! | names | `load`, `render`, `parse`, `prepare`, `execute`, `process`, `run`, `invoke`, `turn`, `execute_tool`, `PromptyStream` |
//! | `signature` | what was called: `cuebook.render` |
//! | `prompt` | the id of the prompt |
//! | `inputs` | JSON text; worth computing only if the span is enabled (`!span.is_disabled()`) |
//! | `result` | text, or JSON text (see [`cuebook::redact::field_text`]) |
//! | `error` | the error as JSON text ([`cuebook::Error::to_json`]), or its message |
//! | `gen_ai.…`, `error.type` | by the names of OpenTelemetry: `gen_ai.operation.name` (`chat`, `embeddings`, `turn`, `execute_tool`), `gen_ai.provider.name`, `gen_ai.request.model`, `gen_ai.request.temperature`, `gen_ai.request.max_tokens`, `gen_ai.usage.input_tokens`, `gen_ai.usage.output_tokens`, `gen_ai.response.finish_reasons` (JSON text of a list), `gen_ai.response.id`, `gen_ai.response.model` |
//! | other fields | free; they are reported unchanged |
//!
//! A field that is known later is declared with `tracing::field::Empty` and recorded once.
//!
//! ```
//! let span = tracing::info_span!(
//!     target: "cuebook", "render", signature = "cuebook.render", prompt = "greeting",
//!     inputs = tracing::field::Empty, result = tracing::field::Empty, error = tracing::field::Empty,
//! );
//! if !span.is_disabled() {
//!     span.record("inputs", r#"{"name":"Ada"}"#);
//! }
//! ```
//!
//! # Secrets
//!
//! Every backend here redacts what it gets ([`cuebook::redact`]): by names, by look, and what was a secret elsewhere in
//! the same trace. Subscribers of others do not; so that those are safe as well, the engine may pass `inputs` and
//! `result` through one [`cuebook::redact::Secrets`] before it records them. Twice does no harm.
//!
//! # What a backend must never do
//!
//! Fail a run. Folders that cannot be written, collectors that are away and panics inside of a backend cost the trace and
//! one line on stderr.
//!
//! | file | what it does |
//! | --- | --- |
//! | `recorder.rs` | the layer: spans become frames, frames a tree, and a finished tree goes to the backends |
//! | `frame.rs` | one frame, its usage, its end |
//! | `limits.rs` | how much of it is kept |
//! | `tracy.rs` | backend: a `.tracy` file per trace |
//! | `console.rs` | backend: lines for people |
//! | `otel.rs`, `otel/` | feature `otel`: the exporter |
//! | `install.rs` | all of it in one call |

mod console;
mod frame;
mod install;
mod limits;
#[cfg(feature = "otel")]
pub mod otel;
mod recorder;
mod tracy;

pub use console::Console;
pub use frame::{Frame, Usage};
pub use install::{Guard, InstallError, Tracing};
pub use limits::TraceLimits;
pub use recorder::{Backend, Recorder};
pub use tracy::Tracy;

/// Begins one call: everything that this thread does until the result is dropped is one trace, below a span `call`.
///
/// Without it, `render` and then `wire` leave two traces, because each is complete when it returns.
///
/// ```
/// # use cuebook::{Book, Context, Variables};
/// let call = cuebook_trace::call();
/// let variables = Variables::new().set("agent_name", "Rumi");
/// let rendered = Book::open(".").render("general_system", &variables, &Context::default())?;
/// let messages = rendered.messages()?;
/// drop(call);
/// # assert_eq!(messages.len(), 1);
/// # Ok::<(), cuebook::Error>(())
/// ```
pub fn call() -> tracing::span::EnteredSpan {
    tracing::info_span!(target: "cuebook", "call", signature = "cuebook.call").entered()
}

/// Whether a span is one of Cuebook's, which is what layers of this crate are filtered by.
pub fn is_ours(metadata: &tracing::Metadata<'_>) -> bool {
    let target = metadata.target();
    metadata.is_span() && (target == "cuebook" || target.starts_with("cuebook::"))
}

/// Reports trouble with a trace. Not with `eprintln!`, which panics without a reader.
fn warn(message: &str) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "warning: {message}");
}
