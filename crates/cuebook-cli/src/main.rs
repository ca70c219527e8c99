//! The `cuebook` command: a thin layer that turns arguments into calls of the engine and results into text.
//!
//! Data goes to stdout, talk to stderr. Exit codes: 0 done, 1 the request failed and the error says why, 2 wrong usage. `diff`
//! has 1 for a difference, and 2 for whatever failed.

mod args;
mod batch_progress;
mod ci;
mod commands;
mod git;
mod grants;
mod inputs;
mod interrupt;
mod markdown;
mod output;
mod pager;
mod progress;
mod project;
mod prompts;
mod screen;
mod suggestion;
mod terminal;
mod thread_progress;
mod times;
mod versions;

use std::process::ExitCode;

use crate::args::{Cli, Layout, Options};
use crate::output::Failure;

fn main() -> ExitCode {
    // Workers of hooks are started by a copy of this program, which must do nothing else.
    cuebook_hooks::sandbox::launch_if_asked();
    // The environment may hold keys of providers.
    cuebook_hooks::sandbox::hide_from_others();
    let cli = match Cli::read() {
        Ok(cli) => cli,
        Err(error) => return output::usage_error(&error),
    };
    let place = suggestion::place(&cli.command, &cli.options);
    let options = Options { place, ..cli.options };
    let layout = Layout::of(&cli.command);
    options.colour.apply();
    let done = match options.start_trace() {
        Ok(_trace) => {
            // What one command does is one trace. A server has one for each call.
            let _call = cli.command.is_one_call().then(cuebook_trace::call);
            commands::run(cli.command, &options)
        }
        Err(error) => Err(error.into()),
    };
    match done {
        Ok(code) => code,
        // The reader of our output has had enough of it.
        Err(Failure::Output(error)) if error.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(failure) => output::failure(&failure, &options, layout),
    }
}
