//! An exception: the line of the script's own that it came from, the lines on the way there, and what it came from itself.

use cuebook::error::{Code, Diagnostic, Error, Hint};
use cuebook::source::Place;
use serde_json::json;

use super::files::{self, Files};
use super::{FailedCall, cut, first_line};
use crate::protocol::{Cause, Frame, Raised};

/// How many further places and lines an error shows.
const MAX: usize = 5;

/// Characters of an exception's text that stand beside a line.
const BESIDE: usize = 120;

impl FailedCall<'_> {
    /// A function raised an exception.
    pub(super) fn raised(&self, raised: &Raised) -> Error {
        let Raised { kind, frames, .. } = raised;
        let files = Files::new(self.script);
        let syntax = raised.syntax.as_ref().and_then(|syntax| Some((syntax, files.source(&syntax.file)?)));
        let message = match (&syntax, raised.stage.as_str()) {
            (Some((syntax, source)), _) => {
                format!("{} is not valid Python: {}", source.name(), cut(&syntax.message))
            }
            (None, "load") => {
                let text = described(kind, &raised.message);
                format!("the script of {} raised {text} while loading", self.subject)
            }
            _ => format!("{} raised {}", self.name(), described(kind, &raised.message)),
        };
        let mut diagnostic = Diagnostic::new(Code::HookFailed, message);
        let last = files.last_own(frames);
        let mut marked: Vec<Place> = Vec::new();
        let mut way = frames.as_slice();
        let mut called = "called from here";
        if let Some((syntax, source)) = &syntax {
            diagnostic = diagnostic.at(files::point(source, syntax.line, syntax.column));
            marked.push(files::line(source, syntax.line));
            called = "imported from here";
        } else if let Some((index, place)) = &last {
            diagnostic = diagnostic.at(place.clone()).label(match frames.last() {
                Some(frame) if *index + 1 < frames.len() => format!("raised in {}", at(&files, frame)),
                _ => "raised here".to_owned(),
            });
            marked.push(place.clone());
            way = &frames[..*index];
        } else {
            diagnostic = self.at_function(diagnostic);
        }
        for place in way.iter().rev().take(files::MAX_FRAMES).filter_map(|frame| files.place(frame)) {
            if marked.len() <= MAX && !marked.iter().any(|other| other.is_same(&place)) {
                marked.push(place.clone());
                diagnostic = diagnostic.related(place, std::mem::replace(&mut called, "called from here"));
            }
        }
        let mut hints: Vec<Hint> = self.advice(raised, &files).into_iter().collect();
        if last.is_none() && syntax.is_none() {
            hints.extend(frames.last().map(|frame| format!("raised in {}", at(&files, frame)).into()));
        }
        hints.extend(raised.notes.iter().take(MAX).map(Hint::from));
        for inner in raised.inner.iter().take(MAX) {
            let text = format!("{}{}", described(&inner.kind, &inner.message), came_from(&files, inner));
            hints.push(text.into());
        }
        if raised.inner.len() > MAX {
            hints.push(format!("… and {} more", raised.inner.len() - MAX).into());
        }
        let mut reported = vec![raised.message.as_str()];
        for cause in raised.causes.iter().take(MAX) {
            let how = if cause.explicit { "caused by" } else { "while handling" };
            // A library often says the same again for each exception that it makes of another.
            let known =
                !cause.message.is_empty() && reported.iter().any(|text| text.contains(&cause.message));
            let text = if known { cause.kind.clone() } else { described(&cause.kind, &cause.message) };
            reported.push(&cause.message);
            match files.last_own(&cause.frames) {
                Some((_, place)) if !marked.iter().any(|other| other.is_same(&place)) => {
                    let text = text
                        .char_indices()
                        .nth(BESIDE)
                        .map_or(text.clone(), |(end, _)| format!("{}…", &text[..end]));
                    diagnostic = diagnostic.related(place.clone(), format!("{how} {text}"));
                    marked.push(place);
                }
                _ if known => {}
                _ => hints.push(format!("{how} {text}{}", came_from(&files, cause)).into()),
            }
        }
        diagnostic = diagnostic.hint_opt(hints.into_iter().reduce(Hint::and_below));
        let causes: Vec<Cause> = raised.causes.iter().map(|cause| renamed(&files, cause)).collect();
        let mut exception = json!({"type": kind, "message": raised.message, "causes": causes});
        if !raised.inner.is_empty() {
            let inner: Vec<Cause> = raised.inner.iter().map(|inner| renamed(&files, inner)).collect();
            exception["exceptions"] = json!(inner);
        }
        let traceback: Vec<Frame> = frames.iter().map(|frame| known_as(&files, frame)).collect();
        self.error(diagnostic).with("exception", exception).with("traceback", traceback)
    }
}

/// An exception in one line.
fn described(kind: &str, message: &str) -> String {
    match first_line(message) {
        line if line.is_empty() => kind.to_owned(),
        line => format!("{kind}: {line}"),
    }
}

/// A line of a library.
fn at(files: &Files<'_>, frame: &Frame) -> String {
    format!("{}:{} ({})", files.short_name(&frame.file), frame.line, frame.function)
}

/// Where an exception came from, in brackets: the script's own line if there is one.
fn came_from(files: &Files<'_>, cause: &Cause) -> String {
    let own = files.last_own(&cause.frames).map(|(index, _)| &cause.frames[index]);
    let frame = own.or(cause.frame.as_ref());
    frame.map_or_else(String::new, |frame| format!(" ({}:{})", files.short_name(&frame.file), frame.line))
}

fn renamed(files: &Files<'_>, cause: &Cause) -> Cause {
    Cause { frame: cause.frame.as_ref().map(|frame| known_as(files, frame)), ..cause.clone() }
}

/// The same frame with the name that people know its file by.
fn known_as(files: &Files<'_>, frame: &Frame) -> Frame {
    Frame { file: files.name(&frame.file), ..frame.clone() }
}
