//! What stores keep of threads: ids, statuses, events, costs, and the process that runs each.

mod cost;
mod event;
mod holder;
mod id;
mod key;
mod open_hook;
mod status;
mod stopped;

pub use cost::Cost;
#[doc(hidden)]
pub use cost::cost_json;
pub use event::{Entry, Event, Kind, first_hash, verify};
pub(crate) use holder::has_ended;
#[cfg(target_os = "linux")]
#[doc(hidden)]
pub use holder::stat as process_stat;
pub use holder::{Holder, lives};
pub use id::ThreadId;
pub use key::{LOG_KEY, LogKey};
pub use open_hook::OpenHook;
pub use status::Status;
pub(crate) use stopped::stopped_json;
#[doc(hidden)]
pub use stopped::{error_json, short_error_json, stopped};
