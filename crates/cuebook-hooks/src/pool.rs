//! Workers that wait for the next call.
//!
//! A worker serves one script in one workspace and nothing else, so that no pack ever runs where another has run. A thread
//! that exists only while workers wait looks after them: it ends those in which something still runs that a call has left
//! behind, and ends those that are unused for a while. Callers do not wait for either.

use std::collections::HashMap;
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Whose worker it is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Key {
    /// The pack, if the script is of one.
    pub pack: Option<String>,
    /// The script. Two scripts of one pack may have different modules of the same name beside them.
    pub script: PathBuf,
    /// The folder whose modules it may import.
    pub folder: PathBuf,
    /// Changes with any code in the folder.
    pub fingerprint: String,
    /// The workspace that it can read.
    pub workspace: PathBuf,
    /// The time of one call, on which its limit of CPU time depends.
    pub time: Duration,
}

/// How soon after a call it is looked whether the worker is quiet.
const LOOK: Duration = Duration::from_millis(20);

/// How often it looks for workers where there are none before it ends.
const TURNS_IN_VAIN: usize = 50;

/// Something that waits for calls.
pub trait PooledWorker: Send + 'static {
    /// Whether nothing of the last call still runs in it.
    fn is_quiet(&self) -> bool;
}

/// Workers that wait. Dropping it ends them.
#[derive(Debug)]
pub struct Pool<K: Eq + Hash + Send + 'static, W: PooledWorker> {
    shared: Arc<Shared<K, W>>,
}

#[derive(Debug)]
struct Shared<K, W> {
    state: Mutex<State<K, W>>,
    closing: Condvar,
    most: usize,
    idle: Duration,
}

#[derive(Debug)]
struct State<K, W> {
    /// By owner, those that have waited longest first.
    waiting: HashMap<K, Vec<IdleWorker<W>>>,
    count: usize,
    /// Whether a thread looks after those that wait.
    watched: bool,
    /// Whether that thread sleeps until a caller has waited too long.
    asleep: bool,
    closed: bool,
}

#[derive(Debug)]
struct IdleWorker<W> {
    since: Instant,
    /// Whether it has been found quiet.
    quiet: bool,
    worker: W,
}

impl<K: Eq + Hash + Send + 'static, W: PooledWorker> Pool<K, W> {
    /// A pool that keeps at most so many workers, each for at most so long.
    pub fn new(most: usize, idle: Duration) -> Pool<K, W> {
        let state = State { waiting: HashMap::new(), count: 0, watched: false, asleep: false, closed: false };
        Pool { shared: Arc::new(Shared { state: Mutex::new(state), closing: Condvar::new(), most, idle }) }
    }

    /// Takes the worker of this owner that has waited the shortest.
    pub fn take(&self, key: &K) -> Option<W> {
        let mut state = self.shared.lock();
        let waiting = state.waiting.get_mut(key)?;
        // An owner without a worker is forgotten when the waiting ones are next looked at.
        let IdleWorker { worker, .. } = waiting.pop()?;
        state.count -= 1;
        Some(worker)
    }

    /// Lets a worker wait.
    pub fn put(&self, key: K, worker: W) {
        if self.shared.most == 0 || self.shared.idle.is_zero() {
            return;
        }
        let mut state = self.shared.lock();
        let waiter = IdleWorker { since: Instant::now(), quiet: false, worker };
        state.waiting.entry(key).or_default().push(waiter);
        state.count += 1;
        let too_many = if state.count > self.shared.most { state.remove_oldest() } else { None };
        if !state.watched {
            let shared = self.shared.clone();
            state.watched = std::thread::Builder::new()
                .name("cuebook-workers".into())
                .spawn(move || shared.watch())
                .is_ok();
        }
        let asleep = std::mem::take(&mut state.asleep);
        drop(state);
        if asleep {
            self.shared.closing.notify_all();
        }
        // Ending a process takes a while, and others need not wait for it.
        drop(too_many);
    }

    /// How many workers wait.
    pub fn waiting(&self) -> usize {
        self.shared.lock().count
    }
}

impl<K: Eq + Hash + Send + 'static, W: PooledWorker> Drop for Pool<K, W> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.closed = true;
        state.count = 0;
        let waiting = std::mem::take(&mut state.waiting);
        drop(state);
        self.shared.closing.notify_all();
        drop(waiting);
    }
}

impl<K: Eq + Hash, W: PooledWorker> Shared<K, W> {
    fn lock(&self) -> MutexGuard<'_, State<K, W>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends what is not quiet and lets go what has waited too long, until nothing waits any more.
    fn watch(&self) {
        let mut state = self.lock();
        let mut turns_in_vain = 0;
        while !state.closed {
            let now = Instant::now();
            let mut gone = state.remove_before(now.checked_sub(self.idle));
            gone.extend(state.remove_restless(now));
            if !gone.is_empty() {
                drop(state);
                drop(gone);
                state = self.lock();
                continue;
            }
            let Some(oldest) = state.oldest() else {
                // A worker that is in use will be back; a new thread for each call would be a waste.
                turns_in_vain += 1;
                if turns_in_vain > TURNS_IN_VAIN {
                    break;
                }
                state = self.closing.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0;
                continue;
            };
            turns_in_vain = 0;
            let left = (oldest + self.idle).saturating_duration_since(now).max(Duration::from_millis(1));
            // Returning a worker wakes us only if we sleep for long, so that a hundred calls in a row do it once.
            state.asleep = state.waiting.values().flatten().all(|waiter| waiter.quiet);
            let left = if state.asleep { left } else { left.min(LOOK) };
            state = self.closing.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            state.asleep = false;
        }
        state.watched = false;
    }
}

