//! Asks through the batch interface of a provider: many questions as one job, which is answered later at half the price.
//!
//! A round collects what jobs have brought, and reads all rows: it gathers the questions without an answer and submits a job as soon as
//! enough of them are together. Then it waits for all jobs. Reminders and judges need answers first, so they are in a later round. The
//! journal knows each job before it is submitted, so a process that is killed, or leaves, finds it again; another process can
//! collect what this one has submitted.

mod anthropic;
mod openai;

use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use cuebook::chat::Message;
use cuebook::chat::reply;
use cuebook::chat::wire::Api;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_run::provider::{Exchange, Stop};
use cuebook_run::{Money, PromptModel};
use serde_json::{Value as Json, json};

use super::{Batch, BatchStep, Ended, Progress};
use crate::answer_source::{
    AnswerSource, JournalOnly, QuestionResult, answered, limit_reached, most_cost, scrub,
};
use crate::journal::{Failed, Journal};
use crate::key::{Key, short_hash};
use crate::pipeline::in_order;
use crate::problem::Problem;
use crate::rows::Row;

/// About the most questions of a job, and about the most bytes: providers take more, and this process holds them in memory.
const QUESTIONS: usize = 10_000;
const BYTES: usize = 32 << 20;
/// Bytes of a line of results at most.
const LONGEST: usize = 64 << 20;
/// Letters of a key.
const KEY: usize = 32;
/// How often waiting looks for a request to stop.
const SLICE: Duration = Duration::from_millis(100);
/// The most rounds: reminders and judges need a few.
const MAX_ROUNDS: usize = 32;

/// The batch interface of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Via {
    /// OpenAI's.
    OpenAi,
    /// Anthropic's.
    Anthropic,
}

/// How to wait for jobs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Waiting {
    /// The interface.
    pub via: Via,
    /// Whether to wait until all jobs are over.
    pub waits: bool,
    /// The pause between two looks at a job.
    pub pause: Duration,
}

/// A job that was submitted and is not over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The provider's name for it.
    pub id: String,
    /// How many questions it has.
    pub questions: u64,
}

/// A job, as the journal has it.
#[derive(Debug, Clone)]
struct Job {
    /// Our name for it, which the journal knew before the provider did.
    own: String,
    /// The provider's name; none while it is being submitted.
    id: Option<String>,
    /// The file of the provider that has it.
    provider: String,
    /// Whose questions it has: `answer`, or the name of a judge.
    row_prompt: String,
    /// Jobs of the provider that were taken for it and are others.
    not: Vec<String>,
    /// Whether the name was found by looking for a job like it.
    is_guess: bool,
    keys: Vec<Key>,
    /// What it costs at most.
    most: Money,
}

/// How a job is.
enum State {
    Working,
    /// It is over: where its results are, and why some are missing.
    Over {
        results: Vec<String>,
        why: Option<String>,
    },
}

impl Job {
    fn to_json(&self) -> Json {
        // One text: a job has thousands of them, and the journal keeps them in memory.
        let keys: String = self.keys.iter().map(Key::to_string).collect();
        json!({
            "id": self.own, "job": self.id, "provider": self.provider, "row_prompt": self.row_prompt, "not": self.not,
            "guess": self.is_guess, "keys": keys, "most": self.most.nanos(),
        })
    }

    fn read(json: &Json) -> Option<Job> {
        let text = |name: &str| json[name].as_str().map(str::to_owned);
        let keys = json["keys"].as_str()?.as_bytes().chunks(KEY);
        let not = json["not"].as_array().into_iter().flatten();
        Some(Job {
            own: text("id")?,
            id: text("job"),
            provider: text("provider")?,
            row_prompt: text("row_prompt")?,
            not: not.filter_map(|id| id.as_str().map(str::to_owned)).collect(),
            is_guess: json["guess"] == true,
            keys: keys.filter_map(|key| Key::read(std::str::from_utf8(key).ok()?)).collect(),
            most: Money::from_nanos(json["most"].as_i64().unwrap_or_default()),
        })
    }

    /// What the journal says of a job that is over.
    fn over(&self) -> Json {
        json!({"id": self.own, "over": true})
    }

