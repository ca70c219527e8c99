//! `cuebook thread`

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use cuebook::error::{did_you_mean, nearest, printable};
use cuebook::items::Spaces;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_run::policy::allowance::Allowance;
use cuebook_run::store::{Account, Authenticity, Filter, Record, Store};
use cuebook_run::{
    Cancelled, Conversation, Engine, Event, ExplainedMessage, Fork, Launch, Money, Resume, Settings, Status,
    ThreadId, Watch, explain, has_origins, label, rebuild, rebuild_turn, spent_below, whole_log,
};
use serde_json::{Value as Json, json};

use super::run::print_run;
use crate::args::{
    Options, StoreOptions, ThreadArgs, ThreadCommand, ThreadForkArgs, ThreadListArgs, ThreadOptions,
    ThreadResumeArgs, ThreadShowArgs, ThreadTailArgs,
};
use crate::inputs;
use crate::interrupt::{EndSignal, Interrupted};
use crate::output::{Outcome, print_json, print_line, print_text, say};
use crate::terminal::{confirm, is_interactive};
use crate::thread_progress::{self, ThreadProgress};

pub fn run(command: &ThreadCommand, options: &Options) -> Outcome {
    match command {
        ThreadCommand::Start(args) => super::worker::start(args, options),
        ThreadCommand::List(args) => list(args, options),
        ThreadCommand::Show(args) => show(args, options),
        ThreadCommand::Tail(args) => tail(args, options),
        ThreadCommand::Cancel(args) => cancel(args, options),
        ThreadCommand::Resume(args) => resume(args, options),
        ThreadCommand::Fork(args) => fork(args, options),
        ThreadCommand::CarryOut(args) => carry_out(args, options),
    }
}

/// How many events are read at once.
const PAGE: usize = 500;
/// How often it is looked whether there are more.
const LOOK: Duration = Duration::from_millis(100);

fn engine(threads: &ThreadOptions, options: &Options) -> Result<Engine> {
    let spaces = Spaces::of_project(&threads.project(options)?);
    Ok(Engine::new(spaces).with_settings(threads.settings()))
}

fn open(threads: &StoreOptions, options: &Options) -> Result<(Engine, Arc<dyn Store>)> {
    let spaces = Spaces::of_project(&threads.project(options)?);
    let engine = Engine::new(spaces).with_settings(threads.settings());
    let store = engine.threads_so_far(None)?;
    Ok((engine, store))
}

/// That there are no threads because their file is not there: mostly it is another folder, or another store, that is meant.
fn not_there(file: &Path) -> String {
    let file = file.display().to_string();
    format!("{} does not exist; check --root and --store", printable(&file))
}

/// The thread of a name or of a part of one: its end, or else the prompt that it carries out.
fn named(engine: &Engine, store: &dyn Store, name: &str) -> Result<Record> {
    if let Some(record) = store.record(&ThreadId::known(name))? {
        return Ok(record);
    }
    let all = store.list(&Filter::default())?;
    let of_prompt =
        |record: &&Record| record.prompt == name || record.prompt.rsplit('/').next() == Some(name);
    let mut fit: Vec<&Record> = all.iter().filter(|record| record.id.as_str().ends_with(name)).collect();
    if fit.is_empty() {
        fit = all.iter().filter(of_prompt).collect();
    }
    match fit.as_slice() {
        [one] if !name.is_empty() => return Ok((*one).clone()),
        [_, _, ..] if !name.is_empty() => {
            let names: Vec<&str> = fit.iter().take(5).map(|record| record.id.as_str()).collect();
            let more = if fit.len() > names.len() { ", …" } else { "" };
            let message = format!("`{name}` matches {} threads", fit.len());
            let hint = format!("write a longer part of the name: {}{more}", names.join(", "));
            let diagnostic = Diagnostic::new(Code::ThreadNotFound, message).hint(hint);
            return Err(Error::new(ErrorKind::ItemNotFound, diagnostic).with("thread_ids", names));
        }
        _ => {}
    }
    if let Some(file) = engine.missing_store(None)? {
        let diagnostic = Diagnostic::new(Code::ThreadNotFound, format!("there is no thread `{name}`"));
        return Err(Error::new(ErrorKind::ItemNotFound, diagnostic.hint(not_there(&file)))
            .with("thread_id", name)
            .with("nearest", Vec::<String>::new())
            .with("missing_store", file.to_string_lossy()));
    }
    let mut near = nearest(name, all.iter().map(|record| record.id.as_str()));
    if near.is_empty() {
        near = nearest(name, all.iter().map(|record| record.prompt.as_str()));
    }
    let hint = did_you_mean(&near).unwrap_or_else(|| "`cuebook thread list` lists the threads".into());
    let diagnostic = Diagnostic::new(Code::ThreadNotFound, format!("there is no thread `{name}`")).hint(hint);
    Err(Error::new(ErrorKind::ItemNotFound, diagnostic).with("thread_id", name).with("nearest", near))
}

