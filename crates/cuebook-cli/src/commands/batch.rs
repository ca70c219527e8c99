//! `cuebook batch`

use std::io;
use std::process::ExitCode;
use std::time::Duration;

use cuebook::items::Spaces;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_batch::diff::DiffOptions;
use cuebook_batch::output::{Lines, Output};
use cuebook_batch::report::ReportOptions;
use cuebook_batch::{Batch, Checked, Ended, Form, JudgePlan, Pending, Plan, Waiting, Written};
use cuebook_hooks::sandbox::Launcher;
use cuebook_run::provider::Stop;
use cuebook_run::{Engine, Money, Settings, Watch as _};
use serde_json::{Value as Json, json};

use super::with_choice;
use crate::args::{
    BatchArgs, BatchCommand, DiffOutputsArgs, Format, Layout, Options, Order, ReportArgs, Via,
};
use crate::batch_progress::BatchProgress;
use crate::inputs::{self, bad_input};
use crate::interrupt::Interrupted;
use crate::output::{Failure, Outcome, failure, print_findings, print_json, say};
use crate::thread_progress::grouped;

pub fn run(args: &BatchArgs, options: &Options) -> Outcome {
    match &args.command {
        Some(BatchCommand::Report(args)) => return report(args, options),
        Some(BatchCommand::Diff(args)) => return diff(args, options),
        None => {}
    }
    let (Some(prompt), Some(data)) = (&args.prompt, &args.data) else {
        return Err(
            bad_input("a prompt and a data file are needed", "cuebook batch --help has examples").into()
        );
    };
    let book = options.book()?;
    if args.run && args.out.is_none() {
        let hint = "name a file for the answers: --out answers.jsonl. The journal beside it makes sure that no answer is paid twice";
        return Err(bad_input("--run needs an output file", hint).into());
    }
    let given = with_choice(&book, options, || {
        let given = inputs::read(Some(prompt), &args.inputs, &book)?;
        book.prepare(&given.prompt, &given.context)?;
        Ok(given)
    })?;
    let project = options.spaces()?.project().to_owned();
    let project = std::path::absolute(&project).unwrap_or(project);
    let settings = Settings {
        provider: args.provider.clone(),
        launcher: Some(Launcher::this_program()),
        // A dry run sends no requests, so it needs no budget.
        store: args.store.clone().filter(|_| args.run && !args.dry_run),
        ..Settings::default()
    };
    let engine = Engine::new(Spaces::of_project(&project)).with_settings(settings);
    let plan = Plan {
        prompt: given.prompt,
        data: data.clone(),
        output: args.out.clone(),
        form: form(args)?,
        run: args.run,
        model: args.model.clone(),
        columns: args.columns.iter().map(|argument| column(argument)).collect::<Result<_>>()?,
        variables: given.variables,
        context: given.context,
        prefix: args.prefix.clone(),
        keeps_inputs: !args.no_inputs,
        sources: args.sources,
        by_prefix: args.order == Order::Prefix,
        keep_going: args.keep_going,
        limit: args.limit_spend.map(Money::from_units),
        concurrency: args.concurrency,
        threads: args.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from)),
        judges: judges(args)?,
    };
    let batch = Batch::open(book, &engine, plan, args.dry_run)?;
    go(&batch, args, options)
}

fn report(args: &ReportArgs, options: &Options) -> Outcome {
    let wanted = ReportOptions { verdicts: args.verdicts.clone(), prefix: args.prefix.clone() };
    let report = cuebook_batch::report::report(&args.output, &wanted)?;
    if let Some(path) = &args.html {
        cuebook::files::write_atomic(path, &path.to_string_lossy(), report.to_html().as_bytes())?;
    }
    match options.json {
        true => print_json(&report.to_json())?,
        false => crate::output::print_text(&report.to_text())?,
    }
    Ok(ExitCode::SUCCESS)
}

