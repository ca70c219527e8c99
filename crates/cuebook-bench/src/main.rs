//! Benchmarks: ours and the peers', side by side in one run.
//!
//! Machines are noisy, so every row is a ratio of two measurements that take turns, and each measurement is the best of
//! many rounds: noise only ever adds. An argument chooses one table: `attribution`, `hooks`, `sections` or `prompty`; the
//! last one needs the feature `peers`, which builds the peer.

mod attribution;
mod hooks;
mod measure;
#[cfg(feature = "peers")]
mod prompty;
mod sections;

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
    if is_wanted("sections")
        && let Err(error) = sections::run()
    {
        eprintln!("sections: {error}");
        return ExitCode::FAILURE;
    }
    #[cfg(feature = "peers")]
    if is_wanted("prompty")
        && let Err(error) = prompty::run()
    {
        eprintln!("prompty: {error}");
        return ExitCode::FAILURE;
    }
    #[cfg(not(feature = "peers"))]
    if wanted.as_deref() == Some("prompty") {
        eprintln!(
            "prompty: build with the peer: cargo run --release -p cuebook-bench --features peers prompty"
        );
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}
