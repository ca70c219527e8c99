//! Templates whose names a render computes: `{% include name %}`.
//!
//! They are not known beforehand, so a render that asks for one that is not compiled stops, has it compiled, and begins
//! again. What is asked for is kept per render: it is found out inside the engine, which hands us nothing of ours, and a
//! render runs on one thread from its beginning to its end.

use std::cell::RefCell;
use std::sync::Arc;

use crate::error::Error;
use crate::source::Source;

/// What one render asked for and could not have at once.
#[derive(Default)]
pub(super) struct Asked {
    /// Templates that exist and are not compiled yet.
    pub(super) wanted: Vec<Arc<Source>>,
    /// Why one could not be found at all: a conflict, a file that cannot be read.
    pub(super) failed: Option<Error>,
    /// Names under which the engine must not be told "not found".
    refused: Vec<String>,
}

thread_local! {
    /// One entry per render that is running on this thread; a render may start another.
    static RUNNING: RefCell<Vec<Asked>> = const { RefCell::new(Vec::new()) };
}

/// Ends the entry of a render, also if it panics.
struct Entry;

impl Drop for Entry {
    fn drop(&mut self) {
        RUNNING.with_borrow_mut(Vec::pop);
    }
}

/// Runs a render and gives back what it asked for.
pub(super) fn during<T>(render: impl FnOnce() -> T) -> (T, Asked) {
    RUNNING.with_borrow_mut(|running| running.push(Asked::default()));
    let entry = Entry;
    let result = render();
    let asked = RUNNING.with_borrow_mut(|running| running.last_mut().map(std::mem::take)).unwrap_or_default();
    drop(entry);
    (result, asked)
}

/// Notes a template that is to be compiled.
pub(super) fn want(source: Arc<Source>) {
    RUNNING.with_borrow_mut(|running| {
        if let Some(asked) = running.last_mut() {
            asked.refused.push(source.name().to_owned());
            asked.wanted.push(source);
        }
    });
}

/// Notes why a name could not be followed.
pub(super) fn fail(name: &str, error: Error) {
    RUNNING.with_borrow_mut(|running| {
        if let Some(asked) = running.last_mut() {
            asked.refused.push(name.to_owned());
            asked.failed.get_or_insert(error);
        }
    });
}

/// Whether the running render has asked for this name and must stop.
pub(super) fn is_refused(name: &str) -> bool {
    RUNNING.with_borrow(|running| {
        running.last().is_some_and(|asked| asked.refused.iter().any(|refused| refused == name))
    })
}
