//! `cuebook candidates`

use std::io::Write;
use std::process::ExitCode;

use anstyle::Style;
use cuebook::prompt::Dialect;

use crate::args::{Options, PromptArgs};
use crate::output::{Outcome, print_json, say};

pub fn run(args: &PromptArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let candidates = book.list_candidates(&args.prompt)?;
    if options.json {
        print_json(&candidates.iter().map(cuebook::library::Candidate::to_json).collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = book.library().choose(&args.prompt);
    let quiet = Style::new().dimmed();
    let mut out = anstream::stdout().lock();
    for candidate in &candidates {
        let mark = match &chosen {
            Ok(found) if found.candidate.source == candidate.source => "*",
            _ => " ",
        };
        let parts: Vec<&str> = [
            (candidate.has_prompt_py, "prompt.py"),
            (candidate.has_template, "template.md"),
            (candidate.dialect == Dialect::Prompty, ".prompty"),
            (candidate.dialect == Dialect::Sections, ".sections.md"),
            (candidate.dialect == Dialect::Directive && candidate.shadowed_by.is_none(), "directive"),
            (candidate.shadowed_by.is_some(), "directive, shadowed"),
        ]
        .into_iter()
        .filter_map(|(has, name)| has.then_some(name))
        .collect();
        writeln!(
            out,
            "{mark} {}  {}  {quiet}{}{quiet:#}",
            candidate.source,
            candidate.version.as_deref().unwrap_or("?"),
            parts.join(" + ")
        )?;
    }
    match chosen {
        Ok(found) => say(format_args!("* is used: {}", found.reason.describe())),
        Err(error) => {
            say(format_args!("{}", error.diagnostic().message));
            say(format_args!("choose: cuebook resolve {} SOURCE", args.prompt));
        }
    }
    Ok(ExitCode::SUCCESS)
}
