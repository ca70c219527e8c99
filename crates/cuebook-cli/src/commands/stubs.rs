//! `cuebook stubs`

use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Result, files};
use cuebook_lab::stubs;
use serde_json::json;

use crate::args::{Options, StubsArgs, StubsLanguage};
use crate::output::{Outcome, print_json, print_text, say};

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(150);

pub fn run(args: &StubsArgs, options: &Options) -> Outcome {
    if args.zod && args.language() != StubsLanguage::Ts {
        let diagnostic =
            Diagnostic::new(Code::BadInput, "--zod is for TypeScript, and the module is for Python")
                .hint("add --lang ts");
        return Err(Error::new(ErrorKind::Usage, diagnostic).into());
    }
    let book = options.book()?;
    let module = module(args, &book)?;
    if let Some(out) = &args.out {
        write(out, &module)?;
    }
    match &args.out {
        _ if options.json => print_json(&json!({"module": module, "written": args.out}))?,
        Some(out) => say(format_args!("wrote {}", out.display())),
        None => print_text(&module)?,
    }
    match &args.out {
        Some(out) if args.watch => watch(args, &book, out, module),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn module(args: &StubsArgs, book: &Book) -> Result<String> {
    match args.language() {
        StubsLanguage::Python => stubs::python(book),
        StubsLanguage::Ts => stubs::typescript(book, args.zod),
    }
}

/// Writes the module again whenever it differs.
fn watch(args: &StubsArgs, book: &Book, out: &Path, mut last: String) -> Outcome {
    loop {
        let since = Instant::now();
        let module = module(args, book)?;
        if module != last {
            write(out, &module)?;
            say(format_args!("wrote {}", out.display()));
            last = module;
        }
        // A look takes a fifth of the time of one core at most.
        std::thread::sleep(PAUSE.max(since.elapsed() * 4));
    }
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
