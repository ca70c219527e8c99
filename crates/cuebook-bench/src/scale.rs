//! Data sets and fleets: `cuebook-bench scale [--rows N] [--large N] [--threads N] [--parked N] [--fleet N] [--kill SECONDS]`.
//!
//! The first part renders the rows of a file on one and two cores, next to pandas with Jinja2 and promptfoo. The second part needs a PostgreSQL, which
//! `CUEBOOK_TEST_POSTGRES` names: without one it says so.

mod batch;
mod processor;
mod promptfoo;
pub mod workers;

use std::error::Error;
use std::time::Duration;

use self::workers::{SERVER, Sizes};

/// Measures both parts and prints the rows.
pub fn run() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(2).collect();
    let (mut rows, mut large, mut sizes) = (200_000, 0, Sizes::default());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let number = words.next().and_then(|word| word.parse::<usize>().ok());
        let number = number.ok_or_else(|| format!("{word} needs a number"))?;
        match word.as_str() {
            "--rows" => rows = number,
            "--large" => large = number,
            "--threads" => sizes.threads = number,
            "--parked" => sizes.parked = number,
            "--fleet" => sizes.fleet = number,
            "--kill" => sizes.kill = Duration::from_secs(number as u64),
            _ => {
                return Err(format!(
                    "unknown option {word}; options are --rows, --large, --threads, --parked, --fleet, --kill"
                )
                .into());
            }
        }
    }
    for (name, value) in crate::rows::about() {
        println!("{name}: {value}");
    }
    batch::run(rows)?;
    if large > 0 {
        batch::large(large)?;
    }
    match std::env::var(SERVER) {
        Ok(url) => workers::run(&url, &sizes),
        Err(_) => {
            println!("workers: not measured, because {SERVER} names no PostgreSQL");
            Ok(())
        }
    }
}

/// The load of this machine: other programs take a part of it.
fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or_default().to_owned()
}
