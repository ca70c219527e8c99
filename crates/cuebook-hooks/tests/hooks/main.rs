//! Scripts in real workers: every test starts a Python, calls functions and looks at what comes back.

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
