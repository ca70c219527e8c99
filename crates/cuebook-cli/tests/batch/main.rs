//! `cuebook batch`: rows are rendered, asked and judged, in order, and nothing is asked twice.

#![allow(clippy::unwrap_used, reason = "a test that fails to unwrap has failed")]
#![allow(clippy::duplicate_mod, reason = "two modules of helpers report skipped tests")]

mod ask;
mod blocks;
mod diff;
mod jobs;
mod judge;
mod kill;
mod memory;
mod report;
mod rows;
mod setup;
mod shared;
#[path = "../support/mod.rs"]
mod support;
