//! SECURITY.md names a test for each promise, and tests that pages name exist.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

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

/// The files below a folder with one of these endings.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            files(&path, endings, found);
        } else if path.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            found.push(path);
        }
    }
}

#[test]
fn tests_that_pages_name_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut pages, mut code) = (Vec::new(), Vec::new());
    for folder in ["docs/src", "crates/cuebook-cli/topics", "crates/cuebook-text/src/error/pages"] {
        files(&root.join(folder), &["md"], &mut pages);
    }
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "COMPATIBILITY.md"].map(|page| root.join(page)),
    );
    files(&root.join("crates"), &["rs"], &mut code);
    let read = |path: &PathBuf| std::fs::read_to_string(path).unwrap();
    let mut functions = BTreeSet::new();
    for text in code.iter().map(read) {
        let names = text.split("fn ").skip(1).filter_map(|rest| rest.split(['(', '<']).next());
        functions.extend(names.map(str::to_owned));
    }
    let mut checked = 0;
    for page in &pages {
        for name in read(page).split('`') {
            // Names of tests are sentences; the names of functions, tools and settings are shorter.
            let is_word =
                |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
            if name.matches('_').count() >= 4 && !name.starts_with('_') && name.chars().all(is_word) {
                checked += 1;
                assert!(
                    functions.contains(name),
                    "{} names the test `{name}`, which does not exist",
                    page.display()
                );
            }
        }
    }
    assert!(checked > 20, "{checked}");
}
