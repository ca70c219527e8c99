//! The scoreboard: how many cases of others pass, in one list. It prints the list and writes it into the page of the book.
//!
//! The cases are run by the conformance suites of three crates, and each suite prints what came of its tables. This runs the
//! suites and puts their lines together; it counts nothing by itself, so it cannot say anything else than they do.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::process::{Command, Stdio};

use crate::place;

/// The crates that have a test called `conformance`.
const CRATES: [&str; 4] = ["cuebook", "cuebook-template", "cuebook-run", "cuebook-serve"];

/// The page, and the lines around the part of it that this program writes.
const PAGE: &str = "docs/src/reference/conformance.md";
const BEGIN: &str = "<!-- Written by cuebook-bench scoreboard -->";
const END: &str = "<!-- The end of what cuebook-bench scoreboard writes -->";

/// What the suites are, for people.
const TITLES: [(&str, &str); 8] = [
    ("prompty", "Prompty, official vectors and goldens"),
    ("prompty-files", "Prompty, files of other projects"),
    ("jinja2", "Jinja2, what the real package made"),
    ("prompts", "Prompts of other projects, with Jinja2"),
    ("mustache", "Mustache, the specification"),
    ("dotprompt", "Dotprompt, the specification"),
    ("wink", "WINK, what the real package made"),
    ("rye", "Rye, what the real code answered"),
];

/// Tables of cases that we wrote, which run in the same suites and measure no peer.
const OWN: &str = "own/";

/// Runs the suites and prints the board. It fails if a case did, if a suite did, and if there are no cases.
pub fn run() -> Result<(), Box<dyn Error>> {
    let mut board = Board::default();
    let mut broken = Vec::new();
    for name in CRATES {
        crate::race::say(&format!("the conformance suite of {name}"));
        let output = suite(name)?.stderr(Stdio::piped()).output()?;
        board.read(&String::from_utf8_lossy(&output.stdout));
        if !output.status.success() {
            broken.push(name);
            eprint!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        }
    }
    print!("{board}");
    if !broken.is_empty() {
        return Err(format!("the suite of {} failed", broken.join(" and of ")).into());
    }
    if board.tables.is_empty() {
        return Err("there are no cases: CUEBOOK_CONFORMANCE names the folder that holds them".into());
    }
    let path = place::workspace().join(PAGE);
    let page = std::fs::read_to_string(&path)?;
    std::fs::write(&path, with_board(&page, &board)?)?;
    println!("{PAGE} is written");
    Ok(())
}

/// The page with another board.
fn with_board(page: &str, board: &Board) -> Result<String, String> {
    let (before, rest) = page.split_once(BEGIN).ok_or_else(|| format!("{PAGE} has no line {BEGIN}"))?;
    let (_, after) = rest.split_once(END).ok_or_else(|| format!("{PAGE} has no line {END}"))?;
    Ok(format!("{before}{BEGIN}\n\n{}\n{END}{after}", board.page()))
}

fn suite(name: &str) -> Result<Command, String> {
    let mut cargo = place::cargo();
    cargo
        .args(["test", "--quiet", "-p", name, "--test", "conformance", "--target-dir"])
        .arg(place::target()?);
    cargo.args(["--", "--nocapture"]);
    Ok(cargo)
}

/// Lines of all suites, by suite and table.
#[derive(Default)]
struct Board {
    tables: BTreeMap<String, Counts>,
    /// Cases that differ on purpose, each with the reason.
    decided: Vec<String>,
    /// What a suite said besides: cases that it does not run, and why; suites without a folder.
    other: Vec<String>,
}

