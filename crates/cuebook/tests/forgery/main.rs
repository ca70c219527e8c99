//! No value, whatever it contains, adds, ends or changes a message, and no benign value is refused.
//!
//! `fuzz/` drives the same cases with a fuzzer.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, missing_docs)]

mod driver;
mod sections;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// How many cases a run of the tests drives.
const CASES: u32 = 100_000;

#[test]
fn the_prompts_have_the_messages_that_their_authors_wrote() {
    let expected = [
        ("plain", 3),
        ("filters", 2),
        ("operators", 1),
        ("loops", 2),
        ("joined", 2),
        ("attributes", 3),
        ("captures", 3),
        ("rich", 4),
        ("hooked", 4),
        ("before", 3),
        ("python", 2),
        ("mustache", 5),
    ];
    assert_eq!(driver::expected(), expected);
}

#[test]
fn every_fragment_alone_leaves_every_prompt_as_it_is() {
    for prompt in 0..=255u8 {
        for fragment in 0..=255u8 {
            driver::run(&[prompt, fragment]);
            if prompt >= 12 {
                break;
            }
        }
    }
}

#[test]
fn no_mix_of_forgeries_changes_the_messages() {
    let cases = proptest::collection::vec(any::<u8>(), 1..64);
    // Each case is a chain of random bytes, so a failure is short enough as it is and shrinks quickly.
    let mut runner = TestRunner::new(Config { cases: CASES, failure_persistence: None, ..Config::default() });
    runner
        .run(&cases, |bytes| {
            driver::run(&bytes);
            Ok(())
        })
        .unwrap();
}
