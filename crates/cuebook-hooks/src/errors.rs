//! What went wrong in a call, for people: the line of the script, what was raised there, and what to do about it.

mod advice;
mod files;
mod raised;
#[cfg(test)]
mod tests;

use std::time::Duration;

use cuebook::error::{Code, Diagnostic, Error, ErrorKind};
use cuebook::hooks::{Script, Subject};
use cuebook::prompt::{Limits, Permissions};
use serde_json::json;

use crate::not_json::{NotJson, NotJsonReason};
use crate::protocol::Fault;
use crate::sandbox::{Ending, Report};
use crate::worker::{CallFailure, STARTUP};

/// Characters of an exception's text that stand in a message.
const LONGEST: usize = 300;

/// Steps of the way to a value that are shown one by one.
const STEPS: usize = 8;

/// The functions of a context that ask us.
const FUNCTIONS: [&str; 5] = ["read_file", "http_request", "llm_call", "render_template", "get_variable"];

/// The call that an error is about.
#[derive(Debug, Clone, Copy)]
pub struct FailedCall<'c> {
    /// The script.
    pub script: &'c Script,
    /// The function.
    pub function: &'static str,
    /// Whose function it is.
    pub subject: &'c Subject,
    /// Its limits.
    pub limits: &'c Limits,
    /// What it may do.
    pub permissions: &'c Permissions,
}

