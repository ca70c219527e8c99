//! Who runs a thread, whether they live, and the sign of life that they give.
//!
//! A process is known by its machine, its number, and when it began: numbers are used again, and machines are started anew.
//! On the same machine the system is asked; of a process on another machine only its last sign of life is known.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::{Holder, Store};

/// How often a sign of life is given.
const BEAT: Duration = Duration::from_secs(5);
/// After how long without one a process of another machine counts as dead.
const SILENCE: SignedDuration = SignedDuration::from_secs(30);
/// Enough for one statement.
const STACK: usize = 256 << 10;

impl Holder {
    /// This process, with a token that nobody has had yet.
    pub fn of_this_process() -> Holder {
        let (host, pid, began) = this_process();
        let mut bytes = [0_u8; 16];
        if getrandom::fill(&mut bytes).is_err() {
            // No two of these are the same within a process, and the rest of a holder tells processes apart.
            static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
            let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            bytes[..8].copy_from_slice(&count.to_be_bytes());
        }
        Holder { host: host.clone(), pid: *pid, began: *began, token: hex(&bytes) }
    }
}

/// Whether a holder lives, as far as can be known here: `beat` is its last sign of life.
pub fn lives(holder: &Holder, beat: Option<Timestamp>) -> bool {
    let (host, pid, began) = this_process();
    if holder.host == *host {
        if (holder.pid, holder.began) == (*pid, *began) {
            return true;
        }
        if stat(*pid).is_some() {
            // A process that ended and that nobody has asked about yet is still listed, but runs nothing.
            return stat(holder.pid)
                .is_some_and(|(state, began)| began == holder.began && !"ZXx".contains(state));
        }
    }
    beat.is_some_and(|beat| Timestamp::now().duration_since(beat) < SILENCE)
}

/// The machine, the process, and when it began.
fn this_process() -> &'static (String, u32, u64) {
    static PROCESS: OnceLock<(String, u32, u64)> = OnceLock::new();
    PROCESS.get_or_init(|| {
        let pid = std::process::id();
        let now = || Timestamp::now().as_microsecond().unsigned_abs();
        (host(), pid, stat(pid).map_or_else(now, |(_, began)| began))
    })
}

/// The state of a process and when it began, where the system says so.
fn stat(pid: u32) -> Option<(char, u64)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of a program stands in parentheses and can hold anything, so what follows the last one is counted.
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    Some((state, fields.nth(18)?.parse().ok()?))
}

/// The machine since it was started, and the part of it whose processes are seen here.
fn host() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let processes = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    let named = |name: &str| std::env::var(name).unwrap_or_default();
    let parts = [
        read("/etc/machine-id"),
        read("/proc/sys/kernel/random/boot_id"),
        processes.display().to_string(),
        read("/etc/hostname"),
        named("COMPUTERNAME"),
    ];
    hex(&Sha256::digest(parts.join("\n"))[..12])
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Gives signs of life for this process as long as anything is held: one thread in the background, which sleeps otherwise.
pub struct Heart {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    held: usize,
    stopped: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Heart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heart").field("held", &self.shared.state().held).finish()
    }
}

/// As long as this lives, so does the heart's owner, for all to see.
#[must_use = "nothing beats once this is dropped"]
pub struct Holding {
    shared: Arc<Shared>,
}

impl fmt::Debug for Holding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Holding")
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        self.shared.state().held -= 1;
    }
}

impl Heart {
    /// A heart that tells a store. It begins to beat when something is held.
    pub fn new(store: Arc<dyn Store>) -> Heart {
        Heart::with(store, BEAT)
    }

    fn with(store: Arc<dyn Store>, every: Duration) -> Heart {
        let heart = Heart { shared: Arc::default() };
        let shared = Arc::clone(&heart.shared);
        let beat = move || {
            let holder = Holder::of_this_process();
            let mut state = shared.state();
            while !state.stopped {
                if state.held == 0 {
                    state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                // Taking a thread up is a sign of life already, so the first one here comes after a while.
                let waits = shared.changed.wait_timeout_while(state, every, |state| !state.stopped);
                state = waits.unwrap_or_else(PoisonError::into_inner).0;
                if state.stopped || state.held == 0 {
                    continue;
                }
                drop(state);
                if let Err(error) = store.beat(&holder) {
                    // The next one may get through. Until then the process merely looks silent from other machines.
                    tracing::warn!(%error, "a sign of life could not be given");
                }
                state = shared.state();
            }
        };
        let spawned =
            std::thread::Builder::new().name("cuebook-heart".to_owned()).stack_size(STACK).spawn(beat);
        if let Err(error) = spawned {
            tracing::warn!(%error, "no thread can be started that gives signs of life");
        }
        heart
    }

    /// Something is held from now on, until what this gives is dropped.
    pub fn hold(&self) -> Holding {
        let mut state = self.shared.state();
        state.held += 1;
        if state.held == 1 {
            self.shared.changed.notify_all();
        }
        drop(state);
        Holding { shared: Arc::clone(&self.shared) }
    }
}

impl Drop for Heart {
    fn drop(&mut self) {
        self.shared.state().stopped = true;
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SqliteStore;

    #[test]
    fn a_process_is_told_from_one_with_the_same_number() {
        let this = Holder::of_this_process();
        assert_ne!(this.token, Holder::of_this_process().token);
        assert!(lives(&this, None));
        if stat(this.pid).is_some() {
            let long_ago = Some(Timestamp::now());
            assert!(!lives(&Holder { began: this.began + 1, ..this.clone() }, long_ago));
            assert!(!lives(&Holder { pid: 0x7fff_fff0, ..this.clone() }, long_ago));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_ended_and_is_still_listed_is_dead() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (_, began) = stat(child.id()).unwrap();
        let holder = Holder { pid: child.id(), began, ..Holder::of_this_process() };
        assert!(lives(&holder, None));
        child.kill().unwrap();
        while stat(child.id()).is_some_and(|(state, _)| state != 'Z') {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!lives(&holder, Some(Timestamp::now())));
        child.wait().unwrap();
    }

    #[test]
    fn a_heart_beats_while_something_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(&folder.path().join("threads.db")).unwrap());
        let new = crate::store::New {
            prompt: "demo".to_owned(),
            parent: None,
            parent_spawns: None,
            spend: crate::thread::Money::ZERO,
            model: None,
            continuation_of: None,
            holder: Some(Holder::of_this_process()),
            parent_holder: None,
            entries: Vec::new(),
        };
        let id = store.begin(&new).unwrap().id;
        let beat = || store.record(&id).unwrap().unwrap().beat_at.unwrap();
        let heart = Heart::with(Arc::clone(&store), Duration::from_millis(5));
        let first = beat();
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(beat(), first, "nothing is held");
        let holding = heart.hold();
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while beat() == first && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(beat() > first);
        drop((holding, heart));
    }
}
