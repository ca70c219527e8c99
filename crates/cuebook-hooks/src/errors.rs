//! What went wrong in a call, for people: the line of the script, what was raised there, and what to do about it.

use std::ops::Range;
use std::time::Duration;

use cuebook::error::{Code, Diagnostic, Error, ErrorKind};
use cuebook::hooks::{Script, Subject};
use cuebook::prompt::{Limits, Permissions};
use cuebook::source::Place;
use serde_json::json;

use crate::protocol::{Cause, Fault, Frame, Raised, Unfit, Why};
use crate::sandbox::{Ending, Report};
use crate::worker::{Broken, STARTUP};

/// How many further places and lines an error shows.
const MOST: usize = 5;

/// Characters of an exception's text that stand in a message.
const LONGEST: usize = 300;

/// The call that an error is about.
#[derive(Debug, Clone, Copy)]
pub struct Blame<'c> {
    /// The script.
    pub script: &'c Script,
    /// The function.
    pub function: &'static str,
    /// Whose function it is.
    pub subject: &'c Subject,
    /// Its limits.
    pub limits: &'c Limits,
}

impl Blame<'_> {
    /// A function has no result.
    pub fn fault(&self, fault: &Fault) -> Error {
        match fault {
            Fault::Raised(raised) => self.raised(raised),
            Fault::Missing { kind } => {
                let what = if kind == "NoneType" { "nothing".into() } else { format!("a {kind}") };
                let message = format!("{} is {what} instead of a function", self.name());
                self.error(
                    self.at_function(Diagnostic::new(Code::HookFailed, message)).hint(self.signature()),
                )
            }
            Fault::Returned { kind, wanted, yields } => self.returned(kind, wanted, *yields),
            Fault::Unfit(unfit) => self.unfit(unfit),
            Fault::Large { size } => self.too_large(&format!("{size} bytes")),
        }
    }

    /// Something happened to the process.
    pub fn broken(&self, broken: &Broken) -> Error {
        match broken {
            Broken::Timeout => self.timeout(),
            Broken::TooLarge(size) => self.too_large(&format!("{size} bytes")),
            Broken::Ended(None) => self.died(
                "closed the pipe that replies are written to",
                "the descriptors 3 and 4 belong to Cuebook: a hook must leave them open",
            ),
            Broken::Ended(Some(ending)) => {
                let hint = match ending {
                    // What the worker itself does when it cannot go on.
                    Ending::Exited(70) => {
                        "the descriptors 3 and 4 belong to Cuebook: a hook must leave them open"
                    }
                    Ending::Exited(_) => {
                        "a hook ends by returning: it must not end the process that it runs in"
                    }
                    Ending::Signal(9) => {
                        "the system kills a process that needs too much memory or CPU time, and a hook may kill itself"
                    }
                    Ending::Signal(_) => {
                        "Python itself crashed, or the hook sent the signal: look for native modules"
                    }
                };
                self.died(&ending.to_string(), hint)
            }
            Broken::Rubbish(what) => self.died(
                &format!("sent {what} and was stopped"),
                "descriptor 4 belongs to Cuebook: a hook must not write to it",
            ),
        }
    }

    fn died(&self, what: &str, hint: &str) -> Error {
        let message = format!("the process of {} {what}", self.name());
        self.error(self.at_function(Diagnostic::new(Code::HookDied, message)).hint(hint))
    }

    fn timeout(&self) -> Error {
        let message = format!(
            "{} took longer than {} and was stopped",
            self.name(),
            seconds(self.limits.max_execution_time)
        );
        let hint = format!("make it faster, or raise `max_execution_time` in {}", self.limits_at());
        self.error(self.at_function(Diagnostic::new(Code::HookTimeout, message)).hint(hint))
            .with("max_execution_time", self.limits.max_execution_time.as_secs_f64())
    }

    /// It returned more than it may.
    pub fn too_large(&self, size: &str) -> Error {
        let limit = self.limits.max_output_size;
        let message = format!("{} returned {size}, and {limit} characters are allowed", self.name());
        let hint = format!("return less, or raise `max_output_size` in {}", self.limits_at());
        self.error(self.at_function(Diagnostic::new(Code::HookOutput, message)).hint(hint))
            .with("max_output_size", limit)
    }

    fn returned(&self, kind: &str, wanted: &str, yields: bool) -> Error {
        let what = if kind == "NoneType" { "`None`".into() } else { format!("a {kind}") };
        let message = format!("{} returned {what} instead of a {wanted}", self.name());
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

    fn unfit(&self, unfit: &Unfit) -> Error {
        let Unfit { path, kind, why, value, key } = unfit;
        let (what, hint) = match why {
            Why::Type => (format!("`{path}` is a {kind}"), hint_for(kind)),
            Why::Int => (
                format!("`{path}` is a number of more than 64 bits"),
                "turn it into a string with `str()`".into(),
            ),
            Why::Float => (format!("`{path}` is {value}"), "use `None` where there is no number".into()),
            Why::Surrogate => (
                format!("`{path}` is a string with half a character in it"),
                "decode bytes with `errors=\"replace\"` instead of `\"surrogateescape\"`".into(),
            ),
            Why::Key => (
                format!("a key of `{path}` is {value}, of type {key}"),
                "keys must be strings: turn them into such with `str()`".into(),
            ),
            Why::Cycle => (format!("`{path}` contains itself"), "return values that end somewhere".into()),
            Why::Depth => {
                (format!("`{path}` is nested more than {value} deep"), "return flatter values".into())
            }
        };
        let message = format!("{} returned something that JSON cannot hold: {what}", self.name());
        self.error(self.at_function(Diagnostic::new(Code::HookReturn, message)).hint(hint))
            .with("path", path)
            .with("returned", kind)
    }

    fn raised(&self, raised: &Raised) -> Error {
        let Raised { kind, message, frames, .. } = raised;
        let text = match message.lines().next().unwrap_or_default() {
            "" => kind.clone(),
            line => format!("{kind}: {}", cut(line)),
        };
        let message = match (&raised.syntax, raised.stage.as_str()) {
            (Some(syntax), "load") => {
                format!("{} is not valid Python: {}", self.file(&syntax.file), cut(&syntax.message))
            }
            (_, "load") => format!("the script of {} raised {text} while it was loaded", self.subject),
            _ => format!("{} raised {text}", self.name()),
        };
        let mut diagnostic = Diagnostic::new(Code::HookFailed, message);
        let own = |frame: &Frame| frame.file == self.script.path.to_string_lossy();
        let last = frames.iter().rposition(own);
        let syntax =
            raised.syntax.as_ref().filter(|syntax| syntax.file == self.script.path.to_string_lossy());
        if let Some(syntax) = syntax {
            diagnostic = diagnostic.at(self.point(syntax.line, syntax.column));
        } else if let Some(last) = last {
            let label = if last + 1 == frames.len() { "raised here" } else { "on the way through here" };
            diagnostic = diagnostic.at(self.line(frames[last].line)).label(label);
            let mut lines = vec![frames[last].line];
            for frame in frames[..last].iter().rev().filter(|frame| own(frame)) {
                if !lines.contains(&frame.line) && lines.len() <= MOST {
                    lines.push(frame.line);
                    diagnostic = diagnostic.related(self.line(frame.line), "called from here");
                }
            }
        } else {
            diagnostic = self.at_function(diagnostic);
        }
        let mut hints: Vec<String> = self.advice(raised).into_iter().collect();
        let inner = &frames[last.map_or(0, |last| last + 1)..];
        for frame in inner.iter().skip(inner.len().saturating_sub(MOST)) {
            hints.push(format!("in {}:{} ({})", self.file(&frame.file), frame.line, frame.function));
        }
        hints.extend(raised.notes.iter().take(MOST).cloned());
        hints.extend(raised.causes.iter().map(|cause| self.cause(cause)));
        if !hints.is_empty() {
            diagnostic = diagnostic.hint(hints.join("\n"));
        }
        let exception = json!({"type": kind, "message": raised.message, "causes": raised.causes});
        self.error(diagnostic).with("exception", exception).with("traceback", frames)
    }

    fn cause(&self, cause: &Cause) -> String {
        let how = if cause.explicit { "caused by" } else { "while handling" };
        let place = cause.frame.as_ref().map(|frame| format!(" ({}:{})", self.file(&frame.file), frame.line));
        let message = cut(cause.message.lines().next().unwrap_or_default());
        let colon = if message.is_empty() { "" } else { ": " };
        format!("{how} {}{colon}{message}{}", cause.kind, place.unwrap_or_default())
    }

    /// What to do about an exception, where that is known.
    fn advice(&self, raised: &Raised) -> Option<String> {
        let is = |kind: &str| raised.bases.iter().any(|base| base == kind);
        let quoted = raised.message.trim_matches('\'');
        if is("KeyError") && Permissions::NAMES.contains(&quoted) {
            let place = match self.subject {
                Subject::Prompt { .. } => "`PERMISSIONS` of the prompt",
                Subject::Provider { .. } => "`permissions` of the provider in pack.json",
            };
            return Some(format!("`{quoted}` is not granted: declare it in {place}"));
        }
        if is("SystemExit") {
            return Some("a hook ends by returning: it must not end the process that it runs in".into());
        }
        if is("MemoryError") {
            return Some("use less memory, or raise `memory` under `[hooks]` in cuebook.toml".into());
        }
        if is("ModuleNotFoundError") {
            return Some(
                "modules come from Python's library, from beside the script, and from what is installed for the Python \
                 that `python` under `[hooks]` in cuebook.toml names"
                    .into(),
            );
        }
        if is("ConnectionError")
            || ["socket.gaierror", "urllib.error.URLError"].contains(&raised.kind.as_str())
        {
            return Some("hooks have no network of their own: use `context[\"http_request\"]`".into());
        }
        if is("TypeError") && raised.stage == "call" && raised.frames.is_empty() {
            return Some(self.signature());
        }
        None
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

    /// How a file of a traceback is called: the script by its name, one beside it by its path from there.
    fn file(&self, file: &str) -> String {
        if file == self.script.path.to_string_lossy() {
            return self.script.source.name().to_owned();
        }
        let below = std::path::Path::new(file).strip_prefix(&self.script.folder);
        below.map_or_else(|_| file.to_owned(), |below| below.to_string_lossy().into_owned())
    }

    /// Points at the line that defines the function.
    fn at_function(&self, diagnostic: Diagnostic) -> Diagnostic {
        let defines = |line: &str| {
            let line = line.strip_prefix("async ").map_or(line, str::trim_start);
            let name = line
                .strip_prefix("def ")
                .map(str::trim_start)
                .and_then(|line| line.strip_prefix(self.function));
            name.is_some_and(|rest| rest.trim_start().starts_with(['(', '[']))
        };
        let line = self.script.source.text().lines().enumerate().filter(|(_, line)| defines(line)).last();
        match line {
            Some((index, _)) => diagnostic.at(self.line(index + 1)),
            None => diagnostic.file(self.script.source.name()),
        }
    }

    /// A line of the script, without what it is indented by.
    fn line(&self, number: usize) -> Place {
        self.script.source.place(range_of_line(self.script.source.text(), number))
    }

    /// A column of a line of the script, or all of it.
    fn point(&self, number: usize, column: usize) -> Place {
        let text = self.script.source.text();
        let line = range_of_line(text, number);
        let start = text[..line.start].rfind('\n').map_or(0, |newline| newline + 1);
        let offset = text[start..line.end]
            .char_indices()
            .nth(column.wrapping_sub(1))
            .map(|(offset, _)| start + offset);
        match offset {
            Some(offset) if offset >= line.start => {
                let length = text[offset..].chars().next().map_or(0, char::len_utf8);
                self.script.source.place(offset..offset + length)
            }
            _ => self.script.source.place(line),
        }
    }
}

/// This system lacks protections that the code of a pack needs.
pub fn unprotected(pack: &str, report: &Report, needed: cuebook::library::SandboxLevel) -> Error {
    let missing: Vec<String> =
        report.missing.iter().map(|(protection, why)| format!("{} ({why})", protection.as_str())).collect();
    let message = format!(
        "the code of the pack `{pack}` did not run: this system cannot give all the protection that it needs; missing: {}",
        missing.join(", ")
    );
    let level = report.level().as_str();
    let hint = format!(
        "let the system offer it, or accept less with `sandbox = \"{level}\"` under `[hooks]` in cuebook.toml if you trust \
         the pack that far"
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
        NotStarted::Launch(error) => (format!("a worker for hooks could not be started: {error}"), None),
        NotStarted::Broken(Broken::Timeout, printed) => (
            format!("{} was not ready within {} seconds", program.display(), STARTUP.as_secs()),
            printed.clone(),
        ),
        NotStarted::Broken(Broken::Ended(Some(ending)), printed) => {
            (format!("{} {ending} before it was ready", program.display()), printed.clone())
        }
        NotStarted::Broken(_, printed) => {
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
    Broken(Broken, Option<String>),
}

/// The bytes of a line, from its first character that is no space to its last.
fn range_of_line(text: &str, number: usize) -> Range<usize> {
    let mut start = 0;
    for (index, line) in text.split('\n').enumerate() {
        if index + 1 == number {
            let indent = line.len() - line.trim_start().len();
            return start + indent..(start + line.trim_end().len()).max(start + indent);
        }
        start += line.len() + 1;
    }
    text.len()..text.len()
}

fn hint_for(kind: &str) -> String {
    match kind {
        "set" | "frozenset" => "turn it into a list: `sorted(…)`".into(),
        "bytes" | "bytearray" => "turn it into a string: `.decode()`".into(),
        "datetime.datetime" | "datetime.date" | "datetime.time" => {
            "turn it into a string: `.isoformat()`".into()
        }
        "generator" | "map" | "filter" | "zip" | "range" | "dict_keys" | "dict_values" | "dict_items" => {
            "turn it into a list: `list(…)`".into()
        }
        "coroutine" => "wait for it: `await …`".into(),
        _ => "return strings, numbers, booleans, None, lists and dicts".into(),
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A time as people say it.
fn seconds(time: Duration) -> String {
    match time.as_secs_f64() {
        1.0 => "1 second".into(),
        seconds => format!("{seconds} seconds"),
    }
}

#[cfg(test)]
mod tests {
    use cuebook::source::Source;

    use super::*;

    const SCRIPT: &str =
        "import x\n\n\nasync def pre_render(variables, context):\n    y = 1 +\n    return variables\n";

    fn blame<T>(check: impl FnOnce(Blame<'_>) -> T) -> T {
        let script = Script {
            source: Source::new("prompts/p/prompt.py", SCRIPT),
            path: "/lib/prompts/p/prompt.py".into(),
            folder: "/lib/prompts/p".into(),
            pack: None,
            modules: None,
            fingerprint: String::new(),
        };
        let subject = Subject::Prompt { id: "p".into() };
        let limits = Limits { max_execution_time: Duration::from_millis(1500), ..Limits::default() };
        check(Blame { script: &script, function: "pre_render", subject: &subject, limits: &limits })
    }

    fn frame(file: &str, line: usize) -> Frame {
        Frame { file: file.into(), line, function: "f".into() }
    }

    #[test]
    fn an_exception_points_at_the_last_line_of_the_script_that_it_came_through() {
        let raised = Raised {
            stage: "call".into(),
            kind: "ValueError".into(),
            message: "no\nmore".into(),
            frames: vec![
                frame("/lib/prompts/p/prompt.py", 4),
                frame("/lib/prompts/p/prompt.py", 6),
                frame("/lib/prompts/p/helper.py", 2),
                frame("/usr/lib/python3/json.py", 9),
            ],
            causes: vec![Cause {
                kind: "OSError".into(),
                message: String::new(),
                explicit: true,
                frame: None,
            }],
            ..Raised::default()
        };
        let error = blame(|blame| blame.fault(&Fault::Raised(Box::new(raised))));
        let diagnostic = error.diagnostic();
        assert_eq!(diagnostic.message, "`pre_render` of the prompt `p` raised ValueError: no");
        assert_eq!(diagnostic.place.as_ref().unwrap().text(), "return variables");
        assert_eq!(diagnostic.related.len(), 1);
        assert_eq!(
            diagnostic.hint.as_deref(),
            Some("in helper.py:2 (f)\nin /usr/lib/python3/json.py:9 (f)\ncaused by OSError")
        );
        assert_eq!(error.field("traceback").unwrap().as_array().unwrap().len(), 4);
        assert_eq!(error.field("exception").unwrap()["message"], "no\nmore");
    }

    #[test]
    fn a_syntax_error_points_at_its_column() {
        let syntax = crate::protocol::Syntax {
            file: "/lib/prompts/p/prompt.py".into(),
            line: 5,
            column: 11,
            message: "invalid syntax".into(),
        };
        let raised = Raised { stage: "load".into(), syntax: Some(syntax), ..Raised::default() };
        let error = blame(|blame| blame.fault(&Fault::Raised(Box::new(raised))));
        assert_eq!(
            error.to_string(),
            "PromptHookError: prompts/p/prompt.py:5:11: prompts/p/prompt.py is not valid Python: invalid syntax [CB410]"
        );
    }

    #[test]
    fn a_wrong_result_points_at_the_function() {
        let fault = Fault::Returned { kind: "NoneType".into(), wanted: "dict".into(), yields: false };
        let error = blame(|blame| blame.fault(&fault));
        assert_eq!(
            error.diagnostic().message,
            "`pre_render` of the prompt `p` returned `None` instead of a dict"
        );
        assert_eq!(error.diagnostic().hint.as_deref(), Some("end it with `return variables`"));
        assert_eq!(error.diagnostic().place.as_ref().unwrap().line(), 4);
    }

    #[test]
    fn a_timeout_says_which_limit_and_where_it_is_set() {
        let error = blame(|blame| blame.broken(&Broken::Timeout));
        assert_eq!(
            error.diagnostic().message,
            "`pre_render` of the prompt `p` took longer than 1.5 seconds and was stopped"
        );
        assert!(error.diagnostic().hint.as_ref().unwrap().contains("`LIMITS` of prompt.py"));
    }

    #[test]
    fn a_line_is_found_whatever_its_number() {
        assert_eq!(range_of_line("a\n  b \n", 2), 4..5);
        assert_eq!(range_of_line("a\n", 9), 2..2);
        assert_eq!(range_of_line("", 0), 0..0);
    }
}
