//! Runs hooks and variable providers that are written in Python, in a sandboxed worker process.

pub mod http;
pub mod model;
pub mod sandbox;
