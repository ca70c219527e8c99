//! A call that a thread makes: whose it is, and what its tools must not see.

use cuebook::sha256::hex;
use sha2::{Digest, Sha256};

use crate::processes;
use crate::record::{Holder, ThreadId};
use crate::secrets::Secrets;

/// The variable that tells a tool which thread it runs for, so that a thread that it starts is a child of that one.
pub(crate) const PARENT: &str = "RYE_PARENT_THREAD_ID";

/// The variable that a tool carries its mark in.
pub(crate) const MARK: &str = "CUEBOOK_TOOL_OF";

/// The thread that makes a call.
pub(crate) struct Caller<'t> {
    /// There is none yet while a hook decides what a root gets first.
    pub(crate) thread: Option<&'t ThreadId>,
    /// Who runs it. If that is another process by now, it starts no more children.
    pub(crate) holder: Option<&'t Holder>,
    /// The call, if it is one of its model and not of a hook.
    pub(crate) call: Option<&'t str>,
    pub(crate) secrets: &'t Secrets,
}

/// The mark of what a holder starts, for a call if there is one.
pub(crate) fn mark(holder: &Holder, call: Option<&str>) -> String {
    let hex = |text: String| hex(&Sha256::digest(text)[..12]);
    let Holder { host, pid, began, token } = holder;
    let whose = hex(format!("tools of\n{host}\n{pid}\n{began}\n{token}"));
    match call {
        Some(call) => format!("{whose}.{}", hex(format!("call of\n{token}\n{call}"))),
        None => whose,
    }
}

/// Stops whatever a call has started and that still runs. What a hook started has no mark of its own, and is left alone.
pub(crate) fn stop_call(mark: &str) {
    if mark.contains('.') {
        processes::stop(&|| processes::marked(MARK).into_iter().filter(|one| one.mark == mark).collect());
    }
}