fn list(args: &ThreadListArgs, options: &Options) -> Outcome {
    let (engine, store) = open(&args.threads, options)?;
    // One that there is not has no children, and that is no answer.
    let parent = args.parent.as_ref().map(|name| named(&engine, &*store, name)).transpose()?;
    let parent = parent.map(|parent| parent.id);
    let threads = store.list_accounts(&Filter {
        status: args.status.iter().filter_map(|word| Status::named(word)).collect(),
        prompt: args.prompt.clone(),
        parent,
        most: Some(args.most),
    })?;
    let missing = if threads.is_empty() { engine.missing_store(None)? } else { None };
    if let Some(file) = &missing {
        // Also for those who read JSON: an empty list is all that they see.
        say(format_args!("no threads: {}; to start one, see: cuebook help threads", not_there(file)));
    }
    if options.json {
        print_json(&threads.iter().map(|(record, _)| record.to_json()).collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    if threads.is_empty() && missing.is_none() {
        let all = args.status.is_empty() && args.prompt.is_none() && args.parent.is_none();
        say(if all {
            "no threads; to start one, see: cuebook help threads"
        } else {
            "no matching thread; `cuebook thread list` shows all"
        });
    }
    for (record, account) in &threads {
        // Only of those with open children the ledger does not say it all.
        let open = account.reserved > Money::ZERO;
        let below = if open { spent_below(&*store, record)? } else { account.children };
        print_text(&format!("{}\n", thread_progress::row(record, below)))?;
        if let Some(warning) = record.authenticity.warning() {
            print_text(&format!("    {}\n", printable(&warning)))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn show(args: &ThreadShowArgs, options: &Options) -> Outcome {
    let (engine, store) = open(&args.threads, options)?;
    let record = named(&engine, &*store, &args.id)?;
    let events = whole_log(&*store, &record)?;
    let rebuilt = match args.turn {
        Some(turn) => rebuild_turn(&record.id, &events, turn)?,
        None => rebuild(&record.id, &events)?,
    };
    let account = store.account(&record.id)?;
    let children = store.list(&Filter { parent: Some(record.id.clone()), ..Filter::default() })?;
    let below = spent_below(&*store, &record)?;
    let whole = Conversation::of(&*store, &record)?;
    if options.json {
        let mut json = record.to_json();
        if below > Money::ZERO {
            json["cost"]["children_spend"] = below.to_json();
        }
        if let Some(whole) = &whole {
            json["conversation"] = whole.to_json();
            json["conversation"]["threads"] =
                whole.threads.iter().map(|thread| json!(thread.as_str())).collect();
        }
        json["launch"] = rebuilt.launch.to_json();
        json["messages"] = rebuilt.start.conversation.iter().map(cuebook::Message::to_json).collect();
        json["account"] = account.map_or(Json::Null, |account| account.to_json());
        json["children"] = children.iter().map(|child| json!(child.id.as_str())).collect();
        let is_checked = record.authenticity == Authenticity::Own;
        json["log"] = json!({"events": record.last.0, "hash": record.last.1, "whole": is_checked});
        json["log"]["authenticity"] = record.authenticity.as_str().into();
        if args.explain {
            json["explained"] = explain(&rebuilt).iter().map(ExplainedMessage::to_json).collect();
            json["has_origins"] = has_origins(&rebuilt).into();
        }
        if args.events {
            json["transcript"] = events.iter().map(|event| event.to_json(&record.id)).collect();
        }
        print_json(&json)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut out = anstream::stdout().lock();
    let mut cost = record.cost.to_json();
    cost["children_spend"] = below.to_json();
    writeln!(out, "{}", thread_progress::summary(record.id.as_str(), record.status.as_str(), Some(&cost)))?;
    let launch = &rebuilt.launch;
    writeln!(out, "model: {} of {}", printable(&launch.model.id), printable(&launch.provider))?;
    if let Some(parent) = &record.parent {
        writeln!(out, "parent: {parent}")?;
    }
    for child in &children {
        writeln!(out, "child: {} ({})", child.id, child.status)?;
    }
    if let Some(before) = &record.continuation_of {
        writeln!(out, "continues: {before}")?;
    }
    if let Some(next) = &record.continued_by {
        writeln!(out, "continued by: {next}")?;
    }
    if let Some(whole) = &whole {
        writeln!(out, "conversation: {}", thread_progress::used(&whole.to_json()))?;
    }
    if !launch.inputs.is_empty() {
        writeln!(out, "inputs: {}", printable(&Json::Object(launch.inputs.clone()).to_string()))?;
    }
    writeln!(out, "limits: {}", launch.limits.to_json())?;
    let capabilities: Vec<&str> = launch.capabilities.iter().collect();
    let capabilities = if capabilities.is_empty() { "nothing".to_owned() } else { capabilities.join(", ") };
    writeln!(out, "may do: {}", printable(&capabilities))?;
    if let Some(account) = &account {
        writeln!(out, "money: {}", spending(account, below, &record, launch))?;
    }
    let whole = record.authenticity.warning().unwrap_or_else(|| "hash chain intact".to_owned());
    writeln!(out, "log: {} events, {whole}; the last hash is {}", record.last.0, record.last.1)?;
    writeln!(out)?;
    if args.explain {
        for message in explain(&rebuilt) {
            explained(&message, &mut out)?;
        }
    } else if args.events {
        for event in &events {
            writeln!(out, "{:>4} {} {} {}", event.seq, event.at, event.kind, printable(&event.text))?;
        }
    } else {
        for message in &rebuilt.start.conversation {
            let text: String = message.texts().collect();
            let mut lines = text.trim().lines();
            let first = format!("[{}] {}", message.role, printable(lines.next().unwrap_or_default()));
            writeln!(out, "{}", first.trim_end())?;
            for line in lines {
                writeln!(out, "{}", format!("    {}", printable(line)).trim_end())?;
            }
            for call in message.metadata.get("tool_calls").and_then(Json::as_array).into_iter().flatten() {
                let function = &call["function"];
                let name = function["name"].as_str().unwrap_or_default();
                let arguments = function["arguments"].as_str().unwrap_or_default();
                writeln!(out, "    → {} {}", printable(name), printable(arguments))?;
            }
        }
    }
    drop(out);
    if args.explain && !has_origins(&rebuilt) {
        say("note: an earlier version started this thread and did not store where its prompt came from");
    }
    if let Some(error) = record.result.as_ref().and_then(|result| result["error"]["details"].as_str()) {
        say(error.trim_end());
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes each line of a message with its origin.
fn explained(message: &ExplainedMessage, out: &mut impl Write) -> std::io::Result<()> {
    writeln!(out, "[{}]", message.role)?;
    for piece in &message.pieces {
        for (text, number) in piece.text.lines().zip(0..) {
            if !text.trim().is_empty() {
                let origin = label(&piece.origin, number);
                writeln!(out, "    {}\n        from {}", printable(text.trim_end()), printable(&origin))?;
            }
        }
    }
    Ok(())
}

/// Where the money of a thread is, when those below it have spent so much: what is neither spent nor left has to be somewhere.
fn spending(account: &Account, below: Money, record: &Record, launch: &Launch) -> String {
    let (spent, limit) = (account.spent + below, launch.limits.spend);
    // Of what is reserved for children a part is spent already.
    let reserved = (account.reserved - (below - account.children)).max(Money::ZERO);
    let mut kept = String::new();
    for (money, what) in [(reserved, "reserved for children"), (account.held, "held")] {
        if money > Money::ZERO {
            kept.push_str(&format!(", {money} {what}"));
        }
    }
    if launch.unpriced {
        let known = if spent > Money::ZERO { format!("; at least {spent} spent") } else { String::new() };
        return format!("cost unknown, so the limit of {} has no effect{known}{kept}", account.limit);
    }
    // A model that it asked before, or that its children asked, may have no price.
    let (least, most) = if record.cost.unpriced { ("at least ", "at most ") } else { ("", "") };
    if record.continued_by.is_some() && limit >= account.limit {
        // It kept what it had used, and gave the rest away.
        let rest = limit - account.limit;
        return format!(
            "{least}{spent} of {limit} spent, {below} by children{kept}, {rest} passed to the next thread"
        );
    }
    let left = account.remaining();
    format!("{least}{spent} of {} spent, {below} by children{kept}, {most}{left} left", account.limit)
}

fn tail(args: &ThreadTailArgs, options: &Options) -> Outcome {
    let (engine, store) = open(&args.threads, options)?;
    let record = named(&engine, &*store, &args.id)?;
    let interrupted = Interrupted::new();
    let mut after = args.after;
    loop {
        let rests = store.record(&record.id)?.is_none_or(|record| record.status.is_at_rest());
        loop {
            let events = store.events(&record.id, after, PAGE)?;
            for event in &events {
                show_event(&record.id, event, options)?;
                after = event.seq;
            }
            if events.len() < PAGE {
                break;
            }
        }
        if rests || args.no_follow || interrupted.cancelled() {
            return Ok(ExitCode::SUCCESS);
        }
        std::thread::sleep(LOOK);
        // A thread whose process died does not come to rest by itself.
        cuebook_run::sweep(&*store)?;
    }
}

fn show_event(thread: &ThreadId, event: &Event, options: &Options) -> std::io::Result<()> {
    if options.json {
        return print_line(&event.to_json(thread));
    }
    match thread_progress::event_text(event) {
        Some(line) => print_text(&format!("{} {line}\n", event.at.strftime("%H:%M:%S"))),
        None => Ok(()),
    }
}

fn cancel(args: &ThreadArgs, options: &Options) -> Outcome {
    let (engine, store) = open(&args.threads, options)?;
    let record = named(&engine, &*store, &args.id)?;
    if args.take_over && is_interactive() && !confirm_take_over(&record.id)? {
        return Ok(ExitCode::FAILURE);
    }
    let Cancelled { record, stopped, tools } = engine.cancel(None, &record.id, args.take_over)?;
    if options.json {
        let mut json = record.to_json();
        let one =
            |record: &Record| json!({"thread_id": record.id.as_str(), "status": record.status.as_str()});
        json["stopped"] = stopped.iter().map(one).collect();
        json["tools_stopped"] = tools.into();
        print_json(&json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if stopped.iter().all(|other| other.id != record.id) {
        say(format_args!("{} is already {}; its children:", record.id, record.status));
    }
    for record in &stopped {
        say(format_args!("{}: {}", record.id, record.status));
    }
    if tools > 0 {
        say(thread_progress::stopped(tools as u64));
    }
    Ok(ExitCode::SUCCESS)
}

fn how(args: &ThreadResumeArgs) -> Result<Resume> {
    Ok(Resume {
        limit_overrides: inputs::limits(&args.limits)?,
        model: args.model.clone(),
        is_async: args.is_async,
        behind: args.behind,
        allow_again: args.allow_again,
        trust_log: args.trust_log,
        take_over: args.take_over,
    })
}

fn resume(args: &ThreadResumeArgs, options: &Options) -> Outcome {
    let engine = engine(&args.threads, options)?;
    let store = engine.threads_so_far(None)?;
    let record = named(&engine, &*store, &args.id)?;
    let book = book(&args.threads.project(options)?, options)?;
    if args.queued {
        return super::worker::queue_again(&engine, &record, args, options);
    }
    super::worker::refuse_unqueued(args)?;
    let mut how = how(args)?;
    if how.take_over
        && record.status == Status::Running
        && is_interactive()
        && !confirm_take_over(&record.id)?
    {
        return Ok(ExitCode::FAILURE);
    }
    let observer = ThreadProgress::new(options.json, true);
    let resume = |how: &Resume| engine.resume_with(None, Some(&book), &record.id, how, &observer);
    let mut began = resume(&how);
    if let Err(error) = &began
        && error.code() == Code::AskAgain
        && is_interactive()
    {
        if !confirm(&format!("{}. Allow this again?", error.diagnostic().message), "--allow-again")? {
            return Ok(ExitCode::FAILURE);
        }
        // What was shown is what is allowed: the log must not go on in between.
        how = Resume { allow_again: true, behind: error.field("events").and_then(Json::as_u64), ..how };
        began = resume(&how);
    }
    observer.finish();
    print_run(began?, options)
}

fn fork(args: &ThreadForkArgs, options: &Options) -> Outcome {
    let engine = engine(&args.threads, options)?;
    let store = engine.threads_so_far(None)?;
    let record = named(&engine, &*store, &args.id)?;
    let book = book(&args.threads.project(options)?, options)?;
    let mut variables = args.vars_file.as_deref().map(inputs::read_object).transpose()?.unwrap_or_default();
    for argument in &args.vars {
        let (name, value) = inputs::parse_option("--var", argument)?;
        variables.insert(name, value);
    }
    let mut how = Fork {
        turn: args.turn,
        prompt: args.prompt.clone(),
        variables,
        model: args.model.clone(),
        limit_overrides: inputs::limits(&args.limits)?,
        is_async: args.is_async,
        allow_again: args.allow_again,
    };
    let observer = ThreadProgress::new(options.json, true);
    let fork = |how: &Fork| engine.fork(None, &book, &record.id, how, &observer);
    let mut began = fork(&how);
    if let Err(error) = &began
        && error.code() == Code::AskAgain
        && is_interactive()
    {
        if !confirm(&format!("{}. Allow this again?", error.diagnostic().message), "--allow-again")? {
            return Ok(ExitCode::FAILURE);
        }
        how.allow_again = true;
        began = fork(&how);
    }
    observer.finish();
    print_run(began?, options)
}

/// Whether the user wants a thread that a process seems to run. Without a terminal the option is the answer.
fn confirm_take_over(id: &ThreadId) -> Result<bool> {
    let question =
        format!("Another process seems to run {id}. Taking over stops it from writing. Take over?");
    confirm(&question, "--take-over")
}

fn carry_out(args: &ThreadResumeArgs, options: &Options) -> Outcome {
    let told_to_end = EndSignal::new();
    let allowance = args.allowance.as_deref().map(allowance).transpose()?;
    let spaces = Spaces::of_project(&args.threads.project(options)?);
    let engine = Engine::new(spaces).with_settings(Settings { allowance, ..args.threads.settings() });
    let book = book(&args.threads.project(options)?, options)?;
    let began = engine.carry_out(None, Some(&book), &ThreadId::known(&args.id), &how(args)?, &told_to_end)?;
    print_run(began, options)
}

/// What the server that started a thread allows its clients. Patterns that cannot be read allow nothing.
fn allowance(patterns: &str) -> Result<Allowance> {
    Allowance::new(serde_json::from_str::<Vec<String>>(patterns).unwrap_or_default())
}

fn book(project: &Path, options: &Options) -> Result<cuebook::Book> {
    Options { root: Some(project.to_owned()), ..options.clone() }.book()
}
