//! A batch that is killed at any moment continues: nothing that was answered is asked again, and no output is torn.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use cuebook_mock::Script;
use serde_json::Value as Json;

use crate::setup::{Setup, asked, echo, err};

/// Long enough for a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);
const ROWS: usize = 400;
const CONCURRENCY: usize = 3;
const KILLS: usize = 100;

/// The rows whose answer is in the journal.
fn answered(journal: &str) -> BTreeSet<String> {
    let whole = journal.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let lines = whole.lines().map(|line| serde_json::from_str::<Json>(line).unwrap());
    lines
        .filter_map(|line| {
            let text = line.get("answer")?.to_string();
            let at = text.find("row-")?;
            Some(
                text[at..]
                    .chars()
                    .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-')
                    .collect(),
            )
        })
        .collect()
}

#[test]
fn a_hundred_kills_ask_no_answered_row_again() {
    no_answered_row_is_asked_again(&slow(), KILLS, ROWS, &[]);
}

/// A model that needs a moment.
pub fn slow() -> Setup {
    let slow = |request: &cuebook_mock::Request| echo(request).first_byte_after(Duration::from_millis(5));
    Setup::new(Script::answer(slow))
}

/// Kills a batch of these rows so often. `more` are other options of it.
pub fn no_answered_row_is_asked_again(setup: &Setup, kills: usize, rows: usize, more: &[&str]) {
    setup.questions(rows);
    let concurrency = CONCURRENCY.to_string();
    let args = [
        "ask",
        "data.jsonl",
        "--run",
        "--model",
        "mock-model",
        "--out",
        "out.jsonl",
        "--concurrency",
        &concurrency,
    ];
    let args = [&args[..], more].concat();
    let mut known = BTreeSet::new();
    for kill in 0..kills {
        let before = setup.mock.requests().len();
        let mut child = setup.command(&args).spawn().unwrap();
        assert!(
            setup.mock.wait_for_requests(before + 1 + kill % 3, PATIENCE),
            "kill {kill}: no request came"
        );
        child.kill().unwrap();
        let ended = child.wait().unwrap();
        assert!(!ended.success(), "kill {kill} came too late");
        for request in &setup.mock.requests()[before..] {
            assert!(!known.contains(&asked(request)), "kill {kill}: {} was asked again", asked(request));
        }
        let now = answered(&setup.read(".out.jsonl.journal"));
        assert!(now.is_superset(&known), "kill {kill}: an answer was lost");
        known = now;
        assert!(!setup.project.path().join("out.jsonl").exists(), "kill {kill}: an output that is not whole");
    }
    let before = setup.mock.requests().len();
    let last = setup.run(&args);
    assert!(last.status.success(), "{}", err(&last));
    let requests = setup.mock.requests();
    assert!(requests[before..].iter().all(|request| !known.contains(&asked(request))));

    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    requests.iter().for_each(|request| *times.entry(asked(request)).or_default() += 1);
    assert_eq!(times.len(), rows);
    let again: usize = times.values().map(|count| count - 1).sum();
    assert!(again <= kills * CONCURRENCY, "{again} requests were repeated");
    let lines = setup.lines("out.jsonl");
    assert_eq!(lines.len(), rows);
    for (row, number) in lines.iter().zip(1..) {
        assert_eq!(row["answer"], format!("answer to row-{number}"), "row {number}");
        assert!(row["error"].is_null());
    }
    eprintln!("{kills} kills: {rows} rows, {} requests, {again} repeated", requests.len());
}

#[test]
fn an_output_is_whole_or_the_one_before() {
    let setup = Setup::echo();
    setup.questions(300);
    let args = ["ask", "data.jsonl", "--run", "--model", "mock-model", "--out", "out.jsonl"];
    assert!(setup.run(&args).status.success());
    let whole = setup.read("out.jsonl");
    let asked = setup.mock.requests().len();
    for kill in 0..20 {
        let mut child = setup.command(&args).spawn().unwrap();
        // Each kill comes a little later, from before the journal is open to after the output is written.
        std::thread::sleep(Duration::from_millis(kill * 12));
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(setup.read("out.jsonl"), whole, "kill {kill}");
    }
    assert!(setup.run(&args).status.success());
    assert_eq!((setup.read("out.jsonl"), setup.mock.requests().len()), (whole, asked));
}
