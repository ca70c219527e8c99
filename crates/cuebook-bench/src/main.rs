//! Benchmarks: ours and the peers', side by side in one run.
//!
//! Machines are noisy, so every row is a ratio of two measurements that take turns, and each measurement is the best of
//! many rounds: noise only ever adds.

mod attribution;
mod hooks;
mod measure;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Workers of hooks are started by a copy of this program, which must do nothing else.
    if let Some(code) = cuebook_hooks::sandbox::launch_if_asked() {
        return code;
    }
    attribution::run();
    if let Err(error) = hooks::run() {
        eprintln!("hooks: {error}");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
