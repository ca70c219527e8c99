//! One prompt, rendered with each row of a table or with each of several dicts.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use cuebook::variables::UnknownVariables;
use cuebook::{Code, Context, Diagnostic, Error, ErrorKind, Prepared, Result, Variables};
use cuebook_columns::Batch;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use serde_json::Value as Json;

use crate::arrow::{self, Chunk, RenderedTable, Table};
use crate::book::{Book, unknown};
use crate::cancel::Cancel;
use crate::context::usage;
use crate::errors::{self, Raise};
use crate::{calls, context, values};

/// The rows that a thread takes at once, at most.
const MAX_ROWS: usize = 16 << 10;
/// Fewer rows are rendered in the caller's thread, unless it asks for threads.
const FEW_ROWS: usize = 1000;
/// The most threads. More do not render faster, and the system may refuse them.
const MAX_THREADS: usize = 256;

/// Rows that are rendered in several threads, some at a time.
struct Rows {
    count: usize,
    threads: usize,
    /// How many a thread takes at once.
    share: usize,
}

impl Rows {
    fn new(count: usize, threads: Option<usize>) -> Rows {
        let cores = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let threads =
            threads.unwrap_or_else(|| if count < FEW_ROWS { 1 } else { cores() }).clamp(1, MAX_THREADS);
        let share = count.div_ceil(threads * 4).clamp(1, MAX_ROWS);
        Rows { count, threads: threads.min(count.div_ceil(share)), share }
    }

    /// Calls `work` for ranges of the rows until all are done, the caller cancels, or Python has a signal for it, such as Ctrl-C. The
    /// answers are in the order of the rows.
    fn work<T: Send + Sync>(
        &self,
        cancel: Option<&AtomicBool>,
        work: impl Fn(Range<usize>) -> T + Sync,
    ) -> PyResult<Vec<T>> {
        let done: Vec<OnceLock<T>> = (0..self.count.div_ceil(self.share)).map(|_| OnceLock::new()).collect();
        let (next, stop, raised) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::new(None));
        let take = |signals: &dyn Fn() -> bool| {
            while !stop.load(Ordering::Relaxed) && signals() {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(slot) = done.get(at) else { return };
                let start = at * self.share;
                let _ = slot.set(work(start..(start + self.share).min(self.count)));
            }
        };
        let is_cancelled = || cancel.is_some_and(|cancel| cancel.load(Ordering::SeqCst));
        let look = |py: Python<'_>| match is_cancelled() {
            true => Err(errors::to_python(py, &calls::cancelled())),
            false => py.check_signals(),
        };
        let signals = || match Python::attach(look) {
            Ok(()) => true,
            Err(signal) => {
                stop.store(true, Ordering::Relaxed);
                if let Ok(mut raised) = raised.lock() {
                    *raised = Some(signal);
                }
                false
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads {
                scope.spawn(|| take(&|| true));
            }
            take(&signals);
        });
        match raised.into_inner() {
            Ok(Some(signal)) => Err(signal),
            _ => Ok(done.into_iter().filter_map(OnceLock::into_inner).collect()),
        }
    }
}

/// A prompt that is ready to be rendered with many rows.
struct PreparedRows {
    prepared: Arc<Prepared>,
    context: Arc<Context>,
}

impl PreparedRows {
    fn new(book: &Book, prompt: &str, context: Context, policy: UnknownVariables) -> Result<PreparedRows> {
        let context = Context { unknown: policy, ..context };
        let prepared = book.prompts().prepare(prompt, &context)?;
        Ok(PreparedRows { prepared, context: Arc::new(context) })
    }

    /// Whether it may wait for code that runs in another process.
    fn waits(&self) -> bool {
        self.prepared.runs_code(&self.context)
    }

    fn render(&self, variables: &Variables) -> Result<String> {
        self.prepared.render_text(variables, &self.context)
    }

    /// Which columns of a table are read. Their names are the same in all rows, so they are checked here and not for each row.
    fn plan<'t>(&self, table: &'t Table, allow_unknown: bool) -> Result<Plan<'t>> {
        let mut names: Vec<&str> = table.names();
        let empty = |name: &str| (name.to_owned(), Json::Null);
        if allow_unknown {
            names.retain(|name| self.prepared.knows(name) || self.prepared.takes_any_name());
        } else {
            self.prepared.refuse_unknown(&names.iter().copied().map(empty).collect())?;
        }
        let mut seen = HashSet::new();
        if let Some(twice) = names.iter().find(|name| !seen.insert(**name)) {
            return Err(wrong_table(&format!("two of its columns are called `{twice}`")));
        }
        let batches = table.batches(&names).map_err(|why| wrong_table(&why))?;
        let variables = names.iter().copied().map(empty).collect();
        Ok(Plan { variables, batches })
    }

    fn render_table(
        &self,
        plan: &Plan<'_>,
        threads: Option<usize>,
        cancel: Option<&AtomicBool>,
    ) -> PyResult<RenderedTable> {
        let work = |rows: Range<usize>| {
            // The same variables for all rows: a text is written to the place of the one before.
            let (mut variables, mut chunk) = (plan.variables.clone(), Chunk::default());
            let mut texts = self.prepared.texts(&self.context);
            for (batch, rows) in plan.parts(rows) {
                for row in rows {
                    let written = write(batch, row, &mut variables);
                    let text = written.and_then(|()| match &mut texts {
                        Ok(texts) => texts.render(&variables),
                        Err(error) => Err(error.clone()),
                    });
                    match text {
                        Ok(text) => chunk.text(text),
                        Err(error) => chunk.error(error.code().as_str(), &error.diagnostic().message),
                    }
                }
            }
            chunk.finish()
        };
        let count = plan.batches.iter().map(|batch| batch.rows()).sum();
        Ok(RenderedTable::new(Rows::new(count, threads).work(cancel, work)?))
    }
}

