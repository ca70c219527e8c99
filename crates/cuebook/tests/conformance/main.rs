//! Cases that nobody here wrote, run against the engine: the scoreboard.
//!
//! `cargo test -p cuebook --test conformance -- --nocapture` prints it. The cases lie outside of the project, in the
//! folder that `CUEBOOK_CONFORMANCE` names (see [`board::folder`]).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod board;
mod compare;
mod mustache;
mod prompty;
mod prompty_files;
mod rye;
mod rye_trust;
mod wink;

#[test]
fn prompty() {
    if let Some(folder) = board::folder("prompty") {
        prompty::run(&folder).finish();
    }
}

#[test]
fn prompty_files() {
    if let Some(folder) = board::folder("prompty-files") {
        prompty_files::run(&folder);
    }
}

#[test]
fn mustache() {
    if let Some(folder) = board::folder("mustache") {
        mustache::run(&folder).finish();
    }
}

#[test]
fn wink() {
    if let Some(folder) = board::folder("wink") {
        wink::run(&folder).finish();
    }
}

#[test]
fn rye() {
    if let Some(folder) = board::folder("rye") {
        rye::run(&folder).finish();
    }
}

#[test]
fn rye_trust() {
    if let Some(folder) = board::folder("rye") {
        rye_trust::run(&folder).finish();
    }
}
