//! Works on the rows of a file with several threads, and passes the results on in the order of the file.
//!
//! A thread takes a few rows, works on them, and waits until it is their turn. Threads that are far ahead wait, so the memory does not
//! grow with the file.

use std::collections::BTreeMap;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use cuebook::Result;
use cuebook_run::provider::Stop;

use crate::rows::{Row, Rows};

/// The most rows that a thread takes at once, and about how many bytes they may have.
const ROWS: usize = 128;
const BYTES: usize = 1 << 20;
/// So many groups of rows may wait for their turn, for each thread.
const AHEAD: u64 = 4;
/// Templates nest, and a stack that is too small ends the program.
const STACK: usize = 8 << 20;

struct Source<'r> {
    rows: Box<dyn Rows + 'r>,
    next: u64,
    ended: bool,
}

impl Source<'_> {
    /// The next few rows, and their place in the order.
    fn take(&mut self) -> Result<Option<(u64, Vec<Row>)>> {
        let (mut group, mut bytes) = (Vec::with_capacity(ROWS), 0);
        while !self.ended && group.len() < ROWS && bytes < BYTES {
            match self.rows.next_row().transpose() {
                Ok(Some(row)) => {
                    bytes +=
                        row.values.values().map(|value| value.as_str().map_or(16, str::len)).sum::<usize>();
                    group.push(row);
                }
                Ok(None) => self.ended = true,
                Err(error) => {
                    self.ended = true;
                    return Err(error);
                }
            }
        }
        if group.is_empty() {
            return Ok(None);
        }
        self.next += 1;
        Ok(Some((self.next - 1, group)))
    }
}

struct Sink<T, F> {
    waiting: BTreeMap<u64, Vec<T>>,
    next: u64,
    failed: Option<cuebook::Error>,
    stopped: bool,
    accept: F,
}

/// Works on all rows. `sink` gets the results in order, and may end the work with an error. Says whether it came to the end of the
/// file: it does not where `stop` says so.
pub(crate) fn in_order<T: Send>(
    rows: Box<dyn Rows + '_>,
    threads: usize,
    stop: &Stop,
    work: impl Fn(&Row) -> T + Sync,
    accept: impl FnMut(Row, T) -> Result<()> + Send,
) -> Result<bool> {
    let mut accept = accept;
    let source = Mutex::new(Source { rows, next: 0, ended: false });
    let sink = Mutex::new(Sink {
        waiting: BTreeMap::new(),
        next: 0,
        failed: None,
        stopped: false,
        accept: |(row, result): (Row, T)| accept(row, result),
    });
    let turn = Condvar::new();
    let run = || one_thread(&source, &sink, &turn, threads as u64 * AHEAD, stop, &work);
    match threads {
        0 | 1 => run(),
        _ => thread::scope(|scope| {
            for _ in 0..threads {
                let builder = thread::Builder::new().name("rows".into()).stack_size(STACK);
                // With one thread fewer it takes longer. Without any, this one does the work.
                let _ = builder.spawn_scoped(scope, run);
            }
            run();
        }),
    }
    let sink = sink.into_inner().unwrap_or_else(PoisonError::into_inner);
    match sink.failed {
        Some(error) => Err(error),
        None => Ok(!sink.stopped),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn one_thread<T: Send, F: FnMut((Row, T)) -> Result<()>>(
    source: &Mutex<Source<'_>>,
    sink: &Mutex<Sink<(Row, T), F>>,
    turn: &Condvar,
    ahead: u64,
    stop: &Stop,
    work: &(impl Fn(&Row) -> T + Sync),
) {
    loop {
        {
            // Before more is taken, what is done must not be too far ahead of its turn.
            let mut sink = locked(sink);
            while sink.waiting.len() as u64 > ahead && sink.failed.is_none() && !sink.stopped {
                sink = turn.wait(sink).unwrap_or_else(PoisonError::into_inner);
            }
            if stop.is_set() {
                sink.stopped = true;
            }
            if sink.failed.is_some() || sink.stopped {
                turn.notify_all();
                return;
            }
        }
        let taken = locked(source).take();
        let (place, group) = match taken {
            Ok(Some(group)) => group,
            Ok(None) => return,
            Err(error) => {
                locked(sink).failed.get_or_insert(error);
                turn.notify_all();
                return;
            }
        };
        let done: Vec<(Row, T)> = group
            .into_iter()
            .map(|row| {
                let result = work(&row);
                (row, result)
            })
            .collect();
        let mut sink = locked(sink);
        sink.waiting.insert(place, done);
        while let Some(group) = {
            let next = sink.next;
            sink.waiting.remove(&next)
        } {
            sink.next += 1;
            for done in group {
                if sink.failed.is_none()
                    && let Err(error) = (sink.accept)(done)
                {
                    sink.failed = Some(error);
                }
            }
        }
        turn.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Map;

    use super::*;

    struct Numbers(u64, u64);

    impl Rows for Numbers {
        fn next_row(&mut self) -> Option<Result<Row>> {
            self.0 += 1;
            (self.0 <= self.1).then(|| Ok(Row { number: self.0, values: Map::new(), fault: None }))
        }
    }

    #[test]
    fn results_come_in_the_order_of_the_rows() {
        for threads in [1, 2, 7] {
            let mut seen = Vec::new();
            let never = Stop::when(|| false);
            let work = |row: &Row| {
                if row.number.is_multiple_of(97) {
                    thread::yield_now();
                }
                row.number * 2
            };
            let whole = in_order(Box::new(Numbers(0, 5000)), threads, &never, work, |row, result| {
                assert_eq!(row.number * 2, result);
                seen.push(row.number);
                Ok(())
            });
            assert!(whole.unwrap());
            assert!(seen.iter().copied().eq(1..=5000), "{threads} threads");
        }
    }

    #[test]
    fn an_error_of_the_output_ends_the_work() {
        use cuebook::{Code, Diagnostic, Error, ErrorKind};
        let never = Stop::when(|| false);
        let mut seen = 0;
        let result = in_order(
            Box::new(Numbers(0, u64::MAX - 1)),
            3,
            &never,
            |_| (),
            |_, ()| {
                seen += 1;
                match seen {
                    1000 => Err(Error::new(ErrorKind::Io, Diagnostic::new(Code::WriteFailed, "full"))),
                    _ => Ok(()),
                }
            },
        );
        assert_eq!(result.unwrap_err().code(), Code::WriteFailed);
        assert_eq!(seen, 1000);
    }
}
