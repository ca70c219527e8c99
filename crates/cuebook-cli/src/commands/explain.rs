//! `cuebook explain`

use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use cuebook::explain::Explanation;
use cuebook::sections::{FitStep, Fitting, SectionReport};
use cuebook::{Origin, Span};

use super::with_choice;
use crate::args::{InputArgs, Options};
use crate::inputs;
use crate::output::{Outcome, print_findings, print_json};

pub fn run(args: &InputArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let explanation = with_choice(&book, options, || {
        let given = inputs::read(args.prompt.as_deref(), &args.inputs, &book)?;
        let explanation = book.explain(&given.prompt, &given.variables, &given.context)?;
        given.remember()?;
        if !options.json {
            given.mention_unseen(explanation.rendered());
        }
        Ok(explanation)
    })?;
    if options.json {
        print_json(&explanation.to_json())?;
    } else {
        print_findings(explanation.rendered().notes());
        describe(&explanation, &mut anstream::stdout().lock())?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The longest value that is shown whole.
const VALUE_WIDTH: usize = 60;

/// Writes an explanation for people.
pub fn describe(explanation: &Explanation, out: &mut impl Write) -> io::Result<()> {
    let bold = Style::new().bold();
    let quiet = Style::new().dimmed();
    let found = explanation.prepared().found();
    writeln!(out, "{bold}{}{bold:#} from {}", found.id, found.candidate.source)?;
    writeln!(out, "  {quiet}{}{quiet:#}", found.reason.describe())?;
    let variables = explanation.variables();
    if !variables.is_empty() {
        writeln!(out, "\n{bold}variables{bold:#}")?;
        let width = variables.iter().map(|variable| variable.name.chars().count()).max().unwrap_or_default();
        for variable in variables {
            let layer = variable.layer.map_or("absent", |layer| layer.as_str());
            let value = match variable.layer {
                None => String::new(),
                Some(_) => shorten(&variable.value.to_string()),
            };
            let unused = if variable.used { "" } else { "  (not used)" };
            writeln!(out, "  {:width$}  {layer:8}  {value}{quiet}{unused}{quiet:#}", variable.name)?;
        }
    }
    if let Some(sections) = explanation.rendered().sections() {
        tree(&sections.sections, out)?;
        if let Some(fitting) = &sections.fitting {
            fit(fitting, out)?;
        }
    }
    writeln!(out, "\n{bold}text{bold:#}")?;
    let rendered = explanation.rendered();
    let spans: Vec<Span> = rendered.spans().collect();
    let labels: Vec<String> = spans.iter().map(|span| label(&span.origin)).collect();
    let width = labels.iter().map(|label| label.chars().count()).max().unwrap_or_default().min(60);
    for (span, label) in spans.iter().zip(&labels) {
        let style = if span.origin.is_literal() { Style::new() } else { AnsiColor::Cyan.on_default() };
        let text = &rendered.text()[span.range.clone()];
        // A newline at the end of a span belongs to its line and does not begin another.
        for (index, line) in text.strip_suffix('\n').unwrap_or(text).split('\n').enumerate() {
            let margin = if index == 0 { label.as_str() } else { "" };
            writeln!(out, "  {quiet}{margin:width$} │{quiet:#} {style}{line}{style:#}")?;
        }
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
        let other = if section.overridden { ", other words by an override" } else { "" };
        writeln!(
            out,
            "  {title:titles$}  {quiet}{path:paths$}{quiet:#}  {:8}  {quiet}{}{other}{quiet:#}",
            section.state.as_str(),
            section.why.describe()
        )?;
    }
    Ok(())
}

/// What was done to make the text fit, in the order in which it was done.
fn fit(fitting: &Fitting, out: &mut impl Write) -> io::Result<()> {
    let bold = Style::new().bold();
    let quiet = Style::new().dimmed();
    let Fitting { tokens, before, budget, .. } = fitting;
    writeln!(out, "\n{bold}fit{bold:#}\n  {tokens} of {budget} tokens, {before} before")?;
    if let Some(why) = &fitting.estimate {
        writeln!(out, "  {quiet}{why}{quiet:#}")?;
    }
    let width =
        fitting.steps.iter().map(|step| step.path.join(".").chars().count()).max().unwrap_or_default();
    for step in &fitting.steps {
        let (path, fold) = (step.path.join("."), step.fold.as_str());
        let FitStep { priority, saved, .. } = step;
        writeln!(out, "  {path:width$}  {fold:8}  {quiet}priority {priority}, {saved} tokens less{quiet:#}")?;
    }
    Ok(())
}

/// What stands in the margin: a file and line, or a variable and its layer.
fn label(origin: &Origin) -> String {
    match origin {
        Origin::Value { shown, emitted } => {
            let shown: Vec<String> = shown
                .iter()
                .map(|shown| match (&shown.by, shown.layer) {
                    (Some(by), _) => format!("{} ({by})", shown.path),
                    (None, Some(layer)) => format!("{} ({layer})", shown.path),
                    (None, None) if shown.path.starts_with("env:") => format!("{} (environment)", shown.path),
                    (None, None) => format!("{} (absent)", shown.path),
                })
                .collect();
            match shown.is_empty() {
                true => format!("computed at {}:{}", emitted.file(), emitted.line()),
                false => shown.join(", "),
            }
        }
        Origin::Rich { input, kind } => format!("{input} ({kind})"),
        Origin::Hook { prompt, function } => format!("{function} of {prompt}"),
        Origin::Frame { name } => format!("frame {name}"),
        literal => {
            literal.place().map_or_else(String::new, |place| format!("{}:{}", place.file(), place.line()))
        }
    }
}

fn shorten(value: &str) -> String {
    if value.chars().count() <= VALUE_WIDTH {
        return value.to_owned();
    }
    let start: String = value.chars().take(VALUE_WIDTH).collect();
    format!("{start}… ({} characters)", value.chars().count())
}
