//! `cuebook tokens`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::Style;
use cuebook::error::{did_you_mean, nearest, printable};
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Prepared, Result, Variables};
use cuebook_lab::BookExt;
use cuebook_lab::Target;
use cuebook_lab::diff::{self, Version, VersionReport};
use cuebook_lab::ledger::{Basis, CachePlan, Ledger, Provider, Stability, Unstable};
use cuebook_run::provider::{Prices, ReadingCost as Cost};
use serde_json::{Value as Json, json};

use super::{explain, with_choice};
use crate::args::{Options, TokensArgs};
use crate::inputs::{self, Shared};
use crate::output::{Outcome, print_findings, print_json, say, unless_closed};
use crate::prompts::{self, Member, Prompts};

pub fn run(args: &TokensArgs, options: &Options) -> Outcome {
    let is_stdin = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    if is_stdin(&args.inputs.vars_file) && is_stdin(&args.against) {
        let message = "--vars and --against cannot both read stdin";
        return Err(usage(message, "name a file for one of them: --against other.json").into());
    }
    let book = options.book()?;
    let prices = Prices::known(&book);
    match Prompts::read(&args.prompts, &args.inputs, &book)? {
        Prompts::One(prompt) => one(prompt.as_deref(), args, &book, &prices, options),
        Prompts::Many(_) if args.against.is_some() => {
            Err(usage("--against compares two renders of one prompt", "name one prompt").into())
        }
        Prompts::Many(targets) => all(targets, args, &book, &prices, options),
    }
}

fn usage(message: &str, hint: &str) -> Error {
    Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint))
}

/// Counts one prompt after the other, in a row each. One that cannot be rendered fails, and the others go on.
fn all(targets: Vec<Target>, args: &TokensArgs, book: &Book, prices: &Prices, options: &Options) -> Outcome {
    let mut values = Shared::read(&args.inputs)?;
    let context = values.context_mut();
    context.model = args.model.clone().or(context.model.take());
    let members = prompts::members(targets, &values, book)?;
    let clock = diff::stopped_clock();
    let counted: Vec<(Result<VersionReport>, &Member)> = members
        .iter()
        .map(|member| {
            let reported = member.values(&values).and_then(|(variables, context)| {
                let version = Version::find(book, &member.target.name, &context, &clock)?;
                Ok(diff::describe(&version.labelled(&member.target.id).with(variables, context)))
            });
            let reported = reported.and_then(|mut reported| match reported.failure.take() {
                Some(error) => Err(error),
                None => Ok(reported),
            });
            (reported, member)
        })
        .collect();
    match options.json {
        true => unless_closed(print_json(
            &counted.iter().map(|(reported, member)| document(reported, member, prices)).collect(),
        ))?,
        false => unless_closed(rows(&counted, prices, &mut anstream::stdout().lock()))?,
    }
    Ok(prompts::code(counted.iter().any(|(reported, _)| reported.is_err())))
}

/// The tokens of a prompt among others as scripts see them.
fn document(reported: &Result<VersionReport>, member: &Member, prices: &Prices) -> Json {
    match reported {
        Ok(VersionReport { ledger: Some(ledger), assumed, .. }) => {
            let mut object = ledger.to_json();
            object["prompt"] = json!(member.target.id);
            object["source"] = json!(member.target.source);
            object["cost"] = Cost::json(prices.of(ledger.model.as_deref(), ledger.total()));
            object["placeholders"] = assumed.iter().map(|assumed| json!(assumed.name)).collect();
            object
        }
        Ok(_) => json!({"prompt": member.target.id, "source": member.target.source}),
        Err(error) => member.failure(error),
    }
}

