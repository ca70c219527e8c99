//! Lines for people: a trace as a tree, when it has ended.
//!
//! ```text
//! run greeting 1.24s  120→45 tokens
//!   render 310µs  inputs={"name":"Ada"} result="Hello Ada"
//!   execute 1.23s  gen_ai.request.model="gpt-4o" ✗ ModelError: no answer
//! ```
//!
//! It shows the beginnings of values; who needs all of them writes a file.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use crate::{Backend, Frame};

/// So many characters of a value are shown.
const WIDEST: usize = 100;

/// Prints every trace.
pub struct Console {
    out: Mutex<Box<dyn Write + Send>>,
}

impl Console {
    /// Prints to stderr, so that stdout stays the program's.
    pub fn stderr() -> Console {
        Console::to(io::stderr())
    }

    /// Prints to anything.
    pub fn to(out: impl Write + Send + 'static) -> Console {
        Console { out: Mutex::new(Box::new(out)) }
    }
}

impl Backend for Console {
    fn name(&self) -> String {
        "the console".to_owned()
    }

    fn finished(&self, root: &Frame) -> io::Result<()> {
        let mut text = String::new();
        lines(root, 0, &mut text);
        let mut out = self.out.lock().unwrap_or_else(PoisonError::into_inner);
        // All at once, so that traces of several threads do not mix.
        out.write_all(text.as_bytes())?;
        out.flush()
    }
}

impl std::fmt::Debug for Console {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Console").finish_non_exhaustive()
    }
}

fn lines(frame: &Frame, depth: usize, out: &mut String) {
    let _ = write!(out, "{:indent$}{}", "", frame.name, indent = depth * 2);
    if let Some(prompt) = frame.fields.get("prompt").and_then(Value::as_str) {
        let _ = write!(out, " {}", plain(prompt));
    }
    let _ = write!(out, " {}", time(frame.duration));
    if let Some(usage) = frame.usage {
        let _ = write!(out, "  {}→{} tokens", usage.input, usage.output);
    }
    let mut gap = "  ";
    for (name, value) in &frame.fields {
        // Reported above, or below.
        if matches!(name.as_str(), "prompt" | "signature" | "error" | "error.type")
            || name.starts_with("gen_ai.usage.")
        {
            continue;
        }
        let _ = write!(out, "{gap}{name}={}", shown(value));
        gap = " ";
    }
    if let Some(error) = frame.error() {
        let part = |name: &str| plain(error.get(name).and_then(Value::as_str).unwrap_or_default());
        let _ = write!(out, "{gap}✗ {}: {}", part("exception"), part("message"));
    }
    out.push('\n');
    frame.frames.iter().for_each(|inner| lines(inner, depth + 1, out));
    if frame.left_out > 0 {
        let _ = writeln!(out, "{:indent$}… {} frames left out", "", frame.left_out, indent = depth * 2 + 2);
    }
}

/// A value on one line, in JSON, whose escapes also keep control characters from the terminal.
fn shown(value: &Value) -> String {
    plain(&value.to_string())
}

/// A text on one line, its beginning only, without anything that a terminal would obey.
fn plain(text: &str) -> String {
    let mut letters = text.chars();
    let mut out: String =
        letters.by_ref().take(WIDEST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if letters.next().is_some() {
        out.push('…');
    }
    out
}

fn time(duration: Duration) -> String {
    match duration.as_micros() {
        micros @ ..1_000 => format!("{micros}µs"),
        micros @ ..1_000_000 => format!("{:.1}ms", micros as f64 / 1e3),
        micros => format!("{:.2}s", micros as f64 / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_unit_that_people_would_choose() {
        assert_eq!(time(Duration::from_micros(310)), "310µs");
        assert_eq!(time(Duration::from_micros(4_250)), "4.2ms");
        assert_eq!(time(Duration::from_millis(1_234)), "1.23s");
    }

    #[test]
    fn nothing_that_a_terminal_obeys_gets_through() {
        assert_eq!(plain("a\u{1b}[31mb\nc"), "a [31mb c");
        assert_eq!(plain(&"x".repeat(150)).chars().count(), WIDEST + 1);
    }
}
