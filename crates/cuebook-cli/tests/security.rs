//! SECURITY.md names a test for each promise.

use std::path::Path;

#[test]
fn every_promise_names_tests_that_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("SECURITY.md")).unwrap();
    let (_, promises) = page.split_once("## What Cuebook promises").unwrap();
    let (promises, _) = promises.split_once("\n## ").unwrap();
    let mut count = 0;
    for row in promises.lines().filter(|row| row.starts_with("| ") && !row.contains("---")) {
        let (promise, tests) = row.trim_matches(['|', ' ']).split_once(" | ").unwrap();
        if promise == "promise" {
            continue;
        }
        count += 1;
        let names: Vec<&str> = tests.split('`').filter(|name| name.contains("::")).collect();
        assert!(!names.is_empty(), "no test for: {promise}");
        for name in names {
            let (file, test) = name.split_once("::").unwrap();
            let code =
                std::fs::read_to_string(root.join(file)).unwrap_or_else(|error| panic!("{file}: {error}"));
            assert!(code.contains(&format!("fn {test}(")), "{file} has no test `{test}`");
        }
    }
    assert!(count > 25, "{count} promises");
}
