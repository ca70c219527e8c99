//! Who runs a thread, whether they live, and the sign of life that they give.
//!
//! A process is known by its machine, its number, and when it began: numbers are used again, and machines are started anew.
//! On the same machine the system is asked; of a process on another machine only its last sign of life is known.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::{Holder, Store};

/// How long after a thread was taken up the first sign of life is given, and the longest time between two of them. The younger
/// the youngest thread is, the more often they come: how long a thread ran whose process was killed is known from the last of
/// them, so no more than a quarter of its time is lost, or half a second.
const FIRST: Duration = Duration::from_millis(500);
const BEAT: Duration = Duration::from_secs(5);
/// After how long without one a process on another machine counts as dead.
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

    /// Whether it is a process of this machine, of which the system can be asked.
    pub(crate) fn is_here(&self) -> bool {
        let (host, pid, _) = this_process();
        self.host == *host && stat(*pid).is_some()
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
            return stat(holder.pid).is_some_and(|stat| stat.began == holder.began && stat.runs());
        }
    }
    beat.is_some_and(|beat| is_recent(Timestamp::now().duration_since(beat)))
}

/// Whether a sign of life of this age is one. Clocks differ a little; one from far in the future says nothing.
fn is_recent(age: SignedDuration) -> bool {
    age.abs() < SILENCE
}

/// The machine, the process, and when it began.
fn this_process() -> &'static (String, u32, u64) {
    static PROCESS: OnceLock<(String, u32, u64)> = OnceLock::new();
    PROCESS.get_or_init(|| {
        let pid = std::process::id();
        let now = || Timestamp::now().as_microsecond().unsigned_abs();
        (host(), pid, stat(pid).map_or_else(now, |stat| stat.began))
    })
}

/// What the system says of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stat {
    /// A letter for what it does.
    pub(crate) state: char,
    /// The group that it is in.
    #[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only Linux is asked"))]
    pub(crate) group: u32,
    /// When it began.
    pub(crate) began: u64,
}

impl Stat {
    /// A process that ended and that nobody has asked about yet is still listed, but runs nothing.
    pub(crate) fn runs(&self) -> bool {
        !"ZXx".contains(self.state)
    }
}

/// What the system says of a process, where it does.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name of a program stands in parentheses and can hold anything, so what follows the last one is counted.
    let mut fields = text.get(text.rfind(')')? + 1..)?.split_whitespace();
    let state = fields.next()?.chars().next()?;
    let group = fields.nth(1)?.parse().ok()?;
    Some(Stat { state, group, began: fields.nth(16)?.parse().ok()? })
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

/// How long after one sign of life the next one is given, by how old the youngest thread is.
fn pace(age: Duration, first: Duration) -> Duration {
    (age / 4).clamp(first, BEAT.max(first))
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
    /// When something was last taken up.
    since: Option<Instant>,
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
        Heart::with(store, FIRST)
    }

    fn with(store: Arc<dyn Store>, first: Duration) -> Heart {
        let heart = Heart { shared: Arc::default() };
        let shared = Arc::clone(&heart.shared);
        let beat = move || {
            let holder = Holder::of_this_process();
            let mut last = Instant::now();
            let mut state = shared.state();
            while !state.stopped {
                let Some(since) = state.since.filter(|_| state.held > 0) else {
                    state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    // Taking a thread up is a sign of life already, so the first one here comes after a while.
                    last = Instant::now();
                    continue;
                };
                let left = pace(since.elapsed(), first).saturating_sub(last.elapsed());
                if !left.is_zero() {
                    let waits = shared.changed.wait_timeout(state, left);
                    state = waits.unwrap_or_else(PoisonError::into_inner).0;
                    continue;
                }
                drop(state);
                if let Err(error) = store.beat(&holder) {
                    // The next one may get through. Until then the process merely looks silent from other machines.
                    tracing::warn!(%error, "cannot write the heartbeat");
                }
                last = Instant::now();
                state = shared.state();
            }
        };
        let spawned =
            std::thread::Builder::new().name("cuebook-heart".to_owned()).stack_size(STACK).spawn(beat);
        if let Err(error) = spawned {
            tracing::warn!(%error, "cannot start the heartbeat thread");
        }
        heart
    }

    /// Something is held from now on, until what this gives is dropped.
    pub fn hold(&self) -> Holding {
        let mut state = self.shared.state();
        state.held += 1;
        // Whoever waits for the next sign of an old thread has to wake earlier for a young one.
        let wakes = state.held == 1 || state.since.is_none_or(|since| since.elapsed() > FIRST);
        state.since = Some(Instant::now());
        if wakes {
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
        let began = stat(child.id()).unwrap().began;
        let holder = Holder { pid: child.id(), began, ..Holder::of_this_process() };
        assert!(lives(&holder, None));
        child.kill().unwrap();
        while stat(child.id()).is_some_and(|stat| stat.runs()) {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!lives(&holder, Some(Timestamp::now())));
        child.wait().unwrap();
    }

    #[test]
    fn a_sign_of_life_from_the_future_is_none() {
        let elsewhere = Holder { host: "another".to_owned(), ..Holder::of_this_process() };
        let at = |seconds| Some(Timestamp::now() + SignedDuration::from_secs(seconds));
        assert!(lives(&elsewhere, at(5)) && lives(&elsewhere, at(-5)));
        assert!(!lives(&elsewhere, at(60)) && !lives(&elsewhere, at(-60)));
        assert!(!lives(&elsewhere, Some(Timestamp::MAX)) && !lives(&elsewhere, Some(Timestamp::MIN)));
    }

    #[test]
    fn a_young_thread_gives_signs_of_life_more_often() {
        let pace = |seconds| pace(Duration::from_secs(seconds), FIRST);
        assert_eq!([pace(0), pace(1), pace(8), pace(1000)], [FIRST, FIRST, Duration::from_secs(2), BEAT]);
    }

    #[test]
    fn a_heart_beats_while_something_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(
            SqliteStore::open(
                &folder.path().join("threads.db"),
                Ok(crate::store::LogKey::from_bytes([1; 32])),
            )
            .unwrap(),
        );
        let new = crate::store::New {
            prompt: "demo".to_owned(),
            parent: None,
            parent_spawns: None,
            spend: crate::thread::Money::ZERO,
            model: None,
            unpriced: false,
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
