//! Conversions between notations: there and back the same is said, and what cannot be said is reported.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod cases;
mod compared;
mod conditions;
mod features;
mod included_prompts;
mod messages;
mod model;
mod mustache;
mod property;
#[path = "../support/mod.rs"]
mod support;
mod words;
