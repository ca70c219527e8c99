//! One run of an agent: the ports of the loop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use cuebook::chat::Message;
use cuebook::chat::reply::{Answer, Chunk, Reply, ToolCall};
use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Error, ErrorKind};
use serde_json::{Map, Value as Json};

use super::Agent;
use crate::{AfterAnswer, Halt, Performed, Permit, Ports, Question, Step, bind, trim};
use cuebook_run::provider::{Listener, RetryDecision, RetryNotice};

/// How long a pause lasts before it is looked whether to stop.
const MOMENT: Duration = Duration::from_millis(20);

/// One run of an agent.
pub(super) struct Run<'r, 'a> {
    agent: &'r Agent<'a>,
    /// Whether a call of the answer at hand was made.
    made: AtomicBool,
}

impl<'r, 'a> Run<'r, 'a> {
    pub(super) fn new(agent: &'r Agent<'a>) -> Run<'r, 'a> {
        Run { agent, made: AtomicBool::new(false) }
    }
}

impl Listener for Run<'_, '_> {
    fn chunk(&self, chunk: &Chunk) {
        self.agent.notify(&Step::Received { chunk });
    }

    fn retry(&self, again: &RetryNotice<'_>) -> RetryDecision {
        let RetryNotice { attempt, pause, why, .. } = *again;
        self.agent.notify(&Step::AskingAgain { attempt, pause, why });
        RetryDecision::Same
    }

    fn cancelled(&self) -> bool {
        self.agent.cancel.is_cancelled()
    }
}

impl Ports for Run<'_, '_> {
    fn note(&self, step: &Step<'_>) -> Result<(), Halt> {
        match step {
            Step::Answered { .. } => self.made.store(false, Ordering::Relaxed),
            Step::PerformedCall { .. } => self.made.store(true, Ordering::Relaxed),
            _ => {}
        }
        self.agent.notify(step);
        Ok(())
    }

    fn before(&self, turn: u32, conversation: &mut Vec<Message>) -> Result<(), Halt> {
        let agent = self.agent;
        let when = || match turn {
            0 => "before first iteration".to_owned(),
            _ => format!("before iteration {}", turn + 1),
        };
        agent.stop_if_cancelled(when)?;
        if turn >= agent.most_turns {
            let message = format!("Agent loop exceeded {} iterations", agent.most_turns);
            let hint = "the model did not finish: check its tool results, or allow more turns";
            let error = Error::new(ErrorKind::Limit, Diagnostic::new(Code::LimitReached, message).hint(hint));
            return Err(Halt::Suspended(error.with("limit", "turns").with("most", agent.most_turns)));
        }
        let count = agent.steering.pour(conversation);
        if count > 0 {
            agent.notify(&Step::Steered { count, conversation });
        }
        agent.trim(conversation);
        agent.stop_if_cancelled(when)?;
        agent.guards.iter().try_for_each(|guard| guard.check_input(conversation))
    }

    fn ask(&self, turn: u32, conversation: &[Message]) -> Result<Answer, Halt> {
        let agent = self.agent;
        let mut attempt = 0;
        loop {
            let question = Question { messages: conversation, turn, attempt, listener: self };
            let miss = match (agent.ask_model)(&question) {
                Ok(answer) => return Ok(answer),
                Err(miss) => miss,
            };
            agent.stop_if_cancelled(|| "during the model call".into())?;
            if miss.indeterminate {
                return Err(Halt::Indeterminate(miss.error));
            }
            attempt += 1;
            let messages = || conversation.iter().map(Message::to_json).collect::<Vec<Json>>();
            if !miss.again {
                return Err(Halt::Failed(miss.error.with("messages", messages())));
            }
            if attempt >= agent.attempts {
                return Err(Halt::Failed(given_up(&miss.error, attempt).with("messages", messages())));
            }
            let pause = (agent.pause)(attempt);
            agent.notify(&Step::AskingAgain { attempt, pause, why: &miss.error });
            agent.wait(pause)?;
        }
    }

    fn review(&self, _turn: u32, message: &Message) -> Result<(), Halt> {
        self.agent.guards.iter().try_for_each(|guard| guard.check_output(message))
    }

