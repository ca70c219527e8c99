//! `cuebook test`

use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use cuebook::error::{printable, report};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind};
use cuebook_lab::BookExt;
use cuebook_lab::cases::{CaseFile, Failure, Outcome, Snapshot};
use cuebook_lab::changes::{Change, Line};
use serde_json::{Value as Json, json};

use crate::args::{Options, TestArgs};
use crate::output::{Outcome as Done, print_json, say, unless_closed};
use crate::terminal::confirm;

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const NEWS: Style = AnsiColor::Yellow.on_default();
const QUIET: Style = Style::new().dimmed();

/// What became of everything.
#[derive(Default)]
struct Totals {
    passed: usize,
    /// Those that are wrong, also behind an update.
    failed: usize,
    /// Those that were wrong, and are right because what they expect was written down.
    updated: usize,
    /// Files that cannot be read, or understood.
    broken: usize,
}

pub fn run(args: &TestArgs, options: &Options) -> Done {
    let book = options.book()?;
    let files = book.case_files(&args.targets)?;
    let (with, without): (Vec<CaseFile>, Vec<CaseFile>) = files.into_iter().partition(CaseFile::exists);
    let mut tally = Totals::default();
    let mut documents = Vec::new();
    let with: Vec<CaseFile> = match &args.case {
        Some(case) => with.into_iter().map(|file| file.only(case)).collect(),
        None => with,
    };
    for file in &with {
        if !options.json {
            unless_closed(writeln!(anstream::stdout(), "{}", printable(&file.name)))?;
        }
        match run_file(&book, file, args, options, &mut tally) {
            Ok(cases) => documents.push(json!({"prompt": file.prompt, "file": file.name, "cases": cases})),
            Err(Stop::Whole(failure)) => return Err(failure),
            Err(Stop::File(error)) => {
                tally.broken += 1;
                if !options.json {
                    unless_closed(write!(anstream::stdout(), "{}", report(error.diagnostics(), true)))?;
                }
                let error = error.to_json()["error"].clone();
                documents.push(json!({"prompt": file.prompt, "file": file.name, "error": error}));
            }
        }
    }
    if let Some(case) =
        args.case.as_ref().filter(|_| tally.passed + tally.failed + tally.broken + tally.updated == 0)
    {
        let hint = "the heading `## NAME` names a case; without --case all of them run";
        let diagnostic = Diagnostic::new(Code::BadInput, format!("no case `{case}` found")).hint(hint);
        return Err(Error::new(ErrorKind::Usage, diagnostic).into());
    }
    let nothing = with.is_empty() && !args.targets.is_empty();
    let failed = tally.failed + tally.broken > 0 || nothing;
    if options.json {
        let bare: Vec<Json> =
            without.iter().map(|file| json!({"prompt": file.prompt, "file": file.name})).collect();
        let mut document = json!({
            "passed": tally.passed, "failed": tally.failed, "updated": tally.updated, "broken": tally.broken,
            "files": documents,
        });
        if args.all {
            document["without_cases"] = json!(bare);
        }
        unless_closed(print_json(&document))?;
    } else {
        if args.all {
            for file in &without {
                let (source, name) = (printable(&file.source), printable(&file.name));
                let mut out = anstream::stdout();
                unless_closed(writeln!(out, "{QUIET}{source}: no cases; they would be in {name}{QUIET:#}"))?;
            }
        }
        summarise(&tally, &with, &without);
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Why a file is not gone on with.
enum Stop {
    /// Its cases cannot be understood, and the other files are not concerned.
    File(Error),
    /// Nothing more can be done.
    Whole(crate::output::Failure),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Whole(error.into())
    }
}

fn run_file(
    book: &Book,
    file: &CaseFile,
    args: &TestArgs,
    options: &Options,
    tally: &mut Totals,
) -> Result<Vec<Json>, Stop> {
    let mut reported = Ok(());
    let outcomes = book
        .run_cases(file, |outcome| {
            // An update shows its differences when it asks.
            if !options.json && reported.is_ok() && !(args.update && outcome.snapshot.is_some()) {
                reported = unless_closed(print_report(outcome, false));
            }
        })
        .map_err(Stop::File)?;
    reported?;
    let mut accepted: Vec<&Outcome> = Vec::new();
    for outcome in outcomes.iter().filter(|outcome| args.update && outcome.snapshot.is_some()) {
        if !options.json {
            unless_closed(print_report(outcome, true))?;
        }
        if args.yes || confirm(&question(outcome), "--yes").map_err(|error| Stop::Whole(error.into()))? {
            accepted.push(outcome);
        }
    }
    if !accepted.is_empty() {
        file.apply(book, &accepted).map_err(|error| Stop::Whole(error.into()))?;
        if !options.json {
            say(format_args!("{}: {}", file.name, written(&accepted)));
        }
    }
    let mut documents = Vec::new();
    for outcome in &outcomes {
        // What was wrong beside the text is still wrong.
        let is_written = accepted.iter().any(|accepted| std::ptr::eq(*accepted, outcome));
        let updated = is_written && outcome.failures.len() == 1;
        match (outcome.passed(), updated) {
            (true, _) => tally.passed += 1,
            (false, true) => tally.updated += 1,
            (false, false) => tally.failed += 1,
        }
        let mut document = outcome.to_json();
        if let Some(snapshot) = outcome.snapshot.as_ref().filter(|_| is_written) {
            document["written"] = json!(if snapshot.is_new() { "new" } else { "changed" });
            document["updated"] = json!(updated);
        }
        documents.push(document);
    }
    Ok(documents)
}

/// What an update wrote into a file: not how many cases are right now, which the last line says.
fn written(accepted: &[&Outcome]) -> String {
    let new =
        accepted.iter().filter(|outcome| outcome.snapshot.as_ref().is_some_and(Snapshot::is_new)).count();
    let parts: Vec<String> = [(new, "new"), (accepted.len() - new, "changed")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what} expected {}", if count == 1 { "text" } else { "texts" }))
        .collect();
    format!("wrote {}", parts.join(" and "))
}

fn question(outcome: &Outcome) -> String {
    format!("Store this as the expected text of `{}`?", printable(&outcome.case))
}

/// Tells what became of a case; `is_update` says that what it expects may be written down next.
fn print_report(outcome: &Outcome, is_update: bool) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let case = printable(&outcome.case);
    if outcome.passed() {
        return writeln!(out, "  {GOOD}ok{GOOD:#}      {case}");
    }
    match outcome.snapshot.as_ref().filter(|_| is_update && outcome.failures.len() == 1) {
        Some(snapshot) => {
            let what = if snapshot.is_new() { "new" } else { "changed" };
            writeln!(out, "  {NEWS}{what:7}{NEWS:#} {case}")?;
            return print_diff(&snapshot.diff, &mut out);
        }
        None => writeln!(out, "  {BAD}FAILED{BAD:#}  {case}")?,
    }
    for failure in &outcome.failures {
        print_failure(failure, &mut out)?;
    }
    // A case that says nothing yet shows what it could say.
    if let Some(snapshot) =
        outcome.snapshot.as_ref().filter(|_| outcome.failures.iter().all(|f| f.diff.is_empty()))
    {
        print_diff(&snapshot.diff, &mut out)?;
        if !is_update {
            writeln!(out, "          {QUIET}cuebook test --update stores it{QUIET:#}")?;
        }
    }
    Ok(())
}

