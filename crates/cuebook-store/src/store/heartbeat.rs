//! The heartbeat of a process that runs threads, for processes on other machines.

use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Holder, Store};

/// How long after a thread was taken up the first sign of life is given, and the longest time between two of them. The younger
/// the youngest thread is, the more often they come: how long a thread ran whose process was killed is known from the last of
/// them, so no more than a quarter of its time is lost, or half a second.
const FIRST: Duration = Duration::from_millis(500);
const BEAT: Duration = Duration::from_secs(5);
/// Enough for one statement.
const STACK: usize = 256 << 10;

/// How long after one sign of life the next one is given, by how old the youngest thread is.
fn pace(age: Duration, first: Duration) -> Duration {
    (age / 4).clamp(first, BEAT.max(first))
}

/// Gives signs of life for this process as long as anything is held: one thread in the background, which sleeps otherwise.
pub struct Heartbeat {
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

impl fmt::Debug for Heartbeat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Heart").field("held", &self.shared.state().held).finish()
    }
}

/// As long as this lives, so does the heart's owner, for all to see.
#[must_use = "nothing beats once this is dropped"]
pub struct HeartbeatGuard {
    shared: Arc<Shared>,
}

impl fmt::Debug for HeartbeatGuard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Holding")
    }
}

impl Drop for HeartbeatGuard {
    fn drop(&mut self) {
        self.shared.state().held -= 1;
    }
}

impl Heartbeat {
    /// A heart that tells a store. It begins to beat when something is held.
    pub fn new(store: Arc<dyn Store>) -> Heartbeat {
        Heartbeat::with(store, FIRST)
    }

    fn with(store: Arc<dyn Store>, first: Duration) -> Heartbeat {
        let heartbeat = Heartbeat { shared: Arc::default() };
        let shared = Arc::clone(&heartbeat.shared);
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
        heartbeat
    }

    /// Something is held from now on, until what this gives is dropped.
    pub fn hold(&self) -> HeartbeatGuard {
        let mut state = self.shared.state();
        state.held += 1;
        // A wait for the next sign of an old thread must wake earlier for a young one.
        let wakes = state.held == 1 || state.since.is_none_or(|since| since.elapsed() > FIRST);
        state.since = Some(Instant::now());
        if wakes {
            self.shared.changed.notify_all();
        }
        drop(state);
        HeartbeatGuard { shared: Arc::clone(&self.shared) }
    }
}

impl Drop for Heartbeat {
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
            spend: crate::money::Money::ZERO,
            model: None,
            unpriced: false,
            continuation_of: None,
            holder: Some(Holder::of_this_process()),
            parent_holder: None,
            entries: Vec::new(),
        };
        let id = store.begin(&new).unwrap().id;
        let beat = || store.record(&id).unwrap().unwrap().beat_at.unwrap();
        let heartbeat = Heartbeat::with(Arc::clone(&store), Duration::from_millis(5));
        let first = beat();
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(beat(), first, "nothing is held");
        let holding = heartbeat.hold();
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while beat() == first && std::time::Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(beat() > first);
        drop((holding, heartbeat));
    }
}
