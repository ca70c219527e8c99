//! `cuebook doctor`

use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use cuebook_hooks::Examination;
use cuebook_hooks::sandbox::{Launcher, Protection};
use cuebook_run::Fence;
use serde_json::{Value as Json, json};

use crate::args::Options;
use crate::output::{Outcome, print_findings, print_json};

pub fn run(options: &Options) -> Outcome {
    let book = options.book()?;
    let config = book.library().config()?;
    let found = Examination::of(book.library(), &Launcher::this_program())?;
    let is_lifted = Fence::is_lifted(book.library().spaces())?;
    let wanted = config.hooks.sandbox;
    let fit = found.python.is_ok() && found.report.level() >= wanted;
    let code = if fit { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if options.json {
        let python = match &found.python {
            Ok(python) => json!({"path": python.program, "version": version(python.version)}),
            Err(error) => error.to_json()["error"].clone(),
        };
        let missing: Vec<Json> = found
            .report
            .missing
            .iter()
            .map(|(protection, why)| json!({"protection": protection.as_str(), "why": why}))
            .collect();
        print_json(&json!({
            "hooks_enabled": config.hooks.enabled,
            "python": python,
            "sandbox": found.report.level().as_str(),
            "sandbox_for_packs": wanted.as_str(),
            "missing": missing,
            "tools_fenced": !is_lifted && Fence::lacks(&found.report).is_none(),
        }))?;
        return Ok(code);
    }
    let (good, bad) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default());
    let bold = Style::new().bold();
    let mut out = anstream::stdout().lock();
    if !config.hooks.enabled {
        writeln!(out, "hooks    turned off (`hooks.enabled` in cuebook.toml)")?;
    }
    match &found.python {
        Ok(python) => {
            writeln!(out, "python   {} ({})", version(python.version), python.program.display())?;
        }
        Err(_) => writeln!(out, "python   {bad}none{bad:#}")?,
    }
    let level = found.report.level();
    writeln!(out, "sandbox  {bold}{}{bold:#}; hooks need {}", level.as_str(), wanted.as_str())?;
    for protection in Protection::ALL {
        match found.report.missing.iter().find(|(missing, _)| *missing == protection) {
            None => writeln!(out, "  {good}yes{good:#}  {}", protection.description())?,
            Some((_, why)) => writeln!(out, "  {bad}no{bad:#}   {}: {why}", protection.description())?,
        }
    }
    match Fence::lacks(&found.report) {
        _ if is_lifted => writeln!(
            out,
            "tools    {bad}run without the sandbox{bad:#} when a model calls them, as you allowed"
        )?,
        None => writeln!(out, "tools    run in the sandbox when a model calls them")?,
        Some((protection, why)) => writeln!(
            out,
            "tools    {bad}refused{bad:#} when a model calls them, unless you pass --no-sandbox: {}: {why}",
            protection.as_str()
        )?,
    }
    drop(out);
    if let Err(error) = &found.python {
        print_findings(error.diagnostics());
    }
    Ok(code)
}

fn version((major, minor): (u8, u8)) -> String {
    format!("{major}.{minor}")
}
