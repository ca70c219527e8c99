//! `cuebook-bench publish`: measures, stores the results in the repository, and writes the page of the book.
//!
//! `publish` alone measures everything; names after it choose tables. This is the only way that figures get onto the page.

use std::error::Error;
use std::fs;
use std::process::Command;

use crate::race::say;
use crate::rows::{self, about};
use crate::{page, place};

/// The one table, among the names on the command line.
const TABLE: &str = "table";

/// Measures the tables that are named, or all of them, and writes the page. A table that fails leaves its stored result unchanged.
pub fn run() -> Result<(), Box<dyn Error>> {
    let named: Vec<String> = std::env::args().skip(2).collect();
    let known = || std::iter::once(TABLE).chain(page::DETAILS.iter().map(|(name, _)| *name));
    if let Some(unknown) = named.iter().find(|name| known().all(|known| known != name.as_str())) {
        let names: Vec<&str> = known().collect();
        return Err(format!("no table `{unknown}`; choose from {}", names.join(", ")).into());
    }
    let is_chosen = |name: &str| named.is_empty() || named.iter().any(|chosen| chosen == name);
    let stored = page::stored();
    fs::create_dir_all(&stored)?;
    let mut failed = Vec::new();
    if is_chosen(TABLE) {
        rows::run()?;
        fs::copy(place::results()?.join("table.json"), stored.join("table.json"))?;
    }
    for (name, _) in page::DETAILS.iter().filter(|(name, _)| is_chosen(name)) {
        say(&format!("measuring {name}"));
        match detail(name) {
            Ok(text) => fs::write(stored.join(format!("{name}.txt")), text)?,
            Err(why) => failed.push(format!("{name}: {why}")),
        }
    }
    page::run()?;
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ").into()) }
}

/// A table with details as this program prints it, below a line that says where the figures come from.
fn detail(name: &str) -> Result<String, Box<dyn Error>> {
    let output = Command::new(std::env::current_exe()?).arg(name).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).trim().to_owned().into());
    }
    let about: Vec<String> = about().into_iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let printed = String::from_utf8(output.stdout)?;
    Ok(format!("{}\n\n{}\n", about.join("; "), printed.trim()))
}
