//! A few connections that many threads share.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use cuebook_text::Result;

pub(crate) struct Pool<C> {
    most: usize,
    state: Mutex<State<C>>,
}

struct State<C> {
    idle: Vec<C>,
    /// How many there are, idle and lent.
    made: usize,
    /// The waiters, in the order in which they came. One that has just given a connection back does not get it again before
    /// them.
    waiting: VecDeque<Arc<Condvar>>,
}

impl<C> State<C> {
    /// Wakes the first one that waits, if there is something for it.
    fn wake(&self, most: usize) {
        let free = !self.idle.is_empty() || self.made < most;
        if let Some(first) = self.waiting.front().filter(|_| free) {
            first.notify_one();
        }
    }
}

impl<C> fmt::Debug for Pool<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("most", &self.most).finish_non_exhaustive()
    }
}

impl<C> Pool<C> {
    pub(crate) fn new(most: usize) -> Pool<C> {
        Pool { most, state: Mutex::new(State { idle: Vec::new(), made: 0, waiting: VecDeque::new() }) }
    }

    fn state(&self) -> MutexGuard<'_, State<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something with a connection; makes one if none is idle and there may be more, else waits for one. A connection
    /// that the job does not want to keep is closed.
    pub(crate) fn with<R>(
        &self,
        make: impl FnOnce() -> Result<C>,
        job: impl FnOnce(&mut C) -> (R, ConnectionState),
    ) -> Result<R> {
        // Whatever happens from here on, the place is given back if there is no connection to give back.
        let mut pooled = PooledConnection { pool: self, connection: self.idle() };
        let mut connection = match pooled.connection.take() {
            Some(connection) => connection,
            None => make()?,
        };
        let (answer, keep) = job(&mut connection);
        if keep == ConnectionState::Yes {
            pooled.connection = Some(connection);
        }
        Ok(answer)
    }

    /// An idle connection, or the right to make one.
    fn idle(&self) -> Option<C> {
        let mut state = self.state();
        let free = |state: &State<C>| !state.idle.is_empty() || state.made < self.most;
        if !state.waiting.is_empty() || !free(&state) {
            let turn = Arc::new(Condvar::new());
            state.waiting.push_back(Arc::clone(&turn));
            while !state.waiting.front().is_some_and(|first| Arc::ptr_eq(first, &turn)) || !free(&state) {
                state = turn.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            state.waiting.pop_front();
        }
        let connection = state.idle.pop();
        if connection.is_none() {
            state.made += 1;
        }
        state.wake(self.most);
        connection
    }

    /// Closes the ones that are idle.
    pub(crate) fn forget_idle(&self) {
        let mut state = self.state();
        let idle = std::mem::take(&mut state.idle);
        state.made -= idle.len();
        state.wake(self.most);
        drop(state);
        drop(idle);
    }
}

/// Whether a connection can be used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConnectionState {
    Yes,
    No,
}

/// A connection that goes back when it is dropped.
struct PooledConnection<'p, C> {
    pool: &'p Pool<C>,
    connection: Option<C>,
}

impl<C> Drop for PooledConnection<'_, C> {
    fn drop(&mut self) {
        let mut state = self.pool.state();
        match self.connection.take() {
            Some(connection) => state.idle.push(connection),
            None => state.made -= 1,
        }
        state.wake(self.pool.most);
    }
}