/// A row for each prompt, and the sum.
fn rows(
    counted: &[(Result<VersionReport>, &Member)],
    prices: &Prices,
    out: &mut impl Write,
) -> io::Result<()> {
    let (bold, quiet) = (Style::new().bold(), Style::new().dimmed());
    writeln!(out, "{bold}{:>8}  {:>14}  prompt{bold:#}", "tokens", "cost")?;
    let (mut total, mut is_exact, mut costs) = (0, true, Vec::new());
    for (reported, member) in counted {
        let id = printable(&member.target.id);
        let Ok(VersionReport { ledger: Some(ledger), assumed, .. }) = reported else {
            writeln!(out, "{:>8}  {:>14}  {id}  {quiet}not counted, see below{quiet:#}", "-", "-")?;
            continue;
        };
        let cost = prices.of(ledger.model.as_deref(), ledger.total());
        let shown = cost.as_ref().map_or_else(|| "-".to_owned(), Cost::to_string);
        let names: Vec<&str> = assumed.iter().map(|assumed| assumed.name.as_str()).collect();
        let note = match names.is_empty() {
            true => String::new(),
            false => format!("  placeholders: {}", printable(&names.join(", "))),
        };
        writeln!(
            out,
            "{:>8}  {shown:>14}  {id}{quiet}{note}{quiet:#}",
            count(ledger.total(), ledger.is_exact())
        )?;
        total += ledger.total();
        is_exact &= ledger.is_exact();
        costs.extend(cost);
    }
    let sum = Cost::sum(&costs).filter(|_| costs.len() == counted.len());
    let sum = sum.map_or_else(|| "-".to_owned(), |cost| cost.to_string());
    let noun = if counted.len() == 1 { "prompt" } else { "prompts" };
    writeln!(out, "{bold}{:>8}  {sum:>14}  {} {noun}{bold:#}", count(total, is_exact), counted.len())?;
    for (reported, member) in counted {
        if let Err(error) = reported {
            write!(out, "\n{}", prompts::failed(&member.target, error))?;
        }
    }
    Ok(())
}

/// A number of tokens, with a sign for an estimate.
fn count(tokens: usize, is_exact: bool) -> String {
    format!("{}{tokens}", if is_exact { "" } else { "~" })
}

