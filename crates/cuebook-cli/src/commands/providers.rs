//! `cuebook providers`

use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use cuebook::error::printable;
use cuebook::trust::Trust;
use cuebook_run::provider::{ModelEntry, Price, ProviderFile, Providers, why_unset};
use serde_json::{Map, Value as Json, json};

use crate::args::Options;
use crate::output::{Outcome, print_findings, print_json};

pub fn run(options: &Options) -> Outcome {
    let spaces = options.spaces()?;
    let providers = Providers::new(&spaces, &Trust::new(&spaces))?;
    if options.json {
        let all = providers.list().map(|file| described(file, providers.is_ready(file)));
        let broken = providers
            .broken()
            .map(|(name, error)| json!({"name": name, "ready": false, "error": error.to_json()["error"]}));
        print_json(&all.chain(broken).collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    let (bold, good, bad) = (Style::new().bold(), AnsiColor::Green.on_default(), AnsiColor::Red.on_default());
    let mut out = anstream::stdout().lock();
    for file in providers.list() {
        let from = file.redirected_by().map_or(String::new(), |variable| format!(" ({variable})"));
        let address = format!("{}, {}{from}", file.api, printable(&file.base_url));
        write!(out, "{bold}{}{bold:#}  {address}  ", printable(&file.name))?;
        let variables = file.variables().map(|name| match providers.is_set(name) {
            true => format!("{good}{} is set{good:#}", printable(name)),
            false => format!("{bad}{} {}{bad:#}", printable(name), why_unset(name)),
        });
        let variables: Vec<String> = variables.collect();
        match variables.is_empty() {
            true => writeln!(out, "needs no key")?,
            false => writeln!(out, "{}", variables.join(", "))?,
        }
        for (tier, model) in &file.tiers {
            let price = match file.profile(model).price {
                Some(price) => format!("per million tokens: {} input, {} output", price.input, price.output),
                None => "price unknown".to_owned(),
            };
            writeln!(out, "  {:<8} {}  ({price})", printable(tier), printable(model))?;
        }
    }
    drop(out);
    print_findings(&providers.warnings().collect::<Vec<_>>());
    Ok(ExitCode::SUCCESS)
}

fn described(file: &ProviderFile, ready: bool) -> Json {
    let price = |price: Price| {
        let cached = price.cached.unwrap_or(price.input);
        json!({"input": price.input.to_json(), "cached": cached.to_json(), "output": price.output.to_json()})
    };
    let model = |entry: &ModelEntry| {
        let profile = file.profile(&entry.pattern);
        let known = json!({
            "context_window": profile.context_window,
            "max_output": profile.max_output,
            "price": profile.price.map(price),
        });
        (entry.pattern.clone(), known)
    };
    json!({
        "name": file.name,
        "api": file.api.as_str(),
        "base_url": file.base_url,
        "base_url_variable": file.redirected_by(),
        "key": file.key,
        "variables": file.variables().collect::<Vec<_>>(),
        "ready": ready,
        "tiers": file.tiers,
        "models": file.models.iter().map(model).collect::<Map<_, _>>(),
        "file": file.file,
        "warnings": file.warnings.iter().map(|warning| Json::Object(warning.to_json())).collect::<Vec<_>>(),
    })
}
