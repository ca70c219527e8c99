//! Scripts in real workers: every test starts a Python, calls functions and looks at what comes back.

#![allow(clippy::unwrap_used)] // A test that fails to unwrap has failed.

#[path = "../support/mod.rs"]
mod support;

mod advice;
mod calls;
mod context;
mod errors;
mod hostile;
mod modules;
mod returns;
mod versions;
mod workers;
