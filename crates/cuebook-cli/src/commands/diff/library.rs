//! Many prompts against a revision of git: what has changed, what is new, and what is gone.

use std::collections::HashSet;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use anstyle::{AnsiColor, Style};
use cuebook::error::printable;
use cuebook::variables::Clock;
use cuebook::{Book, Code, Error, Result};
use cuebook_lab::BookExt;
use cuebook_lab::Target;
use cuebook_lab::diff::{self, Diff};
use serde_json::{Value as Json, json};

use crate::args::{DiffArgs, Options};
use crate::inputs::Shared;
use crate::output::{Outcome, print_json, say, unless_closed};
use crate::prompts::{self, Member};
use crate::versions::{OpenVersion, PastRevision};

/// What became of a prompt since the revision.
enum PromptChange {
    Compared(Box<Diff>),
    Added,
    Removed,
    Failed(Error),
}

impl PromptChange {
    fn word(&self) -> &'static str {
        match self {
            PromptChange::Compared(diff) if diff.is_same() => "same",
            PromptChange::Compared(_) => "changed",
            PromptChange::Added => "added",
            PromptChange::Removed => "removed",
            PromptChange::Failed(_) => "failed",
        }
    }
}

/// Whether a name is that of a folder of prompts, and of no prompt.
pub(super) fn is_folder(name: &str, book: &Book) -> bool {
    let named = [name.to_owned()];
    Path::new(name).is_dir()
        && book.targets(&named).is_ok_and(|targets| targets.iter().any(|target| target.name != name))
}

/// Compares the prompts that are named, or the whole library.
pub(super) fn run(
    named: &[String],
    revision: &str,
    args: &DiffArgs,
    book: &Book,
    options: &Options,
) -> Outcome {
    let mut values = Shared::read(&args.inputs)?;
    let context = values.context_mut();
    context.model = args.model.clone().or(context.model.take());
    let past = PastRevision::open(book, revision)?;
    let mut here = book.targets(named)?;
    if named.is_empty() {
        // What is the user's is in no revision of the project.
        let root = std::path::absolute(book.library().root()).unwrap_or_default();
        here.retain(|target| std::path::absolute(&target.name).is_ok_and(|path| path.starts_with(&root)));
    }
    let known: HashSet<String> = here.iter().map(|target| target.source.clone()).collect();
    let clock = diff::stopped_clock();
    let mut prompt_changes: Vec<(Target, PromptChange)> = prompts::members(here, &values, book)?
        .into_iter()
        .map(|member| {
            let change = change(&member, &past, &values, book, &clock);
            (member.target, change)
        })
        .collect();
    if named.is_empty() {
        let old = past.book()?.targets(&[])?;
        let gone = old.into_iter().filter(|target| !known.contains(&target.source));
        prompt_changes.extend(gone.map(|target| (target, PromptChange::Removed)));
        prompt_changes
            .sort_by(|(one, _), (other, _)| (&one.id, &one.source).cmp(&(&other.id, &other.source)));
    }
    unless_closed(match options.json {
        true => print_json(&prompt_changes.iter().map(document).collect()),
        false => show(&prompt_changes, revision),
    })?;
    let is = |word: &str| prompt_changes.iter().any(|(_, change)| change.word() == word);
    Ok(match (is("failed"), is("changed") || is("added") || is("removed")) {
        (true, _) => ExitCode::from(2),
        (false, true) => ExitCode::from(1),
        (false, false) => ExitCode::SUCCESS,
    })
}

fn change(
    member: &Member,
    past: &PastRevision,
    values: &Shared<'_>,
    book: &Book,
    clock: &Arc<dyn Clock>,
) -> PromptChange {
    let Target { id, name, .. } = &member.target;
    let compared = || -> Result<Option<Diff>> {
        let here = OpenVersion::Here { book, prompt: name.clone(), label: id.clone() };
        let after = here.version(values.context(), clock)?;
        let then = match past.in_place_of(&after, book) {
            Err(error) if error.code() == Code::NotInRevision => return Ok(None),
            then => then?,
        };
        let before = match then.version(values.context(), clock) {
            Err(error) if error.code() == Code::NotInRevision => return Ok(None),
            before => before?,
        };
        let (variables, context) = values.of(before.prepared())?;
        let before = before.with(variables, context);
        let (variables, context) = values.of(after.prepared())?;
        Ok(Some(diff::compare(&before, &after.with(variables, context))))
    };
    match compared() {
        Ok(Some(diff)) => PromptChange::Compared(Box::new(diff)),
        Ok(None) => PromptChange::Added,
        Err(error) => PromptChange::Failed(error),
    }
}

fn document((target, change): &(Target, PromptChange)) -> Json {
    let mut object = match change {
        PromptChange::Compared(diff) => diff.to_json(),
        PromptChange::Failed(error) => json!({"error": error.to_json()["error"]}),
        PromptChange::Added | PromptChange::Removed => json!({}),
    };
    object["prompt"] = json!(target.id);
    object["source"] = json!(target.source);
    object["status"] = json!(change.word());
    object
}

fn show(prompt_changes: &[(Target, PromptChange)], revision: &str) -> io::Result<()> {
    let mut out = anstream::stdout().lock();
    let (good, bad) = (AnsiColor::Green.on_default(), AnsiColor::Red.on_default());
    let mut line = |style: Style, sign: &str, target: &Target, what: &str| {
        let (id, source) = (printable(&target.id), printable(&target.source));
        writeln!(out, "{style}{sign} {id}{style:#}  {what} ({source})\n")
    };
    for (target, change) in prompt_changes {
        match change {
            PromptChange::Compared(diff) if diff.is_same() => {}
            PromptChange::Compared(diff) => {
                let mut out = anstream::stdout();
                super::show(diff, &mut out)?;
                writeln!(out)?;
            }
            PromptChange::Added => line(good, "+", target, "new")?,
            PromptChange::Removed => line(bad, "-", target, "removed")?,
            PromptChange::Failed(error) => {
                writeln!(anstream::stdout(), "{}", prompts::failed(target, error))?
            }
        }
    }
    let counts = ["changed", "added", "removed", "failed"].map(|word| {
        let count = prompt_changes.iter().filter(|(_, change)| change.word() == word).count();
        (count, format!("{count} {word}"))
    });
    let counts: Vec<String> =
        counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect();
    let found = if counts.is_empty() { "no differences".to_owned() } else { counts.join(", ") };
    let prompts = if prompt_changes.len() == 1 { "prompt" } else { "prompts" };
    say(format_args!("{} {prompts} since {}: {found}", prompt_changes.len(), printable(revision)));
    Ok(())
}
