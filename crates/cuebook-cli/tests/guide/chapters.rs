//! The sessions of the book, run with the real binary.

use std::path::Path;

use crate::book::{self, Page};
use crate::programs;
use crate::support::python_or_skip;
use crate::support::transcript::{self, Setup};

/// One reader follows all chapters, so each begins where the one before it ended.
pub fn the_guide_is_true() {
    let Some(()) = python_or_skip() else { return };
    let mut stage = Setup::new();
    #[cfg(unix)]
    stage.program("cargo", &programs::stand_in());
    let mut wrong = String::new();
    for page in book::pages().iter().filter(|page| page.path.starts_with("guide/")) {
        wrong += &settle(page, &stage.run(&page.text).rewritten);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Pages of the reference are read on their own.
pub fn every_page_of_the_reference_is_true() {
    let mut wrong = String::new();
    for page in book::pages().iter().filter(|page| page.path.starts_with("reference/")) {
        wrong += &settle(page, &transcript::run(&page.text).rewritten);
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Keeps what happened, if that is wanted; otherwise says how a page differs from it.
pub fn settle(page: &Page, rewritten: &str) -> String {
    keep(&page.file, &page.text, rewritten)
}

/// The same for any file.
pub fn keep(file: &Path, text: &str, rewritten: &str) -> String {
    if rewritten == text {
        return String::new();
    }
    if std::env::var_os("CUEBOOK_BLESS").is_some() {
        std::fs::write(file, rewritten).unwrap();
        return String::new();
    }
    let shown: String = transcript::diff(text, rewritten)
        .lines()
        .filter(|line| !line.starts_with("  "))
        .map(|line| format!("{line}\n"))
        .collect();
    format!("\n{} is not as it must be (+; CUEBOOK_BLESS=1 rewrites it):\n{shown}", file.display())
}
