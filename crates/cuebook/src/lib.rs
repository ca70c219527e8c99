//! Cuebook: a prompt engine.

pub mod error;
pub mod files;
pub mod source;
pub mod template;
