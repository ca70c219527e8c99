//! `cuebook diff`

mod library;

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use cuebook::error::{printable, report};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Hint, Result};
use cuebook_lab::diff::{self, Aspect, Basis, Detail, Diff, Entry, Kind, NotRun, VersionReport};
use cuebook_lab::ledger::Ledger;
use serde_json::Value as Json;

use super::test::print_diff;
use super::with_choice;
use crate::args::{DiffArgs, Layout, Options};
use crate::inputs::Shared;
use crate::output::{Outcome, failure, print_json, unless_closed};
use crate::versions::{OpenVersion, PastRevision, VersionName};

const BOLD: Style = Style::new().bold();
const QUIET: Style = Style::new().dimmed();
/// The last commit.
const HEAD: &str = "HEAD";
/// How much of a value is shown in a line.
const MAX_SHOWN: usize = 100;

pub fn run(args: &DiffArgs, options: &Options) -> Outcome {
    match run_any(args, options) {
        // A script must be able to tell a difference from a failure.
        Err(failed) => {
            failure(&failed, options, Layout::Document);
            Ok(ExitCode::from(2))
        }
        done => done,
    }
}

fn run_any(args: &DiffArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let since = args.since.as_deref();
    match (since, args.versions.as_slice()) {
        (None, []) => library::run(&[], HEAD, args, &book, options),
        (None, [folder]) if library::is_folder(folder, &book) => {
            library::run(&args.versions, HEAD, args, &book, options)
        }
        (None, [one]) => two(one, None, args, &book, options),
        (None, [one, other]) => two(one, Some(other), args, &book, options),
        (None, many) => {
            let diagnostic = Diagnostic::new(
                Code::BadInput,
                format!("{} versions, and only two can be compared", many.len()),
            )
            .hint(Hint::run(
                "compare several prompts with a revision",
                format!("cuebook diff --since {HEAD} {}", many.join(" ")),
            ));
            Err(Error::new(ErrorKind::Usage, diagnostic).into())
        }
        (Some(revision), named) => library::run(named, revision, args, &book, options),
    }
}

