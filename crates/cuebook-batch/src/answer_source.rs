//! Who answers the questions of a row: the model, or the journal alone.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

use cuebook::chat::Message;
use cuebook::chat::reply::{Answer, Reply, Usage};
use cuebook::tokens::Tokenizer;
use cuebook::{Code, Error, Result};
use cuebook_run::provider::{Category, Charge, Listener, ProviderFailure, Stop};
use cuebook_run::{Money, PromptModel};
use serde_json::{Value as Json, json};

use crate::journal::{Answered, Failed, Journal, QuestionRecord};
use crate::key::Key;
use crate::problem::Problem;
use crate::spend::Spend;

/// So many questions in a row may fail before the batch stops: something is wrong that no row can change.
const MAX_FAILURES: u32 = 25;

/// What came of a question.
pub(crate) enum QuestionResult {
    /// It has an answer.
    Answered(Box<Answered>),
    /// It has none, and what that cost.
    Failed(Problem, Money),
    /// It was not asked yet.
    Open,
}

/// Answers questions.
pub(crate) trait AnswerSource: Sync {
    /// An error ends the batch.
    fn ask(
        &self,
        model: &PromptModel,
        key: Key,
        conversation: &[Message],
        question: &[u8],
    ) -> Result<QuestionResult>;

    /// The same, with the place in the journal's index if no more answers are added.
    fn ask_at(
        &self,
        model: &PromptModel,
        key: Key,
        conversation: &[Message],
        question: &[u8],
    ) -> Result<(QuestionResult, Option<usize>)> {
        self.ask(model, key, conversation, question).map(|asked| (asked, None))
    }
}

fn asked(kept: QuestionRecord) -> QuestionResult {
    match kept {
        QuestionRecord::Answered(answered) => QuestionResult::Answered(answered),
        QuestionRecord::Failed(failed) => QuestionResult::Failed(failed.problem, failed.cost),
    }
}

fn recorded_result(journal: &Journal, key: Key) -> Result<Option<QuestionResult>> {
    Ok(journal.get(key)?.map(asked))
}

/// The journal alone.
pub(crate) struct JournalOnly<'a>(pub(crate) &'a Journal);

impl AnswerSource for JournalOnly<'_> {
    fn ask(&self, _: &PromptModel, key: Key, _: &[Message], _: &[u8]) -> Result<QuestionResult> {
        Ok(recorded_result(self.0, key)?.unwrap_or(QuestionResult::Open))
    }

    fn ask_at(
        &self,
        _: &PromptModel,
        key: Key,
        _: &[Message],
        _: &[u8],
    ) -> Result<(QuestionResult, Option<usize>)> {
        Ok(match self.0.get_at(key)? {
            Some((slot, kept)) => (asked(kept), Some(slot)),
            None => (recorded_result(self.0, key)?.unwrap_or(QuestionResult::Open), None),
        })
    }
}

/// The journal, and the model for what it does not have.
pub(crate) struct JournalAndModel<'a> {
    journal: &'a Journal,
    spend: &'a Spend,
    stop: Stop,
    /// Questions on their way, so that the same one is sent once.
    flights: Mutex<HashSet<Key>>,
    landed: Condvar,
    /// Failures since the last answer.
    failures: AtomicU32,
    sent: AtomicU64,
    /// Why no more is sent.
    ended: Mutex<Option<Problem>>,
}

impl<'a> JournalAndModel<'a> {
    pub(crate) fn new(journal: &'a Journal, spend: &'a Spend, stop: &Stop) -> JournalAndModel<'a> {
        JournalAndModel {
            journal,
            spend,
            stop: stop.clone(),
            flights: Mutex::default(),
            landed: Condvar::new(),
            failures: AtomicU32::new(0),
            sent: AtomicU64::new(0),
            ended: Mutex::default(),
        }
    }

    /// How many questions were sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    /// Why no more is sent, if that is so.
    pub(crate) fn ended(&self) -> Option<Problem> {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn end(&self, why: Problem) {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(why);
    }

    /// Waits until no other row has the same question on its way; says whether this row is to send it.
    fn board(&self, key: Key) -> bool {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        if flights.insert(key) {
            return true;
        }
        while flights.contains(&key) {
            flights = self.landed.wait(flights).unwrap_or_else(PoisonError::into_inner);
        }
        false
    }

    fn land(&self, key: Key) {
        self.flights.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        self.landed.notify_all();
    }

    fn send(
        &self,
        model: &PromptModel,
        key: Key,
        conversation: &[Message],
        question: &[u8],
    ) -> Result<QuestionResult> {
        if self.stop.is_set() || self.ended().is_some() {
            return Ok(QuestionResult::Open);
        }
        let most = most_cost(model, question);
        if !self.spend.hold(most) {
            let limit = self.spend.limit().unwrap_or(Money::ZERO);
            self.end(limit_reached(model, limit, self.spend.spent(), most));
            return Ok(QuestionResult::Open);
        }
        self.sent.fetch_add(1, Ordering::Relaxed);
        let began = Instant::now();
        let asked = model.ask(conversation, &StopListener { stop: self.stop.clone() });
        let milliseconds = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        match asked {
            Ok(answer) => {
                let mut answered = answered(model, &answer, question);
                answered.milliseconds = milliseconds;
                scrub(model, &mut answered);
                self.spend.pay(most, answered.cost);
                self.failures.store(0, Ordering::Relaxed);
                self.journal.answered(key, &answered)?;
                Ok(QuestionResult::Answered(Box::new(answered)))
            }
            Err(failure) => {
                let cost = charged(model, &failure, question);
                self.spend.pay(most, cost);
                if failure.category == Category::Cancelled {
                    return Ok(QuestionResult::Open);
                }
                let problem = Problem::of(&failure.error);
                self.count(&failure.error, &problem);
                self.journal.failed(key, &Failed { problem: problem.clone(), cost, run: 0 })?;
                Ok(QuestionResult::Failed(problem, cost))
            }
        }
    }

    /// Ends the batch where other rows would fail the same way.
    fn count(&self, error: &Error, problem: &Problem) {
        let status = error.field("status").and_then(Json::as_u64);
        let failures = self.failures.fetch_add(1, Ordering::Relaxed) + 1;
        let is_general = matches!(status, Some(401..=403)) || error.code() == Code::KeyMissing;
        if is_general || failures >= MAX_FAILURES {
            let times =
                if is_general { String::new() } else { format!("{failures} requests in a row failed: ") };
            self.end(Problem { message: format!("{times}{}", problem.message), ..problem.clone() });
        }
    }
}

