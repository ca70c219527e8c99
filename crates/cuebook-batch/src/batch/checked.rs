//! What is known of all rows before anything is sent: which of them are invalid, and what the others cost.

use std::collections::BTreeSet;

use cuebook::chat::reply::Usage;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_run::{Money, PromptModel};

use super::Batch;
use crate::answer_source::tokens_of;
use crate::chain::ModelAnswer;
use crate::journal::QuestionRecord;
use crate::key::Key;
use crate::prefix::{Prefix, Shares};
use crate::problem::Problem;
use crate::rows::Row;

/// How many invalid rows are remembered for the message.
const MAX_SHOWN: usize = 5;
/// How many names of columns of a JSONL file are remembered.
const MAX_COLUMNS: usize = 10_000;
/// The first rows are rendered twice, to see whether that gives the same.
const TWICE: u64 = 3;

/// What is known of all rows.
#[derive(Debug, Clone, Default)]
pub struct Checked {
    /// How many rows there are.
    pub rows: u64,
    /// How many of them are invalid.
    pub invalid: u64,
    /// The first invalid rows, with their numbers.
    pub shown: Vec<(u64, Problem)>,
    /// How many rows have an answer already.
    pub answered: u64,
    /// Tokens that the other rows are going to read, about.
    pub input_tokens: u64,
    /// How many of them a provider's cache can keep while the rows are asked in their order, about.
    pub cacheable_tokens: u64,
    /// Tokens of the longest of them.
    pub longest: u64,
    /// What reading costs, about.
    pub reading: Money,
    /// What all of it costs at most: each answer as long as it may be, without reminders.
    pub most: Money,
    /// What it costs if answers are as long as those that are known; `None` without such.
    pub likely: Option<Money>,
    /// Output tokens of known answers, and how many those are.
    known_output: (u64, u64),
    columns: BTreeSet<String>,
    shares: Shares,
}

/// What is known of one row.
pub(super) enum Found {
    Invalid(Problem),
    Fine,
    Answered { output: u64 },
    Question { input: u64, reading: Money, most: Money, prefix: Prefix },
}

/// Checks rows.
pub(super) struct Checker<'a> {
    batch: &'a Batch,
    are_texts: bool,
}

impl<'a> Checker<'a> {
    pub(super) fn new(batch: &'a Batch, are_texts: bool) -> Checker<'a> {
        Checker { batch, are_texts }
    }

    pub(super) fn row(&self, row: &Row) -> Result<Found> {
        let row_prompt = &self.batch.row_prompt;
        let Some(model) = &row_prompt.model else {
            return Ok(match row_prompt.render(row, self.are_texts) {
                Ok(_) => Found::Fine,
                Err(error) => Found::Invalid(Problem::of(&error)),
            });
        };
        match self.question(row, model) {
            Ok((prefix, question)) => self.asked(row, model, prefix, &question),
            Err(error) => Ok(Found::Invalid(Problem::of(&error))),
        }
    }

    fn question(&self, row: &Row, model: &PromptModel) -> Result<(Prefix, Vec<u8>)> {
        let rendered = self.batch.row_prompt.render(row, self.are_texts)?;
        let messages = model.messages(&rendered)?;
        Ok((Prefix::of(&messages), model.question(&messages)?))
    }

    fn asked(&self, row: &Row, model: &PromptModel, prefix: Prefix, question: &[u8]) -> Result<Found> {
        let key = Key::of(model.chosen(), question);
        if let Some(journal) = &self.batch.journal
            && let Some(QuestionRecord::Answered(answered)) = journal.get(key)?
        {
            return Ok(Found::Answered { output: answered.usage.output.unwrap_or(0) });
        }
        if row.number <= TWICE && self.question(row, model).is_ok_and(|(_, again)| again != question) {
            return Ok(Found::Invalid(Problem {
                code: Code::NotAsked.as_str().to_owned(),
                message: "the prompt renders differently each time".to_owned(),
                hint: Some("use the values of the row in the prompt, and not the time or chance".to_owned()),
            }));
        }
        let input = tokens_of(model, question);
        let window = model.chosen().context_window;
        if input >= window {
            let name = &model.chosen().model;
            return Ok(Found::Invalid(Problem {
                code: Code::LargerThanWindow.as_str().to_owned(),
                message: format!("the prompt has about {input} tokens, and {name} reads at most {window}"),
                hint: Some("shorten the row, or use a model with a larger window: --model ID".to_owned()),
            }));
        }
        let usage = Usage { input: Some(input), ..Usage::default() };
        let reading = model.cost(&usage);
        let mut most = model.cost(&Usage { output: Some(model.most_output()), ..usage });
        for judge in &self.batch.judges {
            most = most + self.judging(row, model, judge);
        }
        Ok(Found::Question { input, reading, most, prefix })
    }

    /// What a judge costs at most: it reads its prompt and the longest answer.
    fn judging(&self, row: &Row, asked: &PromptModel, judge: &crate::row_prompt::Judge) -> Money {
        let Some(model) = judge.model() else { return Money::ZERO };
        let answer = ModelAnswer { answer: Some(String::new()), ..ModelAnswer::default() };
        let question = self.batch.row_prompt.render(row, self.are_texts).and_then(|rendered| {
            let rendered = judge.render(row, self.are_texts, &rendered, &answer)?;
            model.question(&model.messages(&rendered)?)
        });
        let input = question.map_or(0, |question| tokens_of(model, &question)) + asked.most_output();
        model.cost(&Usage { input: Some(input), output: Some(model.most_output()), ..Usage::default() })
    }
}

impl Checked {
    pub(super) fn add(&mut self, batch: &Batch, row: &Row, found: Result<Found>) {
        self.rows += 1;
        if self.columns.len() < MAX_COLUMNS {
            for column in row.values.keys() {
                if !self.columns.contains(column) {
                    self.columns.insert(column.clone());
                }
            }
        }
        let found = found.unwrap_or_else(|error| Found::Invalid(Problem::of(&error)));
        match found {
            Found::Invalid(problem) => {
                self.invalid += 1;
                if self.shown.len() < MAX_SHOWN {
                    self.shown.push((row.number, problem));
                }
            }
            Found::Fine => {}
            Found::Answered { output } => {
                self.answered += 1;
                self.known_output = (self.known_output.0 + output, self.known_output.1 + 1);
            }
            Found::Question { input, reading, most, prefix } => {
                if let Some(model) = &batch.row_prompt.model {
                    self.shares.add(prefix, input, batch.plan.by_prefix, model);
                }
                self.input_tokens += input;
                self.longest = self.longest.max(input);
                self.reading = self.reading + reading;
                self.most = self.most + most;
            }
        }
    }

