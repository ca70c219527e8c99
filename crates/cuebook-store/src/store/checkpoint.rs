//! Moves what was written from the log of a SQLite file into the file itself, in the background.
//!
//! SQLite does that within a commit by default, and then every hundredth turn waits for the disk twice more. A thread of its own
//! does it beside the writer. The writer still does it itself when the log has grown far too long, so nothing depends on this.
//!
//! Then the log begins again at its start. That matters more than its length: a file system writes into a file much faster, and
//! much more evenly, where the file was written before than where it grows.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use rusqlite::Connection;

/// After how many transactions it is time. Those that come meanwhile wait longer for the disk, so it is rare: a log of some five
/// megabytes, and far fewer than one turn of a hundred that meets it.
const EVERY: u32 = 300;
/// How long it waits for readers before it leaves the log alone. There are no writes meanwhile.
const PATIENCE: Duration = Duration::from_millis(5);
/// How many pages the log can have before the writer moves them itself.
pub(crate) const FAR_TOO_LONG: i64 = 24_000;
/// Enough for one statement.
const STACK: usize = 256 << 10;

#[derive(Debug)]
pub(crate) struct Checkpoints {
    path: PathBuf,
    since: AtomicU32,
    /// The thread ends when this does.
    sender: OnceLock<Option<SyncSender<()>>>,
}

impl Checkpoints {
    pub(crate) fn of(path: PathBuf) -> Checkpoints {
        Checkpoints { path, since: AtomicU32::new(0), sender: OnceLock::new() }
    }

    /// A transaction was committed.
    pub(crate) fn count(&self) {
        if self.since.fetch_add(1, Ordering::Relaxed) + 1 < EVERY {
            return;
        }
        self.since.store(0, Ordering::Relaxed);
        if let Some(sender) = self.sender.get_or_init(|| start(self.path.clone())) {
            // If it is still at work, it need not be notified.
            let _ = sender.try_send(());
        }
    }
}

fn start(path: PathBuf) -> Option<SyncSender<()>> {
    let (sender, receiver) = sync_channel(1);
    let work = move || {
        let Ok(connection) = Connection::open(path) else { return };
        if connection.busy_timeout(PATIENCE).is_err() {
            return;
        }
        while receiver.recv().is_ok() {
            // Nearly all of it beside the writer, and the little that came meanwhile, and the way back to the start, between two
            // transactions. If it cannot be done now, then later.
            for kind in ["PASSIVE", "RESTART"] {
                let _ = connection.query_row(&format!("PRAGMA wal_checkpoint({kind})"), [], |_| Ok(()));
            }
        }
    };
    let thread = std::thread::Builder::new().name("cuebook-checkpoint".to_owned()).stack_size(STACK);
    thread.spawn(work).ok().map(|_| sender)
}
