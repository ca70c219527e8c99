//! Benchmarks: ours and the peers', side by side in one run.
//!
//! Without an argument it makes the one table, with all peers, and writes it as `bench/table.json` and `bench/table.svg` below the
//! target folder. An argument chooses a table with details, or the scoreboard of the conformance suites. `publish` measures, stores the
//! results in the repository and writes the page of the book; `page` writes the page from the stored results.
//!
//! Machines are noisy, so contestants take turns, and each figure is the best of many rounds: noise only ever adds. What peers
//! need is installed below the target folder. `CUEBOOK_BENCH_ROUNDS=2` rehearses everything in a minute or two.

mod attribution;
mod command;
mod execute;
mod growth;
mod hooks;
mod lsp;
mod measure;
mod page;
mod peers;
mod place;
mod publish;
mod python;
mod race;
mod rows;
mod rye;
mod scale;
mod scoreboard;
mod sections;
mod serve;
mod table;
mod templates;
mod threads;
mod trust;
mod warm;

use std::error::Error;
use std::process::ExitCode;

/// A table by its name, and what makes it.
type Named = (&'static str, fn() -> Result<(), Box<dyn Error>>);

const TABLES: &[Named] = &[
    ("attribution", || {
        attribution::run();
        Ok(())
    }),
    ("execute", execute::run),
    ("growth", growth::run),
    ("hooks", hooks::run),
    ("lsp", lsp::run),
    ("npm", rows::npm),
    ("page", page::run),
    ("publish", publish::run),
    ("python", rows::python),
    ("scale", scale::run),
    ("scoreboard", scoreboard::run),
    ("sections", sections::run),
    ("serve", serve::run),
    ("templates", templates::run),
    ("threads", threads::run),
    ("trust", trust::run),
    ("warm", warm::run),
];

fn main() -> ExitCode {
    // Workers of hooks are started by a copy of this program, which must do nothing else.
    cuebook_hooks::sandbox::launch_if_asked();
    if serve::be_an_end() || threads::be_a_crowd() || scale::workers::be_a_worker() {
        return ExitCode::SUCCESS;
    }
    let wanted = std::env::args().nth(1);
    let chosen: Named = match &wanted {
        None => ("table", rows::run),
        Some(wanted) => match TABLES.iter().find(|(name, _)| name == wanted) {
            Some(table) => *table,
            None => {
                let names: Vec<&str> = TABLES.iter().map(|(name, _)| *name).collect();
                eprintln!(
                    "unknown command `{wanted}`; choose one of {}, or none to measure everything",
                    names.join(", ")
                );
                return ExitCode::FAILURE;
            }
        },
    };
    let (name, run) = chosen;
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{name}: {error}");
            ExitCode::FAILURE
        }
    }
}