    fn pending(self) -> Pending {
        Pending { questions: self.keys.len() as u64, id: self.id.unwrap_or(self.own) }
    }
}

/// Questions that are to be submitted together.
struct QuestionGroup {
    row_prompt: String,
    keys: Vec<Key>,
    lines: Vec<u8>,
    most: Money,
}

impl QuestionGroup {
    fn is_full(&self) -> bool {
        self.keys.len() >= QUESTIONS || self.lines.len() >= BYTES
    }
}

/// Gathers questions that have no answer and are in no job.
struct QuestionCollector<'a> {
    batch: &'a Batch,
    journal: &'a Journal,
    via: Via,
    /// What is in a job, or gathered.
    known: Mutex<HashSet<Key>>,
    gathered: Mutex<Vec<QuestionGroup>>,
    /// What may still be spent.
    left: Mutex<Option<Money>>,
    ended: Mutex<Option<Problem>>,
}

fn locked<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AnswerSource for QuestionCollector<'_> {
    fn ask(
        &self,
        model: &PromptModel,
        key: Key,
        conversation: &[Message],
        question: &[u8],
    ) -> Result<QuestionResult> {
        match JournalOnly(self.journal).ask(model, key, conversation, question)? {
            QuestionResult::Open => {}
            asked => return Ok(asked),
        }
        let row_prompt = self.batch.name_of(model);
        let mut gathered = locked(&self.gathered);
        let index = gathered.iter().position(|group| group.row_prompt == row_prompt);
        if locked(&self.known).contains(&key) {
            return Ok(QuestionResult::Open);
        }
        let most = half(most_cost(model, question));
        {
            let mut left = locked(&self.left);
            if left.is_some_and(|left| most > left) {
                let limit = self.batch.plan.limit.unwrap_or(Money::ZERO);
                locked(&self.ended)
                    .get_or_insert_with(|| limit_reached(model, limit, self.journal.spent(), most));
                return Ok(QuestionResult::Open);
            }
            *left = left.map(|left| left - most);
        }
        let body: Json = serde_json::from_slice(&model.whole_body(conversation)?).unwrap_or_default();
        let line = match self.via {
            Via::OpenAi => openai::line(model, key, body),
            Via::Anthropic => anthropic::line(key, body),
        };
        let index = index.unwrap_or_else(|| {
            gathered.push(QuestionGroup {
                row_prompt,
                keys: Vec::new(),
                lines: Vec::new(),
                most: Money::ZERO,
            });
            gathered.len() - 1
        });
        let group = &mut gathered[index];
        group.lines.extend_from_slice(line.to_string().as_bytes());
        group.lines.push(b'\n');
        group.keys.push(key);
        group.most = group.most + most;
        locked(&self.known).insert(key);
        Ok(QuestionResult::Open)
    }
}

/// Half of an amount, rounded up: what a batch interface takes.
fn half(amount: Money) -> Money {
    Money::from_nanos(amount.nanos().saturating_add(1) / 2)
}

impl Batch {
    /// The name of a prompt's columns.
    fn name_of(&self, model: &PromptModel) -> String {
        let is_it = |other: Option<&PromptModel>| other.is_some_and(|other| std::ptr::eq(other, model));
        let judge = self.judges.iter().find(|judge| is_it(judge.model()));
        judge.map_or_else(|| "answer".to_owned(), |judge| judge.name.clone())
    }

    fn model_of(&self, row_prompt: &str) -> Option<&PromptModel> {
        match self.judges.iter().find(|judge| judge.name == row_prompt) {
            Some(judge) => judge.model(),
            None => self.row_prompt.model.as_ref(),
        }
    }

