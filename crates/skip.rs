//! Skipped tests. Each prints one line of one form. `.ci/run` collects the lines in the file that `CUEBOOK_SKIPPED` names, and prints
//! their number at the end.

#![allow(dead_code, reason = "not every test that includes this file uses both functions")]

use std::fmt::Display;
use std::io::Write as _;

/// Skips a test whose peer is missing: a program, a package, a server or cases of others. With `CI=true` the test fails instead.
pub fn missing_peer(why: impl Display) {
    assert_ne!(std::env::var("CI").as_deref(), Ok("true"), "a peer is missing: {why}");
    on_this_machine(why);
}

/// Skips a test that means nothing on this machine, as one of file permissions means nothing to root.
pub fn on_this_machine(why: impl Display) {
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("skipped: {test}: {}", why.to_string().replace('\n', " "));
    eprintln!("{line}");
    let Some(file) = std::env::var_os("CUEBOOK_SKIPPED") else { return };
    let opened = std::fs::File::options().create(true).append(true).open(file);
    // One write, so that tests of other processes do not write in between.
    let written = opened.and_then(|mut file| file.write_all(format!("{line}\n").as_bytes()));
    assert!(written.is_ok(), "cannot write to the file that CUEBOOK_SKIPPED names: {written:?}");
}
