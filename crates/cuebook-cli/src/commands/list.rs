//! `cuebook list`

use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};

use crate::args::{ListArgs, Options};
use crate::output::{Outcome, print_json, say};

pub fn run(args: &ListArgs, options: &Options) -> Outcome {
    let prompts = options.book()?.list_prompts(args.kind.as_deref(), args.tag.as_deref())?;
    if options.json {
        print_json(&prompts.iter().map(cuebook::Listing::to_json).collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    if prompts.is_empty() {
        say("no matching prompt; `cuebook list` without a filter shows all of them");
        return Ok(ExitCode::SUCCESS);
    }
    let bold = Style::new().bold();
    let quiet = Style::new().dimmed();
    let alarm = AnsiColor::Yellow.on_default();
    let id_width = prompts.iter().map(|prompt| prompt.id.chars().count()).max().unwrap_or_default();
    let kind_width =
        prompts.iter().map(|p| p.kind.as_deref().unwrap_or("?").chars().count()).max().unwrap_or_default();
    let mut out = anstream::stdout().lock();
    for prompt in &prompts {
        let kind = prompt.kind.as_deref().unwrap_or("?");
        write!(out, "{bold}{:id_width$}{bold:#}  {kind:kind_width$}  ", prompt.id)?;
        match (&prompt.source, &prompt.problem) {
            (Some(source), None) => {
                let shadowed: Vec<&str> = prompt.shadowed().collect();
                match shadowed.is_empty() {
                    true => writeln!(out, "{quiet}{source}{quiet:#}")?,
                    false => writeln!(out, "{quiet}{source}, shadows {}{quiet:#}", shadowed.join(", "))?,
                }
            }
            (Some(source), Some(_)) => {
                writeln!(out, "{source} {alarm}cannot be read: cuebook check{alarm:#}")?
            }
            (None, _) => {
                writeln!(
                    out,
                    "{alarm}{} places: cuebook candidates {}{alarm:#}",
                    prompt.candidates.len(),
                    prompt.id
                )?;
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}
