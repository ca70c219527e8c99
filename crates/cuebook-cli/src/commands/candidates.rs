//! `cuebook candidates`

use std::io::Write;
use std::process::ExitCode;

use anstyle::Style;
use cuebook::Book;
use cuebook::error::{printable, shell_word};
use serde_json::{Value as Json, json};

use super::resolve::providers;
use crate::args::{Options, PromptArgs};
use crate::output::{Outcome, print_json, say};

pub fn run(args: &PromptArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    if let Some(offers) = providers(&book, &args.prompt)? {
        return show_providers(&book, &args.prompt, &offers, options);
    }
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
        let files = candidate.dialect.files.filter(|_| candidate.shadowed_by.is_none());
        let parts: Vec<&str> = [
            (candidate.has_prompt_py, "prompt.py"),
            (candidate.has_template, "template.md"),
            (files.is_some(), files.unwrap_or_default()),
            (candidate.shadowed_by.is_some(), "directive, shadowed"),
        ]
        .into_iter()
        .filter_map(|(has, name)| has.then_some(name))
        .collect();
        writeln!(
            out,
            "{mark} {}  {}  {quiet}{}{quiet:#}",
            printable(&candidate.source.to_string()),
            printable(candidate.version.as_deref().unwrap_or("?")),
            parts.join(" + ")
        )?;
    }
    match chosen {
        Ok(found) => say(format_args!("* is used: {}", found.reason.describe())),
        Err(error) => {
            say(format_args!("{}", error.diagnostic().message));
            say(format_args!("choose: cuebook resolve {} SOURCE", shell_word(&args.prompt)));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The packs that provide a namespace. The recorded one is used, or the only one.
fn show_providers(book: &Book, name: &str, offers: &[(String, String)], options: &Options) -> Outcome {
    let recorded = book.library().resolutions()?.get(name).map(|choice| choice.source);
    let is_used = |source: &str| recorded.as_deref().map_or(offers.len() == 1, |chosen| chosen == source);
    if options.json {
        let shown = offers.iter().map(|(pack, source)| json!({"source": source, "pack_id": pack}));
        print_json(&shown.collect::<Json>())?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = anstream::stdout().lock();
    for (pack, source) in offers {
        let mark = if is_used(source) { "*" } else { " " };
        writeln!(out, "{mark} {}  {}", printable(source), printable(pack))?;
    }
    drop(out);
    match offers.iter().any(|(_, source)| is_used(source)) {
        true => say("* is used"),
        false => say(format_args!("choose: cuebook resolve {} SOURCE", shell_word(name))),
    }
    Ok(ExitCode::SUCCESS)
}
