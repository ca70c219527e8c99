//! One thread that a worker runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuebook::error::catch_panic;
use cuebook::{Code, Diagnostic, Error, ErrorKind};

use super::Shared;
use crate::record::{Kind, Status, ThreadId};
use crate::stop::Stop;
use crate::store::{Claim, can_run};
use crate::thread::{Carried, give_back};
use crate::watch::{Activity, Watch};

/// Hears of what a thread does, and stops it when its worker is to end.
struct JobWatch<'s, 'w> {
    shared: &'s Shared<'w>,
    claim: &'s Claim,
    /// Another worker has it.
    lost: Arc<AtomicBool>,
}

impl Watch for JobWatch<'_, '_> {
    fn cancelled(&self) -> bool {
        self.lost.load(Ordering::SeqCst) || self.shared.ending.load(Ordering::SeqCst)
    }

    fn leaving(&self) -> bool {
        self.cancelled()
    }

    fn draining(&self, thread: &ThreadId) -> bool {
        // A child is a step of its parent: it runs to its end.
        self.shared.draining.load(Ordering::SeqCst) && *thread == self.claim.id
    }

    fn activity(&self, _: &ThreadId, news: &Activity<'_>) {
        if let Activity::Event(event) = news {
            match event.kind {
                Kind::CognitionOut => self.shared.metrics.turn(),
                Kind::ToolStart => self.shared.metrics.tool(),
                Kind::Retry => self.shared.metrics.retry(),
                _ => {}
            }
        }
    }

    fn stop(&self) -> Option<Stop> {
        let (lost, ending) = (self.lost.clone(), self.shared.ending.clone());
        Some(Stop::when(move || lost.load(Ordering::SeqCst) || ending.load(Ordering::SeqCst)))
    }
}

/// Runs a thread that was claimed, and sees to it that its claim does not outlive that.
pub(super) fn run(shared: &Shared<'_>, claim: Claim, lost: Arc<AtomicBool>) {
    let is_broken = match catch_panic(|| carry(shared, &claim, lost)) {
        Ok(Carried::Ran(finished)) => {
            shared.ended(&finished);
            false
        }
        Ok(Carried::Failed(error)) => {
            shared.lost(&claim, &error, Some(Status::Error));
            false
        }
        Ok(Carried::NotOurs(error)) => {
            shared.lost(&claim, &error, None);
            release(shared, &claim).is_err()
        }
        Ok(Carried::Broken(error)) => {
            shared.lost(&claim, &error, None);
            give_back(&*shared.store, &claim).is_err()
        }
        Err(message) => {
            let diagnostic = Diagnostic::new(Code::ToolFailed, format!("the thread panicked: {message}"))
                .hint("report the panic; another worker continues the thread");
            shared.lost(&claim, &Error::new(ErrorKind::Execute, diagnostic), None);
            give_back(&*shared.store, &claim).is_err()
        }
    };
    shared.stopped(claim, is_broken);
}

fn carry(shared: &Shared<'_>, claim: &Claim, lost: Arc<AtomicBool>) -> Carried {
    let worker = shared.worker;
    let engine = worker.unsandboxed.filter(|_| !claim.sandbox).unwrap_or(worker.engine);
    let project = match engine.project(Some(&shared.project)) {
        Ok(project) => project,
        Err(error) => return Carried::Broken(error),
    };
    let store = match engine.store_of(&project) {
        Ok(store) => store,
        Err(error) => return Carried::Broken(error),
    };
    let watch = JobWatch { shared, claim, lost };
    engine.carry_claimed(&project, &store, worker.book, claim, &watch)
}

/// Releases a claim of a thread that is not to be run here. One that no worker may run leaves the queue.
fn release(shared: &Shared<'_>, claim: &Claim) -> cuebook::Result<()> {
    let is_over = match shared.store.record(&claim.id)? {
        Some(record) => !can_run(&record) && record.status != Status::Running,
        None => true,
    };
    shared.store.unclaim(claim, is_over).map(drop)
}
