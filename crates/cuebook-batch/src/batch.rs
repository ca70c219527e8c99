//! The steps of a batch: check all rows, ask, write.

mod block;
mod checked;
mod jobs;

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use cuebook::jiff::Zoned;
use cuebook::variables::Clock;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Message, Rendered, Result};
use cuebook_run::provider::Stop;
use cuebook_run::{Engine, Money};
use serde_json::{Value as Json, json};

use crate::answer_source::{AnswerSource, JournalAndModel, JournalOnly};
use crate::chain::{ModelAnswer, converse};
use crate::columns::bad_columns_of;
use crate::journal::Journal;
use crate::key::short_hash;
use crate::kinds;
use crate::line::{Judged, Line, LineMaker, Shown};
use crate::output::{self, Output};
use crate::pipeline::in_order;
use crate::plan::{Form, Plan};
use crate::prefix::{ByPrefix, Prefix};
use crate::problem::Problem;
use crate::row_prompt::{Judge, RowPrompt};
use crate::rows::{self, Row, Rows};
use crate::sources::Sources;
use crate::spend::Spend;
use checked::Checker;

pub use checked::Checked;
pub use jobs::{Pending, Via, Waiting};

/// The stack of a thread that renders and asks.
const STACK: usize = 4 << 20;

/// A step of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BatchStep {
    /// All rows are rendered, and nothing is sent.
    Check,
    /// The model is asked.
    Ask,
    /// The output is written.
    Write,
}

/// Hears how far a batch is. Several threads may call it.
pub trait Progress: Sync {
    /// So many rows of this step are done, and so much is spent.
    fn step(&self, _stage: BatchStep, _done: u64, _of: Option<u64>, _spent: Money) {}
}

/// No one hears.
impl Progress for () {}

/// How asking ended.
#[derive(Debug, Clone, Default)]
pub struct Ended {
    /// How many questions were sent.
    pub sent: u64,
    /// What the run has cost, in all its processes.
    pub spent: Money,
    /// Why not all rows were asked.
    pub why: Option<Problem>,
    /// Whether the caller asked to stop.
    pub stopped: bool,
}

/// What was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Written {
    /// How many rows.
    pub rows: u64,
    /// How many of them are error rows.
    pub failed: u64,
    /// Codes of errors, and how many rows have each.
    pub codes: std::collections::BTreeMap<String, u64>,
    /// What the answers in the output have cost, whenever they were given.
    pub cost: Money,
    /// Tokens that were read for them.
    pub input_tokens: u64,
    /// Tokens that were written.
    pub output_tokens: u64,
}

/// A clock that stands still for a run, so that a prompt with a date renders the same in every step.
#[derive(Debug)]
struct FrozenClock(Zoned);

impl Clock for FrozenClock {
    fn now(&self) -> Zoned {
        self.0.clone()
    }
}

/// A batch, ready to go.
pub struct Batch {
    pub(crate) plan: Plan,
    pub(crate) row_prompt: RowPrompt,
    pub(crate) judges: Vec<Judge>,
    pub(crate) journal: Option<Journal>,
}

impl Batch {
    /// Prepares a batch: the prompt, its model and judges, the columns, and the journal. Nothing is sent. With `is_look`, nothing is
    /// written either.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from beginning.
    pub fn open(book: Book, engine: &Engine, plan: Plan, is_look: bool) -> Result<Batch> {
        let journal = match &plan.output {
            Some(output) if plan.run && is_look => Journal::look(output)?,
            Some(output) if plan.run => {
                output::check(output)?;
                Some(Journal::open(output, &Zoned::now().to_string())?)
            }
            Some(output) => {
                output::check(output)?;
                None
            }
            None => None,
        };
        let began = journal.as_ref().and_then(|journal| journal.began().parse::<Zoned>().ok());
        let book = book.with_clock(FrozenClock(began.unwrap_or_else(Zoned::now)));
        Batch::with_journal(&book, engine, plan, journal)
    }

