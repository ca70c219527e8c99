//! `cuebook stubs`

use std::path::Path;
use std::process::ExitCode;

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result, files};
use cuebook_lab::stubs;
use serde_json::json;

use crate::args::{Options, StubsArgs};
use crate::output::{Outcome, print_json, print_text, say};

pub fn run(args: &StubsArgs, options: &Options) -> Outcome {
    let module = stubs::python(&options.book()?)?;
    if let Some(out) = &args.out {
        write(out, &module)?;
    }
    match &args.out {
        _ if options.json => print_json(&json!({"module": module, "written": args.out}))?,
        Some(out) => say(format_args!("wrote {}", out.display())),
        None => print_text(&module)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the module. A file that this command did not write is left alone.
fn write(out: &Path, module: &str) -> Result<()> {
    let name = out.to_string_lossy();
    let first = |text: &str| text.lines().next().map(str::to_owned);
    let there = std::fs::read(out).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if there.is_some_and(|there| !there.is_empty() && first(&there) != first(module)) {
        let diagnostic = Diagnostic::new(Code::WouldOverwrite, "the file is not one that this command wrote")
            .file(name)
            .hint("name another path with --out, or delete the file");
        return Err(Error::new(ErrorKind::Io, diagnostic));
    }
    files::write_atomic(out, &name, module.as_bytes())
}
