//! `cuebook overrides`

use std::io::Write;
use std::process::ExitCode;

use anstyle::Style;
use cuebook::error::{printable, printable_lines};
use cuebook::overrides::{Counts, OverrideFile, Resolved, Store, TaskExampleChange};
use cuebook::{Book, Code, Context, Diagnostic, Error, ErrorKind, Hint, Prepared, Result};
use serde_json::{Value as Json, json};

use super::with_choice;
use crate::args::{Options, OverridesArgs, OverridesCommand};
use crate::output::{Outcome, print_findings, print_json, say};

pub fn run(command: &OverridesCommand, options: &Options) -> Outcome {
    let book = options.book()?;
    let store = Store::of_project(book.library().root())?;
    match command {
        OverridesCommand::List => list(&store, options),
        OverridesCommand::Seed(args) => seed(&book, &store, args, options),
        OverridesCommand::Show(args) => show(&book, &store, args, options),
        OverridesCommand::Delete(args) => delete(&book, &store, args, options),
    }
}

/// The prompt, which must be a tree of sections.
fn prepare(book: &Book, args: &OverridesArgs, options: &Options) -> Result<std::sync::Arc<Prepared>> {
    let prepared = with_choice(book, options, || book.prepare(&args.prompt, &Context::default()))?;
    if prepared.tree().is_none() {
        let message = format!("the prompt `{}` is not a section tree", prepared.prompt().id);
        let hint = Hint::run("overrides work on section trees", "cuebook help sections");
        return Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)));
    }
    Ok(prepared)
}

/// The file that a prompt and a tag stand for, if it is there.
fn file_of(store: &Store, prepared: &Prepared, tag: &str) -> Result<Option<OverrideFile>> {
    let Some(tree) = prepared.tree() else { return Ok(None) };
    let is_it = |file: &OverrideFile| file.ns == tree.ns && file.key == tree.key && file.tag == tag.trim();
    Ok(store.list()?.into_iter().find(is_it))
}

