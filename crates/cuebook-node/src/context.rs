//! What a caller says about a render besides its variables.

use cuebook::{Context, Result};
use cuebook_bindings::context::{TypeNames, read as read_named};
use serde_json::{Map, Value as Json};

pub use cuebook_bindings::context::{unknown, usage};

/// Reads a context, with the type names of JavaScript in its errors.
pub fn read(given: &Map<String, Json>) -> Result<Context> {
    read_named(given, TypeNames { truth: "a boolean", object: "an object" })
}