impl FailedCall<'_> {
    /// A function has no result.
    pub fn fault(&self, fault: &Fault) -> Error {
        match fault {
            Fault::Raised(raised) => self.raised(raised),
            Fault::Missing { kind, defined } => {
                let message = match defined {
                    true => format!("{} is not a function but {}", self.name(), a(kind)),
                    false => format!("{} is not defined", self.name()),
                };
                self.error(
                    self.at_function(Diagnostic::new(Code::HookFailed, message)).hint(self.signature()),
                )
            }
            Fault::Returned { kind, wanted, yields } => self.returned(kind, wanted, *yields),
            Fault::NotJson(not_json) => self.not_json(not_json),
            Fault::Large { size } => self.too_large(&format!("{size} bytes")),
        }
    }

    /// Something happened to the process.
    pub fn broken(&self, broken: &CallFailure) -> Error {
        match broken {
            CallFailure::Timeout(waited) => self.timeout(waited.as_deref()),
            CallFailure::TooLarge(size) => self.too_large(&format!("{size} bytes")),
            CallFailure::Ended(None) => self.died(
                "closed the pipe that replies are written to",
                "the descriptors 3 and 4 belong to Cuebook: a hook must leave them open",
            ),
            CallFailure::Ended(Some(ending)) => {
                let hint = match ending {
                    // What the worker itself does when it cannot go on.
                    Ending::Exited(70) => {
                        "the descriptors 3 and 4 belong to Cuebook: a hook must leave them open"
                    }
                    Ending::Exited(_) => "a hook ends by returning: it must not end its process",
                    Ending::Signal(9) => {
                        "the system kills a process that uses too much memory or CPU time; a hook can also kill its own process"
                    }
                    Ending::Signal(_) => "Python crashed, or the hook sent the signal: check native modules",
                };
                self.died(&ending.to_string(), hint)
            }
            CallFailure::Rubbish(what) => self.died(
                &format!("sent {what} and was stopped"),
                "descriptor 4 belongs to Cuebook: a hook must not write to it",
            ),
        }
    }

    fn died(&self, what: &str, hint: &str) -> Error {
        let message = format!("the process of {} {what}", self.name());
        self.error(self.at_function(Diagnostic::new(Code::HookDied, message)).hint(hint))
    }

    fn timeout(&self, waited: Option<&str>) -> Error {
        // A worker may ask for anything, and only what there is deserves to be repeated.
        let waited = FUNCTIONS.into_iter().find(|function| waited == Some(function));
        let message = format!(
            "{} took longer than {} and was stopped{}",
            self.name(),
            seconds(self.limits.max_execution_time),
            waited.map_or_else(String::new, |function| format!(" while it waited for `{function}`"))
        );
        let faster = if waited.is_some() { "request less" } else { "make it faster" };
        let hint = format!("{faster}, or raise `max_execution_time` in {}", self.limits_at());
        let error = self
            .error(self.at_function(Diagnostic::new(Code::HookTimeout, message)).hint(hint))
            .with("max_execution_time", self.limits.max_execution_time.as_secs_f64());
        match waited {
            Some(function) => error.with("waited_for", function),
            None => error,
        }
    }

    /// It returned more than it may.
    pub fn too_large(&self, size: &str) -> Error {
        let limit = self.limits.max_output_size;
        let message = format!("{} returned {size}; the limit is {limit} characters", self.name());
        let hint = format!("return less, or raise `max_output_size` in {}", self.limits_at());
        self.error(self.at_function(Diagnostic::new(Code::HookOutput, message)).hint(hint))
            .with("max_output_size", limit)
    }

    fn returned(&self, kind: &str, wanted: &str, yields: bool) -> Error {
        let message = format!("{} returned {} instead of {}", self.name(), a(kind), a(wanted));
        let result = match self.function {
            "pre_render" => "variables",
            "post_render" => "text",
            _ => "values",
        };
        let hint = match (yields, self.function) {
            (true, _) => "use `return` instead of `yield`".into(),
            (_, "provide") => "end it with `return` and a dict of the values by name".into(),
            _ => format!("end it with `return {result}`"),
        };
        self.error(self.at_function(Diagnostic::new(Code::HookReturn, message)).hint(hint))
            .with("returned", kind)
    }

    fn not_json(&self, not_json: &NotJson) -> Error {
        let NotJson { path: whole, kind, why, value, key, like } = not_json;
        let path = shortened(whole);
        let (what, hint) = match why {
            NotJsonReason::Type => (format!("`{path}` is {}", a(kind)), hint_for(kind, like)),
            NotJsonReason::Int => (
                format!("`{path}` is a number of more than 64 bits"),
                "convert it to a string with `str()`".into(),
            ),
            NotJsonReason::Float => {
                (format!("`{path}` is {value}"), "use `None` where there is no number".into())
            }
            NotJsonReason::Surrogate => (
                format!("`{path}` is a string with half a surrogate pair"),
                "decode bytes with `errors=\"replace\"` instead of `\"surrogateescape\"`".into(),
            ),
            NotJsonReason::Key => (
                format!("a key of `{path}` is {value}, of type {key}"),
                "keys must be strings: convert them with `str()`".into(),
            ),
            NotJsonReason::Cycle => {
                (format!("`{path}` contains itself"), "return values without cycles".into())
            }
            NotJsonReason::Depth => {
                (format!("`{path}` is nested more than {value} deep"), "return flatter values".into())
            }
        };
        let message = format!("{} returned a value that JSON cannot represent: {what}", self.name());
        self.error(self.at_function(Diagnostic::new(Code::HookReturn, message)).hint(hint))
            .with("path", whole)
            .with("returned", kind)
    }

    fn signature(&self) -> String {
        let parameters = match self.function {
            "pre_render" => "variables, context",
            "post_render" => "text, variables, context",
            _ => "context",
        };
        format!("define it as `def {}({parameters})`", self.function)
    }

    fn name(&self) -> String {
        format!("`{}` of {}", self.function, self.subject)
    }

    /// Where the limits of the call are set.
    fn limits_at(&self) -> &'static str {
        match self.subject {
            Subject::Prompt { .. } => "`LIMITS` of prompt.py",
            Subject::Provider { .. } => "`limits` of the provider in pack.json",
        }
    }

    fn error(&self, diagnostic: Diagnostic) -> Error {
        Error::new(ErrorKind::Hook, diagnostic).with("function", self.function)
    }

    /// Points at the line that defines the function.
    fn at_function(&self, diagnostic: Diagnostic) -> Diagnostic {
        match self.definition() {
            Some((index, _)) => diagnostic.at(files::line(&self.script.source, index + 1)),
            None => diagnostic.file(self.script.source.name()),
        }
    }

    /// The line that defines the function, and its number from 0.
    fn definition(&self) -> Option<(usize, &str)> {
        let defines = |line: &str| {
            let line = line.strip_prefix("async ").map_or(line, str::trim_start);
            let named = |line: &str, next: &[char]| {
                let rest = line.strip_prefix(self.function).map(str::trim_start);
                rest.is_some_and(|rest| rest.starts_with(next) && !rest.starts_with("=="))
            };
            line.strip_prefix("def ")
                .map_or_else(|| named(line, &['=']), |line| named(line.trim_start(), &['(', '[']))
        };
        self.script.source.text().lines().enumerate().filter(|(_, line)| defines(line)).last()
    }

    /// Whether the function is one that awaits.
    fn is_async(&self) -> bool {
        self.definition().is_some_and(|(_, line)| line.starts_with("async "))
    }
}