    fn with_journal(book: &Book, engine: &Engine, plan: Plan, journal: Option<Journal>) -> Result<Batch> {
        let asks = plan.run.then_some(engine);
        let prompt = (plan.prompt.as_str(), plan.model.as_deref());
        let row_prompt =
            RowPrompt::new(book, prompt, &plan.context, &plan.columns, plan.variables.clone(), asks)?;
        let judge = |judge| Judge::new(book, judge, &plan.context, engine);
        let judges = plan.judges.iter().map(judge).collect::<Result<Vec<_>>>()?;
        if let (Some(limit), Some(model)) = (plan.limit, &row_prompt.model)
            && let Some(chosen) = std::iter::once(model)
                .chain(judges.iter().filter_map(Judge::model))
                .map(cuebook_run::PromptModel::chosen)
                .find(|chosen| chosen.price.is_none())
        {
            let message =
                format!("the price of `{}` is unknown, so the limit of {limit} cannot work", chosen.model);
            let hint = format!("add its price to {}, or leave out --limit-spend", chosen.provider.file);
            let diagnostic = Diagnostic::new(Code::BadLimit, message).hint(hint);
            return Err(Error::new(ErrorKind::Usage, diagnostic));
        }
        Ok(Batch { plan, row_prompt, judges, journal })
    }

