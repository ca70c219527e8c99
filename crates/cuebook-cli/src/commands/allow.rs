//! `cuebook allow`

use std::io::Write;
use std::process::ExitCode;

use anstyle::Style;
use cuebook::error::{did_you_mean, escaped_line, nearest};
use cuebook::items::Spaces;
use cuebook::library::Library;
use cuebook::trust::{self, Granted, Grants, Request};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use jiff::Timestamp;
use serde_json::{Value as Json, json};

use crate::args::{AllowArgs, Options};
use crate::grants::{QUESTION, show};
use crate::output::{Outcome, print_json, say};
use crate::terminal;

pub fn run(args: &AllowArgs, options: &Options) -> Outcome {
    let book = options.book_unreviewed()?;
    let library = book.library();
    if args.list {
        return list(library.spaces(), args.all, options);
    }
    let mut grants = library.grants()?;
    if let Some(subject) = &args.revoke {
        return revoke(&mut grants, subject.as_deref(), options);
    }
    let only_named = (args.serve || args.unfenced) && args.subjects.is_empty();
    let mut requests = if only_named { Vec::new() } else { wanted(library, &args.subjects)? };
    requests.extend(args.serve.then(Request::serve));
    requests.extend(args.unfenced.then(Request::unfenced));
    let new: Vec<Request> = requests.iter().filter(|request| !grants.has(request)).cloned().collect();
    if !options.json {
        if new.is_empty() {
            let count = requests.len();
            say(match count {
                0 => "this project requests nothing".to_owned(),
                _ => format!("every request of this project is granted ({count}): cuebook allow --list"),
            });
            return Ok(ExitCode::SUCCESS);
        }
        show(&new, &grants);
    }
    let agreed = new.is_empty() || args.yes || (!options.json && terminal::confirm(QUESTION, "--yes")?);
    if agreed {
        grants.allow(&new, Timestamp::now())?;
    }
    if options.json {
        let of = |request: &Request| describe(request, grants.state(request));
        let requests: Vec<Json> = requests.iter().map(of).collect();
        print_json(&json!({"project": grants.project(), "requests": requests, "granted": agreed}))?;
    } else if agreed {
        let plural = if new.len() == 1 { "" } else { "s" };
        let project = escaped_line(&grants.project().to_string_lossy());
        say(format_args!("granted {} request{plural} of {project}", new.len()));
    } else {
        say("not granted");
    }
    Ok(if agreed { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The requests that are meant: all, or those of the subjects. A file of the project can be named as an interpreter, and an
/// environment variable for a prompt that lies outside the library.
fn wanted(library: &Library, subjects: &[String]) -> Result<Vec<Request>> {
    let all = library.requests()?;
    if subjects.is_empty() {
        return Ok(all);
    }
    let find = |subject: &String| -> Result<Request> {
        if let Some(request) = all.iter().find(|request| request.subject == *subject) {
            return Ok(request.clone());
        }
        let file = library.root().join(subject);
        let request = match subject.strip_prefix("env:") {
            Some(name) if !name.is_empty() => Some(Request::env(name)),
            _ if file.is_file() => trust::interpreter_request(library.root(), &file)?,
            _ => None,
        };
        request.ok_or_else(|| {
            let known = all.iter().map(|request| request.subject.as_str());
            let hint = did_you_mean(&nearest(subject, known))
                .unwrap_or_else(|| "`cuebook allow` lists all requests".to_owned());
            let message = format!("this project does not request `{subject}`");
            Error::new(ErrorKind::Usage, Diagnostic::new(Code::GrantNeeded, message).hint(hint))
        })
    };
    subjects.iter().map(find).collect()
}

fn describe(request: &Request, state: Granted) -> Json {
    let state = match state {
        Granted::Yes => "granted",
        Granted::Changed => "changed",
        Granted::No => "new",
    };
    json!({"power": request.power.as_str(), "subject": request.subject, "shown": request.shown, "state": state})
}

fn list(spaces: &Spaces, all: bool, options: &Options) -> Outcome {
    let grants = if all { Grants::all(spaces) } else { vec![Grants::of(spaces)] };
    let grants = grants.into_iter().collect::<Result<Vec<_>>>()?;
    if options.json {
        let project = |grants: &Grants| json!({"project": grants.project(), "grants": grants.list().collect::<Vec<_>>()});
        print_json(&grants.iter().map(project).collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    let bold = Style::new().bold();
    let mut out = anstream::stdout().lock();
    for project in grants.iter().filter(|grants| all || grants.list().next().is_some()) {
        writeln!(out, "{bold}{}{bold:#}", escaped_line(&project.project().to_string_lossy()))?;
        for grant in project.list() {
            let subject = escaped_line(&grant.subject);
            writeln!(out, "  {subject} ({}), granted at {}", grant.power.as_str(), grant.granted_at)?;
        }
    }
    drop(out);
    if grants.iter().all(|grants| grants.list().next().is_none()) {
        say("nothing is granted");
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(grants: &mut Grants, subject: Option<&str>, options: &Options) -> Outcome {
    let known: Vec<String> = grants.list().map(|grant| grant.subject.clone()).collect();
    if let Some(subject) = subject
        && !known.iter().any(|known| known == subject)
    {
        let hint = did_you_mean(&nearest(subject, known.iter().map(String::as_str)))
            .unwrap_or_else(|| "`cuebook allow --list` shows every grant".to_owned());
        let diagnostic = Diagnostic::new(Code::GrantNeeded, format!("`{subject}` is not granted")).hint(hint);
        return Err(Error::new(ErrorKind::Usage, diagnostic).into());
    }
    let count = if known.is_empty() { 0 } else { grants.revoke(subject)? };
    match options.json {
        true => print_json(&json!({"project": grants.project(), "revoked": count}))?,
        false => say(format_args!("revoked {count} grant{}", if count == 1 { "" } else { "s" })),
    }
    Ok(ExitCode::SUCCESS)
}
