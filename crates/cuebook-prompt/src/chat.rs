//! Speak: from attributed text to messages and a provider's payload, and from its reply back to a result.
//!
//! Messages are made from who wrote what, never from how the text looks: only a line that is the author's from its first
//! byte to its last can begin a message. Nothing here opens a connection.
//! Request bodies and replies need the feature `chat`.

mod api;
mod blocks;
mod marker;
mod marks;
mod media_type;
mod message;
pub mod models;
pub mod output;
mod parse;
#[cfg(feature = "chat")]
pub mod reply;
mod roles;
mod thread;
#[cfg_attr(not(feature = "chat"), path = "chat/disabled.rs")]
pub mod wire;

pub use api::Api;
pub use marker::Marker;
#[doc(hidden)]
pub use marks::mark_of;
pub use marks::{ANNOTATIONS, Mark, insert_history};
pub use message::{Media, Message, Part, Role};
pub use parse::{Empty, MARKS, ParseOptions, Run, marked_roles, parse, parse_plain};
pub use roles::{OPTION as ROLES, Roles};
#[doc(hidden)]
pub use roles::{TEXT as NO_ROLE, known as known_role};