    pub(crate) fn line_maker(&self) -> LineMaker<'_> {
        let has_sources = self.plan.output.is_some() && (self.plan.run || self.plan.sources);
        LineMaker { prefix: &self.plan.prefix, keeps_inputs: self.plan.keeps_inputs, has_sources }
    }

    /// Opens the data, and checks its columns as far as its beginning says them.
    pub(crate) fn rows(&self) -> Result<Box<dyn Rows>> {
        let rows = rows::open(&self.plan.data)?;
        if let Some(columns) = rows.columns() {
            self.check_columns(columns)?;
        }
        Ok(rows)
    }

    /// The rows in the order in which they are asked.
    pub(crate) fn rows_to_ask(&self) -> Result<Box<dyn Rows + '_>> {
        let rows = self.rows()?;
        let are_texts = rows.are_texts();
        Ok(match self.plan.by_prefix {
            true => Box::new(ByPrefix::new(rows, move |row: &Row| self.prefix(row, are_texts))),
            false => rows,
        })
    }

    /// What the question of a row begins with; `None` if it cannot be asked.
    fn prefix(&self, row: &Row, are_texts: bool) -> Option<Prefix> {
        let model = self.row_prompt.model.as_ref()?;
        let rendered = self.row_prompt.render(row, are_texts).ok()?;
        model.messages(&rendered).ok().map(|messages| Prefix::of(&messages))
    }

    pub(crate) fn check_columns(&self, columns: &[String]) -> Result<()> {
        let file = self.plan.data.to_string_lossy();
        self.row_prompt.columns.check(columns, &file)?;
        self.check_collisions(columns)
    }

    /// Refuses columns of the data whose names the output needs.
    pub(crate) fn check_collisions(&self, columns: &[String]) -> Result<()> {
        if !self.plan.keeps_inputs {
            return Ok(());
        }
        let file = self.plan.data.to_string_lossy();
        let outputs = self.row_prompt.outputs();
        let judges: Vec<(&str, &[String])> =
            self.judges.iter().map(|judge| (judge.name.as_str(), judge.outputs.as_slice())).collect();
        let form = self.plan.form.as_ref().map(Form::column);
        let added = self.line_maker().names(form, self.plan.run.then_some(outputs.as_slice()), &judges);
        if let Some(column) = columns.iter().find(|column| added.contains(column)) {
            let message =
                format!("the data has a column `{column}`, and the output has one of this name too");
            let hint = "put a text before the new names, as in --prefix out_, or leave out the data's columns with --no-inputs";
            return Err(bad_columns_of(&file, message, hint.to_owned()));
        }
        Ok(())
    }

    /// The name of the model that is asked, and of its provider.
    pub fn model(&self) -> Option<(&str, &str)> {
        let chosen = self.row_prompt.model.as_ref()?.chosen();
        Some((chosen.model.as_str(), chosen.provider.name.as_str()))
    }

    /// The currency of its prices; `None` if no model is asked or its price is unknown.
    pub fn currency(&self) -> Option<&str> {
        let chosen = self.row_prompt.model.as_ref()?.chosen();
        chosen.price.map(|_| chosen.provider.currency.as_str())
    }

    /// Renders all rows, and estimates what they cost. Nothing is sent.
    ///
    /// # Errors
    ///
    /// That the data cannot be read, or its columns do not fit. Rows that are invalid are part of the result.
    pub fn check(&self, progress: &dyn Progress, stop: &Stop) -> Result<Checked> {
        let rows = self.rows()?;
        let are_texts = rows.are_texts();
        let checker = Checker::new(self, are_texts);
        let mut checked = Checked::default();
        let accept = |row: Row, found| {
            checked.add(self, &row, found);
            progress.step(BatchStep::Check, checked.rows, None, Money::ZERO);
            Ok(())
        };
        in_order(rows, self.plan.threads, stop, |row| checker.row(row), accept)?;
        checked.finish(self)?;
        Ok(checked)
    }

    /// Asks for all rows without an answer, and keeps the answers in the journal.
    ///
    /// # Errors
    ///
    /// That the data cannot be read or the journal not be written. A row that fails is part of the output.
    pub fn ask(&self, checked: &Checked, progress: &dyn Progress, stop: &Stop) -> Result<Ended> {
        let Some(journal) = &self.journal else { return Ok(Ended::default()) };
        self.refuse_jobs(journal)?;
        let rows = self.rows_to_ask()?;
        let are_texts = rows.are_texts();
        let step = |done, spent| progress.step(BatchStep::Ask, done, Some(checked.rows), spent);
        self.ask_rows(journal, rows, stop, |row, live| self.ask_row(row, are_texts, live), step)
    }

    /// Calls `ask` for each row, several at a time.
    fn ask_rows(
        &self,
        journal: &Journal,
        rows: Box<dyn Rows + '_>,
        stop: &Stop,
        ask: impl Fn(&Row, &JournalAndModel<'_>) -> Result<()> + Sync,
        step: impl Fn(u64, Money) + Sync,
    ) -> Result<Ended> {
        let spend = Spend::new(self.plan.limit, journal.spent());
        let live = JournalAndModel::new(journal, &spend, stop);
        let (rows, failed, done) = (Mutex::new(rows), Mutex::new(None::<Error>), AtomicU64::new(0));
        let locked =
            |failed: &Mutex<Option<Error>>| failed.lock().unwrap_or_else(PoisonError::into_inner).is_some();
        let work = || {
            loop {
                if stop.is_set() || live.ended().is_some() || locked(&failed) {
                    return;
                }
                let row = rows.lock().unwrap_or_else(PoisonError::into_inner).next_row();
                let asked = match row {
                    None => return,
                    Some(Ok(row)) => ask(&row, &live),
                    Some(Err(error)) => Err(error),
                };
                if let Err(error) = asked {
                    failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                    return;
                }
                let done = done.fetch_add(1, Ordering::Relaxed) + 1;
                step(done, spend.spent());
            }
        };
        thread::scope(|scope| {
            for _ in 1..self.plan.concurrency {
                let builder = thread::Builder::new().name("ask".into()).stack_size(STACK);
                // With fewer threads it takes longer.
                let _ = builder.spawn_scoped(scope, work);
            }
            work();
        });
        if let Some(error) = failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
            return Err(error);
        }
        Ok(Ended { sent: live.sent(), spent: spend.spent(), why: live.ended(), stopped: stop.is_set() })
    }

    fn ask_row(&self, row: &Row, are_texts: bool, answer_source: &dyn AnswerSource) -> Result<()> {
        let Ok(rendered) = self.row_prompt.render(row, are_texts) else { return Ok(()) };
        let model_answer = self.speak(&rendered, answer_source)?;
        self.judge(row, are_texts, (&rendered, &model_answer), answer_source).map(drop)
    }

    fn speak(&self, rendered: &Rendered, answer_source: &dyn AnswerSource) -> Result<ModelAnswer> {
        match &self.row_prompt.model {
            Some(model) => converse(model, rendered, answer_source),
            None => Ok(ModelAnswer::default()),
        }
    }

    /// What the judges say of an answer; nothing where there is none.
    fn judge(
        &self,
        row: &Row,
        are_texts: bool,
        (rendered, model_answer): (&Rendered, &ModelAnswer),
        answer_source: &dyn AnswerSource,
    ) -> Result<Vec<Option<ModelAnswer>>> {
        let is_answered = model_answer.problem.is_none() && !model_answer.is_open;
        self.judges
            .iter()
            .map(|judge| match is_answered {
                true => judge.judge(row, are_texts, (rendered, model_answer), answer_source).map(Some),
                false => Ok(None),
            })
            .collect()
    }

    /// The output file of the plan; `None` if it names none.
    ///
    /// # Errors
    ///
    /// That it cannot be written.
    pub fn create_output(&self) -> Result<Option<Box<dyn Output>>> {
        let Some(path) = &self.plan.output else { return Ok(None) };
        let kinds = || {
            let inputs = match self.plan.keeps_inputs {
                true => kinds::of_rows(rows::open(&self.plan.data)?)?,
                false => Vec::new(),
            };
            let answers = self.row_prompt.output_kinds();
            let judges: Vec<_> =
                self.judges.iter().map(|judge| (judge.name.as_str(), judge.output_kinds())).collect();
            let form = self.plan.form.as_ref().map(Form::column);
            Ok(self.line_maker().kinds(inputs, form, self.plan.run.then_some(answers.as_slice()), &judges))
        };
        output::create(path, kinds).map(Some)
    }

    /// Writes all rows, in their order, with the answers of the journal.
    ///
    /// # Errors
    ///
    /// That the data cannot be read or the output not be written.
    pub fn write(
        &self,
        output: Box<dyn Output>,
        (checked, ended): (Option<&Checked>, &Ended),
        progress: &dyn Progress,
        stop: &Stop,
    ) -> Result<Written> {
        let rows = self.rows()?;
        let are_texts = rows.are_texts();
        let of = checked.map(|checked| checked.rows);
        let mut output = output;
        let mut written = Written::default();
        let maker = self.line_maker();
        let sources = match &self.plan.output {
            Some(path) if maker.has_sources => Some(Sources::open(path)?),
            _ => None,
        };
        let mut counted = CountedAnswers::default();
        let work = |row: &Row| self.line(row, are_texts, ended, sources.as_ref());
        let accept = |_: Row, made: Result<FinishedLine>| {
            let mut made = made?;
            if counted.has(made.model_answer.slot) {
                maker.shared(&mut made.line, None);
                made.model_answer = ModelAnswer::default();
            }
            for (judge, slot) in self.judges.iter().zip(&made.judged) {
                if counted.has(*slot) {
                    maker.shared(&mut made.line, Some(&judge.name));
                }
            }
            written.add(&made);
            output.write(made.line)?;
            progress.step(BatchStep::Write, written.rows, of, ended.spent);
            Ok(())
        };
        if !in_order(rows, self.plan.threads, stop, work, accept)? {
            let message = format!("stopped after {} rows; no output was written", written.rows);
            let diagnostic = Diagnostic::new(Code::NotAsked, message).hint("run the same command again");
            return Err(Error::new(ErrorKind::Execute, diagnostic));
        }
        // A row in the output must find its sentences.
        sources.as_ref().map_or(Ok(()), Sources::finish)?;
        output.finish()?;
        if let Some(journal) = &self.journal
            && ended.why.is_none()
        {
            journal.done()?;
        }
        Ok(written)
    }

    /// A row of the output.
    fn line(
        &self,
        row: &Row,
        are_texts: bool,
        ended: &Ended,
        sources: Option<&Sources>,
    ) -> Result<FinishedLine> {
        let maker = self.line_maker();
        let mut line = maker.begin(row);
        let outputs = self.row_prompt.outputs();
        let (shown, rendered) = self.shown(row, are_texts);
        let mut problem = None;
        let mut shown = shown.unwrap_or_else(|error| {
            problem = Some(Problem::of(&error));
            let form = self.plan.form.as_ref().map(|form| (form.column(), Json::Null));
            Shown { form, ..Shown::default() }
        });
        let mut model_answer = ModelAnswer::default();
        let mut judged: Vec<Option<ModelAnswer>> = self.judges.iter().map(|_| None).collect();
        if let (Some(rendered), Some(journal)) = (&rendered, &self.journal) {
            let answer_source = JournalOnly(journal);
            model_answer = self.speak(rendered, &answer_source)?;
            judged = self.judge(row, are_texts, (rendered, &model_answer), &answer_source)?;
        }
        if let (Some(rendered), Some(sources)) = (&rendered, sources) {
            let asked = self.judges.iter().zip(&judged).filter(|(_, judged)| judged.is_some());
            let judges: Vec<(&str, Rendered)> = asked
                .filter_map(|(judge, _)| {
                    let rendered = judge.render(row, are_texts, rendered, &model_answer).ok()?;
                    Some((judge.name.as_str(), rendered))
                })
                .collect();
            let mut renders = vec![("", rendered)];
            renders.extend(judges.iter().map(|(judge, rendered)| (*judge, rendered)));
            shown.sources = sources.note(&renders)?;
        }
        let slots = judged.iter().map(|judged| judged.as_ref().and_then(|judged| judged.slot)).collect();
        if self.plan.run {
            maker.model_answer(&mut line, &model_answer, &outputs);
            let mut open = model_answer.is_open;
            for (judge, mut model_answer) in self.judges.iter().zip(judged) {
                if let Some(model_answer) = model_answer.as_mut().filter(|model_answer| model_answer.is_open)
                {
                    open = true;
                    model_answer.problem = Some(not_asked(ended));
                }
                let judged = Judged { name: &judge.name, outputs: &judge.outputs, model_answer };
                maker.judged(&mut line, &judged);
            }
            maker.used(&mut line, &model_answer);
            problem =
                problem.or_else(|| model_answer.problem.clone()).or_else(|| open.then(|| not_asked(ended)));
        }
        maker.shown(&mut line, shown);
        maker.problem(&mut line, problem.as_ref());
        Ok(FinishedLine { line, problem, model_answer, judged: slots })
    }

    /// What a row renders to, and the render itself where a model or a judge needs it.
    fn shown(&self, row: &Row, are_texts: bool) -> (Result<Shown>, Option<Rendered>) {
        if !self.plan.run && !self.line_maker().has_sources && self.plan.form == Some(Form::Text) {
            let shown = self.row_prompt.render_text(row, are_texts).map(|text| Shown {
                hash: Some(short_hash(&[text.as_bytes()])),
                form: Some(("text", Json::String(text))),
                sources: None,
            });
            return (shown, None);
        }
        let rendered = match self.row_prompt.render(row, are_texts) {
            Ok(rendered) => rendered,
            Err(error) => return (Err(error), None),
        };
        let shown = || -> Result<Shown> {
            let hash = Some(self.row_prompt.hash(&rendered)?);
            let Some(form) = &self.plan.form else { return Ok(Shown { hash, ..Shown::default() }) };
            let value = match form {
                Form::Text => json!(rendered.text()),
                Form::Messages => rendered.messages()?.iter().map(Message::to_json).collect(),
                Form::Wire(Some(name)) => rendered.wire_as(name)?.body,
                Form::Wire(None) => rendered.wire()?.body,
            };
            Ok(Shown { form: Some((form.column(), value)), hash, sources: None })
        };
        (shown(), Some(rendered))
    }
}

