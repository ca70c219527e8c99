//! Executes items: directives, tools and knowledge.
//!
//! A directive is filled and handed to the caller; a piece of knowledge is read. A tool is run: its **chain** leads from
//! the tool over runtimes to a primitive, which starts a process or makes a request. Every element of a chain is verified
//! before anything of it is used, what a caller gives is data and never becomes part of a command, and nothing that a tool
//! does can hang or fill the program that runs it.
//!
//! There is no async runtime here. A call blocks its thread, and one thread is enough to write to a process, read both of its
//! streams, watch the clock and notice a request to stop, because all of them are one `poll`. A server has a thread per call, which
//! it needs anyway for whatever else blocks, such as reading files.

mod actions;
mod anchor;
mod call_folder;
mod caller;
mod chain;
mod config;
mod engine;
mod environment;
mod execute;
mod executed;
mod fence;
mod granted;
mod helpers;
mod interpreter;
mod lockfile;
pub mod policy;
mod primitive;
mod processes;
pub mod provider;
mod request;
mod schema;
mod script;
mod secrets;
mod settings;
mod stop;
mod subprocess;
mod thread;
pub mod turn;
mod verify;
mod watch;
mod worker;

pub use actions::Action;
pub use chain::{MAX_LINKS, Report, validate};
pub use config::template;
pub use cuebook_hooks::sandbox::{Launcher, launch_if_asked};
pub use cuebook_store::money::Money;
pub use cuebook_store::record::{Entry, Event, Kind, OpenHook, Status, ThreadId, first_hash, verify};
pub use cuebook_store::store;
pub use cuebook_store::store::STORE;
pub(crate) use cuebook_store::{money, record};
pub use engine::{Answer, Engine};
pub use execute::VerifiedItem;
pub use executed::{ChainLink, Checked, Executed, Instructions, Program, ToolResult};
pub use policy::directive_tools::DirectiveTools;
pub use request::ExecuteRequest;
pub use settings::{Fence, Settings};
pub use thread::{
    ALLOWANCE, COMMAND, Cancelled, Conversation, DeadThread, ExplainedMessage, ExplainedPiece, Finished,
    Fork, ForkPoint, Launch, MessageSource, PromptModel, QueueOptions, Rebuilt, Resume, ResumeBuilder,
    RunRequest, Settled, Thread, ThreadKind, ThreadRun, ThreadUpdate, Update, Updates, explain, has_origins,
    label, rebuild, rebuild_turn, spent_below, sweep, unpriced, whole_log,
};
pub use verify::{VerifiedHash, Verify};
pub use watch::{Activity, Ignore, Watch};
pub use worker::{DEFAULT_GRACE, DEFAULT_LEASE, MIN_LEASE, Worker, WorkerNote, WorkerOptions, WorkerWatch};
