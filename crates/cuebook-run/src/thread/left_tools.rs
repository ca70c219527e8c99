//! Tools that are left running when the process dies that ran their thread.
//!
//! Every tool that a thread starts carries a mark in its environment: which process had taken the thread up, and for which call.
//! It is made by hashing, so a reader learns nothing by which threads can be touched. A process that finds the other dead looks
//! for tools with its marks, on the same machine, and stops them before the thread is marked: no tool of an earlier life runs beside those of the next one.
//! What a call left behind on purpose, and which had ended, goes on.

use std::cell::OnceCell;
use std::collections::HashSet;

use cuebook::Result;
use serde_json::Map;

use super::log::PAGE;
use super::{Kind, Status, ThreadId};
use crate::caller::{MARK, mark};
use crate::processes::{self, MarkedProcess};
use crate::store::{Holder, Record, Store, lives};

/// What the event of an interrupted thread says how many tools were stopped.
pub(crate) const STOPPED: &str = "tools_stopped";

/// A thread whose process was found dead.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct DeadThread {
    /// The thread.
    pub id: ThreadId,
    /// How many tools were left running, and stopped.
    pub tools: usize,
}

/// Marks threads whose process died, and stops the tools that they left running.
///
/// # Errors
///
/// `CB724` if the store fails.
pub fn sweep(store: &dyn Store) -> Result<Vec<DeadThread>> {
    // Looked at once for all of them, and only if there are any.
    let marked = OnceCell::new();
    let tools = std::cell::RefCell::new(Vec::new());
    let dead = |record: &Record| {
        let count = stop(store, record, marked.get_or_init(|| processes::marked(MARK)))?;
        let mut said = Map::new();
        if count > 0 {
            said.insert(STOPPED.to_owned(), count.into());
        }
        tools.borrow_mut().push(DeadThread { id: record.id.clone(), tools: count });
        Ok(said)
    };
    let swept = store.sweep_with(&lives, &dead)?;
    let mut dead = tools.into_inner();
    dead.retain(|dead| swept.contains(&dead.id));
    Ok(dead)
}

/// Stops the tools that an interrupted thread has left running, if its process was one of this machine and is dead. Returns how many.
pub(crate) fn stop_left(store: &dyn Store, record: &Record) -> Result<usize> {
    match record.status == Status::Interrupted && dead_here(record).is_some() {
        true => stop(store, record, &processes::marked(MARK)),
        false => Ok(0),
    }
}

/// Who ran a thread, if it was a process of this machine and is dead.
fn dead_here(record: &Record) -> Option<&Holder> {
    record.holder.as_ref().filter(|holder| holder.is_here() && !lives(holder, None))
}

fn stop(store: &dyn Store, record: &Record, marked: &[MarkedProcess]) -> Result<usize> {
    let Some(holder) = dead_here(record) else { return Ok(0) };
    let whose = mark(holder, None);
    let is_its = |process: &MarkedProcess| process.mark.split('.').next() == Some(whose.as_str());
    if !marked.iter().any(is_its) {
        return Ok(0);
    }
    let ended = ended(store, record, holder)?;
    let find = || -> Vec<MarkedProcess> {
        let all = processes::marked(MARK).into_iter();
        all.filter(|process| is_its(process) && !ended.contains(&process.mark)).collect()
    };
    Ok(processes::stop(&find).len())
}

/// The marks of calls that had ended.
fn ended(store: &dyn Store, record: &Record, holder: &Holder) -> Result<HashSet<String>> {
    let mut ended = HashSet::new();
    let mut after = 0;
    loop {
        let events = store.events(&record.id, after, PAGE)?;
        let Some(last) = events.last() else { return Ok(ended) };
        after = last.seq;
        let results = events.iter().filter(|event| event.kind == Kind::ToolResult);
        ended
            .extend(results.filter_map(|event| Some(mark(holder, Some(event.payload["call_id"].as_str()?)))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_identifies_the_process_and_the_call_only() {
        let (one, other) = (Holder::of_this_process(), Holder::of_this_process());
        assert_ne!(mark(&one, None), mark(&other, None));
        let (a, b) = (mark(&one, Some("a")), mark(&one, Some("b")));
        assert_ne!(a, b);
        assert!(a.starts_with(&mark(&one, None)) && b.starts_with(&mark(&one, None)));
        for text in [&one.token, &one.host] {
            assert!(!a.contains(text.as_str()), "{a}");
        }
    }
}
