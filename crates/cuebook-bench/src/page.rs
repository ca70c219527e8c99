//! The page of the book on benchmarks: `cuebook-bench page` writes it from the figures in `results/`.
//!
//! `table.json` is the one table as a run wrote it; `NAME.txt` is what `cuebook-bench NAME` printed. `cuebook-bench publish` writes
//! these files, and nothing else does. A peer that is faster is listed with the reason from its note. A faster peer without a note is an
//! error.

use std::collections::BTreeMap;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use serde::Deserialize;

use crate::place;
use crate::table::{Unit, digits};

/// The tables with details, and their headings on the page.
pub const DETAILS: [(&str, &str); 10] = [
    ("attribution", "Rendering with origins"),
    ("templates", "The template engine alone"),
    ("warm", "Warm renders"),
    ("hooks", "Hooks"),
    ("sections", "Sections"),
    ("execute", "Execute items"),
    ("serve", "MCP"),
    ("trust", "Signatures and search"),
    ("threads", "Threads"),
    ("lsp", "Language server"),
];

const PAGE: &str = "docs/src/reference/benchmarks.md";
const RESULTS: &str = "crates/cuebook-bench/results";
const INTRODUCTION: &str = include_str!("page/introduction.md");
/// A cell for something that a peer does not do.
const NOTHING: &str = "–";
const MISSING: &str = "missing";

#[derive(Deserialize)]
struct Stored {
    about: BTreeMap<String, String>,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    what: String,
    unit: String,
    ours: Figure,
    peers: Vec<Peer>,
    floor: Option<Floor>,
}

#[derive(Deserialize)]
struct Figure {
    value: Option<f64>,
}

#[derive(Deserialize)]
struct Peer {
    name: String,
    version: String,
    note: String,
    value: Option<f64>,
}

#[derive(Deserialize)]
struct Floor {
    what: String,
    value: Option<f64>,
}

/// Where results are stored in the repository.
pub fn stored() -> PathBuf {
    place::workspace().join(RESULTS)
}

/// The page from the stored results.
fn from_stored() -> Result<String, Box<dyn Error>> {
    let read = |name: &str| fs::read_to_string(stored().join(name));
    let table = read("table.json").map_err(|error| format!("{RESULTS}/table.json: {error}"))?;
    let mut details = Vec::new();
    for (name, title) in DETAILS {
        details.extend(read(&format!("{name}.txt")).ok().map(|text| (name, title, text)));
    }
    page(&table, &details)
}

/// Writes the page.
pub fn run() -> Result<(), Box<dyn Error>> {
    let path = place::workspace().join(PAGE);
    fs::write(&path, from_stored()?).map_err(|error| format!("{PAGE}: {error}"))?;
    println!("wrote {PAGE}");
    Ok(())
}

fn page(table: &str, details: &[(&str, &str, String)]) -> Result<String, Box<dyn Error>> {
    let stored: Stored = serde_json::from_str(table)?;
    let mut text = INTRODUCTION.to_owned();
    one_table(&mut text, &stored)?;
    about(&mut text, &stored)?;
    faster_peers(&mut text, &stored)?;
    measured(&mut text, &stored)?;
    for (name, title, printed) in details {
        let (about, printed) = printed.split_once("\n\n").unwrap_or(("", printed));
        write!(
            text,
            "\n## {title}\n\n`cuebook-bench {name}` ({about}):\n\n```text\n{}\n```\n",
            printed.trim_end()
        )?;
    }
    Ok(text)
}

fn one_table(text: &mut String, stored: &Stored) -> Result<(), Box<dyn Error>> {
    let columns = columns(stored);
    let names = ["", "Cuebook"].into_iter().chain(columns.iter().copied()).chain(["floor"]);
    let head: Vec<String> = names.map(str::to_owned).collect();
    let mut rows = Vec::new();
    for row in &stored.rows {
        let unit = row.unit()?;
        let show = |value: Option<f64>| value.map_or(MISSING.to_owned(), |value| unit.show(value));
        let mut cells = vec![row.name.clone(), show(row.ours.value)];
        for column in &columns {
            let peer = row.peers.iter().find(|peer| peer.name == *column);
            cells.push(peer.map_or(NOTHING.to_owned(), |peer| show(peer.value)));
        }
        cells.push(row.floor.as_ref().map_or(NOTHING.to_owned(), |floor| show(floor.value)));
        rows.push(cells);
    }
    write!(text, "\n## All figures\n\n")?;
    Ok(table_of(text, &head, &rows)?)
}

/// The peers in the order in which they appear, each once.
fn columns(stored: &Stored) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for peer in stored.rows.iter().flat_map(|row| &row.peers) {
        if !names.contains(&peer.name.as_str()) {
            names.push(&peer.name);
        }
    }
    names
}

