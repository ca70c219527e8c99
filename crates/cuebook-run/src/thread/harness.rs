//! How far a thread may go: the tokens and the money of the next answer, counted before it is asked for.

use cuebook::chat::Message;
use cuebook::chat::reply::{Answer, Usage};
use cuebook::prompt::Tool;
use cuebook::tokens::Tokenizer;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::{Number, Value as Json};

use super::managed::Managed;
use super::{Money, not_found};
use crate::policy::limits::{Reached, seconds};
use crate::store::Account;
use crate::turn::Halt;

/// An answer may have as many tokens, however few are left of the limit: that is looked at before each answer.
const SHORT_ANSWER: u64 = 1024;
/// An answer that may not have as many tokens is not worth asking for.
const FEWEST_TOKENS: u64 = 16;

impl Managed<'_> {
    /// How many tokens the conversation has. What the provider counted is exact; what came since is counted here.
    pub(super) fn count(&self, conversation: &[Message], tools: &[Tool]) -> u64 {
        let mut state = self.state();
        let tokenizer = Tokenizer::for_model(&self.launch.model.id);
        let count = |text: &str| tokens_of(&tokenizer, text);
        if state.counted > conversation.len() || state.counted == 0 {
            (state.tokens, state.counted) = (0, 0);
            for tool in tools {
                state.tokens += count(&tool.to_json().to_string()) as u64;
            }
        }
        for message in &conversation[state.counted..] {
            let calls = message.metadata.get("tool_calls").map(Json::to_string).unwrap_or_default();
            let texts = message.texts().map(count).sum::<usize>();
            // A few tokens around each message say whose it is.
            state.tokens += (texts + count(&calls) + 4) as u64;
        }
        state.counted = conversation.len();
        state.tokens
    }

    /// Whether somebody wants it to stop, and its account.
    pub(super) fn standing(&self) -> Result<(bool, Account), Halt> {
        let standing = self.store.standing(&self.id).map_err(Halt::Failed)?;
        standing.ok_or_else(|| Halt::Failed(not_found(&*self.store, &self.id)))
    }

    /// Holds the most that the next answer can cost, and makes it shorter if that is too much.
    pub(super) fn hold(&self, input: u64, account: &Account) -> Result<(), Halt> {
        let cost = self.cost();
        let limits = &self.launch.limits;
        let left = limits.tokens.saturating_sub(cost.tokens()).saturating_sub(input);
        // The limit is looked at before each answer; one that is cut to a few words would help nobody.
        let mut most = self.voice.most_output.min(left.max(SHORT_ANSWER));
        let mut hold = Money::ZERO;
        if let Some(price) = &self.voice.price {
            let remaining = match account.limit == Money::MOST {
                true => Money::MOST,
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
                return Err(self.limit(self.too_little(remaining, account.reserved)));
            }
            hold = reading + Money::of_tokens(most, price.output);
        }
        let mut state = self.state();
        (state.most_tokens, state.held) = (most, hold);
        state.change.hold = Some(hold);
        Ok(())
    }

    /// An answer was cut off: what it was not to be longer than, and how to change that.
    pub(super) fn cut_off(&self) -> Error {
        let most = self.state().most_tokens;
        let own = self.launch.model.options.max_output_tokens.as_ref().and_then(Number::as_u64);
        let model = &self.launch.model.id;
        let (most, hint) = match own.filter(|own| *own <= most) {
            Some(own) => {
                (own, "raise `maxOutputTokens` in the prompt, or ask for a shorter answer".to_owned())
            }
            None if most < self.voice.most_output => (
                most,
                "the limits of the thread leave no more: raise them with --limit tokens=… or spend=…"
                    .to_owned(),
            ),
            None => {
                let provider = &self.launch.provider;
                let hint = format!(
                    "raise `max_output` of {model} in the file of the provider `{provider}`, or ask for a shorter answer"
                );
                (most, hint)
            }
        };
        let message = format!("the answer of {model} was cut off: it may have {most} tokens");
        Error::new(ErrorKind::OutputParse, Diagnostic::new(Code::OutputsMissing, message).hint(hint))
            .with("max_output_tokens", most)
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
        }
    }

    /// The limit on money, when so much is left and so much is reserved for children.
    pub(super) fn too_little(&self, remaining: Money, reserved: Money) -> Reached {
        let limits = &self.launch.limits;
        let (current, most) = ((limits.spend - remaining - reserved).to_json(), limits.spend.to_json());
        Reached { limit: "spend", current, most, currency: limits.currency.clone(), reserved }
    }

    /// How much was read and written, and whether that is a guess: where the provider does not say, it is counted here, because
    /// limits that nobody counts for would hold nothing. No model reads nothing, so a provider that says so does not know.
    pub(super) fn used(&self, answer: &Answer, message: &Message) -> (Usage, bool) {
        let mut usage = answer.usage.unwrap_or_default();
        let is_said = usage.input.is_some_and(|input| input > 0) && usage.output.is_some();
        if is_said {
            return (usage, false);
        }
        if usage.input.is_none_or(|input| input == 0) {
            usage.input = Some(self.state().tokens);
        }
        if usage.output.is_none_or(|output| output == 0) {
            let tokenizer = Tokenizer::for_model(&self.launch.model.id);
            let count = |text: &str| tokens_of(&tokenizer, text) as u64;
            let calls = message.metadata.get("tool_calls").map(Json::to_string).unwrap_or_default();
            let thinking = answer.thinking.as_deref().unwrap_or_default();
            usage.output = Some(message.texts().map(count).sum::<u64>() + count(&calls) + count(thinking));
        }
        (usage, true)
    }

    /// What an answer cost.
    pub(super) fn spent(&self, usage: &Usage) -> (u64, u64, Money) {
        let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
        let spend = self.voice.price.map_or(Money::ZERO, |price| {
            let cached = usage.cached.unwrap_or(0).min(input);
            Money::of_tokens(input - cached, price.input)
                + Money::of_tokens(cached, price.cached.unwrap_or(price.input))
                + Money::of_tokens(output, price.output)
        });
        (input, output, spend)
    }
}

/// How many tokens a text has. Where the vocabulary is not published that is a guess in any case: a token for three bytes, which is on
/// the safe side, and for which no vocabulary has to be loaded (50 milliseconds and 70 megabytes).
pub(super) fn tokens_of(tokenizer: &Tokenizer, text: &str) -> usize {
    if tokenizer.is_exact() { tokenizer.count(text) } else { text.len().div_ceil(3) }
}