#[derive(Default, Clone, Copy, PartialEq, Eq, Debug)]
struct Counts {
    passed: usize,
    failed: usize,
    decided: usize,
    skipped: usize,
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.decided += other.decided;
        self.skipped += other.skipped;
    }

    /// Reads `15 passed, 0 failed, 0 decided, 0 skipped`.
    fn read(text: &str) -> Option<Counts> {
        let mut parts = text.trim().split(", ");
        let mut next = |word: &str| parts.next()?.strip_suffix(word)?.trim_end().parse().ok();
        let counts = Counts {
            passed: next("passed")?,
            failed: next("failed")?,
            decided: next("decided")?,
            skipped: next("skipped")?,
        };
        parts.next().is_none().then_some(counts)
    }
}

impl Board {
    /// Takes what a suite has printed; lines that are not about cases are the test runner's.
    fn read(&mut self, printed: &str) {
        for line in printed.lines() {
            // The runner writes dots for finished tests, and a line may follow them.
            let line = line.trim_start_matches('.').trim_start();
            let Some((table, rest)) = line.split_once(": ") else { continue };
            if table.starts_with(OWN) {
                self.other.push(format!("{line} (our own cases, not counted)"));
            } else if let Some(counts) = Counts::read(rest) {
                // Two crates may share a table: each runs the cases of its own stage.
                self.tables.entry(table.to_owned()).or_default().add(counts);
            } else if let Some(case) = rest.strip_prefix("decided: ") {
                self.decided.push(format!("{table}: {case}"));
            } else if rest.contains(" not run: ")
                || rest.starts_with("not compared: ")
                || rest.starts_with("skipped, ")
            {
                self.other.push(line.to_owned());
            }
        }
    }
}

impl Board {
    /// What the page says: a table of the suites, one of all tables, and what was not run.
    fn page(&self) -> String {
        const HEAD: &str =
            "| cases | passed | failed | decided | skipped |\n| --- | ---: | ---: | ---: | ---: |\n";
        let row = |name: &str, counts: Counts| {
            let Counts { passed, failed, decided, skipped } = counts;
            format!("| {name} | {passed} | {failed} | {decided} | {skipped} |\n")
        };
        let mut suites: BTreeMap<&str, Counts> = BTreeMap::new();
        let mut all = Counts::default();
        for (table, counts) in &self.tables {
            suites.entry(table.split('/').next().unwrap_or_default()).or_default().add(*counts);
            all.add(*counts);
        }
        let title = |suite: &str| {
            TITLES
                .iter()
                .find(|(name, _)| *name == suite)
                .map_or(suite.to_owned(), |(_, title)| (*title).to_owned())
        };
        let mut text = HEAD.to_owned();
        text.extend(suites.into_iter().map(|(suite, counts)| row(&title(suite), counts)));
        text.push_str(&row("all", all));
        text.push_str(concat!(
            "\nA *decided* case shows behaviour that Cuebook does not copy. The [differences](differences.md) give the reason. The case still ",
            "runs,\nand its result must differ. A *skipped* case is not run; the list below the second table has the reasons.\n",
            "\n## All suites\n\n",
        ));
        text.push_str(HEAD);
        text.extend(self.tables.iter().map(|(table, counts)| row(table, *counts)));
        if !self.decided.is_empty() {
            text.push_str("\nDecided cases of Jinja2, by name:\n\n");
            text.extend(self.decided.iter().map(|line| format!("- {line}\n")));
        }
        let other: Vec<&String> = self.other.iter().filter(|line| !line.starts_with(OWN)).collect();
        if !other.is_empty() {
            text.push_str("\nNot run, or not compared:\n\n");
            text.extend(other.into_iter().map(|line| format!("- {line}\n")));
        }
        text
    }
}

impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.tables.keys().map(|name| name.chars().count()).max().unwrap_or_default().max(12);
        let mut line = |name: &str, [passed, failed, decided, skipped]: [&str; 4]| {
            writeln!(f, "| {name:width$} | {passed:>6} | {failed:>6} | {decided:>7} | {skipped:>7} |")
        };
        line("cases", ["passed", "failed", "decided", "skipped"])?;
        line(&"-".repeat(width), ["-----:", "-----:", "------:", "------:"])?;
        let mut suites: BTreeMap<&str, Counts> = BTreeMap::new();
        let mut all = Counts::default();
        let row = |counts: Counts| {
            [counts.passed, counts.failed, counts.decided, counts.skipped].map(|count| count.to_string())
        };
        for (table, counts) in &self.tables {
            let shown = row(*counts);
            line(table, shown.each_ref().map(String::as_str))?;
            let suite = table.split('/').next().unwrap_or_default();
            suites.entry(suite).or_default().add(*counts);
            all.add(*counts);
        }
        for (name, counts) in suites.into_iter().chain([("all", all)]) {
            let shown = row(counts);
            line(&format!("**{name}**"), shown.each_ref().map(String::as_str))?;
        }
        writeln!(f)?;
        for other in &self.other {
            writeln!(f, "- {other}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_suites_are_added_up_and_everything_else_is_left() {
        let mut board = Board::default();
        board.read(
            "\nrunning 2 tests\nprompty/render: 15 passed, 0 failed, 1 decided, 0 skipped\n.rye/mcp: 7 passed, 2 failed, 4 decided, 3 skipped\n\
             rye/execute: 3 not run: the item is not with the case\ntest result: ok. 2 passed; 0 failed; 0 ignored\n",
        );
        board.read("own/agent: 9 passed, 0 failed, 0 decided, 0 skipped\nprompty/render: 5 passed, 0 failed, 0 decided, 0 skipped\nwink: skipped, because x does not exist (CUEBOOK_CONFORMANCE)\n");
        assert_eq!(board.tables["prompty/render"], Counts { passed: 20, failed: 0, decided: 1, skipped: 0 });
        assert_eq!(board.tables["rye/mcp"], Counts { passed: 7, failed: 2, decided: 4, skipped: 3 });
        assert_eq!(board.tables.len(), 2);
        let text = board.to_string();
        assert!(text.contains("| **prompty**    |     20 |      0 |       1 |       0 |\n"), "{text}");
        assert!(text.contains("| **all**        |     27 |      2 |       5 |       3 |\n"), "{text}");
        assert!(text.contains("- rye/execute: 3 not run: the item is not with the case\n"), "{text}");
        assert!(
            text.contains(
                "- own/agent: 9 passed, 0 failed, 0 decided, 0 skipped (our own cases, not counted)\n"
            ),
            "{text}"
        );
        assert!(text.contains("- wink: skipped, because"), "{text}");
    }

    #[test]
    fn the_page_of_the_book_takes_a_new_board() {
        let page = std::fs::read_to_string(place::workspace().join(PAGE)).unwrap();
        let mut board = Board::default();
        board.read(
            "rye/mcp: 7 passed, 0 failed, 4 decided, 3 skipped\nrye/mcp: 3 not run: there is a reason\n\
             jinja2: decided: a case [render]: a reason\n",
        );
        let new = with_board(&page, &board).unwrap();
        assert!(new.contains("| Rye, what the real code answered | 7 | 0 | 4 | 3 |\n"), "{new}");
        assert!(
            new.contains(
                "| rye/mcp | 7 | 0 | 4 | 3 |\n\nDecided cases of Jinja2, by name:\n\n- jinja2: a case [render]: a reason\n\n\
                 Not run, or not compared:\n\n- rye/mcp: 3 not run"
            ),
            "{new}"
        );
        assert!(new.ends_with(page.split_once(END).unwrap().1) && !new.contains("| wink/keys |"), "{new}");
        assert_eq!(with_board(&new, &board).unwrap(), new);
    }

    #[test]
    fn text_that_resembles_counts_is_not_a_count() {
        for text in [
            "15 passed, 0 failed, 0 decided",
            "15 passed, 0 failed, 0 decided, 0 skipped, 1 more",
            "x passed, 0 failed, 0 decided, 0 skipped",
            "",
        ] {
            assert_eq!(Counts::read(text), None, "{text}");
        }
    }
}
