//! What a thread may do, how far it may go, and what is to happen at certain moments: pure decisions, without a store or a model.
//!
//! Each file is one decision. None of them reads a file, asks a clock, or remembers anything; the code that runs threads asks them and
//! keeps to what they say.

pub mod allowance;
pub mod capability;
pub(crate) mod caps;
pub mod condition;
pub mod control;
pub(crate) mod directive_tools;
mod glob;
pub mod hooks;
pub mod interpolate;
pub mod limits;
pub mod nudge;
pub mod returns;
pub mod risk;
pub mod text_calls;
mod token;
pub mod tool_result;
