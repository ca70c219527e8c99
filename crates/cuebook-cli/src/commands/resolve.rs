//! `cuebook resolve`

use std::process::ExitCode;

use cuebook::library::PROVIDER;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::json;

use crate::args::{Options, ResolveArgs};
use crate::output::{Outcome, print_json, say};
use crate::terminal;

pub fn run(args: &ResolveArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let Some(source) = &args.source else {
        if options.json || !terminal::is_interactive() {
            let sources: Vec<String> =
                book.list_candidates(&args.prompt)?.into_iter().map(|candidate| candidate.source).collect();
            let diagnostic =
                Diagnostic::new(Code::ConfirmationNeeded, "no source was given, and there is nobody to ask")
                    .hint(format!("give one of: {}", sources.join(", ")));
            return Err(Error::new(ErrorKind::PromptConflict, diagnostic).into());
        }
        let chosen = ask(&book, &args.prompt)?;
        return Ok(if chosen { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    };
    let resolution = book.set_resolution(&args.prompt, source)?;
    let id = match args.prompt.starts_with(PROVIDER) {
        true => args.prompt.clone(),
        false => book.library().resolve_id(&args.prompt)?.0,
    };
    if options.json {
        print_json(&json!({
            "prompt_id": id,
            "source": resolution.source,
            "resolved_at": resolution.resolved_at,
            "candidates": resolution.candidates,
        }))?;
    } else {
        say(format_args!("{id} now means {}", resolution.source));
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets a person choose a candidate and records it; `false` if they do not want to.
pub fn ask(book: &Book, prompt: &str) -> Result<bool> {
    let candidates = book.list_candidates(prompt)?;
    let lines = candidates
        .iter()
        .map(|candidate| format!("{}  {}", candidate.source, candidate.version.as_deref().unwrap_or("?")))
        .collect();
    let Some(index) = terminal::pick(&format!("Which `{prompt}` is meant?"), lines) else { return Ok(false) };
    let resolution = book.set_resolution(prompt, &candidates[index].source)?;
    say(format_args!("recorded: {prompt} means {}", resolution.source));
    Ok(true)
}
