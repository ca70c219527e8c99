//! One prompt, rendered with each of several rows. Its files are looked at once.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cuebook::{Result, Variables};
use serde_json::{Value as Json, json};

use crate::calls::Arguments;
use crate::errors;
use crate::project::{Project, RenderCall};

/// Fewer rows are rendered in one thread, unless the caller asks for threads.
const FEW_ROWS: usize = 1000;
/// The rows that a thread takes at once.
const SHARE: usize = 64;

impl Project {
    /// Renders a prompt with each row: a text, or an error, in the order of the rows. Rows that were not reached when the call was stopped
    /// are missing.
    pub fn render_rows(&self, given: &Arguments, cancelled: &AtomicBool) -> Result<Json> {
        let call = RenderCall::read(given)?;
        let prepared = self.of(call.is_path).prepare(&call.prompt, &call.context)?;
        let rows = given.list("rows");
        let render = |row: &Json| {
            let variables = Variables::from(row.as_object().cloned().unwrap_or_default());
            match prepared.render_text(&variables, &call.context) {
                Ok(text) => json!(text),
                Err(error) => errors::document(&error),
            }
        };
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads =
            given.count("threads").unwrap_or_else(|| if rows.len() < FEW_ROWS { 1 } else { cores() });
        let done: Vec<OnceLock<Vec<Json>>> =
            (0..rows.len().div_ceil(SHARE)).map(|_| OnceLock::new()).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while !cancelled.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(slot) = done.get(at) else { return };
                let end = rows.len().min((at + 1) * SHARE);
                // No other thread has this slot.
                let _ = slot.set(rows[at * SHARE..end].iter().map(render).collect());
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.min(done.len()) {
                scope.spawn(work);
            }
            work();
        });
        Ok(done.into_iter().filter_map(OnceLock::into_inner).flatten().collect())
    }
}
