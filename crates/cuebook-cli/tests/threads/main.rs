//! Threads on the command line, with the real binary, a real store, and a scripted model.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]

#[path = "../support/mod.rs"]
mod support;

mod authentic;
mod dry;
mod edges;
#[cfg(target_os = "linux")]
mod endings;
mod explained;
#[cfg(target_os = "linux")]
mod fence;
mod forks;
mod greeting;
mod leaving;
mod processes;
mod prompts;
mod providers;
mod queue;
mod run;
mod same;
mod setup;
mod skills;
mod stores;
mod sums;
mod traces;
mod trust;
mod words;
