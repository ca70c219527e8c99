//! An exporter that says, once, that it fails.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use opentelemetry_sdk::Resource;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SpanData, SpanExporter};

#[derive(Debug)]
pub(super) struct Warning<E> {
    inner: E,
    warned: AtomicBool,
}

impl<E> Warning<E> {
    pub(super) fn new(inner: E) -> Warning<E> {
        Warning { inner, warned: AtomicBool::new(false) }
    }
}

impl<E: SpanExporter> SpanExporter for Warning<E> {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        let outcome = self.inner.export(batch).await;
        if let Err(error) = &outcome
            && !self.warned.swap(true, Ordering::Relaxed)
        {
            crate::warn(&format!("cannot send spans to the collector: {error}; the run continues"));
        }
        outcome
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.inner.shutdown_with_timeout(timeout)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.inner.force_flush()
    }

    fn set_resource(&mut self, resource: &Resource) {
        self.inner.set_resource(resource);
    }
}