/// Writes a row of a table to its variables.
fn write(batch: &Batch<'_>, row: usize, variables: &mut Variables) -> Result<()> {
    batch
        .write(row, variables.values_mut())
        .map_err(|fault| Error::new(ErrorKind::PromptValidation, Diagnostic::new(Code::BadInput, fault)))
}

/// How a table is read.
struct Plan<'t> {
    /// A value for each column that is read, in their order.
    variables: Variables,
    batches: Vec<Batch<'t>>,
}

impl Plan<'_> {
    /// The batches that rows of the table are in, and which rows of each they are.
    fn parts(&self, rows: Range<usize>) -> impl Iterator<Item = (&Batch<'_>, Range<usize>)> {
        let mut start = 0;
        self.batches.iter().filter_map(move |batch| {
            let first = start;
            start += batch.rows();
            let inside = rows.start.max(first)..rows.end.min(start);
            (inside.start < inside.end).then(|| (batch, inside.start - first..inside.end - first))
        })
    }
}

pub fn wrong_table(why: &str) -> Error {
    usage(
        format!("the table cannot be read: {why}"),
        "pass a table of pyarrow, Polars or pandas with one column per variable",
    )
}

impl Book {
    /// Renders rows: in the caller's thread, or in another one if they wait for hooks, so that the wait can end.
    fn rendered<T: Send + 'static>(
        &self,
        py: Python<'_>,
        waits: bool,
        render: impl FnOnce(Option<&AtomicBool>) -> PyResult<T> + Send + 'static,
    ) -> PyResult<T> {
        if waits {
            return self.waits(py, move || Ok(render(None)))?;
        }
        let cancel = Cancel::current(py)?;
        py.detach(|| render(cancel.as_deref()))
    }
}

#[pymethods]
impl Book {
    /// Renders a prompt with each of several dicts: a text or an exception for each, in order. Files are looked at once.
    fn render_rows(
        &self,
        py: Python<'_>,
        prompt: &str,
        rows: Vec<Bound<'_, PyDict>>,
        context: &Bound<'_, PyDict>,
        allow_unknown: bool,
        threads: Option<usize>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let context = context::read(&values::members(context)?).or_raise(py)?;
        let read = |row: &Bound<'_, PyDict>| values::members(row).map(Variables::from);
        let rows = rows.iter().map(read).collect::<PyResult<Vec<_>>>()?;
        let ready =
            py.detach(|| PreparedRows::new(self, prompt, context, unknown(allow_unknown))).or_raise(py)?;
        let waits = ready.waits();
        let render = move |cancel: Option<&AtomicBool>| {
            let work =
                |range: Range<usize>| rows[range].iter().map(|row| ready.render(row)).collect::<Vec<_>>();
            Rows::new(rows.len(), threads).work(cancel, work)
        };
        let texts = self.rendered(py, waits, render)?;
        let answer = |text: Result<String>| match text {
            Ok(text) => Ok(PyString::new(py, &text).into_any().unbind()),
            Err(error) => errors::instance(py, &error),
        };
        texts.into_iter().flatten().map(answer).collect()
    }

    /// Renders a prompt with each row of an Arrow table; `None` if the object is no such table.
    fn render_table(
        &self,
        py: Python<'_>,
        prompt: &str,
        table: &Bound<'_, PyAny>,
        context: &Bound<'_, PyDict>,
        allow_unknown: bool,
        threads: Option<usize>,
    ) -> PyResult<Option<RenderedTable>> {
        let Some(table) = arrow::read(table)? else { return Ok(None) };
        let table = table.map_err(|why| wrong_table(&why)).or_raise(py)?;
        let context = context::read(&values::members(context)?).or_raise(py)?;
        let ready =
            py.detach(|| PreparedRows::new(self, prompt, context, UnknownVariables::Ignore)).or_raise(py)?;
        py.detach(|| ready.plan(&table, allow_unknown).map(drop)).or_raise(py)?;
        let waits = ready.waits();
        let render = move |cancel: Option<&AtomicBool>| {
            let plan = ready.plan(&table, allow_unknown);
            plan.map(|plan| ready.render_table(&plan, threads, cancel))
        };
        match self.rendered(py, waits, move |cancel| Ok(render(cancel)))?.or_raise(py)? {
            Ok(table) => Ok(Some(table)),
            Err(raised) => Err(raised),
        }
    }
}