/// Compares two versions of a prompt.
fn two(before: &str, after: Option<&str>, args: &DiffArgs, book: &Book, options: &Options) -> Outcome {
    let diff = compare(before, after, args, book, options)?;
    unless_closed(match options.json {
        true => print_json(&diff.to_json()),
        false => show(&diff, &mut anstream::stdout().lock()),
    })?;
    Ok(if diff.is_same() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn compare(
    before: &str,
    after: Option<&str>,
    args: &DiffArgs,
    book: &Book,
    options: &Options,
) -> Result<Diff> {
    let mut values = Shared::read(&args.inputs)?;
    let context = values.context_mut();
    context.model = args.model.clone().or(context.model.take());
    let clock = diff::stopped_clock();
    let find = |stand: &OpenVersion<'_>| {
        match stand.is_here() {
            // A choice is recorded in the project, and a prompt elsewhere has no place for one.
            true => with_choice(book, options, || stand.version(values.context(), &clock).map(drop)),
            false => stand.version(values.context(), &clock).map(drop),
        }
        .map_err(|error| compare_candidates(error, stand))
    };
    let one = VersionName::read(before)?;
    // With one version, the other is what is here, or what was committed last.
    let (before, after) = match (after, &one) {
        (Some(after), one) => {
            (OpenVersion::open(one, book)?, OpenVersion::open(&VersionName::read(after)?, book)?)
        }
        (None, one @ VersionName::Here(_)) => {
            let here = OpenVersion::open(one, book)?;
            find(&here)?;
            let committed = PastRevision::open(book, HEAD)?
                .in_place_of(&here.version(values.context(), &clock)?, book)?;
            (committed, here)
        }
        (None, one @ VersionName::Revision { prompt, .. }) => {
            (OpenVersion::open(one, book)?, OpenVersion::open(&VersionName::Here(prompt.clone()), book)?)
        }
        // What is here comes first: a pack is what may replace it.
        (None, one @ VersionName::Packed { prompt, .. }) => {
            (OpenVersion::open(&VersionName::Here(prompt.clone()), book)?, OpenVersion::open(one, book)?)
        }
    };
    find(&before)?;
    find(&after)?;
    let before = before.version(values.context(), &clock)?;
    let after = after.version(values.context(), &clock)?;
    values.refuse_slips(&[before.prepared(), after.prepared()], "neither version")?;
    let (variables, context) = values.of(before.prepared())?;
    let before = before.with(variables, context);
    let (variables, context) = values.of(after.prepared())?;
    let after = after.with(variables, context);
    Ok(diff::compare(&before, &after))
}

/// A user who compares candidates need not choose between them first.
fn compare_candidates(error: Error, stand: &OpenVersion<'_>) -> Error {
    if error.kind() != ErrorKind::PromptConflict {
        return error;
    }
    let candidates = error.field("candidates").cloned().unwrap_or_default();
    let sources = candidates.as_array().into_iter().flatten();
    let sources: Vec<String> = sources
        .filter_map(|candidate| candidate["source"].as_str())
        .map(|source| stand.name(source))
        .collect();
    let [one, other, ..] = sources.as_slice() else { return error };
    let compare = format!("cuebook diff {one} {other}");
    let hint = match error.diagnostic().hint.as_ref().filter(|_| stand.is_here()) {
        Some(hint) => format!("{hint}\nor compare them: {compare}"),
        None => format!("name both versions: {compare}"),
    };
    Error::new(error.kind(), error.diagnostic().clone().hint(hint)).with("candidates", candidates)
}

/// Shows a comparison to people.
pub(super) fn show(diff: &Diff, out: &mut impl Write) -> io::Result<()> {
    let (before, after) = (printable(&diff.before.label), printable(&diff.after.label));
    writeln!(out, "{BOLD}{before} → {after}: {}{BOLD:#}", printable(&diff.summary()))?;
    if diff.before.dialect != diff.after.dialect {
        let (before, after) = (diff.before.dialect.name, diff.after.dialect.name);
        writeln!(out, "{QUIET}written as {before}, and as {after}{QUIET:#}")?;
    }
    caveats(diff, out)?;
    for aspect in Aspect::ALL {
        let mut entries = diff.entries.iter().filter(|entry| entry.aspect == aspect).peekable();
        if entries.peek().is_some() {
            writeln!(out, "\n{BOLD}{}{BOLD:#}", aspect.as_str())?;
        }
        entries.try_for_each(|entry| show_entry(entry, out))?;
    }
    if !diff.text.is_empty() {
        let title = match diff.basis {
            Basis::Rendered => "text",
            Basis::Placeholders => "text, with placeholders",
            Basis::Files => "files",
        };
        writeln!(out, "\n{BOLD}{title}{BOLD:#}")?;
        print_diff(&diff.text, out)?;
    }
    if let (Some(before), Some(after)) = (&diff.before.ledger, &diff.after.ledger) {
        tokens(before, after, out)?;
    }
    Ok(())
}

/// What has to be known to read the rest: what was stood in for, not run, or not rendered.
fn caveats(diff: &Diff, out: &mut impl Write) -> io::Result<()> {
    let sides = [&diff.before, &diff.after];
    let mut reported: Vec<String> = Vec::new();
    let mut seen = HashSet::new();
    let mut print_line = |line: String| {
        if seen.insert(line.clone()) {
            reported.push(line);
        }
    };
    for side in sides {
        for assumed in &side.assumed {
            let (name, value) = (&assumed.name, &assumed.value);
            // What is no text is passed otherwise.
            let sign = if value.is_string() { "=" } else { ":=" };
            print_line(format!("`{name}` has no value, so {value} is used: --var {name}{sign}…"));
        }
    }
    for side in sides {
        let only = if sides.iter().all(|other| other.absent == side.absent) { "" } else { &side.label };
        if !side.absent.is_empty() {
            let of = if only.is_empty() { String::new() } else { format!(" (in {only})") };
            print_line(format!("no value for {}{of}", side.absent.join(", ")));
        }
    }
    let not_run: Vec<&NotRun> = sides.iter().flat_map(|side| &side.not_run).collect();
    for first in &not_run {
        let alike = not_run.iter().filter(|other| (&other.name, &other.why) == (&first.name, &first.why));
        let places: Vec<&str> = alike.filter_map(|other| other.place.as_deref()).collect();
        print_line(format!("{} did not run ({}): {}", first.name, places.join(", "), first.why));
    }
    for line in reported {
        writeln!(out, "{QUIET}{}{QUIET:#}", printable(&line))?;
    }
    for side in sides {
        failed(side, out)?;
    }
    Ok(())
}

fn failed(side: &VersionReport, out: &mut impl Write) -> io::Result<()> {
    let Some(error) = &side.failure else { return Ok(()) };
    writeln!(out, "{} does not render:", printable(&side.label))?;
    write!(out, "{}", report(error.diagnostics(), true))
}

fn show_entry(entry: &Entry, out: &mut impl Write) -> io::Result<()> {
    let style = match entry.kind {
        Kind::Added => AnsiColor::Green.on_default(),
        Kind::Removed => AnsiColor::Red.on_default(),
        Kind::Changed => Style::new(),
    };
    let sign = entry.kind.sign();
    let name = printable(&entry.name);
    // New and removed parts are reported in one line, changed ones field by field.
    if entry.kind != Kind::Changed {
        let details: Vec<String> = entry.details.iter().filter_map(whole).collect();
        let details = printable(&cut(&details.join(", "))).into_owned();
        let space = if details.is_empty() { "" } else { "  " };
        return writeln!(out, "  {style}{sign} {name}{style:#}{space}{QUIET}{details}{QUIET:#}");
    }
    if let [detail] = entry.details.as_slice()
        && detail.lines.is_empty()
    {
        return writeln!(out, "  {sign} {name}  {}", printable(&field(detail)));
    }
    writeln!(out, "  {sign} {name}")?;
    for detail in &entry.details {
        if detail.lines.is_empty() {
            writeln!(out, "      {}", printable(&field(detail)))?;
        } else {
            if !detail.path.is_empty() {
                writeln!(out, "      {}", printable(&detail.path))?;
            }
            print_diff(&detail.lines, out)?;
        }
    }
    Ok(())
}

/// A field of something that is new or gone.
fn whole(detail: &Detail) -> Option<String> {
    let value = detail.after.as_ref().or(detail.before.as_ref())?;
    match detail.path.as_str() {
        "" if *value == Json::Object(serde_json::Map::new()) => None,
        // These speak for themselves.
        "" | "need" | "type" | "kind" => Some(text(value)),
        path => Some(format!("{path}: {}", text(value))),
    }
}

fn field(detail: &Detail) -> String {
    let name = if detail.path.is_empty() { String::new() } else { format!("{}: ", detail.path) };
    let value = |value: &Option<Json>| value.as_ref().map_or("nothing".to_owned(), |value| cut(&text(value)));
    if detail.is_secret && detail.before == detail.after {
        return format!("{name}changed (not shown)");
    }
    format!("{name}{} → {}", value(&detail.before), value(&detail.after))
}

fn text(value: &Json) -> String {
    match value {
        // Words are read more easily without their quotes.
        Json::String(text) if !text.is_empty() && !text.contains(['\n', ',']) && text.trim() == text => {
            text.clone()
        }
        Json::Array(items) if !items.is_empty() && items.iter().all(Json::is_string) => {
            items.iter().map(text).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(MAX_SHOWN) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

fn tokens(before: &Ledger, after: &Ledger, out: &mut impl Write) -> io::Result<()> {
    let rows = |ledger: &Ledger| {
        let messages = ledger.messages.iter();
        let mut rows: Vec<(String, usize)> = messages
            .map(|message| (format!("{} {}", message.number, message.role), message.tokens))
            .collect();
        rows.extend(ledger.tools.iter().map(|tool| (format!("tool {}", tool.name), tool.tokens)));
        if ledger.output > 0 {
            rows.push(("schema of the answer".to_owned(), ledger.output));
        }
        rows
    };
    let (old, new) = (rows(before), rows(after));
    let by_name =
        |rows: &[(String, usize)]| -> HashMap<String, usize> { rows.iter().rev().cloned().collect() };
    let (olds, activity) = (by_name(&old), by_name(&new));
    let mut names: Vec<&String> = old.iter().map(|(name, _)| name).collect();
    names.extend(new.iter().map(|(name, _)| name).filter(|name| !olds.contains_key(*name)));
    let of = |rows: &HashMap<String, usize>, name: &String| rows.get(name).copied().unwrap_or(0);
    let mut changed: Vec<(&str, usize, usize)> = names
        .into_iter()
        .map(|name| (name.as_str(), of(&olds, name), of(&activity, name)))
        .filter(|(_, before, after)| before != after)
        .collect();
    if changed.is_empty() {
        return Ok(());
    }
    if changed.len() > 1 || old.len() > 1 || new.len() > 1 {
        changed.push(("in all", before.total(), after.total()));
    }
    let about = if before.is_exact() && after.is_exact() { "" } else { ", estimated" };
    writeln!(out, "\n{BOLD}tokens{BOLD:#}{QUIET}{about}{QUIET:#}")?;
    for (name, before, after) in changed {
        let sign = if after >= before { "+" } else { "-" };
        let by = after.abs_diff(before);
        writeln!(out, "  {before:>6} → {after:<6} {:>6}  {}", format!("{sign}{by}"), printable(name))?;
    }
    Ok(())
}
