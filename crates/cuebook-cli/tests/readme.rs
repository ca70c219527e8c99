//! The tour in the README, which must be true.

mod support;

use std::path::Path;

use support::{python_or_skip, transcript};

#[test]
fn the_tour_in_the_readme_is_true() {
    let Some(()) = python_or_skip() else { return };
    transcript::run_file(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")));
}
