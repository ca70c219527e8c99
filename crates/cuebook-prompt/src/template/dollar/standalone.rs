//! A body that is all that a prompt says.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value as Json;

use super::{Fault, Missing, Template};
use crate::template::engine::Output;
use crate::template::jinja::names::Names;
use crate::template::sink::Sink;
use crate::template::unit::Unit;

/// A template with what stands around it where it is not a part of anything: its own unit, and a guess of its length.
#[derive(Debug)]
pub struct StandaloneTemplate {
    template: Template,
    missing: Missing,
    units: Arc<Vec<Unit>>,
    expected: (AtomicUsize, AtomicUsize),
}

impl StandaloneTemplate {
    /// A template that stands alone.
    pub fn new(template: Template, missing: Missing) -> StandaloneTemplate {
        let units = Arc::new(vec![template.unit()]);
        StandaloneTemplate { template, missing, units, expected: Default::default() }
    }

    /// The template.
    pub fn template(&self) -> &Template {
        &self.template
    }

    /// Its one unit.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// What it mentions.
    pub fn names(&self) -> &[Names] {
        std::slice::from_ref(self.template.names())
    }

    /// Renders it, at most `limit` characters. A placeholder whose value prints nothing leaves an empty piece.
    pub fn render(&self, limit: usize, mut value: impl FnMut(&str) -> Option<Json>) -> Result<Output, Fault> {
        let (bytes, pieces) = &self.expected;
        let sink = Sink::new(limit, bytes.load(Ordering::Relaxed), pieces.load(Ordering::Relaxed));
        let mut sink = sink.keeping_empty();
        self.template.write(0, &mut sink, self.missing, &mut |_, name| value(name))?;
        let (text, found) = sink.finish();
        // A little room more: the next values are rarely exactly as long.
        bytes.store(text.len() + text.len() / 8, Ordering::Relaxed);
        pieces.store(found.len(), Ordering::Relaxed);
        Ok(Output { text, pieces: found, units: self.units.clone().into() })
    }
}
