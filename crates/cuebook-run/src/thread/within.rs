//! A call that a thread makes: whose it is, and what its tools must not see.

use super::{Secrets, ThreadId};
use crate::store::Holder;

/// The variable that tells a tool which thread it runs for, so that a thread that it starts is a child of that one.
pub(crate) const PARENT: &str = "RYE_PARENT_THREAD_ID";

/// The thread that makes a call.
pub(crate) struct Within<'t> {
    /// There is none yet while a hook says what a root is to be told first.
    pub(crate) thread: Option<&'t ThreadId>,
    /// Who runs it. If that is somebody else by now, it starts no more children.
    pub(crate) holder: Option<&'t Holder>,
    /// The call, if it is one of its model and not of a hook.
    pub(crate) call: Option<&'t str>,
    pub(crate) secrets: &'t Secrets,
}
