//! Read: from the bytes of a file to what they say, one module for each syntax.
//!
//! Reading executes nothing and looks at nothing but the text that it was given.

pub mod python;
