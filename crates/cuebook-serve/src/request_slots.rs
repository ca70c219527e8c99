//! How much clients may have under way: one client, and all of them together.
//!
//! A call of a tool can take minutes, and everything else takes moments. The two have slots of their own, so slow calls
//! never delay a prompt or a list. A client's requests wait for their turn in its own slots first, so one client cannot take
//! every place.

use std::sync::Arc;

use cuebook::{Code, Diagnostic, Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Calls of tools that all clients together may have under way.
pub(crate) const MAX_CALLS: usize = 48;
/// Calls of tools that one client may have under way.
const MAX_CALLS_OF_ONE: usize = 32;
/// Other requests that one client may have under way.
const MAX_READS_OF_ONE: usize = 16;
/// Requests of one client that are answered or wait for it.
const MAX_PENDING: usize = 512;

/// The slots of one client.
#[derive(Clone)]
pub(crate) struct RequestSlots {
    all_calls: Arc<Semaphore>,
    calls: Arc<Semaphore>,
    reads: Arc<Semaphore>,
    pending: Arc<Semaphore>,
}

/// The right to work on one request. It ends when this is dropped, so the work has to own it.
pub(crate) struct RequestSlot(
    #[expect(dead_code, reason = "the permits are held, not read")] Vec<OwnedSemaphorePermit>,
);

impl RequestSlots {
    /// The slots of the first client of a server.
    pub(crate) fn new() -> RequestSlots {
        RequestSlots::beside(&Arc::new(Semaphore::new(MAX_CALLS)))
    }

    /// The slots of another client.
    pub(crate) fn of_another(&self) -> RequestSlots {
        RequestSlots::beside(&self.all_calls)
    }

    fn beside(all_calls: &Arc<Semaphore>) -> RequestSlots {
        let slots = |places| Arc::new(Semaphore::new(places));
        RequestSlots {
            all_calls: all_calls.clone(),
            calls: slots(MAX_CALLS_OF_ONE),
            reads: slots(MAX_READS_OF_ONE),
            pending: slots(MAX_PENDING),
        }
    }

    /// Waits until a tool may be called.
    pub(crate) async fn call(&self) -> Result<RequestSlot> {
        self.wait(&[&self.calls, &self.all_calls]).await
    }

    /// Waits until something may be read.
    pub(crate) async fn read(&self) -> Result<RequestSlot> {
        self.wait(&[&self.reads]).await
    }

    async fn wait(&self, request_slots: &[&Arc<Semaphore>]) -> Result<RequestSlot> {
        let mut held = vec![self.pending.clone().try_acquire_owned().map_err(|_| busy())?];
        for slots in request_slots {
            held.push((*slots).clone().acquire_owned().await.map_err(|_| busy())?);
        }
        Ok(RequestSlot(held))
    }
}

/// `CB807`
fn busy() -> Error {
    let message = format!("this client already has {MAX_PENDING} pending requests");
    let hint = "wait for answers, then send the request again";
    Error::new(ErrorKind::Limit, Diagnostic::new(Code::ServerBusy, message).hint(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_of_one_client_take_no_place_of_reads_or_of_others() {
        let first = RequestSlots::new();
        let second = first.of_another();
        let mut held = Vec::new();
        for _ in 0..MAX_CALLS_OF_ONE {
            held.push(first.call().await.unwrap());
        }
        let waits = tokio::time::timeout(std::time::Duration::ZERO, first.call()).await;
        assert!(waits.is_err());
        held.push(first.read().await.unwrap());
        held.push(second.call().await.unwrap());
    }

    #[tokio::test]
    async fn too_many_requests_are_refused_per_client() {
        let first = RequestSlots::new();
        let waiting: Vec<_> = (0..MAX_PENDING)
            .map(|_| {
                let request_slots = first.clone();
                tokio::spawn(async move { (request_slots.call().await, std::future::pending::<()>().await) })
            })
            .collect();
        while first.pending.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(first.read().await.err().unwrap().code(), Code::ServerBusy);
        assert!(first.of_another().read().await.is_ok());
        waiting.iter().for_each(|task| task.abort());
    }
}
