//! `cuebook execute`

use std::io::Write;
use std::process::ExitCode;

use cuebook::actions::load::item_type;
use cuebook::error::{printable, printable_lines, report};
use cuebook::items::{ItemType, Spaces};
use cuebook::library::Library;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use cuebook_run::{Answer, Engine, ExecuteRequest, Fence};
use serde_json::{Map, Value as Json};

use crate::args::{ExecuteArgs, Options};
use crate::output::{Outcome, print_json, print_line, print_text, say, suggest};
use crate::thread_progress::{self, ThreadProgress};
use crate::{inputs, terminal};

pub fn run(args: &ExecuteArgs, options: &Options) -> Outcome {
    let project = args.threads.project(options)?;
    let spaces = Spaces::of_project(&project);
    let request = request(args, &spaces)?;
    if request.item_type == ItemType::Tool {
        crate::grants::review_tools(&Library::open(&project), options)?;
    }
    let mut settings = args.threads.settings();
    if args.fenced {
        settings.fence = Fence::Required;
    }
    let engine = Engine::new(spaces).with_settings(settings);
    let observer = ThreadProgress::new(options.json, request.thread);
    let mut answer = engine.answer(&request, &observer);
    if let Some(Json::String(hint)) = answer.json.pointer_mut("/metadata/error/hint") {
        *hint = for_parameters(hint);
    }
    observer.finish();
    let failed = answer.json.get("status").and_then(Json::as_str) == Some("error");
    if options.json && request.thread {
        // The events came in lines, and so does what came of them.
        let id = answer.json.get("thread_id").and_then(Json::as_str).map(str::to_owned);
        let printed = print_line(&streamed(answer));
        kept(&printed, id.as_deref().unwrap_or_default(), options);
        printed?;
    } else if options.json {
        print_json(&answer.json)?;
    } else {
        show(&answer, options)?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The last line of a stream: an error is there what it is in every stream, and not the text that callers of tools get.
fn streamed(answer: Answer) -> Json {
    let Answer { mut json, error } = answer;
    if let Some(error) = &error {
        json["error"] = error.to_json()["error"].clone();
        if let Some(Json::String(hint)) = json.pointer_mut("/error/hint") {
            *hint = for_parameters(hint);
        }
        // Also of one whose end cannot be written.
        if json.get("thread_id").is_none()
            && let Some(id) = error.field("thread_id")
        {
            json["thread_id"] = id.clone();
        }
        // It stands at the top already.
        if let Some(metadata) = json.get_mut("metadata").and_then(Json::as_object_mut) {
            metadata.shift_remove("error");
        }
    }
    json
}

fn request(args: &ExecuteArgs, spaces: &Spaces) -> Result<ExecuteRequest> {
    let mut parameters = Map::new();
    if let Some(path) = &args.params_file {
        parameters = inputs::read_object(path)?;
    }
    for argument in &args.params {
        let (name, value) = inputs::parse_option("--param", argument)?;
        parameters.insert(name, value);
    }
    let item_type = item_type(&args.kind)?;
    if args.thread && item_type != ItemType::Directive {
        let message = format!("a thread runs a directive, but {} `{}` is not one", args.kind, args.id);
        let hint = "leave out --thread";
        return Err(Error::new(ErrorKind::Usage, Diagnostic::new(Code::BadInput, message).hint(hint)));
    }
    let mut request = ExecuteRequest {
        project_path: Some(
            std::path::absolute(spaces.project()).unwrap_or_else(|_| spaces.project().to_owned()),
        ),
        parameters,
        dry_run: args.dry_run,
        thread: args.thread,
        is_async: args.is_async,
        model: args.model.clone(),
        limit_overrides: inputs::limits(&args.limits)?,
        ..ExecuteRequest::new(item_type, &args.id)
    };
    request.take_flags()?;
    let idle = [
        ("--async", request.is_async),
        ("--model", request.model.is_some()),
        ("--limit", !request.limit_overrides.is_empty()),
    ];
    // The thread may also be asked for among the parameters.
    if let Some((option, _)) = idle.into_iter().find(|(_, is_set)| *is_set && !request.thread) {
        let diagnostic = Diagnostic::new(Code::BadInput, format!("{option} is for a thread"));
        let hint = format!("add --thread, or leave {option} out");
        return Err(Error::new(ErrorKind::Usage, diagnostic.hint(hint)));
    }
    Ok(request)
}

/// Shows an answer to people: what it says on stdout, what there is to say about it on stderr.
fn show(answer: &Answer, options: &Options) -> std::io::Result<()> {
    let json = &answer.json;
    let text = |name: &str| json.get(name).and_then(Json::as_str);
    if text("status") == Some("validation_passed") {
        let chain: Vec<&str> = match json.get("chain") {
            Some(Json::Array(chain)) => chain.iter().filter_map(Json::as_str).collect(),
            _ => Vec::new(),
        };
        let message = text("message").unwrap_or_default();
        let mut shown = format!("{message}\n");
        if !chain.is_empty() {
            shown.push_str(&format!("{}\n", chain.join(" → ")));
        }
        if let Some(interpreter) = json.get("interpreter") {
            shown.push_str(&interpreter_line(interpreter));
        }
        return print_text(&shown);
    }
    if let Some(id) = text("thread_id") {
        show_thread(json, id, options)?;
    }
    let warnings = json.pointer("/metadata/warnings").and_then(Json::as_array);
    for warning in warnings.into_iter().flatten().filter_map(Json::as_str) {
        say(format_args!("warning: {}", printable(warning)));
    }
    match (json.get("data"), text("body")) {
        (_, Some(body)) => {
            say(text("your_directions").unwrap_or_default());
            line(body)?;
        }
        (Some(Json::Object(data)), None) if text("type") == Some("knowledge") => {
            line(data.get("body").and_then(Json::as_str).unwrap_or_default())?;
        }
        (Some(Json::Object(data)), None) if data.contains_key("return_code") => {
            let said = |name: &str| data.get(name).and_then(Json::as_str).unwrap_or_default();
            print_text(said("stdout"))?;
            // What a tool that failed said in one line is part of the error.
            if answer.error.is_none() && !said("stderr").is_empty() {
                write!(std::io::stderr(), "{}", said("stderr"))?;
            } else if has_lines(said("stderr")) {
                say(printable_lines(said("stderr").trim_end()));
            }
        }
        (Some(Json::String(data)), None) => line(data)?,
        (Some(data), None) => print_json(data)?,
        (None, None) => {}
    }
    if let Some(error) = &answer.error {
        let mut diagnostics = error.diagnostics().to_vec();
        for diagnostic in &mut diagnostics {
            diagnostic.message = last_line_of(&diagnostic.message);
        }
        for hint in diagnostics.iter_mut().filter_map(|diagnostic| diagnostic.hint.as_mut()) {
            *hint = hint.clone().map(for_parameters);
        }
        suggest(&mut diagnostics, options);
        let _ = write!(anstream::stderr(), "{}", report(&diagnostics, true));
        say(format_args!("\nfor more about this: cuebook help {}", error.code()));
    }
    Ok(())
}

/// A hint about variables, which are parameters here.
fn for_parameters(hint: &str) -> String {
    hint.replace("--var ", "--param ")
}

fn has_lines(text: &str) -> bool {
    text.trim().contains('\n')
}

/// A message whose second part has several lines, such as a traceback, with the last of them only: all are shown before it.
fn last_line_of(message: &str) -> String {
    match (message.split_once(": "), message.trim_end().lines().last()) {
        (Some((what, said)), Some(last)) if has_lines(said) => format!("{what}: {}", last.trim()),
        _ => message.to_owned(),
    }
}

/// The program that a tool would run with.
fn interpreter_line(interpreter: &Json) -> String {
    let text = |name: &str| printable(interpreter.get(name).and_then(Json::as_str).unwrap_or_default());
    let (path, target) = (text("path"), text("target"));
    let target = if path == target { String::new() } else { format!(" → {target}") };
    let own = if interpreter["in_project"] == true { ", a file of the project" } else { "" };
    format!("interpreter: {path}{target}{own}\n")
}

/// What came of a thread: the outputs or the result on stdout, what it used on stderr.
fn show_thread(json: &Json, id: &str, options: &Options) -> std::io::Result<()> {
    if let Some(pid) = json.get("pid") {
        return show_detached(id, pid, options);
    }
    let printed = match (json.get("outputs"), json.get("result")) {
        (Some(outputs), _) => print_json(outputs),
        (None, Some(Json::String(text))) => line(text),
        (None, Some(result)) => print_json(result),
        (None, None) => Ok(()),
    };
    if let Some(note) = json.get("note").and_then(Json::as_str) {
        say(format_args!("note: {}", printable(note)));
    }
    let status = json.get("thread_status").or_else(|| json.get("status"));
    // Where the result cannot be written, this says which thread has it.
    say(thread_progress::summary(id, status.and_then(Json::as_str).unwrap_or_default(), json.get("cost")));
    kept(&printed, id, options);
    printed
}

/// Says where a result is that could not be written.
pub(super) fn kept(printed: &std::io::Result<()>, id: &str, options: &Options) {
    if printed.as_ref().is_err_and(|error| error.kind() != std::io::ErrorKind::BrokenPipe) {
        say(format_args!("the result is stored: cuebook thread show{} {id} --json", options.place));
    }
}

/// A thread that runs by itself: its name on stdout, for scripts.
pub(super) fn show_detached(id: &str, pid: impl std::fmt::Display, options: &Options) -> std::io::Result<()> {
    line(id)?;
    say(format_args!("running in process {pid}; follow it: cuebook thread tail{} {id}", options.place));
    Ok(())
}

/// Prints text with a newline at its end.
pub(super) fn line(text: &str) -> std::io::Result<()> {
    let end = if text.ends_with('\n') || terminal::stdout_is_terminal() { "" } else { "\n" };
    print_text(&format!("{text}{end}"))
}
