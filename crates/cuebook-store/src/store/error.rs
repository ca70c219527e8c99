//! What a store says no with. Every error of both stores is made here, so that they say the same.

use cuebook_text::{Code, Diagnostic, Error, ErrorKind, Hint};

use super::Authenticity;
use crate::money::Money;
use crate::record::{Status, ThreadId};

/// `CB712`: there is no such thread.
pub(crate) fn not_found(id: &ThreadId) -> Error {
    let message = format!("there is no thread `{id}`");
    let diagnostic = Diagnostic::new(Code::ThreadNotFound, message).hint(
        Hint::command_line("`cuebook thread list` shows the threads of this store")
            .with_command("cuebook thread list"),
    );
    Error::new(ErrorKind::ItemNotFound, diagnostic).with("thread_id", id.as_str())
}

/// `CB713`: another process runs it, or none.
pub(crate) fn busy(id: &ThreadId, message: String, hint: impl Into<Hint>) -> Error {
    let diagnostic = Diagnostic::new(Code::ThreadBusy, message).hint(hint);
    Error::new(ErrorKind::Execute, diagnostic).with("thread_id", id.as_str())
}

/// `CB713`: the writer no longer holds the thread.
pub(crate) fn lost(id: &ThreadId, status: Status) -> Error {
    let message = match status {
        Status::Running => format!("another process took over `{id}`; this one can no longer write to it"),
        status => format!("`{id}` is {status} and no process runs it, so nothing can be written to it"),
    };
    busy(id, message, "resume the thread to continue it").with("status", status.as_str())
}

/// `CB713`: it was written to since the caller looked.
pub fn moved(id: &ThreadId, status: Status) -> Error {
    let message = format!("another process continued `{id}` meanwhile; it is {status} now");
    busy(id, message, "look at the thread, and try again").with("status", status.as_str())
}

/// `CB713`: it runs already.
pub(crate) fn runs(id: &ThreadId, pid: Option<u32>) -> Error {
    let who = pid.map_or_else(String::new, |pid| format!(", by process {pid}"));
    let hint = Hint::command_line("wait until it stops, or stop it with `cuebook thread cancel`")
        .for_programs("wait until it stops, or cancel it")
        .with_command(format!("cuebook thread cancel {id}"));
    busy(id, format!("`{id}` is already running{who}"), hint)
}

/// `CB716`: a thread has started as many children as it may.
pub(crate) fn spawns(parent: &ThreadId, spawned: u32, limit: u64) -> Error {
    let message = format!("`{parent}` has started {spawned} threads; the limit is {limit}");
    let diagnostic = Diagnostic::new(Code::LimitReached, message)
        .hint("raise its limit: `spawns` in its limits, or in `limit_overrides`");
    Error::new(ErrorKind::Limit, diagnostic)
        .with("thread_id", parent.as_str())
        .with("limit_code", "spawns")
        .with("current_value", spawned)
        .with("current_max", limit)
}

/// Which account has too little: one's own, or that of one's parent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum AccountOwner {
    Own,
    Parents,
}

/// `CB718`: too little is left.
pub(crate) fn exhausted(whose: AccountOwner, id: &ThreadId, remaining: Money, requested: Money) -> Error {
    let amount = |money: Money| match money {
        Money::MAX => "unlimited".to_owned(),
        money => money.to_string(),
    };
    let (role, hint) = match whose {
        AccountOwner::Own => ("thread", "resume it with a higher `spend` limit"),
        AccountOwner::Parents => ("parent", "lower the child's `spend` limit, or raise its parent's"),
    };
    let message = format!(
        "Insufficient budget: {role}={id} remaining={} requested={}",
        amount(remaining),
        amount(requested)
    );
    let diagnostic = Diagnostic::new(Code::BudgetExhausted, message).hint(hint);
    Error::new(ErrorKind::Limit, diagnostic)
        .with("thread_id", id.as_str())
        .with("limit_code", "spend")
        .with("remaining", remaining.to_json())
        .with("requested", requested.to_json())
}

