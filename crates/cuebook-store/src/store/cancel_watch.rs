//! Watches for requests to stop threads of this process: one question for all of them, however many
//! wait for their models.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::{Holder, Store, ThreadId};

/// How often the store is asked.
const EVERY: Duration = Duration::from_millis(150);
/// The thread that asks needs little.
const STACK: usize = 256 << 10;

/// Watches a store. It sleeps while there is nothing to watch.
#[derive(Debug)]
pub struct CancelWatch(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Since when each thread is looked out for, and what is set when it is to stop.
    flags: HashMap<ThreadId, (Instant, Arc<AtomicBool>)>,
    over: bool,
}

/// A thread that is looked out for, for as long as this lives.
#[derive(Debug)]
pub struct Watched {
    shared: Arc<Shared>,
    id: ThreadId,
    /// Set when the thread is to stop.
    pub flag: Arc<AtomicBool>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CancelWatch {
    /// Watches this store.
    pub fn new(store: Arc<dyn Store>) -> CancelWatch {
        let made = CancelWatch(Arc::default());
        let shared = made.0.clone();
        let look = move || {
            let holder = Holder::of_this_process();
            let mut state = shared.state();
            while !state.over {
                if state.flags.is_empty() {
                    state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                    continue;
                }
                drop(state);
                std::thread::sleep(EVERY);
                // A store that cannot be asked now is asked again; a thread hears of its trouble when it writes.
                let asked = Instant::now();
                let stopped = store.to_stop(&holder).unwrap_or_default();
                state = shared.state();
                for (since, flag) in stopped.iter().filter_map(|id| state.flags.get(id)) {
                    // A message of the store from before the thread was continued was for its previous holder.
                    if *since <= asked {
                        flag.store(true, Ordering::SeqCst);
                    }
                }
            }
        };
        let started = std::thread::Builder::new().name("cuebook-cancel".into()).stack_size(STACK).spawn(look);
        if let Err(error) = started {
            tracing::warn!(%error, "cannot start the thread that watches for cancel requests");
        }
        made
    }

    /// Watches a thread for as long as the result lives.
    pub fn watch(&self, id: &ThreadId) -> Watched {
        let flag = Arc::new(AtomicBool::new(false));
        self.0.state().flags.insert(id.clone(), (Instant::now(), flag.clone()));
        self.0.changed.notify_all();
        Watched { shared: self.0.clone(), id: id.clone(), flag }
    }
}

impl Drop for CancelWatch {
    fn drop(&mut self) {
        self.0.state().over = true;
        self.0.changed.notify_all();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        // Another holder may have continued the thread already, in this process too.
        if state.flags.get(&self.id).is_some_and(|(_, flag)| Arc::ptr_eq(flag, &self.flag)) {
            state.flags.remove(&self.id);
        }
    }
}
