//! How far a thread may go: the tokens and the money of the next answer, counted before it is asked for.

use cuebook::chat::Message;
use cuebook::chat::reply::{Answer, Reply, ToolCall};
use cuebook::prompt::Tool;
use cuebook::tokens::Tokenizer;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result};
use serde_json::{Number, Value as Json, json};

use super::drive::then_continue;
use super::managed::Managed;
use super::{Kind, Money, not_found};
use crate::policy::limits::{Reached, seconds};
use crate::provider::{Ending, FIELDS, Price, ending};
use crate::store::Account;
use crate::turn::Halt;

/// So many tokens are thought of for an answer of which nothing is known.
const SHORT_ANSWER: u64 = 1024;
/// An answer that may not have as many tokens is not worth asking for.
const FEWEST_TOKENS: u64 = 16;
/// How full a conversation may be, in tenths.
const FULL: u64 = 9;

impl Managed<'_> {
    /// How many tokens the conversation has. What the provider counted is exact; what came since is counted here.
    pub(super) fn count(&self, conversation: &[Message], tools: &[Tool]) -> u64 {
        let mut state = self.state();
        let tokenizer = Tokenizer::for_model(&self.launch.model.id);
        let count = |text: &str| tokens_of(&tokenizer, text);
        if state.window.counted > conversation.len() || state.window.counted == 0 {
            (state.window.tokens, state.window.counted) = (0, 0);
            for tool in tools {
                state.window.tokens += count(&tool.to_json().to_string()) as u64;
            }
        }
        for message in &conversation[state.window.counted..] {
            let calls = message.metadata.get("tool_calls").map(Json::to_string).unwrap_or_default();
            let texts = message.texts().map(count).sum::<usize>();
            // A few tokens around each message say whose it is.
            state.window.tokens += (texts + count(&calls) + 4) as u64;
        }
        state.window.counted = conversation.len();
        state.window.tokens
    }

    /// Stops the run if the conversation is full, so that another thread goes on with it.
    pub(super) fn check_full(&self, tokens: u64) -> Result<(), Halt> {
        let window = self.launch.context_window;
        let known = self.state().window.known_full.take();
        if self.cost().turns == 0 || tokens.saturating_mul(10) < window.saturating_mul(FULL) {
            return Ok(());
        }
        if known.is_none() {
            self.keep(Kind::ContextFull, json!({"tokens": tokens, "context_window": window}));
        }
        if known.as_ref().is_none_or(|heard| !heard.is_over()) {
            self.thread_hooks.full(self, (tokens, window), known.unwrap_or_default())?;
        }
        self.state().window.full = true;
        let message = format!("the conversation has about {tokens} tokens; the model's window is {window}");
        let diagnostic =
            Diagnostic::new(Code::LimitReached, message).hint("another thread continues the conversation");
        Err(Halt::Suspended(Error::new(ErrorKind::Limit, diagnostic)))
    }

    /// Whether it is asked to stop, and its account.
    pub(super) fn standing(&self) -> Result<(bool, Account), Halt> {
        let standing = self.store.standing(&self.id).map_err(Halt::Failed)?;
        standing.ok_or_else(|| Halt::Failed(not_found(&*self.store, &self.id)))
    }

    /// Holds the most that the next answer can cost, and makes it shorter if that is too much.
    pub(super) fn hold(&self, input: u64, account: &Account) -> Result<(), Halt> {
        let (most, hold) = self.room(input, account).map_err(|reached| self.limit(*reached))?;
        self.set_hold(most, hold);
        Ok(())
    }

    pub(super) fn set_hold(&self, most: u64, hold: Money) {
        let mut state = self.state();
        (state.window.most_tokens, state.account.held) = (most, hold);
        state.unwritten.change.hold = Some(hold);
    }

    /// What one more answer needs of a limit that was reached, as far as it is known: it is as long as those before it were.
    pub(super) fn with_next(&self, reached: Reached) -> Reached {
        let cost = self.cost();
        let usual = cost.output_tokens.checked_div(u64::from(cost.turns)).unwrap_or(0);
        let output = usual.max(SHORT_ANSWER).min(self.model.most_output);
        let input = self.state().window.tokens;
        let next = match reached.limit {
            "spend" => Some(self.price_of(input, output).to_json()),
            "tokens" => Some(json!(input.saturating_add(output))),
            _ => None,
        };
        Reached { next, ..reached }
    }

    /// How many tokens the next answer may have, and what it costs then at most.
    pub(super) fn room(&self, input: u64, account: &Account) -> Result<(u64, Money), Box<Reached>> {
        let cost = self.cost();
        let limits = &self.launch.limits;
        // What is going to be read is known before it is sent, and is read however short the answer is.
        let left = limits.tokens.saturating_sub(cost.tokens()).saturating_sub(input);
        if left < FEWEST_TOKENS {
            return Err(Box::new(self.too_few(cost.tokens())));
        }
        let mut most = self.model.most_output.min(left);
        if let Some(price) = &self.model.price {
            let remaining = match account.limit == Money::MAX {
                true => Money::MAX,
                // What it spent last and what it no longer holds may not be written yet.
                false => account.limit - account.spent.max(cost.spend) - account.children - account.reserved,
            };
            let reading = Money::of_tokens(input, price.input);
            if price.output > Money::ZERO {
                let nanos = (remaining - reading).nanos().max(0);
                let affordable = u128::from(nanos.unsigned_abs()) * 1_000_000
                    / u128::from(price.output.nanos().unsigned_abs());
                most = most.min(u64::try_from(affordable).unwrap_or(u64::MAX));
            }
            if most < FEWEST_TOKENS || reading > remaining {
                return Err(Box::new(self.too_little(remaining, account.reserved)));
            }
        }
        Ok((most, self.price_of(input, most)))
    }

    /// What it costs to read and to write so much.
    pub(super) fn price_of(&self, input: u64, output: u64) -> Money {
        let price =
            |price: Price| Money::of_tokens(input, price.input) + Money::of_tokens(output, price.output);
        self.model.price.map_or(Money::ZERO, price)
    }

    /// Remembers why an answer ended. Where it continues with calls, the log says so here; else with the result.
    pub(super) fn note_ending(&self, answer: &Answer, payload: &mut Json) {
        let finish = answer.finish.clone();
        let is_strange = ending(finish.as_deref()) == Ending::Strange;
        self.state().answer.finish = finish;
        if is_strange && matches!(answer.reply, Reply::ToolCalls { .. }) {
            let cause = self.cut_off().diagnostic().message.clone();
            let note = payload.get("note").and_then(Json::as_str).map(|note| format!("{note}; {cause}"));
            payload["note"] = note.unwrap_or(cause).into();
        }
    }

    /// An answer is not whole: why, and how to change that.
    pub(super) fn cut_off(&self) -> Error {
        let finish = self.state().answer.finish.clone().unwrap_or_default();
        let model = &self.launch.model.id;
        let (message, hint) = match ending(Some(&finish)) {
            Ending::Full => (
                format!(
                    "the answer of {model} was cut off: the conversation fills the model's window of {} tokens",
                    self.launch.context_window
                ),
                Hint::option("shorten the prompt, or use a model with a larger window", "--model ID"),
            ),
            Ending::Strange => (
                format!(
                    "the answer of {model} may be incomplete: {} ended it with `{finish}`",
                    self.launch.provider
                ),
                {
                    let show = format!("cuebook thread show {}", self.id);
                    Hint::command_line(format!("read it ({show}), retry, or use another model: --model ID"))
                        .for_programs("read it, retry, or use another model")
                        .with_command(show)
                },
            ),
            _ => return self.too_long(),
        };
        Error::new(ErrorKind::OutputParse, Diagnostic::new(Code::OutputsMissing, message).hint(hint))
            .with("finish", finish)
    }

    /// An answer was cut off: what it was not to be longer than, and how to change that.
    fn too_long(&self) -> Error {
        let most = self.state().window.most_tokens;
        let own = self.launch.model.options.max_output_tokens.as_ref().and_then(Number::as_u64);
        let model = &self.launch.model.id;
        let (most, hint) = match own.filter(|own| *own <= most) {
            Some(own) => (own, "raise `maxOutputTokens` in the prompt, or ask for a shorter answer".into()),
            None if most < self.model.most_output => (
                most,
                Hint::command_line(
                    "the thread's limits allow no more: raise them with --limit tokens=… or spend=…",
                )
                .for_programs("the thread's limits allow no more: raise `tokens` or `spend`"),
            ),
            None => {
                let provider = &self.launch.provider;
                let hint = format!(
                    "raise `max_output` of {model} in the provider file `{provider}`, or ask for a shorter answer"
                );
                (most, hint.into())
            }
        };
        let message = format!("the answer of {model} was cut off at {most} tokens");
        Error::new(ErrorKind::OutputParse, Diagnostic::new(Code::OutputsMissing, message).hint(hint))
            .with("max_output_tokens", most)
    }

    /// An answer was cut off in the middle of a call, which was not made.
    pub(super) fn cut_off_in(&self, call: &ToolCall) -> Error {
        let error = self.cut_off();
        let mut diagnostic = error.diagnostic().clone();
        diagnostic.message = format!("{}, in the middle of a call of `{}`", diagnostic.message, call.name);
        let resume = then_continue("then ", &self.id);
        diagnostic.hint = Some(diagnostic.hint.map_or(resume.clone(), |hint| hint.or(resume)));
        let reported = Error::new(error.kind(), diagnostic).with("tool", &call.name);
        ["max_output_tokens", "finish"].into_iter().fold(reported, |reported, name| match error.field(name) {
            Some(value) => reported.with(name, value.clone()),
            None => reported,
        })
    }

    /// Stops the run on request, and says when it was.
    pub(super) fn check_cancelled(&self, when: &str) -> Result<(), Halt> {
        // What ran then says more than what would have been next.
        let tool = self.state().calls.stopped_in.clone().map(|tool| format!("while `{tool}` ran"));
        let when = tool.as_deref().unwrap_or(when);
        match self.cancelled() {
            true if self.leaves() => Err(Halt::Cancelled(format!("interrupted {when}"))),
            true => Err(Halt::Cancelled(format!("cancelled {when}"))),
            false => Ok(()),
        }
    }

    /// The provider did not answer, or asks for a longer pause than a thread waits. The thread can continue later.
    pub(super) fn come_again(&self, error: &Error) -> Error {
        let mut diagnostic = error.diagnostic().clone();
        diagnostic.hint = Some(match diagnostic.hint {
            Some(hint) => hint.or(then_continue("then ", &self.id)),
            None => then_continue("", &self.id),
        });
        let mut again = Error::new(error.kind(), diagnostic).with("thread_id", self.id.as_str());
        for name in FIELDS {
            if let Some(value) = error.field(name) {
                again = again.with(name, value);
            }
        }
        again
    }

    /// The limit on time.
    pub(super) fn late(&self) -> Reached {
        let limits = &self.launch.limits;
        let (current, most) = (seconds(self.cost().elapsed), seconds(limits.duration));
        Reached {
            limit: "duration_seconds",
            current,
            most,
            currency: limits.currency.clone(),
            reserved: Money::ZERO,
            next: None,
        }
    }

    /// The limit on tokens, when so many are used and the next request would need more than are left.
    fn too_few(&self, used: u64) -> Reached {
        let limits = &self.launch.limits;
        let (current, most) = (json!(used), json!(limits.tokens));
        let currency = limits.currency.clone();
        Reached { limit: "tokens", current, most, currency, reserved: Money::ZERO, next: None }
    }

    /// The limit on money, when so much is left and so much is reserved for children.
    pub(super) fn too_little(&self, remaining: Money, reserved: Money) -> Reached {
        let limits = &self.launch.limits;
        let (current, most) = ((limits.spend - remaining - reserved).to_json(), limits.spend.to_json());
        Reached { limit: "spend", current, most, currency: limits.currency.clone(), reserved, next: None }
    }
}

/// How many tokens a text has. Where the vocabulary is not published that is a guess in any case: a token for three bytes, which is on
/// the safe side, and for which no vocabulary has to be loaded (50 milliseconds and 70 megabytes).
pub(super) fn tokens_of(tokenizer: &Tokenizer, text: &str) -> usize {
    if tokenizer.is_exact() { tokenizer.count(text) } else { text.len().div_ceil(3) }
}
