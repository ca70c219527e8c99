//! Blocks of rows for engines of data sets: a table in, columns out, as `cuebook batch` writes them.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_batch::rows::Row;
use cuebook_batch::{Batch, Form, JudgePlan, Kind, Plan};
use cuebook_run::Settings;
use cuebook_run::provider::Stop;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{Map, Value as Json};

use crate::arrow::{self, Table};
use crate::batch::wrong_table;
use crate::book::{Book, inputs};
use crate::context::usage;
use crate::errors::Raise;
use crate::json::to_python;
use crate::{calls, values};

/// A column that a stage adds: its name, the type of its values, and one for each row.
type Added = (String, Kind, Vec<Json>);

/// Renders, asks or judges blocks of rows.
#[pyclass(frozen, module = "cuebook._native")]
pub struct Stage {
    work: Arc<Work>,
}

struct Work {
    batch: Batch,
    prefix: String,
    judges: bool,
}

impl Work {
    /// The columns for a table.
    fn columns(&self, table: &Table, stop: &Stop) -> Result<Vec<Added>> {
        let number = format!("{}row", self.prefix);
        let names: Vec<&str> = table.names().into_iter().filter(|name| *name != number).collect();
        let all: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let kinds = match self.judges {
            true => self.batch.judge_columns(&all)?,
            false => self.batch.block_columns(&all)?,
        };
        let rows = self.rows(table, &names, &number)?;
        let mut lines = match self.judges {
            true => self.batch.judge_block(&rows, stop)?,
            false => self.batch.block(&rows, stop)?,
        };
        let column = |(name, kind): (String, Kind)| {
            let cell = |line: &mut Map<String, Json>| {
                let value = line.get_mut(&name).map(Json::take).unwrap_or_default();
                kind.cell(value).ok_or_else(|| {
                    let message = format!("the column `{name}` has values of several types");
                    Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadData, message))
                })
            };
            let values = lines.iter_mut().map(cell).collect::<Result<_>>()?;
            Ok((name, kind, values))
        };
        kinds.into_iter().map(column).collect()
    }

    fn rows(&self, table: &Table, names: &[&str], number: &str) -> Result<Vec<Row>> {
        let answer = format!("{}answer", self.prefix);
        let error = format!("{}error", self.prefix);
        let is_answer = |name: &str| self.judges && (name.starts_with(&answer) || name == error);
        let mut wanted: Vec<&str> =
            names.iter().copied().filter(|name| self.batch.reads(name) || is_answer(name)).collect();
        wanted.push(number);
        let batches = table.batches(&wanted).map_err(|why| wrong_table(&why))?;
        let mut rows = Vec::new();
        for batch in &batches {
            for at in 0..batch.rows() {
                let (mut values, wrong) = batch.values(at);
                let known = values.shift_remove(number).and_then(|number| number.as_u64());
                rows.push(Row::new(known.unwrap_or(rows.len() as u64 + 1), values, wrong.as_deref()));
            }
        }
        Ok(rows)
    }
}

fn form(name: &str) -> Result<Form> {
    match name.split_once(':').map_or((name, None), |(name, of)| (name, Some(of))) {
        ("text", None) => Ok(Form::Text),
        ("messages", None) => Ok(Form::Messages),
        ("wire", of) => Ok(Form::Wire(of.map(str::to_owned))),
        _ => Err(usage(
            format!("`{name}` is not a form of a rendered row"),
            "use text, messages, wire or wire:NAME",
        )),
    }
}

#[pymethods]
impl Stage {
    #[new]
    fn new(
        py: Python<'_>,
        book: &Book,
        prompt: String,
        variables: &Bound<'_, PyDict>,
        context: &Bound<'_, PyDict>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Stage> {
        let inputs = inputs(py, variables, context)?;
        let options = values::members(options)?;
        let text = |name: &str| options.get(name).and_then(Json::as_str).map(str::to_owned);
        let is_set = |name: &str| options.get(name).and_then(Json::as_bool).unwrap_or_default();
        let of = |object: &Json, name: &str| object[name].as_str().map(str::to_owned);
        let judges: Vec<JudgePlan> = options
            .get("judge")
            .filter(|judge| judge.is_object())
            .and_then(|judge| {
                let (name, prompt) = (of(judge, "name")?, of(judge, "prompt")?);
                Some(JudgePlan { name, prompt, model: of(judge, "model") })
            })
            .into_iter()
            .collect();
        let columns = options.get("columns").and_then(Json::as_object).into_iter().flatten();
        let prefix = text("prefix").unwrap_or_default();
        let (work, journals) = (!judges.is_empty(), text("journal").map(PathBuf::from));
        let plan = Plan {
            prompt,
            data: PathBuf::new(),
            output: None,
            form: text("form").as_deref().map(form).transpose().or_raise(py)?,
            run: is_set("run"),
            model: text("model"),
            columns: columns
                .filter_map(|(column, variable)| Some((column.clone(), variable.as_str()?.to_owned())))
                .collect(),
            variables: inputs.variables,
            context: inputs.context,
            prefix: prefix.clone(),
            keeps_inputs: !is_set("no_inputs"),
            keep_going: true,
            limit: None,
            concurrency: options.get("requests").and_then(Json::as_u64).unwrap_or(1).clamp(1, 512) as usize,
            threads: 1,
            by_prefix: false,
            sources: false,
            judges,
        };
        let provider = text("provider");
        let made = py.detach(|| {
            let engine = book.engine(Settings { provider, ..Settings::default() });
            Batch::open_blocks(&book.make(), &engine, plan, journals.as_deref())
        });
        Ok(Stage { work: Arc::new(Work { batch: made.or_raise(py)?, prefix, judges: work }) })
    }

    /// The columns for a table: the name of each, the type of its values, and one value for each row.
    fn columns<'py>(
        &self,
        py: Python<'py>,
        table: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<(String, &'static str, Bound<'py, PyList>)>> {
        let Some(table) = arrow::read(table)? else {
            return Err(PyTypeError::new_err("a block must be a table of Arrow"));
        };
        let table = table.map_err(|why| wrong_table(&why)).or_raise(py)?;
        let (work, flag) = (self.work.clone(), Arc::new(AtomicBool::new(false)));
        let stop = Stop::flag(flag.clone());
        let added = calls::interruptible(py, Some(&flag), move || work.columns(&table, &stop))?;
        let column = |(name, kind, values): Added| {
            let values = values.iter().map(|value| to_python(py, value)).collect::<PyResult<Vec<_>>>()?;
            Ok((name, kind.as_str(), PyList::new(py, values)?))
        };
        added.or_raise(py)?.into_iter().map(column).collect()
    }
}