/// `CB718`: the account of a thread that ended takes no more children.
pub(crate) fn closed(parent: &ThreadId, status: Status, requested: Money) -> Error {
    let message = format!(
        "Insufficient budget: parent={parent} remaining=0.00 requested={requested}: \
         the parent is {status}, and its account is closed"
    );
    let diagnostic = Diagnostic::new(Code::BudgetExhausted, message)
        .hint("start the thread without a parent, or resume the parent first");
    Error::new(ErrorKind::Limit, diagnostic)
        .with("thread_id", parent.as_str())
        .with("limit_code", "spend")
        .with("remaining", Money::ZERO.to_json())
        .with("requested", requested.to_json())
}

/// `CB727`: a thread that is to stop starts nothing more.
pub(crate) fn cancelled(parent: &ThreadId) -> Error {
    let message = format!("`{parent}` was cancelled and cannot start threads");
    let diagnostic = Diagnostic::new(Code::ThreadCancelled, message).hint("resume it to continue it");
    Error::new(ErrorKind::Execute, diagnostic).with("thread_id", parent.as_str())
}

/// `CB728`: it came to its end.
pub(crate) fn ended(id: &ThreadId, status: Status, continued_by: Option<&ThreadId>) -> Error {
    let hint = match continued_by {
        Some(next) => format!("`{next}` continues its conversation: resume that one"),
        None => "start a new thread, which can continue its conversation".to_owned(),
    };
    let message = format!("`{id}` is {status} and cannot be resumed");
    let diagnostic = Diagnostic::new(Code::CannotResume, message).hint(hint);
    Error::new(ErrorKind::Execute, diagnostic).with("thread_id", id.as_str()).with("status", status.as_str())
}

/// `CB714`: what is stored is not what a store writes.
pub(crate) fn broken(id: &ThreadId, seq: u64, why: &str) -> Error {
    let message = format!("the log of `{id}` is broken at event {seq}: {why}");
    let diagnostic = Diagnostic::new(Code::BrokenLog, message)
        .hint("another program changed the log; do not rely on anything after this event");
    Error::new(ErrorKind::Integrity, diagnostic).with("thread_id", id.as_str()).with("seq", seq)
}

/// `CB714`: the row of a thread is not what a store wrote.
pub fn damaged(id: &ThreadId, why: &str) -> Error {
    let message = format!("`{id}` is damaged: {why}");
    let diagnostic = Diagnostic::new(Code::BrokenLog, message)
        .hint("do not rely on it: start the prompt again, or restore the store from a backup");
    Error::new(ErrorKind::Integrity, diagnostic).with("thread_id", id.as_str())
}

/// `CB735`: the user's key does not authenticate a thread.
pub fn not_own(id: &ThreadId, authenticity: &Authenticity) -> Error {
    if let Authenticity::Damaged(why) = authenticity {
        return damaged(id, why);
    }
    let warning = authenticity.warning().unwrap_or_default();
    let diagnostic = Diagnostic::new(Code::NotYourLog, format!("the log of `{id}` is {warning}")).hint(
        Hint::command_line(
            "read it with `cuebook thread show`; if you trust all of it, resume the thread with --trust-log",
        )
        .for_programs("read it before you rely on it"),
    );
    Error::new(ErrorKind::Integrity, diagnostic)
        .with("thread_id", id.as_str())
        .with("authenticity", authenticity.as_str())
}

/// `CB714`: the threads above one lead back to it.
pub(crate) fn circle(id: &ThreadId) -> Error {
    damaged(id, "its parent threads form a cycle")
}

/// `CB724`: the store itself cannot be used. `place` is a file, or an address without its password.
pub(crate) fn failed(place: &str, why: &str, hint: &str) -> Error {
    let message = format!("cannot use the store of threads: {why}");
    let diagnostic = Diagnostic::new(Code::StoreFailed, message).file(place).hint(hint);
    Error::new(ErrorKind::Io, diagnostic).with("store", place)
}

/// `CB724`: the tables are of a version that this one does not know.
pub(crate) fn newer(place: &str, version: i64, known: usize) -> Error {
    let why = format!("it has version {version}; this Cuebook reads versions up to {known}");
    failed(place, &why, "use the Cuebook that wrote it, or a newer one; this one changed nothing")
}
