//! What threads do and must not do, each with a scripted model, real tools and a real store.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod behind;
mod caps;
mod children;
mod context;
mod continuation;
mod counting;
mod ends;
mod full;
mod harness;
mod hooks;
mod orchestrator;
mod outputs;
mod prompts;
mod resume;
mod safety;
mod setup;
mod sums;
#[path = "../support/mod.rs"]
mod support;
mod text_mode;
mod tokens;
mod typed;
mod unfinished;
mod unpriced;
