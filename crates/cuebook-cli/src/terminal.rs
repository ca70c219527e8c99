//! Questions to the user. Without a terminal, commands fail and name the option that answers beforehand.

use std::io::{IsTerminal, Write, stderr, stdin, stdout};

use cuebook::error::printable;
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};

/// Whether stdout is a terminal.
pub fn stdout_is_terminal() -> bool {
    stdout().is_terminal()
}

/// Whether the user can be asked.
pub fn is_interactive() -> bool {
    stdin().is_terminal() && stderr().is_terminal()
}

/// Asks for a yes. Without a terminal it is an error that names the option which says yes.
pub fn confirm(question: &str, option: &str) -> Result<bool> {
    if !is_interactive() {
        let message = format!("cannot ask without a terminal: {question}");
        let diagnostic =
            Diagnostic::new(Code::ConfirmationNeeded, message).hint(format!("answer yes with {option}"));
        return Err(Error::new(ErrorKind::Pack, diagnostic));
    }
    // Anything but a yes is a no, also the end of the input and a broken terminal.
    let answer = answer(&format!("{question} [y/N]")).unwrap_or_default();
    Ok(matches!(answer.to_lowercase().as_str(), "y" | "yes"))
}

/// Lets the user pick one of several lines by its number; `None` for an empty answer.
pub fn pick(question: &str, lines: &[String]) -> Option<usize> {
    let mut list = printable(question).into_owned();
    for (number, line) in (1..).zip(lines) {
        list.push_str(&format!("\n  {number}  {}", printable(line)));
    }
    let numbers = format!("1 to {}, or nothing to leave it open:", lines.len());
    let mut prompt = format!("{list}\n{numbers}");
    loop {
        let answer = answer(&prompt).filter(|answer| !answer.is_empty())?;
        match answer.parse::<usize>() {
            Ok(number) if (1..=lines.len()).contains(&number) => return Some(number - 1),
            _ => prompt.clone_from(&numbers),
        }
    }
}

/// The line that the user types after a question; `None` at the end of the input.
fn answer(question: &str) -> Option<String> {
    let mut stderr = stderr();
    write!(stderr, "{question} ").and_then(|()| stderr.flush()).ok()?;
    let mut line = String::new();
    let read = stdin().read_line(&mut line).ok()?;
    (read > 0).then(|| line.trim().to_owned())
}