    /// Looks at all rows together.
    pub(super) fn finish(&mut self, batch: &Batch) -> Result<()> {
        if self.rows > 0 && self.rows == self.invalid {
            // A column that no row has is the reason, and not the rows.
            let columns: Vec<String> = self.columns.iter().cloned().collect();
            batch.check_columns(&columns)?;
        } else {
            let columns: Vec<String> = self.columns.iter().cloned().collect();
            batch.check_collisions(&columns)?;
        }
        if let Some(model) = &batch.row_prompt.model {
            self.shares.finish(model);
            self.cacheable_tokens = self.shares.tokens;
        }
        if let (Some(model), (output, known)) = (&batch.row_prompt.model, self.known_output)
            && known > 0
        {
            let each = output.div_ceil(known);
            let writing = model.cost(&Usage { output: Some(each * self.questions()), ..Usage::default() });
            self.likely = Some(self.reading + writing);
        }
        Ok(())
    }

    /// How many rows are going to be asked.
    pub fn questions(&self) -> u64 {
        self.rows - self.invalid - self.answered
    }

    /// Refuses invalid rows, before anything is sent.
    ///
    /// # Errors
    ///
    /// `CB903` with the first of them.
    pub fn refuse_invalid(&self, file: &str) -> Result<()> {
        if self.invalid == 0 {
            return Ok(());
        }
        let count = match self.invalid {
            1 => format!("one of {} rows is invalid", self.rows),
            many => format!("{many} of {} rows are invalid", self.rows),
        };
        let mut all = vec![
            Diagnostic::new(Code::InvalidRows, format!("{count}, so nothing was sent"))
                .file(file)
                .hint("correct the rows, or write --keep-going to ask for the others"),
        ];
        all.extend(self.shown.iter().map(|(number, problem)| {
            let code = Code::find(&problem.code).unwrap_or(Code::InvalidRows);
            let message = match problem.message.starts_with("row ") {
                true => problem.message.clone(),
                false => format!("row {number}: {}", problem.message),
            };
            Diagnostic::new(code, message).hint_opt(problem.hint.clone())
        }));
        Err(Error::all(ErrorKind::PromptValidation, all)
            .with("invalid", self.invalid)
            .with("rows", self.rows))
    }
}
