//! Runs hooks and variable providers that are written in Python, in a sandboxed worker process.
//!
//! ```text
//! PythonHooks ──▶ pool ──▶ worker ──▶ sandbox ──▶ python (bootstrap.py)
//!   engine.rs    pool.rs  worker.rs  sandbox.rs
//! ```
//!
//! A call takes a worker that waits for its script, or starts one; sends it the call; answers what the function asks of its
//! context; and takes the result. `protocol.rs` has what is said, `errors.rs` what people are told when it goes wrong, and
//! `python.rs` finds the interpreter.

pub mod http;
pub mod model;
pub mod sandbox;

mod configured;
#[cfg(unix)]
mod engine;
#[cfg(not(unix))]
#[path = "engine/elsewhere.rs"]
mod engine;
#[cfg(unix)]
mod errors;
mod examination;
#[cfg(unix)]
mod pool;
#[cfg(unix)]
mod protocol;
mod python;
#[cfg(unix)]
mod worker;

pub use configured::hooks;
pub use engine::PythonHooks;
pub use examination::Examination;
pub use python::{Interpreter, OLDEST};
