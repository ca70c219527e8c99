//! Sends spans to a collector of OpenTelemetry, over OTLP in protobuf over HTTP.
//!
//! The standard variables say where and how: `OTEL_EXPORTER_OTLP_ENDPOINT` (or `…_TRACES_ENDPOINT`),
//! `OTEL_EXPORTER_OTLP_HEADERS`, `OTEL_EXPORTER_OTLP_TIMEOUT`, `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`,
//! `OTEL_TRACES_SAMPLER`. What was said to a model, and what it said, is sent only with
//! `OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true`, as the conventions want it.
//!
//! Spans are bridged by `tracing-opentelemetry`, which passes fields on by their names; `otel/spans.rs` redacts them
//! and makes them what the conventions ask for, before they are queued. A thread of its own sends them, so that no run waits.

mod client;
mod spans;
mod warning;
mod watch;

use std::fmt;
use std::time::Duration;

use opentelemetry::trace::TracerProvider as _;
use opentelemetry_otlp::{Protocol, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{
    BatchSpanProcessor, SdkTracerProvider, SimpleSpanProcessor, SpanExporter, SpanProcessor,
};
use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::registry::LookupSpan;

use spans::Conventional;
use warning::Warning;
use watch::SecretListener;

/// The variable that allows to send what was said.
pub const CAPTURE: &str = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT";

/// What sends the spans. It must live as long as spans shall be sent.
pub struct Provider(SdkTracerProvider);

impl Provider {
    /// Sends to the collector that the environment names; `Err` says what is wrong with its variables.
    pub fn from_environment() -> Result<Provider, String> {
        let exporter = opentelemetry_otlp::SpanExporter::builder()
            .with_http()
            .with_protocol(Protocol::HttpBinary)
            .with_http_client(client::Client::new(timeout()))
            .build()
            .map_err(|error| error.to_string())?;
        let sends = BatchSpanProcessor::builder(Warning::new(exporter)).build();
        Ok(Provider::with(sends, captures_content()))
    }

    /// Hands every span to an exporter when it ends, for tests and for exporters of one's own.
    pub fn to(exporter: impl SpanExporter + 'static, content: bool) -> Provider {
        Provider::with(SimpleSpanProcessor::new(Warning::new(exporter)), content)
    }

    fn with(processor: impl SpanProcessor + 'static, content: bool) -> Provider {
        let processor = Conventional::new(processor, content);
        Provider(
            SdkTracerProvider::builder().with_resource(resource()).with_span_processor(processor).build(),
        )
    }

    /// Sends what is under way.
    pub fn flush(&self) {
        // An exporter that fails tells it itself.
        let _ = self.0.force_flush();
    }

    /// Sends what is under way, and ends. It waits for some seconds at most.
    pub fn shutdown(self) {
        let _ = self.0.shutdown();
    }
}

impl fmt::Debug for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Provider").finish_non_exhaustive()
    }
}

/// The layer that bridges spans to a provider. Filter it with [`is_ours`](crate::is_ours).
pub fn layer<S>(provider: &Provider) -> impl Layer<S> + use<S>
where
    S: Subscriber + for<'l> LookupSpan<'l>,
{
    // Where in our sources a span begins, and on which thread, is of no use to those who read traces of prompts.
    let bridge = tracing_opentelemetry::layer()
        .with_tracer(provider.0.tracer("cuebook"))
        .with_location(false)
        .with_threads(false)
        .with_target(false)
        .with_tracked_inactivity(false)
        .with_error_fields_to_exceptions(false)
        .with_error_records_to_exceptions(false);
    // The layer that `and_then` is called on hears first.
    SecretListener.and_then(bridge)
}

fn resource() -> Resource {
    let builder = Resource::builder();
    // The SDK has its own word for a service without a name, which does not help to find it.
    let named = ["OTEL_SERVICE_NAME", "OTEL_RESOURCE_ATTRIBUTES"].iter().any(|name| {
        std::env::var(name).is_ok_and(|value| *name == "OTEL_SERVICE_NAME" || value.contains("service.name"))
    });
    if named { builder.build() } else { builder.with_service_name("cuebook").build() }
}

fn captures_content() -> bool {
    std::env::var(CAPTURE).is_ok_and(|value| value.trim().eq_ignore_ascii_case("true"))
}

/// The time that one export may take, which the standard gives in milliseconds.
fn timeout() -> Duration {
    let reported = ["OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT"]
        .iter()
        .find_map(|name| std::env::var(name).ok()?.parse().ok());
    Duration::from_millis(reported.unwrap_or(10_000))
}
