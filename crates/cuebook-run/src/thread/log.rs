//! The log of a thread as it is kept, read whole.

use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};

use super::{Event, ThreadId, verify};
use crate::store::{Filter, Record, Store};

/// How much of a log is read at once.
pub(super) const PAGE: usize = 1000;

/// All events of a thread, checked against each other and against the registry.
pub fn whole_log(store: &dyn Store, record: &Record) -> Result<Vec<Event>> {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let after = events.last().map_or(0, |event| event.seq);
        let page = store.events(&record.id, after, PAGE)?;
        let is_last = page.len() < PAGE || page.iter().any(|event| event.seq > record.last.0);
        events.extend(page);
        if is_last {
            break;
        }
    }
    if events.last().is_some_and(|event| event.seq > record.last.0) {
        // Somebody has written since the record was read, or somebody who may not has.
        let now = store.record(&record.id)?;
        if now.is_some_and(|now| now.last != record.last) {
            events.retain(|event| event.seq <= record.last.0);
        }
    }
    verify(&record.id, &events, Some((record.last.0, &record.last.1)))?;
    Ok(events)
}

/// There is no such thread; perhaps one with a similar name.
pub(crate) fn not_found(store: &dyn Store, id: &ThreadId) -> Error {
    let known = store.list(&Filter { most: Some(200), ..Filter::default() }).unwrap_or_default();
    let near = nearest(id.as_str(), known.iter().map(|record| record.id.as_str()));
    let hint = did_you_mean(&near).unwrap_or_else(|| "cuebook thread list shows those that there are".into());
    let diagnostic = Diagnostic::new(Code::ThreadNotFound, format!("there is no thread `{id}`")).hint(hint);
    Error::new(ErrorKind::ItemNotFound, diagnostic).with("thread_id", id.as_str())
}