fn one(prompt: Option<&str>, args: &TokensArgs, book: &Book, prices: &Prices, options: &Options) -> Outcome {
    let (explanation, other) = with_choice(book, options, || {
        let mut given = inputs::read(prompt, &args.inputs, book)?;
        given.context.model = args.model.clone().or(given.context.model);
        let explanation = book.explain(&given.prompt, &given.variables, &given.context)?;
        given.remember()?;
        let other = match &args.against {
            None => None,
            Some(path) => {
                let variables = other_values(path, &given.variables, explanation.prepared())?;
                Some(book.explain(&given.prompt, &variables, &given.context)?)
            }
        };
        Ok((explanation, other))
    })?;
    let rendered = explanation.rendered();
    if !options.json {
        print_findings(rendered.notes());
        explain::mention_fit(rendered);
    }
    let ledger = Ledger::of(explanation.rendered())?;
    let stability = match &other {
        Some(other) => Stability::between(rendered, other.rendered())?,
        None => Stability::assumed(rendered)?,
    };
    // If the owner of the model is not named, each of them is reported.
    let providers = ledger.provider.map_or_else(|| Provider::ALL.to_vec(), |provider| vec![provider]);
    let plans: Vec<CachePlan> = providers
        .into_iter()
        .map(|provider| CachePlan::new(provider, ledger.model.as_deref(), &stability))
        .collect();
    if options.json {
        let mut object = ledger.to_json();
        object["prompt"] = explanation.prepared().found().id.as_str().into();
        object["stability"] = stability.to_json();
        object["caches"] = plans.iter().map(CachePlan::to_json).collect();
        object["cost"] = Cost::json(prices.of(ledger.model.as_deref(), ledger.total()));
        print_json(&object)?;
    } else {
        let mut out = anstream::stdout().lock();
        writeln!(out, "{}", printable(&explanation.prepared().found().id))?;
        explain::total(&ledger, &mut out)?;
        print_price(&ledger, prices, &mut out)?;
        counts(&ledger, &mut out)?;
        stable(&stability, &mut out)?;
        caches(&plans, &mut out)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What it costs, if the model has a price.
fn print_price(ledger: &Ledger, prices: &Prices, out: &mut impl Write) -> io::Result<()> {
    let quiet = Style::new().dimmed();
    match (prices.of(ledger.model.as_deref(), ledger.total()), &ledger.model) {
        (Some(cost), _) => writeln!(out, "  {}", printable(&cost.describe())),
        (None, Some(model)) => {
            writeln!(out, "  {quiet}the price of {} is not known{quiet:#}", printable(model))
        }
        (None, None) => Ok(()),
    }
}

/// The values of the other render: those of the file take the place of those of the same name.
fn other_values(path: &Path, values: &Variables, prepared: &Prepared) -> cuebook::Result<Variables> {
    let mut other = values.clone();
    for (name, value) in inputs::read_object(path)? {
        if !prepared.knows(&name)
            && let Some(hint) =
                did_you_mean(&nearest(&name, prepared.known_names().iter().map(String::as_str)))
        {
            say(format_args!("warning: --against: unknown variable `{}`: {hint}", printable(&name)));
        }
        other = other.set(name, value);
    }
    Ok(other)
}

fn counts(ledger: &Ledger, out: &mut impl Write) -> io::Result<()> {
    let messages = ledger.messages.iter();
    table(
        "messages",
        messages.map(|message| (message.tokens, format!("{} {}", message.number, message.role))),
        out,
    )?;
    table("tools", ledger.tools.iter().map(|tool| (tool.tokens, tool.name.clone())), out)?;
    let output = (ledger.output > 0).then(|| (ledger.output, "its schema".to_owned()));
    table("answer", output.into_iter(), out)?;
    table("sections", ledger.sections.iter().map(|section| (section.tokens, section.path.clone())), out)?;
    table("sources", ledger.contributors.iter().map(|entry| (entry.tokens, entry.contributor.label())), out)
}

fn table(title: &str, rows: impl Iterator<Item = (usize, String)>, out: &mut impl Write) -> io::Result<()> {
    let bold = Style::new().bold();
    for (index, (tokens, name)) in rows.enumerate() {
        if index == 0 {
            writeln!(out, "\n{bold}{title}{bold:#}")?;
        }
        writeln!(out, "  {tokens:>6}  {}", printable(&name))?;
    }
    Ok(())
}

fn stable(stability: &Stability, out: &mut impl Write) -> io::Result<()> {
    let (bold, quiet) = (Style::new().bold(), Style::new().dimmed());
    let Stability { stable, total, .. } = stability;
    writeln!(out, "\n{bold}stable{bold:#}")?;
    writeln!(out, "  {stable} of {total} tokens, {:.0} %", stability.share() * 100.0)?;
    if stability.basis == Basis::Assumed {
        let why = "if values from the caller, hooks, providers and the system change; --against FILE compares two renders";
        writeln!(out, "  {quiet}{why}{quiet:#}")?;
    }
    match &stability.first {
        Some(first) => place(
            if stability.basis == Basis::Compared { "differs" } else { "changes" },
            first,
            stability,
            out,
        )?,
        None => writeln!(out, "  {quiet}nothing changes{quiet:#}")?,
    }
    if let Some(passing) = &stability.passing {
        place("is the same now, but will change", passing, stability, out)?;
    }
    Ok(())
}

fn place(does: &str, unstable: &Unstable, stability: &Stability, out: &mut impl Write) -> io::Result<()> {
    let quiet = Style::new().dimmed();
    let Unstable { within, offset, line, column, .. } = unstable;
    let who = unstable.contributor.label();
    let within = printable(within);
    writeln!(
        out,
        "  {} {does} first at byte {offset} of {within}, line {line}, column {column}",
        printable(&who)
    )?;
    if let Some(place) = unstable.origin.as_ref().and_then(|origin| origin.place()) {
        writeln!(out, "  {quiet}--> {}{quiet:#}", printable(&place.to_string()))?;
    }
    if unstable.is_literal() && !stability.changed.is_empty() {
        let changed: Vec<String> = stability
            .changed
            .iter()
            .map(|shown| format!("{} ({})", shown.path, shown.layer.map_or("absent", |layer| layer.as_str())))
            .collect();
        let why = "an author's text in a condition or loop that depends on";
        writeln!(out, "  {quiet}{why} {}{quiet:#}", printable(&changed.join(", ")))?;
    }
    Ok(())
}

fn caches(plans: &[CachePlan], out: &mut impl Write) -> io::Result<()> {
    let (bold, quiet) = (Style::new().bold(), Style::new().dimmed());
    writeln!(out, "\n{bold}caches{bold:#}")?;
    for plan in plans {
        let CachePlan { provider, minimum, cacheable, .. } = plan;
        writeln!(out, "  {:9}  {cacheable} tokens cacheable (minimum {minimum})", provider.title())?;
        for breakpoint in &plan.breakpoints {
            writeln!(
                out,
                "    cache mark after {}: {} tokens",
                printable(&breakpoint.after),
                breakpoint.tokens
            )?;
        }
        for advice in &plan.advice {
            writeln!(out, "    {quiet}{}{quiet:#}", printable(advice))?;
        }
    }
    Ok(())
}
