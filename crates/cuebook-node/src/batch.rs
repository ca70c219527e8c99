//! One prompt, rendered with each of several rows. Its files are looked at once.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use cuebook::variables::UnknownVariables;
use cuebook::{Code, Context, Diagnostic, Error, ErrorKind, Result, Variables};
use cuebook_columns::{Batch, Source};
use serde_json::{Value as Json, json};

use crate::calls::Arguments;
use crate::errors;
use crate::project::{Project, RenderCall};
use crate::tables::TableBatch;

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
            answer(prepared.render_text(&variables, &call.context))
        };
        let threads = given.count("threads");
        Ok(in_threads(rows.len(), threads, cancelled, |range| rows[range].iter().map(render).collect()))
    }

    /// The same with rows of a batch of a table: `count` of them, from the row `first`.
    pub fn render_table(
        &self,
        given: &Arguments,
        table: &TableBatch,
        cancelled: &AtomicBool,
    ) -> Result<Json> {
        let call = RenderCall::read(given)?;
        let prepared = self.of(call.is_path).prepare(&call.prompt, &call.context)?;
        let source = table.source();
        let mut names: Vec<&str> = source.children().into_iter().map(Source::name).collect();
        let empty = |name: &str| (name.to_owned(), Json::Null);
        // The names are the same in all rows, so they are checked once.
        if call.context.unknown == UnknownVariables::Ignore {
            names.retain(|name| prepared.knows(name) || prepared.takes_any_name());
        } else {
            prepared.refuse_unknown(&names.iter().copied().map(empty).collect())?;
        }
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(**name)) {
            return Err(wrong_table(&format!("two of its columns are called `{twice}`")));
        }
        let batch = Batch::new(source, &names).map_err(|why| wrong_table(&why))?;
        let context = Arc::new(Context { unknown: UnknownVariables::Ignore, ..(*call.context).clone() });
        let first = given.count("first").unwrap_or_default().min(batch.rows());
        let count = given.count("count").unwrap_or(usize::MAX).min(batch.rows() - first);
        Ok(in_threads(count, given.count("threads"), cancelled, |range| {
            // The same variables for all rows: a text is written to the place of the one before.
            let mut variables: Variables = names.iter().copied().map(empty).collect();
            let mut texts = prepared.texts(&context);
            let mut render = |row: usize| {
                let written = batch.write(first + row, variables.values_mut());
                written.map_err(|fault| {
                    Error::new(ErrorKind::PromptValidation, Diagnostic::new(Code::BadInput, fault))
                })?;
                match &mut texts {
                    Ok(texts) => texts.render(&variables).map(str::to_owned),
                    Err(error) => Err(error.clone()),
                }
            };
            range.map(|row| answer(render(row))).collect()
        }))
    }
}

fn answer(text: Result<String>) -> Json {
    match text {
        Ok(text) => json!(text),
        Err(error) => errors::document(&error),
    }
}

fn wrong_table(why: &str) -> Error {
    let diagnostic = Diagnostic::new(Code::BadInput, format!("the table cannot be read: {why}"));
    Error::new(ErrorKind::Usage, diagnostic.hint("pass a table with one column per variable"))
}

/// Renders ranges of rows in several threads, until all are done or the call is stopped.
fn in_threads(
    count: usize,
    threads: Option<usize>,
    cancelled: &AtomicBool,
    render: impl Fn(Range<usize>) -> Vec<Json> + Sync,
) -> Json {
    let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let threads = threads.unwrap_or_else(|| if count < FEW_ROWS { 1 } else { cores() });
    let done: Vec<OnceLock<Vec<Json>>> = (0..count.div_ceil(SHARE)).map(|_| OnceLock::new()).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        while !cancelled.load(Ordering::Relaxed) {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(slot) = done.get(at) else { return };
            // No other thread has this slot.
            let _ = slot.set(render(at * SHARE..count.min((at + 1) * SHARE)));
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(done.len()) {
            scope.spawn(work);
        }
        work();
    });
    done.into_iter().filter_map(OnceLock::into_inner).flatten().collect()
}
