//! What a primitive's result means: the data that the tool answers with, and whether it has failed.

use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint};
use serde_json::{Map, Value as Json, json};

use crate::fence;
use crate::subprocess::{Captured, End, Finished, Job};

/// What came of a call.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// What the tool answered.
    pub(crate) data: Json,
    /// What the answer says under `error`, and what people read.
    pub(crate) failure: Option<(String, Error)>,
}

/// The longest part of what a tool said that an error shows.
const SHOWN: usize = 2000;

/// What a process's end means.
pub(crate) fn of_process(id: &str, job: &Job, finished: Finished) -> Outcome {
    let Finished { end, stdout, stderr } = finished;
    let code = match &end {
        End::Exited(code) => *code,
        End::Signalled(signal) => -signal,
        _ => -1,
    };
    let reported = match &end {
        End::NotStarted(error) => Some(format!("Failed to spawn: {error}")),
        End::Lost(error) => Some(format!("The process was lost: {error}")),
        End::Exceeded(limit) => Some(format!("The tool was stopped: it used {limit}")),
        End::TimedOut => Some(format!("Command timed out after {} seconds", seconds(job))),
        End::Cancelled => Some("Command was cancelled".to_owned()),
        End::Exited(_) | End::Signalled(_) | End::Over => None,
    };
    let (out_text, out_binary) = text(&stdout);
    let (mut err_text, err_binary) = text(&stderr);
    // Everything that is JSON is an answer: an empty object and a list as well as any other.
    let answer: Option<Json> = match stdout.dropped {
        0 if !out_binary => serde_json::from_str(&out_text).ok(),
        _ => None,
    };
    let answer = answer.filter(|_| reported.is_none());
    if let Some(reported) = &reported {
        if !err_text.is_empty() && !err_text.ends_with('\n') {
            err_text.push('\n');
        }
        err_text.push_str(reported);
    }
    let says_no = answer.as_ref().and_then(|answer| answer.get("success")) == Some(&Json::Bool(false));
    let message = match (&reported, code) {
        (Some(reported), _) => Some(reported.clone()),
        (None, 0) if says_no => {
            let said =
                answer.as_ref().and_then(|answer| answer.get("error")).filter(|error| !error.is_null());
            Some(said.map(crate::config::text_of).unwrap_or_else(|| err_text.clone()))
        }
        (None, 0) => None,
        (None, _) => Some(err_text.clone()),
    };
    let failure = message.map(|message| {
        let error = explain(id, job, &end, &message, answer.as_ref());
        (message, error)
    });
    let data = answer.unwrap_or_else(|| {
        let mut data = Map::new();
        data.insert("stdout".to_owned(), out_text.into());
        data.insert("stderr".to_owned(), err_text.into());
        data.insert("return_code".to_owned(), code.into());
        for (name, captured, binary) in [("stdout", &stdout, out_binary), ("stderr", &stderr, err_binary)] {
            if captured.dropped > 0 {
                data.insert(format!("{name}_truncated"), true.into());
                data.insert(format!("{name}_bytes"), (captured.bytes.len() as u64 + captured.dropped).into());
            }
            if binary {
                data.insert(format!("{name}_binary"), true.into());
            }
        }
        Json::Object(data)
    });
    Outcome { data, failure }
}

/// What it means that a server ended before it answered.
pub(crate) fn of_silence(id: &str, finished: &Finished) -> Outcome {
    let (said, _) = text(&finished.stderr);
    let said: String = said.trim_end().chars().take(SHOWN).collect();
    let tail = if said.is_empty() { String::new() } else { format!(": {said}") };
    let message = format!("the MCP server ended before it answered{tail}");
    let diagnostic = Diagnostic::new(Code::ToolFailed, format!("{id}: {message}"))
        .hint("`command` and `args` of the tool must start a server that speaks MCP over its standard input and output");
    Outcome { data: Json::Null, failure: Some((message, Error::new(ErrorKind::Execute, diagnostic))) }
}

/// What a stream said as text, and whether it was something else.
fn text(captured: &Captured) -> (String, bool) {
    match std::str::from_utf8(&captured.bytes) {
        Ok(text) => (text.to_owned(), false),
        // A character that was cut off at the limit is no reason to call it binary.
        Err(error) if error.error_len().is_none() && captured.dropped > 0 => {
            (String::from_utf8_lossy(&captured.bytes[..error.valid_up_to()]).into_owned(), false)
        }
        Err(_) => (String::from_utf8_lossy(&captured.bytes).into_owned(), true),
    }
}

