//! Benchmarks: ours and the peers', side by side in one run.
//!
//! Machines are noisy, so every row is a ratio of two measurements that take turns, and each measurement is the best of
//! many rounds: noise only ever adds. An argument chooses one table: `attribution` or `hooks`.

mod attribution;
mod hooks;
mod measure;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Workers of hooks are started by a copy of this program, which must do nothing else.
    cuebook_hooks::sandbox::launch_if_asked();
    let wanted = std::env::args().nth(1);
    let is_wanted = |name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    if is_wanted("attribution") {
        attribution::run();
    }
    if is_wanted("hooks")
        && let Err(error) = hooks::run()
    {
        eprintln!("hooks: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
