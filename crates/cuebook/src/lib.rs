//! Cuebook: a prompt engine.
//!
//! It finds, verifies, reads, fills and renders prompts, and can say of every byte it produced where it came from. The
//! modules are the stages that a prompt goes through: [`library`] finds, [`trust`] verifies, [`dialect`] reads,
//! [`variables`] fills, [`template`] and [`render`] render, [`chat`] speaks. [`Book`] is the front door to all of them.
//!
//! Nothing here starts a process, opens a connection or needs a runtime; everything is synchronous and `Send + Sync`.

pub mod attack;
mod book;
mod by_name;
pub mod cases;
pub mod changes;
pub mod chat;
pub mod check;
pub mod convert;
pub mod dialect;
pub mod diff;
pub mod error;
pub mod explain;
pub mod files;
pub mod hooks;
pub mod items;
mod json;
pub mod ledger;
pub mod library;
mod node;
pub mod overrides;
mod prepared;
pub mod prompt;
pub mod redact;
pub mod render;
pub mod sections;
pub mod settings;
pub mod source;
mod targets;
pub mod template;
pub mod tokens;
pub mod trace;
pub mod trust;
pub mod variables;
pub mod watch;
mod yaml;

pub use book::{Book, Listing};
pub use chat::Message;
pub use error::{Code, Diagnostic, Error, ErrorKind, Result, Severity};
pub use prepared::Prepared;
pub use render::{Origin, Rendered, Segment, Span};
pub use targets::Target;
pub use variables::{Agent, Context, Variables};
