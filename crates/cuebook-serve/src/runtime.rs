//! The runtime that the conversations run on.
//!
//! One thread is enough for them: all that takes place on it is reading, parsing and writing messages, and everything that takes
//! time is on the pool for blocking work. So a server that waits costs one thread and little memory, and starts at once.

use std::io;
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_util::sync::CancellationToken;

use crate::request_slots::MAX_CALLS;

/// Threads of the pool: one for every call of a tool that may run, and some for everything else.
const MAX_THREADS: usize = 80;
const _: () = assert!(MAX_THREADS >= MAX_CALLS + 32, "calls leave threads for other requests");
/// As on the main thread of a program: templates and files may be nested.
const STACK: usize = 8 << 20;
/// How long work that was asked to stop may take to do so: longer than the grace of a tool that does not want to end (three
/// seconds), which would be left behind otherwise.
const LAST_WORK: Duration = Duration::from_secs(5);

pub(crate) fn new() -> io::Result<Runtime> {
    Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(MAX_THREADS)
        .thread_stack_size(STACK)
        .thread_name("cuebook work")
        .build()
}

/// Ends it. Dropping the conversations tells the work of their calls to stop, and it is given a moment for that.
pub(crate) fn end(runtime: Runtime) {
    runtime.shutdown_timeout(LAST_WORK);
}

/// Cancels a token when the process is asked to end.
pub(crate) fn cancel_on_signal(stop: CancellationToken) -> io::Result<()> {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        tokio::spawn(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            stop.cancel();
        });
    }
    #[cfg(not(unix))]
    tokio::spawn(async move {
        let _ = tokio::signal::ctrl_c().await;
        stop.cancel();
    });
    Ok(())
}
