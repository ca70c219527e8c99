//! Speak: from attributed text to messages and a provider's payload, and from its reply back to a result.
//!
//! Messages are made from who wrote what, never from how the text looks: only a line that is the author's from its first
//! byte to its last can begin a message. Nothing here opens a connection.

mod blocks;
mod marker;
mod message;
pub mod models;
pub mod output;
mod parse;
pub mod reply;
mod roles;
mod thread;
pub mod wire;

pub use marker::Marker;
pub use message::{Media, Message, Part, Role};
pub use parse::{Empty, MARKS, Run, Ways, marked_roles, parse};
pub use roles::{OPTION as ROLES, Roles};
#[doc(hidden)]
pub use roles::{TEXT as NO_ROLE, known as known_role};
pub use wire::Api;
