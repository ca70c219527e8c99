//! Cuebook: a prompt engine.

pub mod error;
pub mod files;
pub mod library;
pub mod source;
