//! Cuebook: a prompt engine.

pub mod dialect;
pub mod error;
pub mod files;
pub mod source;
