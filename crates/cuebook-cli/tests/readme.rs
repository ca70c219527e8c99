//! The tour in the README, which must be true.

mod support;

use std::path::Path;

use support::transcript;

#[test]
fn the_tour_in_the_readme_is_true() {
    transcript::run_file(Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../README.md")));
}
