//! An agent loop in memory, for programs that bring their own model and functions.
//!
//! `cuebook run` and threads use [`cuebook_run::turn`] with a store, limits and permissions. This crate puts an [`Agent`] on the same
//! loop, as Prompty describes it: functions for tools, a function or a provider for the model, [guards](Guard), [steering](Steering),
//! summaries of conversations that are too long ([`fit`]), and observers that make events ([`Events`]), a [`Journal`] or lines to compare
//! ([`Replay`]) of the steps. It keeps nothing. Prompty's conformance vectors run against it, and the Python package uses it.

mod agent;
mod bindings;
mod event;
mod guard;
mod journal;
mod model;
mod replay;
mod steering;
#[cfg(test)]
mod tests;
mod trim;

pub use agent::Agent;
pub use bindings::bind;
pub use cuebook_run::turn::{
    AfterAnswer, Ended, Halt, Observer, Performed, Permit, Ports, Start, Step, assistant_message, run,
    tool_message,
};
pub use event::{AgentEvent, Events};
pub use guard::Guard;
pub use journal::{Checkpoint, Commit, Journal, Portability, ProviderResource, Snapshot, TurnStatus};
pub use model::{ModelFailure, Question};
pub use replay::Replay;
pub use steering::{Cancel, Steering};
pub use trim::{fit, size, summarise, summary_request};
