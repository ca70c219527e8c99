//! What threads do and must not do, each with a model that says what it was told to say, real tools and a real store.

#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used)]

mod children;
mod context;
mod continuation;
mod harness;
mod hooks;
mod orchestrator;
mod prompts;
mod resume;
mod safety;
mod stage;
#[path = "../support/mod.rs"]
mod support;
mod text_mode;
