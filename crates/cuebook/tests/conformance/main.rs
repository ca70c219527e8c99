//! Cases of other projects, run against the engine: the scoreboard.
//!
//! `cargo test -p cuebook --test conformance -- --nocapture` prints it. The cases lie outside of the project, in the
//! folder that `CUEBOOK_CONFORMANCE` names (see [`board::folder`]).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod board;
mod compare;
mod dotprompt;
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
fn migrated_prompty_files_have_the_same_messages() {
    if let Some(folder) = board::folder("prompty-files") {
        prompty_files::migrate(&folder);
    }
}

#[test]
fn mustache() {
    if let Some(folder) = board::folder("mustache") {
        mustache::run(&folder).finish();
    }
}

#[test]
fn dotprompt() {
    if let Some(folder) = board::folder("dotprompt") {
        dotprompt::run(&folder).finish();
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

#[test]
fn runners_accept_missing_tables_and_count_unknown_ones() {
    let folder = tempfile::tempdir().unwrap();
    let cases = folder.path().join("cases.json");
    std::fs::write(&cases, "{}").unwrap();
    for run in [wink::run, rye::run, rye_trust::run, mustache::run] {
        let board = run(folder.path());
        assert_eq!(board.count(), 0);
        board.finish();
    }
    std::fs::write(&cases, r#"{"cases": [{"group": "new_group", "id": "x", "expect": {}}]}"#).unwrap();
    assert_eq!(rye::run(folder.path()).count(), 1);
    std::fs::write(&cases, r#"{"new_cases": [1, 2]}"#).unwrap();
    assert_eq!(wink::run(folder.path()).count(), 2);
}

#[test]
fn an_expectation_that_nothing_evaluates_is_named() {
    let case = serde_json::json!({"text": "a", "color": "red"});
    assert_eq!(board::only(&case, &["text"]).unwrap_err(), "nothing evaluates color");
    assert!(board::only(&case, &["text", "color"]).is_ok());
}
