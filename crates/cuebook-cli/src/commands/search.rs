//! `cuebook search`

use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use cuebook::error::{did_you_mean, nearest};
use cuebook::items::search::{Scope, SearchRequest, Searcher, SortBy};
use cuebook::items::{ItemType, SpaceKind};
use cuebook::trust::Trust;
use cuebook::{Code, Diagnostic, Error, ErrorKind};
use serde_json::{Value as Json, json};

use crate::args::{Options, SearchArgs, Sort};
use crate::output::{Outcome, print_findings, print_json, say};

pub fn run(args: &SearchArgs, options: &Options) -> Outcome {
    let spaces = options.spaces()?;
    let trust = Trust::new(&spaces);
    let scopes: Vec<String> = match &args.scope {
        Some(scope) if Scope::new(scope).is_none() => {
            let first = scope.split('.').next().unwrap_or_default();
            let near = did_you_mean(&nearest(first, ItemType::ALL.map(ItemType::as_str)));
            let hint = near
                .unwrap_or_else(|| "begin with directive, tool or knowledge, as in tool.rye.core".to_owned());
            let diagnostic = Diagnostic::new(Code::BadInput, format!("`{scope}` is no scope")).hint(hint);
            return Err(Error::new(ErrorKind::Usage, diagnostic).into());
        }
        Some(scope) => vec![scope.clone()],
        None => ItemType::ALL.iter().map(|kind| kind.as_str().to_owned()).collect(),
    };
    let searcher = Searcher::new(spaces);
    let ask = |scope: &String| {
        let request = SearchRequest {
            space: args.space.map(SpaceKind::from),
            limit: args.limit,
            offset: args.offset,
            sort_by: match args.sort {
                Sort::Score => SortBy::Score,
                Sort::Date => SortBy::Date,
                Sort::Name => SortBy::Name,
            },
            ..SearchRequest::new(scope, &args.query)
        };
        searcher.search(&request, &trust)
    };
    let answers: Vec<Json> = scopes.iter().map(ask).collect();
    let space = args.space.map(SpaceKind::from);
    let kinds = scopes.iter().filter_map(|scope| Scope::new(scope)).map(|scope| scope.kind);
    let mut problems: Vec<Diagnostic> = kinds.flat_map(|kind| searcher.problems(kind, space)).collect();
    // A folder above all of them is told once.
    problems.dedup_by(|one, other| (&one.file, &one.message) == (&other.file, &other.message));
    let code = if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if options.json {
        match answers.as_slice() {
            [one] => print_json(one)?,
            several => print_json(&json!({"answers": several}))?,
        }
        return Ok(code);
    }
    let (bold, quiet, alarm) = (Style::new().bold(), Style::new().dimmed(), AnsiColor::Yellow.on_default());
    let mut out = anstream::stdout().lock();
    let (mut shown, mut total) = (0, 0);
    for answer in &answers {
        total += answer["total"].as_u64().unwrap_or_default();
        for one in answer["results"].as_array().into_iter().flatten() {
            shown += 1;
            let text = |name: &str| one[name].as_str().unwrap_or_default();
            // Knowledge may have a title and nothing that describes it.
            let about = [text("description"), text("title")].into_iter().find(|said| !said.is_empty());
            write!(out, "{bold}{} {}{bold:#}  {}", text("type"), text("id"), about.unwrap_or_default())?;
            write!(out, "  {quiet}{}{quiet:#}", text("source"))?;
            if one["signed"] == false {
                write!(out, "  {alarm}not verified{alarm:#}")?;
            }
            if let Some(by) = one["shadowed_by"].as_str() {
                write!(out, "  {quiet}shadowed by the {by}'s{quiet:#}")?;
            }
            writeln!(out)?;
        }
    }
    drop(out);
    print_findings(&problems);
    match total {
        0 if !problems.is_empty() => {}
        0 => say("nothing fits; an empty query finds everything: cuebook search ''"),
        total if shown < total => say(format_args!("{shown} of {total} are shown: --limit and --offset")),
        _ => {}
    }
    Ok(code)
}
