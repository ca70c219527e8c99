//! Asking a person. Where there is nobody to ask, commands fail with the way to answer beforehand.

use std::io::{IsTerminal, stderr, stdin, stdout};

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};

/// Whether stdout goes to a person.
pub fn stdout_is_terminal() -> bool {
    stdout().is_terminal()
}

/// Whether there is somebody to ask.
pub fn is_interactive() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Asks for a yes. Without a terminal it is an error that names the option which says yes.
pub fn confirm(question: &str, option: &str) -> Result<bool> {
    if !is_interactive() {
        let diagnostic =
            Diagnostic::new(Code::ConfirmationNeeded, format!("{question} No terminal to ask on"))
                .hint(format!("answer yes with {option}"));
        return Err(Error::new(ErrorKind::Pack, diagnostic));
    }
    // Escape, Ctrl-C and a broken terminal are all no.
    Ok(inquire::Confirm::new(question).with_default(false).prompt().unwrap_or(false))
}

/// Lets a person pick one of several lines; `None` if they do not want to.
pub fn pick(question: &str, lines: Vec<String>) -> Option<usize> {
    inquire::Select::new(question, lines).raw_prompt().ok().map(|picked| picked.index)
}
