//! `cuebook list`

use std::collections::BTreeSet;
use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use cuebook::error::{did_you_mean, nearest, printable, shell_word};

use crate::args::{ListArgs, Options};
use crate::output::{Outcome, print_json, say};
use crate::screen::{self, cut, file_name};

/// Columns that a path has at least.
const NARROWEST_PATH: usize = 20;

pub fn run(args: &ListArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let prompts = book.list_prompts(args.kind.as_deref(), args.tag.as_deref())?;
    if options.json {
        print_json(&prompts.iter().map(cuebook::Listing::to_json).collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    if prompts.is_empty() {
        let all = book.list_prompts(None, None)?;
        let types: BTreeSet<&str> = all.iter().filter_map(|prompt| prompt.kind.as_deref()).collect();
        let tags: BTreeSet<&str> =
            all.iter().flat_map(|prompt| prompt.tags.iter().map(String::as_str)).collect();
        let near = args.kind.as_deref().map(|kind| nearest(kind, types));
        let near = near.filter(|near| !near.is_empty()).or(args.tag.as_deref().map(|tag| nearest(tag, tags)));
        let hint = near.and_then(|near| did_you_mean(&near));
        let hint = hint.unwrap_or_else(|| "`cuebook list` without a filter shows all of them".to_owned());
        say(format_args!("no matching prompt; {}", printable(&hint)));
        return Ok(ExitCode::SUCCESS);
    }
    let bold = Style::new().bold();
    let quiet = Style::new().dimmed();
    let alarm = AnsiColor::Yellow.on_default();
    let id_width = prompts.iter().map(|prompt| prompt.id.chars().count()).max().unwrap_or_default();
    let kind_width =
        prompts.iter().map(|p| p.kind.as_deref().unwrap_or("?").chars().count()).max().unwrap_or_default();
    // Ids and types are never cut: people type them.
    let beside = screen::width().saturating_sub(id_width + kind_width + 4);
    let (gap, columns) =
        if beside < NARROWEST_PATH { ("\n    ", screen::width() - 4) } else { ("  ", beside) };
    let project = book.library().root();
    let mut out = anstream::stdout().lock();
    for prompt in &prompts {
        let kind = prompt.kind.as_deref().unwrap_or("?");
        let (id, kind) = (printable(&prompt.id), printable(kind));
        write!(out, "{bold}{id:id_width$}{bold:#}  {kind:kind_width$}{gap}")?;
        match (&prompt.source, &prompt.problem) {
            (Some(source), None) => {
                writeln!(out, "{quiet}{}{quiet:#}", printable(&cut(&file_name(project, source), columns)))?;
                let shadowed: Vec<_> = prompt.shadowed().map(|one| file_name(project, one)).collect();
                if !shadowed.is_empty() {
                    writeln!(out, "  {quiet}shadows {}{quiet:#}", printable(&shadowed.join(", ")))?;
                }
            }
            (Some(source), Some(_)) => {
                writeln!(out, "{}", printable(&cut(&file_name(project, source), columns)))?;
                writeln!(out, "  {alarm}cannot be read: cuebook check{alarm:#}")?;
            }
            (None, _) => {
                let places = prompt.candidates.len();
                let word = shell_word(&id);
                writeln!(out, "{alarm}{places} places: cuebook candidates {word}{alarm:#}")?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
