//! A thread's status.

use std::fmt;

/// A thread's status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It was registered and no process runs it yet.
    Created,
    /// It waits in the queue for a worker.
    Queued,
    /// A process runs it.
    Running,
    /// It completed.
    Completed,
    /// It failed.
    Error,
    /// It was stopped.
    Cancelled,
    /// A limit or a hook stopped it; it can resume with other limits.
    Suspended,
    /// Its conversation grew too long, and another thread continued it.
    Continued,
    /// Its process died, or was asked to end; it can continue.
    Interrupted,
}

impl Status {
    /// Every one of them.
    pub const ALL: [Status; 9] = [
        Status::Created,
        Status::Queued,
        Status::Running,
        Status::Completed,
        Status::Error,
        Status::Cancelled,
        Status::Suspended,
        Status::Continued,
        Status::Interrupted,
    ];

    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Created => "created",
            Status::Queued => "queued",
            Status::Running => "running",
            Status::Completed => "completed",
            Status::Error => "error",
            Status::Cancelled => "cancelled",
            Status::Suspended => "suspended",
            Status::Continued => "continued",
            Status::Interrupted => "interrupted",
        }
    }

    /// The one with this word.
    pub fn named(word: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == word)
    }

    /// Whether nothing follows automatically: it ended, one way or another, or waits for a person.
    pub fn is_at_rest(self) -> bool {
        !matches!(self, Status::Created | Status::Queued | Status::Running)
    }

    /// Whether it ended for good, so that what it did not spend goes back to its parent. A thread that failed or was cancelled
    /// can still be resumed; it then has to ask its parent again.
    pub fn is_settled(self) -> bool {
        matches!(self, Status::Completed | Status::Error | Status::Cancelled | Status::Continued)
    }

    /// Whether it may be continued.
    pub fn can_resume(self) -> bool {
        !matches!(self, Status::Completed | Status::Continued | Status::Running)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