    /// Refuses an interface that the provider of a prompt does not have.
    fn check_via(&self, via: Via) -> Result<()> {
        let models = self.judges.iter().filter_map(crate::row_prompt::Judge::model);
        for model in self.row_prompt.model.iter().chain(models) {
            let chosen = model.chosen();
            let fits = match via {
                Via::OpenAi => matches!(chosen.profile.api, Api::OpenAiChat | Api::OpenAiResponses),
                Via::Anthropic => chosen.profile.api == Api::Anthropic,
            };
            if !fits {
                let message = format!(
                    "{} has the interface `{}`, which this batch interface does not take",
                    chosen.provider.name,
                    chosen.profile.api.as_str()
                );
                let hint = "use openai-batch for OpenAI's interfaces and anthropic-batch for Anthropic's, or leave out --via";
                let diagnostic = Diagnostic::new(Code::BadInput, message).hint(hint);
                return Err(Error::new(ErrorKind::Usage, diagnostic));
            }
        }
        Ok(())
    }

    /// Asks for all rows without an answer through a batch interface. The second part of the result has the jobs that are not over, if
    /// it did not wait for them.
    ///
    /// # Errors
    ///
    /// That the data cannot be read, the journal not be written, or no job be submitted.
    pub fn ask_via(
        &self,
        waiting: Waiting,
        progress: &dyn Progress,
        stop: &Stop,
    ) -> Result<(Ended, Vec<Pending>)> {
        self.check_via(waiting.via)?;
        let Some(journal) = &self.journal else { return Ok((Ended::default(), Vec::new())) };
        let mut ended = Ended::default();
        let mut incomplete = None;
        for _ in 0..MAX_ROUNDS {
            incomplete = incomplete.or(self.collect(journal, waiting.via, stop)?);
            let (sent, why) = self.submit_all(journal, waiting.via, stop)?;
            ended.sent += sent;
            // A limit may have room again when jobs have ended for less than their most.
            ended.why = why;
            let are_done = self.jobs(journal).is_empty();
            while waiting.waits && !stop.is_set() && !self.jobs(journal).is_empty() {
                progress.step(BatchStep::Ask, journal.answers(), None, journal.spent());
                sleep(waiting.pause, stop);
                incomplete = incomplete.or(self.collect(journal, waiting.via, stop)?);
            }
            if are_done || !waiting.waits || stop.is_set() {
                break;
            }
        }
        ended.why = ended.why.or(incomplete);
        (ended.spent, ended.stopped) = (journal.spent(), stop.is_set());
        Ok((ended, self.jobs(journal).into_iter().map(Job::pending).collect()))
    }

    /// The jobs that were submitted and are not over, as far as this batch can collect them: those of a judge that is not asked any more, or of
    /// another provider, have no place in the output.
    fn jobs(&self, journal: &Journal) -> Vec<Job> {
        let is_ours = |job: &Job| {
            self.model_of(&job.row_prompt).is_some_and(|model| model.chosen().provider.name == job.provider)
        };
        journal.jobs().iter().filter_map(Job::read).filter(is_ours).collect()
    }