fn seed(book: &Book, store: &Store, args: &OverridesArgs, options: &Options) -> Outcome {
    let prepared = prepare(book, args, options)?;
    let Some(tree) = prepared.tree() else { return Ok(ExitCode::FAILURE) };
    let was_there = store.read(&tree.ns, &tree.key, &args.tag).is_ok_and(|found| found.is_some());
    let resolved = store.seed(tree.descriptor(), &args.tag, &tree.originals())?;
    let file = file_of(store, &prepared, &args.tag)?.map(|file| file.name).unwrap_or_default();
    if options.json {
        print_json(&json!({"file": file, "tag": args.tag, "seeded": !was_there, "stale": stale(&resolved)}))?;
        return Ok(ExitCode::SUCCESS);
    }
    match was_there {
        true => say(format_args!("{file} exists and was not changed")),
        false => {
            let what = counted(resolved.sections.len(), "section");
            let tools = match resolved.tools.len() {
                0 => String::new(),
                count => format!(" and {}", counted(count, "tool")),
            };
            say(format_args!("{file} has the text of {what}{tools}: edit it there"));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn counted(count: usize, word: &str) -> String {
    format!("{count} {word}{}", if count == 1 { "" } else { "s" })
}

fn stale(resolved: &Resolved) -> Json {
    resolved.stale_findings().iter().map(|stale| Json::Object(stale.to_json())).collect()
}

fn list(store: &Store, options: &Options) -> Outcome {
    let files = store.list()?;
    if options.json {
        let one = |file: &OverrideFile| {
            json!({
                "file": file.name,
                "ns": file.ns,
                "key": file.key,
                "tag": file.tag,
                "sha256": file.sha256,
                "sections": file.counts.as_ref().ok().map(|counts| counts.sections),
                "tools": file.counts.as_ref().ok().map(|counts| counts.tools),
                "task_examples": file.counts.as_ref().ok().map(|counts| counts.task_examples),
                "problem": file.counts.as_ref().err().map(|error| error.diagnostic().message.clone()),
            })
        };
        print_json(&files.iter().map(one).collect())?;
        return Ok(ExitCode::SUCCESS);
    }
    if files.is_empty() {
        say("no overrides; `cuebook overrides seed PROMPT` creates some");
        return Ok(ExitCode::SUCCESS);
    }
    let quiet = Style::new().dimmed();
    let mut out = anstream::stdout().lock();
    for file in &files {
        let held = match &file.counts {
            Ok(Counts { sections, tools, task_examples }) => {
                let examples = match task_examples {
                    0 => String::new(),
                    count => format!(", {}", counted(*count, "task example")),
                };
                format!("{}, {}{examples}", counted(*sections, "section"), counted(*tools, "tool"))
            }
            Err(error) => format!("cannot be used: {}", error.diagnostic().message),
        };
        let name = printable(&file.name);
        let what = format!("{}/{} {}  {held}", file.ns, file.key, file.tag);
        writeln!(out, "{}  {quiet}{name}{quiet:#}", printable(&what))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn show(book: &Book, store: &Store, args: &OverridesArgs, options: &Options) -> Outcome {
    let prepared = prepare(book, args, options)?;
    let Some(tree) = prepared.tree() else { return Ok(ExitCode::FAILURE) };
    if store.read(&tree.ns, &tree.key, &args.tag)?.is_none() {
        return Err(none(&prepared, &args.tag).into());
    }
    let resolved = store.resolve(tree.descriptor(), &args.tag)?;
    if options.json {
        let sections = resolved.sections.values().map(|by| {
            json!({"path": by.path, "body": by.body, "summary": by.summary, "visibility": by.visibility.map(|visibility| visibility.as_str())})
        });
        let tools = resolved.tools.values().map(|by| {
            json!({"name": by.name, "description": by.description, "param_descriptions": by.param_descriptions, "examples": by.examples.len()})
        });
        let (sections, tools): (Vec<Json>, Vec<Json>) = (sections.collect(), tools.collect());
        let examples = resolved.task_examples.iter();
        let examples: Vec<Json> =
            examples.map(|by| json!({"path": by.path, "action": action(&by.change)})).collect();
        print_json(&json!({
            "tag": args.tag,
            "sections": sections,
            "tools": tools,
            "task_examples": examples,
            "stale": stale(&resolved),
        }))?;
        return Ok(ExitCode::SUCCESS);
    }
    let bold = Style::new().bold();
    print_findings(&resolved.stale_findings());
    let mut out = anstream::stdout().lock();
    for node in tree.sections() {
        let Some(by) = resolved.sections.get(&node.path) else { continue };
        let shown =
            by.visibility.map(|visibility| format!(", shown as {}", visibility.as_str())).unwrap_or_default();
        let original = match &node.section.body {
            cuebook::sections::Body::Template { text, .. } => Some(text.text()),
            _ => None,
        };
        let same = by.body.as_deref().is_none_or(|body| Some(body) == original) && by.summary.is_none();
        let same = if same && by.visibility.is_none() { ", as the author wrote it" } else { "" };
        writeln!(out, "{bold}section {}{bold:#}{shown}{same}", printable(&by.path.join(".")))?;
        if same.is_empty() {
            for (name, text) in [("body", &by.body), ("summary", &by.summary)] {
                if let Some(text) = text {
                    writeln!(out, "  {name}: {}", printable_lines(&text.trim().replace('\n', "\n    ")))?;
                }
            }
        }
    }
    for by in resolved.tools.values() {
        let description = by.description.as_deref().unwrap_or("as the author wrote it");
        writeln!(out, "{bold}tool {}{bold:#}: {}", printable(&by.name), printable_lines(description))?;
        for (parameter, description) in &by.param_descriptions {
            writeln!(out, "  {}: {}", printable(parameter), printable_lines(description))?;
        }
        if !by.examples.is_empty() {
            writeln!(
                out,
                "  {}",
                match by.examples.len() {
                    1 => "1 changed example".to_owned(),
                    count => format!("{count} changed examples"),
                }
            )?;
        }
    }
    for by in &resolved.task_examples {
        let action = match by.change {
            TaskExampleChange::Modify { .. } => "changed",
            TaskExampleChange::Remove { .. } => "removed",
            TaskExampleChange::Append { .. } => "one is added",
        };
        writeln!(out, "{bold}task example {}{bold:#}: {action}", printable(&by.path.join(".")))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The word that a file has for a change of an example.
fn action(change: &TaskExampleChange) -> &'static str {
    match change {
        TaskExampleChange::Modify { .. } => "modify",
        TaskExampleChange::Remove { .. } => "remove",
        TaskExampleChange::Append { .. } => "append",
    }
}

fn none(prepared: &Prepared, tag: &str) -> Error {
    let id = &prepared.prompt().id;
    let message = format!("no overrides of `{id}` with the tag `{tag}`");
    let hint = Hint::run("create them", format!("cuebook overrides seed {id} --tag {tag}"));
    Error::new(ErrorKind::Overrides, Diagnostic::new(Code::BadOverride, message).hint(hint))
}

fn delete(book: &Book, store: &Store, args: &OverridesArgs, options: &Options) -> Outcome {
    let prepared = prepare(book, args, options)?;
    let Some(tree) = prepared.tree() else { return Ok(ExitCode::FAILURE) };
    if !store.delete(&tree.ns, &tree.key, &args.tag)? {
        return Err(none(&prepared, &args.tag).into());
    }
    match options.json {
        true => print_json(&json!({"deleted": true, "tag": args.tag}))?,
        false => {
            say(format_args!("deleted the overrides of {} with the tag `{}`", prepared.prompt().id, args.tag))
        }
    }
    Ok(ExitCode::SUCCESS)
}
