//! `cuebook check`

use std::io::{self, IsTerminal, Write, stderr};
use std::process::ExitCode;

use cuebook::check::Report;
use cuebook::error::report;
use cuebook::{Book, Diagnostic, Severity};
use cuebook_run::provider::Providers;
use serde_json::Value as Json;

use crate::args::{CheckArgs, Options};
use crate::output::{Outcome, print_json, say, unless_closed};

/// A check of fewer prompts is over before anybody could read how far it is.
const PROGRESS_FROM: usize = 200;

pub fn run(args: &CheckArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let show_progress = stderr().is_terminal() && !options.json;
    let mut count = 0;
    let checked = book.check(&args.targets, |source| {
        count += 1;
        if show_progress && count >= PROGRESS_FROM && count % 50 == 0 {
            let _ = write!(stderr(), "\r\x1b[K{count} prompts, {source}");
        }
    });
    if show_progress && count >= PROGRESS_FROM {
        let _ = write!(stderr(), "\r\x1b[K");
    }
    let mut checked = checked?;
    if args.targets.is_empty() {
        checked.findings.extend(providers(&book));
    }
    let code = if checked.errors() > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    unless_closed(tell(&checked, options))?;
    Ok(code)
}

/// What is wrong with the files of providers: secrets that stand in them, and what keeps them from being used. That is a warning,
/// because a prompt can be checked by somebody who asks no model.
fn providers(book: &Book) -> Vec<Diagnostic> {
    let spaces = book.library().spaces();
    match Providers::new(spaces, book.library().trust()) {
        Ok(providers) => providers.warnings().cloned().collect(),
        Err(error) => {
            error.into_diagnostics().into_iter().map(|finding| finding.severity(Severity::Warning)).collect()
        }
    }
}

fn tell(checked: &Report, options: &Options) -> io::Result<()> {
    if options.json {
        return print_json(&checked.findings.iter().map(|finding| Json::Object(finding.to_json())).collect());
    }
    // What was found is the data of this command.
    write!(anstream::stdout(), "{}", report(&checked.findings, true))?;
    let gap = if checked.findings.is_empty() { "" } else { "\n" };
    say(format_args!("{gap}{}", summary(checked)));
    Ok(())
}

fn summary(checked: &Report) -> String {
    let count = |severity| checked.findings.iter().filter(|finding| finding.severity == severity).count();
    let plural = |count: usize, word: &str| format!("{count} {word}{}", if count == 1 { "" } else { "s" });
    let mut parts = Vec::new();
    for (severity, word) in
        [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Note, "note")]
    {
        if count(severity) > 0 {
            parts.push(plural(count(severity), word));
        }
    }
    if checked.prompts == 0 && parts.is_empty() {
        return "no prompts here: name a project with --root, or create one with cuebook init".to_owned();
    }
    let found = if parts.is_empty() { "no problems".to_owned() } else { parts.join(", ") };
    format!("{} checked: {found}", plural(checked.prompts, "prompt"))
}
