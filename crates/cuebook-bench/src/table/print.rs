//! The table as text: Markdown whose columns are aligned, so that a terminal and a page show the same.

use std::fmt;

use super::{Outcome, Row, Table, Verdict};

/// A cell of a peer that does not do what the row says.
const NOTHING: &str = "–";
/// A cell of one that could not be measured; the reason stands below the table.
const MISSING: &str = "missing";

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = self.columns();
        let head = ["", "cuebook"].into_iter().chain(columns.iter().copied()).chain(["floor", "targets"]);
        let mut lines: Vec<Vec<String>> = vec![head.map(str::to_owned).collect()];
        for row in &self.rows {
            lines.push(cells(row, &columns));
        }
        print_lines(f, &lines)?;
        self.below(f)
    }
}

fn cells(row: &Row, columns: &[&str]) -> Vec<String> {
    let figure = |outcome: &Outcome| match outcome {
        Ok(value) => row.unit.show(*value),
        Err(_) => MISSING.to_owned(),
    };
    let mut cells = vec![row.name.clone(), figure(&row.ours)];
    for column in columns {
        let peer = row.peers.iter().find(|peer| peer.name == *column);
        cells.push(peer.map_or(NOTHING.to_owned(), |peer| figure(&peer.outcome)));
    }
    cells.push(row.floor.as_ref().map_or(NOTHING.to_owned(), |floor| figure(&floor.outcome)));
    let targets = row.targets.iter().map(|target| {
        let verdict = target.verdict(row);
        match &verdict {
            Verdict::Open(because) => format!("{target}: open ({because})"),
            decided => format!("{target}: {}, {}", decided.because(), decided.word()),
        }
    });
    cells.push(targets.collect::<Vec<_>>().join("; "));
    cells
}

fn print_lines(f: &mut fmt::Formatter<'_>, lines: &[Vec<String>]) -> fmt::Result {
    let count = lines.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = lines.iter().filter_map(|line| line.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or_default().max(3)
    };
    let widths: Vec<usize> = (0..count).map(width).collect();
    // Figures end together; names and targets begin together.
    let is_text = |column: usize| column == 0 || column + 1 == count;
    for (number, line) in lines.iter().enumerate() {
        for (column, (cell, width)) in line.iter().zip(&widths).enumerate() {
            let pad = " ".repeat(width - cell.chars().count().min(*width));
            if is_text(column) { write!(f, "| {cell}{pad} ")? } else { write!(f, "| {pad}{cell} ")? }
        }
        writeln!(f, "|")?;
        if number == 0 {
            for (column, width) in widths.iter().enumerate() {
                let dashes = "-".repeat(width - 1);
                if is_text(column) { write!(f, "| {dashes}- ")? } else { write!(f, "| {dashes}: ")? }
            }
            writeln!(f, "|")?;
        }
    }
    Ok(())
}

impl Table {
    /// What the figures are, which versions made them, and who is missing.
    fn below(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut versions: Vec<String> = Vec::new();
        for peer in self.rows.iter().flat_map(|row| &row.peers) {
            if !versions.contains(&peer.title()) {
                versions.push(peer.title());
            }
        }
        let about: Vec<String> = self.about.iter().map(|(name, value)| format!("{name} {value}")).collect();
        writeln!(f, "\n{}", about.join("; "))?;
        writeln!(f, "peers: {}", versions.join(", "))?;
        let verdicts: Vec<Verdict> = self.rows.iter().flat_map(Row::verdicts).collect();
        let count = |word: &str| verdicts.iter().filter(|verdict| verdict.word() == word).count();
        let all = verdicts.len();
        writeln!(
            f,
            "targets: {} of {all} met, {} missed, {} open",
            count("met"),
            count("missed"),
            count("open")
        )?;
        writeln!(f)?;
        for row in &self.rows {
            let floor =
                row.floor.as_ref().map(|floor| format!(" Floor: {}.", floor.what)).unwrap_or_default();
            writeln!(f, "- {}: {}.{floor}", row.name, row.what)?;
            for peer in row.peers.iter().filter(|peer| !peer.note.is_empty()) {
                writeln!(f, "  - {}: {}", peer.name, peer.note)?;
            }
        }
        let missing = self.missing();
        if !missing.is_empty() {
            writeln!(f, "\nmissing:")?;
        }
        for (who, why, rows) in missing {
            // It may have come from another program, and goes to a terminal.
            let why = why.replace(char::is_control, " ");
            writeln!(f, "- {who}: {why} ({})", rows.join(", "))?;
        }
        Ok(())
    }

    /// Who is missing and why, with the names of the rows, each reason once.
    fn missing(&self) -> Vec<(String, &str, Vec<&str>)> {
        let mut missing: Vec<(String, &str, Vec<&str>)> = Vec::new();
        for row in &self.rows {
            let peers = row.peers.iter().map(|peer| (peer.title(), &peer.outcome));
            let floor = row.floor.iter().map(|floor| ("floor".to_owned(), &floor.outcome));
            for (who, outcome) in [("cuebook".to_owned(), &row.ours)].into_iter().chain(peers).chain(floor) {
                let Err(why) = outcome else { continue };
                match missing.iter_mut().find(|(name, reason, _)| *name == who && reason == why) {
                    Some((_, _, rows)) => rows.push(&row.name),
                    None => missing.push((who, why, vec![&row.name])),
                }
            }
        }
        missing
    }
}
