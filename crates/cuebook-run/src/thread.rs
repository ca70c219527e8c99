//! Threads: a prompt that is carried out by a model, turn by turn, within limits, and whose every step is kept.
//!
//! The log of a thread is the thread: what it was started with, what the model was told and answered, which tools ran and what
//! came of it, each event hashed together with the one before it. Everything else (the registry's row, the ledger's account) is
//! written in the same transaction as the events that it sums up. A process that dies takes nothing with it: another one finds
//! the thread, reads its log, and goes on.

mod bill;
mod calls;
mod cancel;
mod continuation;
mod conversation;
mod desk;
mod detach;
mod drive;
mod event;
mod form;
mod harness;
mod hearing;
mod id;
mod launch;
mod left;
mod log;
mod lookout;
mod managed;
mod moments;
mod money;
pub(crate) mod orchestrator;
mod prompt;
mod prompt_desk;
mod rebuild;
mod results;
mod resume;
mod run;
mod secrets;
mod start;
mod status;
mod text_mode;
mod voice;
mod within;

pub use cancel::Cancelled;
pub use conversation::{Conversation, spent_below};
pub use desk::DirectiveTools;
pub use detach::{ALLOWANCE, COMMAND, STORE};
pub use drive::Finished;
pub(crate) use drive::stopped_json;
pub use event::{Entry, Event, Kind, first_hash, verify};
pub use id::ThreadId;
pub use launch::{Errand, Launch};
pub use left::{Dead, sweep};
pub(crate) use left::{MARK, mark, stop_call};
pub(crate) use log::not_found;
pub use log::whole_log;
pub(crate) use lookout::{LookedFor, Lookout};
pub use moments::OpenHook;
pub use money::Money;
pub(crate) use rebuild::cost_json;
pub use rebuild::{Rebuilt, rebuild};
pub use resume::Resume;
pub use run::{Began, RunRequest};
pub(crate) use secrets::Secrets;
pub(crate) use start::Wanted;
pub use start::unpriced;
pub use status::Status;
pub(crate) use within::{PARENT, Within};
