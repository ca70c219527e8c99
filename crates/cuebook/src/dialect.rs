//! Read: from a prompt's files to a [`Prompt`](crate::prompt::Prompt). One module per notation.
//!
//! Reading executes nothing. What a file computes instead of writing out is an error with its place.

pub mod python;
pub mod template;
