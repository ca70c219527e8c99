//! Blocks of rows that a program brings, as engines of data sets do.

use std::path::Path;

use cuebook::jiff::Zoned;
use cuebook::{Book, Result};
use cuebook_run::Engine;
use cuebook_run::provider::Stop;
use serde_json::{Map, Value as Json};

use super::{Batch, not_asked};
use crate::answer_source::{AnswerSource, JournalOnly};
use crate::chain::ModelAnswer;
use crate::columns::bad_columns;
use crate::journal::Journal;
use crate::kinds::Kind;
use crate::line::{Judged, Line};
use crate::plan::{Form, Plan};
use crate::problem::Problem;
use crate::rows::{Row, Rows};

/// The rows of a block.
struct Block<'a>(std::slice::Iter<'a, Row>);

impl Rows for Block<'_> {
    fn next_row(&mut self) -> Option<Result<Row>> {
        self.0.next().cloned().map(Ok)
    }
}

impl Batch {
    /// Prepares the work on blocks of rows; the plan's data and output are not used. `journals` is a folder that all processes share
    /// that work on the data set; a run needs one.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from beginning.
    pub fn open_blocks(book: &Book, engine: &Engine, plan: Plan, journals: Option<&Path>) -> Result<Batch> {
        let share = |folder: &Path| Journal::share(folder, &Zoned::now().to_string());
        let journal = journals.filter(|_| plan.run).map(share).transpose()?;
        Batch::with_journal(book, engine, plan, journal)
    }

    /// Whether a column of the data is read.
    pub fn reads(&self, column: &str) -> bool {
        self.row_prompt.columns.reads(column) || self.judges.iter().any(|judge| judge.reads(column))
    }

    /// The columns that [`Batch::block`] returns, and their types, in order.
    ///
    /// # Errors
    ///
    /// `CB902` if these columns of the data do not fit.
    pub fn block_columns(&self, data: &[String]) -> Result<Vec<(String, Kind)>> {
        self.check_columns(data)?;
        let answers = self.row_prompt.output_kinds();
        let judges: Vec<_> =
            self.judges.iter().map(|judge| (judge.name.as_str(), judge.output_kinds())).collect();
        let form = self.plan.form.as_ref().map(Form::column);
        let answers = self.plan.run.then_some(answers.as_slice());
        Ok(self.line_maker().kinds(Vec::new(), form, answers, &judges))
    }

    /// The rows of a block, in their order, as a batch writes them. Questions without an answer are asked first.
    ///
    /// # Errors
    ///
    /// That the journal cannot be written. A row that fails is part of the result.
    pub fn block(&self, rows: &[Row], stop: &Stop) -> Result<Vec<Map<String, Json>>> {
        let ended = match &self.journal {
            Some(journal) => {
                let rows = Box::new(Block(rows.iter()));
                self.ask_rows(journal, rows, stop, |row, live| self.ask_row(row, false, live), |_, _| {})?
            }
            None => super::Ended::default(),
        };
        rows.iter().map(|row| self.line(row, false, &ended, None).map(|made| made.line)).collect()
    }

    /// The columns that [`Batch::judge_block`] returns, and their types, in order.
    ///
    /// # Errors
    ///
    /// `CB902` if these columns of the data do not fit.
    pub fn judge_columns(&self, data: &[String]) -> Result<Vec<(String, Kind)>> {
        let maker = self.line_maker();
        let answer = maker.name("answer");
        if !data.contains(&answer) {
            let message = format!("the data has no column `{answer}` with answers to judge");
            return Err(bad_columns(message, "run a prompt for the rows first".to_owned()));
        }
        let kinds: Vec<_> = self
            .judges
            .iter()
            .flat_map(|judge| maker.judge_kinds(&judge.name, &judge.output_kinds()))
            .collect();
        if let Some((taken, _)) = kinds.iter().find(|(name, _)| data.contains(name)) {
            let message = format!("the data has a column `{taken}`, and the judge adds one of this name too");
            return Err(bad_columns(message, "give the judge another name".to_owned()));
        }
        Ok(kinds)
    }

    /// What the judges say of rows that [`Batch::block`] returned, in another process perhaps.
    ///
    /// # Errors
    ///
    /// As [`Batch::block`].
    pub fn judge_block(&self, rows: &[Row], stop: &Stop) -> Result<Vec<Map<String, Json>>> {
        let Some(journal) = &self.journal else { return Ok(Vec::new()) };
        let ended = self.ask_rows(
            journal,
            Box::new(Block(rows.iter())),
            stop,
            |row, live| self.judged(row, live).map(drop),
            |_, _| {},
        )?;
        let maker = self.line_maker();
        let line = |row: &Row| {
            let mut line = Line::new();
            let judged = self.judged(row, &JournalOnly(journal))?;
            for (judge, mut model_answer) in self.judges.iter().zip(judged) {
                if let Some(model_answer) = model_answer.as_mut().filter(|model_answer| model_answer.is_open)
                {
                    model_answer.problem = Some(not_asked(&ended));
                }
                let judged = Judged { name: &judge.name, outputs: &judge.outputs, model_answer };
                maker.judged(&mut line, &judged);
            }
            Ok(line)
        };
        rows.iter().map(line).collect()
    }

    fn judged(&self, row: &Row, answer_source: &dyn AnswerSource) -> Result<Vec<Option<ModelAnswer>>> {
        let (row, model_answer) = self.answered(row);
        match self.row_prompt.render(&row, false) {
            Ok(rendered) => self.judge(&row, false, (&rendered, &model_answer), answer_source),
            Err(_) => Ok(self.judges.iter().map(|_| None).collect()),
        }
    }

    /// A row of [`Batch::block`] as the row of the data and what the model said to it.
    fn answered(&self, row: &Row) -> (Row, ModelAnswer) {
        let maker = self.line_maker();
        let kinds = self.row_prompt.output_kinds();
        let value = |name: &str| row.values.get(&maker.name(name)).cloned().unwrap_or_default();
        let typed = |name: &str, kind: Kind| match (value(name), kind) {
            (Json::String(text), Kind::Json) => serde_json::from_str(&text).unwrap_or(Json::String(text)),
            (value, _) => value,
        };
        let outputs = match kinds.is_empty() {
            true => typed("answer_outputs", Kind::Json),
            false => kinds
                .iter()
                .map(|(name, kind)| (name.clone(), typed(&format!("answer_{name}"), *kind)))
                .collect(),
        };
        let text = |name: &str| value(name).as_str().map(str::to_owned);
        let problem = text("error").map(|code| Problem { code, message: String::new(), hint: None });
        let model_answer = ModelAnswer {
            answer: text("answer"),
            outputs: Some(outputs).filter(|outputs| !outputs.is_null()),
            problem,
            ..ModelAnswer::default()
        };
        let added = maker.names(None, Some(&self.row_prompt.outputs()), &[]);
        let mut row = row.clone();
        row.values.retain(|name, _| !added.contains(name));
        (row, model_answer)
    }
}
