//! Whoever waits for a call: is told how far it is, and may want it to stop.

/// Watches a call.
pub trait Watch: Sync {
    /// Whether the call is to stop. It is asked often, so it should only look at something.
    fn cancelled(&self) -> bool {
        false
    }

    /// Whether whoever wants it to stop does not want to wait until it has ended by itself.
    fn impatient(&self) -> bool {
        false
    }

    /// Says about once in a second that the call still runs, and what it does.
    fn progress(&self, _message: &str) {}
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ignore;

impl Watch for Ignore {}
