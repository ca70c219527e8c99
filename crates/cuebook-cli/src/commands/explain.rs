//! `cuebook explain`

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use cuebook::error::printable;
use cuebook::sections::{FitStep, Fitting, Fold, SectionReport};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Origin, Rendered, Span, files};
use cuebook_lab::BookExt;
use cuebook_lab::explain::{Answer, Explanation, Piece, Position, is_page, is_picture, label, page, picture};
use cuebook_lab::ledger::Ledger;
use serde_json::{Value as Json, json};

use super::with_choice;
use crate::args::{ExplainArgs, Inputs, Options};
use crate::inputs;
use crate::output::{Outcome, print_findings, print_json, print_text, say};
use crate::screen::{self, cut, file_name};

pub fn run(args: &ExplainArgs, options: &Options) -> Outcome {
    if options.json && args.html.as_deref().or(args.svg.as_deref()) == Some(Path::new("-")) {
        let message = "--html and --svg without a file print to stdout, but --json also prints there";
        let diagnostic = Diagnostic::new(Code::BadInput, message)
            .hint("name a file (--html page.html), or leave out --json");
        return Err(Error::new(ErrorKind::Usage, diagnostic).into());
    }
    let book = options.book()?;
    let position = args.at.as_deref().map(Position::read).transpose()?;
    let explanation = explanation(&book, args.prompt.as_deref(), &args.inputs, args.model.as_ref(), options)?;
    if !options.json {
        print_findings(explanation.rendered().notes());
    }
    let answers = match (position, &args.find) {
        (Some(position), _) => Some(vec![explanation.at(position)?]),
        (None, Some(wanted)) => Some(explanation.find(wanted)?),
        (None, None) => None,
    };
    if let Some(answers) = answers {
        match options.json {
            true => print_json(&whence_json(&explanation, &answers))?,
            false => write_answers(&answers, &mut anstream::stdout().lock())?,
        }
    } else if let Some(path) = &args.html {
        write_file(&explanation, ("html", &page(&explanation)), path, args, options.json)?;
    } else if let Some(path) = &args.svg {
        write_file(&explanation, ("svg", &picture(&explanation)), path, args, options.json)?;
    } else if options.json {
        let mut object = explanation.to_json();
        object["tokens"] = match Ledger::of(explanation.rendered()) {
            Ok(ledger) => ledger.to_json(),
            Err(error) => json!({"problem": error.diagnostic().message}),
        };
        print_json(&object)?;
    } else {
        describe(&explanation, &mut anstream::stdout().lock())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Renders a prompt, and remembers its values for the next command.
pub(super) fn explanation(
    book: &Book,
    prompt: Option<&str>,
    values: &Inputs,
    model: Option<&String>,
    options: &Options,
) -> cuebook::Result<Explanation> {
    with_choice(book, options, || {
        let mut given = inputs::read(prompt, values, book)?;
        given.context.model = model.cloned().or(given.context.model);
        let explanation = book.explain(&given.prompt, &given.variables, &given.context)?;
        given.remember()?;
        if !options.json {
            given.mention_unseen(explanation.rendered());
        }
        Ok(explanation)
    })
}

/// Writes the page or the picture.
fn write_file(
    explanation: &Explanation,
    (format, text): (&str, &str),
    path: &Path,
    args: &ExplainArgs,
    as_json: bool,
) -> Result<(), crate::output::Failure> {
    if path == Path::new("-") {
        return Ok(print_text(text)?);
    }
    refuse_overwriting(explanation, path, args)?;
    let name = path.to_string_lossy();
    files::write_atomic(path, &name, text.as_bytes())?;
    match as_json {
        true => print_json(&json!({format: name, "bytes": text.len()}))?,
        false => writeln!(anstream::stdout(), "{}", printable(&name))?,
    }
    Ok(())
}

/// A page may take the place of a page. Anything else must be said, and what the prompt is made from is never lost to what is
/// notified.
fn refuse_overwriting(explanation: &Explanation, path: &Path, args: &ExplainArgs) -> Result<(), Error> {
    let given = [&args.inputs.vars_file, &args.inputs.agent, &args.inputs.session];
    let named =
        args.inputs.files.iter().filter_map(|file| file.split_once('=')).map(|(_, file)| Path::new(file));
    let mut given = given.into_iter().flatten().map(|file| file.as_path()).chain(named);
    let is_same =
        |other: &Path| matches!((path.canonicalize(), other.canonicalize()), (Ok(a), Ok(b)) if a == b);
    let (message, hint) = if explanation.prepared().is_made_from(path) || given.any(is_same) {
        ("the prompt uses this file; nothing was written", "name another file")
    } else if !args.force && is_lost(path) {
        (
            "the file exists and `explain` did not write it; nothing was written",
            "name another file, or overwrite it with --force",
        )
    } else {
        return Ok(());
    };
    let diagnostic = Diagnostic::new(Code::WouldOverwrite, message).file(path.to_string_lossy()).hint(hint);
    Err(Error::new(ErrorKind::Io, diagnostic))
}

/// Whether something is there that cannot be made again by explaining something.
fn is_lost(path: &Path) -> bool {
    let Ok(metadata) = path.metadata() else { return path.symlink_metadata().is_ok() };
    if !metadata.is_file() || metadata.len() == 0 {
        return false;
    }
    let mut start = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(PAGE_START).read_to_end(&mut start));
    read.is_err() || !(is_page(&start) || is_picture(&start))
}

/// As much of a file says whether it is a page.
const PAGE_START: u64 = 4096;

fn whence_json(explanation: &Explanation, answers: &[Answer]) -> Json {
    let found = explanation.prepared().found();
    json!({
        "prompt": {"id": found.id, "source": found.candidate.source, "pack_id": found.candidate.pack_id},
        "matches": answers.iter().map(Answer::to_json).collect::<Vec<_>>(),
    })
}

/// Writes where some places of the text came from.
fn write_answers(answers: &[Answer], out: &mut impl Write) -> io::Result<()> {
    let (bold, quiet) = (Style::new().bold(), Style::new().dimmed());
    for (index, answer) in answers.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        let bytes = match answer.range.len() {
            1 => format!("byte {}", answer.range.start),
            _ => format!("bytes {} to {}", answer.range.start, answer.range.end - 1),
        };
        let (line, column) = (answer.line, answer.column);
        writeln!(
            out,
            "{bold}{}{bold:#}  {quiet}line {line}, column {column}, {bytes}{quiet:#}",
            quoted(&answer.text)
        )?;
        for piece in &answer.pieces {
            source_of(piece, answer.pieces.len() > 1, out)?;
        }
    }
    Ok(())
}