    fn accept(&self, calls: &[ToolCall]) -> Result<(), Halt> {
        let agent = self.agent;
        if calls.len() > agent.most_calls {
            let message = format!(
                "the model made {} calls in one answer; the limit is {}",
                calls.len(),
                agent.most_calls
            );
            let diagnostic = Diagnostic::new(Code::LimitReached, message).hint("ask for fewer calls at once");
            return Err(Halt::Failed(Error::new(ErrorKind::Limit, diagnostic)));
        }
        let Some(call) = calls.iter().find(|call| !agent.tools.contains_key(&call.name)) else {
            return Ok(());
        };
        let names = nearest(&call.name, agent.tools.keys().map(String::as_str));
        let hint = did_you_mean(&names).unwrap_or_else(|| {
            "register a function with this name, or do not offer the tool to the model".into()
        });
        let diagnostic =
            Diagnostic::new(Code::NoHandler, format!("Tool not registered: {}", call.name)).hint(hint);
        Err(Halt::Failed(Error::new(ErrorKind::Invoker, diagnostic).with("tool", &call.name)))
    }

    fn complete(&self, call: &ToolCall, arguments: &mut Map<String, Json>) {
        if let Some(bindings) = self.agent.bindings.get(&call.name) {
            let pairs = bindings.iter().map(|(parameter, input)| (parameter.as_str(), input.as_str()));
            bind(arguments, pairs, &self.agent.inputs);
        }
    }

    fn permit(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Permit {
        let verdicts = self.agent.guards.iter().map(|guard| guard.check_tool(&call.name, arguments));
        verdicts.into_iter().find(|permit| *permit != Permit::Allowed).unwrap_or(Permit::Allowed)
    }

    fn perform(&self, call: &ToolCall, arguments: &Map<String, Json>) -> Performed {
        match self.agent.tools.get(&call.name) {
            Some(function) => function(call, arguments),
            None => Performed::failed(&call.name, "unknown"),
        }
    }

    fn between(&self) -> Result<(), Halt> {
        let when = || match self.made.load(Ordering::Relaxed) {
            true => "after tool execution".into(),
            false => "before tool execution".into(),
        };
        self.agent.stop_if_cancelled(when)
    }

    fn settle(&self, _turn: u32, said: &Reply) -> Result<AfterAnswer, Halt> {
        if let Reply::Refusal(why) = said {
            let diagnostic = Diagnostic::new(Code::Refused, format!("Model refused: {why}"))
                .hint("change the request, or use another model");
            return Err(Halt::Failed(Error::new(ErrorKind::Reply, diagnostic).with("reason", why)));
        }
        Ok(AfterAnswer::Done(said.to_json()))
    }

    fn concurrent(&self) -> bool {
        self.agent.concurrent
    }

    fn alone(&self, call: &ToolCall) -> bool {
        self.agent.alone.contains(&call.name)
    }

    fn model(&self) -> Option<String> {
        self.agent.model.clone()
    }

    fn prompt(&self) -> Option<String> {
        self.agent.prompt.clone()
    }
}

impl Agent<'_> {
    pub(super) fn notify(&self, step: &Step<'_>) {
        self.observers.iter().for_each(|observer| observer.step(step));
    }

    fn stop_if_cancelled(&self, when: impl FnOnce() -> String) -> Result<(), Halt> {
        match self.cancel.is_cancelled() {
            true => Err(Halt::Cancelled(format!("Cancellation requested {}", when()))),
            false => Ok(()),
        }
    }

    /// Makes the conversation fit its budget.
    fn trim(&self, conversation: &mut Vec<Message>) {
        let Some(budget) = self.budget else { return };
        let mut compacted = false;
        let removed = trim::fit(conversation, budget, |removed| {
            let Some(sum_up) = &self.compaction else { return trim::summarise(removed) };
            self.notify(&Step::Compacting);
            let why = match sum_up(removed) {
                Ok(summary) if !summary.trim().is_empty() => {
                    compacted = true;
                    return summary;
                }
                Ok(_) => "the summary is empty".to_owned(),
                Err(why) => why,
            };
            self.notify(&Step::CompactingFailed { why: &why });
            trim::summarise(removed)
        });
        if removed > 0 {
            self.notify(&Step::Trimmed { removed, compacted, conversation });
        }
    }

    /// Waits, and stops waiting on a request to stop.
    fn wait(&self, pause: Duration) -> Result<(), Halt> {
        let begun = Instant::now();
        loop {
            self.stop_if_cancelled(|| "during the model call".into())?;
            let left = pause.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return Ok(());
            }
            thread::sleep(left.min(MOMENT));
        }
    }
}

/// The error of a model that does not answer.
fn given_up(error: &Error, attempts: u32) -> Error {
    let why = &error.diagnostic().message;
    let message = format!("LLM call failed after {attempts} retries: {why}");
    let hint = error.diagnostic().hint.clone();
    let hint = hint.unwrap_or_else(|| "the conversation is stored: you can send it again later".into());
    let diagnostic = Diagnostic::new(Code::NoAnswer, message).hint(hint);
    Error::new(ErrorKind::Reply, diagnostic).with("attempts", attempts)
}
