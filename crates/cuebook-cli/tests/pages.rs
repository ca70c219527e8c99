//! The pages of the error codes, each of which shows a project in which the code really appears; and those on topics.

mod support;

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuebook::{Book, Code};
use support::{Project, python_or_skip, transcript};

/// Codes whose situation cannot be brought about in a test that runs everywhere, and why.
const WITHOUT_EXAMPLE: &[(&str, &str)] = &[
    (
        "CB409",
        "the kernel must offer less than this one does; `cuebook-hooks` tests it with protections left out",
    ),
    (
        "CB509",
        "a run opens the section instead of failing; programs see it, and the engine's own tests show it",
    ),
    ("CB514", "the engines that the command has do not let it happen; the engine's own tests show it"),
    ("CB807", "it takes hundreds of requests at once; the tests of `cuebook-serve` show it"),
    ("CB904", "it takes two processes at once; the tests of `cuebook batch` show it"),
    ("CB607", "a run asks again, and says CB725 then; programs see it, and the engine's own tests show it"),
];

/// Codes whose sessions run Python.
const NEEDS_PYTHON: [&str; 11] =
    ["CB709", "CB714", "CB207", "CB410", "CB411", "CB412", "CB413", "CB414", "CB801", "CB805", "CB806"];

fn is_excused(code: Code) -> bool {
    WITHOUT_EXAMPLE.iter().any(|(without, _)| *without == code.as_str())
}

fn page(code: Code) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../cuebook-text/src/error/pages");
    PathBuf::from(folder).join(format!("{code}.md"))
}

#[test]
fn every_page_shows_its_code_in_a_session_that_is_true() {
    let python = python_or_skip().is_some();
    let next = AtomicUsize::new(0);
    let wrong = Mutex::new(Vec::new());
    let look = || {
        while let Some(code) = Code::ALL.get(next.fetch_add(1, Ordering::Relaxed)) {
            if !python && NEEDS_PYTHON.contains(&code.as_str()) {
                continue;
            }
            // A page that is wrong panics with its difference; the others are looked at all the same.
            let problem = match std::panic::catch_unwind(|| transcript::run_file(&page(*code))) {
                Err(_) => "see above",
                Ok(printed) => match (printed.contains(&format!("[{code}]")), is_excused(*code)) {
                    (false, false) => "its session does not bring it about",
                    (true, true) => "has an example, so it needs no excuse",
                    _ => continue,
                },
            };
            wrong.lock().unwrap().push(format!("{code}: {problem}"));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(look);
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_page_on_convert_is_true_and_short() {
    topic("convert.md", 260);
}

#[test]
fn the_page_on_diff_is_true_and_short() {
    topic("diff.md", 200);
}

#[test]
fn the_page_on_includes_is_true() {
    topic("includes.md", 160);
}

#[test]
fn the_page_on_explain_is_true_and_short() {
    topic("explain.md", 200);
}

#[test]
fn the_page_on_hooks_is_true_and_short() {
    let Some(()) = python_or_skip() else { return };
    topic("hooks.md", 150);
}

#[test]
fn the_page_on_mcp_is_true_and_short() {
    topic("mcp.md", 160);
}

#[test]
fn the_page_on_prompty_files_is_true_and_short() {
    topic("prompty.md", 200);
}

#[test]
fn the_page_on_sections_is_true_and_short() {
    topic("sections.md", 260);
}

#[test]
fn the_page_on_batch_is_true_and_short() {
    topic("batch.md", 280);
}

#[test]
fn the_page_on_testing_is_true_and_short() {
    topic("testing.md", 240);
}

#[test]
fn the_page_on_threads_is_true_and_short() {
    topic("threads.md", 355);
}

#[test]
fn the_page_on_tokens_is_true_and_short() {
    topic("tokens.md", 200);
}

#[test]
fn the_page_on_tools_is_true_and_short() {
    topic("tools.md", 180);
}

#[test]
fn the_page_on_trust_is_true_and_short() {
    topic("trust.md", 200);
}

#[test]
fn the_page_on_directives_is_true_and_short() {
    topic("directives.md", 200);
}

fn topic(file: &str, most_lines: usize) {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/topics")).join(file);
    transcript::run_file(&path);
    let text = std::fs::read_to_string(path).expect("a topic");
    assert!(text.lines().count() <= most_lines, "{file}: {} lines", text.lines().count());
    for line in text.split("```").step_by(2).flat_map(str::lines) {
        // A row of a table cannot be broken.
        assert!(line.chars().count() <= 120 || line.starts_with('|'), "{line}");
    }
}

#[test]
fn pack_code_that_changes_during_review_is_refused() {
    let project = Project::new();
    project.write("user_data/packs/polite/pack.json", r#"{"pack_id": "polite", "prompts": ["greeting"]}"#);
    project.write("user_data/packs/polite/prompts/greeting/prompt.py", "TEMPLATE = 'Good day.'\n");
    let book = Book::open(project.path());
    let (_, shown) = book.library().pack_code("polite").unwrap();
    project.write("user_data/packs/polite/prompts/greeting/prompt.py", "TEMPLATE = 'Go away.'\n");
    let error = book.library().approve_pack("polite", &shown).unwrap_err();
    assert_eq!(error.code(), Code::ApprovalRequired);
    assert_eq!(error.diagnostic().message, "the pack `polite` changed while Cuebook read it");
}

#[test]
fn every_page_has_its_three_parts_and_is_short() {
    for code in Code::ALL {
        let text = std::fs::read_to_string(page(*code)).unwrap();
        let example = text.find("\n## Example\n").unwrap_or_else(|| panic!("{code} has no example"));
        let ways = text.find("\n## What to do\n").unwrap_or_else(|| panic!("{code} does not say what to do"));
        assert!(example < ways, "{code}: the example comes before what to do");
        assert!(text[ways..].contains("\n- "), "{code}: what to do is a list of ways");
        assert!(text.lines().count() <= 70, "{code}: a page is read in a minute");
        let prose = text.split("```").step_by(2).flat_map(str::lines);
        for line in prose {
            assert!(line.chars().count() <= 120, "{code}: {line}");
        }
    }
}

#[test]
fn every_file_among_the_pages_belongs_to_a_code() {
    let folder = page(Code::ALL[0]).parent().unwrap().to_owned();
    let mut found: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    found.sort();
    let wanted: Vec<String> = Code::ALL.iter().map(|code| format!("{code}.md")).collect();
    assert_eq!(found, wanted);
}
