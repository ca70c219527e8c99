//! Threads that are queued for a worker, and what a worker does with one that it has claimed.

use std::path::Path;
use std::sync::Arc;

use cuebook::{Book, Code, Error, Result};
use jiff::Timestamp;

use super::launch::Launch;
use super::log::{first_event, not_found};
use super::resume::{Resume, busy};
use super::run::{RunRequest, registration};
use super::{Status, ThreadId, ThreadRun};
use crate::engine::{Engine, Project};
use crate::provider::Providers;
use crate::settings::Fence;
use crate::store::{Change, Claim, Holder, Place, Record, Store, can_run, failed_to_start};
use crate::watch::Watch;

/// How a thread is queued.
#[derive(Debug, Clone, Default)]
pub struct QueueOptions {
    /// The queue; that of the project's folder if it is `None`.
    pub queue: Option<String>,
    /// Threads with a higher priority start first; 0 is usual.
    pub priority: i64,
    /// The earliest start; at once if it is `None`.
    pub due_at: Option<Timestamp>,
}

/// What came of a thread that a worker had claimed.
pub(crate) enum Carried {
    /// It ran, in whatever way it ended.
    Ran(Box<super::Finished>),
    /// It did not begin, which its log says.
    Failed(Error),
    /// It is another one's, or nothing is to be done for it any more.
    NotOurs(Error),
    /// The store failed, or the thread was lost while it ran.
    Broken(Error),
}

impl Engine {
    /// Queues a prompt of any dialect for a worker. Everything about its thread is decided and frozen now, as for one that runs at once.
    ///
    /// # Errors
    ///
    /// Whatever keeps it from beginning.
    pub fn queue(
        &self,
        book: &Book,
        request: &RunRequest,
        options: &QueueOptions,
        watch: &dyn Watch,
    ) -> Result<Record> {
        let (project, store, beginning) = self.beginning(book, request, watch)?;
        let place = self.place(&project, options, &beginning.launch)?;
        let secrets = self.secrets(&project)?;
        let record = store.enqueue(&registration(&*store, &beginning, &secrets, None)?, &place)?;
        self.report_events(&*store, &record.id, 0, watch);
        Ok(record)
    }

    /// Queues a thread that rests, so that a worker continues it.
    ///
    /// # Errors
    ///
    /// As [`Engine::resume_with`].
    #[doc(hidden)]
    pub fn queue_again(
        &self,
        project: Option<&Path>,
        id: &ThreadId,
        allow_again: bool,
        options: &QueueOptions,
    ) -> Result<Record> {
        let store = self.threads_so_far(project)?;
        let project = self.project(project)?;
        let record = store.record(id)?.ok_or_else(|| not_found(&*store, id))?;
        if record.status == Status::Running {
            return Err(busy(&record));
        }
        let launch = Launch::from_json(&first_event(&*store, id, false)?.payload)?;
        if !allow_again {
            super::resume::refuse_unconfirmed(&record, &launch, &format!("resume {id}"))?;
        }
        let place = self.place(&project, options, &launch)?;
        store.requeue(id, record.last.0, &place)
    }

    /// The queue of a project: what its workers take threads from unless they are told otherwise.
    #[doc(hidden)]
    pub fn queue_name(&self, project: Option<&Path>) -> Result<String> {
        Ok(self.project(project)?.spaces.project().to_string_lossy().into_owned())
    }

    fn place(&self, project: &Project, options: &QueueOptions, launch: &Launch) -> Result<Place> {
        let name = || project.spaces.project().to_string_lossy().into_owned();
        let providers = Providers::new(&project.spaces, project.trust())?;
        let key = providers.key_of(&launch.provider);
        Ok(Place {
            queue: options.queue.clone().unwrap_or_else(name),
            priority: options.priority,
            due_at: options.due_at,
            provider_key: key.unwrap_or_else(|| launch.provider.clone()),
            sandbox: self.settings().fence != Fence::Off,
        })
    }

    /// Runs a thread that a worker has claimed.
    pub(crate) fn carry_claimed(
        &self,
        project: &Arc<Project>,
        store: &Arc<dyn Store>,
        book: Option<&Book>,
        claim: &Claim,
        watch: &dyn Watch,
    ) -> Carried {
        let record = match store.record(&claim.id) {
            Ok(Some(record)) => record,
            Ok(None) => return Carried::NotOurs(not_found(&**store, &claim.id)),
            Err(error) => return Carried::Broken(error),
        };
        if !can_run(&record) {
            return Carried::NotOurs(busy(&record));
        }
        // The row of the queue says that its user allowed what the log says.
        let how = Resume { allow_again: true, behind: Some(record.last.0), ..Resume::default() };
        let holder = claim.holder.clone();
        match self.take_up(project, store, book, &record, &how, holder.clone(), watch) {
            Ok(ThreadRun::Finished(finished)) => Carried::Ran(finished),
            Ok(ThreadRun::Detached { id, .. }) => Carried::NotOurs(not_found(&**store, &id)),
            Err(error) => self.not_carried(&**store, &record, holder, error),
        }
    }

    fn not_carried(&self, store: &dyn Store, before: &Record, holder: Holder, error: Error) -> Carried {
        if error.code() == Code::StoreFailed {
            return Carried::Broken(error);
        }
        match store.record(&before.id) {
            // It began, and its end could not be written.
            Ok(Some(now)) if now.status == Status::Running && now.holder.as_ref() == Some(&holder) => {
                Carried::Broken(error)
            }
            Ok(Some(now)) if now.last == before.last && now.status == before.status => {
                if error.code() == Code::ThreadBusy {
                    return Carried::NotOurs(error);
                }
                let (entries, result) = failed_to_start(&error, &now);
                let written = store
                    .take(&now.id, &holder, &[], &Change { behind: Some(now.last.0), ..Change::default() })
                    .and_then(|_| {
                        let change =
                            Change { status: Some(Status::Error), result: Some(result), ..Change::default() };
                        store.append(&now.id, &holder, &entries, &change)
                    });
                match written {
                    Ok(_) => Carried::Failed(error),
                    Err(error) => Carried::Broken(error),
                }
            }
            Ok(_) => Carried::NotOurs(error),
            Err(error) => Carried::Broken(error),
        }
    }
}

/// Gives back a thread that this process claimed and runs no more, because the store failed: it is interrupted if it had begun, and
/// waits for a worker again. A conversation may have gone on in other threads.
pub(crate) fn give_back(store: &dyn Store, claim: &Claim) -> Result<()> {
    let mut next = Some(claim.id.clone());
    for _ in 0..MAX_SUCCESSORS {
        let Some(record) = next.take().map(|id| store.record(&id)).transpose()?.flatten() else { break };
        let is_ours = |holder: &Holder| {
            (&holder.host, holder.pid, holder.began)
                == (&claim.holder.host, claim.holder.pid, claim.holder.began)
        };
        match record.status {
            Status::Running if record.holder.as_ref().is_some_and(is_ours) => {
                store.release(&record.id, record.holder.as_ref())?;
            }
            Status::Running => {}
            _ => drop(store.unclaim(claim, false)?),
        }
        next = record.continued_by;
    }
    Ok(())
}

/// No conversation goes through more threads, unless it is a circle.
const MAX_SUCCESSORS: usize = 1000;
