//! What a thread has used.

use std::time::Duration;

use serde_json::{Value as Json, json};

use crate::money::Money;

/// What a thread has used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// How often a model was asked.
    pub turns: u32,
    /// Tokens that the model read.
    pub input_tokens: u64,
    /// Tokens that the model wrote.
    pub output_tokens: u64,
    /// So many of both were counted here, because the provider did not say, or its answer broke off.
    pub estimated: u64,
    /// Money that it spent itself, without its children.
    pub spend: Money,
    /// How long it ran, pauses between a stop and a resumption left out.
    pub elapsed: Duration,
    /// Whether it, or a thread below it, asked a model whose price is not known: then more was spent than is counted, and no one
    /// knows how much.
    pub unpriced: bool,
}

impl Cost {
    /// All its tokens.
    pub fn tokens(&self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    /// This and another one.
    pub fn plus(&self, other: &Cost) -> Cost {
        Cost {
            turns: self.turns.saturating_add(other.turns),
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            estimated: self.estimated.saturating_add(other.estimated),
            spend: self.spend + other.spend,
            elapsed: self.elapsed.saturating_add(other.elapsed),
            unpriced: self.unpriced || other.unpriced,
        }
    }

    /// The cost as scripts see it.
    pub fn to_json(&self) -> Json {
        let mut json = json!({
            "turns": self.turns,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "spend": self.spend.to_json(),
            "elapsed_seconds": (self.elapsed.as_secs_f64() * 1000.0).round() / 1000.0,
        });
        if self.estimated > 0 {
            json["estimated_tokens"] = self.estimated.into();
        }
        if self.unpriced {
            json["spend_known"] = false.into();
        }
        json
    }
}

/// A cost as events keep it.
pub fn cost_json(cost: &Cost) -> Json {
    let mut json = cost.to_json();
    json["spend_nanos"] = cost.spend.nanos().into();
    json["elapsed_micros"] = u64::try_from(cost.elapsed.as_micros()).unwrap_or(u64::MAX).into();
    json
}