/// Where one piece came from, with the lines of its source.
fn source_of(piece: &Piece, one_of_several: bool, out: &mut impl Write) -> io::Result<()> {
    let quiet = Style::new().dimmed();
    let style = colour(&piece.span.origin);
    let what = match &piece.span.origin {
        Origin::Literal { .. } => "an author's text",
        Origin::Value { .. } => "a value",
        Origin::Rich { .. } => "a rich input",
        Origin::Hook { .. } => "a hook",
        _ => "the engine",
    };
    let part = if one_of_several { format!("{} is ", quoted(&piece.text)) } else { String::new() };
    writeln!(out, "  {part}{style}{what}: {}{style:#}", printable(&piece.label()))?;
    let facts = [
        ("section", piece.span.section.as_deref()),
        ("pack", piece.pack.as_deref()),
        ("signature", piece.signature.as_deref()),
    ];
    for (name, fact) in facts {
        if let Some(fact) = fact {
            writeln!(out, "  {quiet}{name}{quiet:#} {}", printable(fact))?;
        }
    }
    let (Some(place), Some(excerpt)) = (&piece.place, piece.excerpt()) else { return Ok(()) };
    writeln!(out, "  {quiet}-->{quiet:#} {}", printable(&place.to_string()))?;
    let (first, column) = (place.line(), place.column());
    let width = (first + excerpt.matches('\n').count()).to_string().len();
    let mut left = place.text().trim_end_matches('\n').chars().count().max(1);
    for (index, line) in excerpt.split('\n').take(MAX_LINES).enumerate() {
        let skipped = if index == 0 { column - 1 } else { 0 };
        let length = line.chars().count();
        let marked = left.min(length.saturating_sub(skipped));
        left = left.saturating_sub(marked + 1);
        if length > LINE_WIDTH {
            // A line that is too long shows the place and no marks.
            let shown: String = line.chars().skip(skipped.saturating_sub(20)).take(LINE_WIDTH).collect();
            writeln!(out, "  {quiet}{:>width$} │{quiet:#} …{}…", first + index, printable(&shown))?;
            continue;
        }
        writeln!(out, "  {quiet}{:>width$} │{quiet:#} {}", first + index, printable(line))?;
        let margin: String =
            line.chars().take(skipped).map(|letter| if letter == '\t' { '\t' } else { ' ' }).collect();
        if marked > 0 {
            writeln!(
                out,
                "  {quiet}{:>width$} │{quiet:#} {margin}{style}{}{style:#}",
                "",
                "^".repeat(marked)
            )?;
        }
    }
    let lines = excerpt.split('\n').count();
    if lines > MAX_LINES {
        writeln!(out, "  {quiet}and {} more lines{quiet:#}", lines - MAX_LINES)?;
    }
    Ok(())
}

/// The most lines of a source that are shown, and the longest that is shown whole.
const MAX_LINES: usize = 5;
const LINE_WIDTH: usize = 160;