fn seconds(job: &Job) -> String {
    let seconds = job.timeout.as_secs_f64();
    if seconds.fract() == 0.0 { format!("{seconds:.0}") } else { format!("{seconds}") }
}

/// The error for people.
fn explain(id: &str, job: &Job, end: &End, message: &str, answer: Option<&Json>) -> Error {
    let shown: String = message.trim_end().chars().take(SHOWN).collect();
    let tail = if shown.is_empty() { String::new() } else { format!(": {shown}") };
    let diagnostic = match end {
        End::NotStarted(error) if job.fence.is_some() && error.kind() == std::io::ErrorKind::Unsupported => {
            return fence::unavailable(&error.to_string());
        }
        End::NotStarted(error) if error.kind() == std::io::ErrorKind::NotFound && !job.cwd.is_dir() => {
            let message = format!("{id} cannot start: the directory {} does not exist", job.cwd.display());
            Diagnostic::new(Code::CannotStart, message).hint("name a project that exists")
        }
        End::NotStarted(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let message = format!("{id} cannot start: the program `{}` does not exist", job.program);
            Diagnostic::new(Code::CannotStart, message).hint("install it, or add its directory to PATH")
        }
        End::NotStarted(error) => {
            let message = format!("{id} cannot start: `{}`: {error}", job.program);
            Diagnostic::new(Code::CannotStart, message)
                .hint("check the program's permissions and the size of its input")
        }
        End::Exceeded(_) => {
            Diagnostic::new(Code::ToolFailed, format!("{id} failed{tail}")).hint(Hint::option(
                "make it use less memory or fewer processes, or run it without the sandbox",
                "--no-sandbox",
            ))
        }
        End::Lost(error) => {
            Diagnostic::new(Code::ToolFailed, format!("the process of {id} was lost: {error}"))
        }
        End::TimedOut => {
            let message = format!("{id} took longer than {} seconds and was stopped", seconds(job));
            Diagnostic::new(Code::TimedOut, message)
                .hint("raise `timeout` in the tool's CONFIG, or make the tool do less")
        }
        End::Cancelled => Diagnostic::new(Code::ToolFailed, format!("{id} was cancelled")),
        End::Exited(0) | End::Over => {
            let said = answer.is_some_and(|answer| answer.get("error").is_some());
            // The bundled tools say so where there is a code for it.
            let outside = answer.and_then(|answer| answer.get("code")?.as_str()) == Some("CB709");
            let code = if outside { Code::OutsideProject } else { Code::ToolFailed };
            let diagnostic = Diagnostic::new(code, format!("{id} reported a failure{tail}"));
            if outside {
                diagnostic.hint("name a path inside the project; Cuebook resolves links first")
            } else if said {
                diagnostic
            } else {
                diagnostic.hint("see its answer in `data`")
            }
        }
        End::Exited(code) => {
            Diagnostic::new(Code::ToolFailed, format!("{id} failed with exit code {code}{tail}"))
        }
        End::Signalled(signal) => {
            Diagnostic::new(Code::ToolFailed, format!("{id} was killed by signal {signal}{tail}"))
        }
    };
    Error::new(ErrorKind::Execute, diagnostic)
}

/// What an answer to a request means.
pub(crate) fn of_response(status: u16, reason: &str, body: &str, headers: &[(String, String)]) -> Outcome {
    let is_json = headers.iter().any(|(name, value)| name == "content-type" && value.contains("json"));
    let parsed: Option<Json> = is_json.then(|| serde_json::from_str(body).ok()).flatten();
    let headers: Map<String, Json> =
        headers.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let data =
        json!({"status_code": status, "body": parsed.unwrap_or_else(|| body.into()), "headers": headers});
    let failure = (!(200..400).contains(&status)).then(|| {
        let message = format!("HTTP {status}: {reason}").trim_end_matches([':', ' ']).to_owned();
        let diagnostic = Diagnostic::new(Code::HttpFailed, message.clone()).hint("see its answer in `data`");
        (message, Error::new(ErrorKind::Execute, diagnostic))
    });
    Outcome { data, failure }
}
