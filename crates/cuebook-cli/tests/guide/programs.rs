//! The Rust programs of the book and of the README, compiled and run.

use std::process::ExitCode;

/// The variable that says which program this binary is.
pub const ASKED: &str = "CUEBOOK_GUIDE_PROGRAM";

/// Runs a program.
pub fn run(name: &str) -> ExitCode {
    eprintln!("there is no program {name}");
    ExitCode::FAILURE
}

/// What stands in for `cargo` in sessions: `cargo run` is the program that the folder is named after.
pub fn stand_in() -> String {
    let this = std::env::current_exe().expect("a path");
    let this = this.display();
    format!("#!/bin/sh\ntest \"$1\" = run || exit 101\nexport {ASKED}=$(basename \"$PWD\")\nexec '{this}'\n")
}

pub fn every_program_that_is_shown_is_compiled() {}
