//! `cuebook search`

use std::collections::HashSet;
use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use cuebook::actions::search::{Scope, SearchRequest, Searcher, SortBy};
use cuebook::error::{did_you_mean, nearest, printable};
use cuebook::items::{ItemType, SpaceKind};
use cuebook::trust::Trust;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
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
            let hint = near.unwrap_or_else(|| {
                "start with directive, tool or knowledge, such as tool.rye.core".to_owned()
            });
            let diagnostic = Diagnostic::new(Code::BadInput, format!("unknown scope `{scope}`")).hint(hint);
            return Err(Error::new(ErrorKind::Usage, diagnostic).into());
        }
        Some(scope) => vec![scope.clone()],
        None => ItemType::ALL.iter().map(|kind| kind.as_str().to_owned()).collect(),
    };
    let searcher = Searcher::new(spaces);
    // The best of all types are among the best of each.
    let several = scopes.len() > 1;
    let ask = |scope: &String| {
        let request = SearchRequest {
            space: args.space.map(SpaceKind::from),
            limit: if several { args.offset.saturating_add(args.limit) } else { args.limit },
            offset: if several { 0 } else { args.offset },
            sort_by: match args.sort {
                Sort::Score => SortBy::Score,
                Sort::Date => SortBy::Date,
                Sort::Name => SortBy::Name,
            },
            ..SearchRequest::new(scope, &args.query)
        };
        let answer = searcher.search(&request, &trust);
        match answer["error"].as_str() {
            None => Ok(answer),
            Some(refused) => {
                let hint = answer["hint"].as_str().map(str::to_owned);
                let diagnostic = Diagnostic::new(Code::BadInput, refused).hint_opt(hint);
                Err(Error::new(ErrorKind::Usage, diagnostic))
            }
        }
    };
    let mut answers: Vec<Json> = scopes.iter().map(ask).collect::<Result<_>>()?;
    let results = match several {
        true => cut(&mut answers, args),
        false => results_of(&answers[0]).cloned().collect(),
    };
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
    let total: u64 = answers.iter().filter_map(|answer| answer["total"].as_u64()).sum();
    let shown = results.len() as u64;
    for one in &results {
        let text = |name: &str| printable(one[name].as_str().unwrap_or_default());
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
    drop(out);
    print_findings(&problems);
    match total {
        0 if !problems.is_empty() => {}
        0 => say("no matches; an empty query finds everything: cuebook search ''"),
        total if shown < total => {
            say(format_args!("{shown} of {total} shown; see more with --limit and --offset"))
        }
        _ => {}
    }
    Ok(code)
}

fn results_of(answer: &Json) -> impl Iterator<Item = &Json> {
    answer["results"].as_array().into_iter().flatten()
}

/// The results that are shown of several types, in their order. Each answer keeps its own of them.
fn cut(answers: &mut [Json], args: &SearchArgs) -> Vec<Json> {
    let mut all: Vec<Json> = answers.iter().flat_map(results_of).cloned().collect();
    let changed = |one: &Json| std::fs::metadata(one["path"].as_str()?).and_then(|file| file.modified()).ok();
    // Equals stay in the order of their types.
    match args.sort {
        Sort::Score => all.sort_by(|one, other| {
            let score = |of: &Json| of["score"].as_f64().unwrap_or_default();
            score(other).total_cmp(&score(one))
        }),
        Sort::Date => all.sort_by_cached_key(|one| std::cmp::Reverse(changed(one))),
        Sort::Name => all.sort_by_cached_key(|one| one["name"].as_str().unwrap_or_default().to_lowercase()),
    }
    let shown: Vec<Json> = all.into_iter().skip(args.offset).take(args.limit).collect();
    let known =
        |one: &Json| ["type", "id", "source"].map(|key| one[key].as_str().unwrap_or_default().to_owned());
    let kept: HashSet<[String; 3]> = shown.iter().map(known).collect();
    for answer in answers {
        if let Some(results) = answer["results"].as_array_mut() {
            results.retain(|one| kept.contains(&known(one)));
        }
        answer["limit"] = args.limit.into();
        answer["offset"] = args.offset.into();
    }
    shown
}
