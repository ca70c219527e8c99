//! Cuebook: a prompt engine.
//!
//! It finds, verifies, reads, fills and renders prompts, and can say of every byte it produced where it came from. The
//! modules are the stages that a prompt goes through: [`library`] finds, [`trust`] verifies, [`dialect`] reads,
//! [`variables`] fills, [`template`] and [`render`] render, [`chat`] speaks. [`Book`] is the front door to all of them.
//!
//! Nothing here starts a process, opens a connection or needs a runtime; everything is synchronous and `Send + Sync`.

pub mod actions;
pub mod book;
pub mod chat;
pub mod dialect;
pub mod hooks;
pub mod items;
pub mod library;
pub mod notation;
pub mod overrides;
pub mod prepared;
pub mod prompt;
pub mod render;
pub mod template;
pub mod tokens;
pub mod trust;
pub mod variables;

pub(crate) use cuebook_text::{by_name, json, node, yaml};
pub use cuebook_text::{error, files, redact, settings, source, trace};

pub use book::{Book, Freshness, Listing, RenderBuilder};
pub use chat::Message;
pub use error::{Code, Diagnostic, Error, ErrorKind, Result, Severity};
pub use prepared::Prepared;
pub use render::sections;
pub use render::{Origin, Rendered, Segment, Span};
pub use variables::{Agent, Context, UnknownVariables, Variables};

pub use {serde, serde_json};
