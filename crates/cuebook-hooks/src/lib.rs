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

pub mod sandbox;

#[cfg(unix)]
mod cache;
#[cfg(unix)]
mod engine;
#[cfg(not(unix))]
#[path = "engine/elsewhere.rs"]
mod engine;
#[cfg(unix)]
mod errors;
#[cfg(unix)]
mod pool;
#[cfg(unix)]
mod protocol;
mod python;
#[cfg(unix)]
mod worker;

pub use engine::PythonHooks;
pub use python::{Interpreter, OLDEST};
