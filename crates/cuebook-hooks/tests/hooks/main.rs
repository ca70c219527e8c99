//! Scripts in real workers: every test starts a Python, calls functions and looks at what comes back.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod context;
mod errors;
mod hostile;
mod modules;
mod returns;
mod versions;
mod workers;
