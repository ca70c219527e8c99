//! How a waiting request is asked to stop.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Says whether to stop. It can be kept for as long as a request lasts, which a borrowed listener cannot.
#[derive(Clone)]
pub struct Stop(Arc<dyn Fn() -> bool + Send + Sync>);

impl Stop {
    /// Stops when a function says so. It is asked about ten times in a second, and must not block.
    pub fn when(stop: impl Fn() -> bool + Send + Sync + 'static) -> Stop {
        Stop(Arc::new(stop))
    }

    /// Stops when a flag is set.
    pub fn flag(flag: Arc<AtomicBool>) -> Stop {
        Stop::when(move || flag.load(Ordering::SeqCst))
    }

    /// Whether to stop.
    pub fn is_set(&self) -> bool {
        (self.0)()
    }
}

impl fmt::Debug for Stop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Stop")
    }
}