fn diff(args: &DiffOutputsArgs, options: &Options) -> Outcome {
    let wanted = DiffOptions {
        key: args.key.clone(),
        verdicts: args.verdicts.clone(),
        prefix: args.prefix.clone(),
        shown: args.rows,
    };
    let found = match cuebook_batch::diff::diff(&args.before, &args.after, &wanted) {
        Ok(found) => found,
        // A script must be able to tell a difference from a failure.
        Err(error) => {
            failure(&error.into(), options, Layout::Document);
            return Ok(ExitCode::from(2));
        }
    };
    match options.json {
        true => print_json(&found.to_json())?,
        false => crate::output::print_text(&found.to_text())?,
    }
    Ok(if found.is_same() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn form(args: &BatchArgs) -> Result<Option<Form>> {
    Ok(match &args.format {
        None if args.run => None,
        None | Some(Format::Text) => Some(Form::Text),
        Some(Format::Messages) => Some(Form::Messages),
        Some(Format::Wire(name)) => Some(Form::Wire(name.clone())),
        Some(Format::Segments) => {
            let hint = "use text, messages, wire or wire:NAME";
            return Err(bad_input("--as segments is not a format of a batch", hint));
        }
    })
}

fn column(argument: &str) -> Result<(String, String)> {
    match argument.split_once('=') {
        Some((column, variable)) if !column.is_empty() && !variable.is_empty() => {
            Ok((column.to_owned(), variable.to_owned()))
        }
        _ => Err(bad_input(format!("--map {argument}: expected COLUMN=VARIABLE"), "write --map body=ticket")),
    }
}

/// The judges, each with a name of its own.
fn judges(args: &BatchArgs) -> Result<Vec<JudgePlan>> {
    let mut judges: Vec<JudgePlan> = Vec::new();
    for argument in &args.judges {
        let (name, prompt) = match argument.split_once('=') {
            Some((name, prompt)) => (name.to_owned(), prompt.to_owned()),
            None => (short_name(argument), argument.clone()),
        };
        let is_name = |name: &str| {
            !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
        };
        if !is_name(&name) || prompt.is_empty() || name == "answer" {
            let hint = "write --judge quality=judges/quality; the name has letters, digits and _, and is not `answer`";
            return Err(bad_input(format!("--judge {argument}: expected NAME=PROMPT"), hint));
        }
        if judges.iter().any(|judge| judge.name == name) {
            let hint = "give each judge a name: --judge first=PROMPT --judge second=PROMPT";
            return Err(bad_input(format!("two judges have the name `{name}`"), hint));
        }
        judges.push(JudgePlan { name, prompt, model: args.judge_model.clone() });
    }
    Ok(judges)
}

/// `quality` for `judges/quality` and `./quality.prompty`.
fn short_name(prompt: &str) -> String {
    let last = prompt.trim_end_matches('/').rsplit('/').next().unwrap_or(prompt);
    let stem = last.split('.').next().unwrap_or(last);
    stem.chars().map(|letter| if letter.is_alphanumeric() { letter } else { '_' }).collect()
}

fn go(batch: &Batch, args: &BatchArgs, options: &Options) -> Outcome {
    let interrupted = Interrupted::new();
    let stop = interrupted.stop().unwrap_or_else(|| Stop::when(|| false));
    let progress = BatchProgress::new(batch.currency().map(str::to_owned), options.json);
    let data = args.data.as_deref().unwrap_or(std::path::Path::new("")).to_string_lossy();
    // A render sends nothing, so nothing has to be known before.
    let checked = match args.run || args.dry_run {
        true => Some(batch.check(&progress, &stop)?),
        false => None,
    };
    progress.end();
    if stop.is_set() {
        return Err(stopped(batch, &Ended::default()).into());
    }
    if args.dry_run {
        let checked = checked.unwrap_or_default();
        return dry(batch, &checked, options);
    }
    let mut ended = Ended::default();
    if let Some(checked) = &checked {
        if !args.keep_going {
            checked.refuse_invalid(&data)?;
        }
        if !options.json {
            estimate(batch, checked).iter().for_each(say);
        }
        ended = match args.via {
            None => batch.ask(checked, &progress, &stop)?,
            Some(via) => {
                let waiting = Waiting {
                    via: match via {
                        Via::OpenAi => cuebook_batch::Via::OpenAi,
                        Via::Anthropic => cuebook_batch::Via::Anthropic,
                    },
                    waits: !args.no_wait,
                    pause: Duration::try_from_secs_f64(args.poll).unwrap_or(Duration::MAX),
                };
                let (ended, pending) = batch.ask_via(waiting, &progress, &stop)?;
                if !pending.is_empty() && !ended.stopped {
                    progress.end();
                    return under_way(&pending, &ended, options);
                }
                ended
            }
        };
        progress.end();
        if ended.stopped {
            return Err(stopped(batch, &ended).into());
        }
    }
    let to = batch.create_output()?.unwrap_or_else(|| Box::new(Lines::new(io::stdout())) as Box<dyn Output>);
    let written = batch.write(to, (checked.as_ref(), &ended), &progress, &stop).map_err(to_failure)?;
    progress.end();
    summary(batch, args, options, (checked.as_ref(), &ended, &written))
}

/// Names the jobs that another run collects.
fn under_way(pending: &[Pending], ended: &Ended, options: &Options) -> Outcome {
    if options.json {
        let jobs: Vec<Json> =
            pending.iter().map(|job| json!({"id": job.id, "questions": job.questions})).collect();
        print_json(&json!({"jobs": jobs, "requests": ended.sent, "spent": ended.spent.to_json()}))?;
        return Ok(ExitCode::SUCCESS);
    }
    for job in pending {
        say(format_args!("a job with {} is under way: {}", count(job.questions, "question"), job.id));
    }
    say("run the same command again to collect the answers");
    Ok(ExitCode::SUCCESS)
}

/// A reader of stdout that has enough is no failure.
fn to_failure(error: Error) -> Failure {
    use std::error::Error as _;
    let broken = error.source().and_then(|source| source.downcast_ref::<io::Error>()).map(io::Error::kind);
    match broken {
        Some(kind) => Failure::Output(kind.into()),
        None => Failure::Engine(error),
    }
}

fn stopped(batch: &Batch, ended: &Ended) -> Error {
    let mut message = "stopped: no output was written".to_owned();
    if batch.model().is_some() {
        message = format!("{message}; {} requests were sent, and their answers are kept", ended.sent);
    }
    let diagnostic = Diagnostic::new(Code::NotAsked, message);
    Error::new(ErrorKind::Execute, diagnostic.hint("run the same command again to continue"))
}

/// An amount in the currency of the provider.
fn money(batch: &Batch, amount: Money) -> String {
    match batch.currency() {
        Some(currency) => format!("{amount} {currency}"),
        None => "an unknown amount".to_owned(),
    }
}

/// `1 row`, `1,200 rows`.
fn count(number: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(number), if number == 1 { "" } else { "s" })
}

/// What is known before anything is sent.
fn estimate(batch: &Batch, checked: &Checked) -> Vec<String> {
    let mut first = count(checked.rows, "row");
    if checked.invalid > 0 {
        first.push_str(&format!(", {} invalid", grouped(checked.invalid)));
    }
    if checked.answered > 0 {
        first.push_str(&format!(", {} answered before", grouped(checked.answered)));
    }
    let mut lines = vec![first];
    if let Some((model, provider)) = batch.model()
        && checked.questions() > 0
    {
        lines.push(format!(
            "{} to {model} ({provider}): about {}, the longest row {}",
            count(checked.questions(), "question"),
            count(checked.input_tokens, "input token"),
            grouped(checked.longest)
        ));
        if checked.cacheable_tokens > 0 {
            let share = checked.cacheable_tokens as f64 * 100.0 / checked.input_tokens.max(1) as f64;
            let tokens = count(checked.cacheable_tokens, "token");
            lines.push(format!("cache: the provider can keep about {tokens} of them ({share:.1} %)"));
        }
        lines.push(match (batch.currency(), checked.likely) {
            (None, _) => format!("cost: the price of {model} is unknown"),
            (Some(_), None) => {
                format!(
                    "cost: {} to read, at most {} in all",
                    money(batch, checked.reading),
                    money(batch, checked.most)
                )
            }
            (Some(_), Some(likely)) => format!(
                "cost: {} to read, about {} in all, at most {}",
                money(batch, checked.reading),
                money(batch, likely),
                money(batch, checked.most)
            ),
        });
    }
    lines
}

fn estimate_json(batch: &Batch, checked: &Checked) -> Json {
    let (model, provider) = batch.model().unzip();
    json!({
        "rows": checked.rows,
        "invalid": checked.invalid,
        "answered_before": checked.answered,
        "questions": if model.is_some() { checked.questions() } else { 0 },
        "input_tokens": checked.input_tokens,
        "longest_tokens": checked.longest,
        "cacheable_tokens": checked.cacheable_tokens,
        "cost": batch.currency().map(|currency| json!({
            "currency": currency,
            "reading": checked.reading.to_json(),
            "likely": checked.likely.map(Money::to_json),
            "most": checked.most.to_json(),
        })),
        "model": model,
        "provider": provider,
        "invalid_rows": checked.shown.iter().map(|(row, problem)| json!({
            "row": row, "code": problem.code, "message": problem.message, "hint": problem.hint,
        })).collect::<Vec<_>>(),
    })
}

fn dry(batch: &Batch, checked: &Checked, options: &Options) -> Outcome {
    let code = if checked.invalid > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS };
    if options.json {
        print_json(&estimate_json(batch, checked))?;
        return Ok(code);
    }
    let mut text = estimate(batch, checked).join("\n");
    text.push('\n');
    crate::output::print_text(&text)?;
    let found = checked.shown.iter().map(|(row, problem)| {
        let code = Code::find(&problem.code).unwrap_or(Code::InvalidRows);
        let message = match problem.message.starts_with("row ") {
            true => problem.message.clone(),
            false => format!("row {row}: {}", problem.message),
        };
        Diagnostic::new(code, message).hint_opt(problem.hint.clone())
    });
    print_findings(&found.collect::<Vec<_>>());
    Ok(code)
}

