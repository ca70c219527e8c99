#![allow(clippy::unwrap_used, reason = "tests")]
//! `cuebook studio`: who is answered, what the calls may reach, and the page in a real browser.

mod browser;
mod calls;
mod server;

#[path = "../../../skip.rs"]
mod skip;
