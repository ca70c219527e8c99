//! The log of a thread as it is kept, read whole.

use cuebook::error::{did_you_mean, nearest};
use cuebook::{Code, Diagnostic, Error, ErrorKind, Hint, Result};

use super::{Event, ThreadId, first_hash, verify};
use crate::store::{Authenticity, Filter, Record, Store, damaged, not_own};

/// How much of a log is read at once.
pub(super) const PAGE: usize = 1000;

/// All events of a thread, checked against each other and against the registry. What the user's key did not write can only be
/// checked as far as that goes without its key: [`Record::authenticity`] says so.
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
        // Another process has written since the record was read, or one without permission has.
        let now = store.record(&record.id)?;
        if now.is_some_and(|now| now.last != record.last) {
            events.retain(|event| event.seq <= record.last.0);
        }
    }
    let last = Some((record.last.0, record.last.1.as_str()));
    match &record.authenticity {
        Authenticity::Own => verify(store.key(), &record.id, &events, last)?,
        Authenticity::Old => verify(None, &record.id, &events, last)?,
        // Only its owner can say more.
        Authenticity::Foreign => {}
        Authenticity::Damaged(why) => return Err(damaged(&record.id, why)),
    }
    Ok(events)
}

/// The event with which a thread began, checked without the rest of its log.
pub(super) fn first_event(store: &dyn Store, id: &ThreadId, trusted: bool) -> Result<Event> {
    let record = store.record(id)?.ok_or_else(|| not_found(store, id))?;
    let first = store.events(id, 0, 1)?.into_iter().next().ok_or_else(|| not_found(store, id))?;
    check_alone(store, &record, &first, trusted)?;
    Ok(first)
}

/// Checks one event of a thread without the rest of its log. What the user vouches for need not be the user's.
pub(super) fn check_alone(store: &dyn Store, record: &Record, event: &Event, trusted: bool) -> Result<()> {
    match &record.authenticity {
        Authenticity::Own => {}
        Authenticity::Damaged(why) => return Err(damaged(&record.id, why)),
        _ if trusted => return Ok(()),
        other => return Err(not_own(&record.id, other)),
    }
    let previous = match event.seq {
        0 | 1 => first_hash(),
        seq => store.events(&record.id, seq - 2, 1)?.pop().map(|event| event.hash).unwrap_or_default(),
    };
    match event.hashed(store.key(), &record.id, &previous) == event.hash {
        true => Ok(()),
        false => Err(damaged(&record.id, &format!("the hash of event {} does not match", event.seq))),
    }
}

/// There is no such thread; perhaps one with a similar name.
pub(crate) fn not_found(store: &dyn Store, id: &ThreadId) -> Error {
    let known = store.list(&Filter { most: Some(200), ..Filter::default() }).unwrap_or_default();
    let near = nearest(id.as_str(), known.iter().map(|record| record.id.as_str()));
    let hint = did_you_mean(&near).map_or_else(
        || Hint::command_line("`cuebook thread list` lists the threads").with_command("cuebook thread list"),
        Hint::from,
    );
    let diagnostic = Diagnostic::new(Code::ThreadNotFound, format!("there is no thread `{id}`")).hint(hint);
    Error::new(ErrorKind::ItemNotFound, diagnostic).with("thread_id", id.as_str())
}
