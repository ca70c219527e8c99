//! Group commit: threads that write at the same time share a transaction, and so wait for the disk once.
//!
//! A caller that comes while there is no writer leads: it takes everything that waits, does it in one transaction, tells the others what
//! came of theirs, and lets the first of those who came meanwhile lead. A thread that is alone never waits for another one.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use cuebook_text::{Error, Result};

use super::error;
use super::sql::Sql;

/// How many jobs share a transaction at most. With more of them the first waits long for the last.
const MAX_TOGETHER: usize = 128;

/// A job of a group.
pub(crate) trait Task: Send {
    /// Does it, and says whether it went well. May be called again.
    fn run(&mut self, sql: &mut dyn Sql) -> bool;

    /// It did not happen after all.
    fn fail(&mut self, error: &Error);
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Turn {
    Wait,
    Lead,
    Done,
}

struct Signal {
    turn: Mutex<Turn>,
    reported: Condvar,
}

impl Signal {
    fn notify(&self, turn: Turn) {
        *lock(&self.turn) = turn;
        self.reported.notify_one();
    }

    fn wait(&self) -> Turn {
        let mut turn = lock(&self.turn);
        while *turn == Turn::Wait {
            turn = self.reported.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        *turn
    }
}

type QueuedTask = (Box<dyn Task>, Arc<Signal>);

#[derive(Default)]
struct Queue {
    waiting: VecDeque<QueuedTask>,
    busy: bool,
}

/// Threads that write to one connection.
pub(crate) struct Group<C> {
    queue: Mutex<Queue>,
    connection: Mutex<C>,
}

impl<C> Group<C> {
    pub(crate) fn new(connection: C) -> Group<C> {
        Group { queue: Mutex::default(), connection: Mutex::new(connection) }
    }

    /// Does a job, with others if there are any. `together` does many jobs in one transaction.
    pub(crate) fn write<T: Send + 'static>(
        &self,
        place: &str,
        job: impl Fn(&mut dyn Sql) -> Result<T> + Send + 'static,
        together: impl Fn(&mut C, &mut [&mut dyn Task]),
    ) -> Result<T> {
        let answer = Arc::new(Mutex::new(None));
        let signal = Arc::new(Signal { turn: Mutex::new(Turn::Wait), reported: Condvar::new() });
        let leads = {
            let mut queue = lock(&self.queue);
            queue
                .waiting
                .push_back((Box::new(GroupJob { job, answer: Arc::clone(&answer) }), Arc::clone(&signal)));
            !std::mem::replace(&mut queue.busy, true)
        };
        if leads || signal.wait() == Turn::Lead {
            let mut batch = {
                let mut queue = lock(&self.queue);
                let many = queue.waiting.len().min(MAX_TOGETHER);
                Batch { queue: &self.queue, waiting: queue.waiting.drain(..many).collect() }
            };
            let mut tasks: Vec<&mut dyn Task> =
                batch.waiting.iter_mut().map(|(task, _)| &mut **task as _).collect();
            together(&mut lock(&self.connection), &mut tasks);
        }
        let answer = lock(&answer).take();
        answer.unwrap_or_else(|| Err(error::failed(place, "a transaction failed", "try again")))
    }
}

/// What a leader does. However that ends, the others are notified, and another leads.
struct Batch<'q> {
    queue: &'q Mutex<Queue>,
    waiting: Vec<QueuedTask>,
}

impl Drop for Batch<'_> {
    fn drop(&mut self) {
        let mut queue = lock(self.queue);
        match queue.waiting.front() {
            Some((_, signal)) => signal.notify(Turn::Lead),
            None => queue.busy = false,
        }
        drop(queue);
        for (task, signal) in self.waiting.drain(..) {
            drop(task);
            signal.notify(Turn::Done);
        }
    }
}

/// A job and where its answer goes.
struct GroupJob<T, J> {
    job: J,
    answer: Arc<Mutex<Option<Result<T>>>>,
}

impl<T: Send, J: Fn(&mut dyn Sql) -> Result<T> + Send> Task for GroupJob<T, J> {
    fn run(&mut self, sql: &mut dyn Sql) -> bool {
        let answer = (self.job)(sql);
        let well = answer.is_ok();
        *lock(&self.answer) = Some(answer);
        well
    }

    fn fail(&mut self, error: &Error) {
        *lock(&self.answer) = Some(Err(error.clone()));
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::time::Duration;

    use super::super::sql::Cell;
    use super::*;

    struct NoTask;

    impl Sql for NoTask {
        fn rows(&mut self, _: &str, _: &[Cell]) -> Result<Vec<Vec<Cell>>> {
            Ok(Vec::new())
        }

        fn run(&mut self, _: &str, _: &[Cell]) -> Result<u64> {
            Ok(0)
        }

        fn for_update(&self) -> &'static str {
            ""
        }

        fn place(&self) -> &str {
            "nowhere"
        }
    }

    #[test]
    fn concurrent_writes_share_the_next_transaction() {
        let group = Group::new(0_usize);
        let largest = AtomicUsize::new(0);
        let together = |count: &mut usize, tasks: &mut [&mut dyn Task]| {
            *count += 1;
            largest.fetch_max(tasks.len(), Ordering::Relaxed);
            std::thread::sleep(Duration::from_millis(10));
            tasks.iter_mut().for_each(|task| assert!(task.run(&mut NoTask)));
        };
        std::thread::scope(|scope| {
            for number in 0..50 {
                let (group, together) = (&group, &together);
                scope.spawn(move || {
                    let answer = group.write("nowhere", move |_| Ok(number), together);
                    assert_eq!(answer.unwrap(), number, "everybody gets their own answer");
                });
            }
        });
        assert!(*lock(&group.connection) < 50);
        assert!(largest.into_inner() > 1);
    }

    #[test]
    fn a_job_that_breaks_off_blocks_no_caller() {
        let group = Group::new(());
        let together = |_: &mut (), tasks: &mut [&mut dyn Task]| {
            let well = tasks.iter_mut().filter_map(|task| task.run(&mut NoTask).then_some(())).count();
            assert_eq!(well, tasks.len());
        };
        std::thread::scope(|scope| {
            let broken =
                scope.spawn(|| group.write("nowhere", |_| -> Result<()> { panic!("on purpose") }, together));
            assert!(broken.join().is_err());
        });
        assert_eq!(group.write("nowhere", |_| Ok(7), together).unwrap(), 7);
    }
}