impl AnswerSource for JournalAndModel<'_> {
    fn ask(
        &self,
        model: &PromptModel,
        key: Key,
        conversation: &[Message],
        question: &[u8],
    ) -> Result<QuestionResult> {
        loop {
            if let Some(recorded_result) = recorded_result(self.journal, key)? {
                return Ok(recorded_result);
            }
            if !self.board(key) {
                if self.stop.is_set() || self.ended().is_some() {
                    return Ok(QuestionResult::Open);
                }
                continue;
            }
            // Another row may have asked it between the two looks.
            let asked = match recorded_result(self.journal, key) {
                Ok(Some(recorded_result)) => Ok(recorded_result),
                Ok(None) => self.send(model, key, conversation, question),
                Err(error) => Err(error),
            };
            self.land(key);
            return asked;
        }
    }
}

/// That a question costs more than the limit allows.
pub(crate) fn limit_reached(model: &PromptModel, limit: Money, spent: Money, most: Money) -> Problem {
    let currency = &model.chosen().provider.currency;
    Problem {
        code: Code::NotAsked.as_str().to_owned(),
        message: format!(
            "the limit of {limit} {currency} does not allow this row: {spent} {currency} are spent, and the row costs at most {most} {currency}"
        ),
        hint: Some("run the same command again with a higher --limit-spend".to_owned()),
    }
}

/// Says when to stop.
struct StopListener {
    stop: Stop,
}

impl Listener for StopListener {
    fn cancelled(&self) -> bool {
        self.stop.is_set()
    }

    fn stop(&self) -> Option<Stop> {
        Some(self.stop.clone())
    }
}

/// An estimate of a question's tokens, before the provider counts them.
pub(crate) fn tokens_of(model: &PromptModel, question: &[u8]) -> u64 {
    let text = String::from_utf8_lossy(question);
    Tokenizer::for_model(&model.chosen().model).count(&text) as u64
}

/// The most that a question can cost: all of it is read, and the answer is as long as it may be.
pub(crate) fn most_cost(model: &PromptModel, question: &[u8]) -> Money {
    if model.chosen().price.is_none() {
        return Money::ZERO;
    }
    let input = Some(tokens_of(model, question));
    model.cost(&Usage { input, output: Some(model.most_output()), ..Usage::default() })
}

/// An answer with what it cost. What the provider does not say is counted here.
pub(crate) fn answered(model: &PromptModel, answer: &Answer, question: &[u8]) -> Answered {
    let mut usage = answer.usage.unwrap_or_default();
    let is_estimate = usage.input.is_none_or(|input| input == 0) || usage.output.is_none();
    if usage.input.is_none_or(|input| input == 0) {
        usage.input = Some(tokens_of(model, question));
    }
    let mut answered = Answered::of(answer, usage, Money::ZERO);
    if usage.output.is_none() {
        let text: String = answered.message.texts().collect();
        usage.output = Some(Tokenizer::for_model(&model.chosen().model).count(&text) as u64);
    }
    (answered.usage, answered.is_estimate) = (usage, is_estimate);
    answered.cost = model.cost(&usage);
    answered
}

/// What a question without an answer may have cost.
fn charged(model: &PromptModel, failure: &ProviderFailure, question: &[u8]) -> Money {
    let (output, said) = match &failure.charge {
        Charge::Nothing => return Money::ZERO,
        Charge::Question => (0, Usage::default()),
        Charge::Broken { written, usage } => {
            let tokens = Tokenizer::for_model(&model.chosen().model).count(written) as u64;
            (tokens, usage.unwrap_or_default())
        }
    };
    let input = said.input.filter(|input| *input > 0).unwrap_or_else(|| tokens_of(model, question));
    let output = said.output.unwrap_or(0).max(output);
    model.cost(&Usage { input: Some(input), output: Some(output), ..said })
}

/// Takes the keys of providers out of an answer.
pub(crate) fn scrub(model: &PromptModel, answered: &mut Answered) {
    let mut message = answered.message.to_json();
    let before = message.clone();
    model.scrub(&mut message);
    if message == before {
        return;
    }
    if let Ok(clean) = Message::from_json(&message) {
        let text: String = clean.texts().collect();
        answered.reply = match (&answered.reply, serde_json::from_str(&text)) {
            (Reply::Structured { .. }, Ok(value)) => Reply::Structured { value, raw: text },
            (Reply::Refusal(_), _) => Reply::Refusal(text),
            _ => Reply::Text(text),
        };
        answered.message = clean;
    }
    let mut finish = json!(answered.finish);
    model.scrub(&mut finish);
    answered.finish = finish.as_str().map(str::to_owned);
}
