//! What a conversation used, over all threads that it went through, and what the threads below one have spent so far.

use std::collections::BTreeSet;

use cuebook::Result;
use serde_json::{Value as Json, json};

use super::{Money, ThreadId};
use crate::store::{Cost, Record, Store};

/// What a conversation used that went through several threads, because one after the other was full.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Conversation {
    /// Its threads, the first one first.
    pub threads: Vec<ThreadId>,
    /// What all of them used.
    pub cost: Cost,
    /// What the children of all of them spent so far, and theirs.
    pub children: Money,
}

impl Conversation {
    /// The conversation of a thread; `None` if that is its only one.
    ///
    /// # Errors
    ///
    /// Whatever the store says.
    pub fn of(store: &dyn Store, record: &Record) -> Result<Option<Conversation>> {
        if record.continuation_of.is_none() && record.continued_by.is_none() {
            return Ok(None);
        }
        let chain = chain(store, record.clone())?;
        let mut whole = Conversation { threads: Vec::new(), cost: Cost::default(), children: Money::ZERO };
        for record in &chain {
            whole.threads.push(record.id.clone());
            whole.cost = whole.cost.plus(&record.cost);
            whole.children = whole.children + spent_below(store, record)?;
        }
        Ok(Some(whole))
    }

    /// The sum as scripts see it: a cost that says of how many threads it is.
    pub fn to_json(&self) -> Json {
        let mut json = self.cost.to_json();
        if self.children > Money::ZERO {
            json["children_spend"] = self.children.to_json();
        }
        json["threads"] = json!(self.threads.len());
        json
    }
}

/// What the threads below one have spent so far, whether they have settled or not.
///
/// The ledger counts a child as spent when it settles, and keeps its whole limit until then; a reader wants to know what
/// is gone.
///
/// # Errors
///
/// Whatever the store says.
pub fn spent_below(store: &dyn Store, record: &Record) -> Result<Money> {
    if record.spawned == 0 {
        return Ok(Money::ZERO);
    }
    let below = store.tree(&record.id)?;
    Ok(below.iter().filter(|other| other.id != record.id).map(|other| other.cost.spend).sum())
}

/// A thread, those whose conversation it goes on with, and those that go on with its own; the oldest first.
pub(super) fn chain(store: &dyn Store, record: Record) -> Result<Vec<Record>> {
    let mut known = BTreeSet::from([record.id.clone()]);
    let mut chain = vec![record];
    let before = |record: &Record| record.continuation_of.clone();
    let behind = |record: &Record| record.continued_by.clone();
    follow(store, &mut chain, &mut known, before)?;
    chain.reverse();
    follow(store, &mut chain, &mut known, behind)?;
    Ok(chain)
}

/// Follows a conversation from its last known thread, in one direction. A thread that is known already ends it.
fn follow(
    store: &dyn Store,
    chain: &mut Vec<Record>,
    known: &mut BTreeSet<ThreadId>,
    next: impl Fn(&Record) -> Option<ThreadId>,
) -> Result<()> {
    while let Some(id) = chain.last().and_then(&next) {
        match store.record(&id)? {
            Some(record) if known.insert(record.id.clone()) => chain.push(record),
            _ => break,
        }
    }
    Ok(())
}