/// A text in quotes, on one line, as short as need be.
fn quoted(text: &str) -> String {
    printable(&shorten(&format!("{text:?}"))).into_owned()
}

/// The colour of an origin: authors have none.
fn colour(origin: &Origin) -> Style {
    match origin {
        Origin::Value { .. } => AnsiColor::Cyan.on_default(),
        Origin::Rich { .. } => AnsiColor::Magenta.on_default(),
        Origin::Hook { .. } => AnsiColor::Yellow.on_default(),
        Origin::Frame { .. } => AnsiColor::Green.on_default(),
        _ => Style::new(),
    }
}

/// The widest name of an origin beside the text.
const LABEL_WIDTH: usize = 32;

/// The longest value that is shown whole.
const VALUE_WIDTH: usize = 60;

/// Writes an explanation for people.
pub fn describe(explanation: &Explanation, out: &mut impl Write) -> io::Result<()> {
    let bold = Style::new().bold();
    let quiet = Style::new().dimmed();
    let found = explanation.prepared().found();
    let source = file_name(explanation.prepared().project(), &found.candidate.source);
    let is_long = found.id.chars().count() + source.chars().count() + 6 > screen::width();
    let gap = if is_long { "\n  " } else { " " };
    writeln!(out, "{bold}{}{bold:#}{gap}from {}", found.id, cut(&source, screen::width() - 7))?;
    writeln!(out, "  {quiet}{}{quiet:#}", found.reason.describe())?;
    let variables = explanation.variables();
    if !variables.is_empty() {
        writeln!(out, "\n{bold}variables{bold:#}")?;
        let width = variables.iter().map(|variable| variable.name.chars().count()).max().unwrap_or_default();
        for variable in variables {
            let layer = variable.layer.map_or("absent", |layer| layer.as_str());
            let value = match variable.layer {
                None => String::new(),
                Some(_) => printable(&shorten(&variable.value.to_string())).into_owned(),
            };
            let unused = if variable.used { "" } else { "  (not used)" };
            let name = printable(&variable.name);
            let columns = screen::width().saturating_sub(width + 14);
            let lines = screen::wrap(&value, columns);
            for (index, value) in lines.iter().enumerate() {
                let (name, layer) = if index == 0 { (&*name, layer) } else { ("", "") };
                let unused = if index + 1 == lines.len() { unused } else { "" };
                writeln!(out, "  {name:width$}  {layer:8}  {value}{quiet}{unused}{quiet:#}")?;
            }
        }
    }
    if let Some(sections) = explanation.rendered().sections() {
        tree(&sections.sections, out)?;
        if let Some(fitting) = &sections.fitting {
            fit(fitting, out)?;
        }
    }
    tokens(explanation, out)?;
    writeln!(out, "\n{bold}text{bold:#}")?;
    let rendered = explanation.rendered();
    let spans: Vec<Span> = rendered.spans().collect();
    let project = explanation.prepared().project();
    let shown =
        |span: &Span| cut(&file_name(project, &printable(&label(&span.origin))), LABEL_WIDTH).into_owned();
    let labels: Vec<String> = spans.iter().map(shown).collect();
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or_default();
    let columns = screen::width().saturating_sub(width + 5);
    for (span, label) in spans.iter().zip(&labels) {
        let style = colour(&span.origin);
        let side = if span.origin.is_literal() { quiet } else { style };
        let text = explanation.seen(span);
        // A newline at the end of a span belongs to its line and does not begin another.
        for (index, line) in text.strip_suffix('\n').unwrap_or(&text).split('\n').enumerate() {
            let mut margin = if index == 0 { label.as_str() } else { "" };
            let mut bar = '│';
            for part in screen::wrap(&printable(line), columns) {
                writeln!(
                    out,
                    "  {side}{margin:width$}{side:#} {quiet}{bar}{quiet:#} {style}{part}{style:#}"
                )?;
                // The rest of a line that is wrapped here, and not in the text.
                (margin, bar) = ("", '┊');
            }
        }
    }
    Ok(())
}

/// How many tokens it has, and who put them there.
fn tokens(explanation: &Explanation, out: &mut impl Write) -> io::Result<()> {
    let (bold, quiet) = (Style::new().bold(), Style::new().dimmed());
    writeln!(out, "\n{bold}tokens{bold:#}")?;
    let ledger = match Ledger::of(explanation.rendered()) {
        Ok(ledger) => ledger,
        Err(error) => return writeln!(out, "  not counted: {}", printable(&error.diagnostic().message)),
    };
    total(&ledger, out)?;
    let rows = ledger.contributors.iter().map(|entry| (entry.tokens, entry.contributor.label()));
    let sections =
        ledger.sections.iter().map(|section| (section.tokens, format!("section {}", section.path)));
    let tools = ledger.tools.iter().map(|tool| (tool.tokens, format!("tool {}", tool.name)));
    let output = (ledger.output > 0).then(|| (ledger.output, "schema of the answer".to_owned()));
    for (tokens, name) in rows.chain(sections).chain(tools).chain(output) {
        let name = printable(&name);
        let name =
            cut(&file_name(explanation.prepared().project(), &name), screen::width().saturating_sub(10))
                .into_owned();
        writeln!(out, "  {tokens:>6}  {quiet}{name}{quiet:#}")?;
    }
    Ok(())
}