    /// Refuses to ask directly while jobs have the same questions: they would be paid twice.
    pub(super) fn refuse_jobs(&self, journal: &Journal) -> Result<()> {
        let Some(job) = self.jobs(journal).into_iter().next().map(Job::pending) else { return Ok(()) };
        let message =
            format!("the job {} with {} questions is under way, so nothing was sent", job.id, job.questions);
        let hint = "add --via to collect its answers; without it, the same questions would be paid twice";
        Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BatchBusy, message).hint(hint)))
    }

    /// Submits what has no answer and is in no job; says how many questions that were, and why some were left out.
    fn submit_all(&self, journal: &Journal, via: Via, stop: &Stop) -> Result<(u64, Option<Problem>)> {
        let open = self.jobs(journal);
        let held = open.iter().map(|job| job.most).fold(journal.spent(), |sum, most| sum + most);
        let left = self.plan.limit.map(|limit| if limit > held { limit - held } else { Money::ZERO });
        let gatherer = QuestionCollector {
            batch: self,
            journal,
            via,
            known: Mutex::new(open.iter().flat_map(|job| job.keys.iter().copied()).collect()),
            gathered: Mutex::default(),
            left: Mutex::new(left),
            ended: Mutex::default(),
        };
        drop(open);
        let rows = self.rows_to_ask()?;
        let are_texts = rows.are_texts();
        let mut sent = 0;
        let mut submit = |is_ready: fn(&QuestionGroup) -> bool| -> Result<()> {
            let mut ready = Vec::new();
            {
                let mut gathered = locked(&gatherer.gathered);
                while let Some(index) = gathered.iter().position(is_ready) {
                    ready.push(gathered.swap_remove(index));
                }
            }
            for group in ready {
                sent += group.keys.len() as u64;
                self.submit(journal, via, group, stop)?;
            }
            Ok(())
        };
        let work = |row: &Row| self.ask_row(row, are_texts, &gatherer);
        let accept = |_: Row, asked: Result<()>| asked.and_then(|()| submit(QuestionGroup::is_full));
        if in_order(rows, self.plan.threads, stop, work, accept)? {
            submit(|_| true)?;
        }
        Ok((sent, gatherer.ended.into_inner().unwrap_or_else(PoisonError::into_inner)))
    }

    fn submit(&self, journal: &Journal, via: Via, group: QuestionGroup, stop: &Stop) -> Result<()> {
        let Some(model) = self.model_of(&group.row_prompt) else { return Ok(()) };
        let now = cuebook::jiff::Timestamp::now().to_string();
        let mut job = Job {
            own: short_hash(&[group.lines.as_slice(), now.as_bytes()]),
            id: None,
            provider: model.chosen().provider.name.clone(),
            row_prompt: group.row_prompt,
            not: Vec::new(),
            is_guess: false,
            keys: group.keys,
            most: group.most,
        };
        journal.job(job.to_json())?;
        let submitted = match via {
            Via::OpenAi => openai::submit(model, &job.own, &group.lines, stop),
            Via::Anthropic => anthropic::submit(model, &group.lines, stop),
        };
        match submitted {
            Ok(id) => {
                job.id = Some(id);
                journal.job(job.to_json())
            }
            Err(error) => {
                // A refusal has a status. After any other failure the provider may have the job, so the next run looks for it.
                if error.field("status").is_some() {
                    journal.job(job.over())?;
                }
                Err(error)
            }
        }
    }

    /// Takes the results of all jobs that are over. The result says why one of them lacks answers.
    fn collect(&self, journal: &Journal, via: Via, stop: &Stop) -> Result<Option<Problem>> {
        let mut incomplete = None;
        for job in self.jobs(journal) {
            let Some(model) = self.model_of(&job.row_prompt) else { continue };
            let Some(mut job) = self.named(model, journal, via, job, stop)? else { continue };
            let Some(id) = job.id.clone() else { continue };
            let state = match via {
                Via::OpenAi => openai::state(model, &id, stop)?,
                Via::Anthropic => anthropic::state(model, &id, stop)?,
            };
            let State::Over { results, why } = state else { continue };
            let mut missing: HashSet<Key> = job.keys.iter().copied().collect();
            for path in results {
                let mut lines = ResultLines {
                    model,
                    journal,
                    via,
                    missing: &mut missing,
                    line: Vec::new(),
                    failed: None,
                };
                let fetched = model.provider().exchange(&Exchange::get(&path), &mut lines, stop);
                if let Some(error) = lines.finish() {
                    return Err(error);
                }
                fetched.map_err(|failure| failure.error)?;
            }
            if job.is_guess && missing.len() == job.keys.len() {
                // It is another job of the same size. The next look tries another one.
                (job.id, job.is_guess) = (None, false);
                job.not.push(id);
                journal.job(job.to_json())?;
                continue;
            }
            if !missing.is_empty() {
                let reason = why.unwrap_or_else(|| "its results have no line for this row".to_owned());
                let name = &model.chosen().provider.name;
                let problem = Problem {
                    code: Code::JobFailed.as_str().to_owned(),
                    message: format!("{name} did not complete the job {id}: {reason}"),
                    hint: Some("run the same command again to submit its rows in a new job".to_owned()),
                };
                for key in missing {
                    journal.failed(key, &Failed { problem: problem.clone(), cost: Money::ZERO, run: 0 })?;
                }
                incomplete.get_or_insert(problem);
            }
            journal.job(job.over())?;
        }
        Ok(incomplete)
    }

    /// The job with the provider's name for it, which a process that was killed has not noted; `None` if the provider has no such job.
    fn named(
        &self,
        model: &PromptModel,
        journal: &Journal,
        via: Via,
        job: Job,
        stop: &Stop,
    ) -> Result<Option<Job>> {
        if job.id.is_some() {
            return Ok(Some(job));
        }
        let mut job = job;
        match via {
            Via::OpenAi => job.id = openai::find(model, &job.own, stop)?,
            Via::Anthropic => {
                job.id = anthropic::find(model, &job, &self.jobs(journal), stop)?;
                job.is_guess = true;
            }
        }
        let found = job.id.is_some();
        journal.job(if found { job.to_json() } else { job.over() })?;
        Ok(found.then_some(job))
    }
}