fn about(text: &mut String, stored: &Stored) -> std::fmt::Result {
    let mut versions: Vec<String> = Vec::new();
    for peer in stored.rows.iter().flat_map(|row| &row.peers) {
        let version = format!("{} {}", peer.name, peer.version);
        if !versions.contains(&version) {
            versions.push(version);
        }
    }
    let facts: Vec<String> = stored.about.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    write!(text, "\n{}.\n\nPeers: {}.\n", facts.join("; "), versions.join(", "))
}

fn faster_peers(text: &mut String, stored: &Stored) -> Result<(), Box<dyn Error>> {
    write!(text, "\n## Where a peer is faster\n\n")?;
    for row in &stored.rows {
        let (Some(ours), unit) = (row.ours.value, row.unit()?) else { continue };
        for peer in &row.peers {
            let Some(theirs) = peer.value.filter(|theirs| *theirs < ours) else { continue };
            if peer.note.is_empty() {
                return Err(
                    format!("{}: {} is faster, and its note gives no reason", row.name, peer.name).into()
                );
            }
            writeln!(
                text,
                "- **{}**: {} needs {}, Cuebook {} ({} times as much). Reason: {}.",
                row.name,
                peer.name,
                unit.show(theirs),
                unit.show(ours),
                digits(ours / theirs),
                peer.note
            )?;
        }
    }
    Ok(())
}

fn measured(text: &mut String, stored: &Stored) -> std::fmt::Result {
    write!(text, "\n## What each row measures\n\n")?;
    for row in &stored.rows {
        let floor = row.floor.as_ref().map(|floor| format!(" Floor: {}.", floor.what)).unwrap_or_default();
        writeln!(text, "- **{}**: {}.{floor}", row.name, row.what)?;
        for peer in row.peers.iter().filter(|peer| !peer.note.is_empty()) {
            writeln!(text, "  - {}: {}", peer.name, peer.note)?;
        }
    }
    Ok(())
}

fn table_of(text: &mut String, head: &[String], rows: &[Vec<String>]) -> std::fmt::Result {
    let line = |cells: &[String]| format!("| {} |", cells.join(" | "));
    writeln!(text, "{}", line(head))?;
    let marks = head.iter().enumerate().map(|(column, _)| if column == 0 { "---" } else { "---:" });
    writeln!(text, "| {} |", marks.collect::<Vec<_>>().join(" | "))?;
    rows.iter().try_for_each(|row| writeln!(text, "{}", line(row)))
}

impl Row {
    fn unit(&self) -> Result<Unit, String> {
        let unit = [Unit::Time, Unit::Memory].into_iter().find(|unit| unit.name() == self.unit);
        unit.ok_or_else(|| format!("{}: unknown unit `{}`", self.name, self.unit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_of_the_book_is_written_from_the_stored_results() {
        if std::env::var_os("CUEBOOK_BLESS").is_some() {
            run().unwrap();
        }
        let written = fs::read_to_string(place::workspace().join(PAGE)).unwrap();
        let expected = from_stored().unwrap();
        assert!(written == expected, "{PAGE} is stale: run `cargo run -p cuebook-bench page`");
    }

    #[test]
    fn a_faster_peer_is_listed_with_its_reason() {
        let text = page(&table(90.0, "a bare engine"), &[]).unwrap();
        let line =
            "- **row**: peer needs 90.0 ns, Cuebook 100 ns (1.11 times as much). Reason: a bare engine.\n";
        assert!(text.contains(line), "{text}");
        let slower = page(&table(110.0, "a bare engine"), &[]).unwrap();
        assert!(!slower.contains("- **row**: peer needs"), "{slower}");
    }

    #[test]
    fn a_faster_peer_without_a_reason_is_an_error() {
        let error = page(&table(90.0, ""), &[]).unwrap_err().to_string();
        assert_eq!(error, "row: peer is faster, and its note gives no reason");
    }

    #[test]
    fn a_detailed_table_is_shown_as_it_was_printed() {
        let printed = "commit: abc of 2026-01-02; rounds: 800\n\nhooks: a render\n  warm  1 ns\n".to_owned();
        let text = page(&table(110.0, ""), &[("hooks", "Hooks", printed)]).unwrap();
        let wanted = "\n## Hooks\n\n`cuebook-bench hooks` (commit: abc of 2026-01-02; rounds: 800):\n\n```text\nhooks: a render\n  warm  1 ns\n```\n";
        assert!(text.ends_with(wanted), "{text}");
    }

    #[test]
    fn the_page_claims_no_lead() {
        let text = from_stored().unwrap().to_lowercase();
        let words: Vec<&str> = text.split(|letter: char| !letter.is_alphanumeric()).collect();
        for claim in ["ahead", "beats", "fastest", "met"] {
            assert!(!words.contains(&claim), "the page says `{claim}`");
        }
    }

    fn table(theirs: f64, note: &str) -> String {
        let peer = serde_json::json!({"name": "peer", "version": "1", "note": note, "value": theirs});
        let ours = serde_json::json!({"value": 100.0});
        let row = serde_json::json!({"name": "row", "what": "a row", "unit": "nanoseconds", "ours": ours, "peers": [peer]});
        serde_json::json!({"about": {}, "rows": [row]}).to_string()
    }
}