/// The tokens of everything, and why that is an estimate if it is one.
pub fn total(ledger: &Ledger, out: &mut impl Write) -> io::Result<()> {
    let quiet = Style::new().dimmed();
    let about = if ledger.is_exact() { "" } else { "about " };
    let model = ledger.model.as_ref().map_or_else(String::new, |model| format!(" for {}", printable(model)));
    writeln!(out, "  {about}{} in all{model}", ledger.total())?;
    for reason in ledger.estimates() {
        writeln!(out, "  {quiet}{}{quiet:#}", printable(&reason))?;
    }
    Ok(())
}

/// The tree: each section with its path, what became of it, and why.
fn tree(sections: &[SectionReport], out: &mut impl Write) -> io::Result<()> {
    let bold = Style::new().bold();
    let quiet = Style::new().dimmed();
    writeln!(out, "\n{bold}sections{bold:#}")?;
    let rows: Vec<(String, String)> = sections
        .iter()
        .map(|section| {
            let margin = "  ".repeat(section.path.len() - 1);
            (format!("{margin}{} {}", section.number, section.title), section.path.join("."))
        })
        .collect();
    let width = |of: fn(&(String, String)) -> &str| {
        rows.iter().map(|row| of(row).chars().count()).max().unwrap_or_default()
    };
    let (titles, paths) = (width(|row| &row.0), width(|row| &row.1));
    for ((title, path), section) in rows.iter().zip(sections) {
        let other = if section.overridden { ", text from an override" } else { "" };
        writeln!(
            out,
            "  {title:titles$}  {quiet}{path:paths$}{quiet:#}  {:8}  {quiet}{}{other}{quiet:#}",
            section.state.as_str(),
            section.why.describe()
        )?;
    }
    Ok(())
}

/// What was done to make the request fit, in the order in which it was done.
fn fit(fitting: &Fitting, out: &mut impl Write) -> io::Result<()> {
    let bold = Style::new().bold();
    let quiet = Style::new().dimmed();
    writeln!(out, "\n{bold}fit{bold:#}\n  {}", fitted(fitting))?;
    for why in fitting.estimate.iter().flat_map(|why| why.lines()) {
        writeln!(out, "  {quiet}{}{quiet:#}", printable(why))?;
    }
    for what in &fitting.not_counted {
        writeln!(out, "  {quiet}not counted: {}{quiet:#}", printable(what))?;
    }
    dropped(fitting, out)
}

/// How many tokens there are of how many, and of what.
fn fitted(fitting: &Fitting) -> String {
    let Fitting { tokens, before, budget, tools, output, .. } = fitting;
    let parts = match (tools, output) {
        (0, 0) => String::new(),
        _ => format!(" (text {}, tools {tools}, output schema {output})", fitting.text()),
    };
    format!("{tokens} of {budget} tokens{parts}, {before} before")
}

/// The sections that made room.
fn dropped(fitting: &Fitting, out: &mut impl Write) -> io::Result<()> {
    let quiet = Style::new().dimmed();
    let width =
        fitting.steps.iter().map(|step| step.path.join(".").chars().count()).max().unwrap_or_default();
    for step in &fitting.steps {
        let path = step.path.join(".");
        let became = match step.fold {
            Fold::Summary => "summary",
            Fold::Gone => "dropped",
        };
        let FitStep { priority, saved, .. } = step;
        writeln!(
            out,
            "  {:width$}  {became}  {quiet}priority {priority}, {saved} tokens less{quiet:#}",
            printable(&path)
        )?;
    }
    Ok(())
}

/// Says on stderr which sections made room, and what was not counted.
pub fn mention_fit(rendered: &Rendered) {
    let Some(fitting) = rendered.sections().and_then(|sections| sections.fitting.as_ref()) else { return };
    if fitting.steps.is_empty() && fitting.not_counted.is_empty() {
        return;
    }
    say(format_args!("note: --fit: {}", fitted(fitting)));
    for what in &fitting.not_counted {
        say(format_args!("  not counted: {}", printable(what)));
    }
    let _ = dropped(fitting, &mut anstream::stderr());
}

fn shorten(value: &str) -> String {
    if value.chars().count() <= VALUE_WIDTH {
        return value.to_owned();
    }
    let start: String = value.chars().take(VALUE_WIDTH).collect();
    format!("{start}… ({} characters)", value.chars().count())
}
