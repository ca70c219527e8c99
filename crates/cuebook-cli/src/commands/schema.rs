//! `cuebook schema`

use std::io::Write;
use std::process::ExitCode;

use cuebook_lab::schema;

use crate::args::SchemaArgs;
use crate::output::{Outcome, unless_closed};

pub fn run(args: &SchemaArgs) -> Outcome {
    // Every name has a schema; a test asks for each.
    let text = schema::text(args.name.as_str()).unwrap_or_default();
    unless_closed(std::io::stdout().lock().write_all(text.as_bytes()))?;
    Ok(ExitCode::SUCCESS)
}
