//! `cuebook search`

use std::collections::HashSet;
use std::io::Write;
use std::process::ExitCode;

use anstyle::{AnsiColor, Style};
use cuebook::actions::search::{FoundItem, Scope, SearchRequest, SearchResults, Searcher, SortBy};
use cuebook::error::{did_you_mean, nearest, printable};
use cuebook::items::{ItemType, SpaceKind};
use cuebook::trust::Trust;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use serde_json::json;

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
        let found = searcher.search(&request, &trust)?;
        Ok((request, found))
    };
    let mut answers: Vec<(SearchRequest, SearchResults)> = scopes.iter().map(ask).collect::<Result<_>>()?;
    let results = match several {
        true => cut(&mut answers, args),
        false => answers[0].1.items.clone(),
    };
    let space = args.space.map(SpaceKind::from);
    let kinds = scopes.iter().filter_map(|scope| Scope::new(scope)).map(|scope| scope.kind);
    let mut problems: Vec<Diagnostic> = kinds.flat_map(|kind| searcher.problems(kind, space)).collect();
    // A folder above all of them is reported once.
    problems.dedup_by(|one, other| (&one.file, &one.message) == (&other.file, &other.message));
    let code = if problems.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    if options.json {
        match answers.as_slice() {
            [(request, found)] => print_json(&found.to_json(request))?,
            several => {
                let answers = several.iter().map(|(request, found)| found.to_json(request));
                print_json(&json!({"answers": answers.collect::<Vec<_>>()}))?;
            }
        }
        return Ok(code);
    }
    let (bold, quiet, alarm) = (Style::new().bold(), Style::new().dimmed(), AnsiColor::Yellow.on_default());
    let mut out = anstream::stdout().lock();
    let total: usize = answers.iter().map(|(_, found)| found.total).sum();
    let shown = results.len();
    for one in &results {
        // Knowledge may have a title and nothing that describes it.
        let about = [&one.description, &one.title].into_iter().find(|said| !said.is_empty());
        let about = printable(about.map_or("", String::as_str));
        write!(out, "{bold}{} {}{bold:#}  {about}", one.item_type, printable(one.id.as_str()))?;
        write!(out, "  {quiet}{}{quiet:#}", one.space.as_str())?;
        if one.integrity.is_none() {
            write!(out, "  {alarm}not verified{alarm:#}")?;
        }
        if let Some(by) = one.shadowed_by {
            write!(out, "  {quiet}shadowed by the {}'s{quiet:#}", by.as_str())?;
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

/// The results that are shown of several types, in their order. Each answer keeps its own of them.
fn cut(answers: &mut [(SearchRequest, SearchResults)], args: &SearchArgs) -> Vec<FoundItem> {
    let mut all: Vec<FoundItem> = answers.iter().flat_map(|(_, found)| &found.items).cloned().collect();
    let changed = |one: &FoundItem| std::fs::metadata(&one.path).and_then(|file| file.modified()).ok();
    // Equals stay in the order of their types.
    match args.sort {
        Sort::Score => all.sort_by(|one, other| other.score.total_cmp(&one.score)),
        Sort::Date => all.sort_by_cached_key(|one| std::cmp::Reverse(changed(one))),
        Sort::Name => all.sort_by_cached_key(|one| one.name.to_lowercase()),
    }
    let shown: Vec<FoundItem> = all.into_iter().skip(args.offset).take(args.limit).collect();
    for (request, found) in answers {
        let known = |one: &FoundItem| (one.item_type, one.id.clone(), one.space);
        let kept: HashSet<_> = shown.iter().map(known).collect();
        found.items.retain(|one| kept.contains(&known(one)));
        request.limit = args.limit;
        request.offset = args.offset;
    }
    shown
}
