//! promptfoo with the same template and rows, and its provider `echo`, which answers with the prompt.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value as Json;

use super::batch::{TEMPLATE, data, timed};
use super::load;
use crate::growth::Project;
use crate::place;

const VERSION: &str = "0.123.1";
/// It needs Node 22, which many systems do not have.
const NODE: &str = "22.23.3";
/// How many rows it works on at once; its own default.
const CONCURRENCY: &str = "4";
const CONFIG: &str = "prompts: [file://prompt.txt]\nproviders: [echo]\ntests: file://peer.csv\n";

/// Measures so many rows: it takes longer for a row, so it gets fewer.
pub fn run(project: &Project, rows: usize) -> Result<(), Box<dyn Error>> {
    let (node, program) = program()?;
    project.write("peer.csv", data(rows))?;
    project.write("prompt.txt", TEMPLATE)?;
    project.write("promptfooconfig.yaml", CONFIG)?;
    let root = project.root();
    let peer = |data: &str| {
        fs::write(root.join("promptfooconfig.yaml"), CONFIG.replace("peer.csv", data))?;
        let mut command = Command::new(&node);
        command.arg(&program).args([
            "eval",
            "-c",
            "promptfooconfig.yaml",
            "-o",
            "peer.json",
            "-j",
            CONCURRENCY,
        ]);
        command.args(["--no-cache", "--no-table", "--no-progress-bar", "--no-write"]);
        command.current_dir(&root).stdout(Stdio::null());
        // It sends nothing to its makers, and keeps nothing outside of the project.
        command.env("PROMPTFOO_DISABLE_TELEMETRY", "1").env("PROMPTFOO_DISABLE_UPDATE", "1");
        command.env("PROMPTFOO_CONFIG_DIR", root.join("promptfoo"));
        Ok::<_, std::io::Error>(command)
    };
    // One row says how long it takes to start.
    project.write("one.csv", data(1))?;
    let (start, _) = timed(peer("one.csv")?)?;
    let (seconds, memory) = timed(peer("peer.csv")?)?;
    same_texts(&root, rows)?;
    println!(
        "  promptfoo, echo, {CONCURRENCY} at once: {:>6.0} rows/s of {rows} rows, without the {start:.1} s that one row takes; {memory} KiB of memory  load {}",
        rows.saturating_sub(1) as f64 / (seconds - start).max(f64::EPSILON),
        load()
    );
    Ok(())
}

/// Installs it and its Node below the target folder, once.
fn program() -> Result<(PathBuf, PathBuf), Box<dyn Error>> {
    let folder = place::environment("promptfoo", VERSION)?;
    fs::create_dir_all(&folder)?;
    let package = folder.join("node_modules/promptfoo");
    let manifest = |name: &str| -> Option<String> {
        let manifest = fs::read_to_string(package.join("package.json")).ok()?;
        let manifest: Json = serde_json::from_str(&manifest).ok()?;
        let value = if name == "bin" { &manifest["bin"]["promptfoo"] } else { &manifest[name] };
        value.as_str().map(str::to_owned)
    };
    if manifest("version").as_deref() != Some(VERSION) {
        fs::write(folder.join("package.json"), "{\"private\": true}\n")?;
        let words = ["install", "--silent", "--no-audit", "--no-fund", "--save-exact"];
        let mut install = Command::new("npm");
        install
            .args(words)
            .args([format!("promptfoo@{VERSION}"), format!("node@{NODE}")])
            .current_dir(&folder);
        if !install.status()?.success() {
            return Err("npm did not install it".into());
        }
    }
    let bin = manifest("bin").ok_or("its package names no program")?;
    Ok((folder.join("node_modules/node/bin/node"), package.join(bin)))
}

/// Only equal texts may be compared. It has its own order, and cuts the ends of prompts off.
fn same_texts(folder: &Path, rows: usize) -> Result<(), Box<dyn Error>> {
    let found: Json = serde_json::from_str(&fs::read_to_string(folder.join("peer.json"))?)?;
    let results = found["results"]["results"].as_array().ok_or("its output has no results")?;
    let mut theirs = BTreeMap::new();
    for result in results {
        let text = result["response"]["output"].as_str().ok_or("a result has no text")?;
        theirs.insert(result["vars"]["id"].to_string().trim_matches('"').to_owned(), text.trim().to_owned());
    }
    if theirs.len() != rows {
        return Err(format!("{} results of {rows} rows", theirs.len()).into());
    }
    let ours = fs::read_to_string(folder.join("ours.jsonl"))?;
    for line in ours.lines().take(rows) {
        let line: Json = serde_json::from_str(line)?;
        let (id, text) = (line["id"].as_str().unwrap_or_default(), line["text"].as_str().unwrap_or_default());
        if theirs.get(id).map(String::as_str) != Some(text.trim()) {
            return Err(format!("row {id} differs: {text:?} and {:?}", theirs.get(id)).into());
        }
    }
    Ok(())
}
