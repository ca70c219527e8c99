//! How an agent asks: the question, what may go wrong with it, and when it is asked again.

use std::time::Duration;

use cuebook::chat::Message;
use cuebook::chat::reply::Answer;
use cuebook::prompt::{Model, Property, Tools};
use cuebook::{Code, Diagnostic, Error, ErrorKind};

use cuebook_run::provider::{Listener, Provider, ProviderFailure, ProviderRequest};

/// What a model is asked.
#[derive(Clone, Copy)]
pub struct Question<'q> {
    /// What was said so far.
    pub messages: &'q [Message],
    /// How often the model was asked in this run before.
    pub turn: u32,
    /// How often it was asked just this before.
    pub attempt: u32,
    /// Hears the answer as it comes, and knows whether to stop.
    pub listener: &'q dyn Listener,
}

/// An answer that did not come.
#[derive(Debug)]
pub struct ModelFailure {
    /// Why.
    pub error: Error,
    /// Whether it is worth asking again.
    pub again: bool,
    /// Whether the model may have answered all the same. It is not asked again then.
    pub indeterminate: bool,
}

impl From<Error> for ModelFailure {
    /// An accident: it is worth asking again.
    fn from(error: Error) -> ModelFailure {
        ModelFailure { error, again: true, indeterminate: false }
    }
}

impl From<Box<ProviderFailure>> for ModelFailure {
    /// The provider has asked again as often as that makes sense.
    fn from(unheard: Box<ProviderFailure>) -> ModelFailure {
        ModelFailure { error: unheard.error, again: false, indeterminate: unheard.indeterminate }
    }
}

impl ModelFailure {
    /// An accident, in words.
    pub fn accident(message: impl Into<String>) -> ModelFailure {
        ModelFailure::from(Error::new(ErrorKind::Reply, Diagnostic::new(Code::NoAnswer, message)))
    }
}

/// Asks a model.
pub(super) type AskModel<'a> = Box<dyn Fn(&Question<'_>) -> Result<Answer, ModelFailure> + Sync + 'a>;

/// Asks a provider's model.
pub(super) fn asks<'a>(
    provider: &'a dyn Provider,
    model: &'a Model,
    tools: &'a Tools,
    outputs: &'a [Property],
) -> AskModel<'a> {
    Box::new(move |question| {
        let messages = question.messages;
        let ask = ProviderRequest { model, messages, tools, outputs, most_tokens: None, deadline: None };
        Ok(provider.ask(&ask, question.listener)?)
    })
}

/// The pause before a model is asked again: two seconds, four, eight and so on up to a minute, and a part of a second more, so
/// that many who wait do not come back at the same moment.
pub(super) fn pause(attempt: u32) -> Duration {
    let mut random = [0; 2];
    // Without chance they come back together.
    let _ = getrandom::fill(&mut random);
    let part = Duration::from_millis(u64::from(u16::from_le_bytes(random)) % 1000);
    let seconds = 1_u64.checked_shl(attempt).unwrap_or(u64::MAX).min(60);
    (Duration::from_secs(seconds) + part).min(Duration::from_secs(60))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_and_end_at_a_minute() {
        for (attempt, seconds) in [(1, 2), (2, 4), (3, 8), (5, 32)] {
            let pause = pause(attempt);
            assert!(pause >= Duration::from_secs(seconds) && pause < Duration::from_secs(seconds + 1));
        }
        for attempt in [6, 63, 64, u32::MAX] {
            assert_eq!(pause(attempt), Duration::from_secs(60));
        }
    }
}
