//! Providers: who answers for a model, and how it is asked.
//!
//! A provider is a file of data (`providers/NAME.yaml`): its interface, its address, which model stands for which tier, what
//! models cost, and the name of the environment variable that holds the key. Asking is one call that blocks, streams what comes to a
//! [`Listener`], repeats what failed by accident, and stops within a moment when the listener wants it to. Keys are read when a
//! request is sent and are part of nothing else: no error, no event, no recording.

mod address;
mod budget;
mod choice;
mod classify;
mod ending;
mod exchange;
mod failure;
mod file;
mod http;
mod pause;
mod prices;
mod record;
mod secret;
mod socket;
mod stream;
mod transport;

use std::time::{Duration, Instant};

use cuebook::Error;
use cuebook::chat::Message;
use cuebook::chat::reply::{Answer, Chunk, Usage};
use cuebook::prompt::{Model, Property, Tools};

use crate::money::Money;

pub use crate::stop::Stop;
pub use budget::{Budget, Rate};
pub use choice::{Chosen, ModelPreference, Providers, VerifyFile, why_unset};
pub use classify::{Class, Fault, Policy, classify};
pub(crate) use ending::{Ending, ending};
pub use exchange::{Exchange, Method};
pub(crate) use failure::FIELDS;
pub use file::{ModelEntry, Profile, ProviderFile, Retry, Timeouts, ToolMode};
pub use http::HttpProvider;
pub use pause::{Clock, RealClock};
pub use prices::{Cost as ReadingCost, Prices};
pub use record::{Recorder, Recording};
pub use transport::Client;

/// What a model is asked.
#[derive(Debug, Clone, Copy)]
pub struct ProviderRequest<'a> {
    /// The model, and how it is to be asked.
    pub model: &'a Model,
    /// What was said so far.
    pub messages: &'a [Message],
    /// What it may call.
    pub tools: &'a Tools,
    /// What it has to answer with; free text if there are none.
    pub outputs: &'a [Property],
    /// The most tokens that the answer may have.
    pub most_tokens: Option<u64>,
    /// When the answer comes too late.
    pub deadline: Option<Instant>,
}

/// Hears an answer as it comes.
pub trait Listener: Sync {
    /// A piece of the answer.
    fn chunk(&self, _chunk: &Chunk) {}

    /// A request failed and is to be sent again after a pause. Says whether it may be.
    fn retry(&self, _again: &RetryNotice<'_>) -> RetryDecision {
        RetryDecision::Same
    }

    /// Whether to stop. It is asked often.
    fn cancelled(&self) -> bool {
        false
    }

    /// Whether an empty answer is one too: a caller with something to say to it does not need another attempt.
    fn accepts_empty_answer(&self) -> bool {
        false
    }

    /// The same question in a form that can be kept while a request waits. A listener that has none is asked by a thread of its
    /// own for as long as a request lasts, which a program with many requests should not need.
    fn stop(&self) -> Option<Stop> {
        None
    }
}

/// A request that failed and is to be sent again.
#[derive(Debug)]
pub struct RetryNotice<'a> {
    /// How often it was sent.
    pub attempt: u32,
    /// The pause before it is sent again.
    pub pause: Duration,
    /// Why it failed.
    pub why: &'a Error,
    /// What the attempt may have cost.
    pub charge: &'a Charge,
}

/// Whether a request may be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetryDecision {
    /// As it is.
    Same,
    /// With an answer that has no more tokens than this: the attempts so far cost something too.
    Shorter(u64),
    /// It may not.
    Stop,
}

/// What an attempt that failed may have cost. Providers do not say, so this is what is known of it: a request that was refused
/// with a status, and one that was not sent whole, cost nothing; one that was sent whole and never answered was read; and of an answer
/// that broke off, what came was written.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Charge {
    /// Nothing.
    #[default]
    Nothing,
    /// What the model got.
    Question,
    /// That, and what the model had said.
    Broken {
        /// All that it had said: thoughts, text, calls.
        written: String,
        /// How much that is, as far as the provider said so.
        usage: Option<Usage>,
    },
}

/// Why an answer failed to come, as far as it matters for what to do next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Category {
    /// Too many requests; later it may work.
    RateLimited,
    /// An accident; again it may work.
    Transient,
    /// It will not work.
    Permanent,
    /// The listener wanted to stop.
    Cancelled,
}

impl Category {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Category::RateLimited => "rate_limited",
            Category::Transient => "transient",
            Category::Permanent => "permanent",
            Category::Cancelled => "cancelled",
        }
    }
}

/// An answer that did not come.
#[derive(Debug)]
pub struct ProviderFailure {
    /// Why.
    pub error: Error,
    /// What kind of reason that is.
    pub category: Category,
    /// What the model had said already.
    pub partial_text: String,
    /// Whether the provider may have answered all the same.
    pub indeterminate: bool,
    /// What the last attempt may have cost. Those before it were reported to the listener.
    pub charge: Charge,
}

/// Asks models.
pub trait Provider: Send + Sync {
    /// Asks once. Repetitions are part of it, and reported to the listener.
    fn ask(&self, ask: &ProviderRequest<'_>, listener: &dyn Listener)
    -> Result<Answer, Box<ProviderFailure>>;
}

/// What a model costs, for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Price {
    /// What it reads.
    pub input: Money,
    /// What it reads from its cache; the same as other input if that is not said.
    pub cached: Option<Money>,
    /// What it writes.
    pub output: Money,
}

impl Price {
    /// What it costs to read and to write so much.
    ///
    /// ```
    /// use cuebook::chat::reply::Usage;
    /// use cuebook_run::{Money, provider::Price};
    ///
    /// let price = Price { input: Money::from_units(1.0), cached: None, output: Money::from_units(10.0) };
    /// let usage = Usage { input: Some(100), output: Some(20), ..Usage::default() };
    /// assert_eq!(price.cost(&usage), Money::from_units(0.0003));
    /// ```
    pub fn cost(&self, usage: &Usage) -> Money {
        let (input, output) = (usage.input.unwrap_or(0), usage.output.unwrap_or(0));
        let cached = usage.cached.unwrap_or(0).min(input);
        Money::of_tokens(input - cached, self.input)
            + Money::of_tokens(cached, self.cached.unwrap_or(self.input))
            + Money::of_tokens(output, self.output)
    }
}