fn print_failure(failure: &Failure, out: &mut impl Write) -> io::Result<()> {
    let place = format!("{}:{}", failure.place.file(), failure.place.line());
    writeln!(out, "          {} {QUIET}({}){QUIET:#}", printable(&failure.what), printable(&place))?;
    if let Some(origin) = &failure.origin {
        writeln!(out, "          {QUIET}from {}{QUIET:#}", printable(origin))?;
    }
    if let Some(error) = &failure.error {
        for diagnostic in error.diagnostics() {
            let place = diagnostic.place.as_ref().map(|place| format!(" ({place})")).unwrap_or_default();
            let (code, message) = (diagnostic.code, printable(&diagnostic.message));
            writeln!(out, "          {code}: {message}{place}")?;
            if let Some(hint) = &diagnostic.hint {
                writeln!(out, "          help: {}", printable(hint))?;
            }
        }
    }
    print_diff(&failure.diff, out)
}

/// Prints what is different, and where new lines came from.
pub fn print_diff(diff: &[Line], out: &mut impl Write) -> io::Result<()> {
    for line in diff {
        let style = match line.change {
            Change::Gone => BAD,
            Change::New => GOOD,
            Change::Same | Change::Skipped => QUIET,
        };
        // Spaces at the end of a line can be all that is different.
        let text = line.text.trim_end_matches(' ');
        let spaces = match line.change {
            Change::Same | Change::Skipped => String::new(),
            Change::Gone | Change::New => "·".repeat(line.text.len() - text.len()),
        };
        let shown = format!("{} {}{spaces}", line.change.sign(), printable(text));
        match shown.trim_end() {
            "" => {}
            shown => write!(out, "          {style}{shown}{style:#}")?,
        }
        match &line.origin {
            Some(origin) => writeln!(out, "  {QUIET}<- {}{QUIET:#}", printable(origin))?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

fn summarise(tally: &Totals, with: &[CaseFile], without: &[CaseFile]) {
    if with.is_empty() {
        let example = without.first().map_or("prompts/greeting/tests.md", |file| file.name.as_str());
        say(format_args!("there are no cases; write some, as in {example}: cuebook help testing"));
        return;
    }
    let total = tally.passed + tally.failed + tally.updated;
    let cases = if total == 1 { "case" } else { "cases" };
    let mut parts = Vec::new();
    // All of them together are the cases.
    let counts = [(tally.passed, "passed"), (tally.updated, "updated"), (tally.failed, "failed")];
    for (count, what) in counts {
        if count > 0 && tally.passed < total {
            parts.push(format!("{count} {what}"));
        }
    }
    if tally.broken > 0 {
        let files = if tally.broken == 1 { "file" } else { "files" };
        parts.push(format!("{} {files} could not be read", tally.broken));
    }
    let result = if parts.is_empty() { "all passed".to_owned() } else { parts.join(", ") };
    say(format_args!("\n{total} {cases}: {result}"));
}
