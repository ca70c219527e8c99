//! Rows of a data file: `cuebook batch` on one and two cores, next to pandas with Jinja2, and the memory of two sizes.

use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use serde_json::Value as Json;

use super::{load, promptfoo};
use crate::growth::Project;
use crate::python::Packages;
use crate::{measure, place};

/// The most rows that promptfoo gets: it takes longer for each.
const PEER_ROWS: usize = 5_000;
/// The same template for all.
pub const TEMPLATE: &str = "You answer tickets of {{ shop }}.\n\nTicket {{ id }} from {{ name|title }}:\n{{ ticket }}\n\n\
{% if urgent == \"yes\" %}Answer today.{% else %}Answer within {{ days }} days.{% endif %}\n";

const PEER: &str = include_str!("pandas.py");

const PACKAGES: Packages = Packages {
    exact: &[("pandas", "2.3.3"), ("jinja2", crate::peers::JINJA2_VERSION)],
    also: &[],
    minor: 11,
};

/// Measures so many rows, and the memory also of a tenth of them.
pub fn run(rows: usize) -> Result<(), Box<dyn Error>> {
    let program = place::program()?;
    let project = Project::new(&program)?;
    project.write("prompts/ticket/template.md", TEMPLATE)?;
    let few = rows.div_ceil(10);
    project.write("few.csv", data(few))?;
    project.write("rows.csv", data(rows))?;
    println!("batch: rows per second, whole processes, {rows} rows of CSV to JSON lines");
    for cores in [1, 2] {
        let cuebook = |data: &str| {
            let words = ["batch", "ticket", data, "--out", "ours.jsonl", "--threads"].map(str::to_owned);
            let command = project.cuebook(&[&words[..], &[cores.to_string()]].concat());
            pinned(command, cores)
        };
        let (seconds, memory) = best(|| cuebook("rows.csv"))?;
        let (_, memory_of_few) = timed(cuebook("few.csv"))?;
        println!(
            "  cuebook batch, {cores} {}: {:>8.0} rows/s, {memory} KiB of memory ({memory_of_few} KiB for {few} rows)  load {}",
            if cores == 1 { "core " } else { "cores" },
            rows as f64 / seconds,
            load()
        );
    }
    // The last run of ours was of fewer rows.
    timed(project.cuebook(&["batch", "ticket", "rows.csv", "--out", "ours.jsonl"].map(str::to_owned)))?;
    if let Err(why) = promptfoo::run(&project, rows.div_ceil(100).min(PEER_ROWS)) {
        println!("  promptfoo: not measured: {why}");
    }
    let python = match PACKAGES.environment() {
        Ok(python) => python,
        Err(why) => {
            println!("  pandas + Jinja2: not measured: {why}");
            return Ok(());
        }
    };
    for cores in [1, 2] {
        let peer = || {
            let mut command = Command::new(&python);
            command.args(["-I", "-c", PEER, "rows.csv", "peer.jsonl", &cores.to_string()]);
            command.arg(project.root().join("prompts/ticket/template.md")).current_dir(project.root());
            pinned(command, cores)
        };
        let (seconds, memory) = best(peer)?;
        same_texts(&project.root())?;
        println!(
            "  pandas + Jinja2, {cores} {}: {:>6.0} rows/s, {memory} KiB of memory in its first process  load {}",
            if cores == 1 { "process  " } else { "processes" },
            rows as f64 / seconds,
            load()
        );
    }
    Ok(())
}

/// Measures the memory for many rows on one core. The data and the output are on disk for that time: about 400 bytes for a row.
pub fn large(rows: usize) -> Result<(), Box<dyn Error>> {
    let program = place::program()?;
    let project = Project::new(&program)?;
    project.write("prompts/ticket/template.md", TEMPLATE)?;
    let mut file = BufWriter::new(File::create(project.root().join("rows.csv"))?);
    write_data(&mut file, rows)?;
    file.flush()?;
    drop(file);
    let words = ["batch", "ticket", "rows.csv", "--out", "ours.jsonl", "--threads", "1"].map(str::to_owned);
    let (seconds, memory) = timed(pinned(project.cuebook(&words), 1))?;
    let found = BufReader::new(File::open(project.root().join("ours.jsonl"))?).lines().count();
    if found != rows {
        return Err(format!("{found} of {rows} rows were written").into());
    }
    println!(
        "  cuebook batch, 1 core,  {rows} rows: {:>8.0} rows/s, {memory} KiB of memory  load {}",
        rows as f64 / seconds,
        load()
    );
    Ok(())
}

