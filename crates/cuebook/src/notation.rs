//! Notations: what files of prompts and items say, before anything is known of the library that they are in.
//!
//! Readers of directives, knowledge, tools, `.prompty` files and the definitions in `prompt.py`. Nothing is executed: what a file
//! computes instead of writing out is an error with its place. [`crate::dialect`] makes prompts of what is read here.

pub(crate) mod definition;
pub mod directive;
pub(crate) mod fence;
pub mod knowledge;
pub mod prompty;
pub mod python;
pub(crate) mod signature;
pub mod tool;
