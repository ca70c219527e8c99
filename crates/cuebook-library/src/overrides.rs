//! Overrides: other words for parts of a prompt, kept beside it in a file that notices when the original changes.
//!
//! A [`Descriptor`] says what of a prompt can be overridden, and the hash of each original. A [`Store`] keeps the overrides
//! of a prompt in one file per tag, and [`Store::resolve`] gives those that still fit. What no longer fits is left out of
//! the prompt and *reported* ([`Resolved::stale`]), and stays in its file: a person wrote it.
//!
//! The files are those of WINK, byte for byte, so that both can work in one project. Beyond WINK, whose readers skip them:
//!
//! - a section's `summary` and `visibility` are for the renderer to apply, and `body` may be left out;
//! - a tool's `example_overrides` and the file's `task_example_overrides` are checked by hash and applied ([`example`]);
//! - an unknown key, and an entry that contradicts itself, are errors instead of being dropped.
//!
//! This module knows hashes, files and lists of examples. It renders nothing, and what a section is it does not know.

pub mod descriptor;
pub mod entry;
pub mod example;
mod file;
pub mod hash;
mod names;
mod project;
mod resolve;
mod store;
#[cfg(test)]
mod tests;

pub use descriptor::{Descriptor, SectionEntry, TaskExampleEntry, ToolEntry};
pub use entry::{
    JsonText, NewTaskStep, Override, Overrides, SectionOverride, TaskExampleChange, TaskExampleOverride,
    TaskStepOverride, ToolExampleChange, ToolExampleOverride, ToolOverride,
};
pub use example::{TaskExample, TaskStep, ToolExample};
#[doc(hidden)]
pub use project::ProjectStore;
pub use resolve::{Resolved, Stale, Target};
pub use store::{Counts, Originals, OverrideFile, Store};

/// The tag that is meant when none is said.
pub const DEFAULT_TAG: &str = "latest";