/// This system lacks protections that code needs: that of a pack, or the project's own.
pub fn unprotected(pack: Option<&str>, report: &Report, needed: cuebook::library::SandboxLevel) -> Error {
    // Several are often missing for one reason.
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for (protection, why) in &report.missing {
        match reasons.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, missing)) => missing.push(protection.as_str()),
            None => reasons.push((why, vec![protection.as_str()])),
        }
    }
    let missing: Vec<String> =
        reasons.iter().map(|(why, missing)| format!("{} ({why})", missing.join(", "))).collect();
    let (whose, trusted) = match pack {
        Some(pack) => (format!("the code of the pack `{pack}`"), "pack"),
        None => ("the code of the project".to_owned(), "project"),
    };
    let message =
        format!("{whose} did not run: this system lacks protections that it needs: {}", missing.join("; "));
    let level = report.level().as_str();
    let hint = format!(
        "enable them on this system; or, if you trust the {trusted}, accept less with `sandbox = \"{level}\"` under `[hooks]` in ~/.ai/config/cuebook.toml"
    );
    let missing: Vec<_> = report
        .missing
        .iter()
        .map(|(protection, why)| json!({"protection": protection, "meaning": protection.description(), "why": why}))
        .collect();
    Error::new(ErrorKind::Hook, Diagnostic::new(Code::SandboxIncomplete, message).hint(hint))
        .with("pack", pack)
        .with("level", level)
        .with("needed", needed.as_str())
        .with("missing", missing)
}

/// A worker did not come to life.
pub fn not_started(program: &std::path::Path, why: &NotStarted) -> Error {
    let (message, hint) = match why {
        NotStarted::Launch(error) => (format!("cannot start a worker for hooks: {error}"), None),
        NotStarted::CallFailure(CallFailure::Timeout(_), printed) => (
            format!("{} was not ready within {} seconds", program.display(), STARTUP.as_secs()),
            printed.clone(),
        ),
        NotStarted::CallFailure(CallFailure::Ended(Some(ending)), printed) => {
            (format!("{} {ending} before it was ready", program.display()), printed.clone())
        }
        NotStarted::CallFailure(_, printed) => {
            (format!("{} does not work as a worker for hooks", program.display()), printed.clone())
        }
    };
    let hint = hint.map(|printed| format!("it said: {}", cut(printed.trim())));
    Error::new(ErrorKind::Hook, Diagnostic::new(Code::HookDied, message).hint_opt(hint))
}

/// Why a worker did not come to life.
#[derive(Debug)]
pub enum NotStarted {
    /// The process could not be started.
    Launch(std::io::Error),
    /// It was started and did not work; what it printed.
    CallFailure(CallFailure, Option<String>),
}

fn hint_for(kind: &str, like: &str) -> String {
    match like {
        "dataclass" => return "convert it to a dict: `dataclasses.asdict(…)`".into(),
        "enum" => return "return its value: `.value`".into(),
        "path" => return "convert it to a string: `str(path)`".into(),
        _ => {}
    }
    match kind {
        "set" | "frozenset" => "convert it to a list: `sorted(…)`".into(),
        "bytes" | "bytearray" => "convert it to a string: `.decode()`".into(),
        "datetime.datetime" | "datetime.date" | "datetime.time" => {
            "convert it to a string: `.isoformat()`".into()
        }
        "generator" | "map" | "filter" | "zip" | "range" | "dict_keys" | "dict_values" | "dict_items" => {
            "convert it to a list: `list(…)`".into()
        }
        "decimal.Decimal" => "convert it to a number with `float()` or to a string with `str()`".into(),
        "coroutine" => "wait for it: `await …`".into(),
        _ => "return strings, numbers, booleans, None, lists and dicts".into(),
    }
}

/// A type with its article.
fn a(kind: &str) -> String {
    let sounds_like_you = ["uu", "uni", "use"].iter().any(|start| kind.starts_with(start));
    match kind {
        "NoneType" => "`None`".into(),
        _ if kind.to_lowercase().starts_with(['a', 'e', 'i', 'o', 'u']) && !sounds_like_you => {
            format!("an {kind}")
        }
        _ => format!("a {kind}"),
    }
}

/// The way to a value without the middle of a long one: `variables["x"][0]…[0]`.
fn shortened(path: &str) -> String {
    let steps: Vec<usize> = path.match_indices('[').map(|(at, _)| at).collect();
    match (steps.get(2), steps.last()) {
        (Some(third), Some(last)) if steps.len() > STEPS => format!("{}…{}", &path[..*third], &path[*last..]),
        _ => path.to_owned(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The first line of a text, and a sign that there are more.
fn first_line(text: &str) -> String {
    let text = text.trim();
    match text.split_once('\n') {
        Some((line, _)) => format!("{} …", cut(line.trim_end()).trim_end_matches('…').trim_end()),
        None => cut(text),
    }
}

/// A time as people say it.
fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        1.0 => "1 second".into(),
        seconds => format!("{seconds} seconds"),
    }
}
