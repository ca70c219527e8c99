//! What is counted: answers, and attempts that came to nothing.
//!
//! Providers charge for what a model read and wrote, whether the answer arrives or not. So every attempt counts:
//!
//! | the attempt | what is counted |
//! | --- | --- |
//! | brought an answer | what the provider says, and where it does not say, what is counted here |
//! | brought the beginning of one, and broke | what was read, and what had come |
//! | was sent whole and never answered: a timeout, a broken connection | what was read |
//! | was under way when the process died | what was read, and the text that the log has of it: `store/book.rs` counts it |
//! | was refused with a status, such as 429 or 503 | nothing |
//! | was not sent whole: no connection, no such host | nothing |
//!
//! What is counted here and not by the provider is a guess, which the event and the sum (`estimated_tokens`) say. Before an
//! attempt is made again the limits are looked at again, and the most that it can cost is held anew.

use cuebook::Code;
use cuebook::chat::Message;
use cuebook::chat::reply::{Answer, Usage};
use cuebook::tokens::Tokenizer;
use serde_json::{Value as Json, json};

use super::cost_json;
use super::harness::tokens_of;
use super::managed::{Managed, State, is_cut};
use super::{Kind, Money};
use crate::policy::limits::Reached;
use crate::provider::{Charge, ProviderFailure, RetryDecision, RetryNotice};
use crate::watch::Activity;

/// What an attempt cost.
struct AttemptCost {
    input: u64,
    output: u64,
    spend: Money,
    /// How many of the tokens were counted here; `None` if the provider counted all of them.
    estimated: Option<u64>,
}

impl AttemptCost {
    fn to_json(&self) -> Json {
        json!({"input": self.input, "output": self.output, "spend": self.spend.to_json()})
    }
}

impl State {
    fn pay(&mut self, bill: &AttemptCost) {
        let cost = &mut self.account.cost;
        cost.input_tokens = cost.input_tokens.saturating_add(bill.input);
        cost.output_tokens = cost.output_tokens.saturating_add(bill.output);
        cost.estimated = cost.estimated.saturating_add(bill.estimated.unwrap_or(0));
        cost.spend = cost.spend + bill.spend;
    }
}

