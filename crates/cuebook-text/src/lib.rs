//! What every crate of Cuebook reads files and reports problems with.
//!
//! [`source`] keeps texts and places in them, [`error`] has diagnostics with codes, [`node`], [`json`] and [`yaml`] read values that
//! know where they were written, [`settings`] reads strict YAML files, [`files`] reads with limits and writes whole files,
//! [`redact`] removes secrets, and [`trace`] fills the spans of a tracer. Nothing here knows what a prompt is.

pub mod by_name;
pub mod error;
pub mod files;
pub mod json;
#[doc(hidden)]
pub mod limits;
pub mod node;
#[doc(hidden)]
pub mod reader;
pub mod redact;
pub mod settings;
#[doc(hidden)]
pub mod sha256;
pub mod source;
pub mod trace;
pub mod yaml;

pub use error::{Code, Diagnostic, Error, ErrorKind, Hint, Result, Severity};
