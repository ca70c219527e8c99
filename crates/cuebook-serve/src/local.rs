//! The items of this machine: what the four tools do for whoever serves a project.
//!
//! A call names its project, and by default it is the server's. The engine keeps what is known of a project between calls.

use std::time::Instant;

use cuebook::items::{Item, Spaces};
use cuebook::trust::Trust;
use cuebook_run::policy::allowance::Allowance;
use cuebook_run::{Action, Engine, Fence, Launcher, Settings};
use serde_json::Value as Json;

use crate::items::{Arguments, Items, Watch};

/// Executes, searches, loads and signs the items of projects on this machine, in the name of whoever runs it.
pub struct LocalItems {
    engine: Engine,
    trust: Trust,
}

impl LocalItems {
    /// The items that a project sees, and those of other projects of the same user. Tools run in the sandbox, so the `main` of the
    /// program begins with [`launch_if_asked`](cuebook_run::launch_if_asked).
    pub fn new(spaces: Spaces) -> LocalItems {
        let settings =
            Settings { fence: Fence::All, launcher: Some(Launcher::this_program()), ..Settings::default() };
        LocalItems::of_engine(Engine::new(spaces.clone()).with_settings(settings), &spaces)
    }

    /// The same with an engine that was set up otherwise.
    pub fn of_engine(engine: Engine, spaces: &Spaces) -> LocalItems {
        LocalItems { engine, trust: Trust::new(spaces) }
    }

    fn run(&self, action: Action, arguments: &Arguments, watch: &dyn Watch) -> Json {
        action.run(&self.engine, arguments, &Seconds { watch, began: Instant::now() })
    }
}

impl Items for LocalItems {
    fn execute(&self, arguments: &Arguments, watch: &dyn Watch) -> Json {
        self.run(Action::Execute, arguments, watch)
    }

    fn search(&self, arguments: &Arguments, watch: &dyn Watch) -> Json {
        self.run(Action::Search, arguments, watch)
    }

    fn load(&self, arguments: &Arguments, watch: &dyn Watch) -> Json {
        self.run(Action::Load, arguments, watch)
    }

    fn sign(&self, arguments: &Arguments, watch: &dyn Watch) -> Json {
        self.run(Action::Sign, arguments, watch)
    }

    fn allowance(&self) -> Option<&Allowance> {
        self.engine.settings().allowance.as_ref()
    }

    fn verify(&self, item: &Item) -> cuebook::Result<()> {
        self.trust.verify(item).map(drop)
    }
}

/// A run says that it goes on, and not how far it is: what is told is how many seconds have passed.
struct Seconds<'w> {
    watch: &'w dyn Watch,
    began: Instant,
}

impl cuebook_run::Watch for Seconds<'_> {
    fn cancelled(&self) -> bool {
        self.watch.is_cancelled()
    }

    fn progress(&self, message: &str) {
        self.watch.progress(self.began.elapsed().as_secs_f64(), None, message);
    }
}
