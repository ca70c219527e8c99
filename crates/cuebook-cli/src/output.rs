//! Results and failures on their way out.

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use anstyle::Style;
use clap::error::ErrorKind as ClapKind;
use cuebook::error::{printable, printable_lines, report};
use cuebook::hooks::Event;
use cuebook::{Code, Diagnostic, Error, ErrorKind};
use serde_json::{Value as Json, json};

use crate::args::{Layout, Options};
use crate::{suggestion, terminal};

/// Why a command did not do what it should.
#[derive(Debug)]
pub enum Failure {
    /// The engine said no.
    Engine(Error),
    /// The output could not be written.
    Output(io::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Engine(error)
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Failure::Output(error)
    }
}

/// The result of a command.
pub type Outcome = Result<ExitCode, Failure>;

/// A caller that closes our output has read enough of it, and still wants the exit code of what was found.
pub fn unless_closed(written: io::Result<()>) -> io::Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written,
    }
}

/// Prints a JSON document.
pub fn print_json(json: &Json) -> io::Result<()> {
    let text = serde_json::to_string_pretty(json)?;
    let mut out = io::stdout().lock();
    out.write_all(without_controls(&text).as_bytes())?;
    out.write_all(b"\n")
}

/// A JSON document in which characters that control a terminal or turn the direction of writing are escaped: JSON itself
/// escapes only those below U+0020.
fn without_controls(json: &str) -> std::borrow::Cow<'_, str> {
    let controls = |letter: char| matches!(letter, '\u{7f}'..='\u{9f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    if !json.contains(controls) {
        return json.into();
    }
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        match controls(letter) {
            // Only a string of the document can hold one.
            true => out.push_str(&format!("\\u{:04x}", u32::from(letter))),
            false => out.push(letter),
        }
    }
    out.into()
}

/// Prints a JSON document in one line, at once, for a caller that reads along.
pub fn print_line(json: &Json) -> io::Result<()> {
    let text = serde_json::to_string(json)?;
    let mut out = io::stdout().lock();
    out.write_all(without_controls(&text).as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Prints a JSON document as a command lays its documents out.
fn print_as(layout: Layout, json: &Json) -> io::Result<()> {
    match layout {
        Layout::Document => print_json(json),
        Layout::Lines => print_line(json),
    }
}

/// Prints text as it is. Only a terminal gets the newline that a text may lack, and escapes in the place of characters that would
/// control it: the text can come from a project or from a model.
pub fn print_text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if !terminal::stdout_is_terminal() {
        out.write_all(text.as_bytes())?;
        return out.flush();
    }
    out.write_all(printable_lines(text).as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Prints findings for people on stderr.
pub fn print_findings<'d>(findings: impl IntoIterator<Item = &'d Diagnostic>) {
    let mut err = anstream::stderr();
    // The stream drops the colours where they are not wanted.
    let _ = write!(err, "{}", report(findings, true));
}

/// Has the commands that findings suggest name where the threads are.
pub fn suggest(findings: &mut [Diagnostic], options: &Options) {
    for hint in findings.iter_mut().filter_map(|finding| finding.hint.as_mut()) {
        *hint = hint.clone().map(|text| suggestion::suggested(text, &options.place).into_owned());
    }
}

/// Shows what a hook printed, line by line, with its name in front.
pub fn hear(event: &Event) {
    if let Event::Printed { by, function, text } = event {
        let quiet = Style::new().dimmed();
        let mut err = anstream::stderr();
        for line in text.lines() {
            let _ = writeln!(err, "{quiet}{function} of {}:{quiet:#} {}", printable(by), printable(line));
        }
    }
}

/// Says something on stderr, with control characters escaped: a name in it may come from a project.
pub fn say(text: impl std::fmt::Display) {
    let _ = writeln!(anstream::stderr(), "{}", printable_lines(&text.to_string()));
}

/// Reports a failure and gives the exit code.
pub fn failure(failure: &Failure, options: &Options, layout: Layout) -> ExitCode {
    match failure {
        Failure::Engine(error) if options.json => {
            let _ = print_as(layout, &error.to_json());
        }
        Failure::Engine(error) => {
            let mut findings = error.diagnostics().to_vec();
            suggest(&mut findings, options);
            print_findings(&findings);
            say(format_args!("\nfor more about this: cuebook help {}", error.code()));
        }
        Failure::Output(error) => {
            let message = format!("cannot write the output: {error}");
            let hint = "check free space and write permission at the destination";
            print_findings([&Diagnostic::new(Code::WriteFailed, message).hint(hint)]);
            say(format_args!("\nfor more about this: cuebook help {}", Code::WriteFailed));
        }
    }
    match failure {
        // An invalid item id fails like an invalid prompt id.
        Failure::Engine(error) if error.kind() == ErrorKind::Usage && error.code() != Code::InvalidItemId => {
            ExitCode::from(2)
        }
        _ => ExitCode::FAILURE,
    }
}

/// Reports wrong usage, also as JSON where that was asked for. Help and version are no errors.
pub fn usage_error(error: &clap::Error) -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().collect();
    let asked_for_json = arguments.iter().any(|argument| argument == "--json");
    let harmless = matches!(
        error.kind(),
        ClapKind::DisplayHelp | ClapKind::DisplayVersion | ClapKind::DisplayHelpOnMissingArgumentOrSubcommand
    );
    if asked_for_json && !harmless {
        let message = error.render().to_string();
        let message = message.trim().strip_prefix("error: ").unwrap_or(message.trim()).to_owned();
        let reported = json!({
            "status": "error",
            "error": {"type": "UsageError", "code": "usage", "message": message},
        });
        let _ = print_as(Layout::of_arguments(&arguments), &reported);
        return ExitCode::from(2);
    }
    let _ = error.print();
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}
