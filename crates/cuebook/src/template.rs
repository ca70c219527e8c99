//! The template engines: what turns a template and values into text.
//!
//! This module fills templates. It must not know where a template was found or who asked for it.

pub mod jinja;