impl Managed<'_> {
    /// An answer came: it is kept with what it cost.
    pub(super) fn answered(&self, answer: &Answer, message: &Message) {
        let bill = self.bill(answer, message);
        let mut payload = json!({
            "message": message.to_json(),
            "usage": answer.usage.as_ref().map(Usage::to_json),
            "finish": answer.finish,
            "model": answer.model,
        });
        if let Some(thinking) = &answer.thinking {
            self.keep(Kind::CognitionReasoning, json!({"text": thinking}));
        }
        {
            let mut state = self.state();
            state.account.cost.turns += 1;
            state.pay(&bill);
            let cost = state.cost_now();
            payload["turn"] = cost.turns.into();
            payload["cost"] = cost_json(&cost);
            if bill.estimated.is_some() {
                payload["estimated"] = json!({"input": bill.input, "output": bill.output});
                if !std::mem::replace(&mut state.account.guessed, true) {
                    let provider = &self.launch.provider;
                    payload["note"] = json!(format!(
                        "{provider} does not report its tokens; Cuebook counts them for the limits"
                    ));
                }
            }
            if self.model.price.is_some() && bill.spend > state.account.held {
                // It cost more than could be known before: the provider counts differently, or exceeded the limit in its request.
                payload["more_than_held"] = (bill.spend - state.account.held).nanos().into();
            }
            state.unwritten.change.cost = Some(cost);
            state.unwritten.change.hold = Some(Money::ZERO);
            state.account.held = Money::ZERO;
            state.answer.spoken.clear();
            state.answer.cut = answer.finish.as_deref().is_some_and(is_cut);
            if state.answer.cut {
                payload["cut_off"] = json!({"max_output_tokens": state.window.most_tokens});
            }
            if bill.input > 0 {
                // What the provider counted, with the answer that is about to follow.
                state.window.tokens = bill.input + bill.output;
                state.window.counted += 1;
            }
        }
        self.note_ending(answer, &mut payload);
        self.keep(Kind::CognitionOut, payload);
        self.pulse("");
    }

    /// An answer did not come: what was said is kept, and what it may have cost is counted.
    pub(super) fn unheard(&self, unheard: &ProviderFailure) {
        let bill = self.guess(&unheard.charge);
        let cost = {
            let mut state = self.state();
            bill.iter().for_each(|bill| state.pay(bill));
            let cost = state.cost_now();
            state.unwritten.change.cost = Some(cost);
            state.unwritten.change.hold = Some(Money::ZERO);
            state.account.held = Money::ZERO;
            state.answer.spoken.clear();
            cost
        };
        let mut payload = json!({
            "text": unheard.partial_text,
            "error": unheard.error.diagnostic().message,
            "indeterminate": unheard.indeterminate,
            "counted_spend": bill.as_ref().map_or(Money::ZERO, |bill| bill.spend).to_json(),
            "cost": cost_json(&cost),
        });
        if let Some(bill) = &bill {
            payload["estimated"] = bill.to_json();
        }
        self.keep(Kind::CognitionPartial, payload);
    }

    /// An attempt failed, and another one may follow: what it may have cost is counted, and the next one is paid for before it
    /// is made.
    pub(super) fn again(&self, again: &RetryNotice<'_>) -> RetryDecision {
        let bill = self.guess(again.charge);
        // It is counted here, and the next attempt says it anew.
        self.state().answer.spoken.clear();
        let why = again.why.diagnostic().message.clone();
        let mut payload =
            json!({"attempt": again.attempt, "pause_seconds": again.pause.as_secs_f64(), "error": why});
        let mut next = RetryDecision::Same;
        if let Some(bill) = &bill {
            let cost = {
                let mut state = self.state();
                state.pay(bill);
                let cost = state.cost_now();
                state.unwritten.change.cost = Some(cost);
                state.unwritten.change.hold = Some(Money::ZERO);
                state.account.held = Money::ZERO;
                cost
            };
            payload["estimated"] = bill.to_json();
            payload["cost"] = cost_json(&cost);
            next = self.next();
        }
        if next == RetryDecision::Stop {
            payload["pause_seconds"] = Json::Null;
        }
        self.keep(Kind::Retry, payload);
        if let Err(error) = self.write()
            && error.code() == Code::BudgetExhausted
        {
            // Between looking and holding, another thread, such as a child, got the money.
            next = self.stop(
                self.standing()
                    .ok()
                    .map(|(_, account)| self.too_little(account.remaining(), account.reserved)),
            );
        }
        if next != RetryDecision::Stop {
            self.watch
                .activity(&self.id, &Activity::Retry { attempt: again.attempt, pause: again.pause, why });
        }
        next
    }

    /// No further attempt is made: a limit was reached, or it is unknown.
    fn stop(&self, reached: Option<Reached>) -> RetryDecision {
        let mut state = self.state();
        state.answer.reached = reached;
        state.unwritten.change.hold = Some(Money::ZERO);
        state.account.held = Money::ZERO;
        RetryDecision::Stop
    }

    /// Whether the limits allow another attempt, which is held for.
    fn next(&self) -> RetryDecision {
        if let Some(reached) = self.launch.limits.check(&self.cost()) {
            return self.stop(Some(reached));
        }
        let Ok((_, account)) = self.standing() else { return self.stop(None) };
        let (tokens, before) = {
            let state = self.state();
            (state.window.tokens, state.window.most_tokens)
        };
        match self.room(tokens, &account) {
            Ok((most, _)) if most > before => {
                // It was sent with this, and does not become longer.
                self.set_hold(before, self.price_of(tokens, before));
                RetryDecision::Same
            }
            Ok((most, hold)) => {
                self.set_hold(most, hold);
                if most < before { RetryDecision::Shorter(most) } else { RetryDecision::Same }
            }
            Err(reached) => self.stop(Some(*reached)),
        }
    }

    /// What an answer cost: where the provider does not say, it is counted here, because limits without a count would hold
    /// nothing. No model reads nothing, so a provider that says so does not know.
    fn bill(&self, answer: &Answer, message: &Message) -> AttemptCost {
        let mut usage = answer.usage.unwrap_or_default();
        let mut estimated = None;
        let mut guess = |tokens: u64| {
            *estimated.get_or_insert(0) += tokens;
            Some(tokens)
        };
        let says_input = usage.input.is_some_and(|input| input > 0);
        if !(says_input && usage.output.is_some()) {
            if !says_input {
                usage.input = guess(self.state().window.tokens);
            }
            if usage.output.is_none_or(|output| output == 0) {
                let calls = message.metadata.get("tool_calls").map(Json::to_string).unwrap_or_default();
                let thinking = answer.thinking.as_deref().unwrap_or_default();
                let texts = message.texts().chain([calls.as_str(), thinking]);
                usage.output = guess(texts.map(|text| self.tokens_in(text)).sum());
            }
        }
        self.priced(&usage, estimated)
    }

    /// What an attempt that failed may have cost.
    fn guess(&self, charge: &Charge) -> Option<AttemptCost> {
        let (written, said) = match charge {
            Charge::Nothing => return None,
            Charge::Question => ("", Usage::default()),
            Charge::Broken { written, usage } => (written.as_str(), usage.unwrap_or_default()),
        };
        let (tokens, most) = {
            let state = self.state();
            (state.window.tokens, state.window.most_tokens)
        };
        let input = said.input.filter(|input| *input > 0);
        // Providers say at the end how much was written, so until then it is what came. No answer is longer than it may be.
        let known = said.output.unwrap_or(0);
        let output = self.tokens_in(written).min(most).max(known);
        let estimated = input.map_or(tokens, |_| 0) + (output - known);
        let usage = Usage { input: Some(input.unwrap_or(tokens)), output: Some(output), ..said };
        Some(self.priced(&usage, Some(estimated)))
    }

    pub(super) fn tokens_in(&self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        tokens_of(&Tokenizer::for_model(&self.launch.model.id), text) as u64
    }

    fn priced(&self, usage: &Usage, estimated: Option<u64>) -> AttemptCost {
        let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
        let spend = self.model.price.map_or(Money::ZERO, |price| price.cost(usage));
        AttemptCost { input, output, spend, estimated }
    }
}
