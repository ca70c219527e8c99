//! Long text on a terminal: through the user's pager.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use crate::terminal;

/// The pager of a user who names none: it ends at once if the text fits, and keeps colours.
const USUAL: &str = "less -FRX";

/// Shows a text: through `$PAGER` on a terminal, and as it is elsewhere. A pager that cannot be started is no reason to show nothing.
pub fn show(text: &str, use_pager: bool) -> io::Result<()> {
    let pager = std::env::var("PAGER").ok().filter(|pager| !pager.trim().is_empty());
    let pager = pager.as_deref().unwrap_or(USUAL);
    if use_pager && terminal::stdout_is_terminal() && pager != "cat" && paged(pager, text).is_ok() {
        return Ok(());
    }
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn paged(pager: &str, text: &str) -> io::Result<()> {
    let (shell, option) = if cfg!(windows) { ("cmd", "/C") } else { ("sh", "-c") };
    let mut child = Command::new(shell).args([option, pager]).stdin(Stdio::piped()).spawn()?;
    // A reader who leaves the pager early has seen enough.
    let written = child.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(text.as_bytes()));
    let status = child.wait()?;
    // The shell's own code for a program that it did not find.
    match status.code() {
        Some(127) => Err(io::ErrorKind::NotFound.into()),
        _ => written
            .or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) }),
    }
}