impl<K: Eq + Hash, W: PooledWorker> State<K, W> {
    fn oldest(&self) -> Option<Instant> {
        self.waiting.values().filter_map(|waiting| waiting.first()).map(|waiter| waiter.since).min()
    }

    fn remove_oldest(&mut self) -> Option<W> {
        let oldest = self.oldest()?;
        let waiting = self
            .waiting
            .values_mut()
            .find(|waiting| waiting.first().is_some_and(|waiter| waiter.since == oldest))?;
        let IdleWorker { worker, .. } = waiting.remove(0);
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        self.count -= 1;
        Some(worker)
    }

    fn remove_before(&mut self, time: Option<Instant>) -> Vec<W> {
        let Some(time) = time else { return Vec::new() };
        let mut expired = Vec::new();
        for waiting in self.waiting.values_mut() {
            let count = waiting.iter().take_while(|waiter| waiter.since <= time).count();
            expired.extend(waiting.drain(..count).map(|waiter| waiter.worker));
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        self.count -= expired.len();
        expired
    }

    /// Takes out those in which something runs without a call. A call has a moment to come to its end.
    fn remove_restless(&mut self, now: Instant) -> Vec<W> {
        let mut restless = Vec::new();
        for waiting in self.waiting.values_mut() {
            for waiter in std::mem::take(waiting) {
                let due = !waiter.quiet && now.saturating_duration_since(waiter.since) >= LOOK / 2;
                match due.then(|| waiter.worker.is_quiet()) {
                    Some(false) => restless.push(waiter.worker),
                    Some(true) => waiting.push(IdleWorker { quiet: true, ..waiter }),
                    None => waiting.push(waiter),
                }
            }
        }
        self.waiting.retain(|_, waiting| !waiting.is_empty());
        self.count -= restless.len();
        restless
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// A worker that counts how many have been ended.
    struct Ended(&'static AtomicUsize);

    impl PooledWorker for Ended {
        fn is_quiet(&self) -> bool {
            true
        }
    }

    impl Drop for Ended {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
    }

    /// Numbers below zero are restless.
    impl PooledWorker for i32 {
        fn is_quiet(&self) -> bool {
            *self >= 0
        }
    }

    #[test]
    fn a_worker_in_which_something_still_runs_is_ended_soon() {
        let pool = Pool::new(8, Duration::from_secs(60));
        pool.put("a", 1);
        // Once the thread sleeps for long, it has to be woken.
        std::thread::sleep(4 * LOOK);
        pool.put("a", -1);
        let gone = (0..200).any(|_| {
            std::thread::sleep(Duration::from_millis(5));
            pool.waiting() == 1
        });
        assert!(gone);
        assert_eq!(pool.take(&"a"), Some(1));
    }

    #[test]
    fn an_owner_gets_its_own_worker_back_and_no_other() {
        let pool = Pool::new(8, Duration::from_secs(60));
        pool.put("a", 1);
        pool.put("a", 2);
        assert_eq!(pool.take(&"b"), None);
        assert_eq!(pool.take(&"a"), Some(2));
        assert_eq!(pool.take(&"a"), Some(1));
        assert_eq!(pool.take(&"a"), None);
        assert_eq!(pool.waiting(), 0);
    }

    #[test]
    fn the_one_that_has_waited_longest_goes_when_there_are_too_many() {
        let pool = Pool::new(2, Duration::from_secs(60));
        for (key, worker) in [("a", 1), ("b", 2), ("a", 3)] {
            pool.put(key, worker);
            std::thread::sleep(Duration::from_millis(2));
        }
        assert_eq!((pool.take(&"a"), pool.take(&"b"), pool.take(&"a")), (Some(3), Some(2), None));
    }

    #[test]
    fn an_unused_worker_ends_without_a_call() {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let pool = Pool::new(8, Duration::from_millis(30));
        pool.put("a", Ended(&COUNT));
        pool.put("b", Ended(&COUNT));
        for _ in 0..200 {
            if COUNT.load(Ordering::SeqCst) == 2 {
                break;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!((COUNT.load(Ordering::SeqCst), pool.waiting()), (2, 0));
    }

    #[test]
    fn dropping_a_pool_ends_all_that_wait() {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let pool = Pool::new(8, Duration::from_secs(60));
        pool.put("a", Ended(&COUNT));
        pool.put("b", Ended(&COUNT));
        drop(pool);
        assert_eq!(COUNT.load(Ordering::SeqCst), 2);
    }
}
