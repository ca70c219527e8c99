//! `cuebook run`

use std::collections::BTreeMap;
use std::process::ExitCode;

use cuebook::error::printable;
use cuebook::items::Spaces;
use cuebook::{Book, Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_run::{Engine, Finished, RunRequest, ThreadRun};
use serde_json::{Value as Json, json};

use super::{execute, with_choice};
use crate::args::{Options, RequestArgs, RunArgs};
use crate::inputs;
use crate::output::{Failure, Outcome, print_json, print_line, say};
use crate::thread_progress::{self, ThreadProgress};

pub fn run(args: &RunArgs, options: &Options) -> Outcome {
    let book = options.book()?;
    let project = args.threads.project(options)?;
    let engine = Engine::new(Spaces::of_project(&project)).with_settings(args.threads.settings());
    let request = request(&book, args.prompt.as_deref(), &args.request, args.is_async, options)?;
    let observer = ThreadProgress::new(options.json, true);
    let began = engine.run(&book, &request, &observer);
    observer.finish();
    print_run(began?, options)
}

/// What a user wants to run.
pub(super) fn request(
    book: &Book,
    prompt: Option<&str>,
    args: &RequestArgs,
    is_async: bool,
    options: &Options,
) -> Result<RunRequest> {
    with_choice(book, options, || {
        let given = inputs::read(prompt, &args.inputs, book)?;
        // A conflict is settled here, before anything begins.
        book.prepare(&given.prompt, &given.context)?;
        Ok(RunRequest {
            prompt: given.prompt,
            variables: given.variables,
            context: given.context,
            model: args.model.clone(),
            limit_overrides: inputs::limits(&args.limits)?,
            tools: tools(&args.tools)?,
            allow: args.allow.clone(),
            skills: args.skills.clone(),
            is_async,
        })
    })
}

/// Prints how a thread went: the outcome of `run` and of `thread resume`.
pub(super) fn print_run(began: ThreadRun, options: &Options) -> Outcome {
    let finished = match began {
        ThreadRun::Detached { id, pid } => {
            let json = json!({"status": "running", "thread_id": id.as_str(), "pid": pid});
            match options.json {
                true => print_line(&json)?,
                false => execute::show_detached(id.as_str(), pid, options)?,
            }
            return Ok(ExitCode::SUCCESS);
        }
        ThreadRun::Finished(finished) => *finished,
    };
    let reported = finished.to_json();
    let Finished { id, status, error, .. } = finished;
    if options.json {
        let mut json = json!({
            "status": if error.is_some() { "error" } else { "success" },
            "thread_id": id.as_str(),
            "thread_status": status.as_str(),
        });
        if let (Json::Object(json), Json::Object(reported)) = (&mut json, reported) {
            json.extend(reported);
        }
        if let Some(error) = &error {
            json["error"] = error.to_json()["error"].clone();
        }
        print_line(&json)?;
        return Ok(if error.is_some() { ExitCode::FAILURE } else { ExitCode::SUCCESS });
    }
    let printed = match (reported.get("outputs"), reported.get("result")) {
        (Some(outputs), result) if result != Some(outputs) => print_json(outputs),
        (_, Some(Json::String(text))) => execute::line(text),
        (_, Some(result)) => print_json(result),
        (_, None) => Ok(()),
    };
    if let Some(note) = reported.get("note").and_then(Json::as_str) {
        say(format_args!("note: {}", printable(note)));
    }
    say(thread_progress::summary(id.as_str(), status.as_str(), reported.get("cost")));
    execute::kept(&printed, id.as_str(), options);
    printed?;
    match error {
        Some(error) => Err(Failure::Engine(error)),
        None => Ok(ExitCode::SUCCESS),
    }
}

fn tools(arguments: &[String]) -> Result<BTreeMap<String, String>> {
    let read = |argument: &String| match argument.split_once('=') {
        Some((name, item)) if !name.is_empty() && !item.is_empty() => Ok((name.to_owned(), item.to_owned())),
        _ => {
            let message = format!("--tool {argument}: expected NAME=ITEM");
            let diagnostic = Diagnostic::new(Code::BadInput, message).hint("write --tool search=my/search");
            Err(Error::new(ErrorKind::Usage, diagnostic))
        }
    };
    arguments.iter().map(read).collect()
}
