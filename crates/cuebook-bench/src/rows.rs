//! The rows of the one table, in their order. Those that have a table of their own are made where it is made.

mod cold;
mod library;
mod prompts;
mod texts;

use std::fs;

use crate::measure;
use crate::peers::{Renderers, python_renderers};
use crate::place;
use crate::race::say;
use crate::table::{Row, Table};

/// Measures everything, prints the table, and writes it as JSON and as a picture.
pub fn run() -> Result<(), Box<dyn std::error::Error>> {
    let mut table = Table { about: about(), rows: Vec::new() };
    say("installing the peers in the target folder, once");
    let mut peers = Renderers::start();
    for (name, made) in [
        ("renders", texts::rows(&mut peers)),
        ("sections", crate::sections::row().map(|row| vec![row])),
        ("cold start", cold::row().map(|row| vec![row])),
        ("Python", texts::python::rows(&mut peers.jinja2, &mut peers.prompty_python)),
        ("TypeScript", texts::npm::rows()),
        ("libraries", library::rows(&mut peers)),
        ("hook call", crate::hooks::row().map(|row| vec![row])),
        ("execute", crate::execute::row().map(|row| vec![row])),
        ("MCP", crate::serve::rows()),
    ] {
        match made {
            Ok(rows) => table.rows.extend(rows),
            // A row that could not be made stays in the table.
            Err(error) => table.rows.push(Row::new(name, "could not be made", Err(error.to_string()))),
        }
    }
    println!("{table}");
    let folder = place::results()?;
    for (name, text) in
        [("table.json", serde_json::to_string_pretty(&table.to_json())?), ("table.svg", table.to_svg())]
    {
        let path = folder.join(name);
        fs::write(&path, text)?;
        println!("written: {}", path.display());
    }
    Ok(())
}

/// Measures and prints only the rows of the npm package.
pub fn npm() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", Table { about: about(), rows: texts::npm::rows()? });
    Ok(())
}

/// Measures and prints only the rows of the Python package.
pub fn python() -> Result<(), Box<dyn std::error::Error>> {
    let (mut jinja2, mut prompty) = python_renderers();
    println!("{}", Table { about: about(), rows: texts::python::rows(&mut jinja2, &mut prompty)? });
    Ok(())
}

/// Where the figures of a run come from.
pub fn about() -> Vec<(&'static str, String)> {
    let profile = match place::profile_folder() {
        Ok(folder) if folder == "dist" => folder,
        Ok(folder) => format!("{folder} (only figures of dist count)"),
        Err(why) => why,
    };
    let rounds = if measure::is_rehearsal() {
        format!("{} (a rehearsal: do not use the figures)", measure::rounds())
    } else {
        format!("{}, of which the best counts", measure::rounds())
    };
    let processors = std::thread::available_parallelism().map_or(0, |count| count.get());
    let name = processor().unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let system = format!("{}, {processors} × {name}", std::env::consts::OS);
    vec![
        ("commit", commit()),
        ("cuebook", env!("CARGO_PKG_VERSION").to_owned()),
        ("profile", profile),
        ("rounds", rounds),
        ("on", system),
    ]
}

/// The last commit and its date.
fn commit() -> String {
    let git = std::process::Command::new("git")
        .args(["log", "-1", "--format=%h of %cs"])
        .current_dir(place::workspace())
        .output();
    match git {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => "unknown".to_owned(),
    }
}

/// What the processor calls itself, if the system says so.
fn processor() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}
