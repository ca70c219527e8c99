//! The threads that calls are made in. Those of Node are few, and their users wait for files and names.
//!
//! As many threads work as there are cores. A thread that waits for a function of JavaScript does not count as working, so that another
//! one takes its place: functions may make further calls.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

type Job = Box<dyn FnOnce() + Send>;

/// The most threads. More calls of functions than this can be made at the same time, and wait for one another.
const MOST: usize = 1024;
/// How long a thread without work stays.
const IDLE: Duration = Duration::from_secs(10);
/// Templates may nest deeply.
const STACK: usize = 8 << 20;

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// All threads, those of them that have no work, and those that wait for JavaScript.
    threads: usize,
    idle: usize,
    waiting: usize,
}

#[derive(Default)]
struct Workers {
    state: Mutex<State>,
    work: Condvar,
}

static WORKERS: LazyLock<Workers> = LazyLock::new(Workers::default);

thread_local! {
    static IS_WORKER: Cell<bool> = const { Cell::new(false) };
}

fn most_working() -> usize {
    std::thread::available_parallelism().map_or(2, std::num::NonZero::get).max(2)
}

impl Workers {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes a thread for the jobs that wait, or starts one.
    fn call_for_work(&'static self, state: &mut State) {
        if state.jobs.is_empty() {
            return;
        }
        if state.idle > 0 {
            self.work.notify_one();
        } else if state.threads < MOST && state.threads - state.waiting < most_working() {
            let started =
                std::thread::Builder::new().name("cuebook".to_owned()).stack_size(STACK).spawn(|| self.run());
            // If the system has no more threads, those that exist do the work.
            state.threads += usize::from(started.is_ok());
        }
    }

    fn run(&self) {
        IS_WORKER.set(true);
        let mut state = self.state();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                drop(state);
                job();
                state = self.state();
                continue;
            }
            state.idle += 1;
            let (again, timeout) = match self.work.wait_timeout(state, IDLE) {
                Ok(both) => both,
                Err(poisoned) => poisoned.into_inner(),
            };
            state = again;
            state.idle -= 1;
            if timeout.timed_out() && state.jobs.is_empty() {
                state.threads -= 1;
                return;
            }
        }
    }
}

/// Does work in one of the threads.
pub fn start(job: impl FnOnce() + Send + 'static) {
    let mut state = WORKERS.state();
    state.jobs.push_back(Box::new(job));
    WORKERS.call_for_work(&mut state);
}

/// Waits for JavaScript, while another thread takes the place of this one.
pub fn waiting<T>(wait: impl FnOnce() -> T) -> T {
    if !IS_WORKER.get() {
        return wait();
    }
    let mut state = WORKERS.state();
    state.waiting += 1;
    WORKERS.call_for_work(&mut state);
    drop(state);
    let answer = wait();
    WORKERS.state().waiting -= 1;
    answer
}
