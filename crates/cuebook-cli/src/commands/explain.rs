//! `cuebook explain`

use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use cuebook::explain::Explanation;
use cuebook::{Origin, Span};

use super::with_choice;
use crate::args::{InputArgs, Options};
use crate::inputs;
use crate::output::{Outcome, print_findings, print_json};

pub fn run(args: &InputArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let explanation = with_choice(&book, options, || {
        let given = inputs::read(args.prompt.as_deref(), &args.inputs, &book)?;
        book.explain(&given.prompt, &given.variables, &given.context)
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

/// What stands in the margin: a file and line, or a variable and its layer.
fn label(origin: &Origin) -> String {
    match origin {
        Origin::Value { shown, emitted } => {
            let shown: Vec<String> = shown
                .iter()
                .map(|shown| match (&shown.by, shown.layer) {
                    (Some(by), _) => format!("{} ({by})", shown.path),
                    (None, Some(layer)) => format!("{} ({layer})", shown.path),
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
