//! A part of the crate `cuebook`: prompts and their values, without the files that they come from.
//!
//! Programs use `cuebook`, which exports these modules. Items that only the other parts of `cuebook` use are hidden here and may
//! change. The modules are [`prompt`] (types), [`variables`] (values and their layers), [`template`] (engines), [`chat`]
//! (messages, request bodies and replies) and [`tokens`] (counts).

// A feature that is off leaves code unused that others share.
#![cfg_attr(
    not(all(feature = "chat", feature = "dotprompt", feature = "mustache", feature = "tokens")),
    allow(dead_code, unused_imports)
)]

pub mod chat;
pub mod prompt;
pub mod template;
pub mod tokens;
pub mod variables;

pub(crate) use cuebook_text::{by_name, error, files, json, node, redact, sha256, source, trace, yaml};

#[cfg(feature = "schemas")]
#[doc(hidden)]
pub use schemars;
pub use variables::Variables;

pub(crate) use error::{Error, ErrorKind};
