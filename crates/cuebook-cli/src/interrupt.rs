//! Ctrl-C and other signals: a signal stops what runs, and nothing is left behind.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cuebook_run::Watch;
use cuebook_run::provider::Stop;

/// Ctrl-C stops the tool, which is in its own group and would not hear of it; twice, it is stopped
/// without being asked first. Where this is not looked at, which is while a request is on its way, twice ends this program.
pub struct Interrupted {
    /// It was requested, and not read yet.
    asked: Arc<AtomicBool>,
    /// How often that happened.
    times: Arc<AtomicUsize>,
}

impl Interrupted {
    /// Listens from now on.
    pub fn new() -> Interrupted {
        let asked = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP]
        {
            // Without it the program would end at once and leave the tool behind: worth having, not worth failing for.
            let _ = signal_hook::flag::register_conditional_shutdown(signal, 128 + signal, asked.clone());
            let _ = signal_hook::flag::register(signal, asked.clone());
        }
        Interrupted { asked, times: Arc::default() }
    }

    fn times(&self) -> usize {
        let new = usize::from(self.asked.swap(false, Ordering::Relaxed));
        self.times.fetch_add(new, Ordering::Relaxed) + new
    }
}

impl Watch for Interrupted {
    fn cancelled(&self) -> bool {
        self.times() > 0
    }

    fn stop(&self) -> Option<Stop> {
        let (asked, times) = (self.asked.clone(), self.times.clone());
        Some(Stop::when(move || asked.load(Ordering::Relaxed) || times.load(Ordering::Relaxed) > 0))
    }

    fn impatient(&self) -> bool {
        self.times() > 1
    }
}

/// A process that runs a thread for a starter that has left. A machine that is shut down and asks it to end has
/// nothing against the thread: what runs is stopped, and the thread can be resumed.
pub struct EndSignal(Arc<AtomicBool>);

impl EndSignal {
    /// Listens from now on.
    pub fn new() -> EndSignal {
        let reported = Arc::new(AtomicBool::new(false));
        #[cfg(unix)]
        {
            use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
            for signal in [SIGINT, SIGTERM] {
                let _ = signal_hook::flag::register(signal, reported.clone());
            }
            // The starter may leave at any moment and take its terminal along. That is not a reason to end.
            let _ = signal_hook::flag::register(SIGHUP, Arc::new(AtomicBool::new(false)));
        }
        EndSignal(reported)
    }
}

impl Watch for EndSignal {
    fn cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    fn leaving(&self) -> bool {
        self.cancelled()
    }

    fn stop(&self) -> Option<Stop> {
        let reported = self.0.clone();
        Some(Stop::when(move || reported.load(Ordering::Relaxed)))
    }
}
