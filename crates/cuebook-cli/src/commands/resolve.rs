//! `cuebook resolve`

use std::process::ExitCode;

use cuebook::library::PROVIDER;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::json;

use crate::args::{Options, ResolveArgs};
use crate::output::{Outcome, print_json, say};
use crate::terminal;

pub fn run(args: &ResolveArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let Some(source) = &args.source else {
        if options.json || !terminal::is_interactive() {
            let sources: Vec<String> = match providers(&book, &args.prompt)? {
                Some(providers) => providers.into_iter().map(|(_, source)| source).collect(),
                None => book.list_candidates(&args.prompt)?.into_iter().map(|one| one.source).collect(),
            };
            let diagnostic =
                Diagnostic::new(Code::ConfirmationNeeded, "no source given, and no terminal to ask on")
                    .hint(format!("name one of: {}", sources.join(", ")));
            return Err(Error::new(ErrorKind::PromptConflict, diagnostic).into());
        }
        let chosen = ask(&book, &args.prompt)?;
        return Ok(if chosen { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    };
    let resolution = book.set_resolution(&args.prompt, source)?;
    let id = match args.prompt.starts_with(PROVIDER) {
        true => args.prompt.clone(),
        false => book.library().resolve_id(&args.prompt)?.0,
    };
    if options.json {
        print_json(&json!({
            "prompt_id": id,
            "source": resolution.source,
            "resolved_at": resolution.resolved_at,
            "candidates": resolution.candidates,
        }))?;
    } else {
        say(format_args!("{id} now comes from {}", resolution.source));
    }
    Ok(ExitCode::SUCCESS)
}

/// Lets a person choose a candidate and records it; `false` if they do not want to.
pub fn ask(book: &Book, prompt: &str) -> Result<bool> {
    let (sources, lines): (Vec<String>, Vec<String>) = match providers(book, prompt)? {
        Some(providers) => {
            providers.into_iter().map(|(pack, source)| (source.clone(), format!("{source}  {pack}"))).unzip()
        }
        None => book
            .list_candidates(prompt)?
            .into_iter()
            .map(|one| {
                (one.source.clone(), format!("{}  {}", one.source, one.version.as_deref().unwrap_or("?")))
            })
            .unzip(),
    };
    let Some(index) = terminal::pick(&format!("Which `{prompt}` do you want?"), &lines) else {
        return Ok(false);
    };
    let resolution = book.set_resolution(prompt, &sources[index])?;
    say(format_args!("recorded: {prompt} comes from {}", resolution.source));
    Ok(true)
}

/// The packs that provide what a name like `provider.git` stands for, and the sources of their providers; `None` for a prompt.
pub fn providers(book: &Book, name: &str) -> Result<Option<Vec<(String, String)>>> {
    let Some(namespace) = name.strip_prefix(PROVIDER) else { return Ok(None) };
    let providers = book.library().provider_sources(namespace)?;
    if providers.is_empty() {
        let message = format!("no installed pack provides `{namespace}`");
        let diagnostic =
            Diagnostic::new(Code::UnknownSource, message).hint("`cuebook pack list` lists the packs");
        return Err(Error::new(ErrorKind::PromptConflict, diagnostic));
    }
    Ok(Some(providers))
}
