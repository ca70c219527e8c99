//! Threads: a prompt that is carried out by a model, turn by turn, within limits, and whose every step is kept.
//!
//! The log of a thread is the thread: what it was started with, what the model got and answered, which tools ran and what
//! came of it, each event hashed together with the one before it. Everything else (the registry's row, the ledger's account) is
//! written in the same transaction as the events that it sums up. A process that dies takes nothing with it: another one finds
//! the thread, reads its log, and goes on.

mod answers;
mod attempt_cost;
mod calls;
mod cancel;
mod choose;
mod continuation;
mod conversation;
mod detach;
mod directive_tools;
mod drive;
mod fork;
mod form;
mod handle;
mod harness;
mod hooks;
mod launch;
mod left_tools;
mod listener;
mod log;
mod managed;
pub(crate) mod orchestrator;
mod origins;
mod prompt;
mod prompt_tools;
mod queue;
mod rebuild;
mod results;
mod resume;
mod run;
mod skills;
mod start;
mod text_mode;

use crate::caller::Caller;
use crate::money::Money;
use crate::record::{
    Entry, Event, Kind, OpenHook, Status, ThreadId, cost_json, error_json, first_hash, stopped, verify,
};
use crate::secrets::Secrets;

pub use answers::{PromptModel, Settled};
pub use cancel::Cancelled;
pub use conversation::{Conversation, spent_below};
pub use detach::{ALLOWANCE, COMMAND};
pub use drive::Finished;
pub use fork::Fork;
pub use handle::{ResumeBuilder, Thread, ThreadUpdate, Update, Updates};
pub use launch::{ForkPoint, Launch, ThreadKind};
pub use left_tools::{DeadThread, sweep};
pub(crate) use log::not_found;
pub use log::whole_log;
pub use origins::{ExplainedMessage, ExplainedPiece, MessageSource, explain, has_origins, label};
pub use queue::QueueOptions;
pub(crate) use queue::{Carried, give_back};
pub use rebuild::{Rebuilt, rebuild, rebuild_turn};
pub use resume::Resume;
pub use run::{RunRequest, ThreadRun};
pub(crate) use start::DirectiveRequest;
pub use start::unpriced;