fn summary(
    batch: &Batch,
    args: &BatchArgs,
    options: &Options,
    (checked, ended, written): (Option<&Checked>, &Ended, &Written),
) -> Outcome {
    let code = match written.failed > 0 || ended.why.is_some() {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    };
    let (model, provider) = batch.model().unzip();
    if options.json && args.out.is_some() {
        print_json(&json!({
            "rows": written.rows,
            "failed": written.failed,
            "codes": written.codes,
            "answered_before": checked.map_or(0, |checked| checked.answered),
            "requests": ended.sent,
            "spent": ended.spent.to_json(),
            "cost": written.cost.to_json(),
            "currency": batch.currency(),
            "input_tokens": written.input_tokens,
            "output_tokens": written.output_tokens,
            "model": model,
            "provider": provider,
            "output": args.out.as_ref().map(|path| path.to_string_lossy()),
            "ended": ended.why.as_ref().map(|why| json!({"code": why.code, "message": why.message, "hint": why.hint})),
        }))?;
        return Ok(code);
    }
    if let Some(why) = &ended.why {
        let reported = Diagnostic::new(Code::find(&why.code).unwrap_or(Code::NotAsked), why.message.clone());
        print_findings([&reported.hint_opt(why.hint.clone())]);
    }
    let codes: Vec<String> =
        written.codes.iter().map(|(code, rows)| format!("{code}: {}", grouped(*rows))).collect();
    let errors = match written.failed {
        0 => "no errors".to_owned(),
        failed => format!("{} ({})", count(failed, "error"), codes.join(", ")),
    };
    let to = args.out.as_ref().map_or("stdout".into(), |path| path.to_string_lossy());
    if args.out.is_some() || written.failed > 0 {
        say(format_args!("{} to {to}, {errors}", count(written.rows, "row")));
    }
    if model.is_some() {
        say(format_args!(
            "{} sent, {} spent; the answers took {} and {}",
            count(ended.sent, "request"),
            money(batch, ended.spent),
            count(written.input_tokens, "input token"),
            count(written.output_tokens, "output token")
        ));
    }
    Ok(code)
}
