//! `cuebook watch`

use std::io::Write;
use std::path::{Path, PathBuf};

use cuebook::error::report;
use cuebook::variables::FixedNonces;
use cuebook::{Agent, Code, Diagnostic, Error, ErrorKind, Rendered, Result};
use cuebook_lab::attack::DIGITS;
use cuebook_lab::changes::{Line, compare};
use cuebook_lab::watch::Watch;
use serde_json::{Value as Json, json};

use super::test::print_diff;
use crate::args::{Options, WatchArgs};
use crate::inputs;
use crate::output::{Outcome, print_findings, print_line, print_text, say};
use crate::terminal::stdout_is_terminal;

/// Clears a screen and goes to its beginning.
const CLEAR: &str = "\x1b[2J\x1b[3J\x1b[H";

pub fn run(args: &WatchArgs, options: &Options) -> Outcome {
    if args.inputs.vars_file.as_deref() == Some(Path::new("-")) {
        let message = "`watch` cannot use --vars -, because stdin can be read only once";
        let diagnostic = Diagnostic::new(Code::BadInput, message).hint("name a file: --vars inputs.json");
        return Err(Error::new(ErrorKind::Usage, diagnostic).into());
    }
    if args.prompt.is_none() && args.inputs.agent.is_none() {
        // No change of a file would make it known.
        let diagnostic = Diagnostic::new(Code::BadInput, "no prompt was given");
        let diagnostic = diagnostic.hint("name one; `cuebook list` shows all of them");
        return Err(Error::new(ErrorKind::Usage, diagnostic).into());
    }
    // Marks for rich inputs that change with every render would look like changes of the text.
    let book = options.book()?.with_nonces(FixedNonces(DIGITS.into()));
    let mut last: Option<String> = None;
    loop {
        // The look comes first: what changes while a render is under way is seen afterwards.
        let given = inputs::read(args.prompt.as_deref(), &args.inputs, &book);
        let context = given.as_ref().map(|given| given.context.clone()).unwrap_or_default();
        let prompt = match &given {
            Ok(given) => Some(given.prompt.clone()),
            Err(_) => args.prompt.clone().or_else(|| prompt_of_agent(args)),
        };
        let mut watch = Watch::new(&book, prompt.as_deref().map(|prompt| (prompt, &context)), files(args));
        let rendered = inputs::read(args.prompt.as_deref(), &args.inputs, &book)
            .and_then(|given| book.render(&given.prompt, &given.variables, &given.context));
        let diff = match (&rendered, &last) {
            (Ok(rendered), Some(last)) => compare(last, rendered.text(), Some(rendered)),
            _ => Vec::new(),
        };
        if options.json {
            print_line(&document(&rendered, &diff, args.diff && last.is_some()))?;
        } else {
            show(&rendered, args.diff && last.is_some(), &diff)?;
        }
        if let Ok(rendered) = rendered {
            last = Some(rendered.into_text());
        }
        watch.wait();
    }
}

/// The prompt that an agent.json names, if that much can be read.
fn prompt_of_agent(args: &WatchArgs) -> Option<String> {
    let path = args.inputs.agent.as_ref()?;
    let source = cuebook::files::read_text(path, &path.to_string_lossy(), 1 << 20).ok()?;
    Agent::read(&source).ok()?.prompt_id
}

/// The files that the command line names.
fn files(args: &WatchArgs) -> Vec<PathBuf> {
    let inputs = &args.inputs;
    let named = [&inputs.vars_file, &inputs.agent, &inputs.session].into_iter().flatten().cloned();
    let values =
        inputs.files.iter().filter_map(|file| file.split_once('=')).map(|(_, path)| PathBuf::from(path));
    named.chain(values).collect()
}

fn document(rendered: &Result<Rendered>, diff: &[Line], with_diff: bool) -> Json {
    match rendered {
        Ok(rendered) => {
            let mut document = rendered.to_json();
            document["status"] = json!("ok");
            if with_diff {
                document["diff"] = diff.iter().map(Line::to_json).collect();
            }
            document
        }
        Err(error) => error.to_json(),
    }
}

fn show(rendered: &Result<Rendered>, with_diff: bool, diff: &[Line]) -> std::io::Result<()> {
    let terminal = stdout_is_terminal();
    if terminal {
        write!(std::io::stdout(), "{CLEAR}")?;
    }
    match rendered {
        Ok(rendered) => {
            print_findings(rendered.notes());
            match with_diff {
                true if diff.is_empty() => say("the text did not change"),
                true => print_diff(diff, &mut anstream::stdout().lock())?,
                false => {
                    print_text(rendered.text())?;
                    // Where nothing is cleared, texts follow each other.
                    if !terminal && !rendered.text().ends_with('\n') {
                        writeln!(std::io::stdout())?;
                    }
                }
            }
            std::io::stdout().flush()?;
        }
        Err(error) => {
            let _ = write!(anstream::stderr(), "{}", report(error.diagnostics(), true));
        }
    }
    if terminal {
        say("\nwatching; Ctrl-C stops");
    }
    Ok(())
}
