//! Warm renders: when a book looks for changes, and how many system calls a look takes.
#![allow(clippy::unwrap_used, reason = "what fails here fails the test")]

#[path = "../../skip.rs"]
mod skip;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use cuebook::items::Spaces;
use cuebook::{Book, Freshness};

/// A project whose prompt `p` has three includes, and whose files are old enough for their times to be trusted.
fn project() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let include = |name: &str| format!("{{% include 'partials/{name}.md' %}}");
    put(folder.path(), "prompts/p/template.md", &["a", "b", "c"].map(include).join(" "));
    for name in ["a", "b", "c"] {
        put(folder.path(), &format!("prompts/partials/{name}.md"), name);
    }
    std::fs::create_dir_all(folder.path().join("home/.ai")).unwrap();
    std::thread::sleep(Duration::from_millis(50));
    folder
}

fn put(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

fn book(folder: &Path) -> Book {
    Book::open(folder).with_spaces(Spaces::new(folder, Some(&folder.join("home"))))
}

fn text(book: &Book) -> String {
    book.prompt("p").render().unwrap().into_text()
}

#[test]
fn a_manual_book_sees_changes_after_refresh_only() {
    let folder = project();
    let book = book(folder.path()).with_freshness(Freshness::Manual);
    assert_eq!(text(&book), "a b c");
    put(folder.path(), "prompts/partials/b.md", "B");
    assert_eq!(text(&book), "a b c");
    book.refresh();
    assert_eq!(text(&book), "a B c");
}

#[test]
fn a_book_with_an_interval_looks_when_it_has_passed() {
    let folder = project();
    let long = book(folder.path()).with_freshness(Freshness::AtMostEvery(Duration::from_secs(3600)));
    let short = book(folder.path()).with_freshness(Freshness::AtMostEvery(Duration::from_millis(1)));
    assert_eq!((text(&long), text(&short)), ("a b c".into(), "a b c".into()));
    put(folder.path(), "prompts/partials/b.md", "B");
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!((text(&long), text(&short)), ("a b c".into(), "a B c".into()));
    long.refresh();
    assert_eq!(text(&long), "a B c");
}

/// Every way in which a file that is not there yet can change a warm prompt.
#[test]
fn new_files_and_folders_count_at_the_next_render() {
    let news: [(&str, &str, Option<&str>); 8] = [
        ("prompts/p/template.en.md", "english", Some("english")),
        ("prompts/partials/a.en.md", "EN", Some("EN b c")),
        ("user_data/shared/prompts/partials/b.md", "shared", Some("a shared c")),
        ("prompts/p.prompty", "other", None),
        ("prompts/p/p.prompty", "other", None),
        ("user_data/packs/x/prompts/p/template.md", "pack", None),
        ("ecosystem/default/prompts/p/template.md", "ecosystem", None),
        ("home/.ai/directives/p.md", "x", None),
    ];
    for (path, content, expected) in news {
        let folder = project();
        let book = book(folder.path());
        for _ in 0..3 {
            assert_eq!(text(&book), "a b c");
        }
        put(folder.path(), path, content);
        let rendered = book.prompt("p").render().map(|rendered| rendered.into_text());
        match expected {
            Some(expected) => assert_eq!(rendered.unwrap(), expected, "{path}"),
            None => assert_eq!(rendered.unwrap_err().code(), cuebook::Code::PromptConflict, "{path}"),
        }
    }
}

const RENDERS: &str = "CUEBOOK_TEST_RENDERS";

/// Renders as often as the variable says, for the test below; otherwise it has nothing to do but render once.
#[test]
fn renders_as_often_as_the_test_below_says() {
    let renders = std::env::var(RENDERS).map_or(1, |text| text.parse().unwrap());
    let folder = project();
    let book = book(folder.path());
    for _ in 0..renders {
        assert_eq!(text(&book), "a b c");
    }
}

/// System calls of a process that renders so often.
fn calls(renders: usize) -> usize {
    let report = tempfile::NamedTempFile::new().unwrap();
    let status = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(report.path())
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "renders_as_often_as_the_test_below_says", "--test-threads=1"])
        .env(RENDERS, renders.to_string())
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    std::fs::read_to_string(report.path()).unwrap().lines().count()
}

#[test]
fn a_warm_render_takes_at_most_twelve_system_calls() {
    if Command::new("strace").args(["-o", "/dev/null", "true"]).status().is_ok_and(|status| status.success())
    {
        let (few, many) = (calls(10), calls(1_010));
        let each = (many - few) as f64 / 1_000.0;
        assert!(each > 1.0, "files are looked at: {each}");
        assert!(each <= 12.0, "{each} system calls");
        eprintln!("{each} system calls for a warm render");
    } else {
        skip::missing_peer("strace counts system calls");
    }
}