/// A line that was made.
struct FinishedLine {
    line: Line,
    problem: Option<Problem>,
    model_answer: ModelAnswer,
    /// Where the journal has the answers of the judges.
    judged: Vec<Option<usize>>,
}

/// The answers that rows of the output have counted, a bit for each place of the journal's index.
#[derive(Default)]
struct CountedAnswers(Vec<u64>);

impl CountedAnswers {
    /// Whether an earlier row has counted this answer. From now on, one has.
    fn has(&mut self, slot: Option<usize>) -> bool {
        let Some(slot) = slot else { return false };
        let (word, bit) = (slot / 64, 1_u64 << (slot % 64));
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        let has = self.0[word] & bit != 0;
        self.0[word] |= bit;
        has
    }
}

impl Written {
    fn add(&mut self, made: &FinishedLine) {
        self.rows += 1;
        if let Some(problem) = &made.problem {
            self.failed += 1;
            *self.codes.entry(problem.code.clone()).or_default() += 1;
        }
        self.cost = self.cost + made.model_answer.cost;
        self.input_tokens += made.model_answer.input_tokens;
        self.output_tokens += made.model_answer.output_tokens;
    }
}

/// Why a row has no answer though nothing is wrong with it.
fn not_asked(ended: &Ended) -> Problem {
    let code = Code::NotAsked.as_str().to_owned();
    match &ended.why {
        Some(why) => Problem { code, message: format!("not asked: {}", why.message), hint: why.hint.clone() },
        None => Problem {
            code,
            message: "not asked: the prompt renders differently each time".to_owned(),
            hint: Some("use the values of the row in the prompt, and not the time or chance".to_owned()),
        },
    }
}
