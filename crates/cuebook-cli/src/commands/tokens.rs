//! `cuebook tokens`

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anstyle::Style;
use cuebook::error::{did_you_mean, nearest, printable};
use cuebook::ledger::{Basis, CachePlan, Ledger, Provider, Stability, Unstable};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Prepared, Variables};

use super::{explain, with_choice};
use crate::args::{Options, TokensArgs};
use crate::inputs;
use crate::output::{Outcome, print_findings, print_json, say};

pub fn run(args: &TokensArgs, options: &Options) -> Outcome {
    let is_stdin = |path: &Option<PathBuf>| path.as_deref() == Some(Path::new("-"));
    if is_stdin(&args.inputs.vars_file) && is_stdin(&args.against) {
        let message = "--vars and --against cannot both read stdin";
        let diagnostic = Diagnostic::new(Code::BadInput, message)
            .hint("name a file for one of them: --against other.json");
        return Err(Error::new(ErrorKind::Usage, diagnostic).into());
    }
    let book = options.book()?;
    let (explanation, other) = with_choice(&book, options, || {
        let mut given = inputs::read(args.prompt.as_deref(), &args.inputs, &book)?;
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
    }
    let ledger = explanation.ledger()?;
    let stability = match &other {
        Some(other) => Stability::between(rendered, other.rendered())?,
        None => Stability::assumed(rendered)?,
    };
    // Where nobody says whose model it is, each of them is told.
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
        print_json(&object)?;
    } else {
        let mut out = anstream::stdout().lock();
        writeln!(out, "{}", printable(&explanation.prepared().found().id))?;
        explain::total(&ledger, &mut out)?;
        counts(&ledger, &mut out)?;
        stable(&stability, &mut out)?;
        caches(&plans, &mut out)?;
    }
    Ok(ExitCode::SUCCESS)
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
    table("who", ledger.contributors.iter().map(|entry| (entry.tokens, entry.contributor.label())), out)
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
