//! Notations: what files of prompts and items say, before anything is known of the library that they are in.
//!
//! Readers of directives, knowledge, tools, `.prompty` files and the definitions in `prompt.py`. Nothing is executed: what a file
//! computes instead of writing out is an error with its place. `cuebook::dialect` makes prompts of what is read here.

#[doc(hidden)]
pub mod definition;
pub mod directive;
pub(crate) mod fence;
pub mod knowledge;
pub mod prompty;
pub mod python;
#[doc(hidden)]
pub mod signature;
pub(crate) mod toml;
pub(crate) mod toml_error;
pub mod tool;
