//! Cuebook: a prompt engine.
//!
//! It finds, verifies, reads, fills and renders prompts, and can say of every byte it produced where it came from. The
//! modules are the stages that a prompt goes through: [`library`] finds, [`trust`] verifies, [`dialect`] reads,
//! [`variables`] fills, [`template`] and [`render`] render, [`chat`] speaks. [`Book`] is the front door to all of them.
//!
//! Nothing here starts a process, opens a connection or needs a runtime; everything is synchronous and `Send + Sync`.

// A feature that is off leaves code unused that others share.
#![cfg_attr(not(all(feature = "dotprompt", feature = "items", feature = "skills")), allow(dead_code))]

#[cfg(feature = "items")]
pub mod actions;
pub mod book;
pub mod dialect;
pub mod explain;
pub mod hooks;
pub mod prepared;
pub mod render;

pub use cuebook_library::{items, library, notation, overrides, trust};
pub use cuebook_prompt::{chat, prompt, template, tokens, variables};
pub(crate) use cuebook_text::yaml;
pub use cuebook_text::{error, files, redact, settings, source};
#[doc(hidden)]
pub use cuebook_text::{json, limits, node, reader, sha256, trace};

pub use book::{Book, Freshness, Listing, RenderBuilder};
pub use chat::Message;
pub use error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity};
pub use prepared::Prepared;
pub use render::sections;
pub use render::{Origin, Rendered, Segment, Span};
pub use variables::{Agent, Context, UnknownVariables, Variables};

#[cfg(feature = "schemas")]
pub use cuebook_prompt::schemars;
pub use {indexmap, jiff, serde, serde_json};
