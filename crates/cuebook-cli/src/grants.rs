//! Asks for the powers that a project requests.

use std::io::Write;

use anstyle::{AnsiColor, Style};
use cuebook::Result;
use cuebook::error::{escaped_line, escaped_lines};
use cuebook::library::Library;
use cuebook::trust::{Grants, Power, Request};
use jiff::Timestamp;

use crate::args::Options;
use crate::{output, terminal};

/// The question.
pub const QUESTION: &str = "Grant these powers to this project?";

/// Shows settings that have no effect yet and asks for them on a terminal; elsewhere it warns.
pub fn review(library: &Library, options: &Options) -> Result<()> {
    let config = library.config()?;
    let Some(warning) = config.ungranted_warning() else { return Ok(()) };
    if !options.json && terminal::is_interactive() {
        let requests: Vec<Request> = config.ungranted.iter().map(|(request, _)| request.clone()).collect();
        let mut grants = library.grants()?;
        show(&requests, &grants);
        if terminal::confirm(QUESTION, "cuebook allow")? {
            return grants.allow(&requests, Timestamp::now());
        }
    }
    output::print_findings([&warning]);
    Ok(())
}

/// Asks on a terminal for what tools of the project would do without: its `.env` and its interpreter.
pub fn review_tools(library: &Library, options: &Options) -> Result<()> {
    if options.json || !terminal::is_interactive() {
        return Ok(());
    }
    let mut grants = library.grants()?;
    let of_tools = |request: &Request| matches!(request.power, Power::EnvFile | Power::Interpreter);
    let mut requests = library.requests()?;
    requests.retain(|request| of_tools(request) && !grants.has(request));
    if requests.is_empty() {
        return Ok(());
    }
    show(&requests, &grants);
    if terminal::confirm(QUESTION, "cuebook allow")? {
        grants.allow(&requests, Timestamp::now())?;
    }
    Ok(())
}

/// Shows requests, with what changed since they were granted.
pub fn show(requests: &[Request], grants: &Grants) {
    let (bold, quiet) = (Style::new().bold(), Style::new().dimmed());
    let (good, bad) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default());
    let mut out = anstream::stderr();
    // Nothing can be done if stderr is closed; the question follows anyway.
    let _ = writeln!(out, "{} asks for:", escaped_line(&grants.project().to_string_lossy()));
    for request in requests {
        let before = grants.granted_before(request);
        let news = if before.is_some() { ", CHANGED" } else { "" };
        let subject = escaped_line(&request.subject);
        let _ = writeln!(out, "{bold}{subject}{bold:#} ({}{news})", request.power.as_str());
        let Some(before) = before else {
            for line in escaped_lines(&request.shown).lines() {
                let _ = writeln!(out, "  {quiet}│{quiet:#} {line}");
            }
            continue;
        };
        for (mark, line) in changes(&escaped_lines(&before.shown), &escaped_lines(&request.shown)) {
            let style = match mark {
                '-' => bad,
                '+' => good,
                _ => quiet,
            };
            let _ = writeln!(out, "  {quiet}│{quiet:#} {style}{mark} {line}{style:#}");
        }
        if before.shown == request.shown {
            let _ = writeln!(out, "  {quiet}│{quiet:#} its files changed");
        }
    }
}

/// The lines of a text with what changed: those at its beginning and end that stayed, and between them the old and the new ones.
fn changes<'t>(old: &'t str, new: &'t str) -> Vec<(char, &'t str)> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let start = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let rest = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(old, new)| old == new).count();
    let marked = |mark: char, lines: &[&'t str]| lines.iter().map(|line| (mark, *line)).collect::<Vec<_>>();
    [
        marked(' ', &new[..start]),
        marked('-', &old[start..old.len() - end]),
        marked('+', &new[start..new.len() - end]),
        marked(' ', &new[new.len() - end..]),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_keep_what_stayed_and_mark_the_rest() {
        let shown = |old, new| -> String {
            changes(old, new).iter().map(|(mark, line)| format!("{mark}{line} ")).collect()
        };
        assert_eq!(shown("a\nb\nc", "a\nx\ny\nc"), " a -b +x +y  c ");
        assert_eq!(shown("a\na", "a"), " a -a ");
        assert_eq!(shown("", "a"), "+a ");
    }
}
