//! Find: where prompts lie, and the packs that bring them.
//!
//! This stage reads manifests and moves files into place. It must not run anything that a pack contains, and it must
//! not look inside a prompt.

pub mod archive;
mod json;
pub mod manifest;
mod portable;