fn sleep(time: Duration, stop: &Stop) {
    let began = Instant::now();
    while !stop.is_set() {
        let left = time.saturating_sub(began.elapsed());
        if left.is_zero() {
            return;
        }
        std::thread::sleep(left.min(SLICE));
    }
}

/// Keeps the lines of a file of results, as they come.
struct ResultLines<'a> {
    model: &'a PromptModel,
    journal: &'a Journal,
    via: Via,
    missing: &'a mut HashSet<Key>,
    line: Vec<u8>,
    failed: Option<Error>,
}

impl Write for ResultLines<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            if let Err(error) = self.keep(&line) {
                let message = error.diagnostic().message.clone();
                self.failed = Some(error);
                return Err(io::Error::other(message));
            }
        }
        self.line.extend_from_slice(rest);
        if self.line.len() > LONGEST {
            return Err(io::Error::other("a line of the results is too long"));
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ResultLines<'_> {
    /// Keeps the last line, which may lack its end. The error is why a line could not be kept.
    fn finish(mut self) -> Option<Error> {
        let line = std::mem::take(&mut self.line);
        if self.failed.is_none() && !line.is_empty() {
            self.failed = self.keep(&line).err();
        }
        self.failed
    }

    fn keep(&mut self, line: &[u8]) -> Result<()> {
        let Ok(line) = serde_json::from_slice::<Json>(line) else { return Ok(()) };
        // What is not ours is left alone, and what came before is known.
        let Some(key) = line["custom_id"].as_str().and_then(Key::read).filter(|key| self.missing.remove(key))
        else {
            return Ok(());
        };
        let result = match self.via {
            Via::OpenAi => openai::result(&line),
            Via::Anthropic => anthropic::result(&line),
        };
        let api = self.model.chosen().profile.api;
        let read = result.and_then(|body| reply::read(api, body, self.model.has_outputs()));
        match read {
            Ok(answer) => {
                let mut kept = answered(self.model, &answer, b"");
                kept.cost = half(kept.cost);
                scrub(self.model, &mut kept);
                self.journal.collected(key, &kept)
            }
            Err(error) => {
                let mut problem = Problem::of(&error);
                let mut message = json!(problem.message);
                self.model.scrub(&mut message);
                problem.message = message.as_str().unwrap_or_default().to_owned();
                self.journal.failed(key, &Failed { problem, cost: Money::ZERO, run: 0 })
            }
        }
    }
}

/// What a provider says where it is asked about jobs and files.
fn call(model: &PromptModel, exchange: &Exchange<'_>, stop: &Stop) -> Result<Json> {
    let mut body = Vec::new();
    model.provider().exchange(exchange, &mut body, stop).map_err(|failure| failure.error)?;
    serde_json::from_slice(&body).map_err(|_| {
        let name = &model.chosen().provider.name;
        let message = format!("{name} answered {} with something else than JSON", exchange.path);
        Error::new(ErrorKind::Reply, Diagnostic::new(Code::JobFailed, message))
    })
}

/// A name in an answer that has to be there.
fn name_in(json: &Json, key: &str, model: &PromptModel) -> Result<String> {
    json[key].as_str().map(str::to_owned).ok_or_else(|| {
        let name = &model.chosen().provider.name;
        let message = format!("{name} answered without `{key}`");
        Error::new(ErrorKind::Reply, Diagnostic::new(Code::JobFailed, message))
    })
}

/// Why a provider could not answer one question of a job.
fn refused(message: String) -> Error {
    Error::new(ErrorKind::Reply, Diagnostic::new(Code::NoAnswer, message))
}
