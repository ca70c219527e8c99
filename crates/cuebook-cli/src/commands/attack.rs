//! `cuebook attack`

use std::io::{self, Write};

use anstyle::{AnsiColor, Style};
use cuebook::Book;
use cuebook::error::{printable, report};
use cuebook::variables::FixedNonces;
use cuebook_lab::BookExt;
use cuebook_lab::Target;
use cuebook_lab::attack::{Attack, Breach, DIGITS, InputReport};

use super::with_choice;
use crate::args::{AttackArgs, Inputs, Options};
use crate::inputs::{self, Shared};
use crate::output::{Outcome, print_json, say, unless_closed};
use crate::progress::Progress;
use crate::prompts::{self, Prompts};

const GOOD: Style = AnsiColor::Green.on_default();
const BAD: Style = AnsiColor::Red.on_default().bold();
const BOLD: Style = Style::new().bold();

pub fn run(args: &AttackArgs, options: &Options) -> Outcome {
    // The attacker knows the nonces, which is more than one can know in earnest.
    let book = options.book()?.with_nonces(FixedNonces(DIGITS.into()));
    let mut inputs = args.inputs.clone();
    inputs.no_hooks |= !args.hooks;
    match Prompts::read(&args.prompts, &inputs, &book)? {
        Prompts::One(prompt) => one(prompt.as_deref(), &inputs, &book, options),
        Prompts::Many(targets) => all(targets, &inputs, &book, options),
    }
}

fn one(prompt: Option<&str>, inputs: &Inputs, book: &Book, options: &Options) -> Outcome {
    let attack = with_choice(book, options, || {
        let given = inputs::read(prompt, inputs, book)?;
        let mut progress = Progress::new("values");
        book.attack(&given.prompt, &given.variables, &given.context, |done, of| progress.show(done, of))
    })?;
    unless_closed(match options.json {
        true => print_json(&attack.to_json()),
        false => print_report(&attack).map(|()| {
            if !attack.inputs.is_empty() {
                say(format_args!("\n{}", verdict(&attack)));
            }
        }),
    })?;
    Ok(prompts::code(!attack.held()))
}

/// Attacks one prompt after the other. One that cannot be rendered fails, and the others go on.
fn all(targets: Vec<Target>, inputs: &Inputs, book: &Book, options: &Options) -> Outcome {
    let values = Shared::read(inputs)?;
    let members = prompts::members(targets, &values, book)?;
    let (mut documents, mut failed) = (Vec::new(), 0);
    for member in &members {
        let mut progress = Progress::new("values");
        let attack = member.values(&values).and_then(|(variables, context)| {
            book.attack(&member.target.name, &variables, &context, |done, of| progress.show(done, of))
        });
        failed += usize::from(!attack.as_ref().is_ok_and(Attack::held));
        match (&attack, options.json) {
            (Ok(attack), true) => documents.push(attack.to_json()),
            (Err(error), true) => documents.push(member.failure(error)),
            (Ok(attack), false) => {
                unless_closed(writeln!(
                    anstream::stdout(),
                    "{BOLD}{}{BOLD:#}",
                    printable(&member.target.id)
                ))?;
                unless_closed(print_report(attack))?;
                let verdict = if attack.inputs.is_empty() { String::new() } else { verdict(attack) + "\n" };
                unless_closed(writeln!(anstream::stdout(), "{verdict}"))?;
            }
            (Err(error), false) => {
                unless_closed(writeln!(anstream::stdout(), "{}", prompts::failed(&member.target, error)))?;
            }
        }
    }
    match options.json {
        true => unless_closed(print_json(&documents.into()))?,
        false => {
            let noun = if members.len() == 1 { "prompt" } else { "prompts" };
            say(match failed {
                0 => format!("{} {noun}: no value changed the structure", members.len()),
                _ => format!("{} {noun}: {failed} failed", members.len()),
            });
        }
    }
    Ok(prompts::code(failed > 0))
}

fn print_report(attack: &Attack) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    if attack.hooks == Some(false) {
        say("note: this prompt's hooks and providers did not run; --hooks runs them");
    }
    if attack.is_shared {
        let least = attack.inputs.iter().map(|driven| driven.tried + driven.refusals()).min().unwrap_or(0);
        say(format_args!(
            "note: many inputs share the {} values, so each got at least {least} of them",
            attack.values
        ));
    }
    if attack.inputs.is_empty() {
        writeln!(out, "`{}` has no inputs, so there is nothing to attack", attack.prompt)?;
        return Ok(());
    }
    let name = |driven: &InputReport| match &driven.input {
        Some(input) => printable(input).into_owned(),
        None => "all at once".to_owned(),
    };
    let width = attack.inputs.iter().map(|driven| name(driven).chars().count()).max().unwrap_or(0);
    let kinds = attack.inputs.iter().map(|driven| driven.kind.len()).max().unwrap_or(0);
    for driven in &attack.inputs {
        let kind = if driven.input.is_some() { driven.kind } else { "" };
        let (style, outcome) = outcome(driven);
        let name = name(driven);
        let (tried, refused, seen) = (driven.tried, driven.refusals(), driven.seen);
        let counts = format!("{tried:4} tried  {refused:4} refused  {seen:4} rendered");
        writeln!(out, "{name:width$}  {kind:kinds$}  {counts}  {style}{outcome}{style:#}")?;
    }
    let findings: Vec<_> = attack.breaches.iter().map(Breach::to_diagnostic).collect();
    let problems = attack.inputs.iter().filter_map(|driven| driven.problem.as_ref());
    let shown = report(findings.iter().chain(problems), true);
    if !shown.is_empty() {
        write!(out, "\n{shown}")?;
    }
    out.flush()?;
    Ok(())
}

/// What an attack proves.
fn verdict(attack: &Attack) -> String {
    let tried = attack.tried();
    if attack.held() {
        return format!("{tried} values tried: roles, messages, tools and fences stayed the same");
    }
    if attack.breaches.is_empty() {
        return format!("{tried} values tried, but some inputs got none: no result");
    }
    let broken: usize = attack.inputs.iter().map(|driven| driven.breaches).sum();
    format!("{tried} values tried, {broken} of them changed roles, messages, tools or fences")
}

fn outcome(driven: &InputReport) -> (Style, String) {
    if driven.breaches > 0 {
        return (BAD, format!("{} changed the structure", driven.breaches));
    }
    if driven.problem.is_some() {
        return (BAD, "not tested".to_owned());
    }
    let mut parts = Vec::new();
    if !driven.carries_text {
        parts.push("cannot carry text".to_owned());
    } else if driven.seen == 0 {
        parts.push("never rendered".to_owned());
    }
    for (code, count) in &driven.refused {
        parts.push(format!("{count} {}", code.name()));
    }
    if driven.branched > 0 {
        parts.push(format!("{} took another branch", driven.branched));
    }
    let more = if parts.is_empty() { String::new() } else { format!("; {}", parts.join(", ")) };
    (GOOD, format!("unchanged{more}"))
}