/// Rows that look like tickets, the same each time.
pub fn data(rows: usize) -> String {
    let mut bytes = Vec::new();
    // A vector takes every byte.
    let _ = write_data(&mut bytes, rows);
    String::from_utf8(bytes).unwrap_or_default()
}

fn write_data(to: &mut impl Write, rows: usize) -> io::Result<()> {
    writeln!(to, "id,name,ticket,urgent,days,shop")?;
    for row in 0..rows {
        let urgent = if row % 3 == 0 { "yes" } else { "no" };
        let more = "The box was open and one cup was broken. ".repeat(row % 5);
        writeln!(
            to,
            "{row},ann miller {row},My order {row} came late. {more}Can you help?,{urgent},{},Tea & Cups",
            2 + row % 4
        )?;
    }
    Ok(())
}

/// The command on so many cores, where the system can do that.
fn pinned(command: Command, cores: usize) -> Command {
    let list = if cores == 1 { "0".to_owned() } else { format!("0-{}", cores - 1) };
    if Command::new("taskset").arg("-V").output().is_err() {
        return command;
    }
    let mut pinned = Command::new("taskset");
    pinned.args(["-c", &list]).arg(command.get_program()).args(command.get_args());
    pinned.env_clear().envs(std::env::vars_os());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => pinned.env(name, value),
            None => pinned.env_remove(name),
        };
    }
    if let Some(folder) = command.get_current_dir() {
        pinned.current_dir(folder);
    }
    pinned
}

/// The seconds of the fastest of some runs, and the memory of the largest.
fn best(command: impl Fn() -> Command) -> Result<(f64, u64), Box<dyn Error>> {
    let (mut seconds, mut memory) = (f64::MAX, 0);
    for _ in 0..measure::rounds().clamp(1, 3) {
        let run = timed(command())?;
        (seconds, memory) = (seconds.min(run.0), memory.max(run.1));
    }
    Ok((seconds, memory))
}

/// Runs a command: its seconds, and the most memory of it in KiB.
pub fn timed(command: Command) -> Result<(f64, u64), Box<dyn Error>> {
    let (began, mut command) = (Instant::now(), command);
    let mut child = command.stderr(std::process::Stdio::piped()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    // The system keeps the most that a process had until the process ends.
    let mut memory = 0;
    let status = loop {
        if let Ok(text) = fs::read_to_string(&status) {
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let size = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
            memory = memory.max(size.unwrap_or(0));
        }
        match child.try_wait()? {
            Some(status) => break status,
            None => std::thread::sleep(std::time::Duration::from_millis(2)),
        }
    };
    let seconds = began.elapsed().as_secs_f64();
    if !status.success() {
        let said = child.wait_with_output()?.stderr;
        return Err(format!("{command:?}: {}", String::from_utf8_lossy(&said)).into());
    }
    Ok((seconds, memory))
}

/// Only equal outputs may be compared.
fn same_texts(folder: &Path) -> Result<(), Box<dyn Error>> {
    let open = |name: &str| File::open(folder.join(name)).map(|file| BufReader::new(file).lines());
    let (mut ours, mut theirs, mut row) = (open("ours.jsonl")?, open("peer.jsonl")?, 0);
    loop {
        row += 1;
        let text = |line: Option<std::io::Result<String>>| -> Result<Option<Json>, Box<dyn Error>> {
            let Some(line) = line else { return Ok(None) };
            Ok(Some(serde_json::from_str::<Json>(&line?)?["text"].clone()))
        };
        match (text(ours.next())?, text(theirs.next())?) {
            (None, None) => return Ok(()),
            (ours, theirs) if ours == theirs => {}
            (ours, theirs) => return Err(format!("row {row} differs: {ours:?} and {theirs:?}").into()),
        }
    }
}
