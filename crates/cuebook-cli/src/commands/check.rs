//! `cuebook check`

use std::io::{self, IsTerminal, Write, stderr};
use std::process::ExitCode;

use cuebook::error::report;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Severity};
use cuebook_lab::BookExt;
use cuebook_lab::check::Report;
use cuebook_run::provider::Providers;
use serde_json::Value as Json;

use super::packages;
use crate::args::{CheckArgs, CheckOutput, Options};
use crate::ci::{self, Repository};
use crate::output::{Outcome, print_json, say, unless_closed};

/// A check of fewer prompts is over before anybody could read how far it is.
const PROGRESS_FROM: usize = 200;

pub fn run(args: &CheckArgs, options: &Options) -> Outcome {
    let form = output(args, options)?;
    let book = options.book()?;
    let show_progress = stderr().is_terminal() && form == CheckOutput::Text;
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
        checked.findings.extend(packages::differences(&book, None).unwrap_or_else(Error::into_diagnostics));
    }
    for finding in &mut checked.findings {
        if args.deny.iter().any(|denied| denied.covers(finding)) {
            finding.severity = Severity::Error;
        }
    }
    let code = if checked.errors() > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    unless_closed(print_report(&checked, form, &Repository::around(book.library().root())))?;
    Ok(code)
}

/// The form of the findings: --json is short for one of them.
fn output(args: &CheckArgs, options: &Options) -> cuebook::Result<CheckOutput> {
    match (args.output, options.json) {
        (Some(output), true) if output != CheckOutput::Json => {
            let diagnostic = Diagnostic::new(Code::BadInput, "--json and --output ask for different forms");
            Err(Error::new(ErrorKind::Usage, diagnostic.hint("leave one of them out")))
        }
        (_, true) => Ok(CheckOutput::Json),
        (output, false) => Ok(output.unwrap_or(CheckOutput::Text)),
    }
}

/// What is wrong with the files of providers: secrets that stand in them, and what keeps them from being used. That is a warning,
/// because a prompt can be checked by a user who asks no model.
pub fn providers(book: &Book) -> Vec<Diagnostic> {
    let spaces = book.library().spaces();
    match Providers::new(spaces, book.library().trust()) {
        Ok(providers) => providers.warnings().collect(),
        Err(error) => {
            error.into_diagnostics().into_iter().map(|finding| finding.severity(Severity::Warning)).collect()
        }
    }
}

fn print_report(checked: &Report, form: CheckOutput, repository: &Repository) -> io::Result<()> {
    let findings = &checked.findings;
    match form {
        CheckOutput::Json => {
            return print_json(&findings.iter().map(|finding| Json::Object(finding.to_json())).collect());
        }
        CheckOutput::Sarif => return print_json(&ci::sarif(findings, repository)),
        CheckOutput::Github => write!(io::stdout(), "{}", ci::github(findings, repository))?,
        // What was found is the data of this command.
        CheckOutput::Text => write!(anstream::stdout(), "{}", report(findings, true))?,
    }
    let gap = if findings.is_empty() || form != CheckOutput::Text { "" } else { "\n" };
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
