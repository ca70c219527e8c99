//! Cuebook: a prompt engine.

pub mod dialect;
pub mod error;
pub mod files;
pub mod prompt;
pub mod render;
pub mod source;
pub mod template;
pub mod variables;

pub use variables::Variables;
