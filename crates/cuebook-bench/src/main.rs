//! Benchmarks: ours and the peers', side by side in one run.
//!
//! Machines are noisy, so every row is a ratio of two measurements that take turns, and each measurement is the best of
//! many rounds: noise only ever adds. An argument chooses one table; without one, all are measured. That of `prompty` needs
//! the feature `peers`, which builds the peer.

mod attribution;
mod execute;
mod hooks;
mod measure;
#[cfg(feature = "peers")]
mod prompty;
mod python;
mod sections;
mod serve;
mod threads;
mod trust;

use std::error::Error;
use std::process::ExitCode;

/// A table by its name, and what measures it.
type Table = (&'static str, fn() -> Result<(), Box<dyn Error>>);

const TABLES: &[Table] = &[
    ("attribution", || {
        attribution::run();
        Ok(())
    }),
    ("execute", execute::run),
    ("hooks", hooks::run),
    #[cfg(feature = "peers")]
    ("prompty", prompty::run),
    ("sections", sections::run),
    ("serve", serve::run),
    ("threads", threads::run),
    ("trust", trust::run),
];

fn main() -> ExitCode {
    // Workers of hooks are started by a copy of this program, which must do nothing else.
    cuebook_hooks::sandbox::launch_if_asked();
    if serve::be_an_end() || threads::be_a_crowd() {
        return ExitCode::SUCCESS;
    }
    let wanted = std::env::args().nth(1);
    let tables = TABLES.iter().filter(|(name, _)| wanted.as_deref().is_none_or(|wanted| wanted == *name));
    let tables: Vec<&Table> = tables.collect();
    if tables.is_empty() {
        let names: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
        eprintln!("there is no such table; choose one of {}", names.join(", "));
        eprintln!("prompty needs its peer: cargo run --release -p cuebook-bench --features peers prompty");
        return ExitCode::FAILURE;
    }
    for (name, run) in tables {
        if let Err(error) = run() {
            eprintln!("{name}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}
