//! Runs programs.

use std::process::{Command, Stdio};

/// What comes of asking a peer; the error says why it cannot be had.
pub type Result<T> = std::result::Result<T, String>;

/// Runs a program that says nothing unless it fails; the error is the last thing it said.
pub fn run(command: &mut Command) -> Result<()> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{program}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last = said.lines().rev().find(|line| !line.trim().is_empty());
    Err(format!("{program}: {}", last.unwrap_or("failed").trim()))
}
